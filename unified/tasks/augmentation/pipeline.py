"""The stages from passages to a file of questions in the form of SQuAD 2.0 [UniLM, app. A]."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.data import randomness
from unified.files.whole import write_whole_text
from unified.tasks.augmentation.entities import Entity
from unified.tasks.augmentation.negatives import negatives
from unified.tasks.augmentation.outcome import counted, write_squad
from unified.tasks.augmentation.passages import Passage
from unified.tasks.augmentation.questions import Asking, candidate_answers, kept_questions
from unified.tasks.augmentation.stages import Row, Stages
from unified.tasks.prediction import Predictor

#: Names of the stages.
PASSAGES, ANSWERS, QUESTIONS, KEPT, UNANSWERABLE = "passages", "answers", "questions", "kept", "unanswerable"
#: Files that the pipeline makes, below its folder.
GENERATED, COUNTS = Path("generated") / "train-v2.0.json", "counts.json"


@dataclass(frozen=True)
class Models:
    """The three models that make questions about passages.

    Attributes:
        answers: finds candidate answers where nothing is asked.
        asks: writes a question for each.
        reads: answers the questions; those that it answers otherwise are dropped.
    """

    answers: Predictor
    asks: Asking
    reads: Predictor


@dataclass(frozen=True)
class Pipeline:
    """The stages from passages to questions, with their settings.

    Attributes:
        top: candidate answers of a passage.
        min_f1: of the answer that is read and the candidate.
        share: of the kept questions that one without an answer is made of, where it can be.
        find_entities: entities of each text.
        seed: decides which questions that share draws, and which negation or swap each gets.
    """

    top: int
    min_f1: float
    share: float
    find_entities: Callable[[Sequence[str]], list[list[Entity]]]
    seed: int

    def run(self, stages: Stages, passages: Callable[[], list[Passage]], models: Models | None) -> dict[str, int]:
        """Runs the stages that are left; returns counts of :func:`unified.tasks.augmentation.outcome.counted`.

        Args:
            passages: sample of the corpus.
            models: None where the stages that need them are done.
        """
        stages.first(PASSAGES, lambda: [{"id": one.id, "text": one.text} for one in passages()])
        if not stages.path(KEPT).exists():
            assert models is not None  # as the arguments say
            self._read(stages, models)
        stages.run(UNANSWERABLE, (PASSAGES, KEPT), self._negatives)
        target = stages.folder / GENERATED
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            write_squad(target, stages.rows(PASSAGES, KEPT, UNANSWERABLE))
        counts = counted(stages.rows(ANSWERS, QUESTIONS, KEPT, UNANSWERABLE))
        write_whole_text(stages.folder / COUNTS, json.dumps(counts, indent=2) + "\n")
        return counts

    def _read(self, stages: Stages, models: Models) -> None:
        def answers(chunk: list[tuple[Row, ...]]) -> list[Row]:
            texts = [passage["text"] for (passage,) in chunk]
            return _rows(chunk, "answers", candidate_answers(models.answers, texts, self.top))

        def questions(chunk: list[tuple[Row, ...]]) -> list[Row]:
            texts = [passage["text"] for passage, _ in chunk]
            return _rows(chunk, "questions", models.asks(texts, [found["answers"] for _, found in chunk]))

        def kept(chunk: list[tuple[Row, ...]]) -> list[Row]:
            texts, candidates, asked = zip(
                *((p["text"], a["answers"], q["questions"]) for p, a, q in chunk), strict=True
            )
            return _rows(chunk, "kept", kept_questions(models.reads, texts, candidates, asked, self.min_f1))

        stages.run(ANSWERS, (PASSAGES,), answers)
        stages.run(QUESTIONS, (PASSAGES, ANSWERS), questions)
        stages.run(KEPT, (PASSAGES, ANSWERS, QUESTIONS), kept)

    def _negatives(self, chunk: list[tuple[Row, ...]]) -> list[Row]:
        found = []
        for (passage, kept), entities in zip(chunk, self.find_entities([one["text"] for one, _ in chunk]), strict=True):
            document, paragraph = map(int, passage["id"].split("."))
            rng = randomness.generator(self.seed, document, randomness.NEGATIVES, paragraph)
            asked = [one["question"] for one in kept["kept"]]
            found.append([vars(one) for one in negatives(asked, entities, self.share, rng)])
        return _rows(chunk, "unanswerable", found)


def _rows(chunk: list[tuple[Row, ...]], name: str, found: Sequence[Any]) -> list[Row]:
    return [{"id": rows[0]["id"], name: one} for rows, one in zip(chunk, found, strict=True)]
