"""Small understanding tasks: their models, and a run of fairseq-train on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from tests.support import fairseq_runs as fairseq
from tests.support.task_folders import tokenizer, vocabulary
from unified import load
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads import Encoded, Understanding
from unified.tasks.heads.batches import assembled

UNUSED = [f"[unused{i}]" for i in (1, 2, 3, 4, 10, 11)]
TASK = ("--user-dir", fairseq.ROOT / "fairseq_plugins", "--task", "unified_understanding")
TINY = (
    "--arch", "bert_tiny", "--criterion", "unified_understanding", "--width", 32, "--tokens-per-sample", 32,
    "--dropout", 0, "--attention-dropout", 0, "--optimizer", "adam", "--lr", 3e-3, "--cpu",
    "--log-format", "json", "--no-epoch-checkpoints", "--no-export", "--num-workers", 0,
    "--batch-size", 32, "--seed", 3,
)  # fmt: skip


def codec(longest: int, *more: str, cls_last: bool = False) -> Codec:
    return Codec(tokenizer(*more), vocabulary(*more), longest, cls_last)


def symbols(example, codec: Codec) -> list[str]:
    return [codec.vocabulary.symbols[token] for token in example.tokens]


def train(data: Path, save: Path, *arguments, check: bool = True):
    return fairseq.run("train", data, *TASK, *TINY, "--save-dir", save, *arguments, check=check)


def refusal_to_train(data: Path, save: Path, *arguments) -> str:
    return fairseq.refusal_to_train(data, *TASK, *TINY, "--save-dir", save, *arguments)


def validations(result) -> list[dict]:
    return fairseq.logged(result.stdout + result.stderr, "valid")


def assert_answers_score_as_logged(save: Path, data: Path, items: Sequence, logged: Mapping) -> None:
    """Predictions of the model as it is loaded have the scores of the last validation."""
    predictor = load(save / "checkpoint_last.pt", data=data).predictor()
    found = list(predictor.predict(items))
    assert [one["id"] for one in found] == [item.id for item in items]
    scores = predictor.task.score(items, found)
    for measure in predictor.task.measures:
        assert abs(scores[measure] - float(logged[f"valid_{measure}"])) < 0.0051, measure


def small_model(understanding: Understanding, codec: Codec, **settings) -> UnifiedModel:
    """In evaluation mode, with weights large enough for states to differ."""
    settings = {"layers": 2, "width": 32, "heads": 2, "initializer_range": 0.3} | settings
    config = TransformerConfig(vocabulary_size=len(codec.vocabulary), **settings)
    return UnifiedModel.for_tasks(config, {"task": understanding.head(config)}).eval()


def run_batch(model: UnifiedModel, encoded: Encoded, members: Sequence[int], packed: bool, length: int = 32):
    """Members in the order of the batch, their scores and reading."""
    order, batch, reading = assembled(encoded, np.asarray(members), length if packed else None, 1)
    return order, model.scores(batch, reading, "task"), reading


@torch.no_grad()
def assert_predictions_do_not_depend_on_the_batch(understanding: Understanding, model, items, encoded, length=32):
    """Predictions of random packed batches of whole items are those of each item alone, in rows of its own."""

    def predicted(chosen: np.ndarray, members: np.ndarray, packed: bool) -> list[dict]:
        order, scores, reading = run_batch(model, encoded, members, packed, length)
        own = [items[i] for i in sorted(chosen)]
        return understanding.predict(own, encoded, order, scores, reading)

    alone = [predicted(np.array([i]), np.flatnonzero(encoded.owners == i), packed=False)[0] for i in range(len(items))]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(len(items))[: len(items) * 2 // 3]
        members = rng.permutation(np.flatnonzero(np.isin(encoded.owners, chosen)))
        found = predicted(chosen, members, packed=True)
        assert [one["id"] for one in found] == [items[i].id for i in sorted(chosen)]
        for one, i in zip(found, sorted(chosen), strict=True):
            assert_near(one, alone[i])


def assert_near(found, expected) -> None:
    """Equal JSON, but for numbers that differ by less than 2e-5."""
    if isinstance(found, dict):
        assert list(found) == list(expected)
        for key in found:
            assert_near(found[key], expected[key])
    elif isinstance(found, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_near(a, b)
    elif isinstance(found, float):
        assert abs(found - expected) < 2e-5
    else:
        assert found == expected
