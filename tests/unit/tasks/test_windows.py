"""Windows of words measured in tokens: every answer of every budget by brute force."""

from __future__ import annotations

import random

import pytest

from unified.errors import UnifiedError
from unified.tasks.windows import TokenCounter, Words, chunks, fitting, window_around

LETTERS = TokenCounter(lambda text: "".join(text.split()))


def random_text(rng: random.Random, most: int = 14) -> str:
    """Words of 1 to 5 letters with white space of all kinds around them."""
    words = ["".join(rng.choices("abcde", k=rng.randint(1, 5))) for _ in range(rng.randint(1, most))]
    return rng.choice(["", " ", "\n"]) + "".join(word + rng.choice([" ", "  ", "\n", "\u2009 "]) for word in words)


def brute_window(text: str, start: int, end: int, budget: int) -> str | None:
    """The words around characters, by adding words to a list one by one."""
    words, index = [], 0
    for word in text.split():
        index = text.index(word, index)
        words.append((word, index, index + len(word)))
        index += len(word)
    inside = [i for i, (_, a, b) in enumerate(words) if a < end and b > start]
    window = list(inside)

    def fits(numbers: list[int]) -> bool:
        return sum(len(words[i][0]) for i in numbers) <= budget

    if not fits(window):
        return None
    grown = True
    while grown:
        grown = False
        for wider in ([window[0] - 1, *window], None):
            wider = wider or [*window, window[-1] + 1]
            if 0 <= wider[0] and wider[-1] < len(words) and fits(wider):
                window, grown = wider, True
    return text[words[window[0]][1] : words[window[-1]][2]]


def test_windows_hold_the_answer_and_are_those_of_the_definition():
    rng = random.Random(1)
    refused = cut = 0
    for _ in range(3000):
        text = random_text(rng)
        indices = [i for i, character in enumerate(text) if not character.isspace()]
        start = rng.choice(indices)
        end = rng.choice([index for index in indices if index >= start]) + 1
        budget = rng.randint(1, 40)
        found = window_around(Words.of(text, LETTERS), start, end, budget)
        expected = brute_window(text, start, end, budget)
        assert (None if found is None else text[slice(*found)]) == expected
        refused += found is None
        if found is not None:
            assert found[0] <= start and end <= found[1]
            assert LETTERS(expected) <= budget
            cut += len(expected.split()) < len(text.split())
    assert refused > 300 and cut > 300


def test_a_window_is_as_even_as_the_text_allows():
    text = "a b c d e f g h i"
    words = Words.of(text, LETTERS)
    assert text[slice(*window_around(words, 8, 9, 1))] == "e"
    assert text[slice(*window_around(words, 8, 9, 4))] == "c d e f"
    assert text[slice(*window_around(words, 8, 9, 5))] == "c d e f g"
    assert text[slice(*window_around(words, 2, 3, 5))] == "a b c d e"
    assert text[slice(*window_around(words, 8, 9, 100))] == text
    with pytest.raises(UnifiedError, match="characters 1 to 2 of the text hold no word"):
        window_around(words, 1, 2, 5)


def test_chunks_cover_the_text_in_half_steps():
    rng = random.Random(2)
    several = 0
    for _ in range(2000):
        text, budget = random_text(rng, 40), rng.randint(5, 60)
        words = Words.of(text, LETTERS)
        found = chunks(words, budget)
        several += len(found) > 2
        assert found[0][0] == 0 and found[-1][1] == len(words)
        for first, stop in found:
            assert 0 < words.tokens(first, stop) <= budget
            # No word more fits: behind the chunk, or in front of the last one.
            assert stop == len(words) or words.tokens(first, stop + 1) > budget
        first, _ = found[-1]
        assert first == 0 or words.tokens(first - 1, len(words)) > budget
        for (first, stop), (following, _) in zip(found, found[1:], strict=False):
            assert first < following <= stop, "no word is left out"
            behind = [word for word in range(first + 1, stop + 1) if words.tokens(first, word) >= budget / 2]
            half = behind[0] if behind else stop
            assert following == half or (following, len(words)) == found[-1] and following < half
    assert several > 500


def test_words_that_cannot_fit_are_refused():
    with pytest.raises(UnifiedError, match="a word of 5 tokens does not fit into a chunk of 4"):
        chunks(Words.of("a bcdef g", LETTERS), 4)
    with pytest.raises(UnifiedError, match="at least one word"):
        Words.of(" \n ", LETTERS)


def test_a_text_of_more_tokens_than_its_words_is_shortened_until_it_fits():
    # A tokenizer that takes a token more for each gap than its words alone have.
    counter = TokenCounter(lambda text: list(text))
    text = "a b c d e f g h i"
    words = Words.of(text, counter)
    assert words.tokens(0, len(words)) == 9 and counter(text) == 17
    span = fitting(lambda budget: window_around(words, 8, 9, budget), text, 9, counter)
    assert span is not None and span[0] <= 8 < span[1] and counter(text[slice(*span)]) <= 9
    assert fitting(lambda budget: window_around(words, 8, 9, budget), text, 0, counter) is None
    asked: list[int] = []
    assert fitting(lambda budget: asked.append(budget) or (0, budget), text, 9, TokenCounter(lambda one: one + "+"))
    assert asked == [9, 8], "one token too many is one too many"


def test_words_are_encoded_once():
    asked: list[str] = []
    counter = TokenCounter(lambda text: asked.append(text) or text)
    Words.of("a b a b a", counter)
    assert asked == ["a", "b"]
