"""Running text from a token file: documents, their sentences, and the texts that objectives receive.

Every item of the file is a sentence that ends with ``</s>``; an item of ``</s>`` alone (an empty line of the corpus)
stands between two documents. Places in the text count the tokens of all sentences one after another, the final ``</s>``
of each left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unified.data import randomness
from unified.data.annotations import Annotations
from unified.data.instances import RANDOM_SECOND_SHARE
from unified.data.mmap import TokenFile
from unified.data.rows import Room, RowPlan, Share, plan_documents, plan_single_blocks
from unified.data.second_segments import BETWEEN, INSIDE, OUTSIDE, Shape, run_elsewhere
from unified.data.sources import require_final_separator, word_starts_of
from unified.data.text import Text
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.objectives.base import Objective, annotations_of


class DocumentTexts:
    """Blocks of whole sentences of one document each; a :class:`unified.data.sources.TextSource`.

    The plan of all documents depends on the seed alone: every epoch has the same blocks, split and corrupted anew.

    Args:
        file: sentences and document ends as above.
        special: ids of the special symbols.
        word_starts: bool (V,), True where a vocabulary entry begins a word; None when unknown.
        annotations: spans that lie beside ``file``; None where nobody asks for any.

    Raises:
        UnifiedError: the file holds no sentence, or an item without ``</s>``.
    """

    paired = False
    plans_each_epoch = False

    def __init__(
        self,
        file: TokenFile,
        special: SpecialTokens,
        word_starts: np.ndarray | None = None,
        annotations: Annotations | None = None,
    ):
        self.file, self.special, self.word_starts, self.annotations = file, special, word_starts, annotations
        self.name = file.prefix
        sizes = np.asarray(file.sizes)
        if sizes.size and sizes.min() < 1:
            raise UnifiedError(f"{self.name}: item {int(sizes.argmin())} is empty; every item must end with </s>")
        #: int64 (S,), the item that holds each sentence.
        self.items = np.flatnonzero(sizes > 1)
        if self.items.size == 0:
            raise UnifiedError(f"{self.name}: holds no sentence, only {len(sizes)} empty lines")
        #: int64 (S + 1,), the place where each sentence begins, and the end.
        self.bounds = np.zeros(len(self.items) + 1, dtype=np.int64)
        np.cumsum(sizes[self.items] - 1, out=self.bounds[1:])
        # Items that are no sentence stand between documents, so their number before a sentence tells its document.
        ends_before = self.items - np.arange(len(self.items))
        first = np.flatnonzero(np.diff(ends_before, prepend=-1))
        #: int64 (D + 1,), the first sentence of each document, and the end.
        self.document_starts = np.append(first, len(self.items))
        #: int8 (S + 1,), at each of ``bounds``: does it lie between sentences, or at the border of a document?
        self.borders = np.full(len(self.bounds), BETWEEN, dtype=np.int8)
        self.borders[self.document_starts] = OUTSIDE

    @property
    def annotation_kinds(self) -> frozenset[str]:
        return self.annotations.kinds if self.annotations else frozenset()

    @property
    def document_count(self) -> int:
        return len(self.document_starts) - 1

    def sentence_at(self, place: int) -> int:
        """The sentence that holds ``place``."""
        return int(self.bounds.searchsorted(place, side="right")) - 1

    def plan(self, room: Room, seed: int, epoch: int, share: Share | None = None) -> RowPlan:
        """Blocks whose examples fit into ``room``; the same ones in every epoch, except of a ``share``."""
        starts, wanted = (self.document_starts, None) if share is None else (share.document_starts, share.wanted)
        slope = room.slope
        bounds = self.bounds if slope == 1 else np.floor(self.bounds * slope).astype(np.int64)
        if room.packed:
            rng = randomness.generator(seed, 0 if share is None else epoch, randomness.PLAN)
            plan = plan_documents(bounds, starts, room.row_length, room.overhead, rng, wanted)
        else:
            plan = plan_single_blocks(bounds, starts, room.row_length, room.overhead, wanted)
        return plan if slope == 1 else _in_tokens(plan, slope)

    def text(self, start: int, length: int, objective: Objective, rng: np.random.Generator) -> Text:
        """The block of ``length`` tokens from place ``start`` on as ``objective`` wants it.

        Two segments are cut where a sentence ends, each of these places equally likely (google-research/bert,
        create_pretraining_data.py); a block without one, a single sentence, is cut at any token. A block of one token
        has an empty second segment, and that one is never replaced. An objective that wants random second segments gets
        one half of the time: as many tokens of another document, which begin and end as the true ones do
        (:mod:`unified.data.second_segments`). Half of the texts of an objective of both directions stand in reverse
        order.

        Of the annotations that the objective reads, the spans that lie within one segment come along.
        """
        tokens, sentence_ends = self._read(start, start + length)
        backward = getattr(objective, "both_directions", False) and rng.random() < 0.5
        if backward:
            tokens, sentence_ends = tokens[::-1], (len(tokens) - sentence_ends)[::-1]
        kinds = self.annotation_kinds.intersection(annotations_of(objective))
        if objective.segments == 1:
            return self._text(tokens, None, None, self._spans(kinds, (start, len(tokens))), backward)
        cut = self._cut(len(tokens), sentence_ends, rng)
        first, second = tokens[:cut], tokens[cut:]
        is_next, place = None, start + cut
        if objective.wants_random_second:
            is_next = True
            if len(second):
                shape = self._shape(len(second), sentence_ends - cut, start if backward else start + length, backward)
                elsewhere, kept = run_elsewhere(self, start, shape, rng)
                is_next = bool(rng.random() >= RANDOM_SECOND_SHARE)
                second = second[:kept]
                if not is_next:
                    place, second = elsewhere, self._read(elsewhere, elsewhere + kept)[0]
                    second = second[::-1] if backward else second
        spans = self._spans(kinds, (start, cut), (place, len(second)))
        return self._text(first, second, is_next, spans, backward)

    def segments(self, first: slice, second: slice | None, is_next: bool | None) -> Text:
        """One or two given stretches, of one document each, as slices of places; annotations do not come along."""
        tokens = self._read(first.start, first.stop)[0]
        return self._text(tokens, None if second is None else self._read(second.start, second.stop)[0], is_next, {})

    def _text(
        self,
        first: np.ndarray,
        second: np.ndarray | None,
        is_next: bool | None,
        spans: dict[str, np.ndarray],
        backward: bool = False,
    ) -> Text:
        both = first if second is None else np.concatenate([first, second])
        starts = word_starts_of(both, self.word_starts, self.special, self.name)
        return Text(first, self.special, second, is_next, starts, backward, self._random_tokens, spans)

    def _spans(self, kinds: frozenset[str], *segments: tuple[int, int]) -> dict[str, np.ndarray]:
        """Spans of each kind, int64 (k, 2), counted over segments that begin at these places and have these lengths."""
        shifts = (0, segments[0][1])
        return {
            kind: np.concatenate([self._spans_of(kind, *s) + shift for s, shift in zip(segments, shifts, strict=False)])
            for kind in kinds
        }

    def _spans_of(self, kind: str, start: int, length: int) -> np.ndarray:
        """Spans of ``length`` tokens from place ``start`` on, int64 (k, 2); those cut by either end are left out."""
        if length == 0:  # an empty second segment may lie behind the last sentence
            return np.empty((0, 2), dtype=np.int64)
        first = int(self.bounds.searchsorted(start, side="right")) - 1
        stop = int(self.bounds.searchsorted(start + length, side="left"))
        spans = self.annotations.read(kind, int(self.items[first]), self.bounds[first : stop + 1]) - start
        return spans[(spans[:, 0] >= 0) & (spans[:, 1] <= length)]

    def _random_tokens(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """int64 (count,): tokens at random places of the whole text, as often as they occur in it."""
        tokens = np.empty(0, dtype=np.int64)
        while len(tokens) < count:
            drawn = self.file.at(rng.integers(self.file.token_count, size=2 * count))
            tokens = np.append(tokens, drawn[drawn != self.special.separator])
        return tokens[:count]

    @staticmethod
    def _cut(count: int, sentence_ends: np.ndarray, rng: np.random.Generator) -> int:
        """Length of the first segment of ``count`` tokens."""
        if len(sentence_ends):
            return int(sentence_ends[rng.integers(len(sentence_ends))])
        return int(rng.integers(1, count)) if count > 1 else count

    def _shape(self, length: int, sentence_ends: np.ndarray, far: int, backward: bool) -> Shape:
        """The shape of a second segment of ``length`` tokens, from the ends of the block's sentences, counted from it.

        ``far`` is the place of its side that the first segment does not touch.
        """
        border = self.bounds.searchsorted(far)
        ends = int(self.borders[border]) if self.bounds[border] == far else INSIDE
        shorter = sentence_ends[sentence_ends > 0][::-1].tolist()
        return Shape(length, BETWEEN if len(sentence_ends) else INSIDE, ends, tuple(shorter), backward)

    def _read(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Tokens from place ``start`` to ``stop - 1``, int64, and how many of them precede each inner sentence end.

        Both places lie in one document. A ``</s>`` within a sentence is left out too.
        """
        first = int(self.bounds.searchsorted(start, side="right")) - 1
        last = int(self.bounds.searchsorted(stop, side="left")) - 1
        items = np.asarray(self.file.slice(int(self.items[first]), int(self.items[last]) + 1))
        ends = self.bounds[first + 1 : last + 2] - self.bounds[first] + np.arange(last + 1 - first)
        require_final_separator(items[ends], int(self.items[first]), self.special, self.name)
        skipped = int(start - self.bounds[first])
        items = items[skipped : stop - self.bounds[first] + last - first]
        kept = items != self.special.separator
        tokens = items[kept].astype(np.int64)
        if len(tokens) == 0:
            raise UnifiedError(f"{self.name}: item {int(self.items[first])} holds nothing but </s>; remove that line")
        return tokens, np.cumsum(kept)[ends[:-1] - skipped]


def _in_tokens(plan: RowPlan, slope: float) -> RowPlan:
    """A plan in places, ``slope`` for a token, as one in tokens; ends of sentences come back exactly."""
    starts, stops = (
        np.ceil(places / slope - 1e-9).astype(np.int64) for places in (plan.starts, plan.starts + plan.lengths)
    )
    return replace(plan, starts=starts, lengths=stops - starts)
