"""Progress of a job: tqdm's line that renews itself in a terminal, plain lines, at most one a second, in a log."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """Says on ``stream`` how far a job is: items and megabytes so far, megabytes a second since it began.

    Args:
        what: name of the job.
        stream: where to say it; stderr by default.
        interval: seconds between two lines.
    """

    def __init__(self, what: str, stream: TextIO | None = None, interval: float = 1.0):
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._interval = interval
        self._start = self._last = time.monotonic()
        self._bytes = 0
        self._bar = None
        if self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(desc=what, file=self._stream, unit="B", unit_scale=True, dynamic_ncols=True)

    def add(self, size: int, items: str) -> None:
        """``size`` more bytes are done; ``items`` says what that makes in all."""
        if self._bar is not None:
            self._bar.set_postfix_str(items, refresh=False)
            self._bar.update(size)
            return
        self._bytes += size
        if time.monotonic() - self._last >= self._interval:
            self._last = time.monotonic()
            self._print(items)

    def finish(self, items: str) -> None:
        """Says where the job ended; in a terminal the last line stays."""
        if self._bar is not None:
            self._bar.set_postfix_str(items)
            self._bar.close()
            return
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
