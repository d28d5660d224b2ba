"""Entries of a file that is one JSON array, read one by one: the file may be larger than the memory."""

from __future__ import annotations

from collections.abc import Iterator

from unified.errors import UnifiedError
from unified.files.json_files import Fields, object_or_error
from unified.files.json_text import NotJson, parse_beginning
from unified.files.text_files import CHUNK_BYTES, longest_line, text_pieces

_BLANKS = " \t\r\n"
#: An error of ``json`` so close to the end of what was read may only mean that more has to be read.
_NEAR_THE_END = 16


def array_entries(
    path: str, piece_bytes: int = CHUNK_BYTES, longest: int | None = None
) -> Iterator[tuple[str, Fields | UnifiedError]]:
    """Place, such as "line 7", and fields of each entry; the error instead of fields where an entry is no object.

    Args:
        piece_bytes: bytes that are read at once.
        longest: most characters of an entry; None for those of a line.

    Raises:
        UnifiedError: the file cannot be read, or is no JSON array, or an entry is longer than a line may be.
    """
    yield from _Array(path, piece_bytes, longest_line(path) if longest is None else longest).entries()


class _Array:
    """The file and how far it was read: ``buffer[position:]`` is what comes next, on line ``line``."""

    def __init__(self, path: str, piece_bytes: int, longest: int):
        self.path, self.pieces, self.longest = path, text_pieces(path, piece_bytes), longest
        self.buffer, self.position, self.line = "", 0, 1

    def entries(self) -> Iterator[tuple[str, Fields | UnifiedError]]:
        sign = self.take("[")
        if self.next_sign() == "]":
            sign = self.take("]")
        while sign != "]":
            self.next_sign()
            location = f"line {self.line}"
            yield location, object_or_error(self.value())
            sign = self.take(",]")
        if self.next_sign():
            raise self.wrong("something stands behind its end")

    def take(self, signs: str) -> str:
        """The next sign, which must be one of ``signs``."""
        sign = self.next_sign()
        if not sign or sign not in signs:
            raise self.wrong(f"expected {' or '.join(signs)}, got {sign or 'the end of the file'}")
        self.position += 1
        return sign

    def next_sign(self) -> str:
        """The next character that is not blank, which stays where it is; "" at the end of the file."""
        while True:
            while self.position < len(self.buffer) and self.buffer[self.position] in _BLANKS:
                self.line += self.buffer[self.position] == "\n"
                self.position += 1
            if self.position < len(self.buffer):
                return self.buffer[self.position]
            if not self.read_on():
                return ""

    def value(self) -> object:
        """The JSON value that comes next."""
        while True:
            try:
                value, stop = parse_beginning(self.buffer, self.position)
            except NotJson as error:
                at = self.position if error.position is None else error.position
                cut_off = error.reason.startswith("Unterminated") or at >= len(self.buffer) - _NEAR_THE_END
                if cut_off and self.read_on():
                    continue
                self.line += self.buffer.count("\n", self.position, at)
                raise self.wrong(error.reason) from None
            self.line += self.buffer.count("\n", self.position, stop)
            self.position = stop
            return value

    def read_on(self) -> bool:
        """Read about as much again as is left in the buffer, and forget what lies behind; False at the file's end."""
        rest = self.buffer[self.position :]
        if len(rest) > self.longest:
            raise UnifiedError(f"{self.path}, line {self.line}: an entry is longer than {self.longest >> 20} MiB")
        new = next(self.pieces, "")
        while new and len(new) < len(rest) and (piece := next(self.pieces, "")):
            new += piece
        if new:
            self.buffer, self.position = rest + new, 0
        return bool(new)

    def wrong(self, what: str) -> UnifiedError:
        return UnifiedError(f"{self.path}, line {self.line}: not a JSON array of objects: {what}")
