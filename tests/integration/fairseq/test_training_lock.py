"""Two trainings never write into one folder."""

from __future__ import annotations

import importlib
from contextlib import nullcontext

import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from omegaconf import OmegaConf

from tests.support import fairseq_runs as fairseq
from unified.files.locks import TRAINING, locked_training


def test_a_training_is_refused_where_another_writes(tmp_path):
    """Before anything is read; what saves nothing comes as far as its data, which are not there."""
    words = [tmp_path / "none", "--user-dir", fairseq.ROOT / "fairseq_plugins", "--task", "unified_lm", *fairseq.TINY]
    words += ["--batch-size", 4, "--save-dir", tmp_path]
    with locked_training(tmp_path):
        with pytest.raises(SystemExit, match=f"{tmp_path}: a command is at work on it; wait for its end"):
            fairseq.in_this_process("train", *words)
        with pytest.raises(SystemExit, match="none: no such"):
            fairseq.in_this_process("train", *words, "--no-save")
        assert [path.name for path in tmp_path.iterdir()] == [TRAINING]


@pytest.mark.parametrize("rank, refused", [(0, True), (1, False)])
def test_torchrun_gives_the_lock_to_its_first_process(rank, refused, tmp_path, monkeypatch):
    for name, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": 1, "WORLD_SIZE": 2, "RANK": rank}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # torchrun's processes have a card each
    cfg = OmegaConf.structured(FairseqConfig)
    cfg.checkpoint.save_dir, cfg.task = str(tmp_path), {}
    cfg.distributed_training.distributed_world_size = 2
    importlib.import_module("fairseq_plugins")
    called = []
    monkeypatch.setattr(distributed_utils, "distributed_main", lambda *arguments: called.append(rank))
    with locked_training(tmp_path), pytest.raises(SystemExit) if refused else nullcontext():
        distributed_utils.call_main(cfg, lambda cfg: None)
    assert called == [rank] * (not refused)


def test_what_a_killed_training_had_begun_to_write_is_removed(tmp_path):
    """At the next start, and what is whole stays."""
    cfg = OmegaConf.structured(FairseqConfig)
    cfg.checkpoint.save_dir, cfg.task = str(tmp_path), {}
    cfg.distributed_training.distributed_world_size = 1
    importlib.import_module("fairseq_plugins")
    for name in ("checkpoint_last.pt", ".checkpoint_last.pt.123.partial", ".of_the_user.pt.1.partial"):
        (tmp_path / name).touch()
    found = []
    distributed_utils.call_main(cfg, lambda cfg: found.extend(path.name for path in tmp_path.iterdir()))
    assert sorted(found) == [".of_the_user.pt.1.partial", "checkpoint_last.pt", TRAINING]
