"""MRQA 2019 (Fisch et al. 2019): questions about contexts, with answers and the spans where they were detected."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.files.json_files import Entries
from unified.files.rows import read_rows
from unified.files.shapes import is_integer_pair
from unified.tasks.datasets.files import checked, split_files, split_questions
from unified.tasks.datasets.squad import SPANBERT
from unified.tasks.grids import SPANBERT_GRID
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.metrics.squad import normalize_answer
from unified.tasks.settings import Task
from unified.tasks.task_groups import TaskGroup


def read_mrqa_file(path: str | Path) -> list[QuestionItem]:
    """Items of a file of JSON lines, plain or compressed; a first line with ``header`` is passed over.

    Learnt is the detected answer that stands first in the context, as by SpanBERT's authors. Where nothing was
    detected nothing is learnt, which is counted. Scores compare with all answers. Contexts keep the marks of the
    shared task such as ``[PAR]``.

    Raises:
        UnifiedError: the file cannot be read, holds no question, or has wrong lines; the first ten are named.
    """
    entries, items, ids = Entries(path), [], set()
    for row in read_rows(path):
        location = row.location
        try:
            fields = row.fields
        except UnifiedError as problem:
            entries.wrong(location, problem)
            continue
        if row.number == 1 and "header" in fields:
            continue
        context = entries.text(fields, "context", location)
        for question in entries.objects(fields, "qas", location):
            read = _question(question, context, location, entries)
            if read.id in ids:
                entries.wrong(location, f"question id {read.id!r} was in the file before")
            ids.add(read.id)
            items.append(read)
    return checked(items, entries, "question")


def _question(fields: dict[str, Any], context: str, location: str, entries: Entries) -> QuestionItem:
    identity = entries.identity(fields, "qid", location)
    location = f"{location}, question {identity}"
    answers = fields.get("answers")
    if not isinstance(answers, list) or not answers or not all(isinstance(answer, str) for answer in answers):
        entries.wrong(location, "'answers' is not a list of texts")
        answers = []
    found = entries.objects(fields, "detected_answers", location, optional=True)
    spans = [span for answer in found for span in _detected(answer, context, location, entries)]
    learnt = tuple(map(Answer, answers[:1]))
    if spans:
        text, start, end = min(spans, key=lambda span: span[1:])
        shown = context[start:end]
        # Capitals and spaces may differ from the answer's; of anything else the span is wrong, which is counted.
        learnt = (Answer(shown if normalize_answer(shown) == normalize_answer(text) else text, start),)
    question = entries.text(fields, "question", location)
    return QuestionItem(identity, question, context, learnt, references=tuple(answers))


def _detected(fields: dict[str, Any], context: str, location: str, entries: Entries) -> list[tuple[str, int, int]]:
    """Text, first character and the one behind the last wherever an answer was detected.

    In the file a span's second number is that of its last character.
    """
    text, spans = entries.text(fields, "text", location), fields.get("char_spans")
    if not isinstance(spans, list) or not spans or not all(map(is_integer_pair, spans)):
        entries.wrong(location, "a detected answer has no 'char_spans', pairs of its first and last characters")
        return []
    outside = next((span for span in spans if not 0 <= span[0] <= span[1] < len(context)), None)
    if outside is not None:
        entries.wrong(location, f"a detected answer lies outside the context: {outside}")
        return []
    return [(text, start, last + 1) for start, last in spans]


def read_mrqa(folder: Path, names: Sequence[str]) -> dict[str, list[QuestionItem]]:
    """Splits of one data set of MRQA, from ``train/NAME.jsonl`` and ``dev/NAME.jsonl``, plain or compressed.

    MRQA has no public test set. Where the folder has no ``test/NAME.jsonl`` either, half of the development set is one,
    see :func:`halves`, as SpanBERT's authors have it.

    Args:
        names: that the files may have, the first one that is there.

    Raises:
        UnifiedError: a file is missing or wrong, or the development set cannot be divided.
    """
    folders = {"train": "train", "valid": "dev", "test": "test"}
    files = split_files(
        folder, {split: tuple((f"{own}/{name}.jsonl",) for name in names) for split, own in folders.items()}
    )
    splits = {split: read_mrqa_file(path) for split, (path,) in files.items()}
    if "test" in splits:
        return splits
    valid, test = _divided(splits["valid"], files["valid"][0])
    return splits | {"valid": valid, "test": test}


def read_mrqa_together(folder: Path) -> dict[str, list[QuestionItem]]:
    """Splits of all data sets of MRQA in a folder, see :func:`read_mrqa`; each is a subset, called like its file."""
    splits = split_questions(folder, {"train": "train/*.jsonl*", "valid": "dev/*.jsonl*"}, _mrqa_subset)
    if (folder / "test").is_dir():
        return splits | split_questions(folder, {"test": "test/*.jsonl*"}, _mrqa_subset)
    subsets: dict[str | None, list[QuestionItem]] = {}
    for item in splits["valid"]:
        subsets.setdefault(item.subset, []).append(item)
    valid, test = zip(*map(halves, subsets.values()), strict=True)
    return splits | {"valid": list(chain(*valid)), "test": list(chain(*test))}


def halves(items: Sequence[QuestionItem]) -> tuple[list[QuestionItem], list[QuestionItem]]:
    """Two halves of a development set, always the same ones, in which each passage has all of its questions.

    SpanBERT's authors have not published theirs. Here passages are put in the order of the SHA-256 of the id of one of
    their questions, the alphabetically first; the first half of them, the larger one, is for validation.
    """
    named: dict[str, str] = {}
    for item in items:
        named[item.context] = min(item.id, named.get(item.context, item.id))
    order = sorted(named, key=lambda context: hashlib.sha256(named[context].encode()).hexdigest())
    first = set(order[: (len(order) + 1) // 2])
    return [item for item in items if item.context in first], [item for item in items if item.context not in first]


def _divided(items: Sequence[QuestionItem], path: Path) -> tuple[list[QuestionItem], list[QuestionItem]]:
    """:func:`halves` of the development set in a file.

    Raises:
        UnifiedError: it has a single passage, so that one half would be empty.
    """
    valid, test = halves(items)
    if not test:
        raise UnifiedError(
            f"{path}: has a single passage, but half of the development set is the test set where the folder has none; "
            f"add passages, or a file in {path.parent.parent / 'test'}"
        )
    return valid, test


def _mrqa_subset(path: Path) -> list[QuestionItem]:
    name = path.name.partition(".")[0]
    return [replace(item, subset=name) for item in read_mrqa_file(path)]


#: Data sets of MRQA: the task of each, and what its files may be called; the average is without SQuAD, which SpanBERT's
#: authors report by itself.
_MRQA = {
    "NewsQA": ("newsqa", ("NewsQA",)),
    "TriviaQA": ("triviaqa", ("TriviaQA", "TriviaQA-web")),
    "SearchQA": ("searchqa", ("SearchQA",)),
    "HotpotQA": ("hotpotqa", ("HotpotQA",)),
    "NaturalQuestions": ("naturalquestions", ("NaturalQuestions", "NaturalQuestionsShort")),
    "SQuAD": ("mrqa_squad", ("SQuAD",)),
}
_AVERAGED = tuple(name for name in _MRQA if name != "SQuAD")
#: F1 of those, and their average [SpanBERT, table 2], of large models.
_MRQA_FIGURES = {
    "BERT, Google's": (68.8, 77.5, 81.7, 78.3, 79.9, 77.3),
    "BERT, SpanBERT's authors'": (71.0, 79.0, 81.8, 80.5, 80.5, 78.6),
    "BERT, one sequence": (71.9, 80.4, 84.0, 80.3, 81.8, 79.7),
    "SpanBERT": (73.6, 83.6, 84.8, 83.0, 82.5, 81.5),
}
_MRQA_SOURCE = (
    "Joshi et al. 2020, section 4 and its published script; figures of table 2, on halves that are not public"
)


def _mrqa(name: str) -> Task:
    task, files = _MRQA[name]
    published = {}
    if name in _AVERAGED:
        column = _AVERAGED.index(name)
        published = {"test": {system: {"f1": figures[column]} for system, figures in _MRQA_FIGURES.items()}}
    reader = partial(read_mrqa, names=files)
    return Task(
        name=task,
        head="span",
        read=reader,
        training=SPANBERT[1],
        published=published,
        source=_MRQA_SOURCE,
        grid=SPANBERT_GRID,
    )


def _has_mrqa(folder: Path, name: str) -> bool:
    return any(any((folder / "train").glob(f"{file}.jsonl*")) for file in _MRQA[name][1])


TASK_GROUPS = (
    TaskGroup(
        "mrqa",
        {name: _MRQA[name][0] for name in _AVERAGED},
        _has_mrqa,
        ("f1", "exact"),
        {
            "test": {
                system: dict(zip((*(f"f1_{name}" for name in _AVERAGED), "average_f1"), figures, strict=True))
                for system, figures in _MRQA_FIGURES.items()
            }
        },
        _MRQA_SOURCE,
    ),
)

TASKS = (
    *(_mrqa(name) for name in _MRQA),
    Task(
        name="mrqa_together",
        head="span",
        read=read_mrqa_together,
        training=SPANBERT[1],
        source="settings of Joshi et al. 2020",
    ),
)
