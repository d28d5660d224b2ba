"""SemEval-2010 task 8 (Hendrickx et al. 2010): the relation between two marked nominals."""

from __future__ import annotations

import re
from pathlib import Path

from unified.files.json_files import Entries
from unified.files.text_files import numbered_lines
from unified.tasks.datasets.files import checked, read_splits
from unified.tasks.datasets.tacred import MARKERS_TRAINING
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.relation import RelationItem
from unified.tasks.metrics.relations import OTHER
from unified.tasks.settings import Task

_FILES = {"train": (("TRAIN_FILE.TXT",),), "test": (("TEST_FILE_FULL.TXT",),)}
#: SemEval has no development set: every so-many-th training sentence is one.
_HELD_OUT = 10


def _splits(folder: Path) -> dict[str, list[RelationItem]]:
    """Sentences 10, 20, … of the training file are for validation."""
    splits = read_splits(_FILES, read_semeval2010, folder)
    items = splits["train"]
    held_out = items[_HELD_OUT - 1 :: _HELD_OUT]
    return splits | {"train": [item for i, item in enumerate(items, 1) if i % _HELD_OUT], "valid": held_out}


_NUMBERED = re.compile(r"\d+\t")
_SENTENCE = re.compile(r'(\d+)\t"(.*)"')
_ENTITIES = re.compile(r"(.*)<e1>(.*)</e1>(.*)<e2>(.*)</e2>(.*)")
_RELATION = re.compile(rf"{OTHER}|[A-Z][A-Za-z]*-[A-Z][A-Za-z]*\((e1,e2|e2,e1)\)")


def read_semeval2010(path: str | Path) -> list[RelationItem]:
    """SemEval's text: ``number<tab>"sentence with <e1>…</e1> and <e2>…</e2>"``, then the relation, and a comment.

    Words end at white space and at the marks. Its entities have no types.

    Raises:
        UnifiedError: the file cannot be read, holds no sentence, or lines are wrong, a repeated number among them; the
            first ten are named.
    """
    entries, items = Entries(path), []
    for number, line, following in _blocks(path):
        match = _SENTENCE.fullmatch(line)
        sentence = _ENTITIES.fullmatch(match[2]) if match else None
        if match is None or sentence is None:
            entries.wrong(f"line {number}", 'expected number<tab>"… <e1>…</e1> … <e2>…</e2> …"')
            continue
        label = following[0] if following else ""
        if not _RELATION.fullmatch(label):
            entries.wrong(f"line {number}", f"a relation such as 'Cause-Effect(e2,e1)' or {OTHER!r} must follow")
            continue
        parts = [part.split() for part in sentence.groups()]
        before, first, between, second, _ = map(len, parts)
        if not first or not second:
            entries.wrong(f"line {number}", "an entity is empty")
            continue
        entries.once(match[1], f"line {number}")
        words = tuple(word for part in parts for word in part)
        pair = Entity(before, before + first), Entity(before + first + between, before + first + between + second)
        items.append(RelationItem(match[1], words, pair, label))
    return checked(items, entries, "sentence")


def _blocks(path: str | Path) -> list[tuple[int, str, list[str]]]:
    """Number and text of each line that begins with a number, and the lines behind it."""
    blocks: list[tuple[int, str, list[str]]] = []
    for number, line in numbered_lines(path):
        line = line.strip()
        if _NUMBERED.match(line) or (line and not blocks):
            blocks.append((number, line, []))
        elif line:
            blocks[-1][2].append(line)
    return blocks


TASKS = (
    Task(
        name="semeval2010",
        head="relation(rules='semeval2010')",
        read=_splits,
        training=MARKERS_TRAINING,
        source="Baldini Soares et al. 2019, appendix (1 to 10 epochs)",
    ),
)
