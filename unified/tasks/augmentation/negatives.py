"""Questions without an answer, made of answered ones by rules: another entity, or a negation [UniLM, app. A]."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unified.tasks.augmentation.entities import Entity

_TOKEN = re.compile(r"\w+|[^\w\s]")
#: Forms of to be, to do and to have, and modals: "not" goes behind the first of a question.
AUXILIARIES = frozenset(
    "am is are was were be been being do does did have has had can could will would shall should may might must".split()
)
_NEGATIONS = frozenset("not no never nor neither none nothing nobody cannot without".split())


@dataclass(frozen=True)
class Negative:
    """A question that its passage should not answer.

    Attributes:
        question: the text.
        way: "swap" or "negation".
        source: number of the answered question that it was made of.
    """

    question: str
    way: str
    source: int


def negatives(
    questions: Sequence[str], entities: Sequence[Entity], share: float, rng: np.random.Generator
) -> list[Negative]:
    """Makes at most one negative of each answered question about a passage.

    Of the ways that a question allows one is drawn, and for a swap one of all swaps. A question that is asked already,
    capitals and blanks aside, is not among them.

    Args:
        entities: of the passage.
        share: of the questions that something is made of, where it can be.
    """
    asked = {words_of(question) for question in questions}
    found = []
    for number, question in enumerate(questions):
        if rng.random() >= share:
            continue
        negation = negated(question)
        ways = {"swap": swaps(question, entities), "negation": [] if negation is None else [negation]}
        ways = {way: [text for text in texts if words_of(text) not in asked] for way, texts in ways.items()}
        possible = [way for way, texts in ways.items() if texts]
        if not possible:
            continue
        way = possible[rng.integers(len(possible))]
        text = ways[way][rng.integers(len(ways[way]))]
        asked.add(words_of(text))
        found.append(Negative(text, way, number))
    return found


def swaps(question: str, entities: Sequence[Entity]) -> list[str]:
    """The question with one of the passage's entities, where it has one, replaced by another of the same type.

    Entities are found in it whatever their capitals and blanks: "u . s ." is "U.S.". The longest of those that overlap
    counts. What the question has already does not come in, nor does what holds the replaced words: a longer form of the
    same name, "Christ the Savior" for "Christ", would leave the answer where it is.
    """
    tokens = list(_TOKEN.finditer(question))
    words = words_of(question)
    found: dict[str, None] = {}
    for first, stop, entity_type in _occurrences(words, entities):
        before, behind = question[: tokens[first].start()], question[tokens[stop - 1].end() :]
        replaced = words[first:stop]
        others = (
            other
            for other in entities
            for its_words in [words_of(other.text)]
            if other.type == entity_type and not _begins(its_words, words) and not _begins(replaced, its_words)
        )
        found |= dict.fromkeys(f"{before}{other.text}{behind}" for other in others)
    return list(found)


def negated(question: str) -> str | None:
    """The question with "not" behind its first auxiliary; None where it has none, or says no already."""
    tokens = list(_TOKEN.finditer(question))
    words = words_of(question)
    if _NEGATIONS.intersection(words) or {("'", "t"), ("’", "t")}.intersection(pairwise(words)):
        return None
    for i, word in enumerate(words):
        is_month = word == "may" and i + 1 < len(words) and words[i + 1][0].isdigit()
        if word in AUXILIARIES and not is_month:
            return f"{question[: tokens[i].end()]} not{question[tokens[i].end() :]}"
    return None


def words_of(text: str) -> tuple[str, ...]:
    """Words and punctuation marks without regard to capitals and blanks."""
    return tuple(match.group().casefold() for match in _TOKEN.finditer(text))


def _occurrences(words: tuple[str, ...], entities: Sequence[Entity]) -> list[tuple[int, int, str]]:
    """First word, the one behind the last, and type of entities among the words of a question; none overlap."""
    spans = {
        (i, i + len(wanted), entity.type)
        for entity in entities
        for wanted in [words_of(entity.text)]
        for i in _begins(wanted, words)
    }
    found, end = [], 0
    for first, stop, entity_type in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        if first >= end:
            found.append((first, stop, entity_type))
            end = stop
    return found


def _begins(wanted: tuple[str, ...], words: tuple[str, ...]) -> list[int]:
    """Indices at which ``wanted`` begins among ``words``."""
    return [i for i in range(len(words)) if words[i : i + len(wanted)] == wanted]
