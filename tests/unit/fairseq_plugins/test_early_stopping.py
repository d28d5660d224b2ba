"""``--patience`` over restarts: what a checkpoint keeps, and when it counts."""

import logging
from types import SimpleNamespace

import pytest
from fairseq_cli import train
from omegaconf import OmegaConf

from fairseq_plugins.config import other_training
from fairseq_plugins.early_stopping import counted_validations, restore

RESETS = ("reset_optimizer", "reset_meters")


@pytest.fixture(autouse=True)
def new_process():
    """fairseq's function has counted nothing."""
    vars(train.should_stop_early).clear()
    yield
    vars(train.should_stop_early).clear()


def options(folder, patience=3, maximize=False, metric="loss", restore="checkpoint_last.pt", **resets):
    return OmegaConf.create({
        "save_dir": str(folder), "checkpoint_suffix": "", "restore_file": restore, "patience": patience,
        "continue_once": None, "finetune_from_model": "begin.pt",
        "best_checkpoint_metric": metric, "maximize_best_checkpoint_metric": maximize,
        **dict.fromkeys(RESETS, False), **resets,
    })  # fmt: skip


def going_on(cfg, state):
    """Loads a checkpoint with this state; whether any update is left."""
    trainer = SimpleNamespace(cfg=OmegaConf.create({"optimization": {"max_epoch": 7}}))
    OmegaConf.set_struct(trainer.cfg, True)
    restore(cfg, trainer, state, other_training(cfg))
    return trainer.cfg.optimization.max_epoch == 7


def stops(cfg, losses):
    """Whether fairseq stops at each of some validations."""
    return [train.should_stop_early(OmegaConf.create({"checkpoint": cfg}), loss) for loss in losses]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("cut", range(1, 8))
def test_a_restart_anywhere_stops_where_one_run_does(tmp_path, maximize, cut):
    losses = [-loss if maximize else loss for loss in (5, 4, 6, 7, 3, 3, 4, 3)]
    cfg = options(tmp_path, maximize=maximize)
    whole = stops(cfg, losses)
    assert whole.index(True) == 7
    vars(train.should_stop_early).clear()
    first = stops(cfg, losses[:cut])
    kept = counted_validations("loss")
    vars(train.should_stop_early).clear()
    (tmp_path / "checkpoint_last.pt").touch()
    assert going_on(cfg, {"some": "state", **kept})
    assert [*first, *stops(cfg, losses[cut:])] == whole


def test_a_training_that_it_has_ended_makes_no_update_unless_it_waits_longer(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="fairseq_plugins.early_stopping")
    (tmp_path / "checkpoint_last.pt").touch()
    stops(options(tmp_path), [1, 2, 2, 2])
    kept = counted_validations("loss")
    assert not going_on(options(tmp_path), kept)
    assert caplog.messages == [f"{tmp_path}: 3 validations without an improvement: no update is made"]
    assert not going_on(options(tmp_path, patience=2), kept)
    assert going_on(options(tmp_path, patience=4), kept) and going_on(options(tmp_path, patience=-1), kept)


def test_what_begins_anew_counts_anew(tmp_path):
    stops(options(tmp_path), [1, 2, 2, 2])
    kept = counted_validations("loss")
    assert going_on(options(tmp_path), kept)  # of another training (--finetune-from-model)
    (tmp_path / "checkpoint_last.pt").touch()
    vars(train.should_stop_early).clear()
    for changed in (
        {"restore": str(tmp_path / "other" / "a.pt")},
        {"metric": "ppl"},
        *({reset: True} for reset in RESETS),
    ):
        cfg = options(tmp_path, **changed)
        assert going_on(cfg, kept) and stops(cfg, [3, 4, 4]) == [False] * 3, changed
        vars(train.should_stop_early).clear()
    assert going_on(options(tmp_path), {"some": "state"})  # it was saved without --patience
    assert going_on(options(tmp_path / "new", finetune_from_model=None), {})  # nothing was loaded


def test_without_the_option_nothing_is_kept(tmp_path):
    stops(options(tmp_path, patience=-1), [1, 2])
    assert counted_validations("loss") == {}
    stops(options(tmp_path), [None, 1, 2])
    assert counted_validations("ppl") == {"early_stopping": {"metric": "ppl", "best": 1, "num_runs": 1}}
