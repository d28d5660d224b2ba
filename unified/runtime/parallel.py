"""A function over a stream of items in several processes, results in order, memory bounded.

The standard library's ``Executor.map`` and ``Pool.imap`` take all items at once, so that a corpus would have to fit
into memory, and a ``Pool`` waits forever for a worker that was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import connection, parent_process
from operator import call
from typing import Any, Generic, TypeVar

from unified.errors import Interrupted

Held = TypeVar("Held")
Item = TypeVar("Item")
Result = TypeVar("Result")

_held: Any  # what a worker process calls functions with; set by _start, in worker processes alone


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """``function(item)`` of each item, in order, by ``workers`` processes (this one where ``workers`` is 1).

    ``function`` reaches each process once. No more than three items per worker are under way, and no more processes
    are started than there are items.

    Raises:
        Interrupted: a process was killed.
    """
    if workers == 1:
        yield from map(function, items)
        return
    left = iter(items)
    first = list(islice(left, workers))
    with _worker_processes(function, max(len(first), 1)) as processes:
        yield from processes.ordered_map(call, chain(first, left))


@contextmanager
def kept_workers(held: Held, workers: int) -> Iterator[Workers[Held]]:
    """``workers`` processes that stay until the block ends (this one where ``workers`` is 1).

    Args:
        held: what all functions are called with; it reaches each process once.

    Raises:
        Interrupted: a process was killed.
    """
    if workers == 1:
        yield Workers(held)
        return
    with _worker_processes(held, workers) as processes:
        yield processes


@dataclass(frozen=True)
class Workers(Generic[Held]):
    """Processes that call functions with an object that each of them holds.

    Attributes:
        held: the object.
        executor: starts the processes; this process does the work where it is None.
        number: how many processes there are.
    """

    held: Held
    executor: ProcessPoolExecutor | None = None
    number: int = 1

    def ordered_map(self, function: Callable[[Held, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """``function(held, item)`` of each item, in order; no more than three items per process are under way."""
        if self.executor is None:
            yield from (function(self.held, item) for item in items)
            return
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(self.executor.submit(_call, function, item))
            if len(waiting) >= 3 * self.number:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _worker_processes(held: Held, number: int) -> Iterator[Workers[Held]]:
    executor = ProcessPoolExecutor(number, initializer=_start, initargs=(held,))
    try:
        yield Workers(held, executor, number)
    except BrokenProcessPool:
        raise Interrupted("a worker process was killed; is there enough memory? Fewer processes need less") from None
    finally:
        executor.shutdown(cancel_futures=True)


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(held: Any) -> None:
    global _held
    _held = held
    # Ctrl-C reaches every process of the terminal; the first one decides. If it dies, nobody waits for our results.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    # One process is one core here; the libraries `tokenizers` and torch would start a thread per core in each. Besides,
    # torch hangs in a process forked from one where it ran several threads, unless it keeps to one.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _die_with_parent() -> None:
    parent = parent_process()
    assert parent is not None  # only worker processes call this
    connection.wait([parent.sentinel])
    os._exit(1)


def _call(function: Callable[[Any, Any], Any], item: Any) -> Any:
    return function(_held, item)
