"""Generating the questions of SQuAD 1.1 from passages and answers, with UniLM's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError, require_fields
from unified.files.ids import item_id
from unified.runtime.progress import Progress
from unified.tasks.datasets.files import matching_files, read_together
from unified.tasks.datasets.question_generation import divide, find_answer, question_pairs, question_source
from unified.tasks.datasets.squad import SquadParagraph, misaligned_reasons, read_squad_file
from unified.tasks.metrics.question_generation import penn_treebank
from unified.tasks.windows import Words
from unified.tasks.writing import TokenBudget, WritingItem, WritingTask, WritingTraining
from unified.tasks.writing_scores import score_questions
from unified.tokenization import parts_of


def read_squad_questions(folder: Path, budget: TokenBudget, split: str) -> dict[str, list[WritingItem]]:
    """Splits of SQuAD 1.1 for generating questions, from ``train-v1.1*.json`` and ``dev-v1.1*.json``.

    Args:
        split: see :func:`unified.tasks.datasets.question_generation.divide`; but for "paper" the folder also has
            ``doclist-test.txt``, Du et al.'s titles.
    """
    train, dev = (_paragraphs(folder, f"{part}-v1.1*.json*") for part in ("train", "dev"))
    held_out = frozenset() if split == "paper" else _titles(folder / "doclist-test.txt")
    return {name: _questions(name, part, budget) for name, part in divide(train, dev, split, held_out).items()}


def _paragraphs(folder: Path, pattern: str) -> list[SquadParagraph]:
    paths = matching_files(folder, pattern)
    return read_together(paths, read_squad_file, lambda paragraph: (question.id for question in paragraph.questions))


def _titles(path: Path) -> frozenset[str]:
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file; it lists the articles of Du et al.'s test part (xinyadu/nqg)")
    return frozenset(path.read_text(encoding="utf-8").split())


def _questions(name: str, paragraphs: Sequence[SquadParagraph], budget: TokenBudget) -> list[WritingItem]:
    for reason, count in misaligned_reasons(paragraphs).items():
        Progress.say(f"{name}: {count:,} answers are left out, {reason}")
    pairs = question_pairs(paragraphs, budget.counter, budget.tokens)
    return [WritingItem(pair.id, pair.source, pair.target, group=pair.sentence) for pair in pairs]


def question_item(fields: dict[str, Any], number: int, budget: TokenBudget) -> WritingItem:
    """Of a passage, ``context``, and the ``answer`` in it that a question is wanted for, at character ``start``.

    Raises:
        UnifiedError: a field is wrong, or the answer does not stand there.
    """
    require_fields(fields, "context", "answer")
    context, answer, start = fields["context"], fields["answer"], fields.get("start")
    if not all(isinstance(text, str) and text.strip() for text in (context, answer)):
        raise UnifiedError("'context' and 'answer' must be texts that are not empty")
    if start is not None and (not isinstance(start, int) or isinstance(start, bool)):
        raise UnifiedError(f"'start' must be a number of characters, got {start!r}")
    found = find_answer(context, answer, start)
    source = question_source(Words.of(context, budget.counter), found, budget.tokens, budget.counter)
    return WritingItem(item_id(fields, number), source)


def question_files(items: Sequence[WritingItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What ``unified score question-generation`` reads, one a line.

    These are ``questions.txt``, and of the items
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


_PAPER = "Dong et al. 2019"
_QUESTIONS = WritingTraining(epochs=10, lr=2e-5, max_length=512, max_source=456, max_target=48)


def _task(split: str, name: str, beam: int, published: dict[str, dict[str, float]], more: str = "") -> WritingTask:
    """``published`` is of the test set; ``more`` is said of its sources."""
    read, decoding = partial(read_squad_questions, split=split), {"beam": beam, "max_length": 48}
    source = f"{_PAPER}, section 3.3; rates and {split} split of the released code{more}"
    return WritingTask(
        name=name, read=read, item=question_item, score=score_questions, training=_QUESTIONS, decoding=decoding,
        published={"test": published}, source=source, official=question_files, measures=("bleu4", "rougeL"),
    )  # fmt: skip


TASKS = (
    _task("paper", "squad_qg", 3, {"UniLM large": {"bleu4": 22.88, "meteor": 24.94, "rougeL": 51.80}}),
    _task(
        "du",
        "squad_qg_du",
        1,
        {"MiniLM, 22M": {"bleu4": 20.31}, "UniLM large": {"bleu4": 22.78, "meteor": 25.49, "rougeL": 51.57}},
        "; MiniLM, 6 layers, of Wang et al. 2020",
    ),
    _task("reversed", "squad_qg_reversed", 1, {"UniLM large": {"bleu4": 24.32, "meteor": 26.10, "rougeL": 52.69}}),
)
