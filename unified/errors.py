"""The one exception that means "your input cannot be used", as opposed to "the library has a bug"."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence


class UnifiedError(ValueError):
    """A refusal in one line: what arrived, what was needed, what to do about it.

    Command lines print the message without a traceback and exit with a non-zero status.
    """


class TrainingFailed(UnifiedError):
    """``fairseq-train`` has ended with an error, which it printed; other trainings may succeed."""


class Interrupted(UnifiedError):
    """Work that stopped although nothing is wrong with what arrived: the same command goes on with it."""


#: Problems that a message names before it only counts; locations that are named of equal ones; fields of a record.
SHOWN = 10
_LOCATIONS = 3
_FIELDS = 8
_PLACE = re.compile(r"(.*?)(line|row|item) ([\w-]+)", re.DOTALL)


class MissingField(UnifiedError):
    """A record, or a table, lacks a field, or a column.

    Args:
        name: of the field.
        names: of the fields that are there.
        what: the word for one of them, "field" or "column".
        option: of the command line that names the field to read, where there is one.
    """

    def __init__(self, name: str, names: Sequence[str], what: str = "field", option: str | None = None):
        super().__init__(name, names, what, option)

    @property
    def name(self) -> str:
        """The missing field."""
        return str(self.args[0])

    @property
    def problem(self) -> str:
        """The problem without the fields that are there, which may differ from record to record."""
        name, _, what, _ = self.args
        return f"no {what} {name!r}"

    def __str__(self) -> str:
        name, names, what, option = self.args
        more = ", ..." if len(names) > _FIELDS else ""
        advice = f"; {option} names the one to read" if option and names else ""
        there = ", ".join(map(repr, names[:_FIELDS])) or "none"
        return f"{self.problem}{nearest(name, names)}; its {what}s: {there}{more}{advice}"


class EmptyField(UnifiedError):
    """A field of a record, or a cell of a table, holds nothing.

    Args:
        name: of the field, as the user has it.
    """

    def __init__(self, name: str):
        super().__init__(f"the field {name!r} is empty")


def require_fields(record: Mapping[str, object], *names: str) -> None:
    """Refuse a record that lacks one of the named fields.

    Raises:
        MissingField: names the first that is missing, and the fields that are there.
    """
    for name in names:
        if name not in record:
            raise MissingField(name, list(record))


class Problems:
    """Problems with lines of files or with entries of data sets; equal ones are named once, with a count."""

    def __init__(self) -> None:
        # The key is the file, where the location is a line, and what the problem is.
        self._messages: dict[tuple[str | None, str], str] = {}
        self._locations: dict[tuple[str | None, str], list[str]] = {}

    def add(self, location: str, problem: str | UnifiedError) -> None:
        """Note a problem.

        Args:
            location: where it is, such as "line 3", "train.jsonl, line 3" or "item q7".
        """
        line = _PLACE.fullmatch(location)
        equal = problem.problem if isinstance(problem, MissingField) else str(problem)
        key = (line[1] if line else None, equal)
        self._messages.setdefault(key, str(problem))
        self._locations.setdefault(key, []).append(location)

    def extend(self, others: Iterable[tuple[str, str | UnifiedError]]) -> None:
        """Note several problems, each with its location."""
        for location, problem in others:
            self.add(location, problem)

    def __len__(self) -> int:
        return sum(map(len, self._locations.values()))

    def __str__(self) -> str:
        """One line: the first ten different problems with their locations, and how many problems more there are."""
        shown = list(self._locations)[:SHOWN]
        rest = len(self) - sum(len(self._locations[key]) for key in shown)
        named = [f"{_named(self._locations[key])}: {self._messages[key]}" for key in shown]
        return "; ".join(named) + (f"; and {rest:,} more" if rest else "")

    def check(self, before: str = "") -> None:
        """Raise one error that names all problems, if there are any.

        Args:
            before: what the message begins with.

        Raises:
            UnifiedError: there is a problem.
        """
        if self:
            raise UnifiedError(f"{before}{self}")


def _named(locations: Sequence[str]) -> str:
    """Several locations in words: how many they are, and the first of them."""
    if len(locations) == 1:
        return locations[0]
    more = ", ..." if len(locations) > _LOCATIONS else ""
    shown = locations[:_LOCATIONS]
    lines = [line for line in map(_PLACE.fullmatch, shown) if line is not None]
    if len(lines) == len(shown):
        return f"{lines[0][1]}{len(locations):,} {lines[0][2]}s ({', '.join(line[3] for line in lines)}{more})"
    return f"{len(locations):,} times ({', '.join(locations[:_LOCATIONS])}{more})"


def first_few(problems: Sequence[str], shown: int = SHOWN) -> str:
    """The first ``shown`` of several problems in one line, and how many more there are."""
    more = f"; and {len(problems) - shown} more" if len(problems) > shown else ""
    return "; ".join(problems[:shown]) + more


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that ``name`` may stand for, or nothing."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f" (did you mean {matches[0]!r}?)" if matches else ""
