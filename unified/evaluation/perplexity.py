"""Perplexity of running text: how well a model predicts its tokens, per token, word, character and byte."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from unified.corpus.readers import DocumentCorpus
from unified.errors import UnifiedError
from unified.evaluation.patterns import Sampling
from unified.evaluation.scorings import Scoring
from unified.evaluation.windows import scores_in_windows
from unified.inference.language_model import UnifiedLM
from unified.inference.sequences import Codec
from unified.masks.steps import Integers


@dataclass(frozen=True)
class TextSizes:
    """Numbers that say how long documents are, int64 (documents,) each.

    Attributes:
        tokens: of the model's dictionary.
        words: parts between white space.
        characters, bytes: characters and UTF-8 bytes of the lines with the line ends between them.
        unknown: tokens that are the unknown symbol.
    """

    tokens: Integers
    words: Integers
    characters: Integers
    bytes: Integers
    unknown: Integers

    def rows(self) -> list[dict[str, int]]:
        """The sizes of each document by name."""
        names = [own.name for own in fields(self)]
        columns = (vars(self)[name].tolist() for name in names)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Documents:
    """Documents of a file that have tokens.

    Attributes:
        tokens: int64 (tokens,) of each, its lines one after another as pre-training reads them.
        sizes: of each.
    """

    tokens: Sequence[Integers]
    sizes: TextSizes


def read_documents(path: Path, lm: UnifiedLM, text_field: str = "text") -> Documents:
    """The documents of raw text, which blank lines divide, or of rows with a field for the text.

    Documents without a token, such as empty rows, have nothing to predict and are left out.

    Raises:
        UnifiedError: the file cannot be read, or holds no token.
    """
    corpus = DocumentCorpus((str(path),), text_field)
    lines = [own for chunk in corpus.chunks(whole_documents=True, skip_empty=True) for _, own in chunk.documents()]
    codec = Codec(lm.tokenizer, lm.vocabulary, lm.model.config.position_limit)
    encoded = iter(codec.encode([line for own in lines for line in own]))
    pairs = [(np.concatenate([next(encoded) for _ in own]), "\n".join(own)) for own in lines]
    pairs = [(ids, text) for ids, text in pairs if len(ids)]
    if not pairs:
        raise UnifiedError(f"{path}: holds no text")
    tokens, texts = zip(*pairs, strict=True)
    sizes = TextSizes(
        np.array([len(own) for own in tokens]),
        np.array([len(text.split()) for text in texts]),
        np.array([len(text) for text in texts]),
        np.array([len(text.encode()) for text in texts]),
        np.array([(own == lm.special.unknown).sum() for own in tokens]),
    )
    return Documents(tokens, sizes)


@dataclass(frozen=True)
class Perplexity:
    """Log-likelihoods of documents; one of :class:`unified.tasks.metrics.bootstrap.Examples`.

    Attributes:
        sizes: of the documents.
        log_likelihoods: float64 (documents,), in nats.
    """

    sizes: TextSizes
    log_likelihoods: np.ndarray

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.log_likelihoods)

    def references(self) -> list[tuple[int, int, int]]:
        """Words, characters and bytes of each document; tokens depend on the model."""
        own = self.sizes
        return list(zip(own.words.tolist(), own.characters.tolist(), own.bytes.tolist(), strict=True))

    def scores(self) -> dict[str, Any]:
        """The :meth:`measures`, the log-likelihood of all in nats, and how much text there is."""
        sums = {own.name: int(vars(self.sizes)[own.name].sum()) for own in fields(self.sizes)}
        total = float(self.log_likelihoods.sum())
        return {**self.measures(), "log_likelihood": total, "documents": self.size, **sums}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """Perplexity per token and per word, bits per character and per byte.

        Args:
            counts: how often each document is in a sample of them, float64 (documents,); None: once.
        """
        weights = np.ones(self.size) if counts is None else counts
        nats = -float(weights @ self.log_likelihoods)
        own = self.sizes
        return {
            "token_perplexity": _exp(nats / float(weights @ own.tokens)),
            "word_perplexity": _exp(nats / float(weights @ own.words)),
            "bits_per_character": nats / math.log(2) / float(weights @ own.characters),
            "bits_per_byte": nats / math.log(2) / float(weights @ own.bytes),
        }


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf  # the largest float is e to the 709.8


def score_documents(
    lm: UnifiedLM,
    documents: Documents,
    scoring: Scoring,
    size: int,
    stride: int,
    sampling: Sampling = Sampling(),  # noqa: B008 (it is frozen)
    done: Callable[[int], Any] = lambda count: None,
) -> Perplexity:
    """Score documents, each by itself, long ones in windows.

    Args:
        size, stride: of :func:`unified.evaluation.windows.windows`.
        sampling: what "permutation" and "diffusion" draw.
        done: is told now and then how many windows more have been scored.

    Raises:
        UnifiedError: the model cannot score so.
    """
    scored = scores_in_windows(lm, documents.tokens, scoring, size, stride, sampling, done)
    return Perplexity(documents.sizes, np.array([own.total for own in scored]))
