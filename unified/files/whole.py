"""Files that are whole or not there, whenever the process is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a new file that takes the place of ``path`` when the block ends; where the block fails, ``path`` stays.

    It is written beside ``path``, brought to the disk, and renamed. So a kill at any moment leaves the old file or the
    new one at ``path``, never a part; beside it may be left ``.NAME.PROCESS.partial``.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as stream:
            yield stream
            to_disk(stream)
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):  # of a disk that does not let anything be removed, either; the first error says more
            partial.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name must reach the disk, too
    finally:
        os.close(folder)


def write_whole_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all, see :func:`whole_file`."""
    with whole_file(path) as stream:
        stream.write(text.encode("utf-8"))


def to_disk(stream: IO[Any]) -> None:
    """Brings to the disk what was written to a file."""
    stream.flush()
    os.fsync(stream.fileno())
