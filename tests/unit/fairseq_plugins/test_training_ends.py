"""Around a training of fairseq: its folder is locked, its model is exported, and bf16 is no request for a TPU."""

import importlib.util
import logging
from argparse import Namespace
from pathlib import Path

import pytest
from fairseq.dataclass import utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from omegaconf import OmegaConf

from fairseq_plugins import exports, precision, training_lock
from fairseq_plugins.exports import ExportConfig
from unified.errors import UnifiedError
from unified.files.locks import TRAINING, locked_training

MADE = "can be opened by transformers, too; --no-export of fairseq-train leaves these files out"


def configuration(folder: Path, rank: int | None = 0, **changes):
    """fairseq's settings of a training that saves into ``folder``."""
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.task = OmegaConf.structured(ExportConfig(_name="unified_lm"))
    cfg.checkpoint.save_dir = str(folder)
    cfg.distributed_training.distributed_init_method = "tcp://localhost:1"
    cfg.distributed_training.distributed_rank = rank
    for name, value in changes.items():
        OmegaConf.update(cfg, name.replace("__", "."), value, merge=False)
    return cfg


@pytest.fixture
def installed(monkeypatch):
    """Lets a module wrap ``inner`` in place of fairseq's ``call_main``; returns the wrapped function."""

    def install(module, inner):
        monkeypatch.setattr(distributed_utils, "call_main", inner)
        module.install()
        return distributed_utils.call_main

    return install


def test_the_folder_of_a_training_is_locked_while_it_runs(tmp_path, installed):
    seen, cfg = [], configuration(tmp_path / "run")

    def inner(cfg, main, **keywords):
        with pytest.raises(UnifiedError), locked_training(tmp_path / "run"):
            pass
        seen.append((cfg, main, keywords, [path.name for path in (tmp_path / "run").iterdir()]))

    call = installed(training_lock, inner)
    call(cfg, "main", more=1)
    assert seen == [(cfg, "main", {"more": 1}, [TRAINING])]
    assert not any((tmp_path / "run").iterdir())


def test_parts_of_checkpoints_that_killed_trainings_left_are_removed_first(tmp_path, installed):
    (part := tmp_path / ".checkpoint_last.pt.12.partial").touch()
    left = []
    call = installed(training_lock, lambda cfg, main: left.append(part.exists()))
    call(configuration(tmp_path), "main")
    assert left == [False]


def test_a_folder_in_use_is_refused_and_its_files_stay(tmp_path, installed):
    (part := tmp_path / ".checkpoint_last.pt.12.partial").touch()  # the other training may be writing it
    trained = []
    call = installed(training_lock, lambda cfg, main: trained.append(main))
    with locked_training(tmp_path), pytest.raises(SystemExit) as raised:
        call(configuration(tmp_path), "main")
    assert str(raised.value).startswith(f"unified_lm: error: {tmp_path}: ") and part.exists() and not trained


@pytest.mark.parametrize(
    "changes",
    [{"rank": 1}, {"rank": None}, {"common_eval__path": "model.pt"}, {"checkpoint__no_save": True}],
    ids=["another process", "a process that starts others", "a command that reads a model", "nothing is saved"],
)
def test_a_process_that_saves_nothing_locks_nothing(tmp_path, installed, changes):
    seen = []
    call = installed(training_lock, lambda cfg, main: seen.append(main))
    call(configuration(tmp_path / "run", **changes), "main")
    assert seen == ["main"] and not (tmp_path / "run").exists()


@pytest.mark.parametrize("rank", [0, 1])
def test_fairseq_is_asked_for_a_rank_that_is_not_known_yet(tmp_path, installed, monkeypatch, rank):
    def infer(settings):
        settings.distributed_rank = rank

    monkeypatch.setattr(distributed_utils, "infer_init_method", infer)
    locked = []
    call = installed(training_lock, lambda cfg, main: locked.append((tmp_path / TRAINING).exists()))
    for method, own in ((None, 1 - rank), ("tcp://localhost:1", rank)):
        cfg = configuration(tmp_path, rank=own)
        cfg.distributed_training.distributed_init_method = method
        call(cfg, "main")
    assert locked == [rank == 0] * 2


@pytest.fixture
def exported(monkeypatch):
    """Replaces the export; returns the folders that would be exported."""
    found = []
    monkeypatch.setattr(exports, "publish", found.append)
    return found


def test_a_model_is_exported_when_its_training_has_ended(tmp_path, installed, exported):
    def inner(cfg, main, **keywords):
        assert not exported and (main, keywords) == ("main", {"more": 1})

    installed(exports, inner)(configuration(tmp_path), "main", more=1)
    assert exported == [tmp_path]
    exported.clear()

    def failing(cfg, main):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        installed(exports, failing)(configuration(tmp_path), "main")
    assert not exported


@pytest.mark.parametrize(
    "changes",
    [
        {"common_eval__path": "model.pt"}, {"checkpoint__no_save": True}, {"task__no_export": True},
        {"task": {"_name": "translation"}}, {"rank": 1},
    ],
)  # fmt: skip
def test_other_commands_tasks_and_processes_export_nothing(tmp_path, installed, exported, changes):
    installed(exports, lambda cfg, main: None)(configuration(tmp_path, **changes), "main")
    assert not exported


@pytest.mark.parametrize(
    ("before", "after", "exports_it"),
    [(0, None, True), (1, None, False), (None, 0, True), (None, 1, False), (0, 1, False)],
)
def test_the_process_of_rank_0_exports_also_where_it_has_started_the_others(
    tmp_path, installed, exported, before, after, exports_it
):
    def inner(cfg, main):
        cfg.distributed_training.distributed_rank = after

    installed(exports, inner)(configuration(tmp_path, rank=before), "main")
    assert exported == [tmp_path] * exports_it


def test_a_model_that_cannot_be_exported_is_a_warning_in_the_log(tmp_path, monkeypatch, caplog):
    def refused(folder):
        raise UnifiedError("it has heads of ours")

    caplog.set_level(logging.INFO, logger="fairseq_plugins.exports")
    monkeypatch.setattr(exports, "publish", refused)
    exports.export(tmp_path)
    monkeypatch.setattr(exports, "publish", lambda folder: None)
    exports.export(tmp_path)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "not written for transformers: it has heads of ours"),
        ("INFO", f"{tmp_path} {MADE}"),
    ]


@pytest.mark.parametrize(
    ("options", "tpus", "tpu"),
    [
        ({"bf16": True, "tpu": True}, False, False),
        ({"bf16": True}, False, False),
        ({"bf16": True, "tpu": True}, True, True),
        ({"bf16": False, "tpu": True}, False, True),
        ({"tpu": True}, False, True),
    ],
)
def test_half_precision_is_no_request_for_a_tpu_where_there_is_none(monkeypatch, options, tpus, tpu):
    asked = []

    def find_spec(name):
        asked.append(name)
        return "found" if tpus else None

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(utils, "override_module_args", lambda args: ("overridden", args))
    precision.install()
    args = Namespace(**options)
    assert utils.override_module_args(args) == ("overridden", args)
    assert args.tpu is tpu and set(asked) <= {"torch_xla"}
