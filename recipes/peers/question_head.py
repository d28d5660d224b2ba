"""The text in a passage that answers a question, or none (``run_qa.py``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from peer_task import Features, PeerTask
from transformers import AutoModelForQuestionAnswering, BatchEncoding, default_data_collator

from unified.errors import UnifiedError
from unified.tasks.heads.questions import NOTHING, Answer, QuestionItem
from unified.tasks.heads.span_decoding import TextSpan, chosen_answer

#: CLS and a SEP behind each of two segments.
_SPECIAL = 3
#: There is no answer where CLS scores higher than the best span: has more than half of the probability between the two.
_HALF = 0.5


@dataclass(frozen=True)
class Window:
    """The part of a passage that one example reads.

    Attributes:
        item: number of the question.
        first: index of the passage's first token.
        offsets: int64 (n, 2), characters of each of the passage's tokens.
    """

    item: int
    first: int
    offsets: np.ndarray


class Questions(PeerTask):
    """Question and passage padded to the longest sequence; windows of long passages share ``stride`` tokens."""

    model_class = AutoModelForQuestionAnswering

    def features(self, items: Sequence[QuestionItem]) -> Features:
        inputs, notes = [], []
        if self.task.passage_first:
            raise UnifiedError("span(passage_first=True): the peer reads the question first; leave the setting out")
        for number, item in enumerate(items):
            if item.choice is not None or item.history is not None:
                raise UnifiedError(f"item {item.id}: the peer knows no conversations and no answers beside the passage")
            answer = next((answer for answer in item.answers if answer.start is not None), None)
            read = self._read(item)
            for i, encoding in enumerate(read.encodings):
                indices = [i for i, segment in enumerate(encoding.sequence_ids) if segment == 1]
                offsets = np.array([encoding.offsets[i] for i in indices], dtype=np.int64).reshape(-1, 2)
                window = Window(number, indices[0] if indices else 0, offsets)
                start, end = _target(window, answer)
                fields = {name: read[name][i] for name in self.tokenizer.model_input_names}
                inputs.append({**fields, "start_positions": start, "end_positions": end})
                notes.append(window)
        windows = np.bincount([window.item for window in notes])
        return Features(inputs, notes, int((windows > 1).sum()))

    def _read(self, item: QuestionItem) -> BatchEncoding:
        question = item.question.lstrip()
        size = len(self.tokenizer(question, add_special_tokens=False)["input_ids"])
        if size + _SPECIAL + self.task.stride >= self.longest:
            raise UnifiedError(
                f"item {item.id}: sequences of {self.longest} tokens leave no room for more than {self.task.stride} of "
                f"the passage beside a question of {size}; allow longer sequences, or set a lower stride"
            )
        return self.tokenizer(
            [question],
            [item.context],
            truncation="only_second",
            max_length=self.longest,
            stride=self.task.stride,
            return_overflowing_tokens=True,
            padding="max_length",
        )

    def collate(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        return default_data_collator(inputs)

    def scores(self, output: Any) -> torch.Tensor:
        """(B, T, 2) of start and end."""
        return torch.stack([output.start_logits, output.end_logits], dim=-1)

    def predictions(
        self, items: Sequence[QuestionItem], features: Features, scores: list[torch.Tensor]
    ) -> list[dict[str, Any]]:
        owned: list[list[tuple[Window, np.ndarray]]] = [[] for _ in items]
        for window, own in zip(features.notes, scores, strict=True):
            owned[window.item].append((window, own.numpy()))
        return [{"id": item.id, **self._answer(item, read)} for item, read in zip(items, owned, strict=True)]

    def _answer(self, item: QuestionItem, read: Sequence[tuple[Window, np.ndarray]]) -> dict[str, Any]:
        """The best spans of all windows; CLS counts where it scores lowest, as no window may have the answer then."""
        spans = [span for number, (window, scores) in enumerate(read) for span in self._spans(number, window, scores)]
        spans = sorted(spans, key=lambda span: -span.score)[: self.task.nbest]
        outside = {}
        if NOTHING in self.task.labels:
            nothing = min(float(scores[0].sum()) for _, scores in read)
            outside[NOTHING] = _share(nothing - spans[0].score) if spans else 1.0
        return chosen_answer(item.context, spans, outside, NOTHING if outside else None, _HALF)

    def _spans(self, number: int, window: Window, scores: np.ndarray) -> list[TextSpan]:
        """The spans between one of the n best starts and one of the n best ends of a window, by its number."""
        starts, ends = (np.argsort(-own, kind="stable")[: self.task.nbest] for own in scores.T)
        first, last = (grid.ravel() for grid in np.meshgrid(starts - window.first, ends - window.first, indexing="ij"))
        fits = (first >= 0) & (last < len(window.offsets)) & (first <= last) & (last - first < self.task.max_answer)
        first, last = first[fits], last[fits]
        found = scores[first + window.first, 0] + scores[last + window.first, 1]
        return [
            TextSpan(float(score), int(window.offsets[i, 0]), int(window.offsets[j, 1]), number)
            for score, i, j in zip(found, first, last, strict=True)
        ]


def _target(window: Window, answer: Answer | None) -> tuple[int, int]:
    """First and last token of the answer; those of CLS, 0, where the window does not hold all of it."""
    if answer is None or not len(window.offsets):
        return 0, 0
    start, end = answer.start, answer.start + len(answer.text)
    if start < window.offsets[0, 0] or end > window.offsets[-1, 1]:
        return 0, 0
    first = int(np.searchsorted(window.offsets[:, 0], start, side="right")) - 1
    last = int(np.searchsorted(window.offsets[:, 1], end, side="left"))
    return window.first + first, window.first + last


def _share(difference: float) -> float:
    """Probability of the first of two scores by their softmax, from their difference."""
    return 1 / (1 + math.exp(-max(-500.0, min(500.0, difference))))
