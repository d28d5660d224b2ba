"""Questions of SQuAD, MRQA and CoQA as items."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from unified.tasks.datasets.coqa import NO_PLACE, CoqaTurn, read_coqa_file
from unified.tasks.datasets.formats.files import matching_files, read_together, split_files
from unified.tasks.datasets.formats.free_answers import most_similar_span
from unified.tasks.datasets.mrqa import MrqaQuestion, read_mrqa_file
from unified.tasks.datasets.squad import SquadParagraph, read_squad_file
from unified.tasks.heads.questions import UNASKED, Answer, QuestionItem
from unified.tasks.metrics.squad import normalize_answer

#: Answers of CoQA that are no parts of a passage.
CHOICES = ("yes", "no", "unknown")


def read_squad(folder: Path, version: str) -> dict[str, list[QuestionItem]]:
    """Splits of a folder with ``train-v1.1.json`` and ``dev-v1.1.json``, or parts of them, for the version ``1.1``.

    Files may have more in their names behind the version, and be compressed; a split is all of its files, of which no
    two may have a question in common.
    """

    def items(path: Path) -> list[QuestionItem]:
        return squad_items(read_squad_file(path))

    return _splits(folder, {"train": f"train-v{version}*.json*", "valid": f"dev-v{version}*.json*"}, items)


def read_squad_answers(folder: Path) -> dict[str, list[QuestionItem]]:
    """SQuAD 1.1 with :data:`UNASKED` in the place of every question: what of a passage might be asked for.

    The answers to all questions about a passage are learnt, an item each.
    """
    splits = read_squad(folder, version="1.1")
    return {name: [replace(item, question=UNASKED) for item in items] for name, items in splits.items()}


def read_mrqa(folder: Path, names: Sequence[str]) -> dict[str, list[QuestionItem]]:
    """Splits of one data set of MRQA, from ``train/NAME.jsonl`` and ``dev/NAME.jsonl``, plain or compressed.

    MRQA has no public test set. Where the folder has no ``test/NAME.jsonl`` either, half of the development set is one,
    see :func:`halves`, as SpanBERT's authors have it.

    Args:
        names: that the files may have, the first one that is there.
    """
    parts = {"train": "train", "valid": "dev", "test": "test"}
    files = split_files(
        folder, {split: tuple((f"{part}/{name}.jsonl",) for name in names) for split, part in parts.items()}
    )
    splits = {split: mrqa_items(read_mrqa_file(path)) for split, (path,) in files.items()}
    return splits if "test" in splits else splits | dict(zip(("valid", "test"), halves(splits["valid"]), strict=True))


def read_mrqa_together(folder: Path) -> dict[str, list[QuestionItem]]:
    """Splits of all data sets of MRQA in a folder, see :func:`read_mrqa`; each is a subset, called like its file."""
    splits = _splits(folder, {"train": "train/*.jsonl*", "valid": "dev/*.jsonl*"}, _mrqa_subset)
    if (folder / "test").is_dir():
        return splits | _splits(folder, {"test": "test/*.jsonl*"}, _mrqa_subset)
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


def _mrqa_subset(path: Path) -> list[QuestionItem]:
    name = path.name.partition(".")[0]
    return [replace(item, subset=name) for item in mrqa_items(read_mrqa_file(path))]


def read_coqa(folder: Path) -> dict[str, list[QuestionItem]]:
    """Splits of a folder with ``coqa-train-v1.0.json`` and ``coqa-dev-v1.0.json``."""

    def items(path: Path) -> list[QuestionItem]:
        return coqa_items(read_coqa_file(path))

    return _splits(folder, {"train": "coqa-train*.json*", "valid": "coqa-dev*.json*"}, items)


def squad_items(paragraphs: Iterable[SquadParagraph]) -> list[QuestionItem]:
    """Of SQuAD; answers that do not stand where the file says are kept, to be counted."""
    return [
        QuestionItem(
            question.id,
            question.text,
            paragraph.context,
            tuple(Answer(answer.text, answer.start) for answer in (*question.answers, *question.misaligned)),
            impossible=True if question.is_impossible else None,
        )
        for paragraph in paragraphs
        for question in paragraph.questions
    ]


def mrqa_items(questions: Iterable[MrqaQuestion]) -> list[QuestionItem]:
    """Of MRQA; the detected answer that stands first is learnt, all answers are scored by."""
    return [
        QuestionItem(
            question.id,
            question.text,
            question.context,
            _detected(question),
            references=question.answers,
        )
        for question in questions
    ]


def coqa_items(turns: Iterable[CoqaTurn]) -> list[QuestionItem]:
    """Of CoQA; turns without a question or an answer are left out.

    The answer is the part of the passage that is most like the main free answer, or one of :data:`CHOICES`; what was
    said before is the history.
    """
    return [_turn(turn) for turn in turns if turn.question.strip() and turn.answers[0].text.strip()]


def _splits(
    folder: Path, patterns: Mapping[str, str], items: Callable[[Path], list[QuestionItem]]
) -> dict[str, list[QuestionItem]]:
    files = {split: matching_files(folder, pattern) for split, pattern in patterns.items()}
    return {split: read_together(paths, items, lambda item: (item.id,)) for split, paths in files.items()}


def _detected(question: MrqaQuestion) -> tuple[Answer, ...]:
    if question.detected is None:
        return (Answer(question.answers[0]),)
    text, start, end = question.detected
    shown = question.context[start:end]
    # Capitals and spaces may differ from the answer's; of anything else the place is wrong, which is counted.
    return (Answer(shown if normalize_answer(shown) == normalize_answer(text) else text, start),)


def _turn(turn: CoqaTurn) -> QuestionItem:
    main, choice = turn.answers[0], normalize_answer(turn.answers[0].text)
    answers: tuple[Answer, ...] = ()
    if choice not in CHOICES:
        rationale = None if main.start == NO_PLACE else (main.start, main.end)
        span = most_similar_span(turn.passage, main.text, rationale)
        answers = (Answer(turn.passage[slice(*span)], span[0]) if span else Answer(main.text),)
    return QuestionItem(
        f"{turn.story} {turn.number}",
        turn.question,
        turn.passage,
        answers,
        choice=choice if choice in CHOICES else None,
        history=" ".join(text for said in turn.history for text in said) or None,
        references=tuple(answer.text for answer in turn.answers),
    )
