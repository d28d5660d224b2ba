"""Work of augmentation's three models on passages: they find candidate answers, write questions, and answer these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from unified.errors import UnifiedError
from unified.inference.language_model import UnifiedLM
from unified.tasks.datasets.question_generation import question_source
from unified.tasks.datasets.squad_json import SquadAnswer
from unified.tasks.heads.questions import UNASKED, QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.metrics.squad import normalize_answer, word_f1
from unified.tasks.prediction import Predictor
from unified.tasks.windows import TokenCounter, Words


def candidate_answers(predictor: Predictor, passages: Sequence[str], top: int) -> list[list[dict[str, Any]]]:
    """The ``top`` best spans of each passage without a question, best first: ``text``, ``start``, ``probability``.

    Spans of which the official rules leave no word, such as "the", are left out.

    Args:
        predictor: of a span model that was trained with :data:`unified.tasks.heads.questions.UNASKED` for a question.
    """
    assert isinstance(predictor.task, SpanAnswers)  # as the arguments say
    listing = replace(predictor, task=replace(predictor.task, nbest=top))
    items = [QuestionItem(str(i), UNASKED, text) for i, text in enumerate(passages)]
    return [
        [
            {name: span[name] for name in ("text", "start", "probability")}
            for span in found["nbest"]
            if "start" in span and normalize_answer(span["text"])
        ]
        for found in listing.predict(items)
    ]


@dataclass(frozen=True)
class Asking:
    """A model that writes questions.

    Attributes:
        model: trained on pairs of question generation.
        max_source: tokens of window, separator and answer.
        options: of :meth:`unified.UnifiedLM.generate`.
    """

    model: UnifiedLM
    max_source: int
    options: dict[str, Any]

    def __call__(self, passages: Sequence[str], answers: Sequence[Sequence[dict[str, Any]]]) -> list[list[str | None]]:
        """A question for each answer of each passage.

        None where the answer is too long to stand in the source twice, or nothing was written.
        """
        counter = TokenCounter(self.model.encode)
        sources: list[list[tuple[str, str] | None]] = []
        for text, row in zip(passages, answers, strict=True):
            words = Words.of(text, counter)
            sources.append([self._source(words, answer, counter) for answer in row])
        shown = [source for row in sources for source in row if source is not None]
        texts = self.model.generate(shown, prompt=False, max_source=0, **self.options) if shown else []
        written = (text for text in texts if isinstance(text, str))  # one for each source, nbest being 1
        return [[next(written).strip() or None if source else None for source in row] for row in sources]

    def _source(self, words: Words, answer: dict[str, Any], counter: TokenCounter) -> tuple[str, str] | None:
        try:
            return question_source(words, SquadAnswer(answer["text"], answer["start"]), self.max_source, counter)
        except UnifiedError:  # it says that the answer is too long
            return None


def kept_questions(
    predictor: Predictor,
    passages: Sequence[str],
    answers: Sequence[Sequence[dict[str, Any]]],
    questions: Sequence[Sequence[str | None]],
    least: float,
) -> list[list[dict[str, Any]]]:
    """The questions of each passage that the reading model answers like the candidate, with its answer.

    The F1 of the two answers by the official rules is at least ``least``. A question that several candidates led to is
    read once, and kept with the first that agrees.

    Returns:
        ``question``, ``text`` and ``start`` of the answer that was read, ``candidate`` and ``f1``.
    """
    asked = [list(dict.fromkeys(question for question in row if question)) for row in questions]
    items = [QuestionItem("", question, text) for text, row in zip(passages, asked, strict=True) for question in row]
    predictions = iter(predictor.predict(items))
    found = []
    for row, candidates, wanted in zip(asked, answers, questions, strict=True):
        read = dict(zip(row, islice(predictions, len(row)), strict=True))
        kept: dict[str, dict[str, Any]] = {}
        for candidate, question in zip(candidates, wanted, strict=True):
            if question is None or question in kept or "start" not in read[question]:
                continue
            answer = {"text": read[question]["answer"], "start": read[question]["start"]}
            f1 = word_f1(answer["text"], candidate["text"])
            if f1 >= least:
                kept[question] = {"question": question, **answer, "candidate": candidate["text"], "f1": f1}
        found.append(list(kept.values()))
    return found
