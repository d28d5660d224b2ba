"""CoQA (Reddy et al. 2019): questions within conversations about a passage, answered by parts of it or in free words.

Free words are written from a source of two parts [UniLM, sec. 3.2.2]: what was said so far with the question behind it,
and the chunk of the passage that shares most words with that. The target is the answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError, WrongField, require_fields
from unified.files.ids import item_id
from unified.runtime.progress import Progress
from unified.tasks.datasets.coqa_json import NO_SPAN, CoqaTurn, read_coqa_file
from unified.tasks.datasets.files import matching_files, read_together, split_questions
from unified.tasks.heads.items import are_texts, nonempty_text
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.metrics.official_answers import coqa_files
from unified.tasks.metrics.squad import normalize_answer
from unified.tasks.settings import Task, Training
from unified.tasks.windows import TokenCounter, Words, chunks, fitting
from unified.tasks.writing import TokenBudget, WritingItem, WritingTask, WritingTraining
from unified.tasks.writing_scores import scored_answers
from unified.tokenization import single_spaced

#: Tokens of question and history, and of the whole source with the separator between its parts [UniLM, sec. 3.2.2].
MAX_HISTORY, MAX_SOURCE = 96, 470
_NO_LETTER = re.compile(r"\W+")
#: Answers of CoQA that are no parts of a passage.
CHOICES = ("yes", "no", "unknown")


def read_coqa(folder: Path) -> dict[str, list[QuestionItem]]:
    """Splits of a folder with ``coqa-train-v1.0.json`` and ``coqa-dev-v1.0.json``."""

    def items(path: Path) -> list[QuestionItem]:
        return coqa_items(read_coqa_file(path))

    return split_questions(folder, {"train": "coqa-train*.json*", "valid": "coqa-dev*.json*"}, items)


def coqa_items(turns: Iterable[CoqaTurn]) -> list[QuestionItem]:
    """Items of CoQA's turns; turns without a question or an answer are left out.

    The answer is the part of the passage that is most like the main free answer, or one of :data:`CHOICES`; what was
    said before is the history.
    """
    return [_turn(turn) for turn in turns if turn.question.strip() and turn.answers[0].text.strip()]


def _turn(turn: CoqaTurn) -> QuestionItem:
    main, choice = turn.answers[0], normalize_answer(turn.answers[0].text)
    answers: tuple[Answer, ...] = ()
    if choice not in CHOICES:
        rationale = None if main.start == NO_SPAN else (main.start, main.end)
        span = most_similar_span(turn.passage, main.text, rationale)
        answers = (Answer(turn.passage[slice(*span)], span[0]) if span else Answer(main.text),)
    return QuestionItem(
        f"{turn.story} {turn.number}",
        turn.question,
        turn.passage,
        answers,
        choice=choice if choice in CHOICES else None,
        history=" ".join(text for said in turn.history for text in said) or None,
        references=tuple(answer.text for answer in turn.answers),
    )


_WORD = re.compile(r"\S+")
#: Characters beside an answer that do not belong to it.
_BEFORE, _BEHIND = "\"'([{“‘", "\"')]}”’.,;:!?"


def most_similar_span(passage: str, answer: str, preferred: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Characters of the words of ``passage`` with the highest F1 to ``answer``; None where they share no word.

    F1 is that of the official rules, see :func:`unified.tasks.metrics.squad.word_f1`. Of equal ones those within the
    characters ``preferred`` come first, then the shortest, then the first. Quotation marks and the like at the ends are
    left out.
    """
    wanted = Counter(normalize_answer(answer).split())
    spans_of_words = [match.span() for match in _WORD.finditer(passage)]
    words = [normalize_answer(passage[start:end]).split() for start, end in spans_of_words]
    # A span that begins or ends with another word is not better than without it.
    shared = [i for i, found in enumerate(words) if not wanted.keys().isdisjoint(found)]
    if not shared:
        return None
    first, last = np.array(shared)[:, None], np.array(shared)[None, :]
    length = _between(np.array([len(found) for found in words]), first, last)
    common = sum(
        np.minimum(count, _between(np.array([found.count(word) for found in words]), first, last))
        for word, count in wanted.items()
    )
    f1 = np.where(first <= last, 2 * common / np.maximum(length + wanted.total(), 1), -1.0)
    best = np.argwhere(f1 >= f1.max() - 1e-12)
    spans = [(spans_of_words[shared[i]][0], spans_of_words[shared[j]][1]) for i, j in best.tolist()]

    def rank(span: tuple[int, int]) -> tuple[bool, int, int]:
        outside = preferred is not None and not (preferred[0] <= span[0] and span[1] <= preferred[1])
        return outside, span[1] - span[0], span[0]

    return _without_marks(passage, *min(spans, key=rank))


def _between(counts: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Sums of ``counts`` from each of ``first`` to each of ``last``."""
    before = np.concatenate([[0], np.cumsum(counts)])
    return before[last + 1] - before[first]


def _without_marks(passage: str, start: int, end: int) -> tuple[int, int]:
    text = passage[start:end].rstrip(_BEHIND)
    return end - (end - start) + len(text) - len(text.lstrip(_BEFORE)), start + len(text)


def read_coqa_answers(folder: Path, budget: TokenBudget) -> dict[str, list[WritingItem]]:
    """Splits of a folder with ``coqa-train-v1.0.json`` and ``coqa-dev-v1.0.json``."""
    return {split: _answers(split, folder, budget) for split in ("train", "valid")}


def _answers(split: str, folder: Path, budget: TokenBudget) -> list[WritingItem]:
    name = {"train": "train", "valid": "dev"}[split]
    paths = matching_files(folder, f"coqa-{name}*.json*")
    turns = read_together(paths, read_coqa_file, lambda turn: (f"{turn.story} {turn.number}",))
    for reason, count in Counter(filter(None, map(unusable, turns))).items():
        Progress.say(f"{split}: {counted(count, 'turn')} left out, {reason}")
    pairs = list(answer_pairs(turns, budget.counter, min(MAX_HISTORY, budget.tokens // 2), budget.tokens))
    missed = sum(pair.rationale_shown is False for pair in pairs)
    Progress.say(f"{split}: the chunk lacks the rationale of {missed:,} of {len(pairs):,} answers")
    right: Mapping[tuple[str, int], CoqaTurn] = {(turn.story, turn.number): turn for turn in turns}
    return [
        WritingItem(
            f"{pair.story} {pair.number}",
            pair.source,
            pair.target,
            tuple(answer.text for answer in right[pair.story, pair.number].answers),
            unread=pair.unread or None,
        )
        for pair in pairs
    ]


def answer_item(fields: dict[str, Any], number: int, budget: TokenBudget) -> WritingItem:
    """Reads a passage, ``context``, a ``question``, and ``history``, the turns before it as pairs of texts.

    What the source has no room for is counted.

    Raises:
        UnifiedError: says which field is wrong.
    """
    require_fields(fields, "context", "question")
    context, question = (nonempty_text(fields, name) for name in ("context", "question"))
    history = fields.get("history", [])
    if not isinstance(history, list) or not all(are_texts(turn) and len(turn) == 2 for turn in history):
        raise WrongField("history", "must be a list of pairs, [question, answer]")
    words, turns = Words.of(context, budget.counter), [tuple(turn) for turn in history]
    source = answer_source(words, turns, question, min(MAX_HISTORY, budget.tokens // 2), budget.tokens, budget.counter)
    return WritingItem(item_id(fields, number), source.parts(context), unread=source.unread or None)


def _coqa_files(items: Sequence[WritingItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return coqa_files([{"id": one["id"], "answer": one["text"]} for one in predictions])


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
    unread: int


@dataclass(frozen=True)
class AnswerSource:
    """Text from which an answer is written.

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
    """The source for a question about the passage ``words``, in training and for users alike.

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

    Raises:
        UnifiedError: a word of the passage alone has more tokens than the budget.
    """
    wanted = _different_words(query)
    spans = [words.characters(*chunk) for chunk in chunks(words, budget)]
    shared = [len(wanted & _different_words(words.text[start:end])) for start, end in spans]
    return spans[shared.index(max(shared))]


def _different_words(text: str) -> set[str]:
    return {_NO_LETTER.sub("", word) for word in text.lower().split()} - {""}


TASKS = (
    Task(
        name="coqa",
        head="span(design='unilm', rules='coqa', max_query=96)",
        read=read_coqa,
        training=Training(epochs=2, batch_size=16, max_length=512),
        published={"valid": {"BERT large": {"f1": 82.7}, "UniLM large": {"f1": 84.9}}},
        source="Dong et al. 2019",
    ),
    WritingTask(
        name="coqa_free",
        read=read_coqa_answers,
        item=answer_item,
        scored=scored_answers,
        training=WritingTraining(
            epochs=10,
            batch_size=32,
            lr=2e-5,
            max_length=512,
            max_source=470,
            max_target=39,
            objective="target_cloze(mask_probability=0.5)",
        ),
        decoding={"beam": 3, "max_length": 39},
        published={"valid": {"UniLM large, generative": {"f1": 82.5}}},
        source="Dong et al. 2019, section 3.2.2",
        official=_coqa_files,
        measures=("f1", "em"),
    ),
)
