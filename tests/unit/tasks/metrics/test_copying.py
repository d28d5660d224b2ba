"""Repetition and copied words of generated texts, beside their definitions."""

import random

import pytest

from unified.errors import UnifiedError
from unified.tasks.metrics import score_generation, score_question_generation
from unified.tasks.metrics.copying import FUNCTION_WORDS, CopyingCounts, words_of


def test_repeated_bigrams_are_those_that_the_same_text_had_before():
    """Of "the name of the name of the world" the bigrams "the name", "name of" and "of the" come twice: 3 of 7."""
    scores = score_generation(["The name of the name, of the world?"], ["r"])
    assert scores.repeated_bigrams == pytest.approx(100 * 3 / 7)
    both = score_generation(["The name of the name, of the world?", "the name of it", "one", ""], ["r"] * 4)
    assert both.repeated_bigrams == pytest.approx(100 * 3 / (7 + 3))
    assert score_generation(["one"], ["r"]).repeated_bigrams == 0


def test_source_words_are_the_content_words_that_the_source_has():
    source = "Anna Berg built the tower in 1889."
    scores = score_generation(["Who built the Tower of Paris in 1889 ?"], ["r"], sources=[source])
    assert scores.source_words == pytest.approx(100 * 3 / 4)  # built, tower, 1889, but not Paris
    assert score_generation(["Who is it?"], ["r"], sources=[source]).source_words == 0
    assert score_generation(["Who?"], ["r"]).source_words is None
    assert "source_words" not in score_generation(["Who?"], ["r"]).to_dict()
    assert score_generation(["Ünlü şehir"], ["r"], sources=["şehir"]).source_words == 50


def test_shares_are_of_all_texts_together():
    rng = random.Random(5)
    drawn = [
        " ".join(rng.choices(["the", "Fox", "runs", "Paris", "of", "42"], k=rng.randint(0, 12))) for _ in range(80)
    ]
    texts, sources = drawn[:40], drawn[40:]
    bigrams = repeated = content = copied = 0
    for text, source in zip(texts, sources, strict=True):
        words, seen = words_of(text), set()
        for pair in zip(words, words[1:], strict=False):
            bigrams, repeated = bigrams + 1, repeated + (pair in seen)
            seen.add(pair)
        for word in words:
            if word not in FUNCTION_WORDS:
                content, copied = content + 1, copied + (word in words_of(source))
    assert 0 < copied < content and 0 < repeated < bigrams
    scores = score_generation(texts, texts, sources=sources)
    assert scores.repeated_bigrams == pytest.approx(100 * repeated / bigrams)
    assert scores.source_words == pytest.approx(100 * copied / content)


def test_of_questions_the_scored_one_of_each_source_counts():
    questions = ["what built what built it", "who built the tower", "who sang who sang"]
    found = score_question_generation(questions, ["r"] * 3, ["Anna built", "anna built", "x"])
    assert found.source_words == pytest.approx(100 / 4) and found.repeated_bigrams == pytest.approx(100 / 6)


def test_every_text_needs_a_source():
    with pytest.raises(UnifiedError, match="1 source for 2 texts"):
        score_generation(["a", "b"], ["a", "b"], sources=["a"])


def test_one_content_word_is_all_or_nothing():
    assert CopyingCounts(["the Paris"], ["in paris"]).measures()["source_words"] == 100
    assert CopyingCounts(["the Paris"], ["in Rome"]).measures()["source_words"] == 0
    assert CopyingCounts(["of the"], ["of the"]).measures()["source_words"] == 0
