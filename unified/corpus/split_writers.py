"""The training, validation and test split of a prepared folder, written as their chunks arrive."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

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

    def __init__(self, prefix: Path, vocabulary: Vocabulary):
        self._writer = TokenFileWriter(prefix, token_dtype(len(vocabulary)))
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

    def close(self, is_complete: bool) -> None:
        if is_complete:
            self._writer.finish()
        else:
            self._writer.discard()


class DocumentSplitWriter:
    """``NAME.bin`` and ``NAME.idx`` in ``folder``; complete when its ``with`` block ends without an exception.

    With ``kinds`` of annotations also ``NAME.KIND.bin`` and ``NAME.KIND.idx``.

    Attributes:
        skipped: rows that were left out because they hold no text, for the statistics; the reader counts them.
    """

    def __init__(self, folder: Path, name: str, vocabulary: Vocabulary, kinds: tuple[str, ...] = ()):
        self._file = _CountedFile(folder / name, vocabulary)
        self._separator = np.array([vocabulary.special.separator])
        self._spans = {kind: TokenFileWriter(span_prefix(folder / name, kind), np.int32) for kind in kinds}
        self.skipped = self._documents = 0
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
        for kind, writer in self._spans.items():
            writer.add_many(encoded.spans[kind].tokens, encoded.spans[kind].sizes)

    @property
    def counts(self) -> np.ndarray:
        """int64 (V,), how often each id occurs."""
        return self._file.counts

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts for the manifest."""
        separators = max(self._documents - 1, 0)
        counts = {"documents": self._documents, "skipped": self.skipped, "sentences": self._file.items - separators}
        counts |= self._file.statistics
        spans = {kind: writer.tokens // columns(kind) for kind, writer in self._spans.items()}
        return {**counts, "spans": spans} if spans else counts

    @property
    def summary(self) -> str:
        """Numbers of written documents and tokens, as text for the log."""
        return f"{counted(self._documents, 'document')}, {counted(self._file.statistics['tokens'], 'token')}"

    def __enter__(self) -> DocumentSplitWriter:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close(is_complete=error_type is None)
        for writer in self._spans.values():
            writer.__exit__(error_type, error, traceback)


class PairSplitWriter:
    """``NAME.source-target.source.*`` and ``….target.*`` in ``folder``; otherwise as :class:`DocumentSplitWriter`.

    With ``kinds`` of annotations also ``NAME.source-target.source.KIND.*``.

    Attributes:
        skipped: pairs that were left out because a side is empty.
    """

    def __init__(self, folder: Path, name: str, vocabulary: Vocabulary, kinds: tuple[str, ...] = ()):
        prefixes = {side: folder / f"{name}.{SOURCE}-{TARGET}.{side}" for side in (SOURCE, TARGET)}
        self._files = {side: _CountedFile(prefix, vocabulary) for side, prefix in prefixes.items()}
        self._spans = {kind: TokenFileWriter(span_prefix(prefixes[SOURCE], kind), np.int32) for kind in kinds}
        self.skipped = 0

    def add(self, encoded: EncodedPairs) -> None:
        """Append pairs."""
        self._files[SOURCE].add(encoded.source)
        self._files[TARGET].add(encoded.target)
        for kind, writer in self._spans.items():
            writer.add_many(encoded.spans[kind].tokens, encoded.spans[kind].sizes)
        self.skipped += encoded.skipped

    @property
    def counts(self) -> np.ndarray:
        """int64 (V,), how often each id occurs on both sides."""
        return self._files[SOURCE].counts + self._files[TARGET].counts

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts for the manifest."""
        sides = {side: file.statistics for side, file in self._files.items()}
        spans = {kind: writer.tokens // columns(kind) for kind, writer in self._spans.items()}
        counts = {"pairs": self._files[SOURCE].items, "skipped": self.skipped, **sides}
        return {**counts, "spans": spans} if spans else counts

    @property
    def summary(self) -> str:
        """Numbers of written pairs and tokens, as text for the log."""
        tokens = sum(file.statistics["tokens"] for file in self._files.values())
        return f"{counted(self._files[SOURCE].items, 'pair')}, {counted(tokens, 'token')}"

    def __enter__(self) -> PairSplitWriter:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close(is_complete=error_type is None)
        for writer in self._spans.values():
            writer.__exit__(error_type, error, traceback)
