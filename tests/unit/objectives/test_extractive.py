"""The extractive loss: a head on first tokens of sentences, its formula and gradient, and what it learns."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from tests.support import fairseq_runs as fairseq
from tests.support.asked import sentences
from tests.support.corpora import jsonl, run
from tests.support.tiny_models import model
from tests.support.tiny_models import vocabulary as tiny_vocabulary
from unified import UnifiedLM
from unified.cli import main
from unified.data.collate import collate
from unified.data.text import Text
from unified.errors import UnifiedError
from unified.objectives.contract import loss_names
from unified.objectives.unilm import TargetCloze


def examples(objective=None, count=6):
    """Examples over the small vocabulary, sentences at random indices."""
    objective = objective or TargetCloze(extractive=True)
    special, rng = tiny_vocabulary().special, np.random.default_rng(5)
    made = []
    for _ in range(count):
        bounds = np.unique(np.append(rng.integers(0, 8, 3), [0, 8]))
        spans = np.stack([bounds[:-1], bounds[1:]], axis=1)
        tokens, second = rng.integers(5, 16, 8), rng.integers(5, 16, 3)
        taken = spans[rng.random(len(spans)) < 0.5]
        made.append(objective(Text(tokens, special, second, spans={"sentences": spans, "oracle": taken}), rng))
    return made


def test_the_loss_is_its_formula():
    core = model(sentence_head=True)
    made = examples()
    batch = collate([[example] for example in made], None, ("target_cloze",), pad=1)
    states = core.hidden(batch)
    head, total, count, correct = core.heads["extractive"], 0.0, 0, 0
    for row, example in enumerate(made):
        for index, label in sentences(example).tolist():
            h = states[row, index] @ head.dense.weight.T + head.dense.bias
            h = 0.5 * h * (1 + torch.erf(h / 2**0.5))
            h = (h - h.mean()) / (h.var(unbiased=False) + core.config.norm_epsilon).sqrt()
            scores = (h * head.norm.weight + head.norm.bias) @ head.classifier.weight.T + head.classifier.bias
            total -= scores.log_softmax(0)[label]
            correct += int(scores.argmax() == label)
            count += 1
    loss = core(batch, smoothing=0.1, pad=1)["target_cloze_extractive"]  # smoothing is for words
    assert (int(loss.count), int(loss.correct)) == (count, correct) and 0 < correct < count
    torch.testing.assert_close(loss.total, total, rtol=1e-5, atol=1e-4)
    ours = torch.autograd.grad(loss.total, list(core.parameters()), allow_unused=True, retain_graph=True)
    theirs = torch.autograd.grad(total, list(core.parameters()), allow_unused=True)
    reached = 0
    for mine, other, (name, _) in zip(ours, theirs, core.named_parameters(), strict=True):
        if mine is None or not mine.any():
            assert other is None or not other.any(), name
        else:
            torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)
            reached += 1
    assert reached > 20


def test_packed_is_as_alone():
    core, made = model(sentence_head=True), examples()
    names = ("target_cloze", "target_cloze_extractive")
    alone = [core(collate([[example]], None, ("target_cloze",), pad=1)) for example in made]
    packed = core(collate([made[:4], made[4:]], 60, ("target_cloze",), pad=1))
    for name in names:
        torch.testing.assert_close(
            packed[name].total, sum(losses[name].total for losses in alone), rtol=1e-4, atol=1e-4
        )
        assert packed[name].count == sum(losses[name].count for losses in alone)


def test_the_head_takes_part_whatever_a_batch_holds():
    core = model(sentence_head=True)
    losses = core(collate([examples(TargetCloze())], None, ("target_cloze",), pad=1))
    assert int(losses["target_cloze_extractive"].count) == 0
    sum(loss.total for loss in losses.values()).backward()
    assert all(parameter.grad is not None for parameter in core.heads["extractive"].parameters())


def test_a_model_without_the_head_says_so_and_loses_nothing():
    made = examples()
    with_head, without = model(sentence_head=True), model()
    without.load_state_dict({k: v for k, v in with_head.state_dict().items() if not k.startswith("heads.extractive.")})
    with pytest.raises(UnifiedError, match="the model has no sentence head"):
        without(collate([made], None, ("target_cloze",), pad=1))
    plain = without(collate([examples(TargetCloze())], None, ("target_cloze",), pad=1))
    assert list(plain) == ["target_cloze", "target_cloze_next_sentence"]
    assert list(loss_names(TargetCloze())) == ["target_cloze"]
    assert list(loss_names(TargetCloze(extractive=True))) == ["target_cloze", "target_cloze_extractive"]
    both = with_head(collate([examples(TargetCloze())], None, ("target_cloze",), pad=1))
    torch.testing.assert_close(both["target_cloze"].total, plain["target_cloze"].total)


# ---------------------------------------------------------------- through fairseq-train


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
    (named,) = [line for line in log.splitlines() if "new, initialised at random" in line]
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
