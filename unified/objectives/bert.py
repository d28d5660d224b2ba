"""BERT (Devlin et al. 2019): single tokens or whole words are hidden; does the second segment follow the first?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.arguments import setting
from unified.data.example import Examples
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.errors import UnifiedError
from unified.masks import steps
from unified.objectives.contract import BatchedObjective, Supply
from unified.objectives.corruption import prediction_count, replace, words_to_hide
from unified.objectives.covering import cover_words
from unified.objectives.joined_segments import FIRST, SECOND, MayPredictNext, Sequences
from unified.planning.instances import Instances


@dataclass(frozen=True)
class Bert(MayPredictNext, BatchedObjective):
    """BERT's cloze and next-sentence prediction on CLS a SEP b SEP, from the instances of its published code.

    Ablations of the paper [BERT, sec. 5.1]: ``next_sentence=False`` reads instances of one segment, CLS text SEP, and
    predicts no next sentence; with ``left_to_right=True`` nothing is hidden either, a token sees itself and what stands
    before it, and every token predicts the next, the last one SEP.

    Attributes:
        next_sentence: two segments, and a prediction from CLS whether the second follows the first.
        left_to_right: the language model instead of the cloze; needs ``next_sentence=False``.
        short_share: share of documents whose instances have a random length instead of the longest.
        mask_share: share of the tokens, CLS and SEP counted, that are predicted; at least one, but with ``whole_words``
            none where no word fits.
        max_predictions: most tokens to predict, None for no limit; published: 20 in rows of 128, 80 in rows of 512.
        whole_words: hide whole words; one that exceeds what is left to hide is passed over.
        mask_replace_share: share of hidden tokens that become [MASK].
        random_replace_share: share that become a random ordinary token; the rest stay as they are.
    """

    name: ClassVar[str] = "bert"
    paper: ClassVar[str] = "Devlin et al. 2019 (BERT), sections 3.1 and 5.1"
    paired: ClassVar[bool] = False
    token_types: ClassVar[int] = 2

    next_sentence: bool = True
    left_to_right: bool = False
    short_share: float = setting(0.1, least=0, most=1)
    mask_share: float = setting(0.15, above=0, most=1)
    max_predictions: int | None = setting(None, least=1)
    whole_words: bool = False
    mask_replace_share: float = setting(0.8, least=0, most=1)
    random_replace_share: float = setting(0.1, least=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_shares("mask_replace_share", "random_replace_share")
        if self.left_to_right and self.next_sentence:
            raise UnifiedError(
                f"{self.name}: left_to_right=True needs next_sentence=False, for CLS then sees nothing but itself"
            )

    @property
    def writes(self) -> str:
        """``nothing`` with ``left_to_right=True``: such a model never read the [MASK] that predicts the next token."""
        return "nothing" if self.left_to_right else "left_to_right"

    @property
    def mask(self) -> str:
        return "left_to_right" if self.left_to_right else "bidirectional"

    @property
    def scorings(self) -> tuple[str, ...]:
        return ("left_to_right",) if self.left_to_right else ("pseudo_likelihood",)

    @property
    def planner(self) -> Instances:
        return Instances(self.next_sentence, self.short_share)

    def unmet(self, supply: Supply) -> str | None:
        if self.whole_words and not supply.word_starts:
            return "whole_words needs to know where words begin; prepare the data with a tokenizer"
        return None

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        is_next = self.pair_labels(texts)
        sequences = Sequences.of(texts, self.segments, self.name)
        tokens, extents = sequences.tokens, sequences.extents
        if self.left_to_right:
            indices, of_each, shown = extents.firsts(extents.lengths - 1), steps.left_to_right(extents.lengths), tokens
            labels = tokens[indices + 1]
        else:
            indices, of_each = self._hidden(texts, sequences, draws), steps.bidirectional(extents.lengths)
            shares = self.mask_replace_share, self.random_replace_share
            shown = replace(tokens, indices, extents.counts(indices), texts.special, *shares, draws)
            labels = tokens[indices]
        return Examples.of_one_objective(
            self.name,
            extents,
            tokens=shown,
            token_types=sequences.token_types((FIRST, SECOND)[: self.segments]),
            steps=of_each,
            output_indices=indices,
            labels=labels,
            is_next=is_next,
        )

    def _hidden(self, texts: Texts, sequences: Sequences, draws: Draws) -> np.ndarray:
        """Tokens to predict, int64 (N,), increasing."""
        extents = sequences.extents
        candidates, words = words_to_hide(sequences.tokens, extents, texts.special, self.name)
        counts = prediction_count(self.mask_share, extents.lengths)
        if self.max_predictions is not None:
            counts = np.minimum(counts, self.max_predictions)
        if self.whole_words:
            return cover_words(candidates, sequences.word_starts(texts, self.name), extents, counts, draws)
        order = draws.permutations("places", words)
        return np.sort(np.flatnonzero(candidates)[order[Extents(words).firsts(np.minimum(words, counts))]])
