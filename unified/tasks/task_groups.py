"""Data sets of one benchmark that are learnt one after another, a model each, and reported in one table."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.reports.differences import canonical
from unified.tasks.metrics.subsets import named_by_subset
from unified.tasks.settings import Published


@dataclass(frozen=True)
class TaskGroup:
    """A benchmark whose data sets are tasks of their own, such as MRQA.

    Attributes:
        name: on the command line.
        members: what tables call a data set -> its task.
        has: whether a folder has files of a data set.
        measures: of the members, which are listed and averaged.
        published: split -> system -> measure -> figure in percent, as of a task.
        source: where the figures are published.
    """

    name: str
    members: Mapping[str, str]
    has: Callable[[Path, str], bool]
    measures: tuple[str, ...]
    published: Published
    source: str

    def present(self, folder: Path) -> dict[str, str]:
        """The :attr:`members` that ``folder`` has files of.

        Raises:
            UnifiedError: there is none.
        """
        found = {name: task for name, task in self.members.items() if self.has(folder, name)}
        if not found:
            raise UnifiedError(f"--data {folder}: no files of {', '.join(self.members)} in it")
        return found

    def result(self, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Arguments of :func:`unified.reports.results.write_result`, from the results of all members by name in tables.

        ``measure_member`` is the measure of a member, ``average_measure`` the mean over all. Settings that are not the
        same for all members are listed by member.

        Raises:
            UnifiedError: the results are of different runs, seeds or models.
        """
        first, *others = results.values()
        for name in ("run", "seed"):
            if any(one[name] != first[name] for one in others):
                raise UnifiedError(f"{self.name}: the results of its data sets differ in their {name}; make them anew")
        if any(one["model"]["sha256"] != first["model"]["sha256"] for one in others):
            raise UnifiedError(f"{self.name}: the results of its data sets are of different models; make them anew")
        scores, data = ({name: one[field] for name, one in results.items()} for field in ("scores", "data"))
        return {
            "task": self.name,
            "run": first["run"],
            "scores": {
                split: named_by_subset({name: own[split] for name, own in scores.items()}, self.measures, True)
                for split in _common(scores)
            },
            "seed": first["seed"],
            "command": [shlex.join(one["command"]) for one in results.values()],
            "model": first["model"],
            "settings": _merged({name: one["settings"] for name, one in results.items()}),
            "data": {file: _digest({name: own[file] for name, own in data.items()}) for file in _common(data)},
            "published": self.published,
        }


def _merged(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Settings that all members have alike, and the others by name and member."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for own in settings.values() for name in own):
        values = {member: own.get(name) for member, own in settings.items()}
        alike = len({canonical(value) for value in values.values()}) == 1
        merged[name] = next(iter(values.values())) if alike else values
    return merged


def _common(mappings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Names that all of several mappings have."""
    first, *others = mappings.values()
    return [name for name in first if all(name in own for own in others)]


def _digest(digests: Mapping[str, str]) -> str:
    """Combines several SHA-256 into one."""
    return hashlib.sha256(canonical(digests).encode()).hexdigest()
