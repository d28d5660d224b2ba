"""Files for transformers beside the checkpoints of fairseq-train: when a training has ended, and only then."""

from __future__ import annotations

import logging
import signal
import time

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from omegaconf import OmegaConf

import fairseq_plugins  # noqa: F401 (replaces the function of fairseq that runs a command)
import unified
from tests.support import fairseq_runs as fairseq
from tests.support.task_folders import language_model

FILES = {"config.json", "model.safetensors"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return fairseq.documents(tmp_path_factory.mktemp("documents"), np.random.default_rng(0))


def words(data, save) -> tuple:
    ours = [word for word in fairseq.TINY if word != "--no-export"]
    return (data, *fairseq.PLUGINS, *ours, "--batch-size", 4, "--log-interval", 1, "--save-dir", save)


def test_a_finished_training_leaves_its_model(data, tmp_path):
    result = fairseq.run("train", *words(data, tmp_path / "run"), "--max-update", 2)
    said = [line for line in (result.stdout + result.stderr).splitlines() if "can be opened by transformers" in line]
    assert len(said) == 1 and f"{tmp_path / 'run'} can be" in said[0]
    (tmp_path / "alone").mkdir()
    for path in (tmp_path / "run").iterdir():
        if path.suffix != ".pt":
            path.rename(tmp_path / "alone" / path.name)
    ours, theirs = unified.load(tmp_path / "run"), unified.load(tmp_path / "alone")
    assert ours.vocabulary.symbols == theirs.vocabulary.symbols
    after = theirs.model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in ours.model.state_dict().items())


def test_an_interrupted_training_leaves_checkpoints_alone(data, tmp_path):
    process = fairseq.start("train", *words(data, tmp_path), "--max-update", 10**6, "--save-interval-updates", 1)
    deadline = time.monotonic() + 120
    while not (tmp_path / "checkpoint_last.pt").is_file():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert fairseq.finish(process, check=False).returncode
    assert not FILES & {path.name for path in tmp_path.iterdir()}


def ended(folder, main=lambda cfg: None, **changes) -> set[str]:
    """Which of the files a folder has when ``main``, which fairseq runs, has ended."""
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.task = {"_name": "unified_lm", "no_export": False}
    cfg.checkpoint.save_dir, cfg.distributed_training.distributed_world_size = str(folder), 1
    cfg.dataset.batch_size = 1
    for name, value in changes.items():
        OmegaConf.update(cfg, name.replace("__", "."), value, merge=False)
    distributed_utils.call_main(cfg, main)
    return FILES & {path.name for path in folder.iterdir()}


def test_which_commands_leave_files(tmp_path, caplog):
    folder = language_model(tmp_path / "run")
    assert not ended(folder, task__no_export=True)
    assert not ended(folder, task={"_name": "masked_lm"})  # a task of fairseq, whose plug-ins stand beside ours
    assert not ended(folder, checkpoint__no_save=True)
    assert not ended(folder, common_eval__path=str(folder / "checkpoint_last.pt"))  # fairseq-validate
    assert not ended(folder, distributed_training__distributed_rank=1)

    def failing(cfg: object) -> None:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        ended(folder, failing)
    assert not FILES & {path.name for path in folder.iterdir()}
    assert ended(folder) == FILES
    with caplog.at_level(logging.WARNING):
        (tmp_path / "empty").mkdir()
        assert not ended(tmp_path / "empty")
    assert f"not written for transformers: {tmp_path / 'empty'}: holds neither checkpoint_best.pt" in caplog.text
