"""The quickstart's report: one HTML file without scripts or external resources."""

from __future__ import annotations

import difflib
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from unified.reports.charts import Chart, svg
from unified.reports.pages import render

SHOWN_SAMPLES = 10
_DISTRIBUTIONS = "unified-lm torch fairseq-fixed fairseq numpy sentencepiece sacrebleu rouge-score".split()
_TEMPLATE = Path(__file__).parent / "report.html.j2"


@dataclass(frozen=True)
class Sample:
    """One test sentence and each system's answer (name -> text)."""

    source: str
    reference: str
    outputs: Mapping[str, str]


@dataclass(frozen=True)
class Metric:
    """A column of the table of scores: the key in a system's scores, its heading, digits after the point."""

    key: str
    heading: str
    digits: int = 1


METRICS = (
    Metric("exact_match", "exact sentences, %"),
    Metric("character_similarity", "character similarity, %", 2),
    Metric("bleu", "BLEU"),
    Metric("rouge1", "ROUGE-1"),
    Metric("rouge2", "ROUGE-2"),
    Metric("rougeL", "ROUGE-L"),
)


@dataclass(frozen=True)
class Task:
    """A generation task.

    Attributes:
        description: a sentence about it.
        scores: system -> scores; the first system is ours, the last one the rule to compare with.
        why: why the first metric is the one to read.
        drawn: which sentences the samples are, and how they were drawn.
        settings: name -> value of what the model and its training were.
    """

    title: str
    description: str
    scores: Mapping[str, Mapping[str, object]]
    why: str = ""
    samples: Sequence[Sample] = field(default_factory=tuple)
    drawn: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    metrics: Sequence[Metric] = METRICS

    @property
    def columns(self) -> list[Metric]:
        """The metrics that every system has."""
        return [metric for metric in self.metrics if all(metric.key in row for row in self.scores.values())]

    def best(self, metric: Metric) -> list[str]:
        """The systems whose printed score is the greatest."""
        printed = {name: float(shown(row[metric.key], metric)) for name, row in self.scores.items()}
        return [name for name, value in printed.items() if value == max(printed.values())]

    def summary(self) -> str:
        """Sentences about the table: ours and the rule in the first column, and who leads in the others."""
        if len(self.scores) < 2 or not self.columns:
            return ""
        first, *others = self.columns
        ours, *_, rule = self.scores
        gain = float(self.scores[ours][first.key]) - float(self.scores[rule][first.key])
        text = (
            f"In the first column ({first.heading}) the model {ours} has {shown(self.scores[ours][first.key], first)}, "
            f"which is {abs(gain):.{first.digits}f} {'more' if gain >= 0 else 'less'} than the {rule}."
        )
        led = [metric.heading.partition(",")[0] for metric in others if rule in self.best(metric)]
        return f"{text} The {rule} has the best score in: {', '.join(led)}." if led else text


def make_report(
    path: str | Path,
    *,
    title: str = "Quickstart",
    introduction: str = "",
    charts: Sequence[Chart] = (),
    masks: Mapping[str, str] | None = None,
    tasks: Sequence[Task] = (),
    commands: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> None:
    """Write the report to ``path``.

    Args:
        introduction: plain text, a paragraph per line.
        charts: learning curves.
        masks: caption -> picture as SVG text (``unified.masks.plot`` writes such files).
        tasks: scores and samples.
        commands: what was run, in order.
        environment: name -> value; see :func:`environment_facts`.

    Raises:
        ValueError: a picture of ``masks`` is not SVG, or holds a script.
        UnifiedError: the libraries of the extra ``plot`` are not installed.
    """
    page = render(
        _TEMPLATE,
        title=title,
        paragraphs=[line for line in introduction.splitlines() if line.strip()],
        tasks=tasks,
        charts=[(chart, svg(chart)) for chart in charts],
        masks={caption: _picture(caption, picture) for caption, picture in (masks or {}).items()},
        commands=commands,
        environment=environment or {},
        shown=shown,
        differences=differences,
    )
    unfinished = Path(f"{path}.part")
    unfinished.write_text(page, encoding="utf-8")
    unfinished.replace(path)


def environment_facts() -> dict[str, str]:
    """Versions and hardware that a reader needs to judge seconds and repeat scores."""
    facts = {
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": platform.processor() or platform.machine(),
        "cores": str(os.cpu_count()),
    }
    for name in _DISTRIBUTIONS:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return facts


def score_table(task: Task) -> str:
    """Scores as plain text for the terminal: a line per system, a column per metric that every system has."""
    rows = [[name, *(shown(row[m.key], m) for m in task.columns)] for name, row in task.scores.items()]
    header = ["system", *(metric.heading for metric in task.columns)]
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    lines = [
        [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        for line in [header, *rows]
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def shown(value: object, metric: Metric) -> str:
    """A score with the metric's digits."""
    return f"{float(value):.{metric.digits}f}"


def differences(output: str, reference: str) -> list[tuple[str, str]]:
    """Pieces of ``output`` in order, each with how it compares with the reference: "equal", "other" or "missing".

    A missing piece has the words of the reference that the output lacks there.
    """
    words, wanted = output.split(" "), reference.split(" ")
    matcher = difflib.SequenceMatcher(a=wanted, b=words, autojunk=False)
    pieces = []
    for operation, start, stop, first, last in matcher.get_opcodes():
        if operation == "delete":
            pieces.append((" ".join(wanted[start:stop]), "missing"))
        else:
            pieces.append((" ".join(words[first:last]), "equal" if operation == "equal" else "other"))
    return pieces


def _picture(caption: str, picture: str) -> str:
    """The ``<svg>`` element of a picture."""
    start = picture.find("<svg")
    if start < 0 or re.search(r"<script|\bon\w+\s*=|javascript:", picture, re.IGNORECASE):
        raise ValueError(f"mask picture {caption!r}: expected plain SVG text, got {picture[:60]!r}")
    return picture[start:]
