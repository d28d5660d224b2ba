"""Progress of a job: tqdm's line that renews itself in a terminal, plain lines, some seconds apart, in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from types import TracebackType
from typing import Self, TextIO, TypeVar

_Item = TypeVar("_Item")


class Progress:
    """Says on ``stream`` how far a job is: items and megabytes so far, megabytes a second since it began, time left.

    Args:
        what: name of the job.
        stream: where to say it; stderr by default.
        interval: seconds between two lines.
        total: bytes of the whole job; None where nobody knows, and no time left is told.
    """

    def __init__(self, what: str, stream: TextIO | None = None, interval: float = 1.0, total: int | None = None):
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._interval, self._total = interval, total
        self._start = self._last = time.monotonic()
        self._bytes = 0
        self._bar = None
        if self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(desc=what, total=total, file=self._stream, unit="B", unit_scale=True, dynamic_ncols=True)

    def add(self, size: int, items: str) -> None:
        """Adds ``size`` processed bytes; ``items`` describes the items so far."""
        if self._bar is not None:
            self._bar.set_postfix_str(items, refresh=False)
            self._bar.update(size)
            return
        self._bytes += size
        if time.monotonic() - self._last >= self._interval:
            self._last = time.monotonic()
            self._print(items, self._total)

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

    def _print(self, items: str, total: int | None = None) -> None:
        seconds = max(time.monotonic() - self._start, 1e-9)
        megabytes = self._bytes / 1e6
        line = f"{self._what}: {items}, {megabytes:,.1f} MB, {megabytes / seconds:,.1f} MB/s"
        if total is not None and self._bytes:
            line += f", {_clock(seconds / self._bytes * max(total - self._bytes, 0))} left"
        print(line, file=self._stream, flush=True)


class StepProgress:
    """Says how far a job of a known number of steps is, and after the first the time left; a context manager.

    Args:
        what: name of the job.
        total: steps of the whole job.
        unit: what the steps are, in the plural.
        done: steps that were done before.
        stream: where to say it; stderr by default.
        interval: seconds between two lines of a log.
        eager: in a log, the first step and the last have a line in any case.
    """

    def __init__(
        self,
        what: str,
        total: int,
        unit: str,
        done: int = 0,
        stream: TextIO | None = None,
        interval: float = 10.0,
        eager: bool = True,
    ):
        self._what, self._total, self._unit = what, total, unit
        self._stream = sys.stderr if stream is None else stream
        self._interval, self._eager = interval, eager
        self._done, self._note = done, ""
        self._last = time.monotonic() - (interval if eager else 0)
        # When the first step was done, and how many were then: it alone waits for what is loaded and started.
        self._timed: tuple[float, int] | None = None
        self._bar = None
        if self._stream.isatty() or "ipykernel" in sys.modules:  # a notebook shows tqdm's line, too
            from tqdm import tqdm

            self._bar = tqdm(
                desc=what, total=total, initial=done, unit=f" {unit}", file=self._stream, dynamic_ncols=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the display of a finished or abandoned job; in a terminal the last line stays."""
        if self._bar is not None:
            self._bar.close()

    def advance(self, note: str | None = None, steps: int = 1) -> None:
        """Adds finished steps; ``note`` is their outcome, such as a loss; None keeps the last note."""
        self._done += steps
        self._note = self._note if note is None else note
        if self._bar is not None:
            self._bar.set_postfix_str(self._note, refresh=False)
            self._bar.update(steps)
            return
        now = time.monotonic()
        if self._timed is None:
            self._timed = now, self._done
        if now - self._last >= self._interval or (self._eager and self._done >= self._total):
            self._last = now
            self._print(now - self._timed[0], self._done - self._timed[1])

    def say(self, text: str) -> None:
        """One line above the bar, or in the log."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            print(text, file=self._stream, flush=True)

    def _print(self, seconds: float, made: int) -> None:
        left = f"{_clock(seconds / made * max(self._total - self._done, 0))} left" if made else ""
        parts = [f"{self._done:,} of {self._total:,} {self._unit}", self._note, left]
        print(f"{self._what}: {', '.join(filter(None, parts))}", file=self._stream, flush=True)


def shown(items: Iterable[_Item], what: str, total: int, unit: str, done: int = 0) -> Iterator[_Item]:
    """Items as they come, each of which is a step of a :class:`StepProgress`; a short job leaves no line in a log."""
    with StepProgress(what, total, unit, done, eager=False) as progress:
        for item in items:
            yield item
            progress.advance()


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))
