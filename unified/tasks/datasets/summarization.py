"""Data sets of summaries, with UniLM's settings.

CNN/DailyMail, Gigaword, XSum, Reuters headlines, SciTLDR and the subjects of e-mails (AESLC).
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import Problems
from unified.runtime.parallel import available_cores, ordered_map
from unified.runtime.progress import Progress
from unified.tasks.datasets.files import split_files
from unified.tasks.datasets.summaries.inputs import Inputs
from unified.tasks.datasets.summaries.oracles import DEFAULT_ORACLE
from unified.tasks.datasets.summaries.pairs import PairConverter
from unified.tasks.datasets.texts import NO_TRIGRAM_TWICE, PARTS, source_item
from unified.tasks.writing import TokenBudget, WritingItem, WritingTask, WritingTraining
from unified.tasks.writing_scores import scored_texts

_PARTS = {
    "train": (("train.jsonl",),),
    "valid": (("valid.jsonl",), ("validation.jsonl",), ("val.jsonl",), ("dev.jsonl",)),
    "test": (("test.jsonl",),),
}

#: Mark between the sentences of a summary.
_SEPARATOR = "|"


def read_summaries(
    folder: Path,
    budget: TokenBudget,
    data_set: str,
    oracle: str | None = None,
    subset: int | None = None,
) -> dict[str, list[WritingItem]]:
    """Splits of a folder: ``train.jsonl``, ``valid.jsonl`` (``validation``, ``val`` or ``dev``), ``test.jsonl``.

    Pairs with an empty side, of which the large data sets have a few, are left out and counted in the log.

    Args:
        data_set: whose rows they are, see :data:`unified.tasks.datasets.summaries.formats.FORMATS`.
        oracle: how sentences of sources are chosen for the extractive loss, see
            :data:`unified.tasks.datasets.summaries.oracles.ORACLES`; None where it is not learned.
        subset: train on so many pairs, always the same ones, drawn at random; None for all.
    """
    files = split_files(folder, _PARTS)
    splits = {split: _summaries(path, data_set, oracle) for split, (path,) in files.items()}
    if subset is not None and subset < len(splits["train"]):
        splits["train"] = random.Random(1).sample(splits["train"], subset)
    return splits


def _summaries(path: Path, data_set: str, oracle: str | None) -> list[WritingItem]:
    converter = PairConverter(Inputs(data_set, (str(path),)), _SEPARATOR, oracle, skip_empty=True)
    items: list[WritingItem] = []
    problems, empty = Problems(), 0
    for done in ordered_map(converter, converter.inputs.chunks(), available_cores()):
        problems.extend(done.problems)
        empty += done.counts.empty
        items += [_summary(json.loads(line), str(len(items) + i)) for i, line in enumerate(done.lines, 1)]
    problems.check()
    if empty:
        Progress.say(f"{path}: {counted(empty, 'pair')} left out, a side is empty")
    return items


def _summary(row: dict[str, Any], name: str) -> WritingItem:
    references, sentences, oracle = (
        tuple(row[key]) if key in row else None for key in ("references", "sentences", "oracle")
    )
    return WritingItem(name, row["source"], row["target"], references, sentences=sentences, oracle=oracle)


_PAPER = "Dong et al. 2019"
_GIGAWORD = WritingTraining(
    epochs=10,
    batch_size=128,
    lr=3e-5,
    max_length=192,
    max_source=125,
    max_target=64,
    objective="target_cloze(mask_probability=0.7,max_predictions=48)",
)
#: Short summaries of data sets for which nobody has published settings of this method: Gigaword's rate and epochs.
_SHORT = WritingTraining(epochs=10, batch_size=32, lr=3e-5, max_length=384, max_source=317, max_target=64)


def _task(name: str, training: WritingTraining, max_length: int, exponent: float, **more: Any) -> WritingTask:
    decoding = {**NO_TRIGRAM_TWICE, "max_length": max_length, "lenpen": exponent}
    read = partial(read_summaries, data_set=name)
    usual: dict[str, Any] = {
        "read": read,
        "item": source_item,
        "parts": PARTS,
        "scored": scored_texts,
        "may_repeat": (".",),
    }
    return WritingTask(
        name=name, **(usual | more),
        training=training, decoding=decoding,
    )  # fmt: skip


TASKS = (
    _task(
        "cnn_dailymail",
        WritingTraining(
            epochs=30,
            batch_size=32,
            lr=3e-5,
            max_length=768,
            max_source=640,
            max_target=125,
            objective="target_cloze(mask_probability=0.7,extractive=True)",
        ),
        125,
        1.0,
        read=partial(read_summaries, data_set="cnn_dailymail", oracle=DEFAULT_ORACLE),
        scored=partial(scored_texts, separator=_SEPARATOR, post_processing="cnndm"),
        may_repeat=(".", _SEPARATOR),
        separator=_SEPARATOR,
        published={"test": {"UniLM large": {"rouge1": 43.47, "rouge2": 20.30, "rougeL": 40.63}}},
        source=f"{_PAPER}, section 3.1, and the released code",
    ),
    _task(
        "gigaword",
        _GIGAWORD,
        32,
        0.6,
        scored=partial(scored_texts, post_processing="gigaword"),
        published={"test": {"UniLM large": {"rouge1": 38.90, "rouge2": 20.05, "rougeL": 36.00}}},
        source="the released code of UniLM",
    ),
    _task(
        "gigaword_10k",
        replace(_GIGAWORD, lr=1e-5, objective="target_cloze(mask_probability=0.7,max_predictions=64)"),
        32,
        0.0,
        read=partial(read_summaries, data_set="gigaword", subset=10_000),
        scored=partial(scored_texts, post_processing="gigaword"),
        published={"test": {"UniLM large": {"rouge1": 34.21, "rouge2": 15.28, "rougeL": 31.54}}},
        source="the released code of UniLM",
    ),
    _task(
        "xsum",
        WritingTraining(epochs=10, batch_size=64, lr=7e-5, max_length=512, max_source=462, max_target=47),
        47,
        0.0,
        scored=partial(scored_texts, post_processing="xsum"),
        source="s2s-ft, later code of UniLM's authors",
    ),
    _task("reuters", _SHORT, 32, 0.6),
    _task("scitldr", _SHORT, 64, 0.6),
    _task("aeslc", _SHORT, 32, 0.6),
)
