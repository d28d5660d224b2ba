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
from itertools import chain, islice
from multiprocessing import connection, parent_process
from typing import Any, TypeVar

from unified.errors import Interrupted

Item = TypeVar("Item")
Result = TypeVar("Result")

_function: Callable[[Any], Any]  # what a worker process calls; set by _start, in worker processes alone


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
    waiting: deque[Future[Result]] = deque()
    left = iter(items)
    first = list(islice(left, workers))
    executor = ProcessPoolExecutor(max(len(first), 1), initializer=_start, initargs=(function,))
    try:
        for item in chain(first, left):
            waiting.append(executor.submit(_call, item))
            if len(waiting) >= 3 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise Interrupted("a worker process was killed; is there enough memory? Fewer processes need less") from None
    finally:
        executor.shutdown(cancel_futures=True)


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
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


def _call(item: Any) -> Any:
    return _function(item)
