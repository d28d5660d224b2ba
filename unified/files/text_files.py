"""Text files, compressed or not, as chunks of whole lines."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from unified.errors import UnifiedError
from unified.files.decompression import Damaged, Decompressed, TooDense, TooMuchMemory

#: Bytes of text that are read, and sent to another process, at once.
CHUNK_BYTES = 1 << 20
#: Most bytes of a chunk: memory for all of them is taken before the first is read.
MOST_CHUNK_BYTES = 1 << 30
#: A longer line is a mistake (another kind of file, a missing newline) and would fill the memory.
LONGEST_LINE_BYTES = 1 << 28
#: Longest line of a compressed file; a small one can hold a line of any length.
LONGEST_COMPRESSED_LINE_BYTES = 1 << 24
#: Programs of Windows begin a file of UTF-8 with it.
BYTE_ORDER_MARK = "\ufeff"
#: First bytes of files that are no text, whatever their names.
_BEGINNINGS = {
    b"\x1f\x8b": "compressed by gzip, which a name with .gz says",
    b"\xfd7zXZ\x00": "compressed by xz, which a name with .xz says",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard, which a name with .zst says",
    b"BZh": "compressed by bzip2; unpack it",
    b"PK\x03\x04": "a zip archive, such as an .xlsx or a .docx",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF file",
    b"SQLite format 3": "a database",
}


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of a file.

    It goes to other processes as bytes, and is decoded where it is used.

    Attributes:
        path: the file, as the user wrote it.
        first_line: number of the first line, from 1.
        data: the uncompressed text, UTF-8.
    """

    path: str
    first_line: int
    data: bytes

    @property
    def size(self) -> int:
        """Bytes of the uncompressed text."""
        return len(self.data)

    @property
    def count(self) -> int:
        """Number of lines."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends, a line feed or, in files of Windows, a carriage return and a line feed.

        Raises:
            UnifiedError: they are not UTF-8.
        """
        text = self._decoded()
        if self.first_line == 1:
            text = text.removeprefix(BYTE_ORDER_MARK)
        # Not splitlines(): that would cut at form feeds and Unicode line separators too.
        return lines_of(text.removesuffix("\n"))

    def divided(self, line: int) -> tuple[Chunk, Chunk]:
        """The lines before one of its lines, counted from 0, and those from there on."""
        cut = sum(len(own) + 1 for own in self.data.split(b"\n")[:line])  # one too many where the last has no end
        return replace(self, data=self.data[:cut]), Chunk(self.path, self.first_line + line, self.data[cut:])

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "lines"}

    def _decoded(self) -> str:
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            _require_text(self.path, self.data if self.first_line == 1 else b"")
            line = self.first_line + self.data.count(b"\n", 0, error.start)
            column = error.start - self.data.rfind(b"\n", 0, error.start)
            raise UnifiedError(
                f"{self.path}, line {line}: not UTF-8 (byte {self.data[error.start]:#04x} at byte {column} of the "
                "line); convert the file to UTF-8"
            ) from None


class LineReader:
    """Reads chunks of lines from one file or stream, never the whole of it.

    Args:
        path: a file of UTF-8 text, plain or ``.gz``, ``.xz``, ``.zst``; of a stream what messages call it.
        chunk_bytes: bytes of a chunk; it is read on to the end of its last line.
        stream: what is read in place of a file that is opened here.

    Raises (here and from the methods):
        UnifiedError: ``chunk_bytes`` is below 1 or above :data:`MOST_CHUNK_BYTES`, there is no such file, its
            compressed data are damaged, or a line is longer than :data:`LONGEST_LINE_BYTES` (of a
            compressed file, :data:`LONGEST_COMPRESSED_LINE_BYTES`).
    """

    def __init__(self, path: str, chunk_bytes: int = CHUNK_BYTES, stream: BinaryIO | None = None):
        if not 1 <= chunk_bytes <= MOST_CHUNK_BYTES:  # a read of 0 bytes looks like the end of the file
            raise UnifiedError(f"--chunk-bytes must be from 1 to {MOST_CHUNK_BYTES}, got {chunk_bytes}")
        self.path, self.chunk_bytes = path, chunk_bytes
        if stream is None:
            require_file(path)
        self._stream = stream or _open(path)
        self._next_line = 1

    def chunks(self) -> Iterator[Chunk]:
        """The rest of the file in chunks, cut at line ends; the cuts depend on the file and ``chunk_bytes`` alone."""
        while chunk := self._chunk(self._read_chunk()):
            yield chunk

    def take(self, count: int) -> Chunk | None:
        """The next ``count`` lines, fewer at the end of the file, None there."""
        return self._chunk(self._read(lambda: b"".join(islice(iter(self._read_line, b""), count))))

    def _chunk(self, data: bytes) -> Chunk | None:
        if not data:
            return None
        chunk = Chunk(self.path, self._next_line, data)
        self._next_line += chunk.count
        return chunk

    def _read_chunk(self) -> bytes:
        data = self._read(lambda: self._stream.read(self.chunk_bytes))
        if data and not data.endswith(b"\n"):
            data += self._read(self._read_line)
        return data

    def _read_line(self) -> bytes:
        longest = longest_line(self.path)
        line = self._stream.readline(longest)
        if len(line) == longest:
            unpack = ", or unpack the file first" if is_compressed(self.path) else ""
            raise UnifiedError(
                f"{self.path}: a line after line {self._next_line} is longer than {longest >> 20} MiB; "
                f"write one sentence or paragraph a line{unpack}"
            )
        return line

    def _read(self, read: Callable[[], bytes]) -> bytes:
        return _undamaged(self.path, read)


def text_pieces(path: str, piece_bytes: int = CHUNK_BYTES) -> Iterator[str]:
    """The text of a file in pieces of about ``piece_bytes``, cut anywhere; line ends do not change.

    Raises:
        UnifiedError: there is no such file, it is not UTF-8, or its compressed data are damaged.
    """
    require_file(path)
    decoder, line = codecs.getincrementaldecoder("utf-8-sig")(), 1
    beginning = b""
    with _open(path) as stream:
        data = b"..."
        while data:
            data = _undamaged(path, lambda: stream.read(piece_bytes))
            beginning = beginning or data
            try:
                piece = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                _require_text(path, beginning)
                found = error.object[error.start]
                raise UnifiedError(f"{path}: not UTF-8 (byte {found:#04x} behind line {line}); convert it") from None
            line += piece.count("\n")
            if piece:
                yield piece


def lines_of(text: str) -> list[str]:
    """Lines of a text, which end at line feeds, without the carriage returns that Windows writes before these."""
    lines = text.split("\n")
    return [line.rstrip("\r") for line in lines] if "\r" in text else lines


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Lines of a file without their ends, and their numbers from 1.

    Raises:
        UnifiedError: there is no such file, or it is not UTF-8.
    """
    for chunk in LineReader(str(path)).chunks():
        yield from enumerate(chunk.lines, chunk.first_line)


def known_beginning(data: bytes) -> str | None:
    """Returns what a file that begins with these bytes is, if that is no text; None where nothing is known."""
    return next((what for beginning, what in _BEGINNINGS.items() if data.startswith(beginning)), None)


def _require_text(path: str, data: bytes) -> None:
    what = known_beginning(data)
    if what is not None:
        raise UnifiedError(f"{path}: not text but {what}")


def require_file(path: str) -> None:
    """Raises UnifiedError where ``path`` is not a file."""
    if not Path(path).exists():
        raise UnifiedError(f"{path}: no such file")
    if Path(path).is_dir():
        within = sorted(one.name for one in Path(path).iterdir() if one.is_file() and not one.name.startswith("."))
        inside = f"name its files, such as {Path(path) / within[0]}" if within else "there is no file in it"
        raise UnifiedError(f"{path}: a folder, not a file; {inside}")
    if not Path(path).is_file():
        raise UnifiedError(f"{path}: not a file; name a file")


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, by its name."""
    return without_compression(path) != path


def longest_line(path: str) -> int:
    """Most bytes that a line of a file may have."""
    return LONGEST_COMPRESSED_LINE_BYTES if is_compressed(path) else LONGEST_LINE_BYTES


def without_compression(path: str) -> str:
    """``path`` without ``.gz``, ``.xz`` or ``.zst``."""
    stem, dot, suffix = path.rpartition(".")
    return stem if dot and suffix in ("gz", "xz", "zst") else path


def _undamaged(path: str, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except (EOFError, Damaged) as error:
        raise UnifiedError(f"{path}: the compressed data are damaged or cut off ({error})") from None
    except (TooDense, TooMuchMemory) as error:
        raise UnifiedError(f"{path}: {error}") from None


def _open(path: str) -> io.BufferedIOBase:
    stream = open(path, "rb")
    suffix = path.rpartition(".")[2]
    return io.BufferedReader(Decompressed(stream, suffix), CHUNK_BYTES) if is_compressed(path) else stream
