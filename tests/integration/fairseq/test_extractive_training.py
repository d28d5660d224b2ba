"""A summarizer learns beside writing which sentences of its source the oracle takes."""

import random

import pytest
from torch import nn

from tests.support import fairseq_runs as fairseq
from tests.support.corpora import jsonl, run
from unified import UnifiedLM
from unified.cli import main


def marked_pair(rng):
    """Five sentences, one of which says 'news', and its words as the summary."""
    sentences = [" ".join(rng.sample("abcdefghijklmnop", 4)) for _ in range(5)]
    index = rng.randrange(5)
    sentences[index] = "news " + sentences[index][2:]
    return {"document": ". ".join(sentence.capitalize() for sentence in sentences), "summary": sentences[index]}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("marked"), random.Random(3)
    for part, count in (("train", 1500), ("valid", 100)):
        raw = jsonl(folder / f"{part}.raw.jsonl", [marked_pair(rng) for _ in range(count)])
        arguments = [raw, "--oracle", "--output", str(folder / f"{part}.jsonl"), "--workers", "1"]
        assert main(["pairs", "gigaword", *arguments]) == 0
    valid = ("--valid", folder / "valid.jsonl", "--test", folder / "valid.jsonl", "--lowercase")
    fields = ("--source-field", "source", "--target-field", "target", "--oracle")
    options = (*fields, *valid, "--tokenizer", "wordpiece", "--output", folder / "data")
    assert run(folder / "train.jsonl", *options) == 0
    return folder / "data"


@pytest.fixture(scope="module")
def started(data, tmp_path_factory):
    """A checkpoint without the head."""
    save = tmp_path_factory.mktemp("started")
    fairseq.train(data, save, "--batch-size", 8, "--max-update", 1, "--disable-validation")
    return save / "checkpoint_last.pt"


@pytest.mark.slow
def test_the_oracles_choice_is_learnt(data, started, tmp_path):
    result = fairseq.train(
        data, tmp_path / "model", "--objectives", "target_cloze(extractive=True)", "--finetune-from-model", started,
        "--batch-size", 16, "--max-update", 100, "--lr", 3e-3, "--max-source", 20, "--log-interval", 1,
    )  # fmt: skip
    log = result.stdout + result.stderr
    (named,) = [line for line in log.splitlines() if "initialised at random" in line]
    parts = ("dense.weight", "dense.bias", "norm.weight", "norm.bias", "classifier.weight", "classifier.bias")
    assert named.endswith(": " + ", ".join(f"heads.extractive.{part}" for part in parts))
    assert "train: 1,500 of 1,500 sources are cut to their first 20 tokens (--max-source)" in log
    row = fairseq.logged(log, "valid")[-1]
    assert float(row["valid_target_cloze_extractive_accuracy"]) > 97  # 80 without a look at the source
    inner = fairseq.logged(log, "train_inner")[0]
    total = float(inner["target_cloze_loss"]) + float(inner["target_cloze_extractive_loss"])
    assert float(inner["loss"]) == pytest.approx(total, abs=5e-3)
    # Without fairseq, the checkpoint says what the model has.
    lm = UnifiedLM.from_pretrained(tmp_path / "model" / "checkpoint_last.pt", data)
    assert isinstance(lm.model.heads["extractive"], nn.Module)
