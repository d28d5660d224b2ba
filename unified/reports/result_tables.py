"""Tables of results: a line for each run, over its seeds, with published figures below.

Results belong to one run if they differ in the seed alone. Runs that the user gave one name but that differ in anything
else have a line each, and the table says in what they differ.

The tables are Markdown in a terminal too, where rich could draw them: what is printed is what a page of results keeps.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unified.reports.differences import Digest, canonical, described, differing, flat, short_paths

Result = Mapping[str, Any]
#: Splits that decide which model is scored, on whatever split: what it learns from, and what chooses a checkpoint.
_DECIDING = ("train", "valid")
_COPIES = "Several results of one run and seed count as one, their mean."


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
        """The score of each seed that has one; the mean where there are several results of it."""
        found: dict[Any, list[float]] = {}
        for result in self.results:
            value = result["scores"][split].get(measure)
            if value is not None:
                found.setdefault(result["seed"], []).append(float(value))
        return [statistics.mean(values) for values in found.values()]

    @property
    def seeds(self) -> Counter[Any]:
        """How many results each seed has."""
        return Counter(result["seed"] for result in self.results)


def tables(results: Sequence[Result], measures: Sequence[str] = (), every_difference: bool = False) -> str:
    """Markdown: one table for each task and split, a line for each run, means and deviations over seeds, then others'.

    Results of one run with the same seed are no independent ones: their mean counts once, and a note says so.

    Args:
        measures: columns; by default those that every run of the task has, counts and signatures left out.
        every_difference: say in what runs differ where their names do, too.
    """
    blocks = []
    for task in dict.fromkeys(result["task"] for result in results):
        own = [result for result in results if result["task"] == task]
        for split in dict.fromkeys(split for result in own for split in result["scores"]):
            chosen = [result for result in own if split in result["scores"]]
            blocks.append(_table(task, split, chosen, list(measures), every_difference))
    return "\n\n".join(blocks)


def runs_of(results: Sequence[Result], split: str) -> list[Run]:
    """The runs that results of one task are of, in the order of the first result of each.

    Args:
        split: which is scored; what further splits hold decides nothing.
    """
    models = _model_names(results)
    runs: dict[tuple[str, str], Run] = {}
    for result in results:
        identity = _identity(result, split, models[_model_key(result)])
        run = runs.setdefault((result["run"], canonical(identity)), Run(result["run"], identity, []))
        run.results.append(result)
    return list(runs.values())


def _identity(result: Result, split: str, model: str) -> dict[str, Any]:
    """What all results of a run have in common.

    The texts among its scores are signatures, which say how it was scored.
    """
    files = [_file(name) for name in dict.fromkeys((*_DECIDING, split))]
    return {
        "model": model,
        **flat(result["settings"]),
        **{name: Digest(result["data"][name]) for name in files if name in result["data"]},
        **{name: value for name, value in result["scores"][split].items() if isinstance(value, str)},
        **flat(result["versions"]),
    }


def _file(split: str) -> str:
    return f"{split}.jsonl"


def _model_key(result: Result) -> str:
    """The contents of a model; its name where it has none."""
    return result["model"]["sha256"] or f"named {result['model']['name']}"


def _model_names(results: Sequence[Result]) -> dict[str, str]:
    """A name for each model, which no other one has: the end of its path, with the beginning of its hash if need be."""
    models = {_model_key(result): result["model"] for result in reversed(results)}
    ends = short_paths(dict.fromkeys(model["name"] for model in models.values()))
    names = {key: ends[model["name"]] for key, model in models.items()}
    count = Counter(names.values())
    hashes = {key: Digest(model["sha256"] or "no hash").short for key, model in models.items()}
    return {key: name if count[name] == 1 else f"{name} ({hashes[key]})" for key, name in names.items()}


def _distinctions(runs: Sequence[Run], split: str, every_difference: bool) -> list[str]:
    """What to say of each run beside its name: in what it differs from others of this name, or from all others.

    Runs of a table that were scored on different items say so in any case.
    """
    identities = [run.identity for run in runs]
    everywhere = differing(identities)
    if every_difference:
        return [described(identity, everywhere) for identity in identities]
    items = [name for name in everywhere if name == _file(split)]
    names = {
        name: dict.fromkeys([*differing([run.identity for run in runs if run.name == name]), *items])
        for name in dict.fromkeys(run.name for run in runs)
    }
    return [described(run.identity, names[run.name]) for run in runs]


def _table(task: str, split: str, results: list[Result], measures: list[str], every_difference: bool) -> str:
    runs = runs_of(results, split)
    columns = measures or _common([result["scores"][split] for result in results])
    said = _distinctions(runs, split, every_difference)
    more = ["differs in"] if any(said) else []
    lines = [_line("run", *more, "seeds", *columns), "|---" * (2 + len(more) + len(columns)) + "|"]
    for run, distinction in zip(runs, said, strict=True):
        seeds = (f"{seed} ({count} times)" if count > 1 else str(seed) for seed, count in sorted(run.seeds.items()))
        cells = (_cell(run.scores(split, column)) for column in columns)
        lines.append(_line(run.name, *([distinction] if more else []), ", ".join(seeds), *cells))
    for system, figures in _published(results, split).items():
        cells = (_cell([figures[column]] if column in figures else []) for column in columns)
        lines.append(_line(f"{system} (published)", *("" for _ in more), "", *cells))
    notes = ["", _COPIES] if any(max(run.seeds.values()) > 1 for run in runs) else []
    return "\n".join([f"### {task}, {split}", "", *lines, *notes])


def _published(results: Iterable[Result], split: str) -> dict[str, Mapping[str, float]]:
    """Figures of a split by system."""
    found: dict[str, Mapping[str, float]] = {}
    for result in results:
        found |= result.get("published", {}).get(split, {})
    return found


def _line(*cells: str) -> str:
    """A line of a table; a bar within a cell would end it."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _common(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Measures that all have: floats, in the order of the first."""
    first = [name for name, value in scores[0].items() if isinstance(value, float)]
    return [name for name in first if all(name in one for one in scores)]


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
