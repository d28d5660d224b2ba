"""The two ways to find which sentences of a source an extractive summary should take, by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unified.tasks.datasets.summaries.combinations import best_combination
from unified.tasks.datasets.summaries.greedy import greedy_oracle

#: Takes the sentences of a source and of its summary; returns the numbers of the source's sentences that are taken, and
#: whether a limit ended the search before it was done.
Oracle = Callable[[Sequence[str], Sequence[str]], tuple[list[int], bool]]


def _greedy(sentences: Sequence[str], summary: Sequence[str]) -> tuple[list[int], bool]:
    return greedy_oracle(sentences, " ".join(summary)), False


#: Searches by their names; UniLM's comes first.
ORACLES: dict[str, Oracle] = {"combinations": best_combination, "greedy": _greedy}
DEFAULT_ORACLE = "combinations"
