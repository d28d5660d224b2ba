"""Data sets of summaries, questions and conversations as items of writing, and what users give for such items."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unified.errors import Problems, UnifiedError, require_fields
from unified.files.ids import item_id
from unified.runtime.parallel import available_cores, ordered_map
from unified.runtime.progress import Progress
from unified.tasks.datasets.conversation import MAX_HISTORY, answer_pairs, answer_source, unusable
from unified.tasks.datasets.coqa import CoqaTurn, read_coqa_file
from unified.tasks.datasets.formats.files import matching_files, read_together, split_files
from unified.tasks.datasets.question_generation import divide, find_answer, question_pairs, question_source
from unified.tasks.datasets.squad import SquadParagraph, misaligned_reasons, read_squad_file
from unified.tasks.datasets.summaries.inputs import Inputs
from unified.tasks.datasets.summaries.pairs import PairConverter
from unified.tasks.heads.items import are_texts, read_items
from unified.tasks.metrics.question_generation import penn_treebank
from unified.tasks.windows import Words
from unified.tasks.writing import Room, WritingItem
from unified.tokenization import parts_of

_PARTS = {
    "train": (("train.jsonl",),),
    "valid": (("valid.jsonl",), ("validation.jsonl",), ("val.jsonl",), ("dev.jsonl",)),
    "test": (("test.jsonl",),),
}


def read_texts(folder: Path, room: Room) -> dict[str, list[WritingItem]]:
    """Splits of a folder with ``train.jsonl``, ``valid.jsonl`` and, if it is there, ``test.jsonl``, in our own form."""
    files = split_files(folder, {split: ((f"{split}.jsonl",),) for split in _PARTS})
    return {split: read_items(path, text_of) for split, (path,) in files.items()}


def text_of(fields: dict, number: int) -> WritingItem:
    """Of ``source`` and ``target``, and where they are there ``references``, ``group`` and ``id``.

    Raises:
        UnifiedError: says which field is wrong.
    """
    require_fields(fields, "source", "target")
    target, references, group = (fields.get(name) for name in ("target", "references", "group"))
    if not isinstance(target, str) or not target.strip():
        raise UnifiedError("'target' must be a text that is not empty")
    if references is not None and not are_texts(references):
        raise UnifiedError("'references' must be a list of texts that are not empty")
    if group is not None and not isinstance(group, str):
        raise UnifiedError(f"'group' must be a text, got {group!r}")
    pooled = tuple(references) if references else None
    return WritingItem(item_id(fields, number), _source(fields), target, pooled, group)


def source_item(fields: dict, number: int, room: Room) -> WritingItem:
    """Of ``source``, a text or a list of parts, from which something is to be written.

    Raises:
        UnifiedError: there is none.
    """
    return WritingItem(item_id(fields, number), _source(fields))


def read_summaries(
    folder: Path, room: Room, data_set: str, separator: str = "|", oracle: str | None = None, subset: int | None = None
) -> dict[str, list[WritingItem]]:
    """Splits of a folder: ``train.jsonl``, ``valid.jsonl`` (``validation.jsonl``, ``dev.jsonl``), ``test.jsonl``.

    Pairs with an empty side, of which the large data sets have a few, are left out and counted in the log.

    Args:
        data_set: whose rows they are, see :data:`unified.tasks.datasets.summaries.formats.FORMATS`.
        separator: between the sentences of a summary.
        oracle: how sentences of sources are chosen for the extractive loss, see
            :data:`unified.tasks.datasets.summaries.oracles.ORACLES`; None where it is not learned.
        subset: train on so many pairs, always the same ones, drawn at random; None for all.
    """
    files = split_files(folder, _PARTS)
    splits = {split: _summaries(path, data_set, separator, oracle) for split, (path,) in files.items()}
    if subset is not None and subset < len(splits["train"]):
        splits["train"] = random.Random(1).sample(splits["train"], subset)
    return splits


def _summaries(path: Path, data_set: str, separator: str, oracle: str | None) -> list[WritingItem]:
    converter = PairConverter(Inputs(data_set, (str(path),)), separator, oracle, skip_empty=True)
    items, problems, empty = [], Problems(), 0
    for done in ordered_map(converter, converter.inputs.chunks(), available_cores()):
        problems.extend(done.problems)
        empty += done.counts.empty
        items += [_summary(json.loads(line), str(len(items) + i)) for i, line in enumerate(done.lines, 1)]
    problems.check()
    if empty:
        Progress.say(f"{path}: {empty:,} pairs with an empty side are left out")
    return items


def _summary(row: dict, name: str) -> WritingItem:
    lists = {key: tuple(row[key]) if key in row else None for key in ("references", "sentences", "oracle")}
    return WritingItem(name, row["source"], row["target"], **lists)


def read_squad_questions(folder: Path, room: Room, split: str) -> dict[str, list[WritingItem]]:
    """Splits of SQuAD 1.1 for generating questions, from ``train-v1.1*.json`` and ``dev-v1.1*.json``.

    Args:
        split: see :func:`unified.tasks.datasets.question_generation.divide`; but for "paper" the folder also has
            ``doclist-test.txt``, Du et al.'s titles.
    """
    train, dev = (_paragraphs(folder, f"{part}-v1.1*.json*") for part in ("train", "dev"))
    held_out = frozenset() if split == "paper" else _titles(folder / "doclist-test.txt")
    return {name: _questions(name, part, room) for name, part in divide(train, dev, split, held_out).items()}


def _paragraphs(folder: Path, pattern: str) -> list[SquadParagraph]:
    paths = matching_files(folder, pattern)
    return read_together(paths, read_squad_file, lambda paragraph: (question.id for question in paragraph.questions))


def _titles(path: Path) -> frozenset[str]:
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file; it lists the articles of Du et al.'s test part (xinyadu/nqg)")
    return frozenset(path.read_text(encoding="utf-8").split())


def _questions(name: str, paragraphs: Sequence[SquadParagraph], room: Room) -> list[WritingItem]:
    for reason, count in misaligned_reasons(paragraphs).items():
        Progress.say(f"{name}: {count:,} answers are left out, {reason}")
    pairs = question_pairs(paragraphs, room.counter, room.tokens)
    return [WritingItem(pair.id, pair.source, pair.target, group=pair.sentence) for pair in pairs]


def question_item(fields: dict, number: int, room: Room) -> WritingItem:
    """Of a passage, ``context``, and the ``answer`` in it that a question is wanted for, at character ``start``.

    Raises:
        UnifiedError: a field is wrong, or the answer does not stand there.
    """
    require_fields(fields, "context", "answer")
    context, answer, start = (fields.get(name) for name in ("context", "answer", "start"))
    if not all(isinstance(text, str) and text.strip() for text in (context, answer)):
        raise UnifiedError("'context' and 'answer' must be texts that are not empty")
    if start is not None and (not isinstance(start, int) or isinstance(start, bool)):
        raise UnifiedError(f"'start' must be a number of characters, got {start!r}")
    found = find_answer(context, answer, start)
    source = question_source(Words.of(context, room.counter), found, room.tokens, room.counter)
    return WritingItem(item_id(fields, number), source)


def question_files(items: Sequence[WritingItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What ``unified score question-generation`` reads, one a line: ``questions.txt``, and of the items
    ``references.txt``, tokenized as Du's files are, ``sentences.txt``, by which Du's program pools questions, and
    ``sources.txt``, window and answer, by which UniLM's seems to (its default file is called test.pa.txt).
    """
    columns = {
        "questions": [one["text"] for one in predictions],
        "references": [penn_treebank(item.target or "") for item in items],
        "sentences": [item.group or item.id for item in items],
        "sources": [" ".join(parts_of(item.source)) for item in items],
    }
    return {f"{name}.txt": "".join(f"{line}\n" for line in lines) for name, lines in columns.items()}


def read_coqa_answers(folder: Path, room: Room) -> dict[str, list[WritingItem]]:
    """Splits of a folder with ``coqa-train-v1.0.json`` and ``coqa-dev-v1.0.json``."""
    return {split: _answers(split, folder, room) for split in ("train", "valid")}


def _answers(split: str, folder: Path, room: Room) -> list[WritingItem]:
    part = {"train": "train", "valid": "dev"}[split]
    paths = matching_files(folder, f"coqa-{part}*.json*")
    turns = read_together(paths, read_coqa_file, lambda turn: (f"{turn.story} {turn.number}",))
    for reason, count in Counter(filter(None, map(unusable, turns))).items():
        Progress.say(f"{split}: {count:,} turns are left out, {reason}")
    pairs = list(answer_pairs(turns, room.counter, min(MAX_HISTORY, room.tokens // 2), room.tokens))
    missed = sum(pair.rationale_shown is False for pair in pairs)
    Progress.say(f"{split}: the chunk lacks the rationale of {missed:,} of {len(pairs):,} answers")
    right: Mapping[tuple[str, int], CoqaTurn] = {(turn.story, turn.number): turn for turn in turns}
    return [
        WritingItem(
            f"{pair.story} {pair.number}",
            pair.source,
            pair.target,
            tuple(answer.text for answer in right[pair.story, pair.number].answers),
            unread=pair.unread or None,
        )
        for pair in pairs
    ]


def answer_item(fields: dict, number: int, room: Room) -> WritingItem:
    """Of a passage, ``context``, a ``question``, and ``history``, the turns before it as pairs of texts.

    What the source has no room for is counted.

    Raises:
        UnifiedError: says which field is wrong.
    """
    require_fields(fields, "context", "question")
    context, question, history = fields.get("context"), fields.get("question"), fields.get("history", [])
    if not all(isinstance(text, str) and text.strip() for text in (context, question)):
        raise UnifiedError("'context' and 'question' must be texts that are not empty")
    if not isinstance(history, list) or not all(are_texts(turn) and len(turn) == 2 for turn in history):
        raise UnifiedError("'history' must be a list of pairs, [question, answer]")
    words, turns = Words.of(context, room.counter), [tuple(turn) for turn in history]
    source = answer_source(words, turns, question, min(MAX_HISTORY, room.tokens // 2), room.tokens, room.counter)
    return WritingItem(item_id(fields, number), source.parts(context), unread=source.unread or None)


def _source(fields: dict) -> str | tuple[str, ...]:
    require_fields(fields, "source")
    source = fields["source"]
    if are_texts(source) and source:
        return tuple(source)
    if not isinstance(source, str) or not source.strip():
        raise UnifiedError("'source' must be a text that is not empty, or a list of such texts")
    return source
