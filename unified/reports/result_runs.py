"""Runs of results: the results of one run differ in the seed alone.

Two models are never one, whatever they are called: a model is its contents, by their hash, or where it has none, all
that its results say of it. Where models are what was repeated, pre-trainings with several seeds, the results of one run
differ in the model alone.
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
    """Results that differ in the seed alone, or in the model alone.

    Attributes:
        name: given by the user.
        identity: what they have in common, as flat names and values.
        results: one for each repetition, or several.
        repetitions: the seed of each result, or its model's name.
        models: the model's name of each result.
    """

    name: str
    identity: Mapping[str, Any]
    results: list[Result]
    repetitions: list[int | str]
    models: list[str]

    def scores(self, split: str, measure: str) -> list[float]:
        """The score of each repetition that has one, a number; the mean where there are several results of it."""
        found: dict[Any, list[float]] = {}
        for result, repetition in zip(self.results, self.repetitions, strict=True):
            value = result["scores"][split].get(measure)
            if isinstance(value, int | float):
                found.setdefault(repetition, []).append(float(value))
        return [statistics.mean(values) for values in found.values()]

    def item_interval(self, split: str, measure: str) -> tuple[float, float] | None:
        """The 95 % interval over items of a single result's score; None where there are several, or it has none."""
        if len(self.results) > 1:
            return None
        bounds = self.results[0].get("intervals", {}).get(split, {}).get(measure)
        return None if bounds is None else (bounds[0], bounds[1])

    @property
    def folders(self) -> list[str]:
        """The folders of the trainings, as far as their commands say."""
        commands = [[str(word) for word in result["command"]] for result in self.results]
        return [words[words.index(_FOLDER) + 1] for words in commands if _FOLDER in words[:-1]]

    @property
    def counts(self) -> Counter[int | str]:
        """Number of results of each repetition."""
        return Counter(self.repetitions)


def runs_of(results: Sequence[Result], split: str, models_as_seeds: bool = False) -> list[Run]:
    """The runs that results of one task are of, in the order of the first result of each.

    Args:
        split: which is scored; what further splits hold decides nothing.
        models_as_seeds: take models of one size for repetitions of one pre-training, and the results of each, of
            whatever seeds, for one.
    """
    models = _model_names(results)
    runs: dict[tuple[str, ...], Run] = {}
    for result in results:
        key = _model_key(result)
        name = models[key]
        identity = _identity(result, split, _size(result) if models_as_seeds else {"model": name})
        own = (result["run"], canonical(identity), *(() if models_as_seeds else (key,)))
        run = runs.setdefault(own, Run(result["run"], identity, [], [], []))
        run.results.append(result)
        run.repetitions.append(name if models_as_seeds else result["seed"])
        run.models.append(name)
    return list(runs.values())


def _size(result: Result) -> dict[str, Any]:
    """All that a result says of its model but its name and contents."""
    return {f"model's {name}": value for name, value in result["model"].items() if name not in ("name", "sha256")}


def _identity(result: Result, split: str, model: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that all results of a run share.

    The texts among its scores are signatures, which say how it was scored.
    """
    files = [file_of(name) for name in dict.fromkeys((*_DECIDING, split))]
    return {
        **model,
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
