"""The one exception that means "your input cannot be used", as opposed to "the library has a bug"."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

#: Most characters of a refusal.
LONGEST_REFUSAL = 300
#: Characters that a refusal keeps of its end, where it is too long: advice stands there.
_END = 100


def one_line(message: str) -> str:
    """A message as one printable line of at most :data:`LONGEST_REFUSAL` characters; too long a middle is left out."""
    if len(message) > 100 * LONGEST_REFUSAL:  # a value of megabytes, whose middle nobody will see
        message = f"{message[: 2 * LONGEST_REFUSAL]} ... {message[-2 * LONGEST_REFUSAL :]}"
    line = _joined(message)
    if len(line) <= LONGEST_REFUSAL:
        return line
    return f"{line[: LONGEST_REFUSAL - _END - len(' ... ')]} ... {line[-_END:]}"


def _joined(message: str) -> str:
    return " ".join(message.encode("utf-8", "backslashreplace").decode().split())


class UnifiedError(ValueError):
    """A refusal in one line: what arrived, what was needed, what to do about it.

    Command lines print the message without a traceback and exit with a non-zero status.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())

    @property
    def details(self) -> str:
        """All that is known, of any length: what ``--verbose`` prints."""
        return super().__str__()


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
        return one_line(self._with(_FIELDS))

    @property
    def details(self) -> str:
        return self._with(len(self.args[1]))

    def _with(self, shown: int) -> str:
        """The message with so many of the fields that are there."""
        name, names, what, option = self.args
        more = ", ..." if len(names) > shown else ""
        advice = f"; {option} names the one to read" if option and names else ""
        there = ", ".join(map(repr, names[:shown])) or "none"
        return f"{self.problem}{nearest(self.name, map(str, names))}; its {what}s: {there}{more}{advice}"


class WrongField(UnifiedError):
    """A field of a record, or a cell of a table, holds what cannot be used.

    Args:
        name: of the field.
        problem: what is wrong with it, such as "must be a number, got 'x'".
    """

    def __init__(self, name: str, problem: str):
        super().__init__(name, problem)

    @property
    def name(self) -> str:
        """The field that is wrong."""
        return str(self.args[0])

    @property
    def problem(self) -> str:
        """The problem without the name of the field."""
        return str(self.args[1])

    def __str__(self) -> str:
        return one_line(self.details)

    @property
    def details(self) -> str:
        return f"{self.name!r} {self.problem}"


class EmptyField(UnifiedError):
    """A field of a record, or a cell of a table, holds nothing.

    Args:
        name: of the field, as the user has it.
    """

    def __init__(self, name: str):
        super().__init__(name)

    def __str__(self) -> str:
        return one_line(self.details)

    @property
    def details(self) -> str:
        return f"the field {self.args[0]!r} is empty"


def require_fields(record: Mapping[str, object], *names: str) -> None:
    """Refuse a record that lacks one of the named fields.

    Raises:
        MissingField: names the first that is missing, and the fields that are there.
    """
    for name in names:
        if name not in record:
            raise MissingField(name, list(record))


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """A ``with`` block whose refusals name a file: its name stands in front of those that do not.

    Raises:
        UnifiedError: the block refuses something.
    """
    try:
        yield
    except UnifiedError as error:
        if os.path.basename(path) in str(error):
            raise
        raise UnifiedError(f"{os.fspath(path)}: {error.details}") from None


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
        """The first ten different problems with their locations, and how many problems more there are."""
        return self._refusal("", "").details

    def check(self, before: str = "", behind: str = "") -> None:
        """Raise one error that names all problems, if there are any.

        Args:
            before: what the message begins with.
            behind: what it ends with.

        Raises:
            SeveralProblems: there is a problem.
        """
        if self:
            raise self._refusal(before, behind)

    def _refusal(self, before: str, behind: str) -> SeveralProblems:
        shown = {key: self._locations[key] for key in list(self._locations)[:SHOWN]}
        named = [(f"{_named(places)}: {self._messages[key]}", len(places)) for key, places in shown.items()]
        return SeveralProblems(before, named, len(self) - sum(count for _, count in named), behind)


class SeveralProblems(UnifiedError):
    """Several things are wrong: the message names as many of them as fit into a line, and counts the others.

    Args:
        before: what the message begins with.
        named: the first problems with their places, each with how often it occurs.
        rest: how many further ones there are.
        behind: what the message ends with.
    """

    def __init__(self, before: str, named: Sequence[tuple[str, int]], rest: int, behind: str = ""):
        super().__init__(before, named, rest, behind)

    def __str__(self) -> str:
        _, named, _, _ = self.args
        lines = (_joined(self._with(count)) for count in range(len(named), 1, -1))
        return next((line for line in lines if len(line) <= LONGEST_REFUSAL), one_line(self._with(1)))

    @property
    def details(self) -> str:
        return self._with(len(self.args[1]))

    def _with(self, count: int) -> str:
        before, named, rest, behind = self.args
        more = rest + sum(often for _, often in named[count:])
        return f"{before}{'; '.join(said for said, _ in named[:count])}{f'; and {more:,} more' if more else ''}{behind}"


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
