"""SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018): answering its questions, and generating them from answers.

Questions are generated from SQuAD 1.1 with UniLM's settings [UniLM, sec. 3.3].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError, WrongField, require_fields
from unified.files.ids import item_id
from unified.files.text_files import numbered_lines
from unified.runtime.progress import Progress
from unified.tasks.datasets.files import matching_files, read_together, split_questions
from unified.tasks.datasets.question_generation import (
    divide,
    find_answer,
    question_pairs,
    question_source,
    sentence_source,
)
from unified.tasks.datasets.squad_json import SquadParagraph, misaligned_reasons, read_squad_file
from unified.tasks.grids import SPANBERT_GRID
from unified.tasks.heads.items import nonempty_text
from unified.tasks.heads.questions import UNASKED, Answer, QuestionItem
from unified.tasks.metrics.question_generation import penn_treebank
from unified.tasks.settings import Task, Training
from unified.tasks.windows import Words
from unified.tasks.writing import TokenBudget, WritingItem, WritingTask, WritingTraining
from unified.tasks.writing_scores import scored_questions
from unified.tokenization import parts_of, single_spaced


def read_squad(folder: Path, version: str) -> dict[str, list[QuestionItem]]:
    """Splits of a folder with ``train-v1.1.json`` and ``dev-v1.1.json``, or parts of them, for the version ``1.1``.

    Files may have more in their names behind the version, and be compressed; a split is all of its files, of which no
    two may have a question in common.
    """

    def items(path: Path) -> list[QuestionItem]:
        return squad_items(read_squad_file(path))

    return split_questions(folder, {"train": f"train-v{version}*.json*", "valid": f"dev-v{version}*.json*"}, items)


def read_squad_answers(folder: Path) -> dict[str, list[QuestionItem]]:
    """SQuAD 1.1 with :data:`UNASKED` in the place of every question: passages with the answers that one may ask for.

    The answers to all questions about a passage are learnt, an item each.
    """
    splits = read_squad(folder, version="1.1")
    return {name: [replace(item, question=UNASKED) for item in items] for name, items in splits.items()}


def squad_items(paragraphs: Iterable[SquadParagraph]) -> list[QuestionItem]:
    """Items of SQuAD's paragraphs; answers that do not stand where the file says are kept, to be counted."""
    return [
        QuestionItem(
            question.id,
            question.text,
            paragraph.context,
            (
                *(Answer(answer.text, answer.start) for answer in question.answers),
                *(Answer(answer.text, answer.start) for answer in question.misaligned),
            ),
            impossible=True if question.is_impossible else None,
        )
        for paragraph in paragraphs
        for question in paragraph.questions
    ]


def read_squad_questions(
    folder: Path, budget: TokenBudget, split: str, sentences: bool
) -> dict[str, list[WritingItem]]:
    """Splits of SQuAD 1.1 for generating questions, from ``train-v1.1*.json`` and ``dev-v1.1*.json``.

    Args:
        split: see :func:`unified.tasks.datasets.question_generation.divide`; but for "paper" the folder also has
            ``doclist-test.txt``, Du et al.'s titles.
        sentences: see :func:`unified.tasks.datasets.question_generation.question_pairs`.
    """
    train, dev = (_paragraphs(folder, f"{name}-v1.1*.json*") for name in ("train", "dev"))
    held_out = frozenset() if split == "paper" else _titles(folder / "doclist-test.txt")
    parts = divide(train, dev, split, held_out)
    return {name: _questions(name, own, budget, sentences) for name, own in parts.items()}


def _paragraphs(folder: Path, pattern: str) -> list[SquadParagraph]:
    paths = matching_files(folder, pattern)
    return read_together(paths, read_squad_file, lambda paragraph: (question.id for question in paragraph.questions))


def _titles(path: Path) -> frozenset[str]:
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file; it lists the articles of Du et al.'s test split (xinyadu/nqg)")
    return frozenset(title for _, line in numbered_lines(path) for title in line.split())


def _questions(
    name: str, paragraphs: Sequence[SquadParagraph], budget: TokenBudget, sentences: bool
) -> list[WritingItem]:
    for reason, count in misaligned_reasons(paragraphs).items():
        Progress.say(f"{name}: {counted(count, 'answer')} left out, {reason}")
    pairs = question_pairs(paragraphs, budget.counter, budget.tokens, sentences)
    return [WritingItem(pair.id, pair.source, pair.target, reference_group=pair.sentence) for pair in pairs]


def question_item(fields: dict[str, Any], number: int, budget: TokenBudget, sentences: bool = False) -> WritingItem:
    """Reads a passage, ``context``, and the ``answer`` in it, at character ``start``, that a question is wanted for.

    Args:
        sentences: see :func:`unified.tasks.datasets.question_generation.question_pairs`.

    Raises:
        UnifiedError: a field is wrong, or the answer does not stand there.
    """
    require_fields(fields, "context", "answer")
    context, answer = (nonempty_text(fields, name) for name in ("context", "answer"))
    start = fields.get("start")
    if start is not None and (not isinstance(start, int) or isinstance(start, bool)):
        raise WrongField("start", f"must be a number of characters, got {start!r}")
    found = find_answer(context, answer, start)
    if sentences:
        source = sentence_source(context, found, budget.tokens, budget.counter)
    else:
        source = question_source(Words.of(context, budget.counter), found, budget.tokens, budget.counter)
    return WritingItem(item_id(fields, number), source)


def question_files(items: Sequence[WritingItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Files that ``unified score question-generation`` reads, one question a line.

    ``questions.txt`` holds the predictions. The others are made of the items: ``references.txt``, tokenized as Du's
    files are; ``sentences.txt``, by which Du's program pools questions; and ``sources.txt``, window and answer, by
    which UniLM's seems to pool them (its default file is called test.pa.txt).
    """
    columns = {
        "questions": [single_spaced(one["text"]) for one in predictions],  # byte-level models can write line breaks
        "references": [penn_treebank(item.target or "") for item in items],
        "sentences": [item.reference_group or item.id for item in items],
        "sources": [" ".join(parts_of(item.source)) for item in items],
    }
    return {f"{name}.txt": "".join(f"{line}\n" for line in lines) for name, lines in columns.items()}


_BERT = "Devlin et al. 2019, sections 4.2 and 4.3"
#: Heads and settings of other papers.
_UNILM = ("span(design='unilm')", Training(epochs=3, batch_size=24, lr=3e-5, max_length=384))
SPANBERT = ("span", Training(4, batch_size=32, lr=2e-5, max_length=512, select="best", validations=10))


def _xlnet(epochs: int) -> tuple[str, Training]:
    """XLNet's published settings; the script's 8,000 updates, 1,000 of them warming up, are about ``epochs``."""
    training = Training(epochs, 48, 3e-5, 512, warmup=0.125, weight_decay=0.0, layer_decay=0.75)
    return "span(design='xlnet', max_answer=64, nbest=5)", training


_ANSWERING = (
    Task(
        name="squad1.1",
        head="span",
        read=partial(read_squad, version="1.1"),
        training=Training(epochs=3, batch_size=32, lr=5e-5, max_length=384),
        published={
            "valid": {
                "BERT base": {"f1": 88.5},
                "BERT large": {"exact": 84.1, "f1": 90.9},
                "XLNet large": {"exact": 89.0, "f1": 94.5},
                "ANNA base": {"exact": 87.0, "f1": 92.8},
                "ANNA large": {"exact": 90.0, "f1": 95.4},
            }
        },
        source=f"{_BERT}; Joshi et al. 2020; Yang et al. 2019 and their script; Jun et al. 2022",
        systems={"spanbert": SPANBERT, "xlnet": _xlnet(epochs=4)},
        grids={"spanbert": SPANBERT_GRID},
    ),
    Task(
        name="squad2.0",
        head="span",
        read=partial(read_squad, version="2.0"),
        training=Training(epochs=2, batch_size=48, lr=5e-5, max_length=384),
        published={
            "valid": {
                "MiniLM, 22M": {"f1": 75.6},
                "BERT large": {"exact": 78.9, "f1": 81.8},
                "UniLM large": {"exact": 80.5, "f1": 83.4},
                "XLNet large": {"exact": 87.9, "f1": 90.6},
                "ANNA large": {"exact": 88.4, "f1": 90.8},
            }
        },
        source=f"{_BERT}; Dong et al. 2019, who name no rate (3e-5 here); Joshi et al. 2020; "
        "Yang et al. 2019 and their script; Jun et al. 2022; Wang et al. 2020 (MiniLM, 6 layers)",
        systems={"unilm": _UNILM, "spanbert": SPANBERT, "xlnet": _xlnet(epochs=3)},
        grids={"spanbert": SPANBERT_GRID},
    ),
    Task(
        name="squad-answers",
        head="span",
        read=read_squad_answers,
        training=Training(epochs=2, batch_size=32, lr=5e-5, max_length=384),
        source="Dong et al. 2019, appendix A, which gives no settings of it; these are of SQuAD 1.1, an epoch less",
    ),
)

_GENERATION = WritingTraining(epochs=10, lr=2e-5, max_length=512, max_source=456, max_target=48)
#: Rows have room for the longest answers of the training set, in a sentence of theirs and behind it.
_SENTENCES = replace(_GENERATION, max_length=192, max_source=141)


def _generate(
    split: str,
    name: str,
    beam: int,
    published: dict[str, dict[str, float]] | None = None,
    more: str = "",
    sentences: bool = False,
) -> WritingTask:
    """A task that generates questions; ``published`` are figures of the test set, and ``more`` ends its ``source``."""
    read = partial(read_squad_questions, split=split, sentences=sentences)
    source = f"Dong et al. 2019, section 3.3; rates and {split} split of the released code{more}"
    return WritingTask(
        name=name,
        read=read,
        item=partial(question_item, sentences=sentences),
        scored=scored_questions,
        training=_SENTENCES if sentences else _GENERATION,
        decoding={"beam": beam, "max_length": 48},
        published={"test": published} if published else {},
        source=source,
        official=question_files,
        measures=("bleu4", "rougeL"),
    )


TASKS = (
    *_ANSWERING,
    _generate("paper", "squad_qg", 3, {"UniLM large": {"bleu4": 22.88, "meteor": 24.94, "rougeL": 51.80}}),
    _generate(
        "du",
        "squad_qg_du",
        1,
        {"MiniLM, 22M": {"bleu4": 20.31}, "UniLM large": {"bleu4": 22.78, "meteor": 25.49, "rougeL": 51.57}},
        "; MiniLM, 6 layers, of Wang et al. 2020",
    ),
    _generate("reversed", "squad_qg_reversed", 1, {"UniLM large": {"bleu4": 24.32, "meteor": 26.10, "rougeL": 52.69}}),
    _generate("paper", "squad_qg_sentence", 3, more="; sentences as sources, as Du et al. 2017", sentences=True),
)
