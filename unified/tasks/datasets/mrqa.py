"""MRQA 2019 (Fisch et al. 2019): questions about contexts, with answers and the places where they were detected."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.files.json_files import Entries
from unified.files.text_files import numbered_lines


@dataclass(frozen=True)
class MrqaQuestion:
    """A question about a context.

    Attributes:
        id: what predictions are named by.
        text: the question.
        context: the passage, with the marks of the shared task such as ``[PAR]``.
        answers: all of them, free texts.
        detected: the detected answer that stands first in the context, as SpanBERT's authors train on it: its text, its
            first character and the one behind its last. None where nothing was detected.
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


def _question(fields: dict[str, Any], context: str, place: str, entries: Entries) -> MrqaQuestion:
    identity = entries.identity(fields, "qid", place)
    place = f"{place}, question {identity}"
    answers = fields.get("answers")
    if not isinstance(answers, list) or not answers or not all(isinstance(answer, str) for answer in answers):
        entries.wrong(place, "'answers' is not a list of texts")
        answers = []
    found = entries.objects(fields, "detected_answers", place, optional=True)
    spans = [span for answer in found for span in _detected(answer, context, place, entries)]
    detected = min(spans, key=lambda span: span[1:], default=None)
    return MrqaQuestion(identity, entries.text(fields, "question", place), context, tuple(answers), detected)


def _detected(fields: dict[str, Any], context: str, place: str, entries: Entries) -> list[tuple[str, int, int]]:
    """Text, first character and the one behind the last wherever an answer was detected; a span's second number is that
    of its last character."""
    text, spans = entries.text(fields, "text", place), fields.get("char_spans")
    if not isinstance(spans, list) or not spans or not all(_is_span(span) for span in spans):
        entries.wrong(place, "a detected answer has no 'char_spans', pairs of its first and last characters")
        return []
    outside = next((span for span in spans if not 0 <= span[0] <= span[1] < len(context)), None)
    if outside is not None:
        entries.wrong(place, f"a detected answer lies outside the context: {outside}")
        return []
    return [(text, start, last + 1) for start, last in spans]


def _is_span(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(bound) is int for bound in value)
