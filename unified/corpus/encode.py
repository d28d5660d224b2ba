"""Chunks of text to token ids in the layout of the folders that ``unified prepare`` makes; runs in worker processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from unified.corpus.annotate import Annotator, token_spans
from unified.corpus.items import Items
from unified.corpus.readers import DocumentChunk, Pair, PairChunk, RowPairs, SourceSpans
from unified.data.annotations import SOURCE_KINDS
from unified.data.sampling import hashes, uniform
from unified.data.token_files import token_dtype
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import Tokenizer, parts_of, single_spaced

#: Training text for a tokenizer is cut into lines of at most this many characters.
SAMPLED_LINE = 4000
# Documents are numbered from 0; the keys of sampled lines come from numbers no document has.
_FIRST_SAMPLE_NUMBER = 1 << 62
# A document or a pair, whose number comes first.
_Numbered = TypeVar("_Numbered", bound=tuple[int, *tuple[object, ...]])


@dataclass(frozen=True)
class EncodedDocuments:
    """Paragraphs of one or more documents, each closed by ``</s>``; an item of ``</s>`` alone between two documents.

    ``first`` and ``last`` are the numbers of the first and the last document, ``documents`` how many there are.
    ``spans`` holds, per kind of annotation, the spans of the same items: start and stop of each, in tokens of its item.
    """

    items: Items
    first: int
    last: int
    documents: int
    spans: dict[str, Items] = field(default_factory=dict)


@dataclass(frozen=True)
class EncodedPairs:
    """Sources and targets, each closed by ``</s>``; ``skipped`` pairs had an empty side or an empty part.

    ``spans`` are those of the sources, as in :class:`EncodedDocuments`.
    """

    source: Items
    target: Items
    skipped: int
    spans: dict[str, Items] = field(default_factory=dict)


class TokenEncoder:
    """Texts to items in the ids of a vocabulary."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary):
        self._tokenizer = tokenizer
        self._ids = vocabulary.encode(tokenizer.native_symbols()).astype(token_dtype(len(vocabulary)))
        self._end = vocabulary.special.separator

    def pieces(self, texts: list[str]) -> Items:
        """One item a text, without ``</s>``."""
        native, sizes = self._tokenizer.encode_ids(texts)
        return Items(self._ids[native], sizes)

    def annotated_pieces(self, texts: list[str], annotator: Annotator) -> tuple[Items, dict[str, Items]]:
        """Token ids of ``texts`` as :meth:`pieces` gives them, and the annotated spans of each text by kind."""
        return self.spanned_pieces(texts, annotator([single_spaced(text) for text in texts]))

    def spanned_pieces(self, texts: list[str], found: dict[str, np.ndarray]) -> tuple[Items, dict[str, Items]]:
        """Token ids of ``texts``, and the tokens of the spans that an annotator has ``found`` in them, by kind."""
        native, sizes, offsets = self._tokenizer.encode_offsets(texts)
        return Items(self._ids[native], sizes), {kind: token_spans(s, offsets, sizes) for kind, s in found.items()}

    def sources(self, sources: list[str | list[str]]) -> tuple[Items, np.ndarray]:
        """One item a source, its parts closed by ``</s>`` each; and the pieces of its shortest part, int64 (n,)."""
        parts = [parts_of(source) or [""] for source in sources]
        first = np.cumsum([0, *map(len, parts[:-1])])
        pieces = self.pieces([part for several in parts for part in several])
        closed = self.close(pieces, _NO_SEPARATORS)
        return Items(closed.tokens, np.add.reduceat(closed.sizes, first)), np.minimum.reduceat(pieces.sizes, first)

    def close(self, pieces: Items, separators: np.ndarray) -> Items:
        """``</s>`` after every item, and an item of ``</s>`` alone before each of the items ``separators``."""
        sizes = np.insert(pieces.sizes + 1, separators, 1)
        tokens = np.full(sizes.sum(), self._end, dtype=self._ids.dtype)
        is_piece = np.ones(len(tokens), dtype=bool)
        is_piece[np.cumsum(sizes) - 1] = False
        tokens[is_piece] = pieces.tokens
        return Items(tokens, sizes)


_NO_SEPARATORS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class DocumentEncoder:
    """Encodes a chunk of documents; a share of them, chosen by seed and number, goes to the validation split.

    Their paragraphs are annotated too where there is an ``annotator``.
    """

    encoder: TokenEncoder
    seed: int
    valid_share: float
    annotator: Annotator | None = None

    def __call__(self, chunk: DocumentChunk) -> tuple[int, EncodedDocuments | None, EncodedDocuments | None]:
        """Bytes of text, the training split, the validation split (None where it is empty)."""
        return chunk.size, *self.splits(chunk.documents())

    def splits(
        self, documents: Iterable[tuple[int, list[str]]]
    ) -> tuple[EncodedDocuments | None, EncodedDocuments | None]:
        """The training and the validation split of documents, (number, paragraphs) each."""
        train, valid = split(documents, self.seed, self.valid_share)
        return self._encode(train), self._encode(valid)

    def _encode(self, documents: list[tuple[int, list[str]]]) -> EncodedDocuments | None:
        texts = [paragraph for _, paragraphs in documents for paragraph in paragraphs]
        if self.annotator is None or not texts:
            pieces, spans = self.encoder.pieces(texts), dict[str, Items]()
        else:
            pieces, spans = self.encoder.annotated_pieces(texts, self.annotator)
        numbers = np.repeat(np.arange(len(documents)), [len(paragraphs) for _, paragraphs in documents])
        # A paragraph of control characters may have no pieces; closed by </s> it would look like the end of a document.
        kept = pieces.sizes > 0
        numbers = numbers[kept]
        if not len(numbers):
            return None
        changes = np.flatnonzero(np.diff(numbers)) + 1
        items = self.encoder.close(_select(pieces, kept), changes)
        spans = {kind: _select(found, kept) for kind, found in spans.items()}
        spans = {kind: Items(found.tokens, np.insert(found.sizes, changes, 0)) for kind, found in spans.items()}
        first, last = (documents[number][0] for number in numbers[[0, -1]])
        return EncodedDocuments(items, first, last, len(changes) + 1, spans)


@dataclass(frozen=True)
class PairEncoder:
    """Encodes a chunk of pairs; a share of them goes to the validation split as in :class:`DocumentEncoder`.

    With ``oracle`` the sentences of the sources come along, and which of them the oracle takes.
    """

    encoder: TokenEncoder
    seed: int
    valid_share: float
    skip_empty: bool
    oracle: bool = False

    def __call__(self, chunk: PairChunk | RowPairs) -> tuple[int, EncodedPairs | None, EncodedPairs | None]:
        """Encodes the pairs of one chunk; the counterpart of :meth:`DocumentEncoder.__call__`.

        Raises:
            UnifiedError: a source or target is empty and ``skip_empty`` is False.
        """
        if not self.oracle:
            train, valid = split(chunk.pairs(), self.seed, self.valid_share)
            return chunk.size, self._encode(chunk, train), self._encode(chunk, valid)
        assert isinstance(chunk, RowPairs)  # no other pairs come with an oracle
        marked_train, marked_valid = split(chunk.pairs_with_spans(), self.seed, self.valid_share)
        return chunk.size, self._encode_marked(chunk, marked_train), self._encode_marked(chunk, marked_valid)

    def _encode(self, chunk: PairChunk | RowPairs, pairs: list[Pair]) -> EncodedPairs | None:
        if not pairs:
            return None
        source, shortest = self.encoder.sources([source for _, source, _ in pairs])
        return self._with_targets(chunk, pairs, source, shortest, {})

    def _encode_marked(self, chunk: RowPairs, pairs: list[tuple[int, str, str, SourceSpans]]) -> EncodedPairs | None:
        """Encodes pairs as :meth:`_encode` does, together with the spans of their sources."""
        if not pairs:
            return None
        found = {kind: _numbered([own[kind] for *_, own in pairs]) for kind in SOURCE_KINDS}
        pieces, spans = self.encoder.spanned_pieces([source for _, source, _, _ in pairs], found)
        source = self.encoder.close(pieces, _NO_SEPARATORS)
        return self._with_targets(chunk, pairs, source, pieces.sizes, spans)

    def _with_targets(
        self,
        chunk: PairChunk | RowPairs,
        pairs: Sequence[tuple[int, str | list[str], str, *tuple[SourceSpans, ...]]],
        source: Items,
        shortest: np.ndarray,
        spans: dict[str, Items],
    ) -> EncodedPairs:
        """The pairs that have text on both sides; ``shortest`` are the pieces of each source's shortest part."""
        target = self.encoder.pieces([pair[2] for pair in pairs])
        kept = (shortest > 0) & (target.sizes > 0)
        if not kept.all() and not self.skip_empty:
            first = int(np.argmin(kept))
            side = "target" if shortest[first] else "source"
            part = "a part of the source" if len(parts_of(pairs[first][1])) > 1 and side == "source" else f"the {side}"
            raise UnifiedError(
                f"{chunk.location(pairs[first][0], side)}: {part} of a pair is empty; "
                "mend it, or leave such pairs out, as `unified prepare --skip-empty` does"
            )
        targets = self.encoder.close(_select(target, kept), _NO_SEPARATORS)
        spans = {kind: _select(own, kept) for kind, own in spans.items()}
        return EncodedPairs(_select(source, kept), targets, skipped=int((~kept).sum()), spans=spans)


@dataclass(frozen=True)
class LineSampler:
    """Gives the lines of a chunk keys for :class:`unified.data.sampling.TextSample`; validation splits stay out."""

    seed: int
    valid_share: float

    def __call__(
        self, task: tuple[int, DocumentChunk | PairChunk | RowPairs, int]
    ) -> tuple[int, int, list[tuple[int, str]]]:
        """Bytes of text, number of lines, and (key, line) of each line whose key is below a threshold.

        ``task`` is the number of the chunk, the chunk and the threshold.
        """
        index, chunk, threshold = task
        if isinstance(chunk, PairChunk | RowPairs):
            pairs, _ = split(chunk.pairs(), self.seed, self.valid_share)
            texts = [text for _, source, target in pairs for text in (*parts_of(source), target)]
        else:
            documents, _ = split(chunk.documents(), self.seed, self.valid_share)
            texts = [paragraph for _, paragraphs in documents for paragraph in paragraphs]
        lines = [text[i : i + SAMPLED_LINE] for text in texts for i in range(0, len(text), SAMPLED_LINE)]
        first = _FIRST_SAMPLE_NUMBER + (index << 32)
        keys = hashes(self.seed, np.arange(first, first + len(lines))).tolist()
        return chunk.size, len(lines), [(key, line) for key, line in zip(keys, lines, strict=True) if key < threshold]


def split(numbered: Iterable[_Numbered], seed: int, valid_share: float) -> tuple[list[_Numbered], list[_Numbered]]:
    """Training and validation split of documents or pairs, whose numbers come first; the number and the seed decide."""
    numbered = list(numbered)
    if valid_share == 0:
        return numbered, []
    is_valid = uniform(seed, np.array([item[0] for item in numbered], dtype=np.int64)) < valid_share
    splits: tuple[list[_Numbered], list[_Numbered]] = ([], [])
    for item, valid in zip(numbered, is_valid.tolist(), strict=True):
        splits[valid].append(item)
    return splits


def _numbered(spans: list[list[tuple[int, int]]]) -> np.ndarray:
    """Spans of several texts, int64 (n, 3): number of the text, start, stop."""
    rows = [(number, *span) for number, own in enumerate(spans) for span in own]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _select(items: Items, kept: np.ndarray) -> Items:
    if kept.all():
        return items
    return Items(items.tokens[np.repeat(kept, items.sizes)], items.sizes[kept])
