"""XLNet (Yang et al. 2019): tokens are predicted in a random order by queries that do not see what they predict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from unified.data.example import Example
from unified.data.text import Text
from unified.errors import UnifiedError
from unified.masks import GIVEN
from unified.objectives.base import require_flag, require_integer, require_replacements
from unified.objectives.corruption import replace
from unified.objectives.sequences import MayPredictNext, both_segments

#: Token types: running text and segment A, segment B, and CLS. Attention reads only whether two are equal.
FIRST_TYPE, SECOND_TYPE, CLS_TYPE = range(3)


@dataclass(frozen=True)
class XLNet(MayPredictNext):
    """Permutation language modelling on two segments, with spans as targets and one token in ``context`` predicted.

    The sequence is ``first SEP second SEP CLS``. It has two halves, each with an order of its own: what is not
    predicted is shown from the start of its half, targets follow in random order, and so do SEP and CLS, which are
    never predicted. The first half sees nothing of the second, the second all of the first (published
    ``data_utils.py``, ``_local_perm``). The order is drawn anew for every example.

    Attributes:
        context: K, tokens per target; a span of n targets lies in n x K tokens (paper, section 2.3: 6 or 7).
        max_span: spans have n tokens with probability proportional to 1 / n, n from 1 to max_span; 1 is the ablation
            without span-based prediction.
        reuse: places of the first half, by which streams of text with a memory go on; None: half of the sequence.
        permutation_size: an order is drawn for so many places and repeated; None: for the whole half.
        both_directions: half of the texts are read backwards, which their positions tell (bidirectional data).
        next_sentence: predict from CLS whether the second segment follows; it is random half of the time anyway.
        denoising: the baseline DAE: every place sees every other, targets are hidden as BERT hides them.
        mask_replace_share, random_replace_share: with ``denoising``, shares of targets that become [MASK] and a random
            token; the rest stay.
    """

    name: ClassVar[str] = "xlnet"
    paper: ClassVar[str] = "Yang et al. 2019 (XLNet), section 2"
    paired: ClassVar[bool] = False
    segments: ClassVar[int] = 2
    wants_random_second: ClassVar[bool] = True
    special_tokens: ClassVar[int] = 3
    token_types: ClassVar[int] = 3

    context: int = 6
    max_span: int = 5
    reuse: int | None = None
    permutation_size: int | None = None
    both_directions: bool = True
    next_sentence: bool = False
    denoising: bool = False
    mask_replace_share: float = 0.8
    random_replace_share: float = 0.1

    def __post_init__(self) -> None:
        require_integer(self, "context", 2)
        require_integer(self, "max_span", 1)
        for name in ("reuse", "permutation_size"):
            if getattr(self, name) is not None:
                require_integer(self, name, 1)
        require_flag(self, "both_directions", "next_sentence", "denoising")
        require_replacements(self)

    @property
    def query_stream(self) -> bool:
        """Whether the model needs a query stream, and so relative positions."""
        return not self.denoising

    @property
    def writes(self) -> str:
        return "left_to_right" if self.denoising else "permutation"

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        tokens, token_types, functional = self._sequence(text)
        halves = self._halves(len(tokens))
        predicted = np.flatnonzero(self._targets(text, halves, rng) & ~functional)
        if predicted.size == 0:  # a short text whose draws all fell on SEP or CLS
            predicted = rng.choice(np.flatnonzero(~functional), 1)
        ranks = np.full(len(tokens), GIVEN) if self.denoising else self._ranks(predicted, functional, halves, rng)
        positions = np.arange(len(tokens))
        shares = (self.mask_replace_share, self.random_replace_share)
        return Example(
            group=self.name,
            tokens=replace(tokens, predicted, text.special, *shares, rng) if self.denoising else tokens,
            positions=positions[::-1].copy() if text.backward else positions,
            token_types=token_types,
            key_rank=ranks,
            query_rank=ranks,
            predicted=predicted,
            labels=tokens[predicted],
            is_next=self.pair_label(text),
            pair_place=len(tokens) - 1,
            query_stream=self.query_stream,
        )

    def _sequence(self, text: Text) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens, token types, and bool (T,): CLS and every SEP, those between documents of running text included."""
        first, second = both_segments(text, self.name)
        separator, cls = [text.special.separator], [text.special.begin]
        tokens = np.concatenate([first, separator, second, separator, cls])
        token_types = np.repeat((FIRST_TYPE, SECOND_TYPE, CLS_TYPE), (len(first) + 1, len(second) + 1, 1))
        functional = (tokens == text.special.separator) | (tokens == text.special.begin)
        if functional.all():
            raise UnifiedError(f"{self.name}: the text is empty; at least one token is needed")
        return tokens, token_types, functional

    def _halves(self, length: int) -> list[slice]:
        """The two halves, or the only one where the sequence is no longer than the first."""
        reuse = length // 2 if self.reuse is None else self.reuse
        return [slice(0, reuse), slice(reuse, length)] if 0 < reuse < length else [slice(0, length)]

    def _targets(self, text: Text, halves: list[slice], rng: np.random.Generator) -> np.ndarray:
        """bool (T,), one place in ``context``; of an odd number of targets the first half has more."""
        length = halves[-1].stop
        starts = np.ones(length, dtype=bool)
        if text.word_starts is not None:
            first = len(text.tokens)
            starts[:first] = text.word_starts[:first]
            starts[first + 1 : -2] = text.word_starts[first:]
        total = max(1, length // self.context)
        later = total * (halves[-1].stop - halves[-1].start) // length if len(halves) == 2 else 0
        # Words begin where they begin in the text, whichever way it is read.
        step = -1 if text.backward else 1
        targets = [
            self._spans(starts[half][::step], count, rng)[::step]
            for half, count in zip(halves, (total - later, later), strict=False)
        ]
        return np.concatenate(targets)

    def _spans(self, starts: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """``count`` places in spans that begin where words do, bool (n,) (published ``_sample_mask``).

        A span of n tokens is given n x K tokens, of which those before it are uniform; what spans leave is drawn token
        by token.
        """
        size = len(starts)
        count = min(count, size)
        lengths = 1 + np.searchsorted(_edges(self.max_span), rng.random(count), side="right")
        uniforms = rng.random(count)
        # Where the next word begins, from every place on.
        next_start = np.minimum.accumulate(np.where(starts, np.arange(size), size)[::-1])[::-1].tolist()
        taken = np.zeros(size, dtype=bool)
        place, left = 0, count
        for length, uniform in zip(lengths.tolist(), uniforms.tolist(), strict=True):
            length = min(length, left)
            room = length * self.context
            before = int(uniform * room)
            begin = next_start[place + before] if place + before < size else size
            if left == 0 or begin + length >= size:
                break
            taken[begin : begin + length] = True
            left -= length
            place = begin + length + room - before
        taken[rng.permutation(np.flatnonzero(~taken))[:left]] = True
        return taken

    def _ranks(
        self, predicted: np.ndarray, functional: np.ndarray, halves: list[slice], rng: np.random.Generator
    ) -> np.ndarray:
        """The step at which each place becomes visible, int64 (T,)."""
        ordered = functional.copy()
        ordered[predicted] = True
        ranks, shown = np.empty(len(functional), dtype=np.int64), GIVEN
        for half in halves:
            order = self._order(half.stop - half.start, rng)
            ranks[half] = np.where(ordered[half], shown + 1 + order, shown)
            shown += 1 + len(order)
        return ranks

    def _order(self, length: int, rng: np.random.Generator) -> np.ndarray:
        """A permutation of ``length`` places, or of ``permutation_size``, one run of them after another."""
        size = min(self.permutation_size or length, length)
        permutation = rng.permutation(size)
        if size == length:
            return permutation
        steps = np.arange(length) // size * size + permutation[np.arange(length) % size]
        # The last run may be shorter: its steps keep their order without gaps.
        return np.argsort(np.argsort(steps))


@lru_cache
def _edges(longest: int) -> np.ndarray:
    """Probability of at most 1, 2, … tokens of a span: of n it is proportional to 1 / n."""
    edges = np.cumsum(1 / np.arange(1, longest + 1))
    return edges / edges[-1]
