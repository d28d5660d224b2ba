"""Questions with windows of their passages as examples, and where in them the answers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unified.errors import UnifiedError
from unified.tasks.base import Codec, Encoded
from unified.tasks.passages import align, central, windows
from unified.tasks.questions import QuestionItem
from unified.tasks.sequences import sequence
from unified.tasks.span_decoding import Window

#: Target of windows whose question has an answer that cannot be learnt.
NOT_ASKED = -1
#: Kind of windows without the span, which another window holds.
ELSEWHERE = -1
#: CLS and a SEP behind each of two segments.
_SPECIAL = 3


@dataclass(frozen=True)
class _Read:
    """A question with the windows of its passage, in tokens.

    Attributes:
        item: the question.
        query: int64 (q,), what stands in one segment: the question and what was said before.
        lost: tokens of both that have no room there.
        passage: int64 (p,).
        offsets: int64 (p, 2), characters of each token of the passage.
        windows: first token and number of tokens of each.
    """

    item: QuestionItem
    query: np.ndarray
    lost: int
    passage: np.ndarray
    offsets: np.ndarray
    windows: list[tuple[int, int]]


def encode_questions(
    items: Sequence[QuestionItem], codec: Codec, labels: tuple[str, ...], max_query: int, stride: int, whole: bool
) -> Encoded:
    """CLS question SEP passage SEP for each window of each passage; passage SEP question SEP CLS with ``cls_last``.

    Args:
        labels: answers outside the passage, in the order of their numbers from 1.
        max_query: tokens of a question, at most; what is left is for the end of what was said before it.
        stride: see :func:`unified.tasks.passages.windows`.
        whole: read all places, instead of those of the passage and CLS.

    Returns:
        Facts for each example: ``cls`` int64 (1,), its place among those read; where items have answers ``targets``
        int64 (1, 2), first and last place of the answer, CLS where there is none in the window, or NOT_ASKED; and
        ``kinds`` int64 (1,), 0 for a span, i for the i-th label, or ELSEWHERE. Notes are :class:`Window`.

    Raises:
        UnifiedError: a question leaves no room for its passage, or has an answer outside it that is no label.
    """
    labelled = all(item.answers is not None for item in items)
    examples, owners, notes, unread, cut = [], [], [], [], 0
    facts: dict[str, list[np.ndarray]] = {name: [] for name in ("cls", *(("targets", "kinds") if labelled else ()))}
    unusable: Counter[str] = Counter()
    lost = 0
    for number, read in enumerate(_read(items, codec, max_query, stride)):
        span = _span(read, unusable) if labelled else None
        kind = _kind(read.item, labels) if labelled else 0
        lost += labelled and span is None and kind == 0
        cut += len(read.windows) > 1
        unread.append(read.lost)
        for (first, size), chosen in zip(read.windows, central(read.windows, len(read.passage)), strict=True):
            part = read.passage[first : first + size]
            places, passage_place, cls = _places(len(read.query), size, codec.cls_last, whole)
            segments = (part, read.query) if codec.cls_last else (read.query, part)
            examples.append(sequence(segments, codec, places))
            owners.append(number)
            notes.append(Window(passage_place, read.offsets[first : first + size], chosen))
            facts["cls"].append(np.array([cls]))
            if labelled:
                target, here = _target(span, kind, first, size, passage_place, cls)
                facts["targets"].append(target)
                facts["kinds"].append(np.array([here]))
    remarks = [*(_remarks(items, unusable, lost) if labelled else ())]
    if any(unread):
        remarks.append(
            f"of {np.count_nonzero(unread)} of {len(items)} items question and history have more than {max_query} "
            "tokens; the rest is not read"
        )
    return Encoded(examples, np.array(owners), facts, cut, unread, notes, remarks)


def _read(items: Sequence[QuestionItem], codec: Codec, max_query: int, stride: int) -> Iterator[_Read]:
    contexts = list(dict.fromkeys(item.context for item in items))
    passages = dict(zip(contexts, codec.encode_offsets(contexts), strict=True))
    questions = codec.encode([item.question for item in items])
    histories = codec.encode([item.history or "" for item in items])
    for item, question, history in zip(items, questions, histories, strict=True):
        asked = question[:max_query]
        query = np.concatenate([history[len(history) - min(len(history), max_query - len(asked)) :], asked])
        room = codec.longest - len(query) - _SPECIAL
        if room < 1:
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
            windows(len(passage), room, stride),
        )


def _span(read: _Read, unusable: Counter[str]) -> tuple[int, int] | None:
    """The first answer that can be learnt; why others cannot is counted."""
    found = [align(read.item.context, read.offsets, answer) for answer in read.item.answers]
    unusable.update(reason for reason in found if isinstance(reason, str))
    return next((span for span in found if not isinstance(span, str)), None)


def _kind(item: QuestionItem, labels: tuple[str, ...]) -> int:
    """0 for a span, i for the i-th label."""
    if item.label is None:
        return 0
    if item.label not in labels:
        what = f"the answer {item.label!r}, which stands in no passage" if item.label else "no answer"
        raise UnifiedError(f"item {item.id} has {what}; no training item is like that")
    return 1 + labels.index(item.label)


def _places(query: int, size: int, cls_last: bool, whole: bool) -> tuple[np.ndarray, int, int]:
    """Places of a sequence that are read; among those the first of the passage's ``size`` tokens, and CLS."""
    length = query + size + _SPECIAL
    if whole:
        return np.arange(length), 0 if cls_last else query + 2, length - 1 if cls_last else 0
    if cls_last:
        return np.append(np.arange(size), length - 1), 0, size
    return np.append(0, query + 2 + np.arange(size)), 1, 0


def _target(
    span: tuple[int, int] | None, kind: int, first: int, size: int, passage_place: int, cls: int
) -> tuple[np.ndarray, int]:
    """Places (1, 2) of the answer in a window, and its kind there."""
    if kind:
        return np.array([[cls, cls]]), kind
    if span is None:
        return np.full((1, 2), NOT_ASKED), 0
    if first <= span[0] and span[1] < first + size:
        return np.array([span]) - first + passage_place, 0
    return np.array([[cls, cls]]), ELSEWHERE


def _remarks(items: Sequence[QuestionItem], unusable: Counter[str], lost: int) -> tuple[str, ...]:
    if not unusable and not lost:
        return ()
    answers = sum(len(item.answers) for item in items)
    reasons = "; ".join(f"{count}: {reason}" for reason, count in unusable.most_common())
    return (
        f"{unusable.total()} of {answers} answers cannot be learnt ({reasons}); "
        f"{lost} of {len(items)} questions have no other and count in no loss",
    )
