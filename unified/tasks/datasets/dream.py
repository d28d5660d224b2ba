"""DREAM (Sun et al. 2019): questions about dialogues."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from unified.errors import MissingField, UnifiedError
from unified.files.json_files import Entries, read_json
from unified.tasks.datasets.choices import add_choice, are_strings
from unified.tasks.datasets.files import checked, read_splits
from unified.tasks.datasets.race import XLNET_TRAINING
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.settings import Task

_FILES = {"train": (("train.json",),), "valid": (("dev.json",),), "test": (("test.json",),)}


def read_dream(path: str | Path) -> list[ChoiceItem]:
    """DREAM's JSON: a list of [turns of a dialogue, questions with choices and an answer, id].

    An item's ``id`` is the dialogue's and the number of the question, such as ``5-510-0``.

    Raises:
        UnifiedError: the file cannot be read, holds no question, or entries are wrong, a repeated id among them; the
            first ten are named.
    """
    entries, dialogues = Entries(path), read_json(path)
    items: list[ChoiceItem] = []
    if not isinstance(dialogues, list):
        raise UnifiedError(f"{path}: expected a list of dialogues")
    for number, dialogue in enumerate(dialogues, 1):
        location = f"dialogue {number}"
        if not isinstance(dialogue, list) or len(dialogue) != 3 or not are_strings(dialogue[0]):
            entries.wrong(location, "expected [turns, questions, id]")
            continue
        turns = dialogue[0]
        identity = entries.identity({"id": dialogue[2]}, "id", location)
        entries.once(identity, location)
        for i, question in enumerate(entries.objects({"questions": dialogue[1]}, "questions", location)):
            where = f"{location}, question {i + 1}"
            text, choices = entries.text(question, "question", where), question.get("choice")
            if "choice" not in question:
                entries.wrong(where, MissingField("choice", list(question)))
                continue
            if not are_strings(choices):
                entries.wrong(where, "no list of texts 'choice'")
                continue
            answer = entries.text(question, "answer", where)
            count = choices.count(answer)
            if count != 1:
                entries.wrong(where, f"the answer {answer!r} must equal one choice, but equals {count}")
                continue
            label = str(choices.index(answer))
            add_choice(items, entries, where, f"{identity}-{i}", "\n".join(turns), choices, label, text)
    return checked(items, entries, "question")


TASKS = (
    Task(
        name="dream",
        head="choice",
        read=partial(read_splits, _FILES, read_dream),
        training=XLNET_TRAINING,
        source="settings of RACE",
    ),
)
