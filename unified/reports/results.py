"""One file of results for each run, with the settings that identify the run.

:mod:`unified.reports.result_tables` makes tables of many.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.files.json_text import read_object
from unified.files.shapes import Each, Maybe, misfit
from unified.files.whole import write_whole_text
from unified.runtime.machine import processor_name

FILE_NAME = "results.json"
PACKAGES = "unified-lm torch fairseq-fixed tokenizers transformers sentencepiece sacrebleu rouge-score".split()
#: Fields of every results file.
_FIELDS = ("task", "run", "scores", "seed", "command", "model", "settings", "data", "versions", "date")
#: Kinds of values that they and further fields hold.
_SHAPE = {
    "task": str,
    "run": str,
    "scores": Each(Each(object)),
    "seed": int,
    "command": [str],
    "model": {"name": str, "sha256": (str, None)},
    "settings": dict,
    "data": Each(str),
    "versions": Each(str),
    "date": str,
    "published": Maybe(Each(Each(Each(float)))),
    "checkpoint": Maybe(str),
    "null_threshold": Maybe({"value": float, "found_on": (str, None)}),
    "intervals": Maybe(Each(Each([float, float]))),
}


def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that decide figures."""
    from importlib import metadata  # it brings the library of electronic mail, which help should not wait for

    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def measures_of(scores: Mapping[str, Any]) -> dict[str, float]:
    """The scores of a split without notes on them: counts of items, thresholds and signatures."""
    return {name: value for name, value in scores.items() if isinstance(value, float) and not name.endswith("_thresh")}


def write_result(
    folder: Path,
    *,
    task: str,
    run: str,
    scores: Mapping[str, Mapping[str, Any]],
    seed: int,
    command: list[str],
    model: Mapping[str, Any],
    settings: Mapping[str, Any],
    data: Mapping[str, str],
    published: Mapping[str, Mapping[str, Mapping[str, float]]],
    **more: Any,
) -> Path:
    """Write ``results.json`` into ``folder``, whole or not at all.

    Two results of a task are of the same run if they have the same name, contents of the model, settings, data and
    versions; then they are taken for repetitions with other seeds.

    Args:
        task: what was learnt.
        run: name of the system, by the user.
        scores: split -> measure -> score, signatures included.
        seed, command: what was run.
        model: what was fine-tuned: ``name``, as the user called it; ``sha256`` of its contents, None where it has none;
            and its size, for readers.
        settings: name -> value of everything else that decides the scores but the seed: head, training, selection.
        data: file of a split, such as ``train.jsonl`` -> SHA-256.
        published: split -> system -> measure -> figure of others.
        more: anything else worth keeping.
    """
    content = {
        "task": task,
        "run": run,
        "scores": scores,
        "seed": seed,
        "command": command,
        "model": model,
        "settings": settings,
        "data": data,
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": processor_name(), "cores": os.cpu_count()},
        "published": published,
        **more,
    }
    return write_whole(folder / FILE_NAME, content)


def write_whole(path: Path, content: Mapping[str, Any]) -> Path:
    """Write a file of JSON, whole or not at all."""
    write_whole_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return path


def command_of(path: Path) -> list[str]:
    """The command that wrote a file of results, its words; none where the file is something else."""
    try:
        command = read_object(path, nan=True).get("command")
    except UnifiedError:
        return []
    return command if isinstance(command, list) else []


def chosen_run(path: Path) -> Path | None:
    """The folder of the run that a grid has chosen, of the grid's ``results.json``; None where it is another file."""
    try:
        chosen = read_object(path, nan=True).get("chosen")
    except UnifiedError:
        return None
    if isinstance(chosen, dict) and isinstance(chosen.get("folder"), str):
        return path.parent / chosen["folder"]
    return None


def read_results(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """The results files that ``paths`` are, or hold at any depth, each once; of a grid those of its runs.

    Symbolic links are followed.

    Raises:
        UnifiedError: there is none, or a file is something else.
    """
    files: dict[str, Path] = {}  # each once, however often the paths lead to it
    for path in map(Path, paths):
        folder = path.parent if chosen_run(path) else path
        own = sorted(_files_below(folder)) if folder.is_dir() else [folder]
        files |= {os.path.realpath(file): file for file in own if not chosen_run(file)}
    if not files:
        raise UnifiedError(
            f"no {FILE_NAME} in {', '.join(map(str, paths))}; `unified finetune` and `unified evaluate` write them"
        )
    return [_read(path) for path in files.values()]


def _files_below(folder: Path) -> Iterator[Path]:
    """Results files at any depth, also behind links, which may lead back to a folder above."""
    seen: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        if FILE_NAME in names:
            yield Path(place, FILE_NAME)


def _read(path: Path) -> dict[str, Any]:
    content = read_object(path, nan=True)
    missing = [name for name in _FIELDS if name not in content]
    if missing:
        raise UnifiedError(
            f"{path}: not a file of results as this version writes them: {missing[0]} is missing, so that nobody can "
            "say which results belong together; move it away, or run its command again"
        )
    if not isinstance(content["model"], dict) or not {"name", "sha256"} <= content["model"].keys():
        raise UnifiedError(f"{path}: not a file of results; 'model' must have 'name' and 'sha256'")
    wrong = misfit(content, _SHAPE, "")
    if wrong is not None:
        raise UnifiedError(f"{path}: not a file of results; {wrong}")
    return content
