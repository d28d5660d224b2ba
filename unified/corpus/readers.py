"""Corpora as chunks of paragraphs or of pairs, small enough to send to a worker process.

A corpus is a list of files. Reading is split in two: ``chunks()`` runs in one process and cuts the files into chunks,
which depend on the files alone; ``chunk.documents()`` or ``chunk.pairs()`` does the parsing, in any process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from unified.arguments import has_lone_surrogate
from unified.data.annotations import ORACLE, SENTENCES, source_spans
from unified.errors import EmptyField, MissingField, Problems, UnifiedError
from unified.files.json_files import Fields
from unified.files.raw_text import RawTextReader
from unified.files.rows import Row, RowChunk, has_fields, row_chunks
from unified.files.shapes import kind_of
from unified.files.text_files import CHUNK_BYTES, Chunk, lines_of, longest_line

_Value = TypeVar("_Value")

#: Number, source and target. A source may be a list of parts.
Pair = tuple[int, str | list[str], str]
#: Characters of a source by kind, see :func:`unified.data.annotations.source_spans`.
SourceSpans = dict[str, list[tuple[int, int]]]


class DocumentChunk(Protocol):
    """Input of a document encoder: a :class:`TextChunk`, :class:`RowDocuments`, or either one after cleaning."""

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
class RowDocuments:
    """Rows of a file with fields, one document each, whose paragraphs are the lines of its text.

    A document's number counts the numbers of rows, which for JSON lines are those of lines. Rows without text are left
    out where ``skip_empty`` says so, and refused otherwise.
    """

    chunk: RowChunk
    first_document: int
    text_field: str
    skip_empty: bool

    def documents(self) -> Iterator[tuple[int, list[str]]]:
        """(number, paragraphs) of each document, as :meth:`TextChunk.documents` gives them."""
        for row, text in _read(self.chunk, self._text):
            paragraphs = [line for line in lines_of(text) if not _is_blank(line)]
            if paragraphs:
                yield self.first_document + row.number - self.chunk.first, paragraphs

    def _text(self, fields: Fields) -> str:
        text = _text_field(fields, self.text_field, "--text-field")
        if _is_blank(text) and not self.skip_empty:
            raise UnifiedError(f"{EmptyField(self.text_field)}; --skip-empty leaves such rows out")
        return text

    @property
    def size(self) -> int:
        """Bytes or characters of the rows in this chunk."""
        return self.chunk.size


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
        """Location of the "source" or "target" of pair ``number``, for messages."""
        chunk = self.source if side == "source" else self.target
        return f"{chunk.path}, line {chunk.first_line + number - self.first_pair}"

    @property
    def size(self) -> int:
        """Bytes of both sides of this chunk."""
        return self.source.size + self.target.size


@dataclass(frozen=True)
class RowPairs:
    """Rows of a file with fields, one pair each, whose source may be a list of parts.

    A pair's number counts as that of :class:`RowDocuments`.
    """

    chunk: RowChunk
    first_pair: int
    source_field: str
    target_field: str

    def pairs(self) -> Iterator[Pair]:
        """(number, source, target) of each pair, as :meth:`PairChunk.pairs` gives them."""
        for row, (source, target) in _read(self.chunk, self._pair):
            yield self.first_pair + row.number - self.chunk.first, source, target

    def pairs_with_spans(self) -> Iterator[tuple[int, str, str, SourceSpans]]:
        """(number, source, target, spans of the source), see :func:`unified.data.annotations.source_spans`."""
        for row, (source, target, spans) in _read(self.chunk, self._pair_with_spans):
            yield self.first_pair + row.number - self.chunk.first, source, target, spans

    def _pair(self, fields: Fields) -> tuple[str | list[str], str]:
        source = _parts_field(fields, self.source_field, "--source-field")
        return source, _text_field(fields, self.target_field, "--target-field")

    def _pair_with_spans(self, fields: Fields) -> tuple[str, str, SourceSpans]:
        source, target = self._pair(fields)
        for name in (SENTENCES, ORACLE):
            if name not in fields:
                raise UnifiedError(f"{MissingField(name, list(fields))}; `unified pairs --oracle` adds it")
        try:
            spans = source_spans(source, fields.get(SENTENCES), fields.get(ORACLE))
        except ValueError as error:
            raise UnifiedError(f"{error}; make it with `unified pairs --oracle`") from None
        assert isinstance(source, str)  # one of several parts has no spans
        return source, target, spans

    def location(self, number: int, side: str) -> str:
        """Place and field of one side of a pair, for messages, as :meth:`PairChunk.location` names them."""
        field = self.source_field if side == "source" else self.target_field
        wanted = number - self.first_pair + self.chunk.first
        location = next(row.location for row in self.chunk.rows() if row.number == wanted)
        return f"{self.chunk.path}, {location}, field {field!r}"

    @property
    def size(self) -> int:
        """Bytes or characters of the rows in this chunk."""
        return self.chunk.size


@dataclass(frozen=True)
class DocumentCorpus:
    """Files of raw text, or of rows with a field for the text (their names say which); none shares a document."""

    paths: tuple[str, ...]
    text_field: str = "text"
    chunk_bytes: int = CHUNK_BYTES

    def single_files(self, chunk_bytes: int) -> Iterator[DocumentCorpus]:
        """Each file as a corpus by itself, in other chunks."""
        return (replace(self, paths=(path,), chunk_bytes=chunk_bytes) for path in self.paths)

    def chunks(self, whole_documents: bool = False, skip_empty: bool = False) -> Iterator[TextChunk | RowDocuments]:
        """Chunks of ``chunk_bytes``.

        Args:
            whole_documents: divide no document; chunks of raw text may then be longer.
            skip_empty: leave rows without text out, which are otherwise refused when a chunk is read.

        Raises:
            UnifiedError: a document is longer than a line may be
                (:func:`unified.files.text_files.longest_line`), where it has to be whole.
        """
        document = 0
        for path in self.paths:
            if has_fields(path):
                for rows in row_chunks(path, self.chunk_bytes):
                    yield RowDocuments(rows, document, self.text_field, skip_empty)
                    document += rows.count
                continue
            inside = False  # does the last line read belong to document number `document`?
            chunks = RawTextReader(path, self.chunk_bytes).chunks()
            for chunk in _at_blank_lines(chunks) if whole_documents else chunks:
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

    def single_files(self, chunk_bytes: int) -> Iterator[ParallelCorpus]:
        """Each pair of files as a corpus by itself, in other chunks."""
        pairs = zip(self.sources, self.targets, strict=True)
        return (replace(self, sources=(one,), targets=(other,), chunk_bytes=chunk_bytes) for one, other in pairs)

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
class RowPairCorpus:
    """Files whose rows hold a source and a target, see :mod:`unified.files.rows`."""

    paths: tuple[str, ...]
    source_field: str
    target_field: str
    chunk_bytes: int = CHUNK_BYTES

    def single_files(self, chunk_bytes: int) -> Iterator[RowPairCorpus]:
        """Each file as a corpus by itself, in other chunks."""
        return (replace(self, paths=(path,), chunk_bytes=chunk_bytes) for path in self.paths)

    def chunks(self) -> Iterator[RowPairs]:
        """Chunks of consecutive rows, file after file; each knows the number of its first pair."""
        pair = 0
        for path in self.paths:
            for rows in row_chunks(path, self.chunk_bytes):
                yield RowPairs(rows, pair, self.source_field, self.target_field)
                pair += rows.count


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
        if held_bytes > longest_line(chunk.path):
            raise UnifiedError(
                f"{chunk.path}: the document at line {held[0].first_line} is longer than "
                f"{longest_line(chunk.path) >> 20} MiB; here documents are read whole, and blank lines divide them"
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


def _read(chunk: RowChunk, read: Callable[[Fields], _Value]) -> Iterator[tuple[Row, _Value]]:
    """Each row, and what is read of its fields.

    Args:
        read: raises UnifiedError with the reason for refusing a row.

    Raises:
        UnifiedError: rows are wrong; after the last row of the chunk, whose wrong rows are named together.
    """
    problems = Problems()
    location = ""
    for row in chunk.rows():
        location = row.location
        try:
            yield row, read(row.fields)
        except UnifiedError as problem:
            problems.add(f"{chunk.path}, {location}", problem)
    behind = f"; nothing behind {location} was read" if len(problems) > 1 else ""
    problems.check(behind=behind)


def _text_field(fields: Fields, name: str, option: str) -> str:
    return _text(name, _value(fields, name, option))


def _parts_field(fields: Fields, name: str, option: str) -> str | list[str]:
    """A text, or a list of texts."""
    value = _value(fields, name, option)
    if isinstance(value, list):
        return [_text(f"{name}[{i}]", part) for i, part in enumerate(value)]
    return _text(name, value)


def _value(fields: Fields, name: str, option: str) -> object:
    if name not in fields:
        raise MissingField(name, list(fields), option=option)
    return fields[name]


def _text(name: str, text: object) -> str:
    """A text; null, as data sets have it for a missing one, is empty.

    Raises:
        UnifiedError: it is none, or cannot be written as UTF-8.
    """
    if text is None:
        return ""
    if not isinstance(text, str):
        raise UnifiedError(f"field {name!r} is {kind_of(text)}, not a text")
    if has_lone_surrogate(text):
        raise UnifiedError(f"field {name!r} holds half of a surrogate pair")
    return text
