"""Extractive question answering: the part of a passage that answers a question (SQuAD, MRQA, CoQA)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch

from unified.arguments import check_all_settings, setting
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.model.averaging import mean_scores
from unified.model.config import TransformerConfig
from unified.model.heads import LossSum, TaskHead
from unified.model.span_heads import SpanScores, beams_of, example_maxima, example_of_states, firsts, log_sum_exp
from unified.tasks.heads.base import (
    Encoded,
    EnsembleUnderstanding,
    Reading,
    require_distinct,
    unlearnt_label,
    with_labels,
)
from unified.tasks.heads.question_remarks import unanswerable_remarks
from unified.tasks.heads.question_windows import encode_questions
from unified.tasks.heads.questions import NOTHING, QuestionItem, question_item
from unified.tasks.heads.span_decoding import chosen_answer, decided, distinct
from unified.tasks.heads.span_designs import DESIGNS, BatchScores, Design
from unified.tasks.metrics.answer_rules import ANSWER_RULES, AnswerRules
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.examples import Joined
from unified.tasks.metrics.thresholds import best_threshold


@dataclass(frozen=True)
class SpanAnswers(EnsembleUnderstanding[QuestionItem]):
    """Head that finds the part of a passage that answers a question, and whether there is one.

    Attributes:
        labels: answers that stand in no passage and that training items have: "" for none at all (SQuAD 2.0), "yes",
            "no" and "unknown" (CoQA). Without labels every question gets a part of the passage.
        design: "bert", "unilm" or "xlnet", see :mod:`unified.tasks.heads.span_designs`.
        max_query: tokens of a question with what was said before it, at most.
        passage_first: whether the passage stands before the question; None for the order of the model's paper, the
            question first where CLS is the first token (BERT), the passage first where it is the last (XLNet).
        stride: tokens from one window of a passage to the next.
        max_answer: tokens of an answer, at most, where it is predicted.
        nbest: spans listed with a prediction.
        null_threshold: there is no answer where the probability of that exceeds this; 1 always answers. None is 0.5,
            which ``unified finetune`` replaces by the best one of the development set where the rules are those of 2.0.
        threshold_found_on: the split that ``null_threshold`` was chosen on; None where somebody set it.
        rules: of the scores, "1.1", "2.0" or "coqa"; None takes 2.0 where training items lack answers, else 1.1.

    Raises:
        UnifiedError: a label comes twice or is none that the design can give, or a setting is out of range.
    """

    name: ClassVar[str] = "span"
    reads_windows: ClassVar[bool] = True
    parts: ClassVar[Mapping[str, str]] = {"text": "context", "second": "question", "label": "answers"}
    averages_subsets: ClassVar[bool] = True
    marks_entities: ClassVar[bool] = True

    labels: tuple[str, ...] = ()
    design: str = setting("bert", one_of=DESIGNS)
    max_query: int = setting(64, least=1)
    passage_first: bool | None = None
    stride: int = setting(128, least=1)
    max_answer: int = setting(30, least=1)
    nbest: int = setting(20, least=1)
    null_threshold: float | None = setting(None, least=0, most=1)
    rules: str | None = setting(None, one_of=ANSWER_RULES)
    threshold_found_on: str | None = None

    def __post_init__(self) -> None:
        check_all_settings(self)
        require_distinct(self.labels, "a span head")
        DESIGNS[self.design](self.labels)  # refuses labels that it cannot give

    @cached_property
    def model_design(self) -> Design:
        return DESIGNS[self.design](self.labels)

    @property
    def scored_by(self) -> str:
        """Name of the official rules that the scores follow, of :data:`ANSWER_RULES`."""
        return self.rules or ("2.0" if NOTHING in self.labels else "1.1")

    @property
    def _official(self) -> AnswerRules:
        return ANSWER_RULES[self.scored_by]

    @property
    def _searched(self) -> bool:
        """Whether the scores include those of the best thresholds."""
        return self._official.best is not None and NOTHING in self.labels

    @property
    def threshold(self) -> float:
        """Probability of no answer above which there is none."""
        return 0.5 if self.null_threshold is None else self.null_threshold

    @property
    def may_abstain(self) -> bool:
        """Whether questions may be left unanswered: some training items say that the passage has no answer."""
        return self.model_design.nothing is not None

    @property
    def chooses_threshold(self) -> bool:
        """True where published work chooses the threshold on the development set, and no option sets another."""
        return self._searched and (self.null_threshold is None or self.threshold_found_on is not None)

    def with_threshold(self, threshold: float, found_on: str | None = None) -> SpanAnswers:
        """The task with another threshold.

        Args:
            found_on: the split that it was chosen on; None where somebody set it.

        Raises:
            UnifiedError: it is not from 0 to 1, or every question is answered.
        """
        self._abstention()  # or refuses
        return replace(self, null_threshold=threshold, threshold_found_on=found_on)

    def best_threshold(self, items: Sequence[QuestionItem], predictions: Sequence[Mapping[str, Any]]) -> float:
        """The threshold with the highest F1 [BERT, sec. 4.3], from predictions by any threshold.

        See :func:`unified.tasks.metrics.best_threshold`.
        """
        nothing = self._abstention()
        f1 = self._official.f1
        answered = [f1(item.gold, one["best_non_null"]["text"]) for item, one in zip(items, predictions, strict=True)]
        silent = [f1(item.gold, nothing) for item in items]
        return best_threshold(answered, silent, [one["no_answer"] for one in predictions])

    def _abstention(self) -> str:
        """The label that says that there is no answer.

        Raises:
            UnifiedError: every question is answered.
        """
        if self.model_design.nothing is None:
            raise UnifiedError("the model was trained on questions that all have an answer; it has no threshold")
        return self.model_design.nothing

    def decided(self, predictions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Predictions that another threshold made, as this one decides them."""
        nothing = self._abstention()
        return [decided(one, nothing, self.threshold) for one in predictions]

    @property
    def measures(self) -> tuple[str, ...]:
        return (*(("best_f1", "best_exact") if self._searched else ()), "f1", "exact")

    @property
    def signature(self) -> str:
        decision = f"best-f1-of-{self.threshold_found_on}" if self.threshold_found_on else f"above-{self.threshold}"
        null = f"|null:{decision}" if self.may_abstain else ""
        return f"{self._official.signature}{null}{'|best:searched' if self._searched else ''}"

    @classmethod
    def item(cls, fields: dict[str, Any], number: int, labelled: bool) -> QuestionItem:
        return question_item(fields, number, labelled)

    @classmethod
    def of(cls, items: Sequence[QuestionItem], **settings: Any) -> SpanAnswers:
        return cls(**with_labels(settings, (item.label for item in items if item.label is not None)))

    def encode(self, items: Sequence[QuestionItem], codec: Codec) -> Encoded:
        """Windows of the passages, see :func:`unified.tasks.heads.question_windows.encode_questions`."""
        passage_first = codec.cls_last if self.passage_first is None else self.passage_first
        whole = self.model_design.reads_question
        found = encode_questions(items, codec, self.labels, self.max_query, self.stride, passage_first, whole=whole)
        return replace(found, remarks=[*unanswerable_remarks(items, self.scored_by), *found.remarks])

    def reads(self, codec: Codec) -> str:
        """Tokens of a question; of a passage all are read."""
        return f"at most {self.max_query:,} tokens of a question and its history (max_query)"

    def subset_of(self, item: QuestionItem) -> str | None:
        return item.subset

    @classmethod
    def shared_text(cls, item: QuestionItem) -> str:
        return item.context

    def unlearnt(self, item: QuestionItem) -> str | None:
        if item.label == NOTHING and NOTHING not in self.labels:
            return "it has no answer, and only questions that have one are learnt"
        return unlearnt_label(item.label, self.labels, "answer outside the passage")

    def unscored(self, item: QuestionItem) -> str | None:
        if NOTHING not in self.labels or not item.impossible or item.gold or self._official.scores_no_answer:
            return None
        return f"it has no answer, and the rules of {self._official.program} score none; leave rules={self.rules!r} out"

    def head(self, config: TransformerConfig) -> TaskHead:
        return self.model_design.head(config)

    def loss(self, scores: SpanScores, reading: Reading) -> LossSum:
        """Half the cross-entropies of start and end, and half that of the type of answer where the design has types.

        Of windows whose question has an answer that cannot be learnt, nothing counts.
        """
        assert scores.end is not None  # a batch with labels gives the starts that ends may depend on
        sizes, labels = reading["sizes"], reading["labels"]
        asked = _asked(labels)
        example, count = example_of_states(sizes, len(scores.start)), len(sizes)
        gold = firsts(sizes).unsqueeze(1) + labels.clamp(min=0)
        losses, right = torch.zeros(count, device=asked.device), asked
        for logits, right_index in zip((scores.start, scores.end), gold.unbind(1), strict=True):
            losses = losses + 0.5 * (log_sum_exp(logits, example, count) - logits[right_index].float())
            right = right & (logits[right_index] >= example_maxima(logits, example, count))
        answer_types = self.model_design.answer_types
        if answer_types is not None:
            assert scores.answer_types is not None  # as always where the design learns them
            losses = losses + 0.5 * answer_types.losses(scores.answer_types, reading["answer_types"])
        total = losses.where(asked, 0.0).sum()
        return LossSum(total, asked.sum(), right.sum(), total.detach())

    def loss_count(self, reading: Reading) -> int:
        """The number of windows, without those whose question has an answer that cannot be learnt."""
        return int(_asked(reading["labels"]).sum())

    def predict(
        self,
        items: Sequence[QuestionItem],
        encoded: Encoded,
        members: np.ndarray,
        scores: SpanScores,
        reading: Reading,
    ) -> list[dict[str, Any]]:
        """The fields of :func:`unified.tasks.heads.span_decoding.chosen_answer`, and the item's ``subset``."""
        order = np.argsort(members)
        owners = encoded.owners[members[order]]
        batch = BatchScores.of(scores, reading)
        of_items = np.split(order, np.flatnonzero(np.diff(owners)) + 1)
        return [
            {
                "id": item.id,
                **({} if item.subset is None else {"subset": item.subset}),
                **self._answer(item, encoded, members, examples, batch),
            }
            for item, examples in zip(items, of_items, strict=True)
        ]

    def _answer(
        self, item: QuestionItem, encoded: Encoded, members: np.ndarray, examples: np.ndarray, scores: BatchScores
    ) -> dict[str, Any]:
        windows = [encoded.notes[member] for member in members[examples]]
        asked, spans = self.nbest, []
        while True:  # of spans with equal texts one is listed
            found = self.model_design.spans(scores, examples, windows, self.max_answer, asked)
            spans = list(distinct(found, windows, item.context))[: self.nbest]
            if len(spans) == self.nbest or len(found) < asked:
                break
            asked *= 4
        outside = self.model_design.outside(scores, examples, spans[0] if spans else None)
        return chosen_answer(item.context, spans, outside, self.model_design.nothing, self.threshold)

    def averaged(self, scores: Sequence[SpanScores], reading: Reading) -> SpanScores:
        """Mean scores of starts and ends, mean probabilities of the types of answers.

        The scores of starts and ends are averaged and not their probabilities: these are softmaxes of one window, whose
        numbers cannot be compared with another window's, and spans of all windows of a passage are.
        """
        start = mean_scores([one.start for one in scores])
        answer_types = None
        if self.model_design.answer_types is not None:
            of_answer_types = [one.answer_types for one in scores if one.answer_types is not None]
            answer_types = self.model_design.answer_types.averaged(of_answer_types)
        ends_behind = [one.ends_of for one in scores if one.ends_of is not None]
        if not ends_behind:
            return SpanScores(start, mean_scores([one.end for one in scores if one.end is not None]), answer_types)

        def ends_of(starts: torch.Tensor) -> torch.Tensor:
            return mean_scores([ends(starts) for ends in ends_behind])

        return SpanScores(start, None, answer_types, beams_of(start, ends_of, reading["sizes"]), ends_of)

    def scored(self, items: Sequence[QuestionItem], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Items with the scores by the official rules: ``f1``, ``exact``, and those of the program by its own names.

        Where the program searches for it, also the highest scores by any threshold of the probability of no answer, and
        that threshold.
        """
        official, gold = self._official, [item.gold for item in items]
        answered = official.scored(gold, [one["answer"] for one in predictions])
        if official.best is None or not self._searched:
            return answered
        texts = [one["best_non_null"]["text"] for one in predictions]
        return Joined(answered, official.best(gold, texts, [one["no_answer"] for one in predictions]))

    def official(self, items: Sequence[QuestionItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Files for the official program, see :mod:`unified.tasks.metrics.official_answers`."""
        return self._official.files(predictions)


def _asked(labels: torch.Tensor) -> torch.Tensor:
    """Windows that are learnt from, bool (E,): not those whose question has an answer that cannot be learnt.

    Args:
        labels: int64 (E, 2), first and last token of the answer of each window.
    """
    return (labels >= 0).all(1)
