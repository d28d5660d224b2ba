"""One file of results for each run, and tables of many, with published figures beside them."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError

FILE_NAME = "results.json"
PACKAGES = "unified torch fairseq-fixed tokenizers transformers sentencepiece sacrebleu rouge-score".split()
#: What every results file says.
_FIELDS = ("task", "run", "scores", "seed", "command", "data", "versions", "date")


def versions() -> dict[str, str]:
    """Of Python and the packages that decide figures, as far as they are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_result(
    folder: Path,
    *,
    task: str,
    run: str,
    scores: Mapping[str, Mapping[str, Any]],
    seed: int,
    command: list[str],
    data: Mapping[str, str],
    published: Mapping[str, Mapping[str, Mapping[str, float]]],
    **more: Any,
) -> Path:
    """Write ``results.json`` into ``folder``, whole or not at all.

    Args:
        task: what was learnt.
        run: name of the system, under which runs of several seeds belong together.
        scores: split -> measure -> score, signatures included.
        seed, command: what was run.
        data: file -> SHA-256.
        published: split -> system -> measure -> figure of others.
        more: anything else worth keeping.
    """
    content = {
        "task": task,
        "run": run,
        "scores": scores,
        "seed": seed,
        "command": command,
        "data": data,
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "published": published,
        **more,
    }
    path = folder / FILE_NAME
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)
    return path


def read_results(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """The results files that ``paths`` are, or hold at any depth.

    Raises:
        UnifiedError: there is none, or a file is something else.
    """
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.rglob(FILE_NAME)) if path.is_dir() else [path]
    if not files:
        raise UnifiedError(f"no {FILE_NAME} in {', '.join(map(str, paths))}; `unified finetune` writes them")
    return [_read(path) for path in files]


def tables(results: list[dict[str, Any]], measures: Iterable[str] = ()) -> str:
    """Markdown: one table for each task and split, a row for each run, means and deviations over seeds, then others'.

    Results of one run with the same seed are no independent ones: their mean counts once, and a note says so.

    Args:
        measures: columns; by default those that every run of the task has, counts and signatures left out.
    """
    blocks = []
    tasks = dict.fromkeys(result["task"] for result in results)
    for task in tasks:
        runs = [result for result in results if result["task"] == task]
        for split in dict.fromkeys(split for result in runs for split in result["scores"]):
            blocks.append(_table(task, split, [run for run in runs if split in run["scores"]], list(measures)))
    return "\n\n".join(blocks)


def _table(task: str, split: str, runs: list[dict[str, Any]], measures: list[str]) -> str:
    columns = measures or _common(run["scores"][split] for run in runs)
    lines = [
        f"### {task}, {split}",
        "",
        f"| run | seeds | {' | '.join(columns)} |",
        "|---|---|" + "---|" * len(columns),
    ]
    repeated = False
    for name in dict.fromkeys(run["run"] for run in runs):
        own = [run for run in runs if run["run"] == name]
        cells = [_cell(_by_seed(own, split, column)) for column in columns]
        counts = sorted(Counter(run["seed"] for run in own).items())
        seeds = ", ".join(f"{seed} ({count} times)" if count > 1 else str(seed) for seed, count in counts)
        lines.append(f"| {name} | {seeds} | {' | '.join(cells)} |")
        repeated = repeated or len(counts) < len(own)
    published: dict[str, Mapping[str, float]] = {}
    for run in runs:
        published |= _published(run, split)
    for system, figures in published.items():
        cells = [_cell([figures.get(column)]) for column in columns]
        lines.append(f"| {system} (published) | | {' | '.join(cells)} |")
    if repeated:
        lines += [
            "",
            "Several results of one run and seed count as one, their mean; other names (--run) keep them apart.",
        ]
    return "\n".join(lines)


def _published(run: dict[str, Any], split: str) -> Mapping[str, Mapping[str, float]]:
    """Figures of the split by system; of every split in files that were written without splits."""
    given = run.get("published", {})
    systems = [figures for one in given.values() for figures in one.values()]
    return given.get(split, {}) if all(isinstance(one, Mapping) for one in systems) else given


def _by_seed(runs: list[dict[str, Any]], split: str, measure: str) -> list[float | None]:
    """The score of each seed; the mean where there are several results of it, None where none has the measure."""
    found: dict[Any, list[float]] = {run["seed"]: [] for run in runs}
    for run in runs:
        value = run["scores"][split].get(measure)
        if value is not None:
            found[run["seed"]].append(float(value))
    return [statistics.mean(values) if values else None for values in found.values()]


def _common(scores: Iterable[Mapping[str, Any]]) -> list[str]:
    """Measures that all have: floats, in the order of the first."""
    all_scores = list(scores)
    first = [name for name, value in all_scores[0].items() if isinstance(value, float)]
    return [name for name in first if all(name in one for one in all_scores)]


def _cell(values: list[float | None]) -> str:
    known = [float(value) for value in values if value is not None]
    if not known:
        return ""
    if len(known) == 1:
        return f"{known[0]:.2f}"
    return f"{statistics.mean(known):.2f} ± {statistics.stdev(known):.2f}"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnifiedError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise UnifiedError(f"{path}: not JSON") from None
    missing = [name for name in _FIELDS if name not in content] if isinstance(content, dict) else list(_FIELDS)
    if missing:
        raise UnifiedError(f"{path}: not a file of results; {missing[0]} is missing")
    return content
