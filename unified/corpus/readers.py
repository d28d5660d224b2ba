"""Corpora as chunks of paragraphs or of pairs, small enough to send to a worker process.

A corpus is a list of files. Reading is split in two: ``chunks()`` runs in one process and cuts the files into chunks,
which depend on the files alone; ``chunk.documents()`` or ``chunk.pairs()`` does the parsing, in any process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from unified.corpus.raw_text import RawTextReader
from unified.data.annotations import ORACLE, SENTENCES, source_spans
from unified.errors import Problems, UnifiedError, require_fields
from unified.files.json_files import LONE_SURROGATE
from unified.files.text_files import CHUNK_BYTES, Chunk, LineReader, without_compression

#: Where documents are read whole, a longer one is a mistake (no blank lines) and would fill the memory.
LONGEST_DOCUMENT_BYTES = 1 << 28
_Read = TypeVar("_Read")
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")

#: Number, source and target. A source may be a list of parts.
Pair = tuple[int, str | list[str], str]
#: Characters of a source by kind, see :func:`unified.data.annotations.source_spans`.
SourceSpans = dict[str, list[tuple[int, int]]]


class DocumentChunk(Protocol):
    """What is encoded as documents: a :class:`TextChunk`, a :class:`JsonChunk`, or what cleaning makes of one."""

    def documents(self) -> Iterable[tuple[int, list[str]]]:
        """(number, paragraphs) of each document that has a paragraph here."""
        ...

    @property
    def size(self) -> int:
        """Bytes of text."""
        ...


@dataclass(frozen=True)
class TextChunk:
    """Lines of raw text, one paragraph each; blank lines end documents.

    ``first_document`` is the number of the document that the first paragraph belongs to.
    """

    raw: Chunk
    first_document: int

    def documents(self) -> Iterator[tuple[int, list[str]]]:
        """(number, paragraphs) of each document that has a paragraph here."""
        document, paragraphs = self.first_document, []
        for line in self.raw.lines:
            if not _is_blank(line):
                paragraphs.append(line)
            elif paragraphs:
                yield document, paragraphs
                document, paragraphs = document + 1, []
        if paragraphs:
            yield document, paragraphs

    @property
    def size(self) -> int:
        """Bytes of text."""
        return self.raw.size


@dataclass(frozen=True)
class JsonChunk:
    """JSON lines, one document each, whose paragraphs are the lines of its text; a document's number counts lines."""

    raw: Chunk
    first_document: int
    text_field: str

    def documents(self) -> Iterator[tuple[int, list[str]]]:
        """(number, paragraphs) of each document, as :meth:`TextChunk.documents` gives them."""
        for offset, text in _records(self.raw, lambda line, record: _text_field(line, record, self.text_field)):
            paragraphs = [line for line in text.split("\n") if not _is_blank(line)]
            if paragraphs:
                yield self.first_document + offset, paragraphs

    @property
    def size(self) -> int:
        """Bytes of the lines in this chunk."""
        return self.raw.size


@dataclass(frozen=True)
class PairChunk:
    """Two chunks with the same number of lines; a pair is the same line of both."""

    source: Chunk
    target: Chunk
    first_pair: int

    def pairs(self) -> Iterator[tuple[int, str, str]]:
        """(number, source, target) of each pair."""
        for offset, (source, target) in enumerate(zip(self.source.lines, self.target.lines, strict=True)):
            yield self.first_pair + offset, source, target

    def location(self, number: int, side: str) -> str:
        """Where pair ``number`` has its "source" or "target", for messages."""
        return _location(self.source if side == "source" else self.target, number - self.first_pair)

    @property
    def size(self) -> int:
        """Bytes of both sides of this chunk."""
        return self.source.size + self.target.size


@dataclass(frozen=True)
class JsonPairChunk:
    """JSON lines with one pair each, whose source may be a list of parts; a pair's number counts lines."""

    raw: Chunk
    first_pair: int
    source_field: str
    target_field: str

    def pairs(self) -> Iterator[Pair]:
        """(number, source, target) of each pair, as :meth:`PairChunk.pairs` gives them."""
        for offset, (source, target) in _records(self.raw, self._pair):
            yield self.first_pair + offset, source, target

    def pairs_with_spans(self) -> Iterator[tuple[int, str, str, SourceSpans]]:
        """(number, source, target, spans of the source), see :func:`unified.data.annotations.source_spans`."""
        for offset, (source, target, spans) in _records(self.raw, self._pair_with_spans):
            yield self.first_pair + offset, source, target, spans

    def _pair(self, line: str, record: dict[str, Any]) -> tuple[str | list[str], str]:
        require_fields(record, self.source_field, self.target_field)
        return _parts_field(line, record, self.source_field), _text_field(line, record, self.target_field)

    def _pair_with_spans(self, line: str, record: dict[str, Any]) -> tuple[str, str, SourceSpans]:
        source, target = self._pair(line, record)
        try:
            spans = source_spans(source, record.get(SENTENCES), record.get(ORACLE))
        except ValueError as error:
            raise UnifiedError(f"{error}; make it with `unified pairs --oracle`") from None
        assert isinstance(source, str)  # one of several parts has no spans
        return source, target, spans

    def location(self, number: int, side: str) -> str:
        """Line and field of one side of a pair, for messages, as :meth:`PairChunk.location` names them."""
        field = self.source_field if side == "source" else self.target_field
        return f"{_location(self.raw, number - self.first_pair)}, field {field!r}"

    @property
    def size(self) -> int:
        """Bytes of the lines in this chunk."""
        return self.raw.size


@dataclass(frozen=True)
class DocumentCorpus:
    """Files of raw text or of JSON lines (their names say which); a document never spans two files."""

    paths: tuple[str, ...]
    text_field: str = "text"
    chunk_bytes: int = CHUNK_BYTES

    def chunks(self, whole_documents: bool = False) -> Iterator[TextChunk | JsonChunk]:
        """Chunks of ``chunk_bytes``; with ``whole_documents`` none divides a document, and raw text makes longer ones.

        Raises:
            UnifiedError: a document is longer than :data:`LONGEST_DOCUMENT_BYTES`, where it has to be whole.
        """
        document = 0
        for path in self.paths:
            inside = False  # does the last line read belong to document number `document`?
            chunks = (LineReader if is_json(path) else RawTextReader)(path, self.chunk_bytes).chunks()
            for chunk in _at_blank_lines(chunks) if whole_documents and not is_json(path) else chunks:
                if is_json(path):
                    yield JsonChunk(chunk, document, self.text_field)
                    document += chunk.count
                    continue
                if inside and _is_blank(chunk.lines[0]):
                    document, inside = document + 1, False
                yield TextChunk(chunk, document)
                document, inside = _last_document(chunk.lines, document, inside)
            document += inside


@dataclass(frozen=True)
class ParallelCorpus:
    """Pairs of files of raw text: line i of a target file belongs to line i of its source file."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    chunk_bytes: int = CHUNK_BYTES

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, those of the sources first."""
        return self.sources + self.targets

    def chunks(self) -> Iterator[PairChunk]:
        """Chunks of pairs, line by line of both sides.

        Raises:
            UnifiedError: the files of a pair differ in their number of lines.
        """
        pair = 0
        for source_path, target_path in zip(self.sources, self.targets, strict=True):
            targets = RawTextReader(target_path)
            lines = 0
            for source in RawTextReader(source_path, self.chunk_bytes).chunks():
                target = targets.take(source.count)
                found = target.count if target else 0
                if target is None or found < source.count:
                    raise UnifiedError(
                        f"{target_path}: ends after line {lines + found}, but {source_path} goes on; "
                        "parallel files need the same number of lines"
                    )
                yield PairChunk(source, target, pair)
                lines += found
                pair += found
            if targets.take(1):
                raise UnifiedError(
                    f"{source_path}: ends after line {lines}, but {target_path} goes on; "
                    "parallel files need the same number of lines"
                )


@dataclass(frozen=True)
class JsonPairCorpus:
    """Files of JSON lines whose objects hold a source and a target."""

    paths: tuple[str, ...]
    source_field: str
    target_field: str
    chunk_bytes: int = CHUNK_BYTES

    def chunks(self) -> Iterator[JsonPairChunk]:
        """Chunks of consecutive lines, file after file; each knows the number of its first pair."""
        pair = 0
        for path in self.paths:
            for chunk in LineReader(path, self.chunk_bytes).chunks():
                yield JsonPairChunk(chunk, pair, self.source_field, self.target_field)
                pair += chunk.count


def is_json(path: str) -> bool:
    """True where the name says JSON lines, compressed or not."""
    return without_compression(path).endswith(_JSON_SUFFIXES)


def _is_blank(line: str) -> bool:
    return not line or line.isspace()


def _at_blank_lines(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The chunks of a file cut anew, so that a blank line ends each but the last."""
    held: list[Chunk] = []
    held_bytes = 0
    for chunk in chunks:
        stop = next((i + 1 for i in reversed(range(len(chunk.lines))) if _is_blank(chunk.lines[i])), 0)
        if stop:
            whole, chunk = chunk.divided(stop)
            yield _joined([*held, whole])
            held, held_bytes = [], 0
        if chunk.data:
            held.append(chunk)
            held_bytes += chunk.size
        if held_bytes > LONGEST_DOCUMENT_BYTES:
            raise UnifiedError(
                f"{chunk.path}: the document at line {held[0].first_line} is longer than "
                f"{LONGEST_DOCUMENT_BYTES >> 20} MiB; cleaning looks at whole documents, which blank lines divide"
            )
    if held:
        yield _joined(held)


def _joined(chunks: list[Chunk]) -> Chunk:
    return replace(chunks[0], data=b"".join(chunk.data for chunk in chunks))


def _last_document(lines: list[str], document: int, inside: bool) -> tuple[int, bool]:
    """Number of the document that the next paragraph would belong to, and whether it has begun."""
    for line in lines:
        if not _is_blank(line):
            inside = True
        elif inside:
            document, inside = document + 1, False
    return document, inside


def _location(chunk: Chunk, offset: int) -> str:
    return f"{chunk.path}, line {chunk.first_line + offset}"


def _records(chunk: Chunk, read: Callable[[str, dict[str, Any]], _Read]) -> Iterator[tuple[int, _Read]]:
    """(offset of the line, what is read of its object) of each line that is not blank.

    Args:
        read: of a line and its object; raises UnifiedError with the reason.

    Raises:
        UnifiedError: lines are wrong; after the last line of the chunk, whose wrong lines are named together.
    """
    problems = Problems()
    for offset, line in enumerate(chunk.lines):
        if _is_blank(line):
            continue
        try:
            yield offset, read(line, _record(line))
        except UnifiedError as problem:
            problems.add(_location(chunk, offset), problem)
    behind = f"; nothing behind line {chunk.first_line + chunk.count - 1} was read" if len(problems) > 1 else ""
    if problems:
        raise UnifiedError(f"{problems}{behind}")


def _record(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnifiedError(f"not JSON ({error}); each line holds one object") from None
    if not isinstance(record, dict):
        raise UnifiedError(f"a JSON {type(record).__name__}; each line holds one object")
    return record


def _text_field(line: str, record: dict[str, Any], name: str) -> str:
    require_fields(record, name)
    return _text(line, name, record[name])


def _parts_field(line: str, record: dict[str, Any], name: str) -> str | list[str]:
    """A text, or a list of texts."""
    value = record[name]
    if isinstance(value, list):
        return [_text(line, f"{name}[{i}]", part) for i, part in enumerate(value)]
    return _text(line, name, value)


def _text(line: str, name: str, text: object) -> str:
    if not isinstance(text, str):
        raise UnifiedError(f"field {name!r} is a {type(text).__name__}, not a string")
    # JSON can escape half of a character, which no encoding can write. Only escapes can, so few lines are searched.
    if "\\u" in line and LONE_SURROGATE.search(text):
        raise UnifiedError(f"field {name!r} holds half of a surrogate pair")
    return text
