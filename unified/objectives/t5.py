"""T5's objectives [T5, sec. 3.3] on one stack: CLS input SEP BOS target.

Each target token is predicted from the input and the target tokens before it.

=================  ====================  ================================  =====================================
objective          noise                 input                             target
=================  ====================  ================================  =====================================
``prefix_lm``      -                     a prefix                          the rest
``bert_style``     each token, 15 %      9 in 10 a sentinel, 1 a random    the text
``deshuffling``    -                     the tokens in random order        the text
``mass_style``     each token, 15 %      each a sentinel                   the text
``replace_spans``  each token, 15 %      each run a sentinel of its own    sentinel and tokens of each run
``drop_tokens``    each token, 15 %      without the noise                 the noise
``random_spans``   spans of 3, 15 %      each span a sentinel of its own   sentinel and tokens of each span
=================  ====================  ================================  =====================================

The published ones have an encoder and a decoder; here the input is the source block and the target the target block of
UniLM's sequence-to-sequence mask, with its positions and token types.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.arguments import setting
from unified.data.example import Examples
from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.objectives.contract import BatchedObjective, Supply
from unified.objectives.noise import (
    iid_noise,
    keep_runs,
    runs_behind_sentinels,
    runs_to_sentinels,
    span_counts,
    span_noise,
)
from unified.objectives.unilm import next_token_examples


@dataclass(frozen=True)
class _Rewriting(BatchedObjective):
    """Makes an input and a target of a text; subclasses say which."""

    paper: ClassVar[str] = "Raffel et al. 2020 (T5), section 3.3"
    token_types: ClassVar[int] = 6
    writes: ClassVar[str] = "next"
    paired: ClassVar[bool] = False
    segments: ClassVar[int] = 1
    heads: ClassVar[tuple[str, ...]] = ("token",)
    #: CLS, SEP and BOS.
    special_tokens: ClassVar[int] = 3

    def lengths(self, tokens: np.ndarray) -> np.ndarray:
        """Greatest numbers of tokens of examples, from those of their texts: the whole text on both sides."""
        return 2 * tokens + self.special_tokens

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        pairs = zip(texts.texts(), draws.generators("noise"), strict=True)
        rewritten = [self.rewrite(text.tokens, text.special, rng) for text, rng in pairs]
        sources, targets = zip(*rewritten, strict=True)
        return next_token_examples(self.name, sources, targets, texts.special)

    @abstractmethod
    def rewrite(
        self, tokens: np.ndarray, special: SpecialTokens, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Input and target, int64 each, of the text ``tokens`` (n,), without CLS, SEP and BOS."""


@dataclass(frozen=True)
class PrefixLM(_Rewriting):
    """A prefix is given, the rest is predicted; every cut is equally likely."""

    name: ClassVar[str] = "prefix_lm"
    scorings: ClassVar[tuple[str, ...]] = ("left_to_right",)

    def lengths(self, tokens: np.ndarray) -> np.ndarray:
        return tokens + self.special_tokens

    def rewrite(
        self, tokens: np.ndarray, special: SpecialTokens, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        cut = int(rng.integers(1, max(len(tokens), 2)))
        return tokens[:cut], tokens[cut:]


@dataclass(frozen=True)
class Deshuffling(_Rewriting):
    """The tokens in random order are given, their order is restored."""

    name: ClassVar[str] = "deshuffling"
    shows_labels: ClassVar[bool] = True

    def rewrite(
        self, tokens: np.ndarray, special: SpecialTokens, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        return rng.permutation(tokens), tokens


@dataclass(frozen=True)
class _Noised(_Rewriting):
    """Some tokens are noise.

    Attributes:
        noise_density: share of noise tokens.
    """

    noise_density: float = setting(0.15, above=0, most=1)

    def noise(self, length: int, rng: np.random.Generator) -> np.ndarray:
        """bool (length,)."""
        return iid_noise(length, self.noise_density, rng)


@dataclass(frozen=True)
class BertStyle(_Noised):
    """Noise tokens become a sentinel or a random token, the whole text is predicted (``iid_15_r10s90_f``).

    Attributes:
        random_share: share of noise tokens that become a random token; none stays as it is, unlike in BERT.
    """

    name: ClassVar[str] = "bert_style"
    shows_labels: ClassVar[bool] = True

    random_share: float = setting(0.1, least=0, most=1)

    def unmet(self, supply: Supply) -> str | None:
        return supply.lacks_sentinels(1)

    def rewrite(
        self, tokens: np.ndarray, special: SpecialTokens, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        noise = self.noise(len(tokens), rng)
        at_random = rng.random(len(tokens)) < self.random_share
        drawn = rng.integers(special.ordinary_start, special.ordinary_stop, len(tokens))
        return np.where(noise, np.where(at_random, drawn, special.first_sentinel), tokens), tokens


@dataclass(frozen=True)
class MassStyle(_Noised):
    """Every noise token becomes the same sentinel, the whole text is predicted (``iid_15_m_f``, after MASS)."""

    name: ClassVar[str] = "mass_style"
    shows_labels: ClassVar[bool] = True

    def unmet(self, supply: Supply) -> str | None:
        return supply.lacks_sentinels(1)

    def rewrite(
        self, tokens: np.ndarray, special: SpecialTokens, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.where(self.noise(len(tokens), rng), special.first_sentinel, tokens), tokens


@dataclass(frozen=True)
class DropTokens(_Noised):
    """Noise tokens are missing and predicted one after another (``iid_15_d_d``)."""

    name: ClassVar[str] = "drop_tokens"

    def lengths(self, tokens: np.ndarray) -> np.ndarray:
        return tokens + self.special_tokens

    def rewrite(
        self, tokens: np.ndarray, special: SpecialTokens, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        noise = self.noise(len(tokens), rng)
        return tokens[~noise], tokens[noise]


@dataclass(frozen=True)
class ReplaceSpans(_Noised):
    """Each run of noise becomes a sentinel of its own; predicted are the sentinels with their runs (``iid_15_u_u``).

    Attributes:
        closing_sentinel: end the target with one more sentinel, as the paper's figure has it; its code does not.
    """

    name: ClassVar[str] = "replace_spans"
    scorings: ClassVar[tuple[str, ...]] = ("infilling",)

    closing_sentinel: bool = False

    def most_runs(self, tokens: np.ndarray) -> np.ndarray:
        """Greatest number of runs of noise in texts of given lengths, int64.

        Two standard deviations above their mean, so that rows are full. At the default density at most one text in 54
        has more, whose last runs stay as they are; of all runs in texts of one length these are at most one in 390.
        With less noise they are more: at 0.05 one in 62, in texts of 11 tokens.
        """
        # A run begins at a token with probability p (1 - p), and never at two in a row.
        begin = self.noise_density * (1 - self.noise_density)
        mean = tokens * begin + self.noise_density
        deviation = np.sqrt(tokens * begin * (1 - 3 * begin) + self.noise_density)
        return np.minimum(np.ceil(mean + 2 * deviation).astype(np.int64), (tokens + 1) // 2)

    def lengths(self, tokens: np.ndarray) -> np.ndarray:
        return tokens + 2 * self.most_runs(tokens) + self.closing_sentinel + self.special_tokens

    def target_sentinels(self, tokens: int) -> int:
        return int(self.most_runs(np.array(tokens))) + self.closing_sentinel

    def unmet(self, supply: Supply) -> str | None:
        return supply.lacks_sentinels(self.target_sentinels(supply.longest))

    def rewrite(
        self, tokens: np.ndarray, special: SpecialTokens, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        noise = keep_runs(self.noise(len(tokens), rng), int(self.most_runs(np.array(len(tokens)))))
        target = runs_behind_sentinels(tokens, noise, special)
        if self.closing_sentinel:
            target = np.append(target, special.first_sentinel + len(target) - int(noise.sum()))
        return runs_to_sentinels(tokens, noise, special), target


@dataclass(frozen=True)
class RandomSpans(ReplaceSpans):
    """Spans of noise with a given mean length, T5's own choice (``span_3_15_u_u``).

    Attributes:
        mean_span: mean length of a span in tokens.
    """

    name: ClassVar[str] = "random_spans"

    mean_span: float = setting(3.0, least=1)

    def noise(self, length: int, rng: np.random.Generator) -> np.ndarray:
        return span_noise(length, self.noise_density, self.mean_span, rng)

    def most_runs(self, tokens: np.ndarray) -> np.ndarray:
        """The exact number of runs."""
        return span_counts(tokens, self.noise_density, self.mean_span)[1]
