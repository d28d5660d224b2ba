"""Sentences of a text, by a few rules for languages written with Latin, Greek or Cyrillic letters."""

from __future__ import annotations

import re

_OPENING = "\"'“‘„«‹([{"
#: Marks that may end a sentence and what may close behind them, and the spaces before the next. A run of marks is
#: looked at once.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»›)\]}]*+ ++")
_WHITE_SPACE = re.compile(r"\s")
_FIRST = re.compile(rf"[{re.escape(_OPENING)}]*+(.?)")
_ABBREVIATIONS = frozenset(
    "mr mrs ms messrs dr prof st mt ft gen col lt sgt capt maj cmdr adm rev hon gov sen rep pres sr jr "
    "v vs cf viz al ca approx dept est univ jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
#: Abbreviations that stand before a number.
_BEFORE_NUMBERS = frozenset("no nos vol vols fig figs p pp ch art sec eq op bd".split())


def split_sentences(line: str, any_case: bool = False) -> list[str]:
    """The sentences of ``line`` by :func:`sentence_starts`, every run of white space in them one space."""
    line = " ".join(line.split())
    starts = _starts(line, any_case)
    ends = [*(start - 1 for start in starts[1:]), len(line)]
    return [line[start:end] for start, end in zip(starts, ends, strict=True)] if line else []


def sentence_starts(text: str, any_case: bool = False) -> list[int]:
    """Indices of the characters with which the sentences of ``text`` begin; the first is 0.

    A sentence ends at ``. ! ? …`` and the closing quotes and brackets behind it, where white space and then anything
    but a lower-case letter follow. A single full stop does not end one behind an initial (J. Smith), a word with a full
    stop inside (U.S., e.g.) or a common abbreviation (Dr.), nor behind "No." and its like where a digit follows.

    Args:
        any_case: a lower-case letter may begin a sentence, for texts without capitals.
    """
    return _starts(_WHITE_SPACE.sub(" ", text.rstrip()), any_case)


def _starts(text: str, any_case: bool) -> list[int]:
    """:func:`sentence_starts` of a text that has spaces for white space, and none at its end."""
    starts = [0]
    for end in _END.finditer(text):
        stop, start = end.span()
        first = _FIRST.match(text, start)
        assert first is not None  # it matches the empty text, too
        following = first[1]
        if following.islower() and not any_case:
            continue
        if text.startswith(". ", stop) and _is_abbreviated(text, starts[-1], stop, following):
            continue
        starts.append(start)
    return starts


def _is_abbreviated(line: str, start: int, stop: int, following: str) -> bool:
    """Does the last word of ``line[start:stop]`` take a full stop that ends no sentence?"""
    word = line[max(start, line.rfind(" ", start, stop) + 1) : stop].lstrip(_OPENING)
    is_initial = len(word) == 1 and word.isupper()
    has_inner_stop = "." in word and word[0].isalpha()
    is_numbered = following.isdigit() and word.lower() in _BEFORE_NUMBERS
    return is_initial or has_inner_stop or is_numbered or word.lower() in _ABBREVIATIONS
