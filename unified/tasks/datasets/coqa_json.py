"""The JSON of CoQA (Reddy et al. 2019): conversations about a passage, with free answers and their rationales.

Two shapes are read: the official one, a story with all its turns, and that of Abg-CoQA (Guo et al. 2021), a story with
one target turn and the turns before it. Both become a list of turns that know what was said before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.files.json_files import Entries, read_json
from unified.tasks.datasets.files import checked

NO_SPAN = -1


@dataclass(frozen=True)
class CoqaAnswer:
    """One person's answer.

    Attributes:
        text: the free answer; "unknown" where the passage does not say.
        rationale: the text of the passage that it rests on, as the file has it.
        start, end: characters of the passage that hold the rationale, ``end`` exclusive; both :data:`NO_SPAN` where
            there is none, or where it does not stand at the characters the file names.
        misaligned: why it does not, None where it does or where the file names no span.
    """

    text: str
    rationale: str
    start: int = NO_SPAN
    end: int = NO_SPAN
    misaligned: str | None = None


@dataclass(frozen=True)
class CoqaTurn:
    """A question of a conversation.

    Attributes:
        story, number: what predictions are named by (``id`` and ``turn_id``).
        source: where the story comes from, such as "mctest"; it tells the domain.
        passage: the story.
        history: question and answer of the earlier turns, in order.
        question: what is asked now.
        answers: the main one, then those of other people.
    """

    story: str
    number: int
    source: str
    passage: str
    history: tuple[tuple[str, str], ...]
    question: str
    answers: tuple[CoqaAnswer, ...]


def read_coqa_file(path: str | Path) -> list[CoqaTurn]:
    """The turns of a file of CoQA or Abg-CoQA, plain or compressed, in its order.

    Of Abg-CoQA the target turn is read, ambiguous or not, and no clarification; its ``story`` is the entry's id.

    Raises:
        UnifiedError: the file cannot be read, holds no turn, or has wrong entries: missing fields, answers that do not
            go with their questions, a story that occurs twice. The first ten are named by story and turn.
    """
    entries, turns = Entries(path), []
    for number, fields in enumerate(entries.objects(read_json(path), "data", "the file"), 1):
        identity = entries.identity(fields, "id", f"story {number}")
        story = _Story(
            location=f"story {number} ({identity})",
            id=identity,
            source=entries.text(fields, "source", f"story {number} ({identity})", blank=True),
            passage=entries.text(fields, "story", f"story {number} ({identity})"),
        )
        turns += _target_turn(story, fields, entries) if "target_turn" in fields else _turns(story, fields, entries)
    twice = [key for key, count in Counter((turn.story, turn.number) for turn in turns).items() if count > 1]
    for identity, number in twice:
        entries.wrong(f"story {identity!r}", f"turn {number} is in the file twice")
    return checked(turns, entries, "question")


def misaligned_reasons(turns: Iterable[CoqaTurn]) -> Counter[str]:
    """Number of rationales that do not stand where the file says, by reason."""
    return Counter(answer.misaligned for turn in turns for answer in turn.answers if answer.misaligned)


@dataclass(frozen=True)
class _Story:
    """Parts of a story that its turns share; ``location`` names it in messages."""

    location: str
    id: str
    source: str
    passage: str


def _turns(story: _Story, fields: dict[str, Any], entries: Entries) -> list[CoqaTurn]:
    """All turns of a story in the official shape."""
    questions = entries.objects(fields, "questions", story.location)
    columns = [entries.objects(fields, "answers", story.location)]
    additional = fields.get("additional_answers") or {}
    if isinstance(additional, dict):
        columns += [entries.objects(additional, name, f"{story.location}, additional answers") for name in additional]
    else:
        entries.wrong(story.location, "'additional_answers' is not an object")
    numbers = [entries.integer(question, "turn_id", story.location) for question in questions]
    for column in columns:
        answered = [answer.get("turn_id") for answer in column]
        if answered != numbers:
            entries.wrong(story.location, f"answers of the turns {answered} do not go with questions of {numbers}")
            return []
    turns: list[CoqaTurn] = []
    history: list[tuple[str, str]] = []
    for i, (number, question) in enumerate(zip(numbers, questions, strict=True)):
        location = f"{story.location}, turn {number}"
        text = entries.text(question, "input_text", location, blank=True)
        answers = tuple(
            _answer(column[i], ("input_text", "span_text"), story.passage, location, entries) for column in columns
        )
        turns.append(CoqaTurn(story.id, number, story.source, story.passage, tuple(history), text, answers))
        history.append((text, answers[0].text))
    return turns


def _target_turn(story: _Story, fields: dict[str, Any], entries: Entries) -> list[CoqaTurn]:
    """The one turn of an entry in the shape of Abg-CoQA."""
    target, location = fields["target_turn"], f"{story.location}, target turn"
    if not isinstance(target, dict):
        entries.wrong(story.location, "'target_turn' is not an object")
        return []
    history = tuple(
        (entries.text(turn, "question", location, blank=True), entries.text(turn, "answer", location, blank=True))
        for turn in entries.objects(fields, "history_turns", story.location)
    )
    number, text = entries.integer(target, "turn_id", location), entries.text(target, "question", location, blank=True)
    answer = _answer(target, ("answer", "rationale"), story.passage, location, entries)
    return [CoqaTurn(story.id, number, story.source, story.passage, history, text, (answer,))]


def _answer(
    fields: dict[str, Any], names: tuple[str, str], passage: str, location: str, entries: Entries
) -> CoqaAnswer:
    text, rationale = (entries.text(fields, name, location, blank=True) for name in names)
    start, end = (entries.integer(fields, name, location) for name in ("span_start", "span_end"))
    if start == end == NO_SPAN:
        return CoqaAnswer(text, rationale)
    if not 0 <= start < end <= len(passage):
        return CoqaAnswer(text, rationale, misaligned="the rationale's characters lie outside the passage")
    if passage[start:end].split() != rationale.split():
        return CoqaAnswer(text, rationale, misaligned="the passage has another text at the rationale's characters")
    return CoqaAnswer(text, rationale, start, end)
