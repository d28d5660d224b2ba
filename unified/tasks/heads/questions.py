"""Questions about passages: items of extractive question answering, one JSON object a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unified.errors import MissingField, UnifiedError, WrongField, require_fields
from unified.files.ids import item_id
from unified.tasks.heads.items import item_subset, nonempty_text, refuse_printed
from unified.tasks.heads.named_entities import NamedEntities, read_named_entities

#: The answer of questions that have none in their passage (SQuAD 2.0).
NOTHING = ""
#: Placeholder for the question of a candidate answer that has none yet [UniLM, app. A].
UNASKED = "[UNK]"
_LETTER_OR_DIGIT = r"[^\W_]"


@dataclass(frozen=True)
class Answer:
    """A text, and the character of the passage where it begins; ``start`` is None where it is unknown."""

    text: str
    start: int | None = None


@dataclass(frozen=True)
class QuestionItem:
    """A question about a passage, within a conversation or by itself.

    Attributes:
        id: what predictions are named by.
        question: what is asked.
        context: the passage.
        answers: what people marked in the passage. None where they are to be predicted, empty where there is none.
        impossible: True where the passage has no answer (SQuAD 2.0).
        choice: an answer that no part of the passage is, such as "yes" (CoQA).
        history: what was said before the question.
        references: free answers that a prediction is scored by, instead of the texts of ``answers``.
        named_entities: of the texts, see :mod:`unified.tasks.heads.named_entities`; None where nobody says.
        subset: part of the data set that is scored by itself, too, such as a data set of MRQA.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None = None
    impossible: bool | None = None
    choice: str | None = None
    history: str | None = None
    references: tuple[str, ...] | None = None
    named_entities: NamedEntities | None = None
    subset: str | None = None

    @property
    def texts(self) -> dict[str, str]:
        """Texts by the names of their fields."""
        found = {"question": self.question, "context": self.context, "history": self.history}
        return {name: text for name, text in found.items() if text is not None}

    @property
    def label(self) -> str | None:
        """The answer outside the passage; None where it is in it."""
        return NOTHING if self.impossible else self.choice

    @property
    def gold(self) -> list[str]:
        """Texts that a prediction is compared with; none where the passage has no answer."""
        if self.references is not None:
            return list(self.references)
        if self.choice is not None:
            return [self.choice]
        return [answer.text for answer in self.answers or ()]


def question_item(fields: dict[str, Any], number: int, labelled: bool) -> QuestionItem:
    """Reads ``question`` and ``context``, and where they are there ``history``, ``named_entities``, ``subset``, ``id``.

    Args:
        number: of the line, which is the ``id`` where there is none.
        labelled: ``answers`` are read, or ``impossible`` or ``choice`` must say why there are none.

    Raises:
        UnifiedError: says which field is wrong.
    """
    require_fields(fields, "question", "context")
    question, context = (nonempty_text(fields, name) for name in ("question", "context"))
    history = fields.get("history")
    if history is not None and not isinstance(history, str):
        raise WrongField("history", f"must be a text, got {history!r}")
    item = QuestionItem(item_id(fields, number), question, context, history=history)
    item = replace(item, named_entities=read_named_entities(fields, item.texts), subset=item_subset(fields))
    return _labelled(item, fields) if labelled else item


def _labelled(item: QuestionItem, fields: dict[str, Any]) -> QuestionItem:
    if not {"answers", "choice", "references", "impossible"} & fields.keys():
        raise MissingField("answers", list(fields))
    answers, nothing = _answers(fields.get("answers"), item.context)
    impossible, choice = fields.get("impossible", nothing or None), fields.get("choice")
    if not isinstance(impossible, bool | None):
        raise WrongField("impossible", f"must be true or false, got {impossible!r}")
    if choice is not None and (not isinstance(choice, str) or not choice.strip()):
        raise WrongField("choice", f"must be a text that is not empty, got {choice!r}")
    references = tuple(_listed(fields, "references"))
    if not all(isinstance(text, str) for text in references):
        raise WrongField("references", "must be a list of texts")
    if impossible and (answers or choice is not None):
        raise WrongField("impossible", "is true, but there is an answer")
    if not impossible and choice is None and not answers and not references:
        raise UnifiedError("no answer; where the passage has none, 'impossible' must be true")
    return replace(item, answers=answers, impossible=impossible, choice=choice, references=references or None)


def _listed(fields: dict[str, Any], name: str) -> Sequence[Any]:
    value = fields.get(name)
    if value is not None and not isinstance(value, list):
        raise WrongField(name, f"must be a list, got {value!r}")
    return value or []


def _answers(value: Any, context: str) -> tuple[tuple[Answer, ...], bool]:
    """The answers in any of their forms, and whether the form says that there is none.

    Forms are a list of answers, whose place is ``start`` or SQuAD's ``answer_start``, or of texts, one text (empty
    where there is no answer), or SQuAD's lists in Hugging Face's form: {"text": [...], "answer_start": [...]}. A text
    is looked for in the passage (:func:`_found`).
    """
    if isinstance(value, str):
        value = value.strip()
        return ((_answer(value, context),) if value else ()), not value
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        texts = value["text"]
        starts = value.get("answer_start")
        if not isinstance(starts, list) or len(starts) != len(texts):
            raise WrongField("answers", f"must have an 'answer_start' for each 'text', got {value!r}")
        found = [_answer({"text": text, "start": start}, context) for text, start in zip(texts, starts, strict=True)]
        return tuple(found), not found
    if value is not None and not isinstance(value, list):
        raise WrongField("answers", f"must be a list or a text, got {value!r}")
    return tuple(_answer(one, context) for one in value or []), False


def _answer(fields: Any, context: str) -> Answer:
    if isinstance(fields, str) and fields.strip():
        return _found(fields, context)
    text = fields.get("text") if isinstance(fields, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise UnifiedError(f"an answer must have a 'text' that is not empty, got {fields!r}")
    named = "answer_start" if "answer_start" in fields else "start"
    start = fields.get(named)
    if start is not None and (isinstance(start, bool) or not isinstance(start, int)):
        raise UnifiedError(f"{named!r} of the answer {text!r} must be an integer, got {start!r}")
    if fields.get("start", start) != start:
        raise UnifiedError(f"'start' and 'answer_start' of the answer {text!r} differ, {fields['start']} and {start}")
    return Answer(text, start)


def _found(text: str, context: str) -> Answer:
    """The first place of a text in the passage: as it is, or else in other capitals and with other white space.

    A place within a longer word, to which a letter or a digit of the answer is joined, counts where there is no other.
    The answer is spelt as in the passage; scores do not tell capitals apart. One that the passage lacks has no start.

    Raises:
        UnifiedError: the passage lacks it, and it is a list or an object that a program has written as a text.
    """
    if text not in context:
        refuse_printed("answers", text)
    exact, alike = re.escape(text), r"\s+".join(map(re.escape, text.split()))
    for pattern, flags in (
        (_whole(exact, text), 0), (_whole(alike, text.strip()), re.IGNORECASE), (exact, 0), (alike, re.IGNORECASE)
    ):  # fmt: skip
        place = re.search(pattern, context, flags)
        if place is not None:
            return Answer(place[0], place.start())
    return Answer(text)


def _whole(pattern: str, text: str) -> str:
    """The pattern of a text where no letter or digit is joined to one at its edge."""
    before = rf"(?<!{_LETTER_OR_DIGIT})" if text[0].isalnum() else ""
    behind = rf"(?!{_LETTER_OR_DIGIT})" if text[-1].isalnum() else ""
    return before + pattern + behind
