"""Stages of a pipeline over passages: each one reads the files of others, resumes where it stopped, and appears whole.

A stage writes one JSON object for each passage, a line each, in chunks of as many lines. An interrupted stage goes on
behind the last whole chunk, so that models see the same batches as in a run without a break.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from unified.errors import UnifiedError
from unified.files.json_text import NotJson, parse_json
from unified.files.whole import open_output, to_disk, whole_file
from unified.runtime.progress import StepProgress

Row = dict[str, Any]


@dataclass(frozen=True)
class Stages:
    """A folder in which each stage of a pipeline writes a file.

    Attributes:
        folder: where they write.
        chunk: passages of a chunk.
    """

    folder: Path
    chunk: int

    def path(self, name: str) -> Path:
        """The output of a stage; it is there when the stage is done."""
        return self.folder / f"{name}.jsonl"

    def rows(self, *names: str) -> Iterator[tuple[Row, ...]]:
        """Rows that some stages wrote for each passage.

        Raises:
            UnifiedError: a file is damaged, or the files have different numbers of rows.
        """
        with ExitStack() as stack:
            streams = [stack.enter_context(self.path(name).open("rb")) for name in names]
            try:
                for lines in zip(*streams, strict=True):
                    yield tuple(parse_json(line.decode(), nan=True) for line in lines)
            except (ValueError, NotJson):  # files of different lengths, or no UTF-8; a line that is no JSON
                raise UnifiedError(
                    f"{self.folder}: {', '.join(names)} are damaged; remove them to make them anew"
                ) from None

    def first(self, name: str, rows: Callable[[], Sequence[Row]]) -> None:
        """Writes the stage that others read, all of whose rows come at once, unless it is done."""
        if self.path(name).exists():
            return
        found = rows()
        with whole_file(self.path(name)) as stream:
            _write(stream, found)

    def run(self, name: str, inputs: Sequence[str], work: Callable[[list[tuple[Row, ...]]], list[Row]]) -> None:
        """Runs a stage, unless it is done.

        Args:
            inputs: stages that are read.
            work: their rows for the passages of a chunk -> a row for each. It depends on nothing else.
        """
        if self.path(name).exists():
            return
        total, partial = _lines(self.path(inputs[0])), self._partial(name)
        done = _keep_whole_chunks(partial, self.chunk)
        rows = islice(self.rows(*inputs), done, None)
        with (
            open_output(partial, "a", self.path(name)) as stream,
            StepProgress(name, total, "passages", done) as progress,
        ):
            while chunk := list(islice(rows, self.chunk)):
                _write(stream, work(chunk))
                to_disk(stream)
                progress.advance(steps=len(chunk))
        partial.replace(self.path(name))

    def _partial(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl.partial"


def _lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(1 for _ in stream)


def _write(stream: BinaryIO, rows: Sequence[Row]) -> None:
    stream.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def _keep_whole_chunks(path: Path, chunk: int) -> int:
    """Lines of a file, whose last chunk is taken away where it is not whole."""
    if not path.exists():
        return 0
    lines = size = kept = kept_size = 0
    with path.open("rb") as stream:
        for line in stream:
            if not line.endswith(b"\n"):
                break
            lines, size = lines + 1, size + len(line)
            if lines % chunk == 0:
                kept, kept_size = lines, size
    os.truncate(path, kept_size)
    return kept
