"""JSON that users give: read in one way, so that whatever is wrong with it is said in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from unified.arguments import has_lone_surrogate
from unified.errors import UnifiedError, one_line

#: Makes an object of its names and values, in the order of the text.
ObjectOf = Callable[[list[tuple[str, Any]]], Any]


#: Lists and objects within each other: no file of data or settings comes near it, and Python's own limit is not far.
_DEEPEST = 100


class NotJson(UnifiedError):
    """A text is not JSON.

    Args:
        reason: what is wrong with it.
        line: where, from 1.
        position: the same in characters, from 0; None where nobody knows.
    """

    def __init__(self, reason: str, line: int = 1, position: int | None = None):
        super().__init__(reason, line, position)  # as they are, so that it can be pickled
        self.reason, self.line, self.position = reason, line, position

    def __str__(self) -> str:
        return one_line(self.details)

    @property
    def details(self) -> str:
        return f"not JSON ({self.reason})"


def parse_json(text: str, object_of: ObjectOf | None = None, nan: bool = False) -> Any:
    """The JSON value of a text.

    Args:
        object_of: None for a dictionary of the last value of each name.
        nan: whether NaN and infinities will do, which the library writes for losses and scores that are none.

    Raises:
        NotJson: it is none, is nested more than 100 deep, or has an integer of more than 4,300 digits.
    """
    value, stop = parse_beginning(text, _begin(text, 0), object_of, nan)
    rest = _begin(text, stop)
    if rest < len(text):
        raise NotJson("something stands behind its end", 1 + text.count("\n", 0, rest), rest)
    return value


def parse_beginning(text: str, start: int, object_of: ObjectOf | None = None, nan: bool = False) -> tuple[Any, int]:
    """The JSON value that begins at a character of a text, and the character behind its end; as :func:`parse_json`."""
    decoder = json.JSONDecoder(object_pairs_hook=object_of, parse_constant=None if nan else _no_constant)
    try:
        value, stop = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, error.lineno, error.pos) from None
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except UnifiedError:
        raise
    except ValueError:
        raise NotJson("an integer has more than 4,300 digits") from None
    brackets = text.count("[", start, stop) + text.count("{", start, stop)
    if brackets > _DEEPEST and _is_deep(value):
        raise NotJson("nested too deeply")
    return value, stop


def read_object(path: Path, nan: bool = False) -> dict[str, Any]:
    """The JSON object that a small file holds, such as one of settings.

    Args:
        nan: as of :func:`parse_json`.

    Raises:
        UnifiedError: it holds none, or cannot be read.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"), nan=nan)
    except UnicodeDecodeError as error:
        raise UnifiedError(f"{path}: not JSON (not UTF-8 at byte {error.start})") from None
    except NotJson as error:
        raise UnifiedError(f"{path}, line {error.line}: {error}") from None
    except FileNotFoundError:
        raise UnifiedError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise UnifiedError(f"{path}: cannot be read ({error.strerror})") from None
    return _object(str(path), content)


def object_of_line(path: str | Path, number: int, line: str) -> dict[str, Any]:
    """The JSON object of a line of a file that the library wrote, in which NaN may stand.

    Raises:
        UnifiedError: it is none; names file and line.
    """
    try:
        content = parse_json(line, nan=True)
    except NotJson as error:
        raise UnifiedError(f"{path}, line {number}: {error}") from None
    return _object(f"{path}, line {number}", content)


def _object(where: str, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise UnifiedError(f"{where}: not a JSON object")
    if has_lone_surrogate(json.dumps(content, ensure_ascii=False)):
        raise UnifiedError(f"{where}: a text holds half of a surrogate pair, which no encoding can write")
    return content


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST):
        inside = (child for one in level for child in (one.values() if isinstance(one, dict) else one))
        level = [child for child in inside if isinstance(child, dict | list)]
    return bool(level)


def _begin(text: str, at: int) -> int:
    """The first character from there on that is not white space of JSON."""
    return len(text) - len(text[at:].lstrip(" \t\r\n"))


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is no number of JSON")
