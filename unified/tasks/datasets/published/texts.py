"""Summaries, questions and free answers, with published settings and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from unified.tasks.datasets.formats.writing import (
    answer_item,
    question_files,
    question_item,
    read_coqa_answers,
    read_squad_questions,
    read_summaries,
    read_texts,
    source_item,
)
from unified.tasks.datasets.summaries.oracles import DEFAULT_ORACLE
from unified.tasks.metrics.official_answers import coqa_files
from unified.tasks.writing import WritingItem, WritingTask, WritingTraining
from unified.tasks.writing_scores import score_answers, score_questions, score_texts

_PAPER = "Dong et al. 2019"
_NO_TRIGRAM_TWICE = {"beam": 5, "no_repeat_ngram": 3, "length_penalty": "unilm"}
_QUESTIONS = WritingTraining(epochs=10, learning_rate=2e-5, longest=512, max_source=456, max_target=48)
_GIGAWORD = WritingTraining(
    epochs=10,
    batch_size=128,
    learning_rate=3e-5,
    longest=192,
    max_source=125,
    max_target=64,
    objective="target_cloze(mask_probability=0.7,max_predictions=48)",
)
#: Short summaries of data sets for which nobody has published settings of this method: Gigaword's rate and epochs.
_SHORT = WritingTraining(epochs=10, batch_size=32, learning_rate=3e-5, longest=384, max_source=317, max_target=64)


def _summaries(name: str, training: WritingTraining, max_length: int, exponent: float, **more) -> WritingTask:
    decoding = {**_NO_TRIGRAM_TWICE, "max_length": max_length, "length_exponent": exponent}
    read = partial(read_summaries, data_set=name)
    return WritingTask(
        name, **({"read": read, "item": source_item, "score": score_texts, "may_repeat": (".",)} | more),
        training=training, decoding=decoding,
    )  # fmt: skip


def _questions(split: str, name: str, beam: int, published: dict[str, dict[str, float]], more: str = "") -> WritingTask:
    """``published`` is of the test set; ``more`` is said of its sources."""
    read, decoding = partial(read_squad_questions, split=split), {"beam": beam, "max_length": 48}
    source = f"{_PAPER}, section 3.3; rates and {split} split of the released code{more}"
    return WritingTask(
        name, read, question_item, score_questions, _QUESTIONS, decoding, published={"test": published}, source=source,
        official=question_files, measures=("bleu4", "rougeL"),
    )  # fmt: skip


def _coqa_files(items: Sequence[WritingItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return coqa_files([{"id": one["id"], "answer": one["text"]} for one in predictions])


TASKS = (
    _summaries(
        "cnn_dailymail",
        WritingTraining(
            epochs=30,
            batch_size=32,
            learning_rate=3e-5,
            longest=768,
            max_source=640,
            max_target=125,
            objective="target_cloze(mask_probability=0.7,extractive=True)",
        ),
        125,
        1.0,
        read=partial(read_summaries, data_set="cnn_dailymail", oracle=DEFAULT_ORACLE),
        score=partial(score_texts, separator="|", post_processing="cnndm"),
        may_repeat=(".", "|"),
        separator="|",
        published={"test": {"UniLM large": {"rouge1": 43.47, "rouge2": 20.30, "rougeL": 40.63}}},
        source=f"{_PAPER}, section 3.1, and the released code",
    ),
    _summaries(
        "gigaword",
        _GIGAWORD,
        32,
        0.6,
        score=partial(score_texts, post_processing="gigaword"),
        published={"test": {"UniLM large": {"rouge1": 38.90, "rouge2": 20.05, "rougeL": 36.00}}},
        source="the released code of UniLM",
    ),
    _summaries(
        "gigaword_10k",
        replace(_GIGAWORD, learning_rate=1e-5, objective="target_cloze(mask_probability=0.7,max_predictions=64)"),
        32,
        0.0,
        read=partial(read_summaries, data_set="gigaword", subset=10_000),
        score=partial(score_texts, post_processing="gigaword"),
        published={"test": {"UniLM large": {"rouge1": 34.21, "rouge2": 15.28, "rougeL": 31.54}}},
        source="the released code of UniLM",
    ),
    _summaries(
        "xsum",
        WritingTraining(epochs=10, batch_size=64, learning_rate=7e-5, longest=512, max_source=462, max_target=47),
        47,
        0.0,
        score=partial(score_texts, post_processing="xsum"),
        source="s2s-ft, later code of UniLM's authors",
    ),
    _summaries("reuters", _SHORT, 32, 0.6),
    _summaries("scitldr", _SHORT, 64, 0.6),
    _questions("paper", "squad_qg", 3, {"UniLM large": {"bleu4": 22.88, "meteor": 24.94, "rougeL": 51.80}}),
    _questions(
        "du",
        "squad_qg_du",
        1,
        {"MiniLM, 22M": {"bleu4": 20.31}, "UniLM large": {"bleu4": 22.78, "meteor": 25.49, "rougeL": 51.57}},
        "; MiniLM, 6 layers, of Wang et al. 2020",
    ),
    _questions("reversed", "squad_qg_reversed", 1, {"UniLM large": {"bleu4": 24.32, "meteor": 26.10, "rougeL": 52.69}}),
    WritingTask(
        "coqa_free",
        read_coqa_answers,
        answer_item,
        score_answers,
        WritingTraining(
            epochs=10,
            batch_size=32,
            learning_rate=2e-5,
            longest=512,
            max_source=470,
            max_target=39,
            objective="target_cloze(mask_probability=0.5)",
        ),
        {"beam": 3, "max_length": 39},
        published={"valid": {"UniLM large, generative": {"f1": 82.5}}},
        source=f"{_PAPER}, section 3.2.2",
        official=_coqa_files,
        measures=("f1", "em"),
    ),
    WritingTask(
        "texts",
        read_texts,
        source_item,
        score_texts,
        WritingTraining(epochs=10, learning_rate=3e-5, longest=512, max_source=384, max_target=125),
        {**_NO_TRIGRAM_TWICE, "max_length": 125, "length_exponent": 1.0},
        may_repeat=(".",),
    ),
)
