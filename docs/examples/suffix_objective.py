"""A new objective: read the beginning of a text, predict all the rest, each token from those before it (a prefix LM).

An objective is a frozen dataclass and a subclass of Objective. Its fields are its settings, its call turns a Text into
an Example, and its class attributes declare what it reads and what it needs of a model. To use it:

    --objectives 'docs.examples.suffix_objective:Suffix(share=0.3):1'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.arguments import setting
from unified.data.example import Example
from unified.data.targets import TOKEN, ExampleTargets
from unified.data.text import Text
from unified.masks import seq2seq
from unified.objectives import Objective
from unified.objectives.unilm import SOURCE, TARGET


@dataclass(frozen=True)
class Suffix(Objective):
    """CLS prefix | rest: the prefix sees itself, every token from its last token on predicts the token that follows.

    Attributes:
        share: share of the tokens that are predicted, at least one.
    """

    name: ClassVar[str] = "suffix"
    paired: ClassVar[bool] = False
    segments: ClassVar[int] = 1
    special_tokens: ClassVar[int] = 1  # CLS
    token_types: ClassVar[int] = TARGET + 1
    writes: ClassVar[str] = "nothing"  # no decoding scheme of the library asks for the next token without a separator
    heads: ClassVar[tuple[str, ...]] = ("token",)

    share: float = setting(0.5, above=0, most=1)

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        tokens = np.concatenate([[text.special.begin], text.tokens])
        predicted = max(1, round(self.share * len(text.tokens)))
        given = len(tokens) - predicted
        # The last given token sees the prefix alone, and so does everything it is read by: it may predict.
        return Example(
            objective=self.name,
            tokens=tokens,
            positions=np.arange(len(tokens)),
            token_types=np.repeat((SOURCE, TARGET), (given, predicted)),
            mask=seq2seq(given, predicted),
            targets={TOKEN: ExampleTargets.at(np.arange(given - 1, len(tokens) - 1), tokens[given:])},
        )
