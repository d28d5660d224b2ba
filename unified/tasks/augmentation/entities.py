"""Entities of a text with their types, by rules for English that read capitals, digits and names of months."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DIGITS = r"\d+(?:,\d{3})*(?:\.\d+)?"
_SCALE = r"(?:\s+(?:thousand|million|billion|trillion)\b)?"
#: Type -> what looks like it; of what begins at the same index the first counts.
_VALUES = {
    "date": rf"\b(?:(?:{_MONTHS})\s+\d{{1,2}}(?!\d)(?:\s*,\s*\d{{4}})?|\d{{1,2}}\s+(?:{_MONTHS})\b(?:\s+\d{{4}})?"
    rf"|(?:{_MONTHS})\s+\d{{4}}|(?:{_MONTHS})\b)",
    "money": rf"[$£€¥]\s?{_DIGITS}{_SCALE}",
    "percentage": rf"\b{_DIGITS}\s?(?:%|percent\b|per cent\b)",
    "year": r"\b(?:1\d{3}|20\d{2})(?:s\b)?(?![\w,.]*\d)",
    "ordinal": r"\b\d+(?:st|nd|rd|th)\b",
    "number": rf"\b{_DIGITS}\b{_SCALE}",
}
_VALUE = re.compile("|".join(f"(?P<{entity_type}>{pattern})" for entity_type, pattern in _VALUES.items()))
_NAME = "name"
#: Apostrophes and hyphens may stand within a word; a possessive ’s is no part of it.
_WORD = re.compile(r"[^\W\d_](?:(?:(?!['’]s\b)[\w’'-])*\w)?")
#: Words that join capitalized words to one name.
_JOINS = frozenset("of the de da del la le du von van der den di al".split())
#: Words that begin sentences with a capital and are no names.
_FUNCTION_WORDS = frozenset(
    "a about after all also although among an and another any are as at because before being between both but by can "
    "could despite did do does during each either even every few for from had has have he her here his how however i "
    "if in into is it its later like many more most much my neither no nor not now of on once only or other others "
    "over several she should since so some such than that the their then there these they this those though through "
    "throughout thus to today together too under until up upon was we were what when where whether which while who "
    "whom whose why will with within without would yet you your".split()
)
#: Abbreviations in front of names.
_TITLES = frozenset("dr mr mrs ms prof st".split())
#: Marks and blanks in front of the first word of a sentence.
_SENTENCE_BREAK = re.compile(r"(?:\A|[.!?:;]['\"”’)\]]*)\s*['\"“‘(\[]*")


@dataclass(frozen=True)
class Entity:
    """Characters ``start`` to ``end`` (exclusive) of a text are ``text``, a name or value of ``type``."""

    start: int
    end: int
    text: str
    type: str


def entities_by_rules(texts: Sequence[str]) -> list[list[Entity]]:
    """Entities of each text by the rules of :func:`find_entities`."""
    return [find_entities(text) for text in texts]


def entities_of_spacy(pipeline: str, code: str | None = None) -> Callable[[Sequence[str]], list[list[Entity]]]:
    """A function that finds the entities of texts with a spaCy pipeline, which may tell people from places.

    Args:
        pipeline, code: as for :class:`unified.corpus.spacy_pipeline.SpacyAnnotator`.

    Raises:
        UnifiedError: spaCy is not installed, or the pipeline cannot be loaded or finds no entities.
    """
    # Imported here: spaCy is needed by nobody else.
    from unified.corpus.spacy_pipeline import SpacyAnnotator

    annotator = SpacyAnnotator(("entities",), pipeline, code)

    def find(texts: Sequence[str]) -> list[list[Entity]]:
        found = annotator.typed_entities(texts)
        return [
            [Entity(start, end, text[start:end], entity_type) for start, end, entity_type in spans]
            for text, spans in zip(texts, found, strict=True)
        ]

    return find


def find_entities(text: str) -> list[Entity]:
    """Entities in the order of the text; none overlap.

    Types are "date", "money", "percentage", "year", "ordinal", "number", and "name" for runs of capitalized words:
    a person and a place are of one type. A name ends before a possessive ’s. A single capitalized word at the
    beginning of a sentence is a name where the text also has it within a sentence.
    """
    values = [
        Entity(*match.span(), match.group(), match.lastgroup) for match in _VALUE.finditer(text) if match.lastgroup
    ]
    taken = [(entity.start, entity.end) for entity in values]
    names = [name for name in _names(text) if all(name.end <= start or end <= name.start for start, end in taken)]
    return sorted([*values, *names], key=lambda entity: entity.start)


def _names(text: str) -> Iterator[Entity]:
    words = list(_WORD.finditer(text))
    beginnings = {found.end() for found in _SENTENCE_BREAK.finditer(text)}
    inside = {word.group() for word in words if _is_capitalized(word.group()) and word.start() not in beginnings}
    i = 0
    while i < len(words):
        last = _last_of_name(text, words, i)
        if last < i:
            i += 1
            continue
        first = i
        i = last + 1
        while first <= last and words[first].group().lower() in _FUNCTION_WORDS:
            first += 1
        if first > last:
            continue
        alone = first == last and words[first].start() in beginnings
        if alone and words[first].group() not in inside:
            continue
        start, end = words[first].start(), words[last].end()
        end += text.startswith(".", end) and re.search(r"\.[^\W\d_]$", text[start:end]) is not None  # U.S.
        yield Entity(start, end, text[start:end], _NAME)


def _last_of_name(text: str, words: list[re.Match[str]], first: int) -> int:
    """Number of the last word of the run of capitalized words that begins at ``first``; less where there is none."""
    last, i = first - 1, first
    while i < len(words) and (i == first or _adjoin(text, words[i - 1], words[i])):
        if _is_capitalized(words[i].group()):
            last = i
        elif last < first or words[i].group() not in _JOINS:
            break
        i += 1
    return last


def _adjoin(text: str, word: re.Match[str], following: re.Match[str]) -> bool:
    """Whether nothing but blanks stands between two words, or the full stop of an initial or of a title."""
    between = text[word.end() : following.start()]
    is_short = len(word.group()) == 1 or word.group().lower() in _TITLES
    return between.isspace() or (is_short and between.startswith(".") and not between[1:].strip())


def _is_capitalized(word: str) -> bool:
    return word[0].isupper()
