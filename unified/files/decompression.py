"""Decompression in bounded pieces: no file, however small, makes much memory be taken or reading last for hours."""

from __future__ import annotations

import io
import lzma
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Protocol

import zstandard

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: Compressed bytes that are read at once. What they become is held in memory, of Zstandard at most 64 MiB: each of its
#: blocks takes four bytes or more and gives at most 128 KiB.
_PIECE = 1 << 11
#: Most memory that a file may ask of the decoder: `xz -9` asks for 65 MiB.
_DECODER_BYTES = 1 << 27
#: Parts of the messages by which the libraries refuse a file that asks for more memory.
_REFUSALS_OF_MEMORY = ("Memory usage limit exceeded", "Frame requires too much memory")
#: Text becomes three to ten times smaller. Denser files are refused.
DENSEST = 25
#: Bytes of a file before its density counts.
_COUNTED_FROM = 16 << 20


class Damaged(Exception):
    """Compressed data are not what they should be."""


class TooDense(Exception):
    """Compressed data hold more than :data:`DENSEST` times as many bytes, as no text does."""


class TooMuchMemory(Exception):
    """Compressed data want more than :data:`_DECODER_BYTES` of memory to be decompressed."""


class _Decoder(Protocol):
    """One frame or member of compressed data."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


#: Ending of a file's name -> what decodes one frame of it.
_DECODERS: dict[str, Callable[[], _Decoder]] = {
    "gz": lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS),
    "xz": lambda: lzma.LZMADecompressor(memlimit=_DECODER_BYTES),
    "zst": lambda: zstandard.ZstdDecompressor(max_window_size=_DECODER_BYTES).decompressobj(),
}


class Decompressed(io.RawIOBase):
    """The bytes of compressed frames one after another.

    Unlike the readers of the libraries it refuses a frame that is cut off, and bounds what a piece of input becomes.

    Args:
        stream: is closed with this one.
        suffix: "gz", "xz" or "zst".

    Raises (from the methods):
        EOFError: the last frame is cut off, or there is none.
        Damaged: the data are damaged, or are not compressed so.
        TooDense: they hold too much.
        TooMuchMemory: decompressing them would take too much memory.
    """

    def __init__(self, stream: BinaryIO, suffix: str):
        self._stream, self._new_decoder = stream, _DECODERS[suffix]
        self._frame: _Decoder | None = None
        self._input = b""
        self._output = memoryview(b"")
        self._taken = self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer as far as the next piece goes; 0 at the end of the file."""
        wanted = memoryview(buffer)
        while not self._output:
            if not self._fill():
                return 0
        count = min(len(wanted), len(self._output))
        wanted[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def _fill(self) -> bool:
        """Decompress some more; False at the end of the file."""
        if not self._input:
            self._input = self._stream.read(_PIECE)
            self._taken += len(self._input)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("the file ends inside a compressed frame")
                if not self._taken:
                    raise EOFError("the file is empty")  # of an empty text the compressed form is not
                return False
        if self._frame is None:
            self._input = self._input.lstrip(b"\0")  # frames may be padded
            if not self._input:
                return True
            self._frame = self._new_decoder()
        try:
            self._output = memoryview(self._frame.decompress(self._input))
        except (EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError) as error:
            said = str(error) or type(error).__name__
            if any(refusal in said for refusal in _REFUSALS_OF_MEMORY):
                raise TooMuchMemory(f"needs more than {_DECODER_BYTES >> 20} MiB to unpack; unpack it first") from None
            raise Damaged(said) from None
        self._given += len(self._output)
        if self._given > max(_COUNTED_FROM, DENSEST * self._taken):
            raise TooDense(
                f"holds more than {DENSEST} times as many bytes as the compressed file, as no text does; unpack it "
                "first if this is what it should be"
            )
        self._input = b""
        if self._frame.eof:
            self._input = self._frame.unused_data
            self._frame = None
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()
