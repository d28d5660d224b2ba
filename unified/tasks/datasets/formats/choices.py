"""Multiple choice: SWAG (Zellers et al. 2018), CODAH (Chen et al. 2019), RACE (Lai et al. 2017), DREAM (Sun et al.)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from unified.errors import MissingField, UnifiedError
from unified.files.json_files import Entries, read_json
from unified.files.text_files import numbered_lines, without_compression
from unified.tasks.datasets.formats.tables import tab_rows
from unified.tasks.heads.choice import ChoiceItem

_LETTERS = "ABCDEFGH"
#: RACE's folders of exams for middle and high schools.
_LEVELS = ("middle", "high")
_CODAH_COLUMNS = 7


def read_swag(path: str | Path, labelled: bool = True) -> list[ChoiceItem]:
    """SWAG's CSV: the sentence, and the endings behind the words that begin the second one.

    Rows are numbered from 0.

    Raises:
        UnifiedError: the file cannot be read, has no rows, lacks a column, or rows are wrong; the first ten are named.
    """
    rows = csv.reader(line + "\n" for _, line in numbered_lines(path))
    header = next(rows, [])
    endings = sorted(name for name in header if re.fullmatch(r"ending\d", name))
    wanted = ["sent1", "sent2", *(["label"] if labelled else [])]
    missing = [name for name in wanted if name not in header] or (["ending1"] if len(endings) < 2 else [])
    if missing:
        raise UnifiedError(f"{path}, line 1: {MissingField(missing[0], header, 'column')}; is it a file of SWAG?")
    entries, items = Entries(path), []
    for number, cells in enumerate(rows):
        place = f"line {rows.line_num}"
        if len(cells) != len(header):
            entries.wrong(place, f"{len(cells)} columns instead of {len(header)}")
            continue
        fields = dict(zip(header, cells, strict=True))
        choices = [f"{fields['sent2']} {fields[name]}".strip() for name in endings]
        _add(items, entries, place, str(number), fields["sent1"], choices, fields["label"] if labelled else None)
    return _checked(items, entries)


def read_codah(path: str | Path, labelled: bool = True) -> list[ChoiceItem]:
    """CODAH's TSV: category, prompt, four endings, number of the right one; rows are numbered from 0.

    Raises:
        UnifiedError: as :func:`read_swag`.
    """
    entries, items = Entries(path), []
    for position, (number, cells) in enumerate(tab_rows(path)):
        place = f"line {number}"
        if len(cells) != _CODAH_COLUMNS:
            entries.wrong(place, f"{len(cells)} columns instead of {_CODAH_COLUMNS}")
            continue
        _, prompt, *choices, label = cells
        _add(items, entries, place, str(position), prompt, choices, label if labelled else None)
    return _checked(items, entries)


def read_race(folder: str | Path, labelled: bool = True) -> list[ChoiceItem]:
    """RACE's folder of a split: a JSON file a passage in ``middle`` and ``high``, or in one of them.

    An item's ``id`` is the file and the number of the question, such as ``high/1020.txt-0``, and its ``subset`` the
    level. A question or an option may be empty, as a few are.

    Raises:
        UnifiedError: there is no such folder, it holds no question, or files are wrong, or there twice, plain and
            compressed; the first ten are named.
    """
    entries, items = Entries(folder), []
    seen: dict[str, str] = {}
    for path in _race_files(Path(folder)):
        name = path.relative_to(folder).as_posix()
        first = seen.setdefault(without_compression(name), name)
        if first != name:
            entries.wrong(name, f"{first} is the same passage; keep one of the two files")
            continue
        try:
            passage = read_json(path)
        except UnifiedError as error:
            entries.wrong(name, str(error))
            continue
        level = path.parent.name if path.parent.name in _LEVELS else None
        _add_race(items, entries, name, passage, labelled, level)
    return _checked(items, entries)


def read_dream(path: str | Path, labelled: bool = True) -> list[ChoiceItem]:
    """DREAM's JSON: a list of [turns of a dialogue, questions with choices and an answer, id].

    An item's ``id`` is the dialogue's and the number of the question, such as ``5-510-0``.

    Raises:
        UnifiedError: the file cannot be read, holds no question, or entries are wrong, a repeated id among them; the
            first ten are named.
    """
    entries, items, dialogues = Entries(path), [], read_json(path)
    if not isinstance(dialogues, list):
        raise UnifiedError(f"{path}: expected a list of dialogues")
    for number, dialogue in enumerate(dialogues, 1):
        place = f"dialogue {number}"
        if not isinstance(dialogue, list) or len(dialogue) != 3 or not _are_strings(dialogue[0]):
            entries.wrong(place, "expected [turns, questions, id]")
            continue
        turns = dialogue[0]
        identity = entries.identity({"id": dialogue[2]}, "id", place)
        entries.once(identity, place)
        for i, question in enumerate(entries.objects({"questions": dialogue[1]}, "questions", place)):
            where = f"{place}, question {i + 1}"
            text, choices, answer = entries.text(question, "question", where), question.get("choice"), None
            if "choice" not in question:
                entries.wrong(where, MissingField("choice", list(question)))
                continue
            if not _are_strings(choices):
                entries.wrong(where, "no list of texts 'choice'")
                continue
            if labelled:
                answer = entries.text(question, "answer", where)
                if choices.count(answer) != 1:
                    entries.wrong(where, f"the answer {answer!r} is {choices.count(answer)} of the choices")
                    continue
            label = None if answer is None else str(choices.index(answer))
            _add(items, entries, where, f"{identity}-{i}", "\n".join(turns), choices, label, text)
    return _checked(items, entries)


def _add_race(
    items: list[ChoiceItem], entries: Entries, name: str, passage: object, labelled: bool, level: str | None
) -> None:
    fields = passage if isinstance(passage, dict) else {}
    questions, options, answers = (fields.get(key) for key in ("questions", "options", "answers"))
    if not labelled:
        answers = [None] * len(questions) if isinstance(questions, list) else None
    article = entries.text(fields, "article", name)
    lists = (questions, options, answers)
    if not all(isinstance(one, list) for one in lists) or len(set(map(len, lists))) != 1 or not _are_strings(questions):
        entries.wrong(name, "expected as many 'questions' as 'options' and 'answers'")
        return
    if not article:
        return
    for i, (question, choices, answer) in enumerate(zip(*lists, strict=True)):
        place, label = f"{name}, question {i + 1}", None
        if not _are_strings(choices):
            entries.wrong(place, "its 'options' are no list of texts")
            continue
        if answer is not None:
            label = str(_LETTERS.find(answer)) if isinstance(answer, str) and len(answer) == 1 else repr(answer)
        _add(items, entries, place, f"{name}-{i}", article, choices, label, question, empty=True, subset=level)


def _race_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise UnifiedError(f"{folder}: no such folder; RACE has one a split, such as RACE/train")
    found = [path for path in folder.rglob("*") if without_compression(path.name).endswith((".txt", ".json"))]
    # Files are numbers, and middle stands before high.
    return iter(sorted(found, key=lambda path: (path.parent.name != "middle", len(path.name), path.name)))


def _add(
    items: list[ChoiceItem],
    entries: Entries,
    place: str,
    identity: str,
    context: str,
    choices: list[str],
    label: str | None,
    question: str = "",
    empty: bool = False,
    subset: str | None = None,
) -> None:
    """Add an item, or note what is wrong with it; ``empty``: choices may be."""
    if not context.strip():
        entries.wrong(place, "the context is empty")
    elif len(choices) < 2 or not (empty or all(choice.strip() for choice in choices)):
        entries.wrong(place, "two choices or more are needed, none of them empty")
    elif label is not None and label not in map(str, range(len(choices))):
        entries.wrong(place, f"the label {label!r} is the number of no choice, 0 to {len(choices) - 1}")
    else:
        gold = None if label is None else int(label)
        items.append(ChoiceItem(identity, context.strip(), tuple(choices), question.strip() or None, gold, subset))


def _checked(items: list[ChoiceItem], entries: Entries) -> list[ChoiceItem]:
    entries.check()
    if not items:
        raise UnifiedError(f"{entries.path}: holds no question")
    return items


def _are_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
