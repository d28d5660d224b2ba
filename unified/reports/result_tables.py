"""Tables of results: a line for each run, over its seeds, with published figures below.

Results belong to one run if they differ in the seed alone, or where models are what was repeated in the model alone
(:mod:`unified.reports.result_runs`). Runs that the user gave one name but that differ in anything else have a line
each, and the table says in what they differ.

The tables are Markdown in a terminal too, where rich could draw them: what is printed is what a page of results keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unified.errors import UnifiedError, first_few, nearest
from unified.reports.differences import described, differing, short_paths
from unified.reports.markdown import table_lines
from unified.reports.result_runs import Result, Run, file_of, runs_of
from unified.reports.results import measures_of
from unified.reports.seeds import SeedDifference, SeedScores, seed_scores

#: Folders that are named of a run with several trainings.
_FOLDERS = 3
_COPIES = "Several results of one run and {one} count as one, their mean."
_INTERVALS = (
    "In brackets the 95 % interval of the mean by Student's t over n {one}s: it says what other {one}s would give on "
    "the same items, and takes their scores for normally distributed."
)
_ITEM_INTERVALS = (
    'In brackets with "items" the 95 % interval of the score of one training by a bootstrap: it says what other items '
    "would give, and nothing about other {one}s."
)
_AHEAD = (
    "In brackets the 95 % interval of the difference by Welch's t over the {one}s of both: it says what other {one}s "
    "would give on the same items. Without brackets, one of the two has one {one}."
)

_OTHER_ITEMS = "Runs that were scored on other items are left out."


@dataclass(frozen=True)
class Table:
    """Results of one task on one split.

    Attributes:
        task, split: whose scores they are.
        columns: the measures.
        runs: a line for each.
        repeated: what the results of a run differ in, "seed" or "model".
        distinctions: in what each run differs from others.
        published: system -> measure -> figure of others.
    """

    task: str
    split: str
    columns: Sequence[str]
    runs: Sequence[Run]
    repeated: str
    distinctions: Sequence[str]
    published: Mapping[str, Mapping[str, float]]

    def scores(self, run: Run) -> dict[str, SeedScores | None]:
        """Scores of a run over its seeds or models, by measure; None where it has none."""
        return {column: seed_scores(run.scores(self.split, column)) for column in self.columns}

    def _item_intervals(self, run: Run) -> dict[str, tuple[float, float]]:
        """The 95 % intervals over items of the scores of a run that is a single training, by measure."""
        bounds = {column: run.item_interval(self.split, column) for column in self.columns}
        return {column: pair for column, pair in bounds.items() if pair is not None}

    def ahead_of(self, name: str) -> dict[int, dict[str, SeedDifference]]:
        """The differences of the other runs from one, by the place of each run and the measures that both have.

        Runs that were scored on other items are left out.

        Args:
            name: of the one run. Where the table has no run of this name, the result is empty.

        Raises:
            UnifiedError: several runs have the name.
        """
        named = [i for i, run in enumerate(self.runs) if run.name == name]
        if len(named) > 1:
            differ = "; ".join(self.distinctions[i] or "the model" for i in named)
            raise UnifiedError(
                f"{self.task}, {self.split}: {len(named)} runs are called {name!r} ({differ}); give the folder of one "
                "of them alone"
            )
        if not named:
            return {}
        base = self.runs[named[0]]
        theirs, items = self.scores(base), file_of(self.split)
        found = {}
        for i, run in enumerate(self.runs):
            if run is not base and run.identity.get(items) == base.identity.get(items):
                own = self.scores(run)
                both = ((column, own[column], theirs[column]) for column in self.columns)
                found[i] = {column: one.ahead_of(other) for column, one, other in both if one and other}
        return found

    def markdown(self, intervals: bool, ahead_of: str | None = None) -> str:
        """The table, with the intervals of scores and, below, the differences from one run if wanted.

        Args:
            intervals: write behind each mean its 95 % interval over seeds, or over models, and behind the score of a
                single training that over items.
            ahead_of: name of that run. Where the table has none of this name, nothing stands below.

        Raises:
            UnifiedError: several runs have the name.
        """
        further = {"folder": self._folders(), "differs in": self.distinctions}
        more = {heading: cells for heading, cells in further.items() if any(cells)}
        rows = []
        for i, run in enumerate(self.runs):
            counts = sorted(run.counts.items())
            named = (f"{one} ({count} times)" if count > 1 else str(one) for one, count in counts)
            over_items = self._item_intervals(run) if intervals else {}
            scores = (_cell(score, intervals, over_items.get(name)) for name, score in self.scores(run).items())
            rows.append([run.name, *(cells[i] for cells in more.values()), ", ".join(named), *scores])
        for system, figures in self.published.items():
            cells = (f"{figures[column]:.2f}" if column in figures else "" for column in self.columns)
            rows.append([f"{system} (published)", *("" for _ in more), "", *cells])
        lines = table_lines(["run", *more, f"{self.repeated}s", *self.columns], rows)
        notes = [self._note(_COPIES)] if any(max(run.counts.values()) > 1 for run in self.runs) else []
        notes += [self._note(_INTERVALS)] if intervals and any(len(run.counts) > 1 for run in self.runs) else []
        notes += [self._note(_ITEM_INTERVALS)] if intervals and any(map(self._item_intervals, self.runs)) else []
        beside = [] if ahead_of is None else self._differences(ahead_of)
        return "\n".join([f"### {self.task}, {self.split}", "", *lines, *(["", *notes] if notes else []), *beside])

    def _differences(self, name: str) -> list[str]:
        """Lines with a table of how far the other runs are ahead of one; none where there is nothing to compare."""
        ahead = self.ahead_of(name)
        if not ahead:
            return []
        apart = [self.distinctions[i] for i in ahead]
        rows = [
            [self.runs[i].name, *([distinction] if any(apart) else [])]
            + [_ahead_cell(found.get(column)) for column in self.columns]
            for (i, found), distinction in zip(ahead.items(), apart, strict=True)
        ]
        heads = [f"ahead of {name}", *(["differs in"] if any(apart) else []), *self.columns]
        left_out = [_OTHER_ITEMS] if len(ahead) < len(self.runs) - 1 else []
        return ["", *table_lines(heads, rows), "", self._note(_AHEAD), *left_out]

    def _note(self, text: str) -> str:
        return text.format(one=self.repeated)

    def _folders(self) -> list[str]:
        """Short names of the folders of each run's trainings; nothing where names tell the runs apart."""
        if len({run.name for run in self.runs}) == len(self.runs):
            return ["" for _ in self.runs]
        short = short_paths(dict.fromkeys(folder for run in self.runs for folder in run.folders))
        return [first_few([short[folder] for folder in run.folders], _FOLDERS) for run in self.runs]

    def described(self, ahead_of: str | None = None) -> dict[str, Any]:
        """The table for programs, with the differences from one run if wanted.

        Figures that one seed does not have are None.
        """
        ahead = {} if ahead_of is None else self.ahead_of(ahead_of)
        return {
            "task": self.task,
            "split": self.split,
            "runs": [
                {
                    "run": run.name,
                    "differs_in": distinction,
                    "models": sorted(set(run.models)),
                    "folders": run.folders,
                    "seeds": sorted({result["seed"] for result in run.results}),
                    "scores": {
                        name: {**_numbers(score), "item_interval": run.item_interval(self.split, name)}
                        for name, score in self.scores(run).items()
                        if score
                    },
                    **({} if ahead_of is None else {"ahead": _differences_of(ahead.get(i, {}))}),
                }
                for i, (run, distinction) in enumerate(zip(self.runs, self.distinctions, strict=True))
            ],
            "published": self.published,
        }


def result_tables(
    results: Sequence[Result],
    measures: Sequence[str] = (),
    every_difference: bool = False,
    models_as_seeds: bool = False,
) -> list[Table]:
    """One table for each task and split, a line for each run, means and deviations over seeds, then others'.

    Results of one run with the same seed, or the same model where models are the seeds, are no independent ones: their
    mean counts once, and a note says so.

    Args:
        measures: columns; by default those that every run of the task has
            (:func:`unified.reports.results.measures_of`).
        every_difference: say in what runs differ where their names do, too.
        models_as_seeds: take models of one size, in results that share all else, for repetitions of one pre-training.

    Raises:
        UnifiedError: no result has one of the measures.
    """
    known = dict.fromkeys(
        name
        for one in results
        for scores in one["scores"].values()
        for name, score in scores.items()
        if isinstance(score, int | float)
    )
    for measure in measures:
        if measure not in known:
            raise UnifiedError(f"no measure {measure!r}{nearest(measure, known)}; the results have {', '.join(known)}")
    found = []
    for task in dict.fromkeys(result["task"] for result in results):
        own = [result for result in results if result["task"] == task]
        for split in dict.fromkeys(split for result in own for split in result["scores"]):
            chosen = [result for result in own if split in result["scores"]]
            runs = runs_of(chosen, split, models_as_seeds)
            columns = list(measures) or _common([result["scores"][split] for result in chosen])
            distinctions = _distinctions(runs, split, every_difference)
            repeated = "model" if models_as_seeds else "seed"
            found.append(Table(task, split, columns, runs, repeated, distinctions, _published(chosen, split)))
    return found


def tables(
    results: Sequence[Result],
    measures: Sequence[str] = (),
    every_difference: bool = False,
    intervals: bool = False,
) -> str:
    """The tables of :func:`result_tables` as Markdown.

    Args:
        intervals: as for :meth:`Table.markdown`.
    """
    return "\n\n".join(table.markdown(intervals) for table in result_tables(results, measures, every_difference))


def require_run(tables: Iterable[Table], name: str) -> None:
    """Refuse the name of a run that no table has.

    Raises:
        UnifiedError: no table has it.
    """
    known = dict.fromkeys(run.name for table in tables for run in table.runs)
    if name not in known:
        raise UnifiedError(f"no run {name!r}{nearest(name, known)}; the results are of {', '.join(known)}")


def _distinctions(runs: Sequence[Run], split: str, every_difference: bool) -> list[str]:
    """Differences of each run from others of its name, or from all others, shown beside its name.

    Runs of a table that were scored on different items say so in any case.
    """
    identities = [run.identity for run in runs]
    everywhere = differing(identities)
    if every_difference:
        return [described(identity, everywhere) for identity in identities]
    items = [name for name in everywhere if name == file_of(split)]
    names = {
        name: dict.fromkeys([*differing([run.identity for run in runs if run.name == name]), *items])
        for name in dict.fromkeys(run.name for run in runs)
    }
    return [described(run.identity, names[run.name]) for run in runs]


def _published(results: Iterable[Result], split: str) -> dict[str, Mapping[str, float]]:
    """Figures of a split by system."""
    found: dict[str, Mapping[str, float]] = {}
    for result in results:
        found |= result.get("published", {}).get(split, {})
    return found


def _common(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Measures that all have, in the order of the first."""
    return [name for name in measures_of(scores[0]) if all(name in one for one in scores)]


def _cell(score: SeedScores | None, intervals: bool, over_items: tuple[float, float] | None) -> str:
    """A score; ``intervals`` asks for its interval over seeds, ``over_items`` is that of a single training."""
    if score is None:
        return ""
    if over_items is not None:
        return f"{score.mean:.2f} [{over_items[0]:.2f}, {over_items[1]:.2f}; items]"
    if score.deviation is None:
        return f"{score.mean:.2f}"
    text = f"{score.mean:.2f} ± {score.deviation:.2f}"
    if intervals and score.interval is not None:
        text += f" [{score.interval[0]:.2f}, {score.interval[1]:.2f}; n = {len(score.values)}]"
    return text


def _ahead_cell(difference: SeedDifference | None) -> str:
    if difference is None:
        return ""
    interval = difference.interval
    bounds = "" if interval is None else f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
    return f"{difference.mean:+.2f}{bounds}"


def _differences_of(ahead: Mapping[str, SeedDifference]) -> dict[str, Any]:
    return {name: {"mean": one.mean, "interval": one.interval} for name, one in ahead.items()}


def _numbers(score: SeedScores) -> dict[str, Any]:
    return {
        "mean": score.mean,
        "deviation": score.deviation,
        "interval": score.interval,
        "n": len(score.values),
    }
