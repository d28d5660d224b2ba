"""The greedy oracle against its definition, with ROUGE counted n-gram by n-gram."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from unified.tasks.datasets.summaries.greedy import greedy_oracle


def f1(found: list, wanted: list) -> float:
    """ROUGE's F1 of n-grams; 0 where a side has none."""
    common = (Counter(found) & Counter(wanted)).total()
    return 2 * common / (len(found) + len(wanted)) if common else 0.0


def words_of(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


def score(words: list[str], summary: list[str]) -> float:
    """Mean of ROUGE-1 and ROUGE-2."""
    pairs, wanted = (list(zip(some, some[1:], strict=False)) for some in (words, summary))
    return (f1(words, summary) + f1(pairs, wanted)) / 2


def by_definition(sentences: list[str], summary: str) -> list[int]:
    """Takes the sentence that makes the score highest, the first of equal ones, while one raises it."""
    taken: list[int] = []
    best = 0.0
    while True:
        scores = {}
        for number, sentence in enumerate(sentences):
            if number not in taken and words_of(sentence):
                chosen = sorted([*taken, number])
                scores[number] = score([word for i in chosen for word in words_of(sentences[i])], words_of(summary))
        highest = max(scores.values(), default=0.0)
        if highest <= best + 1e-9:
            return sorted(taken)
        best = highest
        taken.append(min(number for number, one in scores.items() if one >= highest - 1e-9))


@pytest.mark.parametrize("vocabulary", [2, 4, 9, 25])
def test_sentences_are_taken_as_defined(vocabulary):
    rng, several = random.Random(vocabulary), 0
    texts = [f"W{i}" for i in range(vocabulary)] + ["...", "漢", "w1!", "a-b"]
    for _ in range(150):
        sentences = [" ".join(rng.choices(texts, k=rng.randint(0, 7))) for _ in range(rng.randint(0, 7))]
        summary = " ".join(rng.choices(texts, k=rng.randint(0, 12)))
        found = greedy_oracle(sentences, summary)
        assert found == by_definition(sentences, summary), (sentences, summary)
        several += len(found) > 1
    assert several > 20


def test_a_bigram_may_lie_across_two_sentences_that_are_taken():
    # "b c" is no bigram of a sentence alone; with it the second sentence is worth taking, whichever comes first.
    assert greedy_oracle(["a b", "x", "c d"], "a b c d") == [0, 2]
    assert greedy_oracle(["c d", "a b"], "a b c d") == by_definition(["c d", "a b"], "a b c d")
    # What is taken between two others parts them.
    assert greedy_oracle(["a b", "q", "c", "d e"], "a b c d e") == [0, 2, 3]


def test_a_sentence_without_letters_or_digits_is_never_taken():
    assert greedy_oracle(["...", "漢", ""], "a") == [] and greedy_oracle(["...", "a"], "a") == [1]
    assert greedy_oracle(["a", "a"], "A a") == [0, 1]
