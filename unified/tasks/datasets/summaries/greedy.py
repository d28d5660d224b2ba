"""Choice of the sentences for an extractive summary: the greedy ROUGE oracle."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

# What raises the score by less is a rounding error.
_TOLERANCE = 1e-9
_Ngram = TypeVar("_Ngram", str, tuple[str, str])  # a word or a bigram


def greedy_oracle(sentences: Sequence[str], summary: str) -> list[int]:
    """Numbers of the sentences, increasing, that a greedy search for the best ROUGE takes (Nallapati et al. 2017, 3).

    From none on, the sentence is added that makes the score of those taken, read in the order of the source, highest,
    as long as one raises it; of equally good ones the first. The score is the mean of ROUGE-1 and ROUGE-2 F1 as
    rouge-score computes them, without stemming. A sentence without a word of ASCII letters or digits is never taken.
    """
    if not sentences:
        return []
    # Imported here, so that commands that only know the tasks of summaries do not wait for it.
    from rouge_score.tokenizers import DefaultTokenizer

    tokenizer = DefaultTokenizer(use_stemmer=False)
    search = _Search([tokenizer.tokenize(sentence) for sentence in sentences], tokenizer.tokenize(summary))
    best = 0.0
    while True:
        scores = search.scores()
        number = int(np.argmax(scores >= scores.max() - _TOLERANCE))
        if scores[number] <= best + _TOLERANCE:
            return search.taken
        best = scores[number]
        search.take(number)


class _Search:
    """Sentences taken so far, and the change of the score that each other one would make.

    Letters: S sentences, U and B the different words and bigrams of the summary: no other n-gram can match.

    Args:
        texts: the words of each sentence.
        summary: the words of the summary.
    """

    def __init__(self, texts: list[list[str]], summary: list[str]):
        self.taken: list[int] = []
        self._texts = texts
        self._lengths = np.array([len(text) for text in texts])
        self._columns = {word: column for column, word in enumerate(dict.fromkeys(summary))}
        bigrams = list(zip(summary, summary[1:], strict=False))
        self._bigram_columns = {bigram: column for column, bigram in enumerate(dict.fromkeys(bigrams))}
        self._wanted = _counts([summary], self._columns)[0]  # (U,)
        self._wanted_bigrams = _counts([bigrams], self._bigram_columns)[0]  # (B,)
        self._words = _counts(texts, self._columns)  # (S, U)
        self._bigrams = _counts([zip(t, t[1:], strict=False) for t in texts], self._bigram_columns)  # (S, B)
        self._have, self._have_bigrams = np.zeros_like(self._wanted), np.zeros_like(self._wanted_bigrams)
        self._length = 0

    def scores(self) -> np.ndarray:
        """Score of the taken sentences with each other one added, float64 (S,); -inf for the taken ones."""
        words = np.minimum(self._have + self._words, self._wanted).sum(1)
        bigrams = np.minimum(self._have_bigrams + self._bigrams + self._borders(), self._wanted_bigrams).sum(1)
        lengths = self._length + self._lengths
        scores = _half_f1(words, lengths, self._wanted) + _half_f1(bigrams, lengths - 1, self._wanted_bigrams)
        scores[self.taken] = -np.inf
        return scores

    def take(self, number: int) -> None:
        self._have_bigrams = self._have_bigrams + self._bigrams[number] + self._borders()[number]
        self._have = self._have + self._words[number]
        self._length += len(self._texts[number])
        insort(self.taken, number)

    def _borders(self) -> np.ndarray:
        """Bigrams across the borders of sentences that adding each one makes, less the one it parts, int64 (S, B)."""
        changes = np.zeros_like(self._bigrams)
        for number, text in enumerate(self._texts if self.taken else []):
            index = bisect_left(self.taken, number)
            before = self._texts[self.taken[index - 1]] if index else None
            after = self._texts[self.taken[index]] if index < len(self.taken) else None
            for left, right, change in ((before, text, 1), (text, after, 1), (before, after, -1)):
                if left and right and (left[-1], right[0]) in self._bigram_columns:
                    changes[number, self._bigram_columns[left[-1], right[0]]] += change
        return changes


def _counts(texts: Sequence[Iterable[_Ngram]], columns: dict[_Ngram, int]) -> np.ndarray:
    """Count of each n-gram of ``columns`` in each text, int64 (texts, columns)."""
    counts = np.zeros((len(texts), len(columns)), dtype=np.int64)
    for row, text in enumerate(texts):
        for ngram in text:
            column = columns.get(ngram)
            if column is not None:
                counts[row, column] += 1
    return counts


def _half_f1(matches: np.ndarray, totals: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return matches / np.maximum(totals + wanted.sum(), 1)
