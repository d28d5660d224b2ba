"""Methods that stand in for fairseq's have the defaults of its arguments."""

import importlib
import inspect
import pkgutil

import pytest

import fairseq_plugins


def stand_ins():
    """Each method of the plug-ins that overrides one of fairseq's, with that one."""
    for found in pkgutil.walk_packages(fairseq_plugins.__path__, "fairseq_plugins."):
        module = importlib.import_module(found.name)
        own_classes = [one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == found.name]
        for own in own_classes:
            bases = [base for base in own.__mro__ if base.__module__.partition(".")[0] == "fairseq"]
            for method, ours in vars(own).items():
                theirs = next((vars(base)[method] for base in bases if method in vars(base)), None)
                if inspect.isroutine(theirs) and not method.startswith("__"):
                    yield pytest.param(unbound(ours), unbound(theirs), id=f"{own.__name__}.{method}")


def unbound(method):
    return method.__func__ if isinstance(method, classmethod | staticmethod) else method


@pytest.mark.parametrize(("ours", "theirs"), stand_ins())
def test_an_argument_has_the_default_of_fairseq_if_any(ours, theirs):
    own, given = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    for name in own.keys() & given.keys():
        assert own[name].default in (given[name].default, inspect.Parameter.empty), name


def test_the_methods_are_found():
    found = {one.id for one in stand_ins()}
    assert {
        "UnifiedLMTask.build_model", "UnifiedLMTask.load_dataset", "UnifiedLMTask.train_step",
        "UnifiedUnderstandingTask.load_dataset", "DictionaryTask.build_criterion", "UnifiedLMCriterion.forward",
        "UnifiedLMModel.load_state_dict", "RowFairseqDataset.batch_by_size", "HeadsFairseqDataset.batch_by_size",
    } <= found  # fmt: skip
