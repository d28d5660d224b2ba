"""Output files: whole or not there, whenever the process is killed; errors of the system say which one it is."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

from unified.errors import UnifiedError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a new file that takes the place of ``path`` when the block ends; where the block fails, ``path`` stays.

    It is written beside ``path``, brought to the disk, and renamed. So a kill at any moment leaves the old file or the
    new one at ``path``, never a part; beside it may be left ``.NAME.PROCESS.partial``. Where ``path`` is a symbolic
    link, the link stays, and all this happens to what it leads to.

    Raises:
        UnifiedError: ``path`` is a folder, a device or a pipe, in whose place no file may come, or a link that leads
            back to itself.
        OSError: the file cannot be written; its ``filename`` is ``path``.
    """
    if path.exists() and not path.is_file():
        raise UnifiedError(f"{path}: a folder, a device or a pipe, which would be replaced; name a file")
    target = resolved(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with open_output(partial, name=path) as stream:
            yield stream
            to_disk(stream)
        with naming_output(path):
            os.replace(partial, target)
    except BaseException:
        with suppress(OSError):  # of a disk that does not let anything be removed, either; the first error says more
            partial.unlink()
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name must reach the disk, too
    finally:
        os.close(folder)


def write_whole_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all, see :func:`whole_file`."""
    write_whole_bytes(path, text.encode("utf-8"))


def write_whole_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, see :func:`whole_file`."""
    with whole_file(path) as stream:
        stream.write(content)


def open_output(path: Path, mode: Literal["w", "a"] = "w", name: Path | None = None) -> io.BufferedWriter:
    """Opens a file that is written in place: anew ("w") or behind what it holds ("a").

    Args:
        name: what the user calls the file; ``path`` where it is None.

    Raises (here and from its methods):
        OSError: the file cannot be written; its ``filename`` is ``name``.
    """
    return io.BufferedWriter(_NamedFile(path, mode, path if name is None else name))


def resolved(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a file or folder, which need not be there, without symbolic links.

    Raises:
        UnifiedError: a link leads back to itself.
    """
    found = Path(os.path.realpath(path))
    try:
        found.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnifiedError(f"{os.fspath(path)}: a symbolic link that leads back to itself") from None
    return found


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
    with naming_output(stream.name):
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def naming_output(name: str | os.PathLike[str]) -> Iterator[None]:
    """A ``with`` block in which errors of the system name a file; of writing, the system does not say which one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = os.fspath(name)
        raise


class _NamedFile(io.FileIO):
    """An output file whose errors name it as the user calls it."""

    def __init__(self, file: Path, mode: str, name: Path):
        with naming_output(name):
            super().__init__(file, mode)
        self.name = os.fspath(name)

    def write(self, content: Any, /) -> int:
        """Write bytes."""
        with naming_output(self.name):
            return super().write(content)
