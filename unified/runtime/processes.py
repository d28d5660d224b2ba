"""Starting Python programs so that they import nothing from the current folder.

``python -m`` and ``python -c`` put the current folder first on the path: a ``random.py`` that lies beside a downloaded
data set would be executed. So does an empty entry of ``PYTHONPATH``; ``PYTHONPATH=$PYTHONPATH:/folder`` makes one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

#: Linux's number for "send me this signal when the process that started me ends".
_PR_SET_PDEATHSIG = 1


def module_command(module: str, words: Sequence[object] = ()) -> list[str]:
    """The command that runs ``module`` with this Python, without the current folder on its path."""
    return [sys.executable, "-P", "-m", module, *map(str, words)]


def _ends_with_parent() -> Callable[[], object] | None:
    """A new process calls this before it becomes the program: the kernel kills it when the one that started it ends.

    It is None on systems other than Linux, where the program lives on.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run_module(module: str, words: Sequence[object]) -> int:
    """Run ``module`` in a process of its own; returns its exit status."""
    with guarded_children(), _terminated_in_order():
        return subprocess.run(module_command(module, words), preexec_fn=_ends_with_parent()).returncode


def read_module(module: str, words: Sequence[object], read: Callable[[str], None]) -> int:
    """Run ``module`` in a process of its own and hand each line that it prints to ``read``; returns its exit status.

    An exception, such as an interruption from the keyboard, ends the process, and so does a SIGTERM to this one; on
    Linux it also ends where this one is killed.
    """
    with (
        guarded_children(),
        _terminated_in_order(),
        subprocess.Popen(
            module_command(module, words),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            preexec_fn=_ends_with_parent(),
        ) as process,
    ):
        try:
            assert process.stdout is not None  # a pipe
            for line in process.stdout:
                read(line)
        except BaseException:
            process.kill()
            raise
    return process.returncode


@contextmanager
def _terminated_in_order() -> Iterator[None]:
    """Turns a SIGTERM within a ``with`` block into a ``SystemExit``, so that a process it waits for is ended, too.

    Only the main thread receives signals; in another one nothing is changed.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def guarded_children() -> Iterator[None]:
    """Keeps the current folder off the import path of all processes that a ``with`` block starts, directly or not.

    Entries of ``PYTHONPATH`` that name a folder stay, a dot too: they were meant.
    """
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    os.environ["PYTHONSAFEPATH"] = "1"
    if before["PYTHONPATH"] is not None:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, before["PYTHONPATH"].split(os.pathsep)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
