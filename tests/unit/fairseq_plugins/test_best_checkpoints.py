"""The best value of a checkpoint over a restart, by the same metric and by another."""

import logging

import pytest
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from fairseq_plugins.best_checkpoints import METRIC, choosing_anew


@pytest.fixture(autouse=True)
def new_process():
    """fairseq's function has seen no value."""
    known = vars(checkpoint_utils.save_checkpoint)
    before = dict(known)
    known.pop("best", None)
    yield
    known.clear()
    known.update(before)


def best_after(state, metric):
    """The value that fairseq compares with after a checkpoint with this state was loaded; None where there is none."""

    def load(cfg, trainer, **keywords):
        if state is not None and "best" in state:  # as fairseq's function does
            checkpoint_utils.save_checkpoint.best = state["best"]
        return state, keywords["epoch"]

    loaded = choosing_anew(load)(OmegaConf.create({"best_checkpoint_metric": metric}), None, epoch="iterator")
    assert loaded == (state, "iterator")
    return vars(checkpoint_utils.save_checkpoint).get("best")


def test_the_best_value_is_of_one_metric(caplog):
    caplog.set_level(logging.INFO, logger="fairseq_plugins.best_checkpoints")
    assert best_after({"best": 2.5, METRIC: "loss"}, "loss") == 2.5
    assert best_after({"best": 2.5}, "accuracy") == 2.5  # nothing says of what it is
    assert caplog.messages == []
    assert best_after({"best": 2.5, METRIC: "loss"}, "accuracy") is None
    assert caplog.messages == ["the best checkpoint was that by loss; the next validation gives the first by accuracy"]
    assert best_after({METRIC: "loss"}, "accuracy") is None  # it was saved without a validation
    assert best_after(None, "accuracy") is None  # a training that begins
    assert len(caplog.messages) == 1
