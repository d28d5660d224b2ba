"""SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018): passages with questions and answers at characters of them.

What does not have the format is refused, all of it named together. An answer that does not stand where the file says
is set apart with the reason (:attr:`SquadQuestion.misaligned`): nothing trains on it and everything can count it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.files.json_files import Entries, read_json
from unified.tasks.alignment import misalignment
from unified.tasks.datasets.files import (
    split_questions,
)
from unified.tasks.grids import SPANBERT_GRID
from unified.tasks.heads.questions import UNASKED, Answer, QuestionItem
from unified.tasks.settings import Task, Training


@dataclass(frozen=True)
class SquadAnswer:
    """``text``, which stands at characters ``start`` to ``end`` (exclusive) of the passage."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The character behind its last one."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class MisalignedAnswer:
    """An answer that does not stand at character ``start`` of the passage, and why it cannot be used."""

    text: str
    start: int
    reason: str


@dataclass(frozen=True)
class SquadQuestion:
    """A question about a passage.

    Attributes:
        id: what predictions are named by.
        text: the question.
        answers: those that stand in the passage, in the order of the file; several people may have answered.
        is_impossible: SQuAD 2.0 says that the passage has no answer. An answerable question has no ``answers`` where
            all of them are misaligned, or where the file holds none.
        misaligned: answers that do not stand where the file says.
    """

    id: str
    text: str
    answers: tuple[SquadAnswer, ...]
    is_impossible: bool = False
    misaligned: tuple[MisalignedAnswer, ...] = ()


@dataclass(frozen=True)
class SquadParagraph:
    """A passage with its questions; ``title`` is that of its article, "" where it has none."""

    title: str
    context: str
    questions: tuple[SquadQuestion, ...]


def read_squad_file(path: str | Path, labelled: bool = True) -> list[SquadParagraph]:
    """The passages of a file of SQuAD's JSON, plain or compressed, in its order.

    Args:
        labelled: every question must have an answer, or be said to have none.

    Raises:
        UnifiedError: the file cannot be read, holds no question, or has wrong entries: missing fields, empty texts, an
            id that occurs twice, answers that contradict ``is_impossible``. The first ten are named by article,
            paragraph and question.
    """
    entries, paragraphs, ids = Entries(path), [], set()
    document = read_json(path)
    for a, article in enumerate(entries.objects(document, "data", "the file"), 1):
        title = entries.text(article, "title", f"article {a}", blank=True) if "title" in article else ""
        named = f"article {a} ({title})" if title else f"article {a}"
        for p, paragraph in enumerate(entries.objects(article, "paragraphs", named), 1):
            location = f"{named}, paragraph {p}"
            context = entries.text(paragraph, "context", location)
            questions = [
                _question(question, context, f"{location}, question {q}", entries, labelled)
                for q, question in enumerate(entries.objects(paragraph, "qas", location), 1)
            ]
            for question in questions:
                if question.id in ids:
                    entries.wrong(location, f"question id {question.id!r} was in the file before")
                ids.add(question.id)
            paragraphs.append(SquadParagraph(title, context, tuple(questions)))
    entries.check()
    if not ids:
        raise UnifiedError(f"{path}: holds no question")
    return paragraphs


def misaligned_reasons(paragraphs: Iterable[SquadParagraph]) -> Counter[str]:
    """How many answers cannot be used, by reason."""
    return Counter(
        answer.reason for paragraph in paragraphs for question in paragraph.questions for answer in question.misaligned
    )


def _question(fields: dict[str, Any], context: str, location: str, entries: Entries, labelled: bool) -> SquadQuestion:
    identity = entries.identity(fields, "id", location)
    location = f"{location} ({identity})"
    text = entries.text(fields, "question", location)
    is_impossible = fields.get("is_impossible", False)
    if not isinstance(is_impossible, bool):
        entries.wrong(location, f"'is_impossible' is neither true nor false: {is_impossible!r}")
    listed = entries.objects(fields, "answers", location, optional=not labelled)
    if is_impossible and listed:
        entries.wrong(location, "has answers, but is_impossible")
    if labelled and not is_impossible and not listed:
        entries.wrong(location, "has no answer, but is not is_impossible")
    answers: list[SquadAnswer] = []
    misaligned: list[MisalignedAnswer] = []
    for number, answer in enumerate(listed, 1):
        where = f"{location}, answer {number}"
        wanted, start = entries.text(answer, "text", where), entries.integer(answer, "answer_start", where)
        reason = misalignment(context, wanted, start)
        if reason is None:
            answers.append(SquadAnswer(wanted, start))
        else:
            misaligned.append(MisalignedAnswer(wanted, start, reason))
    return SquadQuestion(identity, text, tuple(answers), bool(is_impossible), tuple(misaligned))


def read_squad(folder: Path, version: str) -> dict[str, list[QuestionItem]]:
    """Splits of a folder with ``train-v1.1.json`` and ``dev-v1.1.json``, or parts of them, for the version ``1.1``.

    Files may have more in their names behind the version, and be compressed; a split is all of its files, of which no
    two may have a question in common.
    """

    def items(path: Path) -> list[QuestionItem]:
        return squad_items(read_squad_file(path))

    return split_questions(folder, {"train": f"train-v{version}*.json*", "valid": f"dev-v{version}*.json*"}, items)


def read_squad_answers(folder: Path) -> dict[str, list[QuestionItem]]:
    """SQuAD 1.1 with :data:`UNASKED` in the place of every question: what of a passage might be asked for.

    The answers to all questions about a passage are learnt, an item each.
    """
    splits = read_squad(folder, version="1.1")
    return {name: [replace(item, question=UNASKED) for item in items] for name, items in splits.items()}


def squad_items(paragraphs: Iterable[SquadParagraph]) -> list[QuestionItem]:
    """Of SQuAD; answers that do not stand where the file says are kept, to be counted."""
    return [
        QuestionItem(
            question.id,
            question.text,
            paragraph.context,
            (
                *(Answer(answer.text, answer.start) for answer in question.answers),
                *(Answer(answer.text, answer.start) for answer in question.misaligned),
            ),
            impossible=True if question.is_impossible else None,
        )
        for paragraph in paragraphs
        for question in paragraph.questions
    ]


_BERT = "Devlin et al. 2019, appendix A.3"
#: Heads and settings of other papers.
_UNILM = ("span(design='unilm')", Training(epochs=3, batch_size=24, lr=3e-5, max_length=384))
SPANBERT = ("span", Training(4, batch_size=32, lr=2e-5, max_length=512, select="best", validations=10))


def _xlnet(epochs: int) -> tuple[str, Training]:
    """Of the published script, whose 8,000 updates, 1,000 of them rising, are so many epochs, rounded."""
    training = Training(epochs, 48, 3e-5, 512, warmup=0.125, weight_decay=0.0, layer_decay=0.75)
    return "span(design='xlnet', max_answer=64, nbest=5)", training


TASKS = (
    Task(
        name="squad1.1",
        head="span",
        read=partial(read_squad, version="1.1"),
        training=Training(epochs=3, batch_size=32, lr=5e-5, max_length=384),
        published={
            "valid": {
                "BERT base": {"f1": 88.5},
                "BERT large": {"exact": 84.2, "f1": 91.1},
                "XLNet large": {"exact": 89.0, "f1": 94.5},
                "ANNA base": {"exact": 87.0, "f1": 92.8},
                "ANNA large": {"exact": 90.0, "f1": 95.4},
            }
        },
        source=f"{_BERT}; Joshi et al. 2020; Yang et al. 2019 and their script; Jun et al. 2022",
        systems={"spanbert": SPANBERT, "xlnet": _xlnet(epochs=4)},
        grids={"spanbert": SPANBERT_GRID},
    ),
    Task(
        name="squad2.0",
        head="span",
        read=partial(read_squad, version="2.0"),
        training=Training(epochs=2, batch_size=48, lr=5e-5, max_length=384),
        published={
            "valid": {
                "MiniLM, 22M": {"f1": 75.6},
                "BERT large": {"exact": 78.9, "f1": 81.8},
                "UniLM large": {"exact": 80.5, "f1": 83.4},
                "XLNet large": {"exact": 87.9, "f1": 90.6},
                "ANNA large": {"exact": 88.4, "f1": 90.8},
            }
        },
        source=f"{_BERT}; Dong et al. 2019, who name no rate (3e-5 here); Joshi et al. 2020; "
        "Yang et al. 2019 and their script; Jun et al. 2022; Wang et al. 2020 (MiniLM, 6 layers)",
        systems={"unilm": _UNILM, "spanbert": SPANBERT, "xlnet": _xlnet(epochs=3)},
        grids={"spanbert": SPANBERT_GRID},
    ),
    Task(
        name="squad-answers",
        head="span",
        read=read_squad_answers,
        training=Training(epochs=2, batch_size=32, lr=5e-5, max_length=384),
        source="Dong et al. 2019, appendix A, which gives no settings of it; these are of SQuAD 1.1, an epoch less",
    ),
)
