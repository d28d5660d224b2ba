"""MRQA 2019 (Fisch et al. 2019): questions about contexts, with answers and the places where they were detected."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.data.json_files import Entries
from unified.data.streams import numbered_lines
from unified.errors import UnifiedError


@dataclass(frozen=True)
class MrqaQuestion:
    """A question about a context.

    Attributes:
        id: what predictions are named by.
        text: the question.
        context: the passage, with the marks of the shared task such as ``[PAR]``.
        answers: all of them, free texts.
        detected: the first detected answer: its text, its first character and the one behind its last. None where
            nothing was detected.
    """

    id: str
    text: str
    context: str
    answers: tuple[str, ...]
    detected: tuple[str, int, int] | None


def read_mrqa_file(path: str | Path) -> list[MrqaQuestion]:
    """The questions of a file of JSON lines, plain or compressed; a first line with ``header`` is passed over.

    Raises:
        UnifiedError: the file cannot be read, holds no question, or has wrong lines; the first ten are named.
    """
    entries, questions, ids = Entries(path), [], set()
    for number, line in numbered_lines(path):
        place = f"line {number}"
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            entries.wrong(place, f"not JSON: {error.msg}")
            continue
        if number == 1 and isinstance(fields, dict) and "header" in fields:
            continue
        if not isinstance(fields, dict):
            entries.wrong(place, "not a JSON object")
            continue
        context = entries.text(fields, "context", place)
        for question in entries.objects(fields, "qas", place):
            read = _question(question, context, place, entries)
            if read.id in ids:
                entries.wrong(place, f"question id {read.id!r} was in the file before")
            ids.add(read.id)
            questions.append(read)
    entries.check()
    if not questions:
        raise UnifiedError(f"{path}: holds no question")
    return questions


def _question(fields: dict, context: str, place: str, entries: Entries) -> MrqaQuestion:
    identity = entries.text(fields, "qid", place)
    place = f"{place}, question {identity}"
    answers = fields.get("answers")
    if not isinstance(answers, list) or not answers or not all(isinstance(answer, str) for answer in answers):
        entries.wrong(place, "'answers' is not a list of texts")
        answers = []
    found = entries.objects(fields, "detected_answers", place, optional=True)
    detected = _detected(found[0], context, place, entries) if found else None
    return MrqaQuestion(identity, entries.text(fields, "question", place), context, tuple(answers), detected)


def _detected(fields: dict, context: str, place: str, entries: Entries) -> tuple[str, int, int] | None:
    """Of the first span; its second number is that of its last character."""
    text, spans = entries.text(fields, "text", place), fields.get("char_spans")
    span: Any = spans[0] if isinstance(spans, list) and spans else None
    if not isinstance(span, list) or len(span) != 2 or not all(type(bound) is int for bound in span):
        entries.wrong(place, "the first detected answer has no 'char_spans'")
        return None
    if not 0 <= span[0] <= span[1] < len(context):
        entries.wrong(place, f"the first detected answer lies outside the context: {span}")
        return None
    return text, span[0], span[1] + 1
