"""The quickstart's report: one HTML file without scripts or external resources."""

from __future__ import annotations

import difflib
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from unified.reports.charts import Chart, svg

SHOWN_SAMPLES = 10
_DISTRIBUTIONS = "unified-lm torch fairseq-fixed fairseq numpy sentencepiece sacrebleu rouge-score".split()


@dataclass(frozen=True)
class Sample:
    """One test sentence and what each system made of it (name -> text)."""

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
    """A generation task: a heading, a sentence about it, scores by system (the first row is ours), and samples."""

    title: str
    description: str
    scores: Mapping[str, Mapping[str, object]]
    samples: Sequence[Sample] = field(default_factory=tuple)
    metrics: Sequence[Metric] = METRICS


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
        tasks: scores and samples; the first :data:`SHOWN_SAMPLES` samples of each are shown.
        commands: what was run, in order.
        environment: name -> value; see :func:`environment_facts`.

    Raises:
        ValueError: a picture of ``masks`` is not SVG, or holds a script.
    """
    sections = [
        *(_task(task) for task in tasks),
        _section("Learning curves", "".join(_chart(chart) for chart in charts)),
        _section("Masks", _masks(masks or {})),
        _section("Commands", _commands(commands)),
        _section("Environment", _pairs(environment or {})),
    ]
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in introduction.splitlines() if line.strip())
    page = _PAGE.format(title=escape(title), style=_STYLE, introduction=paragraphs, sections="".join(sections))
    unfinished = Path(f"{path}.part")
    unfinished.write_text(page, encoding="utf-8")
    unfinished.replace(path)


def environment_facts() -> dict[str, str]:
    """Versions and hardware that a reader needs to judge seconds and repeat scores."""
    facts = {
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": str(os.cpu_count()),
    }
    for name in _DISTRIBUTIONS:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return facts


def score_table(scores: Mapping[str, Mapping[str, object]], metrics: Sequence[Metric] = METRICS) -> str:
    """Scores as plain text for the terminal: a line per system, a column per metric that every system has."""
    columns = [metric for metric in metrics if all(metric.key in row for row in scores.values())]
    rows = [[name, *(_number(row[m.key], m) for m in columns)] for name, row in scores.items()]
    header = ["system", *(metric.heading for metric in columns)]
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    lines = [
        [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        for line in [header, *rows]
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _chart(chart: Chart) -> str:
    return f"<figure><figcaption>{escape(chart.title)}</figcaption>{svg(chart)}</figure>"


def _task(task: Task) -> str:
    content = f"<p>{escape(task.description)}</p>" + _scores(task.scores, task.metrics)
    if task.samples:
        content += "<h3>Samples from the test part</h3>" + "".join(map(_sample, task.samples[:SHOWN_SAMPLES]))
    return _section(task.title, content)


def _scores(scores: Mapping[str, Mapping[str, object]], metrics: Sequence[Metric]) -> str:
    if not scores:
        return ""
    columns = [metric for metric in metrics if all(metric.key in row for row in scores.values())]
    best = {metric.key: max(float(row[metric.key]) for row in scores.values()) for metric in columns}
    head = "".join(f"<th>{escape(metric.heading)}</th>" for metric in columns)
    body = ""
    for name, row in scores.items():
        cells = ""
        for metric in columns:
            strongest = ' class="best"' if float(row[metric.key]) == best[metric.key] else ""
            cells += f"<td{strongest}>{_number(row[metric.key], metric)}</td>"
        body += f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
    signatures = {
        str(row[key]) for row in scores.values() for key in ("bleu_signature", "rouge_signature") if key in row
    }
    note = "".join(f"<li><code>{escape(signature)}</code></li>" for signature in sorted(signatures))
    notes = f'<ul class="signatures">{note}</ul>' if note else ""
    return f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}'


def _number(value: object, metric: Metric) -> str:
    return f"{float(value):.{metric.digits}f}"


def _sample(sample: Sample) -> str:
    rows = [("source", escape(sample.source), ""), ("reference", escape(sample.reference), "")]
    for name, output in sample.outputs.items():
        right = output == sample.reference
        rows.append((name, _marked(output, sample.reference), "right" if right else "wrong"))
    cells = "".join(
        f'<tr class="{state}"><th scope="row">{escape(name)}</th><td>{text}</td></tr>' for name, text, state in rows
    )
    return f'<table class="sample"><tbody>{cells}</tbody></table>'


def _marked(output: str, reference: str) -> str:
    """``output`` with the words marked that the reference has not in their place."""
    words, wanted = output.split(" "), reference.split(" ")
    matcher = difflib.SequenceMatcher(a=wanted, b=words, autojunk=False)
    parts = []
    for operation, start, stop, first, last in matcher.get_opcodes():
        text = escape(" ".join(words[first:last]))
        if operation == "equal":
            parts.append(text)
        elif operation == "delete":
            parts.append(f'<mark title="missing: {escape(" ".join(wanted[start:stop]))}">&#8203;&#9651;</mark>')
        else:
            parts.append(f"<mark>{text}</mark>")
    return " ".join(parts)


def _masks(masks: Mapping[str, str]) -> str:
    figures = ""
    for caption, picture in masks.items():
        start = picture.find("<svg")
        if start < 0 or re.search(r"<script|\bon\w+\s*=|javascript:", picture, re.IGNORECASE):
            raise ValueError(f"mask picture {caption!r}: expected plain SVG text, got {picture[:60]!r}")
        figures += f"<figure>{picture[start:]}<figcaption>{escape(caption)}</figcaption></figure>"
    return f'<div class="masks">{figures}</div>' if figures else ""


def _commands(commands: Sequence[str]) -> str:
    return "".join(f"<pre>{escape(command)}</pre>" for command in commands)


def _pairs(pairs: Mapping[str, str]) -> str:
    rows = "".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(str(v))}</td></tr>' for k, v in pairs.items())
    return f'<table class="facts"><tbody>{rows}</tbody></table>' if rows else ""


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{introduction}
{sections}
</main>
</body>
</html>
"""

_STYLE = """
body { margin: 0; background: #f6f7f9; color: #1f2530; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
section { background: #fff; border: 1px solid #e3e6eb; border-radius: 8px; margin: 1.5rem 0;
  padding: 0.5rem 1.5rem 1.5rem; }
h1 { font-size: 1.9rem; margin: 0 0 0.5rem; }
h2 { font-size: 1.25rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.5rem; }
figure { margin: 1rem 0; }
figcaption { font-weight: 600; font-size: 0.95rem; margin: 0.3rem 0; }
svg { width: 100%; height: auto; }
.masks { display: flex; flex-wrap: wrap; gap: 1.5rem; }
.masks figure { margin: 0; width: 13rem; }
.masks figcaption { text-align: center; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.35rem 0.8rem; text-align: right; border-bottom: 1px solid #e9ecf0; }
th { font-weight: 600; font-size: 0.9rem; }
th[scope=row] { text-align: left; white-space: nowrap; }
td { font-variant-numeric: tabular-nums; }
td.best { font-weight: 700; color: #17663a; }
.signatures { color: #667085; font-size: 0.8rem; padding-left: 1.1rem; overflow-wrap: anywhere; }
.sample { width: 100%; margin: 0.8rem 0; background: #fafbfc; border: 1px solid #e9ecf0; table-layout: fixed; }
.sample th { width: 11rem; color: #667085; font-weight: 500; vertical-align: top; white-space: normal !important; }
.sample td { text-align: left; overflow-wrap: anywhere; }
.sample tr.right td::after { content: " \\2713"; color: #17663a; font-weight: 700; }
mark { background: #ffe1d6; color: #9c2f10; border-radius: 3px; padding: 0 2px; }
.facts td { text-align: left; }
pre { background: #f1f3f6; border-radius: 6px; padding: 0.6rem 0.8rem; font-size: 0.82rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.empty { color: #667085; }
"""
