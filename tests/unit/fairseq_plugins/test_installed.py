"""What importing the plug-ins changes: which functions of fairseq they stand around, and what torch may load."""

import argparse
import importlib
from collections.abc import Callable
from inspect import isfunction
from itertools import groupby

import pytest
import torch
from fairseq import checkpoint_utils, tasks, trainer
from fairseq.data import data_utils
from fairseq.dataclass import utils
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.optim import AMPOptimizer
from fairseq.trainer import Trainer

import fairseq_plugins
from fairseq_plugins import checkpoints, divergence, restarts


def modules_around(function: Callable) -> list[str]:
    """Modules of a function and of all functions that it was wrapped around, from outside."""
    inside = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__module__, *(name for one in inside if isfunction(one) for name in modules_around(one))]


#: Functions of fairseq by their owners and names, and the modules that wrap each, from outside.
CHANGED = {
    (checkpoint_utils, "torch_persistent_save"): ["checkpoints"],
    (checkpoint_utils, "save_checkpoint"): ["checkpoints"],
    (checkpoint_utils, "load_checkpoint"): ["restarts"],
    (checkpoint_utils, "load_checkpoint_to_cpu"): ["checkpoints"],
    (checkpoint_utils, "load_model_ensemble_and_task"): ["trust", "checkpoints"],
    (tasks, "setup_task"): ["trust"],
    (data_utils, "raise_if_valid_subsets_unintentionally_ignored"): ["training_checks"],
    (utils, "eval_str_list"): ["training_checks"],
    (utils, "override_module_args"): ["training_checks", "precision"],
    (Trainer, "get_train_iterator"): ["updates"],
    (Trainer, "load_checkpoint"): ["restarts"],
    (Trainer, "train_step"): ["divergence", "updates", "first_updates"],
    (distributed_utils, "call_main"): ["training_checks", "training_lock", "exports"],
}


def own_modules_around(owner: object, name: str) -> list[str]:
    """The plug-ins' modules around a function, from outside; each once, however many functions of it follow another."""
    found = [module for module, _ in groupby(modules_around(vars(owner)[name]))]
    return [one.removeprefix("fairseq_plugins.") for one in found if one.startswith("fairseq_plugins.")]


def stand_in(*arguments, **options):
    """Stands in for a function of fairseq that the plug-ins have not changed."""


@pytest.mark.parametrize(("owner", "name"), CHANGED, ids=[name for _, name in CHANGED])
def test_functions_of_fairseq_are_wrapped_by_the_modules_that_say_so(owner, name):
    assert own_modules_around(owner, name) == CHANGED[owner, name]
    assert modules_around(vars(owner)[name])[-1].startswith("fairseq.")


def test_importing_the_plug_ins_makes_every_change(monkeypatch):
    for owner, name in [*CHANGED, (PathManager, "copy"), (trainer, "NanDetector"), (AMPOptimizer, "load_state_dict")]:
        monkeypatch.setattr(owner, name, stand_in)
    with torch.serialization.safe_globals([]):
        torch.serialization.clear_safe_globals()
        importlib.reload(fairseq_plugins)
        assert torch.serialization.get_safe_globals() == [argparse.Namespace]
    assert {changed: own_modules_around(*changed) for changed in CHANGED} == CHANGED
    assert PathManager.copy is checkpoints.copy_atomically and trainer.NanDetector is divergence.ForwardNanDetector
    assert AMPOptimizer.load_state_dict is restarts.load_into_the_chosen_optimizer


def test_files_are_copied_whole_and_one_more_class_may_be_loaded():
    assert PathManager.copy.__module__ == "fairseq_plugins.checkpoints"
    assert argparse.Namespace in torch.serialization.get_safe_globals()
