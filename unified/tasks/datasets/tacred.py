"""TACRED (Zhang et al. 2017): the relation between two entities of a sentence of news."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import MissingField, UnifiedError
from unified.files.json_files import Entries, read_json
from unified.tasks.datasets.files import checked, read_splits
from unified.tasks.grids import SPANBERT_GRID
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import are_texts, require_whole_characters
from unified.tasks.heads.relation import RelationItem
from unified.tasks.settings import Task, Training

_FILES = {split: ((f"{name}.json",),) for split, name in
                 (("train", "train"), ("valid", "dev"), ("test", "test"))}  # fmt: skip
#: The Penn treebank's words for brackets.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def read_tacred(path: str | Path) -> list[RelationItem]:
    """TACRED's JSON: a list of sentences with subject, object and relation; brackets as they were written.

    Raises:
        UnifiedError: the file cannot be read, holds no sentence, or entries are wrong, a repeated id among them; the
            first ten are named.
    """
    entries, items = Entries(path), []
    for number, fields in enumerate(entries.objects({"sentences": read_json(path)}, "sentences", "the file"), 1):
        location = f"sentence {number}"
        words = fields.get("token")
        if "token" not in fields:
            entries.wrong(location, MissingField("token", list(fields)))
            continue
        if not are_texts(words) or not words:
            entries.wrong(location, "'token' must be a list of texts that are not empty")
            continue
        try:
            require_whole_characters({"token": words})
        except UnifiedError as problem:
            entries.wrong(location, problem)
        subject, other = (_entity(fields, role, len(words), location, entries) for role in ("subj", "obj"))
        label = entries.text(fields, "relation", location)
        identity = str(number) if fields.get("id") is None else entries.identity(fields, "id", location)
        entries.once(identity, location)
        words = tuple(_BRACKETS.get(word, word) for word in words)
        items.append(RelationItem(identity, words, (subject, other), label))
    return checked(items, entries, "sentence")


def _entity(fields: dict[str, Any], role: str, words: int, location: str, entries: Entries) -> Entity:
    start, last = (entries.integer(fields, f"{role}_{end}", location) for end in ("start", "end"))
    if not 0 <= start <= last < words:
        entries.wrong(
            location, f"{role}_start {start} and {role}_end {last} are not among its {counted(words, 'word')}"
        )
    return Entity(start, last + 1, entries.text(fields, f"{role}_type", location))


#: Settings of entity markers, which SemEval-2010 takes over.
MARKERS_TRAINING = Training(epochs=5, batch_size=64, lr=3e-5)

TASKS = (
    Task(
        name="tacred",
        head="relation(design='types')",
        read=partial(read_splits, _FILES, read_tacred),
        training=Training(epochs=10, batch_size=32, lr=2e-5, select="best", validations=10),
        published={
            "test": {
                "BERT large, Google's": {"precision": 69.1, "recall": 63.9, "f1": 66.4},
                "SpanBERT": {"precision": 70.8, "recall": 70.9, "f1": 70.8},
                "BERT with entity markers": {"f1": 70.1},
            }
        },
        source="Joshi et al. 2020, section 4.1, appendix B and its published script",
        systems={"markers": ("relation(design='markers')", MARKERS_TRAINING)},
        grid=SPANBERT_GRID,
    ),
)
