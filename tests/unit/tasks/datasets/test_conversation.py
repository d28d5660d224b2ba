"""Pairs of generative question answering: history, the chunk with most common words, and what is left out."""

from __future__ import annotations

import random
import string

import pytest

from unified.errors import UnifiedError
from unified.tasks.datasets.coqa import answer_pairs, best_chunk, history_text, unusable
from unified.tasks.datasets.coqa_json import CoqaAnswer, CoqaTurn, read_coqa_file
from unified.tasks.windows import TokenCounter, Words, chunks

COUNT = TokenCounter(str.split)
LETTERS = TokenCounter(lambda text: "".join(text.split()))


def turn(passage: str, history=(), question="Who?", answer="Anna", **fields) -> CoqaTurn:
    answers = (CoqaAnswer(answer, "", **fields),)
    return CoqaTurn("s", 4, "cnn", passage, tuple(history), question, answers)


def test_history_keeps_the_latest_words_and_the_whole_question():
    history = [("who is it ?", "Anna"), ("where ?", "in Rome")]
    said = "who is it ? Anna where ? in Rome when ?".split()
    for budget in range(2, 15):
        assert history_text(history, " when\n?", budget, COUNT).split() == said[-budget:]
    assert history_text([], "when ?", 2, COUNT) == "when ?"
    with pytest.raises(
        UnifiedError, match=r"the question 'when \?' has 2 tokens; question and history have room for 1"
    ):
        history_text(history, "when ?", 1, COUNT)


def test_history_by_brute_force():
    rng = random.Random(3)
    for _ in range(500):
        history = [
            (" ".join(rng.choices(["a", "bcd", "efghi"], k=rng.randint(1, 4))), rng.choice(["x", "yyyy zz", ""]))
            for _ in range(rng.randint(0, 5))
        ]
        question, budget = rng.choice(["why", "who is it"]), rng.randint(8, 40)
        said = " ".join(text for one in history for text in one).split() + question.split()
        fitting = [said[i:] for i in range(len(said) + 1) if len("".join(said[i:])) <= budget]
        assert history_text(history, question, budget, LETTERS).split() == fitting[0]


def shared(words: list[str], query: str) -> int:
    """Different words of a query that a list has, capitals and punctuation aside, one by one."""
    strip = str.maketrans("", "", string.punctuation)
    plain = [word.lower().translate(strip) for word in words]
    return sum(word in plain for word in {word.lower().translate(strip) for word in query.split()} if word)


def test_the_best_chunk_by_brute_force():
    rng = random.Random(4)
    vocabulary = ["The", "the", "cat,", "cat", "dog.", "Dog", "sat", "U.S.", "on", "-", "mat!", "bird", "sang", "now"]
    moved = 0
    for _ in range(500):
        passage = " ".join(rng.choices(vocabulary, k=rng.randint(1, 60)))
        query, budget = " ".join(rng.choices(vocabulary, k=4)), rng.randint(3, 30)
        words = Words.of(passage, COUNT)
        listed = passage.split()
        scores = [shared(listed[first:stop], query) for first, stop in chunks(words, budget)]
        first, stop = chunks(words, budget)[scores.index(max(scores))]
        start, end = best_chunk(words, query, budget)
        assert passage[start:end].split() == listed[first:stop]
        moved += first > 0
    assert moved > 100


def test_the_chunk_is_the_one_about_the_question():
    passage = "filler " * 50 + "Anna sailed to Borneo in a red boat. " + "filler " * 50
    words = Words.of(passage, COUNT)
    start, end = best_chunk(words, "Who sailed to Borneo?", 20)
    assert "Anna sailed to Borneo" in passage[start:end] and len(passage[start:end].split()) == 20
    assert best_chunk(words, "Who sailed to Borneo?", 1000) == (0, len(passage) - 1)


def test_pairs():
    passage = "x " * 30 + " Anna is\n here. " + "x " * 30
    index = passage.index("Anna")
    history = (("is it cold ?", "yes"),)
    turns = [
        turn(passage, history, "is Anna here ?", " Yes,  she\nis. ", start=index, end=index + 4),
        turn(passage, (), "what x ?", start=index, end=index + 4),
        turn(passage, history, "is Anna here ?"),
    ]
    first, second, third = answer_pairs(turns, COUNT, max_history=6, max_source=22)
    assert first.source[0] == "? yes is Anna here ?" and first.target == "Yes, she is."
    assert "Anna is here." in first.source[1] and len(" ".join(first.source).split()) + 1 == 22
    assert (first.rationale_shown, second.rationale_shown, third.rationale_shown) == (True, False, None)
    assert (first.story, first.number) == ("s", 4)
    # Of 5 earlier words the source has the last 2, of 63 words of the passage the 15 of the chunk.
    assert first.unread == 3 + 63 - 15 and second.unread == 63 - len(second.source[1].split())
    (whole,) = answer_pairs(turns[:1], COUNT)
    assert whole.unread == 0
    assert whole.source == ("is it cold ? yes is Anna here ?", " ".join(passage.split()))


def test_turns_without_question_or_answer_make_no_pair():
    turns = [turn("a b"), turn("a b", question=" "), turn("a b", answer="\n")]
    assert [unusable(one) for one in turns] == [None, "the question is empty", "the answer is empty"]
    assert len(list(answer_pairs(turns, COUNT))) == 1


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"max_history": 2}, r"story 's', turn 4: the question 'Who is it \?' has 4 tokens; .* room for 2"),
        ({"max_source": 5}, "story 's', turn 4: a word of 1 token does not fit into a chunk of 0"),
    ],
)
def test_what_does_not_fit_is_named(sizes, message):
    with pytest.raises(UnifiedError, match=message):
        list(answer_pairs([turn("a b c", question="Who is it ?")], COUNT, **sizes))


@pytest.mark.slow
def test_real_conversations(unified_data):
    turns = read_coqa_file(unified_data / "coqa_abg" / "coqa_abg_val.json.xz")
    for max_source in (470, 150):
        pairs = list(answer_pairs(turns, COUNT, max_source=max_source))
        assert len(pairs) == 1092 and [pair.rationale_shown for pair in pairs].count(None) == 1
        for one, pair in zip(turns, pairs, strict=True):
            said, chunk = pair.source
            assert COUNT(said) <= 96 and COUNT(said) + 1 + COUNT(chunk) <= max_source
            assert said.endswith(" ".join(one.question.split())) and chunk in " ".join(one.passage.split())
            assert pair.target == " ".join(one.answers[0].text.split())
    # At 150 words 1,081 passages are cut. Measured: 755 of the chunks hold the rationale, against 512 of the first ones
    # and 552 of chunks taken at random.
    cut = [(one, pair) for one, pair in zip(turns, pairs, strict=True) if pair.source[1].split() != one.passage.split()]
    assert len(cut) == 1081 and sum(pair.rationale_shown is True for _, pair in cut) > 740
