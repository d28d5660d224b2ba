"""Running text from a token file: documents, their sentences, and the texts that objectives receive.

Every item of the file is a sentence that ends with ``</s>``; an item of ``</s>`` alone (an empty line of the corpus)
stands between two documents. Indices in the text count the tokens of all sentences one after another, the final
``</s>`` of each left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unified.arguments import counted
from unified.data import randomness
from unified.data.annotations import Annotations, Spans
from unified.data.extents import Extents, ranges
from unified.data.randomness import Draws
from unified.data.texts import UNASKED, Texts
from unified.data.token_files import TokenFile
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.planning.instances import RANDOM_SECOND_SHARE
from unified.planning.rows import DealtDocuments, RowLimits, RowPlan, plan_documents, plan_single_blocks
from unified.planning.second_pools import SecondPools
from unified.planning.second_segments import with_random_seconds
from unified.planning.second_shapes import BETWEEN, OUTSIDE
from unified.planning.segments import BlocksToCut, Segments
from unified.planning.sources import require_final_separators, word_starts_of
from unified.planning.text_request import TextRequest


class DocumentTexts:
    """Blocks of whole sentences of one document each; a :class:`unified.planning.sources.TextSource`.

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
        #: Share of second segments that come from another document, where an objective asks for such.
        self.random_second_share = RANDOM_SECOND_SHARE
        self.name = file.prefix
        sizes = np.asarray(file.sizes)
        if sizes.size and sizes.min() < 1:
            raise UnifiedError(f"{self.name}: item {int(sizes.argmin())} is empty; every item must end with </s>")
        #: int64 (S,), the item that holds each sentence.
        self.items = np.flatnonzero(sizes > 1)
        if self.items.size == 0:
            raise UnifiedError(f"{self.name}: holds no sentence, only {counted(len(sizes), 'empty line')}")
        #: int64 (S + 1,), the index where each sentence begins, and the end.
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
        """Kinds of annotations that lie beside the texts."""
        return self.annotations.kinds if self.annotations else frozenset()

    @property
    def document_count(self) -> int:
        """Number of documents."""
        return len(self.document_starts) - 1

    def sentence_at(self, index: int) -> int:
        """The sentence that holds ``index``."""
        return int(self.bounds.searchsorted(index, side="right")) - 1

    def blocks(self, limits: RowLimits, seed: int, epoch: int, dealt: DealtDocuments | None = None) -> RowPlan:
        """Blocks whose examples fit into ``limits``; the same ones in every epoch but where documents are ``dealt``."""
        starts, wanted = (self.document_starts, None) if dealt is None else (dealt.document_starts, dealt.wanted)
        slope = limits.slope
        assert limits.overhead is not None  # where it is unknown, planning.Blocks asks for blocks without any
        bounds = self.bounds if slope == 1 else _scaled(self.bounds, slope)
        if limits.packed:
            rng = randomness.generator(seed, 0 if dealt is None else epoch, randomness.PLAN)
            plan = plan_documents(bounds, starts, limits.row_length, limits.overhead, rng, wanted)
        else:
            plan = plan_single_blocks(bounds, starts, limits.row_length, limits.overhead, wanted)
        return plan if slope == 1 else _in_tokens(plan, slope)

    def texts(
        self,
        starts: np.ndarray,
        lengths: np.ndarray,
        objective: TextRequest,
        draws: Draws,
        pools: SecondPools | None = None,
    ) -> Texts:
        """The blocks of ``lengths`` tokens from indices ``starts`` on (int64 (n,) each) as ``objective`` wants them.

        Two segments are cut where a sentence ends, each of these equally likely (google-research/bert,
        create_pretraining_data.py); a block without one, a single sentence, is cut at any token. A block of one token
        has an empty second segment, and that one is never replaced. An objective that wants random second segments gets
        one half of the time (``random_second_share``): as many tokens of another document, which begin and end as the
        true ones do (:mod:`unified.planning.second_segments`), from ``pools`` where there are some. Half of the texts
        of an objective of both directions stand in reverse order.

        Of the annotations that the objective reads, the spans that lie within one segment come along.
        """
        backward = np.zeros(len(starts), dtype=bool)
        if objective.both_directions:
            backward = draws.uniforms("backward") < 0.5
        kinds = self.annotation_kinds.intersection(objective.annotations)
        is_next = None
        segments = Segments(starts[None], lengths[None])
        if objective.segments == 2:
            blocks = BlocksToCut.of(self, starts, lengths, backward)
            cuts = blocks.cuts(draws)
            if objective.wants_random_second:
                share = self.random_second_share
                segments, is_next = with_random_seconds(self, blocks, cuts, draws, share, pools)
            else:
                segments = blocks.divided(cuts)
        return self.read(segments, is_next, backward, {kind: self._spans(kind, segments) for kind in kinds})

    def read(
        self,
        segments: Segments,
        is_next: np.ndarray | None,
        backward: np.ndarray | None = None,
        spans: Mapping[str, Spans] | None = None,
    ) -> Texts:
        """Texts of given segments, each of one document; ``is_next`` and ``backward`` are bool (n,), None for nothing.

        A ``</s>`` within a sentence is left out.
        """
        tokens, begun, lengths = self._read(segments)
        if spans and (lengths != segments.lengths).any():
            raise UnifiedError(
                f"{self.name}: a sentence has </s> within, so its annotated spans cannot be placed; make the folder "
                "again with `unified prepare --annotate`"
            )
        backward = np.zeros(lengths.shape[1], dtype=bool) if backward is None else backward
        if backward.any():
            order = _mirrored(lengths, backward)
            tokens, begun = tokens[order], begun[order]
        return Texts(
            tokens,
            self.special,
            lengths,
            np.full(len(backward), UNASKED) if is_next is None else is_next.astype(np.int64),
            word_starts_of(tokens, begun, self.word_starts, self.special, self.name),
            backward,
            self._random_tokens,
            spans or {},
        )

    def _spans(self, kind: str, segments: Segments) -> Spans:
        """Spans of the texts that have these segments; those cut by either end of one are left out."""
        starts, stops, sentences, counts = self._sentences(segments)
        assert self.annotations is not None  # they have this kind
        spans = self.annotations.read(kind, self.items[sentences])
        of_sentence = spans.owners
        segment = np.arange(len(starts)).repeat(counts)[of_sentence]
        placed = spans.moved(self.bounds[sentences[of_sentence]])
        bounds = placed.bounds
        whole = (bounds[:, 0] >= starts[segment]) & (bounds[:, 1] <= stops[segment])
        # Indices of a text count on through its second segment.
        before = np.cumsum(segments.lengths, axis=0) - segments.lengths
        within = placed.moved((before.T.ravel() - starts)[segment]).bounds
        text = segment[whole] // len(segments.lengths)
        return Spans(within[whole], np.bincount(text, minlength=segments.lengths.shape[1]))

    def _sentences(self, segments: Segments) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Sentences that the k segments of n texts touch, text by text.

        Returns:
            int64 (k n,), where each segment begins and stops; int64 (S,), the sentences of one after another; and
            int64 (k n,), how many sentences each has.
        """
        starts, stops = (bounds.T.ravel() for bounds in (segments.starts, segments.starts + segments.lengths))
        first = self.bounds.searchsorted(starts, side="right") - 1
        counts = self.bounds.searchsorted(stops) - first  # of an empty segment that lies behind the last sentence 0
        return starts, stops, ranges(first, counts), counts

    def _random_tokens(self, counts: np.ndarray, draws: Draws) -> np.ndarray:
        """``Text.sampler``: tokens at random indices of the whole text, as often as they occur in it."""
        tokens = np.full(counts.sum(), self.special.separator)
        attempt = 0
        while (wanting := np.flatnonzero(tokens == self.special.separator)).size:
            indices = draws.integers(f"places of the corpus, attempt {attempt}", self.file.token_count, counts)
            tokens[wanting] = self.file.at(indices[wanting])
            attempt += 1
        return tokens

    def _read(self, segments: Segments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens of all segments, those of one text after another.

        Returns:
            int64, the tokens; bool, which of them a sentence begins with; and int64 (k, n), how many each segment has.
        """
        starts, stops, sentences, counts = self._sentences(segments)
        begins = np.maximum(self.bounds[sentences], starts.repeat(counts))
        ends = np.minimum(self.bounds[sentences + 1], stops.repeat(counts))
        items = self.items[sentences]  # as many separators lie before each
        require_final_separators(self.file.at(self.bounds[sentences + 1] + items), items, self.special, self.name)
        tokens = self.file.at(ranges(begins + items, ends - begins))
        begun = np.zeros(len(tokens), dtype=bool)
        begun[Extents(ends - begins).starts[begins == self.bounds[sentences]]] = True
        lengths = stops - starts
        kept = tokens != self.special.separator
        if not kept.all():
            lengths = np.bincount(Extents(lengths).owners[kept], minlength=len(lengths))
            begun[1:] |= ~kept[:-1]
            tokens, begun = tokens[kept], begun[kept]
        lengths = lengths.reshape(segments.lengths.T.shape).T
        empty = np.flatnonzero(lengths.sum(0) == 0)
        if empty.size:
            item = int(self.items[self.sentence_at(int(segments.starts[0, empty[0]]))])
            raise UnifiedError(f"{self.name}: item {item} holds nothing but </s>; remove that line")
        return tokens, begun, lengths


def _mirrored(lengths: np.ndarray, backward: np.ndarray) -> np.ndarray:
    """Index from which each token is taken so that the segments of some texts stand in reverse order, int64."""
    extents = Extents(lengths.T.ravel())
    turned = np.repeat(backward, len(lengths))[extents.owners]
    indices = np.arange(extents.total)
    other_end = np.repeat(extents.starts + extents.stops - 1, extents.lengths)
    return np.where(turned, other_end - indices, indices)


def _scaled(indices: np.ndarray, slope: float) -> np.ndarray:
    """Indices in the text as indices in tokens of rows, ``slope`` for a token of text; int64, strictly increasing."""
    return np.floor(indices * slope).astype(np.int64)


def _in_tokens(plan: RowPlan, slope: float) -> RowPlan:
    """A plan in tokens of rows (:func:`_scaled`) as one in tokens of text; sentence ends stay exact.

    Blocks between two of whose borders no token of text begins are left out.
    """
    starts, stops = (_unscaled(bounds, slope) for bounds in (plan.starts, plan.starts + plan.lengths))
    kept = stops > starts
    member_kept = kept[plan.members]
    before = np.append(0, np.cumsum(member_kept))[plan.offsets]
    return RowPlan(
        starts=starts[kept],
        lengths=(stops - starts)[kept],
        members=(np.cumsum(kept) - 1)[plan.members[member_kept]],
        offsets=np.unique(before),  # without the rows that have no block left
    )


def _unscaled(scaled: np.ndarray, slope: float) -> np.ndarray:
    """The first index in the text that :func:`_scaled` does not put before ``scaled``, int64."""
    indices = np.floor(scaled / slope).astype(np.int64) - 1  # too small by at most 2; a quotient may be rounded up
    for _ in range(2):
        indices += _scaled(indices, slope) < scaled
    return indices
