"""Generating the question that a part of a passage answers, on SQuAD [UniLM, sec. 3.3].

The source has two parts: a window of the passage around the answer, and the answer. The target is the question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unified.corpus.cleaning.sentences import sentence_starts
from unified.errors import Problems, UnifiedError
from unified.tasks.datasets.squad_json import SquadAnswer, SquadParagraph
from unified.tasks.windows import TokenCounter, Words, fitting, window_around
from unified.tokenization import single_spaced

#: Tokens of window, separator and answer [UniLM, sec. 3.3].
MAX_SOURCE = 456
#: Divisions of SQuAD 1.1, whose test set is not public, see :func:`divide`.
SPLITS = ("du", "reversed", "paper")


@dataclass(frozen=True)
class QuestionPair:
    """A question as source and target.

    Attributes:
        id: SQuAD's.
        source: the window and the answer.
        target: the question.
        sentence: the sentence that holds the answer, by which Du's program pools questions.
    """

    id: str
    source: tuple[str, str]
    target: str
    sentence: str


def question_pairs(
    paragraphs: Iterable[SquadParagraph], counter: TokenCounter, max_source: int = MAX_SOURCE, sentences: bool = False
) -> list[QuestionPair]:
    """A pair for each question that has an answer in its passage, made with the first one.

    Args:
        counter: of the model's tokens.
        max_source: tokens of window, separator and answer.
        sentences: show of a passage the sentence that holds the answer alone [Du et al. 2017], or a window of it.

    Raises:
        UnifiedError: answers are too long to stand in the window and behind it; the first ten questions are named.
    """
    pairs, problems = [], Problems()
    for paragraph in paragraphs:
        words = Words.of(paragraph.context, counter)
        for question in paragraph.questions:
            if not question.answers:
                continue
            answer = question.answers[0]
            start, end = sentence_around(paragraph.context, answer.start, answer.end)
            sentence = paragraph.context[start:end]
            try:
                if sentences:
                    source = sentence_source(paragraph.context, answer, max_source, counter)
                else:
                    source = question_source(words, answer, max_source, counter)
            except UnifiedError as error:
                problems.add(f"question {question.id!r}", error)
                continue
            pairs.append(QuestionPair(question.id, source, single_spaced(question.text), single_spaced(sentence)))
    problems.check()
    return pairs


def question_source(words: Words, answer: SquadAnswer, max_source: int, counter: TokenCounter) -> tuple[str, str]:
    """The window of a passage around an answer and the answer, together at most ``max_source`` tokens.

    The answer is whole in both parts. Training data and :func:`unified.tasks.composing.ask` are made by this function.

    Raises:
        UnifiedError: the answer does not fit twice.
    """
    second = single_spaced(answer.text)
    budget = max_source - 1 - counter(second)
    span = fitting(lambda tokens: window_around(words, answer.start, answer.end, tokens), words.text, budget, counter)
    if span is None:
        raise UnifiedError(
            f"its answer of {counter(second)} tokens has no room in a source of {max_source}, where it stands in "
            "the window and behind it; allow longer sources"
        )
    return single_spaced(words.text[slice(*span)]), second


def sentence_source(passage: str, answer: SquadAnswer, max_source: int, counter: TokenCounter) -> tuple[str, str]:
    """The sentence of a passage that holds the answer, or a window of it, and the answer; see :func:`question_source`.

    Raises:
        UnifiedError: the answer does not fit twice.
    """
    start, end = sentence_around(passage, answer.start, answer.end)
    within = SquadAnswer(answer.text, answer.start - start)
    return question_source(Words.of(passage[start:end], counter), within, max_source, counter)


def find_answer(passage: str, answer: str, start: int | None = None) -> SquadAnswer:
    """``answer`` at character ``start`` of ``passage``, or where it stands first.

    Raises:
        UnifiedError: it does not stand there, or nowhere.
    """
    if not answer.strip():
        raise UnifiedError("the answer is empty; give the words of the passage that a question shall be about")
    found = passage.find(answer) if start is None else start
    if found < 0 or not passage.startswith(answer, found):
        where = "in the passage" if start is None else f"at character {start} of the passage"
        raise UnifiedError(f"the answer {answer[:60]!r} is not {where}; it must be a part of it, letter by letter")
    return SquadAnswer(answer, found)


def sentence_around(context: str, start: int, end: int) -> tuple[int, int]:
    """Characters of the sentence, or sentences, that hold characters ``start`` to ``end``.

    Sentences are those of :func:`unified.corpus.cleaning.sentences.sentence_starts`. For 97.0 % of the questions of
    SQuAD's development set they are, but for spelling, those that Du et al. (2017) published.
    """
    bounds = [*sentence_starts(context, any_case=context.islower()), len(context)]
    return bounds[bisect_right(bounds, start) - 1], bounds[bisect_left(bounds, end)]


def divide(
    train: Sequence[SquadParagraph], dev: Sequence[SquadParagraph], split: str, held_out: frozenset[str] = frozenset()
) -> dict[str, list[SquadParagraph]]:
    """Divides SQuAD's train and dev sets into train, valid and test.

    ========== ==================================================================== ============ ============
    split      train                                                                valid        test
    ========== ==================================================================== ============ ============
    du         train articles that are not ``held_out`` (Du et al. 2017)            dev          ``held_out``
    reversed   the same (Zhao et al. 2018)                                          ``held_out`` dev
    paper      nine of ten train articles [UniLM, sec. 3.3]; it says 90/10, not by  every tenth  dev
               what                                                                 article
    ========== ==================================================================== ============ ============

    Args:
        held_out: titles of train articles, for the first two.

    Raises:
        UnifiedError: ``split`` is unknown, or one of the three is empty.
    """
    if split not in SPLITS:
        raise UnifiedError(f"split {split!r}: expected one of {', '.join(SPLITS)}")
    if split == "paper":
        titles = list(dict.fromkeys(paragraph.title for paragraph in train))
        held_out = frozenset(titles[9::10] or titles[-1:])
    rest = [paragraph for paragraph in train if paragraph.title not in held_out]
    held = [paragraph for paragraph in train if paragraph.title in held_out]
    valid, test = (list(dev), held) if split == "du" else (held, list(dev))
    splits = {"train": rest, "valid": valid, "test": test}
    for name, paragraphs in splits.items():
        if not paragraphs:
            raise UnifiedError(f"split {split!r}: {name} is empty; are these the whole SQuAD files?")
    return splits
