"""The JSON of SQuAD (Rajpurkar et al. 2016, 2018): passages with questions and answers at characters of them.

What does not have the format is refused, all of it named together. An answer that does not stand where the file says
is set apart with the reason (:attr:`SquadQuestion.misaligned`): nothing trains on it and everything can count it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.files.json_files import Entries, read_json
from unified.tasks.alignment import misalignment


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
            all of them are misaligned.
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


def read_squad_file(path: str | Path) -> list[SquadParagraph]:
    """The passages of a file of SQuAD's JSON, plain or compressed, in its order.

    Raises:
        UnifiedError: the file cannot be read, holds no question, or has wrong entries: missing fields, empty texts, an
            id that occurs twice, a question that has neither an answer nor ``is_impossible``, or both. The first ten
            are named by article, paragraph and question.
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
                _question(question, context, f"{location}, question {q}", entries)
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
    """Number of answers that cannot be used, by reason."""
    return Counter(
        answer.reason for paragraph in paragraphs for question in paragraph.questions for answer in question.misaligned
    )


def _question(fields: dict[str, Any], context: str, location: str, entries: Entries) -> SquadQuestion:
    identity = entries.identity(fields, "id", location)
    location = f"{location} ({identity})"
    text = entries.text(fields, "question", location)
    is_impossible = fields.get("is_impossible", False)
    if not isinstance(is_impossible, bool):
        entries.wrong(location, f"'is_impossible' is neither true nor false: {is_impossible!r}")
    listed = entries.objects(fields, "answers", location)
    if is_impossible and listed:
        entries.wrong(location, "has answers, but is_impossible")
    if not is_impossible and not listed:
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
