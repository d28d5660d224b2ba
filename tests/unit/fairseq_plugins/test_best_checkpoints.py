"""The best value of a checkpoint over a restart, by the same metric and by another."""

import logging

import pytest
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from fairseq_plugins.best_checkpoints import METRIC, forget
from fairseq_plugins.config import other_training


@pytest.fixture(autouse=True)
def new_process():
    """fairseq's function has seen no value."""
    known = vars(checkpoint_utils.save_checkpoint)
    before = dict(known)
    known.pop("best", None)
    yield
    known.clear()
    known.update(before)


def best_after(state, metric, folder="run", restore="run/checkpoint_last.pt", once=None):
    """The value that fairseq compares with after a checkpoint with this state was loaded; None where there is none."""
    cfg = OmegaConf.create({
        "best_checkpoint_metric": metric, "restore_file": restore, "continue_once": once, "finetune_from_model": None,
        "save_dir": str(folder), "checkpoint_suffix": "",
    })  # fmt: skip
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    if "best" in state:  # as fairseq's function does
        checkpoint_utils.save_checkpoint.best = state["best"]
    forget(cfg, state, other_training(cfg))
    return vars(checkpoint_utils.save_checkpoint).get("best")


def test_the_best_value_is_of_one_metric(caplog):
    caplog.set_level(logging.INFO, logger="fairseq_plugins.best_checkpoints")
    assert best_after({"best": 2.5, METRIC: "loss"}, "loss") == 2.5
    assert best_after({"best": 2.5}, "accuracy") == 2.5  # nothing says of what it is
    assert caplog.messages == []
    assert best_after({"best": 2.5, METRIC: "loss"}, "accuracy") is None
    assert caplog.messages == ["the best checkpoint was that by loss; the next validation gives the first by accuracy"]
    assert best_after({METRIC: "loss"}, "accuracy") is None  # it was saved without a validation
    assert best_after({}, "accuracy") is None  # a training that begins
    assert len(caplog.messages) == 1


def test_the_best_value_of_another_training_does_not_count(tmp_path, caplog):
    """A training on other data, whose loss is higher, never wrote checkpoint_best.pt."""
    caplog.set_level(logging.INFO, logger="fairseq_plugins.best_checkpoints")
    state = {"best": 2.5, METRIC: "loss"}
    assert best_after(state, "loss", restore="other/checkpoint_last.pt") is None
    assert best_after(state, "loss", tmp_path, "checkpoint_last.pt", once="other/checkpoint3.pt") is None
    said = "the best value is that of another training, other/{}; the next validation gives the first"
    assert caplog.messages == [said.format("checkpoint_last.pt"), said.format("checkpoint3.pt")]
    (tmp_path / "checkpoint_last.pt").touch()  # the training goes on
    assert best_after(state, "loss", tmp_path, "checkpoint_last.pt", once="other/checkpoint3.pt") == 2.5
    assert best_after(state, "loss", tmp_path, str(tmp_path / "checkpoint3.pt")) == 2.5
    assert best_after({}, "loss", restore="other/checkpoint_last.pt") is None  # it was saved without a validation
    assert len(caplog.messages) == 2
