"""Answering CoQA's questions in free words, with UniLM's settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError, require_fields
from unified.files.ids import item_id
from unified.runtime.progress import Progress
from unified.tasks.datasets.conversation import MAX_HISTORY, answer_pairs, answer_source, unusable
from unified.tasks.datasets.coqa import CoqaTurn, read_coqa_file
from unified.tasks.datasets.files import matching_files, read_together
from unified.tasks.heads.items import are_texts
from unified.tasks.metrics.official_answers import coqa_files
from unified.tasks.windows import Words
from unified.tasks.writing import TokenBudget, WritingItem, WritingTask, WritingTraining
from unified.tasks.writing_scores import score_answers


def read_coqa_answers(folder: Path, budget: TokenBudget) -> dict[str, list[WritingItem]]:
    """Splits of a folder with ``coqa-train-v1.0.json`` and ``coqa-dev-v1.0.json``."""
    return {split: _answers(split, folder, budget) for split in ("train", "valid")}


def _answers(split: str, folder: Path, budget: TokenBudget) -> list[WritingItem]:
    part = {"train": "train", "valid": "dev"}[split]
    paths = matching_files(folder, f"coqa-{part}*.json*")
    turns = read_together(paths, read_coqa_file, lambda turn: (f"{turn.story} {turn.number}",))
    for reason, count in Counter(filter(None, map(unusable, turns))).items():
        Progress.say(f"{split}: {count:,} turns are left out, {reason}")
    pairs = list(answer_pairs(turns, budget.counter, min(MAX_HISTORY, budget.tokens // 2), budget.tokens))
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


def answer_item(fields: dict[str, Any], number: int, budget: TokenBudget) -> WritingItem:
    """Of a passage, ``context``, a ``question``, and ``history``, the turns before it as pairs of texts.

    What the source has no room for is counted.

    Raises:
        UnifiedError: says which field is wrong.
    """
    require_fields(fields, "context", "question")
    context, question, history = fields["context"], fields["question"], fields.get("history", [])
    if not all(isinstance(text, str) and text.strip() for text in (context, question)):
        raise UnifiedError("'context' and 'question' must be texts that are not empty")
    if not isinstance(history, list) or not all(are_texts(turn) and len(turn) == 2 for turn in history):
        raise UnifiedError("'history' must be a list of pairs, [question, answer]")
    words, turns = Words.of(context, budget.counter), [tuple(turn) for turn in history]
    source = answer_source(words, turns, question, min(MAX_HISTORY, budget.tokens // 2), budget.tokens, budget.counter)
    return WritingItem(item_id(fields, number), source.parts(context), unread=source.unread or None)


_PAPER = "Dong et al. 2019"


def _coqa_files(items: Sequence[WritingItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return coqa_files([{"id": one["id"], "answer": one["text"]} for one in predictions])


TASKS = (
    WritingTask(
        name="coqa_free",
        read=read_coqa_answers,
        item=answer_item,
        score=score_answers,
        training=WritingTraining(
            epochs=10,
            batch_size=32,
            lr=2e-5,
            max_length=512,
            max_source=470,
            max_target=39,
            objective="target_cloze(mask_probability=0.5)",
        ),
        decoding={"beam": 3, "max_length": 39},
        published={"valid": {"UniLM large, generative": {"f1": 82.5}}},
        source=f"{_PAPER}, section 3.2.2",
        official=_coqa_files,
        measures=("f1", "em"),
    ),
)
