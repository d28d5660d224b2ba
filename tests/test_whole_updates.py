"""An update is the sum of mean losses over all its predictions, into however many parts it is cut."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests import fairseq_runs as fairseq
from tests.golden import training
from unified.model.heads import LossSum, sum_of_means

#: Objectives with very different numbers of predictions, and heads beside that of tokens.
MIXTURE = "bert:1,left_to_right:1,spanbert(scheme='subword'):1"
LOSSES = ("bert_loss", "bert_next_sentence_loss", "left_to_right_loss", "spanbert_loss", "spanbert_boundary_loss")
#: (--update-freq, rows of a micro-batch) of one process: 8 rows an update.
CUTS = ((1, 8), (2, 4), (4, 2), (8, 1))
# --curriculum: the rows of an update are the next eight, not whole batches in random order.
OPTIONS = (
    *fairseq.TINY, "--layers", 1, "--width", 32, "--heads", 2, "--boundary-offsets", 20, "--objectives", MIXTURE,
    "--max-epoch", 1, "--curriculum", 100, "--disable-validation", "--no-save",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """22 rows: three updates of at most eight."""
    return fairseq.documents(tmp_path_factory.mktemp("documents"), np.random.default_rng(0), count=20)


@pytest.fixture(scope="module")
def cuts(data, tmp_path_factory):
    """From each cut to the losses of an epoch's updates by name, as they are, and the norms of their gradients."""
    folder = tmp_path_factory.mktemp("models")
    return {
        (frequency, rows): training.train(
            data, folder, "--task", "unified_lm", *OPTIONS, "--update-freq", frequency, "--batch-size", rows
        )[0]
        for frequency, rows in CUTS
    }


@pytest.mark.parametrize("way", CUTS[1:], ids="{0[0]} x {0[1]} rows".format)
def test_losses_and_gradients_do_not_depend_on_micro_batches(cuts, way):
    whole, found = cuts[CUTS[0]], cuts[way]
    assert len(whole["loss"]) == 3
    for name in ("loss", "gnorm", *LOSSES):
        assert found[name] == pytest.approx(whole[name], rel=1e-5), name


def test_the_loss_of_an_update_is_the_sum_of_the_means_over_all_of_it(cuts):
    found = cuts[4, 2]
    assert found["loss"] == pytest.approx(np.sum([found[name] for name in LOSSES], axis=0), rel=1e-5)


def test_two_processes_give_what_one_gives(cuts, data, tmp_path):
    """In the epoch's last update they share three micro-batches: the second has one, and an empty one behind it."""
    arguments = (*OPTIONS, "--update-freq", 2, "--batch-size", 2, "--log-interval", 1, "--save-dir", tmp_path)
    result = fairseq.in_two_processes(data, *fairseq.PLUGINS, *arguments, command="train_exactly")
    rows = fairseq.logged(result.stdout + result.stderr, "train_inner")
    whole = cuts[CUTS[0]]
    assert [float(row["gnorm"]) for row in rows] == pytest.approx(whole["gnorm"], rel=1e-5)
    for name in ("loss", *LOSSES):  # fairseq does not log what a process did whose last micro-batch is empty
        assert [float(row[name]) for row in rows[:-1]] == pytest.approx(whole[name][:-1], rel=1e-5), name


def test_parts_of_an_update_add_up():
    def losses(totals: list[float], counts: list[int]) -> dict[str, LossSum]:
        zero = torch.tensor(0)
        parts = zip("ab", totals, counts, strict=True)
        return {name: LossSum(torch.tensor(total), torch.tensor(n), zero, zero) for name, total, n in parts}

    parts = losses([6.0, 1.0], [3, 1]), losses([2.0, 0.0], [1, 0])
    divisors = {"a": torch.tensor(4.0).double(), "b": torch.tensor(1.0).double()}
    assert sum(sum_of_means(part, divisors) for part in parts) == 8 / 4 + 1 / 1
    alone = sum_of_means(parts[1], {"a": torch.tensor(1.0).double(), "b": torch.tensor(0.0).double()})
    assert alone == 2.0 and alone.dtype == torch.float32, "what is not predicted adds nothing"
