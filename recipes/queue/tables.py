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
from cells import MISSING, Lines, bounds, shown, table  # noqa: E402
from comparison import card_table, objectives_table  # noqa: E402
from entries import Entry, Plan  # noqa: E402
from lines import Line, latest, read_lines  # noqa: E402

from unified.arguments import counted  # noqa: E402
from unified.errors import UnifiedError  # noqa: E402
from unified.reports.markdown import table_lines  # noqa: E402
from unified.reports.seeds import SeedScores  # noqa: E402

PAGE = ROOT / "docs" / "background" / "results.md"


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


#: Columns of the table of made questions: measure -> head. Unanswerable questions have no words: F1 is exact match.
ANSWERED = {
    "exact": "exact match",
    "f1": "F1",
    "HasAns_f1": "F1 of the answerable",
    "NoAns_f1": "of the unanswerable",
}


def questions_table(lines: Lines) -> str:
    """A row for each way of fine-tuning; below, differences of single seeds on the same questions."""
    rows = []
    found = [lines[name] for seed in questions.SEEDS if (name := f"questions/medium-{seed}") in lines]
    for run, name in questions.NAMES.items():
        scores = ([line["figures"][f"{run}.valid.{one}"] for line in found] for one in ANSWERED)
        rows.append([name, *map(shown, scores)])
    return table(["fine-tuned on", *ANSWERED.values()], 1, rows) + differences_of_questions(lines)


def differences_of_questions(lines: Lines) -> str:
    """Rows for each two ways that are compared, and a cell for each seed; nothing where none has been compared."""
    names = [f"questions/medium-{seed}/compared" for seed in questions.SEEDS]
    found = [lines[name]["figures"] if name in lines else None for name in names]
    if not any(found):
        return ""
    rows = []
    for one, other in questions.COMPARED:
        own = f"{one}-less-{other}.against"
        for measure, head in questions.DIFFERENCES.items():
            cells = (
                f"{figures[f'{own}.differences.{measure}']:+.1f} {bounds(figures[f'{own}.intervals.{measure}'])}"
                if figures
                else MISSING
                for figures in found
            )
            rows.append([f"{questions.NAMES[one]}, less {questions.NAMES[other]}", head, *cells])
    heads = ["difference", "F1 of", *(f"seed {seed}" for seed in questions.SEEDS)]
    text = "\n".join(table_lines(heads, rows))
    return f"\n\nOn the same questions, in points of F1:\n\n{text}"


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


def section(name: str, results: Path) -> str:
    """Markdown of a table of :data:`SECTIONS` and of how it was made."""
    found = [line for read in READS.get(name, (name,)) for line in read_lines(results, read)]
    plans = [Plan(plan.ENTRIES), Plan(card_plan.ENTRIES)]
    lines = latest(found, {**plans[0].recipes, **plans[1].recipes})
    mixed = of_earlier_runs(found, lines, {**plans[0].entries, **plans[1].entries})
    return f"{SECTIONS[name](lines)}{mixed}\n\n{made_with(list(lines.values()))}"


def with_sections(page: str, results: Path) -> str:
    """The page with the present table between the two marks of every section.

    Raises:
        UnifiedError: the page has no place for a table.
    """
    for name in SECTIONS:
        marks = re.compile(rf"(<!-- lines of {name} -->\n)(.*?)(<!-- end of lines -->)", re.DOTALL)
        if len(marks.findall(page)) != 1:
            raise UnifiedError(f"the page must have one <!-- lines of {name} --> and its <!-- end of lines -->")
        text = section(name, results)
        page = marks.sub(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[3]}", page)
    return page


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the tables, and leave the page as it is")
    parser.add_argument("--results", type=Path, default=HERE / "results", metavar="FOLDER", help="files of lines")
    parser.add_argument("--page", type=Path, default=PAGE, help="page to write (default: docs/background/results.md)")
    arguments = parser.parse_args(words)
    if arguments.print:
        print("\n\n".join(section(name, arguments.results) for name in SECTIONS))
        return
    text = with_sections(arguments.page.read_text(encoding="utf-8"), arguments.results)
    arguments.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"tables: error: {error}")
