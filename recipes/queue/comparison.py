"""Tables of objectives on one body: a row for each, and how far it is ahead of others on the same items."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import card_objectives
import objectives
from cells import MISSING, Lines, Rows, bounds, shown, table
from lines import Line
from objectives import Objective, System
from outcomes import difference

from unified.reports.markdown import table_lines
from unified.reports.seeds import SeedScores

#: An objective with the names of its pre-trainings.
Trained = tuple[Objective, Sequence[str]]
#: A system with what its entries are named by: the lines of ``NAME/minimal-pairs`` have its scores.
Compared = tuple[System, Sequence[str]]


def minutes(lines: Sequence[Line], seconds: str) -> str:
    """Minutes of the runs of each kind of processor or card, which do not compare with those of another kind."""
    of_kind: dict[str, list[float]] = {}
    for line in lines:
        of_kind.setdefault(hardware(line), []).append(line[seconds] / 60)
    return "; ".join(f"{shown(values)} {kind}" for kind, values in of_kind.items()) or MISSING


def hardware(line: Line) -> str:
    """The processor that a run took, or its card: ``Intel Xeon 2.50GHz``, ``NVIDIA H200``."""
    name = line["machine"].get("gpu", line["machine"]["processor"])
    return " ".join(re.sub(r"\(R\)|Processor|@", "", name).split())


def own_losses(figures: Sequence[Mapping[str, float]]) -> str:
    """Last validation losses of the pre-trainings of one objective, by name where it has several."""
    summed = ("valid_loss", "valid_best_loss")
    names = [name for name in figures[0] if name.endswith("_loss") and name not in summed] if figures else []
    losses = {name: shown([one[name] for one in figures], 2) for name in names}
    if len(losses) == 1:
        return "".join(losses.values())
    named = (f"{name.removeprefix('valid_').removesuffix('_loss')} {loss}" for name, loss in losses.items())
    return "; ".join(named) or MISSING


#: Columns of :func:`rows_of_models`.
HEADS = ("objective", "scoring", "minimal pairs", "bits a character", *objectives.MEASURES, "own loss", "minutes")


def rows_of_models(lines: Lines, compared: Sequence[Trained], tuned: Sequence[Objective], seconds: str) -> Rows:
    """A row for each objective and way of scoring it: minimal pairs, every fine-tuning, its own loss.

    Args:
        tuned: objectives that are fine-tuned.
        seconds: field of a line that gives the column of minutes.
    """
    rows = []
    for objective, names in compared:

        def values(rest: str, figure: str, names: Sequence[str] = names) -> list[float]:
            return [lines[name + rest]["figures"][figure] for name in names if name + rest in lines]

        trained = [lines[name] for name in names if name in lines]
        losses = own_losses([line["figures"] for line in trained])
        tasks = objectives.MEASURES.items() if objective in tuned else ()
        measured = [shown(values(f"/{task}", f"valid.{name}")) for task, name in tasks]
        for number, scoring in enumerate(objective.scorings):
            pairs = values(f"/{objectives.PAIRS}", f"{scoring}.accuracy")
            bits = shown(values("/perplexity", f"{scoring}.bits_per_character"), 2)
            more = measured if number == 0 and measured else [""] * len(objectives.MEASURES)
            last = [losses, minutes(trained, seconds)] if number == 0 else ["", ""]
            rows.append([objective.name, scoring, shown(pairs), bits, *more, *last])
    return rows


def rows_of_counts(lines: Lines, entry: str) -> Rows:
    """A row for each way in which counts score minimal pairs, which is all that they do."""
    found = [lines[entry]["figures"]] if entry in lines else []
    return [
        [objectives.COUNTS.name, scoring, shown([figures[f"{scoring}.accuracy"] for figures in found])]
        + [""] * (len(HEADS) - 3)
        for scoring in objectives.COUNTS.scorings
    ]


#: Models that the others are compared with on the same items, of minimal pairs each by its first scoring.
BESIDE = ("next_token", "bert", objectives.COUNTS.name, "untrained")
#: That model of them beside which fine-tunings are shown.
WITHOUT = "untrained"


def same_pairs(lines: Lines, compared: Sequence[Compared]) -> str:
    """A row for each system and way of scoring: how far it is ahead of each of :data:`BESIDE` on minimal pairs.

    Each system is the mean over its seeds; the interval is one over pairs. Only lines that keep outcomes are compared;
    the text is empty where there are no two.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for system, names in compared:
        own = [lines[name]["outcomes"] for one in names if (name := f"{one}/{objectives.PAIRS}") in lines]
        for scoring in system.scorings:
            if texts := [outcomes[scoring] for outcomes in own if scoring in outcomes]:
                found[system.name, scoring] = texts
    bases = [row for name in BESIDE if (row := next((one for one in found if one[0] == name), None))]
    if not bases or len(found) < 2:
        return ""

    def ahead(row: tuple[str, str], base: tuple[str, str]) -> str:
        return "" if row == base else ahead_by("pairs", "accuracy", found[row], found[base])

    heads = ["objective", "scoring", *(f"ahead of {name}" for name, _ in bases)]
    rows = [[*row, *(ahead(row, base) for base in bases)] for row in found]
    text = "\n".join(table_lines(heads, rows))
    return f"\n\nOn the same minimal pairs, in points of accuracy:\n\n{text}"


def ahead_by(kind: str, measure: str, first: Sequence[str], second: Sequence[str]) -> str:
    """The difference of two systems on the same items, and its interval."""
    above, interval = difference(kind, measure, first, second)
    return f"{above:+.1f} {bounds(interval)}"


def same_items(lines: Lines, compared: Sequence[Trained]) -> str:
    """A row for each objective: how far each fine-tuning is ahead of that of the model :data:`WITHOUT` pre-training.

    Only lines that keep outcomes are compared; the text is empty where there are no two of one task.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for objective, names in compared:
        for task in objectives.TASKS:
            own = [lines[name]["outcomes"] for one in names if (name := f"{one}/{task}") in lines]
            if texts := [outcomes[""] for outcomes in own if outcomes]:
                found.setdefault(objective.name, {})[task] = texts
    without = found.pop(WITHOUT, {})
    rows = [
        [
            name,
            *(
                ahead_by(objectives.OUTCOMES[task], measure, tuned[task], without[task])
                if task in tuned and task in without
                else ""
                for task, measure in objectives.MEASURES.items()
            ),
        ]
        for name, tuned in found.items()
        if tuned.keys() & without.keys()
    ]
    if not rows:
        return ""
    text = "\n".join(table_lines(["objective", *objectives.MEASURES], rows))
    return f"\n\nFine-tuned, on the same items, in points ahead of {WITHOUT}:\n\n{text}"


def over_seeds(lines: Lines, compared: Sequence[Trained]) -> str:
    """A row for each score of two or more seeds: how far its mean is ahead of those of the models of :data:`BESIDE`.

    The interval is one over seeds, by Welch's t. The text is empty where no two models have several seeds of one score.
    """
    found: list[tuple[str, str, str, SeedScores]] = []
    for objective, names in compared:
        scores = [(objectives.PAIRS, scoring, f"{scoring}.accuracy") for scoring in objective.scorings]
        scores += [(task, "", f"valid.{measure}") for task, measure in objectives.MEASURES.items()]
        for score, scoring, figure in scores:
            values = [lines[name]["figures"][figure] for one in names if (name := f"{one}/{score}") in lines]
            if len(values) > 1:
                found.append((objective.name, score, scoring, SeedScores(tuple(values))))
    bases: dict[tuple[str, str], SeedScores] = {}
    for name, score, _, own in found:
        bases.setdefault((name, score), own)  # of minimal pairs by its first scoring
    beside = [name for name in BESIDE if any(name == base for base, _ in bases)]

    def ahead(name: str, own: SeedScores, base: str, score: str) -> str:
        if name == base or (base, score) not in bases:
            return ""
        above = own.ahead_of(bases[base, score])
        return f"{above.mean:+.1f} {bounds(above.interval)}"

    rows = [
        [name, f"minimal pairs, {scoring}" if scoring else score, *(ahead(name, own, base, score) for base in beside)]
        for name, score, scoring, own in found
    ]
    rows = [row for row in rows if any(row[2:])]
    if not rows:
        return ""
    text = "\n".join(table_lines(["objective", "score", *(f"ahead of {name}" for name in beside)], rows))
    return f"\n\nOver seeds, where both models have two or more, in points:\n\n{text}"


def other_settings(lines: Lines) -> str:
    """A row for each setting of a fine-tuning: the scores of both models of it, and their difference on the same items.

    The text is empty where only the settings of all tasks have run.
    """
    rows = []
    for task, settings in objectives.SETTINGS.items():
        kind, measure = objectives.OUTCOMES[task], objectives.MEASURES[task]
        for setting in ("", *settings):
            names = (
                objectives.tuned(f"{objectives.TABLE}/{name}-{objectives.SEEDS[0]}", task, setting)
                for name in objectives.BY_SETTINGS
            )
            found = [lines.get(name) for name in names]
            scores = [MISSING if line is None else f"{line['figures'][f'valid.{measure}']:.1f}" for line in found]
            kept = [line["outcomes"].get("") for line in found if line is not None]
            both = len(kept) == len(found) and all(kept)
            ahead = ahead_by(kind, measure, *([text] for text in kept)) if both else MISSING
            rows.append([task, measure, setting or objectives.USUAL, *scores, ahead])
    if all(row[3:5] == [MISSING] * 2 for row in rows if row[2] in objectives.SETTINGS[row[0]]):
        return ""
    heads = ["task", "measure", f"learning rate ({objectives.USUAL} above)", *objectives.BY_SETTINGS, "difference"]
    text = "\n".join(table_lines(heads, rows))
    return f"\n\nFine-tuned with other settings, seed {objectives.SEEDS[0]}:\n\n{text}"


def objectives_table(lines: Lines) -> str:
    """The comparison on a CPU; minutes are those of one core. Below, differences on the same items and over seeds."""
    compared = [
        (objective, [f"{objectives.TABLE}/{objective.name}-{seed}" for seed in seeds])
        for objective, seeds in objectives.COMPARED
    ]
    tuned, floor = [objective for objective, _ in compared], objectives.counted()
    rows = rows_of_models(lines, compared, tuned, "processor_seconds") + rows_of_counts(lines, floor.name)
    scored = [*compared, (objectives.COUNTS, [floor.name.removesuffix(f"/{objectives.PAIRS}")])]
    below = (same_pairs(lines, scored), same_items(lines, compared), over_seeds(lines, compared), other_settings(lines))
    return table(HEADS, 2, rows) + "".join(below)


def card_table(lines: Lines) -> str:
    """The comparison at a card's size; minutes are those of the clock. Below, differences on the same items."""
    size = card_objectives.CARD
    compared = [(objective, [f"{size.table}/{objective.name}-{card_objectives.SEED}"]) for objective in size.objectives]
    rows = rows_of_models(lines, compared, objectives.SYSTEMS, "seconds")
    return table(HEADS, 2, rows) + same_pairs(lines, compared) + same_items(lines, compared)
