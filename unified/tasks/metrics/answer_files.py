"""Reading questions with their answers, and predictions, in the formats of SQuAD, MRQA and CoQA.

Ids of questions, stories and turns are compared as texts (:mod:`unified.files.ids`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.arguments import finite
from unified.errors import MissingField, UnifiedError
from unified.files.ids import name_text
from unified.files.json_files import Entries, Fields, fields_of, read_json
from unified.files.shapes import kind_of, misfit
from unified.files.text_files import numbered_lines

Answers = dict[str, list[str]]
#: Id of a story, and number of a turn.
Turn = tuple[str, str]


@dataclass(frozen=True)
class SquadAnswers:
    """``answers`` of each question id, none for an unanswerable one, and the ``version`` that the file states."""

    version: str
    answers: Answers


@dataclass(frozen=True)
class CoqaAnswers:
    """``turns[i]``, (story, turn) as texts, with all its human answers and the source of its story."""

    turns: list[Turn]
    answers: list[list[str]]
    sources: list[str]


def read_squad(path: str | Path) -> SquadAnswers:
    """Answers of a file of SQuAD 1.1 or 2.0.

    Raises:
        UnifiedError: the file cannot be read, has another format, or has a question id twice.
    """
    entries, answers, document = Entries(path), Answers(), read_json(path)
    for a, article in enumerate(entries.objects(document, "data", "the file"), 1):
        for p, paragraph in enumerate(entries.objects(article, "paragraphs", f"article {a}"), 1):
            of_paragraph = f"article {a}, paragraph {p}"
            for q, question in enumerate(entries.objects(paragraph, "qas", of_paragraph), 1):
                identity = entries.identity(question, "id", f"{of_paragraph}, question {q}")
                location = f"{of_paragraph}, question {q} ({identity})"
                listed = entries.objects(question, "answers", location)
                texts = [entries.text(answer, "text", location, blank=True) for answer in listed]
                _add(answers, entries, identity, texts, location)
    _check(entries, "SQuAD, with data, paragraphs, qas and answers")
    return SquadAnswers(str(document.get("version", "")) if isinstance(document, dict) else "", answers)


def read_mrqa(path: str | Path) -> Answers:
    """Answers of a file of MRQA: JSON lines of contexts with ``qas``; a first line with ``header`` is passed over.

    Raises:
        UnifiedError: the file cannot be read, has another format, or has a question id twice.
    """
    entries, answers = Entries(path), Answers()
    for number, line in numbered_lines(path):
        location = f"line {number}"
        try:
            context = fields_of(line)
        except UnifiedError as error:
            entries.wrong(location, error)
            continue
        if number == 1 and "header" in context:
            continue
        for question in entries.objects(context, "qas", location):
            identity = entries.identity(question, "qid", location)
            named, texts = f"{location}, question {identity}", question.get("answers", [])
            problem = misfit(texts, [str], "'answers'")
            if "answers" not in question or problem is not None:
                entries.wrong(named, problem or MissingField("answers", list(question)))
            _add(answers, entries, identity, texts, named)
    _check(entries, "MRQA, with qas, qid and answers")
    return answers


def read_coqa(path: str | Path) -> CoqaAnswers:
    """Turns of a file of CoQA, with ``answers`` and ``additional_answers``; of Abg-CoQA the target turns.

    Raises:
        UnifiedError: the file cannot be read, has another format, or its answers do not go with its questions.
    """
    entries, read = Entries(path), CoqaAnswers([], [], [])
    for number, story in enumerate(entries.objects(read_json(path), "data", "the file"), 1):
        identity = entries.identity(story, "id", f"story {number}")
        location = f"story {number} ({identity})"
        source = entries.text(story, "source", location, blank=True)
        found = _target_turn(story, location, entries) if "target_turn" in story else _turns(story, location, entries)
        for turn, answers in found:
            read.turns.append((identity, turn))
            read.answers.append(answers)
            read.sources.append(source)
    for (identity, turn), count in Counter(read.turns).items():
        if count > 1:
            entries.wrong(f"story {identity!r}", f"turn {turn} is in the file twice")
    _check(entries, "CoQA, with data, source, questions and answers")
    return read


def _turns(story: Fields, location: str, entries: Entries) -> list[tuple[str, list[str]]]:
    """The number of each turn of a story in the official shape, and all its answers."""
    additional = story.get("additional_answers", {})
    if not isinstance(additional, dict):
        entries.wrong(location, f"'additional_answers' must be an object, got {kind_of(additional)}")
        return []
    questions = entries.objects(story, "questions", location)
    turns = [entries.identity(question, "turn_id", location) for question in questions]
    columns = [entries.objects(story, "answers", location)]
    columns += [entries.objects(additional, name, f"{location}, additional answers") for name in additional]
    for column in columns:
        answered = [name_text(answer.get("turn_id")) for answer in column[: len(turns)]]
        if answered != turns:
            entries.wrong(location, f"answers of the turns {answered} do not go with questions of {turns}")
            return []
    return [
        (turn, [entries.text(answer, "input_text", f"{location}, turn {turn}", blank=True) for answer in answers])
        for turn, *answers in zip(turns, *columns, strict=False)
    ]


def _target_turn(story: Fields, location: str, entries: Entries) -> list[tuple[str, list[str]]]:
    """The number of the one turn of an entry in the shape of Abg-CoQA, and its answer."""
    target = story["target_turn"]
    if not isinstance(target, dict):
        entries.wrong(location, f"'target_turn' must be an object, got {kind_of(target)}")
        return []
    turn = entries.identity(target, "turn_id", f"{location}, target turn")
    return [(turn, [entries.text(target, "answer", f"{location}, target turn", blank=True)])]


def read_predictions(path: str | Path) -> dict[str, Any]:
    """A JSON object: question id to answer (or to a probability).

    Raises:
        UnifiedError: the file cannot be read, holds something else, or has a question twice.
    """

    def once(pairs: list[tuple[str, object]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
            raise UnifiedError(f"{path}: {twice!r} is in the file twice")
        return fields

    predictions = read_json(path, once)
    if not isinstance(predictions, dict):
        raise UnifiedError(f"{path}: expected a JSON object, question id to prediction, got {kind_of(predictions)}")
    return predictions


def read_probabilities(path: str | Path) -> dict[str, float]:
    """Reads a JSON object, question id to a finite number; errors are those of :func:`read_predictions`."""
    probabilities = read_predictions(path)
    for question, value in probabilities.items():
        if isinstance(value, str) or finite(value) is None:
            raise UnifiedError(f"{path}: question {question!r}: expected a finite number, got {value!r}")
    return probabilities


def read_coqa_predictions(path: str | Path) -> dict[Turn, str]:
    """A JSON list of objects with ``id``, ``turn_id`` and ``answer``, by (story, turn).

    Raises:
        UnifiedError: the file cannot be read, has another format, or has a turn twice.
    """
    entries, predictions, listed = Entries(path), dict[Turn, str](), read_json(path)
    if not isinstance(listed, list):
        raise UnifiedError(
            f"{path}: expected a JSON list of objects with id, turn_id and answer, got {kind_of(listed)}"
        )
    for number, one in enumerate(entries.objects({"predictions": listed}, "predictions", "the file"), 1):
        location = f"prediction {number}"
        turn = entries.identity(one, "id", location), entries.identity(one, "turn_id", location)
        if turn in predictions:
            entries.wrong(location, f"turn {turn[1]} of story {turn[0]!r} was in the file before")
        predictions[turn] = entries.text(one, "answer", location, blank=True)
    _check(entries, "predictions for CoQA, a list of objects with id, turn_id and answer")
    return predictions


def _add(answers: Answers, entries: Entries, question: str, texts: list[str], location: str) -> None:
    """Adds the answers of a question; one that is there already is noted."""
    if question in answers:
        entries.wrong(location, f"question id {question!r} was in the file before")
    answers[question] = texts


def _check(entries: Entries, file: str) -> None:
    """Refuse a file in which something was wrong, with what it should be."""
    entries.problems.check(f"{entries.path}: ", f"; is it a file of {file}?")
