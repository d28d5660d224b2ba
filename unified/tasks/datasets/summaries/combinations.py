"""Choice of the sentences for an extractive summary: the best combination of sentences by ROUGE-2.

The method is that of Zhou et al. 2018, "Neural document summarization by jointly learning to score and select
sentences", which UniLM names in section 3.1, with the limits of the authors' program (magic282/cnndm_acl18,
find_oracle.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nltk.stem.porter import PorterStemmer
    from rouge_score.tokenizers import DefaultTokenizer

#: Most sentences of a combination, and most combinations of one size, that are tried.
MAX_SENTENCES, MAX_COMBINATIONS = 5, 100_000


@cache
def _tools() -> tuple[DefaultTokenizer, PorterStemmer]:
    """Loaded when first used: importing them takes most of a second, and every command knows the tasks of summaries."""
    from nltk.stem.porter import PorterStemmer
    from rouge_score.tokenizers import DefaultTokenizer

    return DefaultTokenizer(use_stemmer=False), PorterStemmer()


@lru_cache(maxsize=1 << 17)
def _stem(word: str) -> str:
    return _tools()[1].stem(word)


def best_combination(
    sentences: Sequence[str],
    summary: Sequence[str],
    max_sentences: int = MAX_SENTENCES,
    max_combinations: int = MAX_COMBINATIONS,
) -> tuple[list[int], bool]:
    """Search the combination of sentences whose ROUGE-2 F1 with a summary is highest.

    Candidates are the sentences that share a bigram with the summary. Of them all combinations of one sentence are
    tried, then all of two, and so on, until the best one of a size is no better than the best one before. Of equally
    good combinations of a size the first one counts. Words are the runs of ASCII letters and digits in lower case,
    reduced by Porter's stemmer; bigrams do not cross the ends of sentences.

    Args:
        sentences: of the source.
        summary: its sentences.
        max_sentences: sizes that are tried.
        max_combinations: a size with more combinations than that is not tried.

    Returns:
        Numbers of the sentences, increasing; none where no sentence shares a bigram with the summary. And whether a
        limit ended the search while the score still grew.
    """
    wanted: dict[tuple[str, str], int] = {}
    for bigram in chain.from_iterable(map(_bigrams, summary)):
        wanted[bigram] = wanted.get(bigram, 0) + 1
    bigrams = [_bigrams(sentence) for sentence in sentences]
    candidates = [number for number, own in enumerate(bigrams) if not wanted.keys().isdisjoint(own)]
    totals = np.array([len(bigrams[number]) for number in candidates])
    wanted_total = sum(wanted.values())
    # Large matrices follow, so that their type is the smallest one that holds all sums.
    dtype = np.min_scalar_type(max(int(totals.sum()), wanted_total))
    counts = _counts([bigrams[number] for number in candidates], list(wanted), dtype)
    limits = np.array(list(wanted.values()), dtype=dtype)
    best_score = 0.0
    best: list[int] = []
    for size in range(1, len(candidates) + 1):
        if size > max_sentences or math.comb(len(candidates), size) > max_combinations:
            return [candidates[i] for i in best], True
        tried = _combinations(len(candidates), size)
        matches = sum(counts[column] for column in tried.T)  # (combinations, bigrams)
        matches = np.minimum(matches, limits).sum(axis=1)
        scores = 2 * matches / (totals[tried].sum(axis=1) + wanted_total)
        first = int(scores.argmax())
        if scores[first] <= best_score:
            break
        best_score, best = float(scores[first]), tried[first].tolist()
    return [candidates[i] for i in best], False


def _bigrams(sentence: str) -> list[tuple[str, str]]:
    words = [_stem(word) for word in _tools()[0].tokenize(sentence)]
    return list(zip(words, words[1:], strict=False))


def _counts(
    texts: Sequence[Sequence[tuple[str, str]]], bigrams: Sequence[tuple[str, str]], dtype: np.dtype
) -> np.ndarray:
    """Count of each of the bigrams in each text, (texts, bigrams)."""
    columns = {bigram: column for column, bigram in enumerate(bigrams)}
    found = [(row, columns[bigram]) for row, text in enumerate(texts) for bigram in text if bigram in columns]
    counts = np.zeros((len(texts), len(bigrams)), dtype=dtype)
    np.add.at(counts, tuple(np.array(found, dtype=np.int64).reshape(-1, 2).T), 1)
    return counts


@lru_cache(maxsize=64)
def _combinations(count: int, size: int) -> np.ndarray:
    """All combinations of ``size`` numbers below ``count``, in lexicographic order, (combinations, size)."""
    numbers = chain.from_iterable(combinations(range(count), size))
    return np.fromiter(numbers, dtype=np.min_scalar_type(count)).reshape(-1, size)
