"""Answering questions of a conversation in free words as in CoQA [UniLM, sec. 3.2.2].

The source has two parts: what was said so far with the question behind it, and the chunk of the passage that shares
most words with that. The target is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from unified.errors import UnifiedError
from unified.tasks.datasets.coqa import NO_SPAN, CoqaTurn
from unified.tasks.windows import TokenCounter, Words, chunks, fitting
from unified.tokenization import single_spaced

#: Tokens of question and history, and of the whole source with the separator between its parts [UniLM, sec. 3.2.2].
MAX_HISTORY, MAX_SOURCE = 96, 470
_NO_LETTER = re.compile(r"\W+")


@dataclass(frozen=True)
class AnswerPair:
    """A turn as source and target.

    Attributes:
        story, number: what predictions are named by.
        source: what was said with the question, and the chunk of the passage.
        target: the main answer.
        rationale_shown: whether the main answer's rationale lies in the chunk; None where it has no span.
        unread: tokens of passage and history that are not in the source.
    """

    story: str
    number: int
    source: tuple[str, str]
    target: str
    rationale_shown: bool | None
    unread: int = 0


@dataclass(frozen=True)
class AnswerSource:
    """What an answer is written from.

    Attributes:
        said: the last words of the history, and the question.
        start, end: characters of the passage's chunk.
        unread: tokens of passage and history that are in neither.
    """

    said: str
    start: int
    end: int
    unread: int

    def parts(self, passage: str) -> tuple[str, str]:
        """The source as two parts."""
        return self.said, single_spaced(passage[self.start : self.end])


def answer_pairs(
    turns: Iterable[CoqaTurn], counter: TokenCounter, max_history: int = MAX_HISTORY, max_source: int = MAX_SOURCE
) -> Iterator[AnswerPair]:
    """A pair for each turn that has a question and an answer; others are left out (see :func:`unusable`).

    Raises:
        UnifiedError: a question, or a word of a passage, does not fit; names story and turn.
    """
    words = None
    for turn in turns:
        if unusable(turn):
            continue
        if words is None or words.text != turn.passage:
            words = Words.of(turn.passage, counter)
        try:
            source = answer_source(words, turn.history, turn.question, max_history, max_source, counter)
        except UnifiedError as error:
            raise UnifiedError(f"story {turn.story!r}, turn {turn.number}: {error}") from None
        main = turn.answers[0]
        shown = None if main.start == NO_SPAN else source.start <= main.start and main.end <= source.end
        parts, target = source.parts(turn.passage), single_spaced(main.text)
        yield AnswerPair(turn.story, turn.number, parts, target, shown, source.unread)


def unusable(turn: CoqaTurn) -> str | None:
    """Why a turn makes no pair; None where it does."""
    if not turn.question.strip():
        return "the question is empty"
    if not turn.answers[0].text.strip():
        return "the answer is empty"
    return None


def answer_source(
    words: Words,
    history: Sequence[tuple[str, str]],
    question: str,
    max_history: int,
    max_source: int,
    counter: TokenCounter,
) -> AnswerSource:
    """The source for a question about the passage ``words``; pairs and what users ask are made by this function.

    Args:
        max_history: tokens of history and question.
        max_source: tokens of the whole source with its separator.

    Raises:
        UnifiedError: the question, or a word of the passage, does not fit.
    """
    said = history_text(history, question, max_history, counter)
    start, end = passage_chunk(words, said, max_source, counter)
    earlier = _spoken(history)
    left_out = earlier[: len(earlier) + len(question.split()) - len(said.split())]
    shown = sum(map(counter, words.text[start:end].split()))
    return AnswerSource(said, start, end, sum(map(counter, left_out)) + words.tokens(0, len(words)) - shown)


def history_text(history: Sequence[tuple[str, str]], question: str, budget: int, counter: TokenCounter) -> str:
    """Earlier questions and answers in order, then the question; of the former the last words that fit ``budget``.

    Raises:
        UnifiedError: the question alone has more tokens.
    """
    asked = question.split()
    left = budget - sum(map(counter, asked))
    if left < 0:
        raise UnifiedError(
            f"the question {question[:60]!r} has {budget - left} tokens; question and history have room for {budget}"
        )
    said = _spoken(history)
    kept = len(said)
    while kept and counter(said[kept - 1]) <= left:
        kept -= 1
        left -= counter(said[kept])
    return " ".join([*said[kept:], *asked])


def _spoken(history: Sequence[tuple[str, str]]) -> list[str]:
    """The words of earlier turns in order."""
    return [word for turn in history for text in turn for word in text.split()]


def passage_chunk(words: Words, said: str, max_source: int, counter: TokenCounter) -> tuple[int, int]:
    """Characters of the chunk that :func:`best_chunk` takes for a source of at most ``max_source`` tokens.

    Raises:
        UnifiedError: no chunk fits beside what was said.
    """
    budget = max_source - 1 - counter(said)
    span = fitting(lambda tokens: best_chunk(words, said, tokens), words.text, budget, counter)
    assert span is not None  # best_chunk raises where nothing fits
    return span


def best_chunk(words: Words, query: str, budget: int) -> tuple[int, int]:
    """Characters of the chunk of ``budget`` tokens that has most different words of ``query``; of equals the first.

    Capitals and punctuation do not count. For the chunks see :func:`unified.tasks.windows.chunks`.
    """
    wanted = _different_words(query)
    spans = [words.characters(*chunk) for chunk in chunks(words, budget)]
    shared = [len(wanted & _different_words(words.text[start:end])) for start, end in spans]
    return spans[shared.index(max(shared))]


def _different_words(text: str) -> set[str]:
    return {_NO_LETTER.sub("", word) for word in text.lower().split()} - {""}
