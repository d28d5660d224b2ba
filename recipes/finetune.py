"""Fine-tunes for a task with the settings of a system's paper, and scores by the official rules.

    python recipes/finetune.py SYSTEM TASK DATA CHECKPOINT OUTPUT [--debug] [options of unified finetune]

The recipes are data, recipes/finetune.toml. DATA is a folder with the task's official files (docs/reference/tasks.md).
With PRINT=1 in the environment the commands are printed and not run.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "common"))
from commands import run_or_print  # noqa: E402

TABLE = tomllib.loads((HERE / "finetune.toml").read_text(encoding="utf-8"))
#: The groups of tasks of each system.
SYSTEMS: dict[str, dict[str, Any]] = {name: groups for name, groups in TABLE.items() if name not in ("debug", "after")}


def group_of(system: str, task: str) -> dict[str, Any]:
    """The group of a system's recipes that has the task; KeyError where there is none."""
    return next(group for group in SYSTEMS[system].values() if task in group["tasks"])


def commands(
    system: str, task: str, data: Path, model: str, output: str, debug: bool, more: list[str]
) -> list[list[str]]:
    """Words of ``unified finetune`` and of what is run after it, each a list."""
    group = group_of(system, task)
    words = ["unified", "finetune", task, "--data", str(data), "--init", model, "--output", output]
    words += ["--system", group["system"]] if "system" in group else []
    words += shlex.split(f"{TABLE['debug'][group['debug']]} {TABLE['debug']['shared']}") if debug else []
    found = [words + more]
    after = TABLE["after"].get(task, {"files": [], "commands": []})
    files = [path for pattern in after["files"] for path in sorted(data.glob(pattern))]
    for file in files or [data / pattern for pattern in after["files"][:1]]:
        names = {"file": file, "output": output, "recipes": HERE}
        found += [[word.format(**names) for word in shlex.split(line)] for line in after["commands"]]
    return found


def argument_parser() -> argparse.ArgumentParser:
    listed = "; ".join(
        f"{name}: {', '.join(task for group in groups.values() for task in group['tasks'])}"
        for name, groups in SYSTEMS.items()
    )
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=f"Tasks of each system: {listed}. Further options are those of `unified finetune`.",
        allow_abbrev=False,
    )
    parser.add_argument("system", choices=SYSTEMS, help="system whose published settings are used")
    parser.add_argument("task", metavar="TASK", help="task as `unified finetune` names it")
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with the task's official files")
    parser.add_argument("model", metavar="CHECKPOINT", help="checkpoint to start from")
    parser.add_argument("output", metavar="OUTPUT", help="folder for checkpoints, predictions and results")
    parser.add_argument("--debug", action="store_true", help="train with the short settings that the tests use")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    args, more = parser.parse_known_args(arguments)
    known = [task for group in SYSTEMS[args.system].values() for task in group["tasks"]]
    if args.task not in known:
        parser.error(f"{args.system} has no recipe for {args.task!r}; it has {', '.join(known)}")
    return run_or_print(commands(args.system, args.task, args.data, args.model, args.output, args.debug, more))


if __name__ == "__main__":
    sys.exit(main())
