"""The greedy oracle of extractive summaries against its definition, with ROUGE counted n-gram by n-gram."""

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
def test_the_search_takes_the_sentences_of_its_definition(vocabulary):
    rng, several = random.Random(vocabulary), 0
    texts = [f"W{i}" for i in range(vocabulary)] + ["...", "漢", "w1!", "a-b"]
    for _ in range(150):
        sentences = [" ".join(rng.choices(texts, k=rng.randint(0, 7))) for _ in range(rng.randint(0, 7))]
        summary = " ".join(rng.choices(texts, k=rng.randint(0, 12)))
        found = greedy_oracle(sentences, summary)
        assert found == by_definition(sentences, summary), (sentences, summary)
        several += len(found) > 1
    assert several > 20


@pytest.mark.parametrize("sentences", [["a", "b a"], ["b a", "b"]])
def test_a_bigram_across_two_taken_sentences_counts(sentences):
    # "b a" alone has F1 scores of 1 and 0. With the other sentence it is "a b a" or "b a b": 4/5 and, for "a b", 2/3.
    assert greedy_oracle(sentences, "a b") == [0, 1]


def test_a_sentence_is_not_taken_where_it_would_part_a_bigram():
    # "a" and "b" have F1 scores of 4/5 and 2/3. "c" between them would make them 1 and 0.
    assert greedy_oracle(["a", "c", "b"], "a b c") == [0, 2]
    assert greedy_oracle(["a", "b", "c"], "a b c") == [0, 1, 2]


def test_a_sentence_without_letters_or_digits_is_never_taken():
    assert greedy_oracle(["...", "漢", ""], "a") == [] and greedy_oracle(["...", "a"], "a") == [1]


def test_capitals_do_not_count_but_forms_of_a_word_do_and_each_as_often_as_the_summary_has_it():
    assert greedy_oracle(["walking"], "walked") == []
    assert greedy_oracle(["a", "a"], "A a") == [0, 1] and greedy_oracle(["a", "a"], "A b") == [0]


def test_the_smallest_gain_counts_that_is_more_than_a_rounding_error():
    """F1 of words alone, (m + 1) / (T + 2) after m / T, of which T is 2 m + 1: it gains 1 / (T (T + 2)), or 1.4e-9."""
    summary = [f"w{i}" for i in range(13_501)]
    assert 1e-9 < 1 / (27_001 * 27_003) < 2e-9
    assert greedy_oracle([" ".join(reversed(summary[1:])), "x w0"], " ".join(summary)) == [0, 1]
