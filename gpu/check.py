"""All checks of a graphics card, one JSON line a finding: `make gpu-check`.

    python -m gpu.check                    # on a card, in eight minutes
    python -m gpu.check --device cpu       # a rehearsal with tiny sizes
    python -m gpu.check --only 'kernels*'  # some checks

Each check runs in a process of its own, several at once; one that fails or takes too long is a line, and the others go
on. Status 1 where anything does not hold.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from datetime import date
from fnmatch import fnmatch
from os import cpu_count, environ, killpg, pathsep
from pathlib import Path
from typing import Any

import torch

from gpu import generation, kernels, steps, suite, surroundings, trainings
from gpu.findings import Check, Place
from unified.reports.results import versions
from unified.runtime.machine import machine, processor_name

ROOT = Path(__file__).resolve().parents[1]
#: In the order in which they begin.
CHECKS = [
    Check("surroundings", surroundings.check, 60),
    Check("tests", suite.marked, 300),
    Check("precision", suite.precision, 240),
    Check("kernels: block masks", kernels.block_masks, 60),
    Check("kernels: float32", kernels.float32, 240),
    Check("kernels: bfloat16", kernels.bfloat16, 240),
    Check("kernels: model", kernels.model, 150),
    Check("compiled training", steps.compiled, 240),
    Check("waiting", steps.waiting, 150),
    Check("generation", generation.check, 240),
    Check("training: objectives", trainings.objectives, 150),
    Check("training: resume", trainings.resumed, 150),
    Check("training: torchrun", trainings.by_torchrun, 150),
    Check("training: two processes", trainings.two_processes, 150),
    Check("kernels: float16", kernels.float16, 240),
    Check("kernels: FLASH", kernels.flash, 240),
]
#: Characters of what a check printed that its line keeps when it fails.
_KEPT = 1500
_ONE = "--one"  # an option of the processes that this program starts

Line = dict[str, Any]


def chosen(patterns: Sequence[str] | None) -> list[Check]:
    """The checks whose names match one of the patterns; all where there are none."""
    if patterns is None:
        return CHECKS
    for pattern in patterns:
        if not any(fnmatch(check.name, pattern) for check in CHECKS):
            names = ", ".join(check.name for check in CHECKS)
            raise SystemExit(f"gpu-check: --only {pattern}: no check has such a name; there are {names}")
    return [check for check in CHECKS if any(fnmatch(check.name, pattern) for pattern in patterns)]


def found_by(check: Check, place: Place) -> Iterator[Line]:
    """Run a check in this process; yields its lines, each with the seconds since the one before."""
    began = time.perf_counter()
    for finding in check.run(place):
        seconds = time.perf_counter() - began
        yield {"check": check.name, **asdict(finding), "seconds": round(seconds, 2)}
        began = time.perf_counter()


def run(check: Check, command: Sequence[str], seconds: float, threads: int = 1) -> Iterator[Line]:
    """Run a check by a command that prints its lines; yields them, and one more where it fails or is ended.

    Args:
        seconds: after which it is ended, with all that it started.
        threads: of torch on the CPU.
    """
    began = time.perf_counter()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said,
        subprocess.Popen(
            command, cwd=ROOT, env=_environment(threads), stdout=subprocess.PIPE, stderr=said, text=True,
            start_new_session=True,
        ) as process,
    ):  # fmt: skip
        ended = threading.Event()

        def end() -> None:
            ended.set()
            with suppress(ProcessLookupError):
                killpg(process.pid, signal.SIGKILL)

        clock = threading.Timer(max(seconds, 0), end)
        clock.daemon = True
        clock.start()
        try:
            for text in process.stdout:
                if text.startswith('{"check"'):
                    yield json.loads(text)
            status = process.wait()
        finally:
            clock.cancel()
            with suppress(ProcessLookupError):  # what it may have left behind
                killpg(process.pid, signal.SIGKILL)
        if status:
            said.seek(0)
            why = f"ended after {seconds:.0f} s" if ended.is_set() else f"status {status}"
            yield _failure(check, why, said.read()[-_KEPT:], time.perf_counter() - began)


def _failure(check: Check, found: str, note: str, seconds: float) -> Line:
    return {
        "check": check.name,
        "name": f"{check.name}: ended in order",
        "found": found,
        "compared_with": "status 0",
        "holds": False,
        "tolerance": None,
        "settings": {"limit": check.limit},
        "note": note,
        "seconds": round(seconds, 2),
    }


def _environment(threads: int) -> dict[str, str]:
    paths = pathsep.join([str(ROOT), *filter(None, environ.get("PYTHONPATH", "").split(pathsep))])
    # A process that has imported fairseq must not be forked where torch may have started CUDA's threads.
    fresh = {"FRESH_PYTHON": "1", "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": str(threads)}
    return {**environ, "PYTHONPATH": paths, **fresh, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def run_all(checks: Sequence[Check], device: str, jobs: int, minutes: float, write: Callable[[Line], None]) -> None:
    """Run checks, several at once, and write their lines as they come; none begins when the time is up."""
    end = time.monotonic() + 60 * minutes
    threads = max(1, (cpu_count() or 1) // jobs)
    lock = threading.Lock()

    def one(check: Check) -> None:
        left = end - time.monotonic()
        if left <= 0:
            lines: Iterator[Line] = iter([_failure(check, "not run", "the time was up before it began", 0)])
        else:
            words = [sys.executable, "-m", "gpu.check", "--device", device, _ONE, check.name]
            lines = run(check, words, min(check.limit, left), threads)
        for line in lines:
            with lock:
                write(line)

    with ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(one, check) for check in checks]:
            future.result()


def file_of_today() -> Path:
    """Named by day and machine; a second run of a day goes on in it."""
    name = re.sub(r"[^a-z0-9]+", "-", str(machine().get("gpu", processor_name())).lower()).strip("-")
    return ROOT / "gpu" / "results" / f"check-{date.today().isoformat()}-{name}.jsonl"


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="the card, or a rehearsal (default: %(default)s)"
    )
    parser.add_argument("--only", nargs="+", metavar="GLOB", help="checks to run, such as 'kernels*' (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names of the checks and stop")
    parser.add_argument("--minutes", type=float, default=8, metavar="N", help="time for all (default: %(default)s)")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="checks at once (default: 8 on a card with 16 cores, 1 on a CPU)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="file of lines (default: a file in gpu/results)")
    parser.add_argument(_ONE, metavar="NAME", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    arguments = parse(words)
    if arguments.list:
        print("\n".join(check.name for check in CHECKS))
        return 0
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("gpu-check: torch sees no CUDA card here; --device cpu rehearses with tiny sizes")
    if arguments.one is not None:
        (check,) = (check for check in CHECKS if check.name == arguments.one)
        for line in found_by(check, Place(torch.device(arguments.device))):
            print(json.dumps(line), flush=True)
        return 0
    checks, file = chosen(arguments.only), arguments.output or file_of_today()
    file.parent.mkdir(parents=True, exist_ok=True)
    here = {"device": arguments.device, "machine": machine(), "versions": versions()}
    counts = {True: 0, False: 0, None: 0}
    began = time.perf_counter()
    with file.open("a", encoding="utf-8") as kept:

        def write(line: Line) -> None:
            counts[line["holds"]] += 1
            text = json.dumps({**line, **here})
            print(text, flush=True)
            kept.write(text + "\n")
            kept.flush()

        jobs = arguments.jobs or (min(8, max(1, (cpu_count() or 1) // 2)) if arguments.device == "cuda" else 1)
        run_all(checks, arguments.device, jobs, arguments.minutes, write)
    print(
        f"{counts[True]} hold, {counts[False]} do not, {counts[None]} could not be compared; "
        f"{time.perf_counter() - began:.0f} s; lines are in {file}",
        file=sys.stderr,
    )
    return 1 if counts[False] else 0


if __name__ == "__main__":
    sys.exit(main())
