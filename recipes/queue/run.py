"""Runs the long runs of a plan one after another, at low priority, and writes one line of results for each.

    UNIFIED_DATA=... python recipes/queue/run.py WORK                      # all that is not finished
    UNIFIED_DATA=... python recipes/queue/run.py WORK --only 'parity/*' --hours 2
    python recipes/queue/run.py WORK --list                                # what is finished, and what is not
    UNIFIED_DATA=... python recipes/queue/run.py WORK --again parity/rte-1 # a finished run gives the same figures?

An interrupted run resumes where it stopped. Several queues may work on one plan at the same time: ``--at-once 4``
starts four.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from entries import Plan  # noqa: E402
from execution import Stopped  # noqa: E402
from work import Queue  # noqa: E402

from unified.errors import UnifiedError  # noqa: E402


def plan_of(path: Path) -> Plan:
    """The plan in a Python file, its ``ENTRIES``."""
    spec = importlib.util.spec_from_file_location("the_plan", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UnifiedError(f"--plan {path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Plan(module.ENTRIES)


def chosen(plan: Plan, patterns: list[str] | None) -> list:
    """The entries whose names match one of the patterns, in the order of the plan."""
    if patterns is None:
        return list(plan.entries.values())
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in plan.entries):
            raise UnifiedError(f"--only {pattern}: no entry has such a name; --list shows all")
    return [entry for name, entry in plan.entries.items() if any(fnmatch(name, pattern) for pattern in patterns)]


def end_of(until: str | None, hours: float | None, minutes: float | None = None) -> float | None:
    """The time at which the queue shall end, in seconds since 1970; None: when all is finished."""
    if hours is not None:
        return time.time() + 3600 * hours
    if minutes is not None:
        return time.time() + 60 * minutes
    if until is None:
        return None
    try:
        clock = datetime.strptime(until, "%H:%M")
    except ValueError:
        raise UnifiedError(f"--until {until}: not a time such as 03:00") from None
    now = datetime.now()
    end = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
    return (end if end > now else end + timedelta(days=1)).timestamp()


def stop_at(end: float | None) -> Callable[[], bool]:
    """Whether the time is up or a signal has asked the queue to end."""
    signalled = []
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: signalled.append(True))
    return lambda: bool(signalled) or (end is not None and time.time() >= end)


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK", help="folder for checkpoints and logs")
    parser.add_argument("--only", nargs="+", metavar="GLOB", help="entries to run, such as 'parity/*' (default: all)")
    parser.add_argument("--list", action="store_true", help="show how far each entry is, and run nothing")
    parser.add_argument("--retry", action="store_true", help="try what has failed before again")
    parser.add_argument("--again", metavar="NAME", help="make a finished run once more, and say whether it is the same")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--until", metavar="HH:MM", help="time of this machine's clock at which to stop")
    end.add_argument("--hours", type=float, metavar="N", help="stop after so many hours")
    end.add_argument("--minutes", type=float, metavar="N", help="stop after so many minutes")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="runs at the same time (default: 1)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of each run (default: 1)")
    parser.add_argument("--nice", type=int, default=19, metavar="N", help="how far to lower the priority (default: 19)")
    parser.add_argument("--plan", type=Path, default=HERE / "plan.py", metavar="FILE", help="plan (default: plan.py)")
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", metavar="FOLDER", help="files of lines (default: results)"
    )
    return parser.parse_args(words)


def several(words: list[str], number: int) -> int:
    """Start queues of the same words and wait for them all; a signal ends them; returns the greatest status."""
    queues = [subprocess.Popen([sys.executable, __file__, *words, "--at-once", "1"]) for _ in range(number)]
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: [queue.terminate() for queue in queues])
    return max(queue.wait() for queue in queues)


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    arguments = parse(words)
    if arguments.at_once < 1:
        raise UnifiedError(f"--at-once {arguments.at_once}: must be 1 or more")
    plan = plan_of(arguments.plan)
    wanted = chosen(plan, arguments.only)
    stopped = stop_at(end_of(arguments.until, arguments.hours, arguments.minutes))
    queue = Queue(plan, arguments.work.resolve(), arguments.results.resolve(), ROOT, arguments.threads, stopped)
    if arguments.list:
        print("\n".join(queue.listed(wanted)))
        return 0
    if arguments.again is not None and arguments.again not in plan.entries:
        raise UnifiedError(f"--again {arguments.again}: no such entry; --list shows all")
    if arguments.at_once > 1 and arguments.again is None:
        return several(words, arguments.at_once)
    os.nice(arguments.nice)
    try:
        if arguments.again is not None:
            same = queue.again(plan.entries[arguments.again])
            print("the same figures" if same else "other figures; the new line says which")
            return 0 if same else 1
        failed = queue.run(wanted, arguments.retry)
    except Stopped:
        print("stopped; the same command goes on from here")
        return 0
    print(f"{len(wanted) - failed} of {len(wanted)} entries are finished")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UnifiedError as error:
        sys.exit(f"queue: error: {error}")
