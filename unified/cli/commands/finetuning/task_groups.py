"""Fine-tunings of the data sets of a benchmark, one after another, and their table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unified.reports.results import FILE_NAME, read_results, write_result
from unified.tasks.task_groups import TaskGroup


def finetune_each(args: argparse.Namespace, group: TaskGroup, finetune: Callable[[argparse.Namespace], int]) -> int:
    """Fine-tune a model for each data set of a group that there are files of; then write the results of all.

    Each has a folder in that of all, called like its task. Without some of the data sets there is no average.

    Args:
        args: of ``unified finetune``, with the name of the group for a task.
        finetune: ``unified finetune`` with one task for a task.

    Raises:
        UnifiedError: there are files of none, or as ``finetune``.
    """
    output, members = Path(args.output), group.present(Path(args.data))
    for number, (name, task) in enumerate(members.items(), 1):
        print(f"{group.name}, {number} of {len(members)}: {name}", file=sys.stderr, flush=True)
        finetune(argparse.Namespace(**{**vars(args), "task": task, "output": str(output / task)}))
    if args.dry_run:
        return 0
    missing = [name for name in group.members if name not in members]
    if missing:
        print(f"{group.name}: no average, as {args.data} has no files of {', '.join(missing)}", file=sys.stderr)
        return 0
    result = group.result({name: read_results([output / task])[0] for name, task in members.items()})
    path = output / FILE_NAME
    if not (path.is_file() and _says(path, result)):
        write_result(output, **result)
    print(json.dumps(result["scores"], indent=2))
    print(f"written to {path}; `unified results {output}` makes tables of it", file=sys.stderr)
    return 0


def _says(path: Path, result: dict[str, Any]) -> bool:
    """Whether a file of results holds these already."""
    (before,) = read_results([path])
    return {name: before.get(name) for name in result} == json.loads(json.dumps(result))
