"""A new head: tell from each token's state how many tokens its word has, beside or without predicting tokens.

A head is a PredictionHead: from the states of N predictions and their labels it makes N losses. The objective that asks
it names it in ``heads`` and says in ``own_heads`` what makes it. To use both:

    --objectives 'docs.examples.word_lengths:WordLengths:1,bidirectional:1'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from unified.data.example import Example
from unified.data.targets import ExampleTargets, Targets
from unified.data.text import Text
from unified.masks import bidirectional
from unified.model import TransformerConfig
from unified.model.heads import PredictionHead, PredictionLosses, SymbolScoring, classified
from unified.objectives import Objective
from unified.objectives.contract import Supply

#: Lengths that are told apart: 1, 2, and so on; this many, or more.
LONGEST = 8


class WordLengthHead(PredictionHead):
    """A score for each length."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.classifier = nn.Linear(config.width, LONGEST)

    def losses(self, states: torch.Tensor, targets: Targets, symbols: SymbolScoring) -> PredictionLosses:
        """Losses of (N, 1, D) states: the labels are lengths less one."""
        return classified(self.classifier(states.squeeze(1)), targets.labels)


@dataclass(frozen=True)
class WordLengths(Objective):
    """CLS text: the whole text is seen, and every token tells how many tokens its word has."""

    name: ClassVar[str] = "word_lengths"
    paired: ClassVar[bool] = False
    segments: ClassVar[int] = 1
    special_tokens: ClassVar[int] = 1  # CLS
    token_types: ClassVar[int] = 1
    writes: ClassVar[str] = "nothing"
    heads: ClassVar[tuple[str, ...]] = ("word_length",)
    own_heads: ClassVar[Mapping[str, type[PredictionHead]]] = {"word_length": WordLengthHead}

    def unmet(self, supply: Supply) -> str | None:
        return None if supply.word_starts else "needs to know where words begin; prepare the data with a tokenizer"

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        tokens = np.concatenate([[text.special.begin], text.tokens])
        word = np.cumsum(text.word_starts[: len(text.tokens)])
        lengths = np.bincount(word)[word]
        indices = np.arange(1, len(tokens))
        return Example(
            objective=self.name,
            tokens=tokens,
            positions=np.arange(len(tokens)),
            token_types=np.zeros(len(tokens), dtype=np.int64),
            mask=bidirectional(len(tokens)),
            targets={"word_length": ExampleTargets.at(indices, np.minimum(lengths, LONGEST) - 1)},
        )
