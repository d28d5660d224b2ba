"""A training goes on with the options of its command, and not where the parameters would mean something else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.support import fairseq_runs as fairseq
from tests.support.task_folders import data_folder
from tests.support.understanding_runs import refusal_to_train, train
from unified.tasks.heads.items import TextItem


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    return fairseq.documents(tmp_path_factory.mktemp("documents"), np.random.default_rng(0))


def test_options_of_the_optimizer_are_those_of_the_command(documents, tmp_path):
    """The values with which the state was saved stayed, and nothing said so."""

    def trained(updates, decay, betas, eps):
        own = ("--weight-decay", decay, "--adam-betas", betas, "--adam-eps", eps, "--max-update", updates)
        shared = ("--optimizer", "unified_adam", "--batch-size", 8, "--disable-validation")
        fairseq.train(documents, tmp_path, *shared, *own)
        groups = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["last_optimizer_state"]["param_groups"]
        return [(group["weight_decay"], group["betas"], group["eps"]) for group in groups]

    assert trained(1, 0.01, "(0.9, 0.98)", 1e-6) == [(0.01, (0.9, 0.98), 1e-6), (0.0, (0.9, 0.98), 1e-6)]
    assert trained(2, 0.05, "(0.8, 0.95)", 1e-4) == [(0.05, (0.8, 0.95), 1e-4), (0.0, (0.8, 0.95), 1e-4)]


def classified(folder, labels):
    """Texts with these labels by turns."""
    items = {
        split: [TextItem(f"{split}{n}", f"w{n} w{n + 1}", None, labels[n % len(labels)]) for n in range(count)]
        for split, count in (("train", 12), ("valid", 6))
    }
    return data_folder(folder, items)


def test_a_training_with_other_labels_is_not_gone_on_with(tmp_path):
    """The numbers of the classes stayed, and stood for other labels."""
    save, data = tmp_path / "save", classified(tmp_path / "data", ("a", "b", "c"))
    train(data, save, "--max-update", 1)
    before = (save / "checkpoint_last.pt").read_bytes()
    refusal = f"unified_lm: error: {save}/checkpoint_last.pt: --head: label {{}} in this run; labels are those in "
    refusal += "train.jsonl where --head sets none"
    for labels, said in (
        (("a", "b", "d"), "3 of 'classification' is 'c' in the checkpoint, 'd'"),
        (("a", "aa", "b", "c"), "2 of 'classification' is 'b' in the checkpoint, 'aa'"),
        (("a", "b"), "3 of 'classification' is 'c' in the checkpoint, none"),
        (("a", "b", "c", "d"), "4 of 'classification' is none in the checkpoint, 'd'"),
    ):
        other = classified(tmp_path / "-".join(labels), labels)
        assert refusal_to_train(other, save, "--max-update", 2) == refusal.format(said)
    for more in ("--reset-dataloader", "--reset-optimizer"):
        assert refusal_to_train(other, save, "--max-update", 2, more) == refusal.format(said)
    given = ("--head", "classification(labels=('b', 'a', 'c'))", "--max-update", 2)
    assert refusal_to_train(data, save, *given) == refusal.format("1 of 'classification' is 'a' in the checkpoint, 'b'")
    assert (save / "checkpoint_last.pt").read_bytes() == before
    # The checkpoint's own labels may be named where the data have fewer; another dropout is an option like others.
    fewer = classified(tmp_path / "fewer", ("c", "a"))
    train(fewer, save, "--max-update", 2, "--head", "classification(labels=('a', 'b', 'c'), dropout=0)")


def test_a_training_that_begins_with_a_model_of_other_labels_has_a_new_projection(tmp_path):
    """As many labels have a projection of the same size."""
    for name, labels in (("first", ("a", "b")), ("same", ("a", "b")), ("other", ("a", "c"))):
        begin = () if name == "first" else ("--finetune-from-model", tmp_path / "first" / "checkpoint_last.pt")
        found = train(classified(tmp_path / f"{name}-data", labels), tmp_path / name, "--max-update", 1, *begin)
        said = "parameters of the checkpoint that are for other labels, left out: heads.classification.output.weight"
        assert (said in found.stdout + found.stderr) == (name == "other")


def test_a_training_with_other_heads_is_not_gone_on_with(tmp_path):
    """The optimizer's state is by number: it would be that of another head."""
    data, save = data_folder(tmp_path / "data", {}), tmp_path / "save"
    for name in ("one", "two", "three"):
        classified(data / name, ("a", "b"))
    train(data, save, "--head", "one=classification, two=classification", "--max-update", 1)
    refusal = f"unified_lm: error: {save}/checkpoint_last.pt: --head: the heads are one, two in the checkpoint, "
    for other in ("two, one", "one, three"):
        heads = ", ".join(f"{name}=classification" for name in other.split(", "))
        assert refusal_to_train(data, save, "--head", heads, "--max-update", 2) == f"{refusal}{other} in this run"


def test_patience_counts_over_restarts(documents, tmp_path):
    """Two updates of a model that learns nothing; each of the two processes sees one validation without improvement."""
    shared = ("--batch-size", 8, "--lr", 0, "--validate-interval-updates", 1, "--save-interval-updates", 1)

    def updates(patience, at_most):
        fairseq.train(documents, tmp_path, *shared, "--patience", patience, "--max-update", at_most)
        history = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["optimizer_history"]
        return history[-1]["num_updates"]

    assert updates(2, 2) == 2  # the first validation is the best one
    assert updates(2, 10) == 3
    assert updates(2, 10) == 3
    assert updates(3, 10) == 4


def test_another_metric_chooses_the_best_checkpoint_anew(documents, tmp_path):
    """No perplexity was ever as low as the best loss."""
    shared = ("--batch-size", 8, "--validate-interval-updates", 1, "--save-interval-updates", 1)

    def best(metric, updates):
        fairseq.train(documents, tmp_path, *shared, "--best-checkpoint-metric", metric, "--max-update", updates)
        state = torch.load(tmp_path / "checkpoint_best.pt", weights_only=True)
        return state["optimizer_history"][-1]["num_updates"], state["extra_state"]["best"]

    (first, loss), (second, perplexity) = best("seq2seq_loss", 1), best("seq2seq_ppl", 2)
    assert (first, second) == (1, 2) and perplexity > loss
