"""Relations between two entities: TACRED (Zhang et al. 2017) and SemEval-2010 task 8 (Hendrickx et al. 2010)."""

from __future__ import annotations

import re
from pathlib import Path

from unified.errors import MissingField, UnifiedError
from unified.files.json_files import Entries, read_json
from unified.files.text_files import numbered_lines
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import are_texts
from unified.tasks.heads.relation import RelationItem
from unified.tasks.metrics.relations import OTHER

#: The Penn treebank's words for brackets.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_NUMBERED = re.compile(r"\d+\t")
_SENTENCE = re.compile(r'(\d+)\t"(.*)"')
_ENTITIES = re.compile(r"(.*)<e1>(.*)</e1>(.*)<e2>(.*)</e2>(.*)")
_RELATION = re.compile(rf"{OTHER}|[A-Z][A-Za-z]*-[A-Z][A-Za-z]*\((e1,e2|e2,e1)\)")


def read_tacred(path: str | Path, labelled: bool = True) -> list[RelationItem]:
    """TACRED's JSON: a list of sentences with subject, object and relation; brackets as they were written.

    Raises:
        UnifiedError: the file cannot be read, holds no sentence, or entries are wrong, a repeated id among them; the
            first ten are named.
    """
    entries, items = Entries(path), []
    for number, fields in enumerate(entries.objects({"sentences": read_json(path)}, "sentences", "the file"), 1):
        place = f"sentence {number}"
        words = fields.get("token")
        if "token" not in fields:
            entries.wrong(place, MissingField("token", list(fields)))
            continue
        if not are_texts(words) or not words:
            entries.wrong(place, "'token' must be a list of texts that are not empty")
            continue
        subject, other = (_entity(fields, role, len(words), place, entries) for role in ("subj", "obj"))
        label = entries.text(fields, "relation", place) if labelled else None
        identity = str(number) if fields.get("id") is None else entries.identity(fields, "id", place)
        entries.once(identity, place)
        words = tuple(_BRACKETS.get(word, word) for word in words)
        items.append(RelationItem(identity, words, (subject, other), label))
    return _checked(items, entries)


def read_semeval2010(path: str | Path, labelled: bool = True) -> list[RelationItem]:
    """SemEval's text: ``number<tab>"sentence with <e1>…</e1> and <e2>…</e2>"``, then the relation, and a comment.

    Words end at white space and at the marks. Its entities have no types.

    Args:
        labelled: relations follow the sentences; a test file without them has sentences alone.

    Raises:
        UnifiedError: the file cannot be read, holds no sentence, or lines are wrong, a repeated number among them; the
            first ten are named.
    """
    entries, items = Entries(path), []
    for number, line, following in _blocks(path):
        match = _SENTENCE.fullmatch(line)
        sentence = _ENTITIES.fullmatch(match[2]) if match else None
        if sentence is None:
            entries.wrong(f"line {number}", 'expected number<tab>"… <e1>…</e1> … <e2>…</e2> …"')
            continue
        label = following[0] if following and labelled else None
        if labelled and not _RELATION.fullmatch(label or ""):
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
    return _checked(items, entries)


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


def _entity(fields: dict, role: str, words: int, place: str, entries: Entries) -> Entity:
    start, last = (entries.integer(fields, f"{role}_{end}", place) for end in ("start", "end"))
    if not 0 <= start <= last < words:
        entries.wrong(place, f"{role}_start {start} and {role}_end {last} are not among its {words} words")
    return Entity(start, last + 1, entries.text(fields, f"{role}_type", place))


def _checked(items: list[RelationItem], entries: Entries) -> list[RelationItem]:
    entries.check()
    if not items:
        raise UnifiedError(f"{entries.path}: holds no sentence")
    return items
