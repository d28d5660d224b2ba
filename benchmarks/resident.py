"""Memory of a process under Linux, now and at its peak, and calls in a separate process.

Counted are resident pages (VmRSS, VmHWM of ``/proc/self/status``): the interpreter, the libraries, files that are
mapped and were read, and all tensors. The peak of a child begins with the child itself; ``ru_maxrss`` would begin with
its parent's.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TypeVar

from unified.runtime.processes import guarded_children

Result = TypeVar("Result")

MEBIBYTE = 2**20
MEGABYTE = 10**6


def resident(name: str = "VmRSS", process: int | str = "self") -> int:
    """Bytes that a process has (VmRSS), or had at most (VmHWM)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def forget_peak() -> None:
    """VmHWM of this process begins anew."""
    Path("/proc/self/clear_refs").write_text("5")


def in_own_process(function: Callable[..., Result], *arguments: object) -> Result:
    """Result of ``function`` in a process that has done nothing but import its module."""
    with own_processes(function.__module__) as context, context.Pool(1) as pool:
        return pool.apply(function, arguments)


@contextmanager
def own_processes(module: str) -> Iterator[ForkServerContext]:
    """A context in which each process is a fork of one that has done nothing but import ``module``.

    Python 3.11 tells that one where to find modules by ``PYTHONPATH`` alone. A module that it does not find, as that of
    a program that runs, each process imports for itself.
    """
    with guarded_children():  # which gives the variable back
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([module])
        yield context


class TreePeak:
    """The most memory that a process and its descendants had at once, looked at every few milliseconds.

    Of pages that several of them share each counts its part (``Pss``). Use it in a ``with`` block.

    Attributes:
        peak: bytes.
    """

    def __init__(self, process: int, interval: float = 0.05):
        self.peak = 0
        self._process, self._interval = process, interval
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> TreePeak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(self._interval):
            self.peak = max(self.peak, sum(map(_share, _tree(self._process))))


def _tree(process: int) -> list[int]:
    """The process and all that descend from it; one that has ended has none."""
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            found += _tree(int(child))
    return found


def _share(process: int) -> int:
    """Bytes of a process, shared pages in part; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0) * 1024
