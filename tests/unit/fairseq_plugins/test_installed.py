"""What importing the plug-ins changes: which functions of fairseq they stand around, and what torch may load."""

import argparse
import os
from collections.abc import Callable
from inspect import isfunction

import pytest
import torch
from fairseq import checkpoint_utils, tasks
from fairseq.dataclass import utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

import fairseq_plugins  # noqa: F401  (changes fairseq)


def modules_around(function: Callable) -> list[str]:
    """Modules of a function and of all functions that it was wrapped around, from outside."""
    inside = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__module__, *(name for one in inside if isfunction(one) for name in modules_around(one))]


CHANGED = {
    "torch_persistent_save": (checkpoint_utils.torch_persistent_save, {"checkpoints"}),
    "save_checkpoint": (checkpoint_utils.save_checkpoint, {"checkpoints"}),
    "load_checkpoint": (checkpoint_utils.load_checkpoint, {"checkpoints", "restarts"}),
    "load_checkpoint_to_cpu": (checkpoint_utils.load_checkpoint_to_cpu, {"checkpoints"}),
    "load_model_ensemble_and_task": (checkpoint_utils.load_model_ensemble_and_task, {"trust"}),
    "setup_task": (tasks.setup_task, {"trust"}),
    "eval_str_list": (utils.eval_str_list, {"training_checks"}),
    "override_module_args": (utils.override_module_args, {"precision"}),
    "Trainer.load_checkpoint": (Trainer.load_checkpoint, {"restarts"}),
    "train_step": (Trainer.train_step, {"divergence", "first_updates", "updates"}),
    "call_main": (distributed_utils.call_main, {"exports", "training_checks", "training_lock"}),
}


@pytest.mark.parametrize("name", CHANGED)
def test_functions_of_fairseq_are_wrapped_by_the_modules_that_say_so(name):
    function, own = CHANGED[name]
    *around, innermost = modules_around(function)
    assert own == {
        module.removeprefix("fairseq_plugins.") for module in around if module.startswith("fairseq_plugins.")
    }
    assert innermost.startswith("fairseq.")


def test_processes_that_a_training_starts_do_not_import_from_the_current_folder(monkeypatch):
    seen = {}
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.task, cfg.checkpoint.no_save, cfg.distributed_training.distributed_world_size = {"_name": "other"}, True, 1
    distributed_utils.call_main(cfg, lambda cfg: seen.update(os.environ))
    assert seen["PYTHONSAFEPATH"] == "1" and "PYTHONSAFEPATH" not in os.environ


def test_files_are_copied_whole_and_one_more_class_may_be_loaded():
    assert PathManager.copy.__module__ == "fairseq_plugins.checkpoints"
    assert argparse.Namespace in torch.serialization.get_safe_globals()
