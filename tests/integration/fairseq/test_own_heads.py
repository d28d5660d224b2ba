"""Heads that an objective brings along: trained, resumed, left out elsewhere, and refused where names clash."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch

from docs.examples.word_lengths import LONGEST, WordLengthHead, WordLengths
from tests.support import corpora
from tests.support import fairseq_runs as fairseq
from unified import UnifiedLM
from unified.cli import main
from unified.data.text import Text
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import PRESETS, UnifiedModel
from unified.objectives import parse_objectives
from unified.testing import check_objective

OBJECTIVES = ("--objectives", "docs.examples.word_lengths:WordLengths:1,bidirectional:1")


def test_labels_are_the_lengths_of_words():
    vocabulary = Vocabulary([f"w{i}" for i in range(20)])
    text = Text(
        tokens=vocabulary.encode([f"w{i}" for i in range(13)]),
        special=vocabulary.special,
        word_starts=np.array([1, 0, 0, 1, 1, *[0] * 8], dtype=bool),
    )
    targets = WordLengths()(text, np.random.default_rng(1)).targets["word_length"]
    assert targets.labels.tolist() == [2, 2, 2, 0, *[LONGEST - 1] * 9]
    assert targets.output_indices[:, 0].tolist() == list(range(1, 14))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a model after twenty updates, and what training printed."""
    folder = tmp_path_factory.mktemp("own_heads")
    data = folder / "data"
    for seed, name in enumerate(("train.txt", "valid.txt")):
        corpora.write(folder / name, corpora.raw_text(corpora.random_documents(60, seed)))
    valid = ("--valid", folder / "valid.txt", "--output", data)
    assert corpora.run(folder / "train.txt", *valid, "--tokenizer", "unigram", "--vocabulary-size", 200) == 0
    options = (*OBJECTIVES, "--batch-size", 4, "--log-interval", 1, "--lr", 3e-3)
    result = fairseq.train(data, folder / "model", *options, "--max-update", 20)
    return folder / "model", data, options, result.stdout + result.stderr


def test_a_head_is_learnt_beside_the_librarys(trained):
    rows = fairseq.logged(trained[3], "train_inner")
    losses = [float(row["word_lengths_word_length_loss"]) for row in rows if "word_lengths_word_length_loss" in row]
    assert losses[-1] < 0.7 * losses[0] and losses[0] < 1.5 * np.log2(LONGEST)
    assert any("bidirectional_loss" in row for row in rows)


def test_checkpoints_keep_it_and_training_goes_on(trained):
    folder, data, options, _ = trained
    state = torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]
    assert state["core.heads.word_length.classifier.weight"].shape[0] == LONGEST
    result = fairseq.train(data, folder, *options, "--max-update", 22)
    rows = fairseq.logged(result.stdout + result.stderr, "train_inner")
    assert [row["num_updates"] for row in rows] == ["21", "22"]


def test_what_only_generates_leaves_it_out_and_says_so(trained, caplog):
    folder, data, *_ = trained
    with caplog.at_level("INFO"):
        lm = UnifiedLM.from_pretrained(folder, data=data)
    assert "left out, as only training reads it: head word_length" in caplog.text
    assert "word_length" not in lm.model.heads and "token" in lm.model.heads


def test_finetuning_leaves_it_out_and_says_so(trained):
    folder, data, *_ = trained
    options = ("--objectives", "bidirectional", "--max-update", 1, "--batch-size", 4)
    result = fairseq.train(
        data, folder.parent / "tuned", *options, "--finetune-from-model", folder / "checkpoint_last.pt"
    )
    printed = result.stdout + result.stderr
    assert "parameters of the checkpoint that are unused, left out: heads.word_length (2 parameters)" in printed


def test_an_unknown_head_is_refused_where_the_model_lacks_it():
    objective = parse_objectives(OBJECTIVES[1]).objectives[0]
    assert isinstance(objective, WordLengths)
    config = PRESETS["unified_lm_tiny"](vocabulary_size=200)
    assert "word_length" in UnifiedModel.for_language(config, {"word_length": WordLengthHead}).heads
    assert "word_length" not in UnifiedModel.for_language(config).heads


class OtherHead(WordLengthHead):
    """Another head of the same name."""


@dataclass(frozen=True)
class Other(WordLengths):
    """A copy of the documentation's example with other declarations."""

    name: ClassVar[str] = "other"
    fault: str = "another head"

    @property
    def own_heads(self):
        return {
            "another head": {"word_length": OtherHead},
            "taken": {"token": WordLengthHead},
            "of the module": {"items": WordLengthHead},
            "of its state": {"training": WordLengthHead},
            "not listed": {"word_length": WordLengthHead, "unasked": WordLengthHead},
            "no mapping": [WordLengthHead],
        }[self.fault]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("taken", "own_heads must be of other names than token, next_sentence"),
        ("of the module", "own_heads must be of other names than token, next_sentence"),
        ("of its state", "own_heads must be of other names than token, next_sentence"),
        ("not listed", "own_heads must be of names that heads lists too"),
        ("no mapping", "own_heads must be a mapping whose keys are names of heads"),
    ],
)
def test_declarations_of_heads_are_checked(fault, message):
    with pytest.raises(UnifiedError, match=f"objective other: {message}"):
        check_objective(Other(fault=fault))


def test_the_command_shows_what_heads_and_weights_an_example_has(capsys, monkeypatch):
    show = ["objectives", "show", "docs.examples.word_lengths:WordLengths", "--text", "the fox runs"]
    assert main(show) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines if "fox" in line][0] == "word_length=0"
    made = WordLengths.__call__

    def weighted(self, text, rng):
        example = made(self, text, rng)
        targets = example.targets["word_length"]
        return replace(example, targets={"word_length": replace(targets, weights=np.full(len(targets), 2.5))})

    monkeypatch.setattr(WordLengths, "__call__", weighted)
    assert main(show) == 0
    assert "word_length=0 (weight 2.5)" in capsys.readouterr().out
