"""Two systems, or several runs of each, on the same examples: differences of their scores.

Both answer the same examples, so a sample of examples is drawn once for both: examples that are hard for either do not
widen the interval of the difference (Koehn 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unified.arguments import counted, shown
from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import Examples, leaves, put


class Mean:
    """Several runs of one system, such as seeds, as one: each measure is the mean over the runs.

    Its intervals are over the examples alone: they say nothing about further runs.

    Args:
        runs: on the same examples, one at least.
        names: of the runs, for the refusal.

    Raises:
        UnifiedError: there is no run, or one has other examples than the first.
    """

    def __init__(self, runs: Sequence[Examples], names: Sequence[str] | None = None):
        if not runs:
            raise UnifiedError("runs: there is none; give one at least")
        called = [f"run {number}" for number in range(1, len(runs) + 1)] if names is None else names
        for run, name in zip(runs, called, strict=True):
            require_same_examples(runs[0].references(), run.references(), called[0], name)
        self._runs = runs
        self.size = runs[0].size

    def references(self) -> Sequence[Any]:
        """References that all runs share."""
        return self._runs[0].references()

    def scores(self) -> dict[str, Any]:
        """The measures, and ``runs``, their number."""
        return self.measures() | {"runs": len(self._runs)}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, Any]:
        """Means of the measures that every run has in a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        first, *others = (dict(leaves(run.measures(counts))) for run in self._runs)
        found: dict[str, Any] = {}
        for path, value in first.items():
            if all(path in other for other in others):
                put(found, path, (value + sum(other[path] for other in others)) / len(self._runs))
        return found


class Difference:
    """One system beside another: each measure is that of the first less that of the second.

    Args:
        first, second: on the same examples.
        names: of both, for the refusal.

    Raises:
        UnifiedError: they have different examples; names the first that differs.
    """

    def __init__(self, first: Examples, second: Examples, names: tuple[str, str] = ("the first", "the second")):
        require_same_examples(first.references(), second.references(), *names)
        self._first, self._second = first, second
        self.size = first.size

    def references(self) -> Sequence[Any]:
        """References that both share."""
        return self._first.references()

    def scores(self) -> dict[str, Any]:
        """The measures."""
        return self.measures()

    def measures(self, counts: np.ndarray | None = None) -> dict[str, Any]:
        """Differences of the measures that both have (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        first, second = (dict(leaves(side.measures(counts))) for side in (self._first, self._second))
        found: dict[str, Any] = {}
        for path, value in first.items():
            if path in second:
                put(found, path, value - second[path])
        return found


def require_same_examples(first: Sequence[Any], second: Sequence[Any], name: str, other: str) -> None:
    """Refuse systems that are not scored on the same examples in the same order.

    Args:
        first, second: what the examples of each are scored against.
        name, other: of the systems.

    Raises:
        UnifiedError: says how many each has, or which is the first that differs.
    """
    if len(first) != len(second):
        raise UnifiedError(
            f"{name}: {counted(len(first), 'example')}, but {other}: {len(second)}; systems are compared on the same "
            "examples in the same order"
        )
    for number, (own, others) in enumerate(zip(first, second, strict=True), 1):
        if own != others:
            raise UnifiedError(
                f"{name}: example {number} is scored against {shown(own)}, but in {other} against {shown(others)}; "
                "systems are compared on the same examples in the same order"
            )
