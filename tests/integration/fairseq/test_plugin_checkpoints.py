"""Checkpoint files as fairseq's commands meet them: malicious, truncated, killed in mid-copy."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from unittest import mock

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf

from fairseq_plugins.checkpoints import copy_atomically
from fairseq_plugins.task import DictionaryTask
from tests.support import fairseq_runs as fairseq
from tests.support.full_disk import full_disk


class Touch:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    return fairseq.pairs(tmp_path_factory.mktemp("pairs"), lambda row: row, rng, {"train": 20, "valid": 5, "test": 5})


@pytest.mark.parametrize("command", ["generate", "train"])
@pytest.mark.parametrize("kind", ["malicious", "truncated"])
def test_a_bad_checkpoint_is_refused_by_name_and_not_run(data, tmp_path, command, kind):
    path, trap = tmp_path / "model.pt", tmp_path / "executed"
    torch.save({"cfg": None, "model": {"weight": torch.zeros(1000)}, "extra": Touch(trap)}, path)
    if kind == "truncated":
        path.write_bytes(path.read_bytes()[:-1000])
    if command == "generate":
        result = fairseq.run("generate", data, *fairseq.PLUGINS, "--path", path, "--cpu", check=False)
    else:
        result = fairseq.train(data, tmp_path / "save", "--restore-file", path, "--batch-size", 2, check=False)
    assert result.returncode != 0
    assert not trap.exists()
    message = [line for line in result.stderr.splitlines() if line.startswith("unified_lm: error:")]
    assert len(message) == 1 and str(path) in message[0], result.stderr[-800:]
    assert "Traceback" not in result.stderr


COPY = """
import sys
sys.path.insert(0, {root!r})
from fairseq_plugins.checkpoints import copy_atomically
copy_atomically({source!r}, {target!r}, overwrite=True)
"""


def test_a_kill_while_a_checkpoint_is_copied_leaves_the_old_one(tmp_path):
    source, target = tmp_path / "checkpoint_1_10.pt", tmp_path / "checkpoint_last.pt"
    torch.save({"old": torch.ones(3)}, target)
    torch.save({"new": torch.zeros(10_000_000)}, source)
    code = COPY.format(root=str(fairseq.ROOT), source=str(source), target=str(target))
    process = subprocess.Popen([sys.executable, "-c", code], env=fairseq.environment())
    part = tmp_path / f".checkpoint_last.pt.{process.pid}.partial"
    deadline = time.time() + 60
    while process.poll() is None and time.time() < deadline:
        if os.path.exists(part) and os.path.getsize(part) > 1_000_000:
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(0.0005)
    assert process.wait() == -signal.SIGKILL, "the copy was over before it could be killed"
    assert list(torch.load(target, weights_only=True)) == ["old"]
    copy_atomically(str(source), str(target), overwrite=True)
    assert list(torch.load(target, weights_only=True)) == ["new"]


def test_a_full_disk_ends_a_training_with_one_line_and_leaves_what_was_there(tmp_path):
    """While a checkpoint is saved, of which torch says a RuntimeError, and while it is copied."""
    importlib.import_module("fairseq_plugins")
    path, large = tmp_path / "checkpoint_last.pt", tmp_path / "large.pt"
    checkpoint_utils.torch_persistent_save({"old": torch.ones(3)}, str(path))
    checkpoint_utils.torch_persistent_save({"new": torch.zeros(50_000)}, str(large))
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    why = f"^unified_lm: error: {path}: File too large; the checkpoints before it are whole: the same command goes on"
    with full_disk(100_000):
        with pytest.raises(SystemExit, match=why):
            checkpoint_utils.torch_persistent_save({"new": torch.zeros(50_000)}, str(path))
        with pytest.raises(SystemExit, match=why):
            copy_atomically(str(large), str(path), overwrite=True)
    with pytest.raises(FileNotFoundError, match=r"missing\.pt"):  # the source's name, not the target's
        copy_atomically(str(tmp_path / "missing.pt"), str(path), overwrite=True)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before
    with pytest.raises(TypeError):  # an error in what is saved keeps its traceback
        checkpoint_utils.torch_persistent_save({"new": (one for one in "")}, str(path))
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("no_save", "ours", "gathered"), [(False, True, 1), (True, True, 0), (False, False, 0)])
def test_what_processes_hold_is_gathered_before_a_checkpoint(tmp_path, no_save, ours, gathered):
    """In a process that writes none itself."""
    task, calls = mock.Mock(spec=DictionaryTask if ours else FairseqTask), []
    task.before_saving = lambda: calls.append("gathered")
    trainer = mock.Mock(task=task, data_parallel_rank=0, should_save_checkpoint_on_current_rank=False)
    trainer.cfg = OmegaConf.create({"task": {"data": str(tmp_path)}})
    cfg = OmegaConf.structured(CheckpointConfig(save_dir=str(tmp_path), no_save=no_save))
    assert checkpoint_utils.save_checkpoint(cfg, trainer, None, None) is None
    assert len(calls) == gathered


def test_a_moving_average_of_the_weights_is_kept(data, tmp_path):
    save = tmp_path / "save"
    average = ("--store-ema", "--ema-decay", 0.75, "--batch-size", 1, "--save-interval-updates", 1)
    fairseq.train(data, save, *average, "--max-update", 2)
    fairseq.train(data, save, *average, "--max-update", 3)  # resumed
    states = [torch.load(save / f"checkpoint_1_{update}.pt", weights_only=True) for update in (1, 2, 3)]
    for before, after in zip(states, states[1:], strict=False):
        old, new = before["extra_state"]["ema"], after["extra_state"]["ema"]
        assert old.keys() == new.keys() == after["model"].keys()
        for name, weight in after["model"].items():
            expected = weight if name == "dictionary_version" else 0.75 * old[name] + 0.25 * weight
            torch.testing.assert_close(new[name], expected, rtol=1e-5, atol=1e-7)
