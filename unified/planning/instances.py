"""BERT's pre-training instances (google-research/bert, create_pretraining_data.py), planned once per epoch.

Sentences of a document are gathered until they have the target length. With next-sentence prediction a cut between two
of them divides them in two segments; half of the time, and always where one sentence was enough, the second is replaced
by text from a random sentence of another document on, and the sentences it held wait for the next instance. What
exceeds the row is cut off, a token at a time, from the longer segment, at its front or back.

What happens at a sentence, once it begins an instance, depends on nothing before it. So the choices are drawn for every
sentence at once, and an instance is a jump from one sentence to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from unified.data import randomness
from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.planning.rows import DealtDocuments, RowLimits
from unified.planning.segments import Segments
from unified.planning.sentences import Sentences
from unified.planning.text_request import TextRequest

#: Share of second segments drawn from another document, where an objective wants some [BERT, sec. 3.1].
RANDOM_SECOND_SHARE = 0.5


class SentenceTexts(Sentences, Protocol):
    """Running text, and the texts of segments of it."""

    def read(self, segments: Segments, is_next: np.ndarray | None) -> Texts:
        """Texts of given segments, each of one document; ``is_next`` is bool (n,), None for nothing."""
        ...


@dataclass(frozen=True)
class Instances:
    """A :class:`unified.planning.planners.Planner`.

    Attributes:
        next_sentence: two segments, the second one following or random; False gives one segment and nothing random.
        short_share: share of documents whose target length is drawn from 2 to the longest, instead of the longest.
    """

    next_sentence: bool
    short_share: float

    each_epoch: ClassVar[bool] = True
    shortest: ClassVar[int] = 2

    def plan(
        self, texts: SentenceTexts, limits: RowLimits, seed: int, epoch: int, dealt: DealtDocuments | None
    ) -> PlannedInstances:
        """Plans the instances of an epoch; the random choices depend on (seed, epoch) alone."""
        rng = randomness.generator(seed, epoch, randomness.INSTANCES)
        first, stop, targets = self._sentences(texts, dealt, limits.longest, rng)
        # Sentences first to stop - 1 are gathered, the first `cuts` of them for the first segment.
        stop = np.minimum(np.searchsorted(texts.bounds, texts.bounds[first] + targets), stop)
        counts = stop - first
        if self.next_sentence:
            cuts = rng.integers(1, np.maximum(counts, 2))
            random = (counts == 1) | (rng.random(len(counts)) < RANDOM_SECOND_SHARE)
        else:
            cuts, random = counts, np.zeros(len(counts), dtype=bool)
        begun = _visited(np.where(random, cuts, counts))
        first, stop, cuts, random, targets = (choice[begun] for choice in (first, stop, cuts, random, targets))
        starts = texts.bounds[np.stack([first, first + cuts])]
        stops = texts.bounds[np.stack([first + cuts, stop])]
        wanted = targets[random] - (stops - starts)[0, random]
        starts[1, random], stops[1, random] = _elsewhere(texts, first[random], wanted, rng)
        sizes = stops - starts
        lengths = truncated(sizes[0], sizes[1], limits.longest)
        starts += rng.binomial(sizes - lengths, 0.5)
        return PlannedInstances(texts, starts, lengths, ~random if self.next_sentence else None)

    def _sentences(
        self, texts: SentenceTexts, dealt: DealtDocuments | None, longest: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All sentences that are planned, document after document; the end of the document and the target of each."""
        document_starts = texts.document_starts if dealt is None else dealt.document_starts
        documents = np.arange(len(document_starts) - 1) if dealt is None else np.flatnonzero(dealt.wanted)
        targets = np.full(len(documents), longest)
        short = np.flatnonzero(rng.random(len(documents)) < self.short_share)
        targets[short] = rng.integers(2, longest + 1, len(short))
        firsts, stops = document_starts[documents], document_starts[documents + 1]
        sizes = stops - firsts
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(firsts, sizes) + within, np.repeat(stops, sizes), np.repeat(targets, sizes)


@dataclass(frozen=True)
class PlannedInstances:
    """A :class:`unified.planning.planners.TextPlan` of N instances.

    Attributes:
        starts: int64 (2, N), the index where each segment begins.
        segment_lengths: int64 (2, N), tokens of each; second segments of 0 tokens where there is only one.
        is_next: bool (N,), False where the second segment is random; None where there is only one.
    """

    source: SentenceTexts
    starts: np.ndarray
    segment_lengths: np.ndarray
    is_next: np.ndarray | None

    rows: ClassVar[None] = None

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text, both segments together, int64 (texts,)."""
        return self.segment_lengths.sum(0)

    def texts(self, indices: np.ndarray, objective: TextRequest, draws: Draws, epoch: int) -> Texts:
        """Texts of the instances. All are planned already: ``draws`` and ``epoch`` are not used."""
        count = 1 if self.is_next is None else 2
        segments = Segments(self.starts[:count, indices], self.segment_lengths[:count, indices])
        return self.source.read(segments, None if self.is_next is None else self.is_next[indices])


def truncated(first: np.ndarray, second: np.ndarray, longest: int) -> np.ndarray:
    """Lengths, int64 (2, N), after the longer of two segments, of equal ones the second, has lost tokens one by one.

    Args:
        first, second: int64 (N,), lengths before.
        longest: tokens that remain of both, at most.
    """
    # Tokens are cut from the longer segment alone until both are equally long.
    return np.stack(
        [
            np.minimum(first, np.maximum(longest - second, (longest + 1) // 2)),
            np.minimum(second, np.maximum(longest - first, longest // 2)),
        ]
    )


def _elsewhere(
    texts: SentenceTexts, sentences: np.ndarray, wanted: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Begins and ends of random second segments, int64 (N,) each: whole sentences until there are as many tokens.

    The published code draws a document up to ten times until it is another one; here it always is.

    Args:
        sentences: int64 (N,), a sentence of the document that is not to be drawn.
        wanted: int64 (N,), tokens; one sentence is taken in any case.
    """
    own = np.searchsorted(texts.document_starts, sentences, side="right") - 1
    documents = rng.integers(max(1, texts.document_count - 1), size=len(own))
    documents += documents >= own
    first, end = texts.document_starts[documents], texts.document_starts[documents + 1]
    first = rng.integers(first, end)
    stop = np.searchsorted(texts.bounds, texts.bounds[first] + np.maximum(wanted, 1))
    return texts.bounds[first], texts.bounds[np.minimum(stop, end)]


def _visited(jumps: np.ndarray) -> np.ndarray:
    """int64, where one comes by who starts at 0 and goes from i to ``i + jumps[i]``, up to the end."""
    indices, index, jump = [], 0, jumps.data
    while index < len(jump):
        indices.append(index)
        index += jump[index]
    return np.array(indices, dtype=np.int64)
