"""Data sets that are one JSON value: reading them, and naming every bad entry of one together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from unified.data.streams import numbered_lines
from unified.errors import UnifiedError, first_few

#: Half of a character, which JSON can escape and no encoding can write.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(path: str | Path) -> object:
    """The one JSON value of a file, plain or compressed (.gz, .xz, .zst).

    Raises:
        UnifiedError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads("\n".join(line for _, line in numbered_lines(path)))
    except json.JSONDecodeError as error:
        raise UnifiedError(f"{path}, line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise UnifiedError(f"{path}: not JSON of a data set: nested too deeply") from None


class Entries:
    """Reads fields of a data set's entries and collects what is wrong with them, until :meth:`check` refuses all.

    A field that is missing or of another kind is noted with its place, and an empty value stands in for it, so that
    reading goes on.
    """

    def __init__(self, path: str | Path):
        self.path = path
        self.problems: list[str] = []
        self._places: dict[str, str] = {}

    def wrong(self, place: str, what: str) -> None:
        """Note a problem."""
        self.problems.append(f"{place}: {what}")

    def once(self, identity: str, place: str) -> None:
        """Note an id that another entry has: predictions are named by ids, and could not be told apart."""
        first = self._places.get(identity)
        if first is None:
            self._places[identity] = place
        else:
            self.wrong(place, f"the id {identity!r} is that of {first}, too; each needs an id of its own")

    def objects(self, entry: object, name: str, place: str, optional: bool = False) -> list[dict]:
        """The list ``name`` of an object; members that are no objects are noted and left out."""
        if not isinstance(entry, Mapping) or not isinstance(entry.get(name), list):
            if not (optional and isinstance(entry, Mapping) and entry.get(name) is None):
                self.wrong(place, f"no list {name!r}")
            return []
        for number, member in enumerate(entry[name], 1):
            if not isinstance(member, dict):
                self.wrong(place, f"member {number} of {name!r} is not an object")
        return [member for member in entry[name] if isinstance(member, dict)]

    def text(self, entry: Mapping, name: str, place: str, blank: bool = False) -> str:
        """The text ``name`` of an object, which only with ``blank`` may hold nothing but white space."""
        value = entry.get(name)
        if not isinstance(value, str):
            self.wrong(place, f"no text {name!r}")
        elif not blank and not value.strip():
            self.wrong(place, f"{name!r} is empty")
        elif LONE_SURROGATE.search(value):
            self.wrong(place, f"{name!r} holds half of a surrogate pair")
        else:
            return value
        return ""

    def integer(self, entry: Mapping, name: str, place: str) -> int:
        """The integer ``name`` of an object."""
        value = entry.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(place, f"no integer {name!r}")
            return 0
        return value

    def check(self) -> None:
        """
        Raises:
            UnifiedError: something was wrong; names the first ten problems and how many more there are.
        """
        if self.problems:
            raise UnifiedError(f"{self.path}: {first_few(self.problems)}")
