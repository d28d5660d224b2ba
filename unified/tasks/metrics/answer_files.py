"""Reading questions with their answers, and predictions, in the formats of SQuAD, MRQA and CoQA.

Ids of questions, stories and turns are compared as texts (:mod:`unified.files.ids`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from unified.arguments import finite
from unified.errors import MissingField, UnifiedError
from unified.files.ids import name_text
from unified.files.json_files import Record, fields_of, read_json
from unified.files.shapes import kind_of, misfit
from unified.files.text_files import numbered_lines

Answers = dict[str, list[str]]
#: Id of a story, and number of a turn.
Turn = tuple[str, str]
_T = TypeVar("_T")


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

    def parse(document: Any) -> SquadAnswers:
        answers: Answers = {}
        for article in document["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    texts = [answer["text"] for answer in question["answers"]]
                    _add(answers, question["id"], texts, path)
        return SquadAnswers(str(document.get("version", "")), answers)

    return _parsed(parse, read_json(path, Record), f"{path}: expected SQuAD's format (data, paragraphs, qas, answers)")


def read_mrqa(path: str | Path) -> Answers:
    """Answers of a file of MRQA: JSON lines of contexts with ``qas``; a first line with ``header`` is passed over.

    Raises:
        UnifiedError: the file cannot be read, has another format, or has a question id twice.
    """
    answers: Answers = {}

    def parse(context: Any) -> None:
        for question in context["qas"]:
            _add(answers, question["qid"], question["answers"], path)

    for number, line in numbered_lines(path):
        try:
            context = fields_of(line, Record)
        except UnifiedError as error:
            raise UnifiedError(f"{path}, line {number}: {error}") from None
        if number > 1 or "header" not in context:
            _parsed(parse, context, f"{path}, line {number}: expected MRQA's format (qas, qid, answers)")
    return answers


def read_coqa(path: str | Path) -> CoqaAnswers:
    """Turns of a file of CoQA, with ``answers`` and ``additional_answers``; of Abg-CoQA the target turns.

    Raises:
        UnifiedError: the file cannot be read, has another format, or its answers do not go with its questions.
    """

    def parse(document: Any) -> CoqaAnswers:
        read = CoqaAnswers([], [], [])
        for story in document["data"]:
            identity = _id(story["id"])
            if "target_turn" in story:
                target = story["target_turn"]
                _add_turn(read, (identity, _id(target["turn_id"])), [target["answer"]], story["source"])
                continue
            columns = [story["answers"], *story.get("additional_answers", {}).values()]
            for i, question in enumerate(story["questions"]):
                turn = (identity, _id(question["turn_id"]))
                answers = [column[i] for column in columns]
                if any(_id(answer["turn_id"]) != turn[1] for answer in answers):
                    raise UnifiedError(f"{path}: story {turn[0]!r}, turn {turn[1]}: an answer is of another turn")
                _add_turn(read, turn, [answer["input_text"] for answer in answers], story["source"])
        if len(set(read.turns)) < len(read.turns):
            raise UnifiedError(f"{path}: a story is in the file twice")
        return read

    return _parsed(parse, read_json(path, Record), f"{path}: expected CoQA's format (data, source, questions, answers)")


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

    def parse(listed: Any) -> dict[Turn, str]:
        predictions: dict[Turn, str] = {}
        for one in listed:
            turn, answer = (_id(one["id"]), _id(one["turn_id"])), one["answer"]
            if turn in predictions:
                raise UnifiedError(f"{path}: story {turn[0]!r}, turn {turn[1]} is in the file twice")
            if not isinstance(answer, str):
                raise UnifiedError(f"{path}: story {turn[0]!r}, turn {turn[1]}: expected a text, got {answer!r}")
            predictions[turn] = answer
        return predictions

    return _parsed(
        parse, read_json(path, Record), f"{path}: expected a JSON list of objects with id, turn_id and answer"
    )


def _id(value: object) -> str:
    """The text of an id; a TypeError, as of any other field of the wrong kind, where it cannot be one."""
    text = name_text(value)
    if text is None:
        raise TypeError(f"an id must be a text or an integer, got {value!r}")
    return text


def _add_turn(read: CoqaAnswers, turn: Turn, answers: list[str], source: str) -> None:
    _require_texts([*answers, source], f"answers and source of story {turn[0]!r}, turn {turn[1]}")
    read.turns.append(turn)
    read.answers.append(answers)
    read.sources.append(source)


def _add(answers: Answers, identity: object, texts: list[str], path: str | Path) -> None:
    question = _id(identity)
    if question in answers:
        raise UnifiedError(f"{path}: question {question!r} is in the file twice")
    _require_texts(texts, f"answers of question {question!r}")
    answers[question] = texts


def _require_texts(value: object, name: str) -> None:
    """A TypeError, as of any other field of the wrong kind, where a value is no list of texts."""
    problem = misfit(value, [str], name)
    if problem is not None:
        raise TypeError(problem)


def _parsed(parse: Callable[[object], _T], document: object, expected: str) -> _T:
    try:
        return parse(document)
    except (MissingField, TypeError, IndexError, AttributeError) as error:
        raise UnifiedError(f"{expected}: {error}") from None
