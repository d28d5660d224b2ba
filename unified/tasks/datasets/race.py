"""RACE (Lai et al. 2017): questions of English exams for Chinese pupils, by level."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from unified.errors import UnifiedError
from unified.files.json_files import Entries, read_json
from unified.files.text_files import without_compression
from unified.tasks.datasets.choices import add_choice, are_strings
from unified.tasks.datasets.files import checked, read_splits
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.settings import Task, Training

_FILES = {"train": (("train",),), "valid": (("dev",),), "test": (("test",),)}
_LETTERS = "ABCDEFGH"
#: RACE's folders of exams for middle and high schools.
_LEVELS = ("middle", "high")


def read_race(folder: str | Path) -> list[ChoiceItem]:
    """RACE's folder of a split: a JSON file a passage in ``middle`` and ``high``, or in one of them.

    An item's ``id`` is the file, without the ending of a compression, and the number of the question, such as
    ``high/1020.txt-0``, and its ``subset`` the level. A question or an option may be empty, as a few are.

    Raises:
        UnifiedError: there is no such folder, it holds no question, or files are wrong, or there twice, plain and
            compressed; the first ten are named.
    """
    entries = Entries(folder)
    items: list[ChoiceItem] = []
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
            entries.unreadable(name, path, error)
            continue
        level = path.parent.name if path.parent.name in _LEVELS else None
        _add_race(items, entries, name, passage, level)
    return checked(items, entries, "question")


def _add_race(items: list[ChoiceItem], entries: Entries, name: str, passage: object, level: str | None) -> None:
    fields = passage if isinstance(passage, dict) else {}
    questions, options, answers = (fields.get(key) for key in ("questions", "options", "answers"))
    article = entries.text(fields, "article", name)
    lists = [one for one in (questions, options, answers) if isinstance(one, list)]
    if len(lists) != 3 or len(set(map(len, lists))) != 1 or not are_strings(questions):
        entries.wrong(name, "expected as many 'questions' as 'options' and 'answers'")
        return
    if not article:
        return
    key = without_compression(name)
    for i, (question, choices, answer) in enumerate(zip(*lists, strict=True)):
        location, label = f"{name}, question {i + 1}", None
        if not are_strings(choices):
            entries.wrong(location, "its 'options' are no list of texts")
            continue
        letters = list(_LETTERS[: len(choices)])
        if answer in letters:
            label = str(letters.index(answer))
        elif len(letters) > 1:
            entries.wrong(location, f"the answer {answer!r} is the letter of no option, A to {letters[-1]}")
        add_choice(items, entries, location, f"{key}-{i}", article, choices, label, question, empty=True, subset=level)


def _race_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise UnifiedError(f"{folder}: no such folder; RACE has one a split, such as RACE/train")
    found = [path for path in folder.rglob("*") if without_compression(path.name).endswith((".txt", ".json"))]
    # Files are numbers, and middle stands before high.
    return iter(sorted(found, key=lambda path: (path.parent.name != "middle", len(path.name), path.name)))


_XLNET_FIGURES = {"accuracy": 81.75, "accuracy_middle": 85.45}


#: XLNet's settings, which DREAM takes over.
XLNET_TRAINING = Training(epochs=4, batch_size=32, lr=2e-5, max_length=512, weight_decay=0.0)

TASKS = (
    Task(
        name="race",
        head="choice",
        read=partial(read_splits, _FILES, read_race),
        training=XLNET_TRAINING,
        published={"test": {"BERT base": {"accuracy": 64.3}, "XLNet large": _XLNET_FIGURES}},
        source="Yang et al. 2019 and its published script (12,000 updates)",
    ),
)
