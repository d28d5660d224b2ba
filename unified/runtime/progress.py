"""Progress in plain lines, at most one a second."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """Says on ``stream`` how far a job is: items and megabytes so far, megabytes a second since it began."""

    def __init__(self, what: str, stream: TextIO | None = None, interval: float = 1.0):
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._interval = interval
        self._start = self._last = time.monotonic()
        self._bytes = 0

    def add(self, size: int, items: str) -> None:
        """``size`` more bytes are done; ``items`` says what that makes in all."""
        self._bytes += size
        if time.monotonic() - self._last >= self._interval:
            self._last = time.monotonic()
            self._print(items)

    def finish(self, items: str) -> None:
        self._print(items)

    @staticmethod
    def say(text: str) -> None:
        """One line on stderr."""
        print(text, file=sys.stderr, flush=True)

    def _print(self, items: str) -> None:
        seconds = max(time.monotonic() - self._start, 1e-9)
        megabytes = self._bytes / 1e6
        line = f"{self._what}: {items}, {megabytes:,.1f} MB, {megabytes / seconds:,.1f} MB/s"
        print(line, file=self._stream, flush=True)
