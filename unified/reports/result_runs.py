"""Runs of results: the results of one run differ in the seed alone.

Two models are never one, whatever they are called: a model is its contents, by their hash, or where it has none, all
that its results say of it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unified.reports.differences import Digest, canonical, flat, short_paths

Result = Mapping[str, Any]
#: Splits that decide which model is scored, on whatever split: what it learns from, and what chooses a checkpoint.
_DECIDING = ("train", "valid")
#: Option of fairseq-train that names the folder of a training.
_FOLDER = "--save-dir"


@dataclass(frozen=True)
class Run:
    """Results that differ in the seed alone.

    Attributes:
        name: given by the user.
        identity: what they have in common, as flat names and values.
        results: one for each seed, or several.
    """

    name: str
    identity: Mapping[str, Any]
    results: list[Result]

    def scores(self, split: str, measure: str) -> list[float]:
        """The score of each seed that has one, a number; the mean where there are several results of it."""
        found: dict[Any, list[float]] = {}
        for result in self.results:
            value = result["scores"][split].get(measure)
            if isinstance(value, int | float):
                found.setdefault(result["seed"], []).append(float(value))
        return [statistics.mean(values) for values in found.values()]

    @property
    def folders(self) -> list[str]:
        """The folders of the trainings, as far as their commands say."""
        commands = [[str(word) for word in result["command"]] for result in self.results]
        return [words[words.index(_FOLDER) + 1] for words in commands if _FOLDER in words[:-1]]

    @property
    def seeds(self) -> Counter[Any]:
        """Number of results of each seed."""
        return Counter(result["seed"] for result in self.results)


def runs_of(results: Sequence[Result], split: str) -> list[Run]:
    """The runs that results of one task are of, in the order of the first result of each.

    Args:
        split: which is scored; what further splits hold decides nothing.
    """
    models = _model_names(results)
    runs: dict[tuple[str, str, str], Run] = {}
    for result in results:
        model = _model_key(result)
        identity = _identity(result, split, models[model])
        run = runs.setdefault((result["run"], model, canonical(identity)), Run(result["run"], identity, []))
        run.results.append(result)
    return list(runs.values())


def _identity(result: Result, split: str, model: str) -> dict[str, Any]:
    """Settings that all results of a run share.

    The texts among its scores are signatures, which say how it was scored.
    """
    files = [file_of(name) for name in dict.fromkeys((*_DECIDING, split))]
    return {
        "model": model,
        **flat(result["settings"]),
        **{name: Digest(result["data"][name]) for name in files if name in result["data"]},
        **{name: value for name, value in result["scores"][split].items() if isinstance(value, str)},
        **flat(result["versions"]),
    }


def file_of(split: str) -> str:
    """The file with the items of a split."""
    return f"{split}.jsonl"


def _model_key(result: Result) -> str:
    """The contents of a model; where they have no hash, all that is said of it."""
    return result["model"]["sha256"] or canonical(result["model"])


def _model_names(results: Sequence[Result]) -> dict[str, str]:
    """A name for each model, which no other one has: the end of its path, with the beginning of its key if need be."""
    models = {_model_key(result): result["model"] for result in reversed(results)}
    ends = short_paths(dict.fromkeys(model["name"] for model in models.values()))
    names = {key: ends[model["name"]] for key, model in models.items()}
    count = Counter(names.values())
    return {key: name if count[name] == 1 else f"{name} ({_short(key, models)})" for key, name in names.items()}


def _short(key: str, others: Iterable[str]) -> str:
    """The beginning of a hash, as long as it takes to tell it from the others."""
    beginnings = (key[:size] for size in range(len(Digest(key).short), len(key)))
    others = [other for other in others if other != key]
    return next((one for one in beginnings if not any(other.startswith(one) for other in others)), key)
