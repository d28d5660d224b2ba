"""Files that are whole or not there, whenever the process is killed."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from unified.errors import UnifiedError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a new file that takes the place of ``path`` when the block ends; where the block fails, ``path`` stays.

    It is written beside ``path``, brought to the disk, and renamed. So a kill at any moment leaves the old file or the
    new one at ``path``, never a part; beside it may be left ``.NAME.PROCESS.partial``.

    Raises:
        OSError: the file cannot be written; its ``filename`` is ``path``.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with io.BufferedWriter(_NamedFile(partial, path)) as stream:
            yield stream
            to_disk(stream)
        with _naming(path):
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


def require_new(path: Path, overwrite: bool) -> None:
    """Refuse, before any work, to write a file that exists, unless it may be replaced.

    Raises:
        UnifiedError: names the file.
    """
    if path.exists() and not overwrite:
        raise UnifiedError(f"{path}: exists already; --overwrite replaces it, or give another --output")


def to_disk(stream: IO[Any]) -> None:
    """Brings to the disk what was written to a file.

    Raises:
        OSError: the disk does not take it; its ``filename`` is the name of the file.
    """
    with _naming(stream.name):
        stream.flush()
        os.fsync(stream.fileno())


class _NamedFile(io.FileIO):
    """A new file whose errors name another one, in whose place it is written."""

    def __init__(self, file: Path, name: Path):
        with _naming(name):
            super().__init__(file, "w")
        self.name = os.fspath(name)

    def write(self, content: Any, /) -> int:
        """Write bytes."""
        with _naming(self.name):
            return super().write(content)


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """A ``with`` block in which errors of the system name a file; of writing, the system does not say which one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = os.fspath(path)
        raise
