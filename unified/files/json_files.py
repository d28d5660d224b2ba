"""Data sets that are one JSON value: reading them, and naming every bad entry of one together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from unified.arguments import has_lone_surrogate
from unified.errors import MissingField, Problems, UnifiedError
from unified.files.ids import name_text
from unified.files.json_text import NotJson, ObjectOf, parse_json
from unified.files.shapes import kind_of
from unified.files.text_files import is_compressed, text_pieces

#: Values that one JSON value of a compressed file may hold; of a large file, one for so many of its bytes.
_MOST_VALUES, _BYTES_A_VALUE = 3_000_000, 3
#: JSON has no more values than these signs, but for a single one.
_BESIDE_VALUES = ",[{"

#: Values of a JSON object, or of a row of a table, by field.
Fields = dict[str, Any]


def read_json(path: str | Path, object_of: ObjectOf | None = None) -> object:
    """The one JSON value of a file, plain or compressed (.gz, .xz, .zst).

    Args:
        object_of: makes an object of its names and values; None for a dictionary of the last value of each name.

    Raises:
        UnifiedError: the file cannot be read, or is not JSON.
    """
    text = "".join(text_pieces(str(path)))  # a line may have any length
    _check_values(str(path), text)
    try:
        return parse_json(text, object_of)
    except NotJson as error:
        raise UnifiedError(f"{path}, line {error.line}: {error}") from None


def _check_values(path: str, text: str) -> None:
    """Refuse a compressed file whose values would take many times the memory of its text."""
    if not is_compressed(path):
        return
    most = max(_MOST_VALUES, os.path.getsize(path) // _BYTES_A_VALUE)
    if sum(map(text.count, _BESIDE_VALUES)) > most:
        raise UnifiedError(f"{path}: holds more than {most:,} values, as no data set of its size does; unpack it first")


class Record(dict[str, Any]):
    """An object of JSON whose missing fields are refused; ``object_of`` of :func:`read_json`."""

    def __missing__(self, name: str) -> NoReturn:
        raise MissingField(name, list(self))


def fields_of(line: str, object_of: ObjectOf | None = None) -> Fields:
    """The object of a line.

    Args:
        object_of: as of :func:`read_json`; makes a dictionary.

    Raises:
        UnifiedError: there is none.
    """
    fields = object_or_error(parse_json(line, object_of))
    if isinstance(fields, UnifiedError):
        raise fields
    return fields


def object_or_error(value: object) -> Fields | UnifiedError:
    """A value of JSON if it is an object, else the reason for refusing it."""
    if isinstance(value, dict):
        return value
    return UnifiedError(f"not a JSON object but {kind_of(value)}")


class Entries:
    """Reads fields of a data set's entries and collects what is wrong with them, until :meth:`check` refuses all.

    A field that is missing or of another type is noted with its location, and an empty value stands in for it, so that
    reading goes on.
    """

    def __init__(self, path: str | Path):
        self.path = path
        self.problems = Problems()
        self._locations: dict[str, str] = {}

    def wrong(self, location: str, what: str | UnifiedError) -> None:
        """Note a problem."""
        self.problems.add(location, what)

    def unreadable(self, name: str, path: Path, error: UnifiedError) -> None:
        """Note that one of several files cannot be read.

        Args:
            name: of the file in the data set.
            path: of the file, with which the message of ``error`` begins.
        """
        location, _, what = str(error).removeprefix(str(path)).partition(": ")  # such as ", line 3"
        self.wrong(f"{name}{location}", what)

    def once(self, identity: str, location: str) -> None:
        """Note an id that another entry has: predictions are named by ids, and could not be told apart."""
        first = self._locations.get(identity)
        if first is None:
            self._locations[identity] = location
        else:
            self.wrong(location, f"the id {identity!r} is that of {first}, too; each needs an id of its own")

    def objects(self, entry: object, name: str, location: str, optional: bool = False) -> list[dict[str, Any]]:
        """The list ``name`` of an object; members that are no objects are noted and left out."""
        if not isinstance(entry, Mapping) or not isinstance(entry.get(name), list):
            if not (optional and isinstance(entry, Mapping) and entry.get(name) is None):
                self._lacks(entry, name, location, f"no list {name!r}")
            return []
        for number, member in enumerate(entry[name], 1):
            if not isinstance(member, dict):
                self.wrong(location, f"member {number} of {name!r} is not an object")
        return [member for member in entry[name] if isinstance(member, dict)]

    def text(self, entry: Mapping[str, Any], name: str, location: str, blank: bool = False) -> str:
        """The text ``name`` of an object, which only with ``blank`` may hold nothing but white space."""
        value = entry.get(name)
        if not isinstance(value, str):
            self._lacks(entry, name, location, f"no text {name!r}")
        elif not blank and not value.strip():
            self.wrong(location, f"{name!r} is empty")
        elif has_lone_surrogate(value):
            self.wrong(location, f"{name!r} holds half of a surrogate pair")
        else:
            return value
        return ""

    def identity(self, entry: Mapping[str, Any], name: str, location: str) -> str:
        """The id ``name`` of an object, a text or an integer, as a text (:mod:`unified.files.ids`)."""
        text = name_text(entry.get(name))
        if text is None:
            self._lacks(entry, name, location, f"no id {name!r}, which is a text or an integer")
        elif has_lone_surrogate(text):
            self.wrong(location, f"{name!r} holds half of a surrogate pair")
        return text or ""

    def integer(self, entry: Mapping[str, Any], name: str, location: str) -> int:
        """The integer ``name`` of an object."""
        value = entry.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            self._lacks(entry, name, location, f"no integer {name!r}")
            return 0
        return value

    def _lacks(self, entry: object, name: str, location: str, otherwise: str) -> None:
        """Note that a field is missing, or else what is wrong with it."""
        if isinstance(entry, Mapping) and name not in entry:
            self.wrong(location, MissingField(name, list(entry)))
        else:
            self.wrong(location, otherwise)

    def check(self) -> None:
        """Refuse the file if something was wrong in it.

        Raises:
            UnifiedError: something was wrong; names the first ten different problems and how many more there are.
        """
        self.problems.check(f"{self.path}: ")
