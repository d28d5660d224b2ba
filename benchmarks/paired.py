"""Functions that benchmarks share: calls that take turns, the median of their paired ratios, and one JSON line of it.

A ratio is the peer's time over ours in the same round, so that both meet the same machine; above 1 ours is faster. A
bar is the least ratio that we want (the most, where ours is compared with itself under a burden).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from unified.errors import UnifiedError
from unified.kernels.cpu import keep_freed_memory
from unified.reports.results import versions
from unified.runtime import machine as this_machine

OURS = "ours"
Calls = Mapping[str, Callable[[], object]]


def options(parser: argparse.ArgumentParser, rounds: int) -> None:
    """Options that every benchmark has."""
    parser.add_argument(
        "--rounds", type=int, default=rounds, metavar="N", help="how often every call is timed (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of torch (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="device, cpu or cuda (default: %(default)s)")


#: Options that say how often and with what a program measures, and what is wanted, but not what is done.
_MEASURING = ("rounds", "threads", "bar")


def configuration(arguments: argparse.Namespace, *but: str) -> dict[str, Any]:
    """Settings of a line: all options that change the work, so that lines of different work are told apart.

    The device is one of them where it is not the CPU.

    Args:
        but: further options that change nothing of what is timed, such as the names of peers.
    """
    left_out = (*_MEASURING, *but)
    return {
        name: value
        for name, value in vars(arguments).items()
        if name not in left_out and not name.endswith("_bar") and (name, value) != ("device", "cpu")
    }


def run_program(main: Callable[[], None]) -> None:
    """Run a program; what the library refuses ends it with one line, as its commands do."""
    try:
        main()
    except UnifiedError as error:
        raise SystemExit(f"{Path(sys.argv[0]).stem}: {error}") from None


def set_up(arguments: argparse.Namespace) -> None:
    """Threads, of programs that are started too, reproducible draws, and an allocator as in our trainings for all."""
    torch.set_num_threads(arguments.threads)
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    if arguments.device == "cpu":
        keep_freed_memory()
    torch.manual_seed(0)


def seconds_of(call: Callable[[], object]) -> float:
    """Wall time; of a card, until it has done its work."""
    _wait()
    began = time.perf_counter()
    call()
    _wait()
    return time.perf_counter() - began


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def take_turns(calls: Calls, rounds: int, warm: bool = True) -> dict[str, list[float]]:
    """Seconds of each call in each round, after one that does not count, unless ``warm`` is False."""
    for call in calls.values() if warm else ():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds_of(call))
    return times


def ratios(times: Mapping[str, list[float]], peer: str, ours: str = OURS) -> list[float]:
    """The peer's time over ours, round by round."""
    return [theirs / own for theirs, own in zip(times[peer], times[ours], strict=True)]


def report(
    name: str,
    configuration: Mapping[str, Any],
    values: list[float],
    bar: float | None = None,
    at_most: bool = False,
    unit: str = "ratio",
    at: tuple[str, float] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Print the line of a measurement.

    Args:
        values: of all rounds.
        bar: what their median is to reach, or with ``at_most`` not to exceed; None where nothing is promised.
        unit: their unit, such as "per_second", or "ratio".
        at: of a point of a curve what it grows with, and how much of that there is.
        more: anything else worth knowing.
    """
    middle = statistics.median(values)
    line: dict[str, Any] = {
        "benchmark": name,
        "configuration": dict(configuration),
        "unit": unit,
        unit: round(middle, 3),
        "spread": [round(min(values), 3), round(max(values), 3)],
        "bar": bar,
        "at_most": None if bar is None else at_most,
        "holds": None if bar is None else bool(middle <= bar if at_most else middle >= bar),
        **({} if at is None else {"at": {"axis": at[0], "value": at[1]}}),
        **more,
        "machine": machine(),
        "versions": versions(),
    }
    print(json.dumps(line), flush=True)
    return line


def compare(
    name: str,
    configuration: Mapping[str, Any],
    calls: Calls,
    rounds: int,
    bars: Mapping[str, float | None],
    operations: float | None = None,
    ceiling: float | None = None,
    **more: Any,
) -> dict[str, list[float]]:
    """Measure ours beside each peer and report the ratios; returns the seconds of all calls.

    Args:
        calls: by name, :data:`OURS` among them.
        bars: peer -> bar.
        operations: of one call of ours; its rate is compared with ``ceiling``, operations per second.
    """
    times = take_turns(calls, rounds)
    medians = {one: statistics.median(some) for one, some in times.items()}
    if operations is not None and ceiling is not None:
        more["share_of_ceiling"] = round(operations / medians[OURS] / ceiling, 3)
        more |= {"operations": operations, "ceiling_per_second": round(ceiling)}
    rounded = {one: round(value, 5) for one, value in medians.items()}
    for peer, bar in bars.items():
        report(f"{name} / {peer}", configuration, ratios(times, peer), bar, seconds=rounded, rounds=rounds, **more)
    return times


def machine() -> dict[str, Any]:
    """Properties of the machine that figures depend on."""
    return {**this_machine.machine(), "threads": torch.get_num_threads()}


def say(text: str) -> None:
    """A note for people, beside the JSON lines."""
    print(text, file=sys.stderr, flush=True)
