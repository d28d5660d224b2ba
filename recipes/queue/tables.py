"""Tables of the lines of results, and the sections of docs/background/results.md that hold them.

    python recipes/queue/tables.py            # write the sections anew
    python recipes/queue/tables.py --print    # print them alone

What has no line is named: a row without a figure in a sentence below its table, a figure that its row lacks as missing
in its cell. Lines of an earlier recipe than the plan's are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

import card_objectives  # noqa: E402
import card_plan  # noqa: E402
import generation  # noqa: E402
import objectives  # noqa: E402
import parity  # noqa: E402
import plan  # noqa: E402
import published  # noqa: E402
import questions  # noqa: E402
from entries import Entry, Plan  # noqa: E402
from lines import Line, latest, read_lines  # noqa: E402
from objectives import Objective, System  # noqa: E402
from outcomes import difference  # noqa: E402

from unified.arguments import counted  # noqa: E402
from unified.errors import UnifiedError  # noqa: E402
from unified.reports.markdown import table_lines  # noqa: E402
from unified.reports.seeds import SeedScores, seed_scores  # noqa: E402

PAGE = ROOT / "docs" / "background" / "results.md"
MISSING = "missing"
Lines = Mapping[str, Line]
Rows = list[list[str]]
#: An objective with the names of its pre-trainings.
Trained = tuple[Objective, Sequence[str]]
#: A system with what its entries are named by: the lines of ``NAME/minimal-pairs`` have its scores.
Compared = tuple[System, Sequence[str]]


def shown(values: Sequence[float], digits: int = 1) -> str:
    """Mean, deviation and number of the scores of several seeds."""
    found = seed_scores(values)
    if found is None:
        return MISSING
    spread = "" if found.deviation is None else f" ± {found.deviation:.{digits}f}"
    return f"{found.mean:.{digits}f}{spread} ({len(values)})"


def bounds(interval: Sequence[float]) -> str:
    """The interval of a difference."""
    low, high = interval
    return f"[{low:+.1f}, {high:+.1f}]"


def table(heads: Sequence[str], titles: int, rows: Sequence[Sequence[str]]) -> str:
    """The rows that have a figure, and a sentence that names the others.

    Args:
        heads: of the columns.
        titles: how many columns, from the first on, say what a row is and hold no figure. Rows of one first title
            belong together; where none of them has a figure, the sentence names the title alone.
        rows: cells of each row; a figure that no line gives is MISSING, one that the row never has is empty.
    """
    measured = [row for row in rows if set(row[titles:]) - {"", MISSING}]
    parts = []
    if measured:
        parts.append("\n".join(table_lines(heads, measured)))
    begun = {row[0] for row in measured}
    unmeasured: dict[str, list[str]] = {}
    for row in rows:
        if row not in measured:
            unmeasured.setdefault(row[0], []).extend(row[1:titles] if row[0] in begun else ())
    if unmeasured:
        named = (f"{first} ({', '.join(others)})" if others else first for first, others in unmeasured.items())
        parts.append(f"Without a line: {'; '.join(named)}.")
    return "\n\n".join(parts)


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


def parity_table(lines: Lines) -> str:
    """A row for each task: both means with their deviations, and where all seeds have run their difference.

    Its two intervals are about other seeds on the same items, and about other items with the same seeds.
    """
    rows = []
    for task in parity.TASKS:
        measure = parity.MEASURES[task]
        found = [lines[name] for seed in parity.SEEDS if (name := f"parity/{task}-{seed}") in lines]
        ours, theirs = (
            [line["figures"][f"{run}.valid.{measure}"] for line in found] for run in ("ours", "transformers")
        )
        cells = [""] * 3
        if len(found) == len(parity.SEEDS):
            ahead = SeedScores(tuple(ours)).ahead_of(SeedScores(tuple(theirs)))
            compared = lines.get(f"parity/{task}/compared")
            over_items = MISSING if compared is None else bounds(compared["figures"][f"against.intervals.{measure}"])
            cells = [f"{ahead.mean:+.1f}", bounds(ahead.interval), over_items]
        rows.append([task, measure, shown(ours), shown(theirs), *cells])
    heads = ["task", "measure", "ours", "transformers", "difference", "over seeds", "over items"]
    return table(heads, 2, rows)


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
    """The comparison on a CPU; minutes are those of one core. Below, differences on the same items."""
    compared = [
        (objective, [f"{objectives.TABLE}/{objective.name}-{seed}" for seed in seeds])
        for objective, seeds in objectives.COMPARED
    ]
    tuned, floor = [objective for objective, _ in compared], objectives.counted()
    rows = rows_of_models(lines, compared, tuned, "processor_seconds") + rows_of_counts(lines, floor.name)
    scored = [*compared, (objectives.COUNTS, [floor.name.removesuffix(f"/{objectives.PAIRS}")])]
    return table(HEADS, 2, rows) + same_pairs(lines, scored) + same_items(lines, compared) + other_settings(lines)


def card_table(lines: Lines) -> str:
    """The comparison at a card's size; minutes are those of the clock. Below, differences on the same items."""
    size = card_objectives.CARD
    compared = [(objective, [f"{size.table}/{objective.name}-{card_objectives.SEED}"]) for objective in size.objectives]
    rows = rows_of_models(lines, compared, objectives.SYSTEMS, "seconds")
    return table(HEADS, 2, rows) + same_pairs(lines, compared) + same_items(lines, compared)


#: Columns of the table of made questions: measure -> head. Unanswerable questions have no words: F1 is exact match.
ANSWERED = {
    "exact": "exact match",
    "f1": "F1",
    "HasAns_f1": "F1 of the answerable",
    "NoAns_f1": "of the unanswerable",
}


def questions_table(lines: Lines) -> str:
    """A row for each way of fine-tuning."""
    rows = []
    found = [lines[name] for seed in questions.SEEDS if (name := f"questions/medium-{seed}") in lines]
    for run, name in questions.NAMES.items():
        scores = ([line["figures"][f"{run}.valid.{one}"] for line in found] for one in ANSWERED)
        rows.append([name, *map(shown, scores)])
    return table(["fine-tuned on", *ANSWERED.values()], 1, rows)


#: Columns of the table of written texts: measure -> head.
WRITTEN = {
    "bleu4": "BLEU-4",
    "meteor": "METEOR",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "repeated_bigrams": "repeated bigrams, %",
    "source_words": "words of the source, %",
}


def generation_table(lines: Lines) -> str:
    """A row for each task and system; a cell is empty where the task is not scored by the measure."""
    heads = ["task", "written by", *WRITTEN.values()]
    rows = []
    for row in generation.rows():
        found = [lines[name]["figures"] for name in row.lines if name in lines]
        cells = {measure: written_cell(row, measure, found) for measure in row.measures}
        rows.append([row.task, row.system, *(cells.get(measure, "") for measure in WRITTEN)])
    return table(heads, 2, rows)


def written_cell(row: generation.Row, measure: str, found: Sequence[Mapping[str, Any]]) -> str:
    """The measure over seeds, or the difference of one seed with its interval over items."""
    if not row.against:
        return shown([figures[f"{row.prefix}.{measure}"] for figures in found])
    if not found:
        return MISSING
    (figures,) = found
    own = f"{row.prefix}.against"
    return f"{figures[f'{own}.differences.{measure}']:+.1f} {bounds(figures[f'{own}.intervals.{measure}'])}"


def published_table(lines: Lines) -> str:
    """A row for each task with published figures: theirs, ours, and what separates them; below, where they stand."""
    rows = []
    for task, (figures, ours) in published.rows().items():
        cells = [task, published.systems(figures), "", published.NO_FIGURE]
        if ours is not None:
            found = [lines[name]["figures"] for name in ours.lines if name in lines]
            scores = {
                measure: [one[key] for one in found if (key := f"{ours.prefix}.{measure}") in one]
                for measure in published.measures(figures)
            }
            measured = (f"{measure} {shown(values)}" for measure, values in scores.items() if values)
            cells[2:] = [", ".join(measured) or MISSING, ours.separates]
        rows.append(cells)
    sources = (f"- {', '.join(tasks)}: {source}." for source, tasks in published.sources().items())
    lines = table_lines(["task", "published", "ours", "what separates them"], rows)
    return "\n".join((*lines, "", "Where settings and figures are published:", "", *sources))


def described(machine: Mapping[str, Any]) -> str:
    """A machine of a line: its GPU, if it has one, its processor and the threads of each run."""
    gpu = [machine["gpu"]] if "gpu" in machine else []
    return ", ".join([*gpu, machine["processor"], f"threads {machine['threads']}"])


def made_with(lines: Sequence[Line]) -> str:
    """A sentence that says when and on what the lines were made, and how many of them were repeated."""
    if not lines:
        return "No run has ended yet."
    dates = sorted({line["date"] for line in lines})
    machines = sorted({described(line["machine"]) for line in lines})
    torch = sorted({line["versions"]["torch"] for line in lines})
    commits = sorted({commit[:9] + commit[40:] for line in lines for commit in line["commits"]})
    return (
        f"{counted(len(lines), 'line')} of {' to '.join(dict.fromkeys((dates[0], dates[-1])))}; {'; '.join(machines)}; "
        f"torch {', '.join(torch)}; commits {', '.join(commits)}."
    )


#: Table of lines -> what renders it.
SECTIONS: dict[str, Callable[[Lines], str]] = {
    objectives.TABLE: objectives_table,
    card_objectives.CARD.table: card_table,
    parity.TABLE: parity_table,
    generation.TABLE: generation_table,
    questions.TABLE: questions_table,
    published.TABLE: published_table,
}
#: Tables whose lines a section reads, where they are not its own alone.
READS: dict[str, tuple[str, ...]] = {published.TABLE: published.READS}


def of_earlier_runs(found: Sequence[Line], lines: Lines, entries: Mapping[str, Entry]) -> str:
    """A sentence that names lines whose figures are of an earlier run, which gave others when it was repeated.

    Args:
        found: all lines, in the order in which they were added.
        lines: those that tables show.
        entries: of the plans, by name.
    """
    place = {id(line): number for number, line in enumerate(found)}
    named: dict[str, list[str]] = {}
    for name, line in lines.items():
        for need in entries[name].needs:
            runs = [one for one in found if one["name"] == need and one["recipe"] == lines.get(need, line)["recipe"]]
            before = [one for one in runs if place[id(one)] < place[id(line)]]
            if before and before[-1]["figures"] != runs[-1]["figures"]:
                named.setdefault(need, []).append(name.removeprefix(f"{need}/"))
    if not named:
        return ""
    texts = "; ".join(f"{need} ({', '.join(names)})" for need, names in named.items())
    cells = "These cells are of an earlier run of what stands first, with the same seed"
    return f"\n\n{cells}; it gave other figures when it was repeated: {texts}."


def section(table: str, results: Path) -> str:
    """Markdown of a table and of how it was made."""
    found = [line for read in READS.get(table, (table,)) for line in read_lines(results, read)]
    plans = [Plan(plan.ENTRIES), Plan(card_plan.ENTRIES)]
    lines = latest(found, {**plans[0].recipes, **plans[1].recipes})
    mixed = of_earlier_runs(found, lines, {**plans[0].entries, **plans[1].entries})
    return f"{SECTIONS[table](lines)}{mixed}\n\n{made_with(list(lines.values()))}"


def with_sections(page: str, results: Path) -> str:
    """The page with the present table between the two marks of every section.

    Raises:
        UnifiedError: the page has no place for a table.
    """
    for table in SECTIONS:
        marks = re.compile(rf"(<!-- lines of {table} -->\n)(.*?)(<!-- end of lines -->)", re.DOTALL)
        if len(marks.findall(page)) != 1:
            raise UnifiedError(f"the page must have one <!-- lines of {table} --> and its <!-- end of lines -->")
        text = section(table, results)
        page = marks.sub(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[3]}", page)
    return page


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the tables, and leave the page as it is")
    parser.add_argument("--results", type=Path, default=HERE / "results", metavar="FOLDER", help="files of lines")
    parser.add_argument("--page", type=Path, default=PAGE, help="page to write (default: docs/background/results.md)")
    arguments = parser.parse_args(words)
    if arguments.print:
        print("\n\n".join(section(table, arguments.results) for table in SECTIONS))
        return
    text = with_sections(arguments.page.read_text(encoding="utf-8"), arguments.results)
    arguments.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"tables: error: {error}")
