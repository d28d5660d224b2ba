"""The rules of ``unified prepare --clean`` and the documents they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from unified.corpus.cleaning.language import LanguageFilter
from unified.corpus.cleaning.patterns import strip_noise, strip_paths, strip_urls
from unified.corpus.cleaning.report import Counts, Report
from unified.corpus.cleaning.sentences import split_sentences
from unified.corpus.readers import RowDocuments, TextChunk
from unified.errors import UnifiedError, nearest

if TYPE_CHECKING:
    from unified.corpus.encode import DocumentEncoder, EncodedDocuments

Documents = list[tuple[int, list[str]]]
#: A rule: from the sentences of a document to those that are left of it.
Rule = Callable[[list[str]], list[str]]

#: The set of ANNA's appendix; "language" and the order are ours (it speaks of detection for one of its corpora).
ANNA = "urls,paths,noise,short_sentences=10,short_documents=100,language=en,chunks=300"


@dataclass(frozen=True)
class Cleaning:
    """Rules that clean a text; they apply in the order of these fields, whatever order they are given in.

    Words are what stands between white space. With ``sentences``, ``short_sentences`` or ``chunks``, lines are first
    divided into sentences by :func:`unified.corpus.cleaning.sentences.split_sentences`, and each sentence becomes an
    item; else a line is taken for a sentence and stays one item.

    Attributes:
        urls, paths, noise: strip these from inside the sentences, see :mod:`unified.corpus.cleaning.patterns`.
        sentences: divide lines into sentences, and drop none.
        short_sentences: drop sentences with fewer words.
        short_documents: drop documents that have fewer words now.
        language: drop documents in other languages; an ISO 639-1 code.
        chunks: cut documents into documents of whole sentences and at most so many words, as few as filling each up
            from the start gives; a longer sentence is one by itself.
        overlap: a chunk begins with the last sentences of the chunk before it, as many as have at most so many words
            together and leave room for a sentence of its own; None: chunks have nothing in common.

    Raises:
        UnifiedError: a number is below 1, or ``overlap`` is not below ``chunks``.
    """

    urls: bool = False
    paths: bool = False
    noise: bool = False
    sentences: bool = False
    short_sentences: int | None = None
    short_documents: int | None = None
    language: str | None = None
    chunks: int | None = None
    overlap: int | None = None

    def __post_init__(self) -> None:
        for name in ("short_sentences", "short_documents", "chunks", "overlap"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= 1):
                raise UnifiedError(f"--clean: {name} is a whole number of at least 1, got {value!r}")
        if self.overlap is not None and (self.chunks is None or self.overlap >= self.chunks):
            raise UnifiedError(f"--clean: overlap={self.overlap} needs chunks of more words, got chunks={self.chunks}")

    @classmethod
    def parse(cls, text: str) -> Cleaning:
        """Rules separated by commas: ``urls,short_sentences=10``; ``anna`` is :data:`ANNA`.

        Raises:
            UnifiedError: an unknown rule, a rule given twice, or a value that is missing, superfluous or not a number
                of at least 1.
        """
        settings: dict[str, Any] = {}  # of the types of the fields, as _value reads them
        for entry in ANNA.split(",") if text == "anna" else text.split(","):
            name, equals, value = entry.strip().partition("=")
            if name not in _NAMES:
                raise UnifiedError(
                    f"--clean: no rule {name!r}{nearest(name, _NAMES)}; the rules are {', '.join(_NAMES)}, or anna by "
                    "itself"
                )
            if name in settings:
                raise UnifiedError(f"--clean: {name} is given twice")
            settings[name] = _value(name, bool(equals), value.strip())
        return cls(**settings)

    @property
    def divides_sentences(self) -> bool:
        """True where items are sentences, False where they stay lines."""
        return self.sentences or self.short_sentences is not None or self.chunks is not None

    def rules(self) -> dict[str, Rule]:
        """The rules by name in the order they apply, but for ``chunks`` and ``overlap``.

        Raises:
            UnifiedError: see :class:`unified.corpus.cleaning.language.LanguageFilter`.
        """
        rules: dict[str, Rule] = {}
        sentence_words, document_words = self.short_sentences, self.short_documents
        for name, strip in (("urls", strip_urls), ("paths", strip_paths), ("noise", strip_noise)):
            if getattr(self, name):
                rules[name] = _stripper(strip)
        if sentence_words is not None:
            rules["short_sentences"] = lambda sentences: [s for s in sentences if _words(s) >= sentence_words]
        if document_words is not None:
            rules["short_documents"] = lambda sentences: (
                sentences if sum(map(_words, sentences)) >= document_words else []
            )
        if self.language is not None:
            is_kept = LanguageFilter(self.language)
            rules["language"] = lambda sentences: sentences if is_kept(" ".join(sentences)) else []
        return rules

    def clean(self, documents: Documents) -> tuple[Documents, Report]:
        """Cleans documents given as (number, lines); returns what is left of each, and what was removed.

        Chunks of one document are documents with the same number, one after another.
        """
        divide = split_sentences if self.divides_sentences else _as_one_sentence
        documents = [(number, [sentence for line in lines for sentence in divide(line)]) for number, lines in documents]
        before = entry = Counts.of(documents)
        removed = {}
        for name, rule in self.rules().items():
            documents = [(number, kept) for number, sentences in documents if (kept := rule(sentences))]
            after = Counts.of(documents)
            removed[name], before = before - after, after
        if self.chunks is None:
            return documents, Report(entry, removed, before)
        documents = [
            (number, chunk)
            for number, sentences in documents
            for chunk in _chunks(sentences, self.chunks, self.overlap or 0)
        ]
        return documents, Report(entry, removed, before, len(documents))


@dataclass(frozen=True)
class CleanedChunk:
    """A chunk of whole documents, which the receiving process cleans."""

    chunk: TextChunk | RowDocuments
    cleaning: Cleaning

    def documents(self) -> Documents:
        """(number, sentences) of each document that is left."""
        return self.clean()[0]

    def clean(self) -> tuple[Documents, Report]:
        """Cleans the documents of the chunk with :meth:`Cleaning.clean`."""
        return self.cleaning.clean(list(self.chunk.documents()))

    @property
    def size(self) -> int:
        """Bytes of text."""
        return self.chunk.size


@dataclass(frozen=True)
class CleaningEncoder:
    """Encodes cleaned chunks as ``encoder`` does chunks; the report of their cleaning comes last in the result."""

    encoder: DocumentEncoder

    def __call__(self, chunk: CleanedChunk) -> tuple[int, EncodedDocuments | None, EncodedDocuments | None, Report]:
        documents, report = chunk.clean()
        return chunk.size, *self.encoder.splits(documents), report


_NAMES = tuple(field.name for field in fields(Cleaning))
_SWITCHES = tuple(field.name for field in fields(Cleaning) if field.default is False)


def _value(name: str, is_given: bool, value: str) -> bool | int | str:
    if name in _SWITCHES:
        if is_given:
            raise UnifiedError(f"--clean: {name} takes no value, got {value!r}")
        return True
    if not value:
        raise UnifiedError(f"--clean: {name} needs a value: {name}={'en' if name == 'language' else 'N'}")
    is_number = name != "language" and value.isascii() and value.isdigit()
    return int(value) if is_number else value


def _stripper(strip: Callable[[str], str]) -> Rule:
    return lambda sentences: [kept for sentence in sentences if (kept := strip(sentence))]


def _as_one_sentence(line: str) -> list[str]:
    return [" ".join(line.split())]


def _words(sentence: str) -> int:
    return sentence.count(" ") + 1


def _chunks(sentences: list[str], words: int, overlap: int) -> list[list[str]]:
    """Runs of sentences, see :class:`Cleaning`."""
    sizes, chunks, first = [_words(sentence) for sentence in sentences], [], 0
    while first < len(sentences):
        stop, size = first + 1, sizes[first]
        while stop < len(sentences) and size + sizes[stop] <= words:
            size += sizes[stop]
            stop += 1
        chunks.append(sentences[first:stop])
        if stop == len(sentences):
            break
        # What is repeated leaves room for the next sentence, so that every chunk has one of its own.
        most, first, size = min(overlap, words - sizes[stop]), stop, 0
        while size + sizes[first - 1] <= most:
            first -= 1
            size += sizes[first]
    return chunks
