"""Random items of every task that has a peer, and the words that they are made of."""

from __future__ import annotations

import debug
import numpy as np

from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.relation import RelationItem

#: Words, of which those of three letters have two pieces.
VOCABULARY = (*debug.WORDS, "a", "##bc", "##b")
LABELS = ("B-x", "I-x", "O")


def sentence(rng: np.random.Generator, least: int, most: int) -> list[str]:
    return rng.choice([*debug.WORDS[:20], "abc", "ab"], rng.integers(least, most)).tolist()


def texts(count: int, rng: np.random.Generator, numeric: bool = False) -> list[TextItem]:
    items = []
    for i in range(count):
        second = " ".join(sentence(rng, 1, 12)) if i % 3 else None
        label = float(rng.integers(0, 50)) / 10 if numeric else str(rng.choice(["no", "perhaps", "yes"]))
        items.append(TextItem(f"item {i}", " ".join(sentence(rng, 1, 12)), second, label))
    return items


def words(count: int, rng: np.random.Generator) -> list[WordsItem]:
    found = (sentence(rng, 1, 20) for _ in range(count))
    return [WordsItem(str(i), tuple(one), tuple(rng.choice(LABELS, len(one)))) for i, one in enumerate(found)]


def questions(count: int, rng: np.random.Generator) -> list[QuestionItem]:
    """Every third has no answer."""
    items = []
    for i in range(count):
        passage, question = sentence(rng, 5, 60), " ".join(sentence(rng, 1, 5))
        first = rng.integers(len(passage))
        answer = " ".join(passage[first : first + rng.integers(1, 4)])
        start = len(" ".join([*passage[:first], ""]))
        answers = () if i % 3 == 0 else (Answer(answer, start),)
        items.append(QuestionItem(str(i), question, " ".join(passage), answers, impossible=not answers or None))
    return items


def choices(count: int, rng: np.random.Generator) -> list[ChoiceItem]:
    """Every other has a question."""
    items = []
    for i in range(count):
        context, *four = (" ".join(sentence(rng, 1, 9)) for _ in range(5))
        items.append(ChoiceItem(str(i), context, tuple(four), "w1" if i % 2 else None, int(rng.integers(4))))
    return items


def relations(count: int, rng: np.random.Generator) -> list[RelationItem]:
    items = []
    for i in range(count):
        found = sentence(rng, 4, 20)
        starts = rng.integers(len(found), size=2).tolist()
        entities = tuple(Entity(start, min(start + 1 + i % 3, len(found))) for start in starts)
        items.append(RelationItem(str(i), tuple(found), entities, str(rng.choice(["a", "b", "none"]))))
    return items


MAKE = {
    "choice": choices,
    "classification": texts,
    "relation": relations,
    "regression": lambda count, rng: texts(count, rng, numeric=True),
    "tagging": words,
    "span": questions,
}
