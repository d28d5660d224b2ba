"""XLNet (Yang et al. 2019): queries that do not see their targets predict tokens in a random order."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as fields_changed
from functools import lru_cache
from typing import ClassVar

import numpy as np

from unified.arguments import setting
from unified.data.example import Examples
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.masks import GIVEN, steps
from unified.objectives.contract import BatchedObjective, Supply
from unified.objectives.corruption import replace, require_predictable
from unified.objectives.joined_segments import MayPredictNext, Sequences
from unified.objectives.spans import LONGEST_SPAN

#: Token types: running text and segment A, segment B, and CLS. Attention reads only whether two are equal.
FIRST_TYPE, SECOND_TYPE, CLS_TYPE = range(3)


@dataclass(frozen=True)
class XLNet(MayPredictNext, BatchedObjective):
    """Permutation language modelling on two segments, with spans as targets and one token in ``context`` predicted.

    The sequence is ``first SEP second SEP CLS``. It has two halves, each with an order of its own: what is not
    predicted is shown from the start of its half, targets follow in random order, and so do SEP and CLS, which are
    never predicted. The first half sees nothing of the second, the second all of the first (published
    ``data_utils.py``, ``_local_perm``). The order is drawn anew for every example.

    Attributes:
        context: K, tokens per target; a span of n targets lies in n x K tokens [XLNet, sec. 3.1], 6 or 7.
        max_span: spans have n tokens with probability proportional to 1 / n, n from 1 to max_span; 1 is the ablation
            without span-based prediction.
        span_words: a span of n has n words instead of n tokens. The published code means words and counts tokens: its
            loop looks whether a word begins at the wrong index.
        reuse: tokens of the first half, by which streams of text with a memory go on; None: half of the sequence.
        permutation_size: an order is drawn for so many tokens and repeated; None: for the whole half.
        both_directions: half of the texts are read backwards, which their positions tell (bidirectional data).
        next_sentence: predict from CLS whether the second segment follows; it is random half of the time anyway.
        denoising: the baseline DAE: every token sees every other, targets are hidden as BERT hides them.
        mask_replace_share, random_replace_share: with ``denoising``, shares of targets that become [MASK] and a random
            token; the rest stay.
    """

    name: ClassVar[str] = "xlnet"
    paper: ClassVar[str] = "Yang et al. 2019 (XLNet), section 2"
    paired: ClassVar[bool] = False
    segments: ClassVar[int] = 2
    wants_random_second: ClassVar[bool] = True
    reads_streams: ClassVar[bool] = True
    special_tokens: ClassVar[int] = 3
    token_types: ClassVar[int] = 3

    context: int = setting(6, least=2)
    max_span: int = setting(5, least=1, most=LONGEST_SPAN)
    span_words: bool = False
    reuse: int | None = setting(None, least=1)
    permutation_size: int | None = setting(None, least=1)
    both_directions: bool = True
    next_sentence: bool = False
    denoising: bool = False
    mask_replace_share: float = setting(0.8, least=0, most=1)
    random_replace_share: float = setting(0.1, least=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_shares("mask_replace_share", "random_replace_share")

    @property
    def query_stream(self) -> bool:
        """Whether the model needs a query stream, and so relative or rotary positions."""
        return not self.denoising

    @property
    def writes(self) -> str:
        return "left_to_right" if self.denoising else "permutation"

    @property
    def scorings(self) -> tuple[str, ...]:
        """None with ``denoising``: no scoring asks a [MASK] in texts behind which CLS stands."""
        return () if self.denoising else ("left_to_right", "right_to_left", "pseudo_likelihood", "permutation")

    def unmet(self, supply: Supply) -> str | None:
        if self.span_words and not supply.word_starts:
            return "counts spans in words and needs to know where words begin; prepare the data with a tokenizer"
        return None

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        sequences = Sequences.cls_last(texts, self.name)
        tokens, extents = sequences.tokens, sequences.extents
        # CLS and every SEP, those between documents of running text included.
        functional = (tokens == texts.special.separator) | (tokens == texts.special.begin)
        halves, of_halves = self._halves(extents.lengths), draws.pieces(2)
        targets = self.drawn_targets(texts, sequences, halves, of_halves) & ~functional
        self._ensure_targets(targets, functional, extents, draws)
        indices, last = np.flatnonzero(targets), extents.lengths - 1
        of_each = steps.bidirectional(extents.lengths)
        if not self.denoising:
            of_each = steps.permutation(self._order(targets | functional, halves, of_halves), extents.lengths)
        made = Examples.of_one_objective(
            self.name,
            extents,
            tokens=self._shown(tokens, indices, extents, texts.special, draws),
            token_types=sequences.token_types((FIRST_TYPE, SECOND_TYPE, CLS_TYPE)),
            steps=of_each,
            output_indices=indices,
            labels=tokens[indices],
            is_next=self.pair_labels(texts),
            pair_indices=last,
        )
        backward = np.repeat(texts.backward, extents.lengths)
        return fields_changed(
            made,
            positions=np.where(backward, np.repeat(last, extents.lengths) - extents.within, extents.within),
            query_stream=np.full(len(texts), int(self.query_stream)),
        )

    def _shown(
        self, tokens: np.ndarray, indices: np.ndarray, extents: Extents, special: SpecialTokens, draws: Draws
    ) -> np.ndarray:
        """The tokens that the model reads: hidden where targets are not predicted by a query stream."""
        if not self.denoising:
            return tokens
        shares = self.mask_replace_share, self.random_replace_share
        return replace(tokens, indices, extents.counts(indices), special, *shares, draws)

    def _ensure_targets(self, targets: np.ndarray, functional: np.ndarray, extents: Extents, draws: Draws) -> None:
        """Mark a random target in short texts whose draws all fell on SEP or CLS.

        Raises:
            UnifiedError: a text has nothing else.
        """
        ordinary = np.flatnonzero(~functional)
        each = Extents(extents.counts(ordinary))
        require_predictable(self.name, each.lengths)
        without = np.flatnonzero(extents.counts(np.flatnonzero(targets)) == 0)
        drawn = draws.take(without).integers("only target", each.lengths[without])
        targets[ordinary[each.starts[without] + drawn]] = True

    def _halves(self, lengths: np.ndarray) -> Extents:
        """The two halves of each sequence; the second is empty where the sequence is no longer than ``reuse``."""
        first = lengths // 2 if self.reuse is None else np.minimum(self.reuse, lengths)
        return Extents(np.stack([first, lengths - first], axis=1).ravel())

    def drawn_targets(self, texts: Texts, sequences: Sequences, halves: Extents, draws: Draws) -> np.ndarray:
        """True at the drawn targets, bool (T,): one token in ``context``, shared by the lengths of the halves."""
        lengths = sequences.extents.lengths
        total = np.maximum(1, lengths // self.context)
        later = total * halves.lengths[1::2] // lengths
        counts = np.minimum(np.stack([total - later, later], axis=1).ravel(), halves.lengths)
        starts = np.ones(sequences.extents.total, dtype=bool)
        if texts.word_starts is not None or self.span_words:
            starts = sequences.word_starts(texts, self.name)
        if not texts.backward.any():
            return self.drawn_spans(starts, halves, counts, draws)
        # Words begin where they begin in the text, whichever way it is read.
        turned = np.repeat(texts.backward, lengths)
        ends = np.repeat(halves.starts + halves.stops - 1, halves.lengths)
        own = np.arange(len(starts))
        mirrored = np.where(turned, ends - own, own)
        return self.drawn_spans(starts[mirrored], halves, counts, draws)[mirrored]

    def drawn_spans(self, starts: np.ndarray, extents: Extents, counts: np.ndarray, draws: Draws) -> np.ndarray:
        """``counts`` (n,) tokens of n stretches in spans that begin where words do, bool (T,) (``_sample_mask``).

        A span of n tokens, or words, is given n x K tokens, of which those before it are uniform; what spans leave is
        drawn token by token. A span of words that exceeds what is left to draw loses its last words; where its first
        word exceeds it, no more spans are drawn.
        """
        size = len(starts)
        lengths = (1 + _edges(self.max_span).searchsorted(draws.uniforms("lengths", counts), side="right")).tolist()
        uniforms = draws.uniforms("places", counts).tolist()
        # Where the next word begins, from every token on.
        next_start = np.minimum.accumulate(np.where(starts, np.arange(size), size)[::-1])[::-1].data
        taken, left = bytearray(size), counts.copy()
        offsets = Extents(counts).offsets.tolist()
        for one, (index, end) in enumerate(zip(extents.starts.tolist(), extents.stops.tolist(), strict=True)):
            own = slice(offsets[one], offsets[one + 1])
            wanted = offsets[one + 1] - offsets[one]
            for length, uniform in zip(lengths[own], uniforms[own], strict=True):
                length = min(length, wanted)
                stretch = length * self.context
                before = int(uniform * stretch)
                begin = next_start[index + before] if index + before < end else end
                stop = begin + length
                if self.span_words:
                    stop = _behind_words(begin, length, wanted, next_start, end)
                if wanted == 0 or stop == begin or stop >= end:
                    break
                taken[begin:stop] = b"\1" * (stop - begin)
                wanted -= stop - begin
                index = stop + stretch - before
            left[one] = wanted
        hidden = np.frombuffer(taken, dtype=bool)
        free = np.flatnonzero(~hidden)
        each = Extents(extents.counts(free))
        hidden[free[draws.permutations("single tokens", each.lengths)[each.firsts(left)]]] = True
        return hidden

    def _order(self, ordered: np.ndarray, halves: Extents, draws: Draws) -> np.ndarray:
        """Step at which each token appears, int64 (T,); tokens not ``ordered`` precede the others of their half."""
        shown = np.full(len(halves), GIVEN)
        shown[1::2] += 1 + halves.lengths[::2]
        shown = np.repeat(shown, halves.lengths)
        return np.where(ordered, shown + 1 + self.orders(halves, draws), shown)

    def orders(self, extents: Extents, draws: Draws) -> np.ndarray:
        """Permutations of each stretch's tokens, or of ``permutation_size``, one run of them after another."""
        sizes = np.minimum(self.permutation_size or extents.lengths, extents.lengths)
        runs = Extents(sizes)
        permutations = draws.permutations("orders", sizes) - np.repeat(runs.starts, sizes)
        if self.permutation_size is None:
            return permutations
        size = np.repeat(sizes, extents.lengths)
        run, index = np.divmod(extents.within, size)
        steps = run * size + permutations[np.repeat(runs.starts, extents.lengths) + index]
        # The last run may be shorter: its steps keep their order without gaps.
        order = np.empty_like(steps)
        order[np.argsort(np.repeat(extents.starts, extents.lengths) * 2 + steps)] = extents.within
        return order


@lru_cache
def _edges(longest: int) -> np.ndarray:
    """Probability of at most 1, 2, … tokens of a span: of n it is proportional to 1 / n."""
    edges = np.cumsum(1 / np.arange(1, longest + 1))
    return edges / edges[-1]


def _behind_words(begin: int, count: int, most: int, next_start: memoryview, end: int) -> int:
    """End of the ``count`` words from ``begin`` on, or of as many of them as have at most ``most`` tokens together.

    Args:
        next_start: for each token the first one from there on where a word begins.
        end: of the stretch, which ends its last word.
    """
    stop = begin
    for _ in range(count):
        following = min(next_start[stop + 1], end) if stop + 1 < end else end
        if following - begin > most:
            break
        stop = following
    return stop
