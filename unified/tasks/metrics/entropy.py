"""Entropy of single tokens: the loss of a model that knows their frequencies alone.

A pre-training whose validation loss stays at this level has not learnt to read the context.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError


@dataclass(frozen=True)
class Entropy:
    """An entropy per token in both units; fairseq logs losses in bits, cross-entropies are computed in nats."""

    nats: float

    @property
    def bits(self) -> float:
        """The entropy in bits."""
        return self.nats / math.log(2)

    @property
    def perplexity(self) -> float:
        """The exponential of the entropy in nats."""
        return math.exp(self.nats)


def unigram_entropy(tokens: np.ndarray, *, ignore: Iterable[int] = ()) -> Entropy:
    """Entropy of the distribution of single tokens, ``-sum p log p`` with p the share of each id.

    Args:
        tokens: integer array of any shape, ids >= 0.
        ignore: ids left out of the count (special symbols, which no objective predicts).

    Raises:
        UnifiedError: no token is left to count, or an id is negative.
    """
    tokens = np.asarray(tokens).reshape(-1)
    if tokens.size and tokens.min() < 0:
        raise UnifiedError(f"tokens: ids must not be negative, got {int(tokens.min())}")
    counts = np.bincount(tokens) if tokens.size else np.zeros(0)
    ignored = [i for i in ignore if 0 <= i < len(counts)]
    counts[ignored] = 0
    counts = counts[counts > 0]
    if not counts.size:
        raise UnifiedError("tokens: nothing to count, every token is ignored or there is none")
    shares = counts / counts.sum()
    return Entropy(nats=abs(float((shares * np.log(shares)).sum())))  # never -0


def folder_unigram_entropy(folder: str | Path, split: str = "train") -> Entropy:
    """Unigram entropy of the ordinary tokens (words and pieces) of one split of a folder of prepared documents.

    Args:
        folder: what ``unified prepare`` or ``fairseq-preprocess`` made of documents: ``dict.txt``, ``train.bin``, ...

    Raises:
        UnifiedError: a file is missing or garbled, or the split holds no ordinary token.
    """
    special = Vocabulary.load(Path(folder) / "dict.txt").special
    items = TokenFile(Path(folder) / split)
    tokens = items.slice(0, len(items))
    ordinary = (tokens >= special.ordinary_start) & (tokens < special.ordinary_stop)
    return unigram_entropy(tokens[ordinary])
