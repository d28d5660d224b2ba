"""The training, validation and test split of a prepared folder, written as their chunks arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from unified.arguments import counted
from unified.corpus.encode import EncodedDocuments, EncodedPairs
from unified.corpus.items import Items
from unified.data.annotations import columns, span_prefix
from unified.data.token_files import TokenFileWriter, token_dtype
from unified.data.vocabulary import Vocabulary

#: The two languages of a folder of pairs.
SOURCE, TARGET = "source", "target"
_NO_SPANS = np.zeros(0, dtype=np.int32)


class _CountedFile:
    """A token file that knows how often it holds each id."""

    def __init__(self, writer: TokenFileWriter, vocabulary: Vocabulary):
        self._writer = writer
        self._special = vocabulary.special
        self.counts = np.zeros(len(vocabulary), dtype=np.int64)

    def add(self, items: Items) -> None:
        self._writer.add_many(items.tokens, items.sizes)
        self.counts += np.bincount(items.tokens, minlength=len(self.counts))

    @property
    def items(self) -> int:
        return self._writer.items

    @property
    def statistics(self) -> dict[str, int]:
        """Tokens without ``</s>``, and how many of them are unknown."""
        tokens = self._writer.tokens - int(self.counts[self._special.separator])
        return {"tokens": tokens, "unknown": int(self.counts[self._special.unknown])}


class _SplitWriter:
    """The token files of a split and, for each kind of annotations, one of spans beside the first.

    All are complete when its ``with`` block ends without an exception.

    Attributes:
        skipped: rows or pairs that were left out because they hold no text, for the statistics.
    """

    def __init__(self, prefixes: Sequence[Path], vocabulary: Vocabulary, kinds: tuple[str, ...]):
        dtype = token_dtype(len(vocabulary))
        with ExitStack() as writers:
            opened = [writers.enter_context(TokenFileWriter(prefix, dtype)) for prefix in prefixes]
            self._files = [_CountedFile(writer, vocabulary) for writer in opened]
            spans = {kind: TokenFileWriter(span_prefix(prefixes[0], kind), np.int32) for kind in kinds}
            self._spans = {kind: writers.enter_context(writer) for kind, writer in spans.items()}
            self._writers = writers.pop_all()
        self.skipped = 0

    @property
    def counts(self) -> np.ndarray:
        """int64 (V,), how often each id occurs in all token files."""
        return np.sum([file.counts for file in self._files], axis=0)

    def _with_spans(self, counts: dict[str, Any]) -> dict[str, Any]:
        spans = {kind: writer.tokens // columns(kind) for kind, writer in self._spans.items()}
        return {**counts, "spans": spans} if spans else counts

    def _add_spans(self, spans: Mapping[str, Items]) -> None:
        for kind, writer in self._spans.items():
            writer.add_many(spans[kind].tokens, spans[kind].sizes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writers.__exit__(error_type, error, traceback)


class DocumentSplitWriter(_SplitWriter):
    """``NAME.bin`` and ``NAME.idx`` in ``folder``; with ``kinds`` of annotations also ``NAME.KIND.*``."""

    def __init__(self, folder: Path, name: str, vocabulary: Vocabulary, kinds: tuple[str, ...] = ()):
        super().__init__([folder / name], vocabulary, kinds)
        (self._file,) = self._files
        self._separator = np.array([vocabulary.special.separator])
        self._documents = 0
        self._last: int | None = None

    def add(self, encoded: EncodedDocuments) -> None:
        """Append documents; the first may go on with the one that was last."""
        self._documents += encoded.documents
        if self._last == encoded.first:
            self._documents -= 1
        elif self._last is not None:
            self._file.add(Items(self._separator, np.array([1])))
            for writer in self._spans.values():
                writer.add(_NO_SPANS)
        self._last = encoded.last
        self._file.add(encoded.items)
        self._add_spans(encoded.spans)

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts for the manifest."""
        separators = max(self._documents - 1, 0)
        counts = {"documents": self._documents, "skipped": self.skipped, "sentences": self._file.items - separators}
        return self._with_spans(counts | self._file.statistics)

    @property
    def summary(self) -> str:
        """Numbers of written documents and tokens, as text for the log."""
        return f"{counted(self._documents, 'document')}, {counted(self._file.statistics['tokens'], 'token')}"


class PairSplitWriter(_SplitWriter):
    """``NAME.source-target.source.*`` and ``….target.*`` in ``folder``; with ``kinds`` also ``….source.KIND.*``."""

    def __init__(self, folder: Path, name: str, vocabulary: Vocabulary, kinds: tuple[str, ...] = ()):
        super().__init__([folder / f"{name}.{SOURCE}-{TARGET}.{side}" for side in (SOURCE, TARGET)], vocabulary, kinds)
        self._source, self._target = self._files

    def add(self, encoded: EncodedPairs) -> None:
        """Append pairs."""
        self._source.add(encoded.source)
        self._target.add(encoded.target)
        self._add_spans(encoded.spans)
        self.skipped += encoded.skipped

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts for the manifest."""
        sides = {SOURCE: self._source.statistics, TARGET: self._target.statistics}
        return self._with_spans({"pairs": self._source.items, "skipped": self.skipped, **sides})

    @property
    def summary(self) -> str:
        """Numbers of written pairs and tokens, as text for the log."""
        tokens = sum(file.statistics["tokens"] for file in self._files)
        return f"{counted(self._source.items, 'pair')}, {counted(tokens, 'token')}"
