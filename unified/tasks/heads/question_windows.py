"""Questions with windows of their passages as examples, and where in them the answers are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unified.errors import UnifiedError
from unified.inference.sequences import Codec, class_index, first_index, second_index, sequence
from unified.tasks.heads.base import Encoded
from unified.tasks.heads.named_entities import named_entities_of
from unified.tasks.heads.passages import align, central, token_marks, windows
from unified.tasks.heads.question_remarks import UnlearntAnswers
from unified.tasks.heads.questions import QuestionItem
from unified.tasks.heads.span_decoding import Window

#: Label of windows from which nothing is learnt: their question has an answer that cannot be learnt.
NOT_ASKED = -1
#: Type of answer of windows without the span, which another window holds.
ELSEWHERE = -1


@dataclass(frozen=True)
class _Read:
    """A question with the windows of its passage, in tokens.

    Attributes:
        item: the question.
        query: int64 (q,), what stands in one segment: the question and what was said before.
        lost: tokens of both that do not fit.
        passage: int64 (p,).
        offsets: int64 (p, 2), characters of each token of the passage.
        windows: first token and number of tokens of each.
        entities: bool (q,) and (p,), tokens of query and passage within named entities; None where no head reads them.
    """

    item: QuestionItem
    query: np.ndarray
    lost: int
    passage: np.ndarray
    offsets: np.ndarray
    windows: list[tuple[int, int]]
    entities: tuple[np.ndarray, np.ndarray] | None

    def segments(self, first: int, size: int, passage_first: bool) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of the two segments of a window."""
        return _ordered(self.query, self.passage[first : first + size], passage_first)

    def marks(self, first: int, size: int, passage_first: bool) -> tuple[np.ndarray, np.ndarray] | None:
        """True for tokens of :meth:`segments` within named entities; None where no head reads them."""
        if self.entities is None:
            return None
        of_query, of_passage = self.entities
        return _ordered(of_query, of_passage[first : first + size], passage_first)


def _ordered(query: np.ndarray, passage: np.ndarray, passage_first: bool) -> tuple[np.ndarray, np.ndarray]:
    return (passage, query) if passage_first else (query, passage)


def encode_questions(
    items: Sequence[QuestionItem],
    codec: Codec,
    labels: tuple[str, ...],
    max_query: int,
    stride: int,
    passage_first: bool,
    whole: bool,
) -> Encoded:
    """Examples of two segments, the question and a window of its passage, for each window of each passage.

    CLS stands before them, or behind them with ``codec.cls_last``. "CLS" below is the symbol that is read as the class
    of the whole sequence, see :func:`unified.inference.sequences.class_index`.

    Args:
        labels: answers outside the passage, in the order of their numbers from 1.
        max_query: tokens of a question, at most; what is left is for the end of what was said before it.
        stride: see :func:`unified.tasks.heads.passages.windows`.
        passage_first: the first segment is the window of the passage, instead of the question.
        whole: read all tokens, instead of those of the passage and CLS.

    Returns:
        The examples with their ``head_inputs``: ``cls`` int64 (1,), the index of CLS among the tokens that are read;
        and where items have answers ``labels`` int64 (1, 2), first and last token of the answer, CLS where there is
        none in the window, or NOT_ASKED, and ``answer_types`` int64 (1,), 0 for a span, i for the i-th label, or
        ELSEWHERE. Each of the ``notes`` is a :class:`Window`.

    Raises:
        UnifiedError: a question leaves no room for its passage, or has an answer outside it that is no label.
    """
    labelled = all(item.answers is not None for item in items)
    examples, owners, notes, unread, cut = [], [], [], [], 0
    head_inputs: dict[str, list[np.ndarray]] = {
        name: [] for name in ("cls", *(("labels", "answer_types") if labelled else ()))
    }
    unlearnt = UnlearntAnswers()
    for number, read in enumerate(_read(items, codec, max_query, stride)):
        answer_type = _answer_type(read.item, labels) if labelled else 0
        span = _span(read, unlearnt) if labelled and not answer_type else None
        cut += len(read.windows) > 1
        unread.append(read.lost)
        for (first, size), chosen in zip(read.windows, central(read.windows, len(read.passage)), strict=True):
            indices, passage_index, cls = _output_indices(len(read.query), size, codec, passage_first, whole)
            window = first, size, passage_first
            examples.append(sequence(read.segments(*window), codec, indices, read.marks(*window)))
            owners.append(number)
            notes.append(Window(passage_index, read.offsets[first : first + size], chosen))
            head_inputs["cls"].append(np.array([cls]))
            if labelled:
                target, here = _target(span, answer_type, first, size, passage_index, cls)
                head_inputs["labels"].append(target)
                head_inputs["answer_types"].append(np.array([here]))
    remarks = unlearnt.remarks(len(items))
    if any(unread):
        remarks.append(
            f"of {np.count_nonzero(unread)} of {len(items)} items question and history have more than {max_query} "
            "tokens; the rest is not read"
        )
    return Encoded(examples, np.array(owners), head_inputs, cut, unread, notes, remarks)


def _read(items: Sequence[QuestionItem], codec: Codec, max_query: int, stride: int) -> Iterator[_Read]:
    contexts = list(dict.fromkeys(item.context for item in items))
    passages = dict(zip(contexts, codec.encode_offsets(contexts), strict=True))
    questions = codec.encode([item.question for item in items])
    histories = codec.encode([item.history or "" for item in items])
    for item, question, history in zip(items, questions, histories, strict=True):
        asked = question[:max_query]
        kept = min(len(history), max_query - len(asked))
        query = np.concatenate([history[len(history) - kept :], asked])
        window_length = codec.longest - len(query) - codec.special_tokens(2)
        if window_length < 1:
            raise UnifiedError(
                f"item {item.id}: sequences of {codec.longest} tokens leave no room for the passage beside a question "
                f"of {len(query)}; allow longer sequences, or set a lower max_query"
            )
        passage, offsets = passages[item.context]
        yield _Read(
            item,
            query,
            len(history) + len(question) - len(query),
            passage,
            offsets,
            windows(len(passage), window_length, stride),
            _marks(item, codec, offsets, kept, len(asked)) if codec.marks_entities else None,
        )


def _marks(
    item: QuestionItem, codec: Codec, offsets: np.ndarray, history: int, question: int
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens within named entities, of the query, bool (q,), and of the passage, bool (p,).

    Args:
        offsets: int64 (p, 2), characters of each token of the passage.
        history, question: how many tokens the query has of either, at the end of the one and the start of the other.
    """
    spans = named_entities_of(item)
    of_history, of_question = (
        token_marks(found, spans.get(name, ()))
        for name, (_, found) in zip(
            ("history", "question"), codec.encode_offsets([item.history or "", item.question]), strict=True
        )
    )
    query = np.concatenate([of_history[len(of_history) - history :], of_question[:question]])
    return query, token_marks(offsets, spans["context"])


def _span(read: _Read, unlearnt: UnlearntAnswers) -> tuple[int, int] | None:
    """The first answer that can be learnt; why others cannot is noted."""
    found = [align(read.item.context, read.offsets, answer) for answer in read.item.answers or ()]
    span = next((one for one in found if not isinstance(one, str)), None)
    unlearnt.note(read.item, [one for one in found if isinstance(one, str)], learnt=span is not None)
    return span


def _answer_type(item: QuestionItem, labels: tuple[str, ...]) -> int:
    """0 for a span, i for the i-th label."""
    if item.label is None:
        return 0
    if item.label not in labels:
        what = f"the answer {item.label!r}, which stands in no passage" if item.label else "no answer"
        raise UnifiedError(f"item {item.id} has {what}; no training item is like that")
    return 1 + labels.index(item.label)


def _output_indices(
    query: int, size: int, codec: Codec, passage_first: bool, whole: bool
) -> tuple[np.ndarray, int, int]:
    """Indices of a sequence's tokens that are read; among those the first of the passage's ``size`` tokens, and CLS."""
    cls = class_index((size, query) if passage_first else (query, size), codec)
    start = first_index(codec) if passage_first else second_index(query, codec)
    if whole:
        return np.arange(query + size + codec.special_tokens(2)), start, cls
    passage = start + np.arange(size)
    return (np.append(passage, cls), 0, size) if cls > start else (np.append(cls, passage), 1, 0)


def _target(
    span: tuple[int, int] | None, answer_type: int, first: int, size: int, passage_index: int, cls: int
) -> tuple[np.ndarray, int]:
    """Indices (1, 2) of the answer in a window, and its type there."""
    if answer_type:
        return np.array([[cls, cls]]), answer_type
    if span is None:
        return np.full((1, 2), NOT_ASKED), 0
    if first <= span[0] and span[1] < first + size:
        return np.array([span]) - first + passage_index, 0
    return np.array([[cls, cls]]), ELSEWHERE
