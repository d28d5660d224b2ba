"""All benchmarks of a set, one after another; their lines go to one file.

    python benchmarks/run.py [--set cpu|full] [--only NAME …]

Every program can be run alone with other sizes. Lines are written as they come: a broken run leaves what it had. Where
a program fails, the others go on, and the status is 1 at the end.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from paired import say

from unified.arguments import counted
from unified.runtime.machine import processor_name

HERE = Path(__file__).resolve().parent
_STEP, _BASE = ["training_step.py"], ["training_step.py", "--size", "base", "--rounds", "3"]

#: Set -> commands. ``cpu`` takes about a quarter of an hour on two cores.
CPU = [
    ["masks.py"],
    [*_STEP, "--attention-dropout", "0.1", "--rounds", "3", "--bar", "1.5"],
    [*_STEP, "--attention-dropout", "0", "--bar", "2.4", "--ceiling-bar", "0.75"],
    [*_STEP, "--attention-dropout", "0", "--bf16", "--no-fairseq", "--bar", "2.6"],
    [*_BASE, "--attention-dropout", "0", "--no-fairseq", "--bar", "1.38", "--ceiling-bar", "0.8"],
    ["optimizer.py"],
    ["choices.py", "--rounds", "3"],
    ["mask_cost.py"],
    ["permutation_step.py", "--rounds", "3", "--bar", "2.5"],
    ["packing.py", "--sequences", "48", "--bar", "2.1"],
    ["decoding.py", "--scheme", "cloze", "--bar", "1.5"],
    ["decoding.py", "--scheme", "next", "--bar", "2.0"],
    ["masking.py"],
    ["coreference_memory.py", "--words", "1000", "4000"],
    ["memory.py", "--bar", "3800", "--lengths", "256", "512", "1024"],
    ["preparing.py", "--rounds", "2"],
    ["start.py", "--tokens", "1000000", "20000000", "--rounds", "1"],
    ["generating.py", "--sentences", "64", "--rounds", "1", "--bar", "1.5"],
    ["growth.py", "--rounds", "1", "--curves", "beam"],
]
FULL = [
    *CPU,
    ["packing.py", "--bar", "2.1"],
    ["coreference_memory.py"],
    ["memory.py", "--bar", "3800"],
    ["preparing.py", "--all", "--rounds", "2"],
    ["preparing.py", "--compressed", "--rounds", "2"],
    ["start.py"],
    ["generating.py", "--sentences", "256", "--bar", "1.5"],
    ["generating.py", "--sentences", "256", "--beam", "1", "--bar", "1.5"],
    ["growth.py", "--tokens", "4096", "--rows", "512", "1024", "2048", "4096"],
    ["processes.py"],
    ["decoding.py", "--size", "base", "--scheme", "cloze", "--bar", "1.2"],
    ["decoding.py", "--scheme", "cloze", "--beam", "1", "--bar", "1.5"],
    ["few_rows.py"],
    ["decoding.py", "--scheme", "next", "--peers", "ctranslate2", "--bar", "1"],
    ["decoding.py", "--scheme", "next", "--beam", "1", "--peers", "ctranslate2", "--bar", "1"],
    ["decoding.py", "--scheme", "next", "--int8", "--peers", "float32", "ctranslate2", "--bar", "1.3"],
    [*_BASE, "--attention-dropout", "0.1"],
]
SETS = {"cpu": CPU, "full": FULL}


def run_all(
    commands: Iterable[list[str]], only: Sequence[str] | None, file: Path, limit: float | None = None
) -> tuple[int, list[str]]:
    """Run programs one after another; where one fails, the others go on.

    Args:
        only: names of the programs to run, such as packing; None for all.
        limit: seconds for all of them; a program that takes longer is ended.

    Returns:
        How many bars do not hold, and the programs that failed.
    """
    began, missed, failed = time.perf_counter(), 0, []
    for command in commands:
        if only is None or command[0].removesuffix(".py") in only:
            left = None if limit is None else limit - (time.perf_counter() - began)
            own, status = run(command, file, left)
            missed += own
            if status:
                say(f"{' '.join(command)}: ended with {status}")
                failed.append(command[0])
    return missed, failed


def run(command: list[str], file: Path, limit: float | None = None) -> tuple[int, int]:
    """Run a program, show its lines, and keep them; returns how many bars do not hold, and the program's status.

    Args:
        limit: seconds after which it is ended.
    """
    say("== " + " ".join(command))
    missed = 0
    with (
        subprocess.Popen(
            [sys.executable, HERE / command[0], *command[1:]], stdout=subprocess.PIPE, text=True
        ) as process,
        file.open("a", encoding="utf-8") as kept,
    ):
        clock = threading.Timer(threading.TIMEOUT_MAX if limit is None else max(limit, 0), process.kill)
        clock.daemon = True
        clock.start()
        for text in process.stdout:
            if text.startswith("{"):
                kept.write(text)
                kept.flush()
                missed += show(json.loads(text))
        process.wait()
        clock.cancel()
    return missed, process.returncode


def show(line: dict) -> bool:
    """One line for people; whether a bar is missed."""
    bar, holds = line["bar"], line["holds"]
    unit = line["unit"]
    low, high = line["spread"]
    shown = f"{line[unit]:,.2f} ({low:,.2f}-{high:,.2f})" + ("" if unit == "ratio" else f" {unit.replace('_', ' ')}")
    wanted = "" if bar is None else f"bar {bar:g} {'holds' if holds else 'MISSED'}"
    print(f"{line['benchmark']:<60} {shown:<44} {wanted}", flush=True)
    return holds is False


def ended(missed: int, failed: Sequence[str]) -> str:
    """Says how a set has ended, such as 1 bar missed, 2 programs failed (masks.py, packing.py)."""
    return f"{counted(missed, 'bar')} missed, {counted(len(failed), 'program')} failed" + (
        f" ({', '.join(failed)})" if failed else ""
    )


def results_file() -> Path:
    """Named by day and machine; a second run of a day goes on in it."""
    machine = re.sub(r"[^a-z0-9]+", "-", processor_name().lower()).strip("-")
    path = HERE / "results" / f"{date.today().isoformat()}-{machine}.json"
    path.parent.mkdir(exist_ok=True)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, default="cpu", help="set of benchmarks to run (default: %(default)s)")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="run only these programs of the set, such as packing (default: all)"
    )
    arguments = parser.parse_args()
    file = results_file()
    missed, failed = run_all(SETS[arguments.set], arguments.only, file)
    print(f"{ended(missed, failed)}; lines are in {file}; `python benchmarks/report.py` makes tables of them")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
