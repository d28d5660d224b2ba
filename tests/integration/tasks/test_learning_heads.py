"""fairseq-train learns what synthetic tags, choices and relations are made by."""

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from tests.support.task_folders import WORDS, data_folder
from tests.support.understanding_runs import UNUSED
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import WordsItem
from unified.tasks.heads.relation import RelationItem


@pytest.mark.slow
def test_tags_in_another_sentence_are_learnt(tmp_path):
    """The first sentence of a document says how the words of the others are to be tagged."""
    rng, items = np.random.default_rng(5), []
    for document in range(300):
        turn = int(rng.integers(2))
        items.append(WordsItem(str(len(items)), (f"w{turn}",), ("O",), str(document)))
        for _ in range(2):
            words = rng.choice(WORDS[2:8], rng.integers(1, 4)).tolist()
            tags = tuple("B-x" if int(word[1:]) % 2 == turn else "O" for word in words)
            items.append(WordsItem(str(len(items)), tuple(words), tags, str(document)))
    data = data_folder(tmp_path / "data", {"train": items[120:], "valid": items[:120]})
    result = runs.train(data, tmp_path / "save", "--head", "tagging(context=True,dropout=0)", "--max-epoch", 2,
                        "--batch-size", 16, "--initializer-range", 0.1, "--tokens-per-sample", 12)  # fmt: skip
    logged = runs.validations(result)[-1]
    assert float(logged["valid_f1"]) >= 98
    runs.assert_answers_score_as_logged(tmp_path / "save", data, items[:120], logged)


@pytest.mark.slow
def test_tags_are_learnt_from_features(tmp_path):
    """A tag is that of the word before it: the recurrent network sees it, and the model's weights stay."""
    rng, items = np.random.default_rng(6), []
    for i in range(400):
        words = rng.choice(WORDS[:8], rng.integers(2, 8)).tolist()
        tags = ["a", *(("a", "b")[int(word[1:]) % 2] for word in words[:-1])]
        items.append(WordsItem(str(i), tuple(words), tuple(tags)))
    data = data_folder(tmp_path / "data", {"train": items[80:], "valid": items[:80]})
    head = "tagging(features='concat_last_four',recurrent_width=16,dropout=0)"
    result = runs.train(data, tmp_path / "save", "--head", head, "--max-epoch", 5, "--batch-size", 8, "--lr", 1e-2,
                        "--layers", 4, "--initializer-range", 0.2, "--save-interval-updates", 100)  # fmt: skip
    logged = runs.validations(result)[-1]
    assert float(logged["valid_accuracy"]) >= 98
    runs.assert_answers_score_as_logged(tmp_path / "save", data, items[:80], logged)
    first, last = (torch.load(tmp_path / "save" / name, weights_only=True)["model"]
                   for name in ("checkpoint_3_100.pt", "checkpoint_last.pt"))  # fmt: skip
    changed = {name for name in first if not torch.equal(first[name], last[name])}
    assert changed and all(name.startswith("core.heads.") for name in changed)


@pytest.mark.slow
def test_a_synthetic_choice_is_learnt(tmp_path):
    """The context says which of two endings is right; an item has up to two more of them."""
    rng, items = np.random.default_rng(4), []
    for i in range(500):
        label, turn = int(rng.integers(2)), int(rng.integers(2))
        endings = [*rng.choice(WORDS[2:8], rng.integers(0, 3), replace=False), WORDS[1 - turn]]
        endings.insert(label, WORDS[turn])
        context = " ".join([WORDS[8 + turn], *rng.choice(WORDS[10:], rng.integers(1, 4))])
        choices = tuple(f"{ending} {rng.choice(WORDS[10:])}" for ending in endings)
        items.append(ChoiceItem(str(i), context, choices, None, label))
    data = data_folder(tmp_path / "data", {"train": items[100:], "valid": items[:100]})
    result = runs.train(data, tmp_path / "save", "--head", "choice(dropout=0)", "--max-epoch", 3, "--batch-size", 10,
                        "--initializer-range", 0.1)  # fmt: skip
    logged = runs.validations(result)[-1]
    assert float(logged["valid_accuracy"]) >= 98
    runs.assert_answers_score_as_logged(tmp_path / "save", data, items[:100], logged)
    epochs = runs.fairseq.logged(result.stdout + result.stderr, "train")
    assert int(epochs[0]["train_num_updates"]) == 40  # a batch counts items, not choices


@pytest.mark.slow
def test_a_synthetic_relation_is_learnt(tmp_path):
    """The words of subject and object say it, wherever they stand; designs by types: see the recipes' tests."""
    rng, items = np.random.default_rng(6), []
    for i in range(700):
        words = rng.choice(WORDS[8:], rng.integers(3, 6)).tolist()
        indices, kinds = rng.choice(len(words), 2, replace=False), rng.integers(2, size=2)
        for index, kind in zip(indices, kinds, strict=True):
            words[index] = WORDS[kind]
        pair = tuple(Entity(int(index), int(index) + 1) for index in indices)
        label = {(0, 0): "no_relation", (1, 1): "no_relation", (0, 1): "forth", (1, 0): "back"}[tuple(kinds.tolist())]
        items.append(RelationItem(str(i), tuple(words), pair, label))
    data = data_folder(tmp_path / "data", {"train": items[100:], "valid": items[:100]}, *UNUSED)
    result = runs.train(data, tmp_path / "save", "--head", "relation", "--max-epoch", 10,
                        "--batch-size", 32, "--lr", 4e-3, "--initializer-range", 0.1,
                        "--lr-scheduler", "polynomial_decay", "--warmup-updates", 20,
                        "--total-num-update", 190)  # fmt: skip
    logged = runs.validations(result)[-1]
    assert float(logged["valid_f1"]) >= 98
    runs.assert_answers_score_as_logged(tmp_path / "save", data, items[:100], logged)
