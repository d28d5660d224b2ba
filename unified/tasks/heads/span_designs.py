"""The three published designs of answer extraction, with or without an answer: their inputs, losses and decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch.nn import functional

from unified.errors import UnifiedError
from unified.model.averaging import mean_classes
from unified.model.config import TransformerConfig
from unified.model.heads import TaskHead
from unified.model.span_heads import BertSpanHead, SpanScores, UnilmSpanHead, XlnetSpanHead
from unified.tasks.heads.base import Reading
from unified.tasks.heads.questions import NOTHING
from unified.tasks.heads.span_decoding import Spans, TextSpan, Window, spans_by_sums, spans_of_beams

#: Answers that say that there is none: of SQuAD 2.0 and of CoQA.
NOTHINGS = (NOTHING, "unknown")


@dataclass(frozen=True)
class BatchScores:
    """:class:`SpanScores` of a batch of E examples in numpy, float64.

    Attributes:
        start, end: (N,); ``end`` is None where there are beams.
        answer_types: (E, K), None where the head does not ask.
        beams: starts (E, k), ends (E, k, k) and scores (E, k, k), None where ends do not depend on starts.
        firsts: int64 (E,), first state of each example.
        cls: int64 (E,), CLS of each example in all N states.
    """

    start: np.ndarray
    end: np.ndarray | None
    answer_types: np.ndarray | None
    beams: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    firsts: np.ndarray
    cls: np.ndarray

    @classmethod
    def of(cls, scores: SpanScores, reading: Reading) -> BatchScores:
        """Scores of a batch as arrays, cut apart by example."""
        sizes = reading["sizes"].cpu().numpy()
        firsts = np.cumsum(sizes) - sizes
        found = scores.beams
        beams = None if found is None else (_numpy(found.starts), _numpy(found.ends), _numpy(found.scores))
        return cls(
            start=_numpy(scores.start),
            end=None if beams is not None or scores.end is None else _numpy(scores.end),
            answer_types=None if scores.answer_types is None else _numpy(scores.answer_types),
            beams=beams,
            firsts=firsts,
            cls=firsts + reading["cls"].cpu().numpy(),
        )


class AnswerTypes(ABC):
    """Way in which a design learns the type of an answer: a span of the passage, or a label, which stands in none."""

    @abstractmethod
    def losses(self, logits: torch.Tensor, answer_types: torch.Tensor) -> torch.Tensor:
        """(E,) losses of the types of answers.

        Args:
            logits: (E, K) of the head.
            answer_types: int64 (E,): 0 a span, i the i-th label, -1 a span of another window.
        """

    @abstractmethod
    def averaged(self, logits: Sequence[torch.Tensor]) -> torch.Tensor:
        """Logits (E, K) of the mean probabilities that several models give to the types of answers."""


class AnswerTypeClasses(AnswerTypes):
    """One class for spans, one for each label.

    Args:
        nothing: index of the label that says that there is no answer, None where none does.
    """

    def __init__(self, nothing: int | None):
        self.elsewhere = -1 if nothing is None else 1 + nothing

    def losses(self, logits: torch.Tensor, answer_types: torch.Tensor) -> torch.Tensor:
        """Cross-entropy. Where the span is in another window there is no answer, if a label says that."""
        answer_types = torch.where(answer_types < 0, self.elsewhere, answer_types)
        return functional.cross_entropy(logits.float(), answer_types, reduction="none", ignore_index=-1)

    def averaged(self, logits: Sequence[torch.Tensor]) -> torch.Tensor:
        return mean_classes(logits)


class NoAnswerLogit(AnswerTypes):
    """One logit (E, 1): the window holds no answer."""

    def losses(self, logits: torch.Tensor, answer_types: torch.Tensor) -> torch.Tensor:
        """Binary cross-entropy."""
        logits = logits.squeeze(-1).float()
        return functional.binary_cross_entropy_with_logits(logits, (answer_types != 0).to(logits), reduction="none")

    def averaged(self, logits: Sequence[torch.Tensor]) -> torch.Tensor:
        """Logits of the mean of the sigmoids, which are the same as softmaxes of the logit and 0."""
        both = mean_classes([torch.cat([one.float(), torch.zeros_like(one.float())], dim=-1) for one in logits])
        return both[:, :1] - both[:, 1:]


class Design(ABC):
    """A published way to find an answer in a passage, and to say that there is none.

    Args:
        labels: answers outside the passage that training items have.

    Attributes:
        reads_question: whether softmaxes are over all tokens, or over the passage and CLS alone.
        nothing: which of the labels says that there is no answer, None where none does.
        answer_types: how it learns the ``answer_types`` that its head scores; None where its head scores none.
    """

    reads_question: ClassVar[bool] = True

    def __init__(self, labels: tuple[str, ...]):
        self.labels = labels
        self.nothing = next((label for label in labels if label in NOTHINGS), None)
        self.answer_types: AnswerTypes | None = None

    @abstractmethod
    def head(self, config: TransformerConfig) -> TaskHead:
        """The module, see :mod:`unified.model.span_heads`."""

    def spans(
        self, scores: BatchScores, examples: np.ndarray, windows: Sequence[Window], longest: int, count: int
    ) -> Spans:
        """The best spans of a passage, whose windows are ``examples`` of the batch, int64 (W,)."""
        assert scores.end is not None  # as always where there are no beams
        starts, ends = [], []
        for first, window in zip(scores.firsts[examples].tolist(), windows, strict=True):
            passage = slice(first + window.first, first + window.first + len(window.offsets))
            starts.append(np.where(window.central, scores.start[passage], -np.inf))
            ends.append(scores.end[passage])
        return spans_by_sums(starts, ends, longest, count)

    @abstractmethod
    def outside(self, scores: BatchScores, examples: np.ndarray, best: TextSpan | None) -> dict[str, float]:
        """Probability of each label for a question, read in ``examples`` of the batch, int64 (W,).

        Args:
            best: its best span, None where it has none.
        """

    def _require_spans_or_nothing(self) -> None:
        others = [label for label in self.labels if label != NOTHING]
        if others:
            raise UnifiedError(
                f"some answers stand in no passage ({', '.join(others)}); only the design 'unilm' can give them"
            )


class BertDesign(Design):
    """No answer is the span from CLS to CLS [BERT, sec. 4.3]."""

    def __init__(self, labels: tuple[str, ...]):
        super().__init__(labels)
        self._require_spans_or_nothing()

    def head(self, config: TransformerConfig) -> TaskHead:
        return BertSpanHead(config)

    def outside(self, scores: BatchScores, examples: np.ndarray, best: TextSpan | None) -> dict[str, float]:
        """The sigmoid of the lowest score of CLS in any window, less that of the best span."""
        if not self.labels:
            return {}
        assert scores.end is not None  # its head always has them
        lowest = (scores.start + scores.end)[scores.cls[examples]].min()
        return {NOTHING: 1.0 if best is None else _sigmoid(lowest - best.score)}


class UnilmDesign(Design):
    """A classifier on CLS decides between a span and the answers outside the passage (Dong et al. 2019)."""

    def __init__(self, labels: tuple[str, ...]):
        super().__init__(labels)
        if labels:
            self.answer_types = AnswerTypeClasses(None if self.nothing is None else labels.index(self.nothing))

    def head(self, config: TransformerConfig) -> TaskHead:
        return UnilmSpanHead(config, 1 + len(self.labels)) if self.labels else BertSpanHead(config)

    def outside(self, scores: BatchScores, examples: np.ndarray, best: TextSpan | None) -> dict[str, float]:
        """Softmax in one window, the one that most looks like having the answer.

        Where a label says that there is no answer, that is the window in which this label is least probable: windows
        without the span have learnt it. Without such a label they have learnt no type (:class:`AnswerTypeClasses`), and
        the window of the best span decides, as in the published code of [Alberti et al. 2019]: where the answer is a
        span, this window has learnt so, and where it is a label, all windows have learnt the label.
        """
        if not self.labels:
            return {}
        assert scores.answer_types is not None  # with labels there is a classifier
        logits = scores.answer_types[examples]
        rows = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))[:, 1:]
        if self.nothing is not None:
            window = int(rows[:, self.labels.index(self.nothing)].argmin())
        else:
            window = 0 if best is None else best.window
        return dict(zip(self.labels, rows[window].tolist(), strict=True))


class XlnetDesign(Design):
    """Ends depend on starts, and a score of its own says that there is no answer (Yang et al. 2019)."""

    reads_question: ClassVar[bool] = False

    def __init__(self, labels: tuple[str, ...]):
        super().__init__(labels)
        self._require_spans_or_nothing()
        self.answer_types = NoAnswerLogit()

    def head(self, config: TransformerConfig) -> TaskHead:
        return XlnetSpanHead(config)

    def spans(
        self, scores: BatchScores, examples: np.ndarray, windows: Sequence[Window], longest: int, count: int
    ) -> Spans:
        """The spans of the head's beams that lie in the passage, best first; perhaps fewer than ``count``."""
        assert scores.beams is not None  # its head always returns them in prediction
        starts, ends, of_pairs = scores.beams
        return spans_of_beams(starts[examples], ends[examples], of_pairs[examples], windows, longest)

    def outside(self, scores: BatchScores, examples: np.ndarray, best: TextSpan | None) -> dict[str, float]:
        """The sigmoid of the lowest logit of any window."""
        if not self.labels:
            return {}
        assert scores.answer_types is not None  # its head always has them
        return {NOTHING: _sigmoid(scores.answer_types[examples].min())}


DESIGNS: dict[str, type[Design]] = {"bert": BertDesign, "unilm": UnilmDesign, "xlnet": XlnetDesign}


def _numpy(values: torch.Tensor) -> np.ndarray:
    values = values.detach().cpu()
    return (values.double() if values.is_floating_point() else values).numpy()


def _sigmoid(value: float) -> float:
    return float(np.exp(-np.logaddexp(0.0, -value)))
