"""What a checkpoint's settings may not choose: classes of fairseq itself, unknown names, modules to import."""

import os
from argparse import Namespace

import pytest
from fairseq import tasks
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from omegaconf import OmegaConf

from fairseq_plugins import trust
from fairseq_plugins.models import unified_lm  # noqa: F401  (registers the model)
from fairseq_plugins.tasks import unified_lm as unified_lm_task  # noqa: F401  (registers the task)
from unified.errors import UnifiedError

OWN = {"_name": "unified_lm", "arch": "unified_lm_tiny"}


def given(options, function, *arguments):
    """What a function says while a checkpoint is loaded with these options of the command."""
    load = trust.noting_options(lambda filenames, overrides=None: function(*arguments))
    return load(["model.pt"], options)


@pytest.mark.parametrize("kind", [dict, OmegaConf.create, lambda settings: Namespace(**settings)])
def test_our_models_and_criterions_are_built(kind):
    trust.check_model(kind(OWN))
    trust.check_model(kind({"arch": "bert_base"}))
    trust.check_criterion(kind({"_name": "unified_lm"}))
    trust.check_criterion(kind({"criterion": "unified_understanding"}))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"_name": "unified_lm", "arch": "fconv"}, "the model 'fconv' of fairseq itself, whose settings may be "
            "evaluated as Python; where you trust it, leave --user-dir out"),
        ({"_name": "transformer", "arch": "unified_lm_tiny"}, "the model 'transformer' of fairseq itself, "),
        ({"model": "roberta"}, "the model 'roberta' of fairseq itself, "),
        ({"_name": "unified"}, "a model 'unified', which is not known"),
        ({}, "a model None, which is not known"),
        ({"_name": 3}, "a model None, which is not known"),
        (None, "a model None, which is not known"),
        ("transformer", "the model 'transformer' of fairseq itself, "),
    ],
)  # fmt: skip
def test_other_models_are_refused(settings, says):
    assert {"fconv", "roberta"} <= {*MODEL_REGISTRY, *ARCH_MODEL_REGISTRY}
    with pytest.raises(UnifiedError) as raised:
        trust.check_model(settings)
    assert str(raised.value).startswith(f"the checkpoint names {says}")


def test_a_criterion_of_fairseq_is_refused():
    assert "cross_entropy" in REGISTRIES["criterion"]["registry"]
    for settings in ("cross_entropy", {"_name": "cross_entropy"}):
        with pytest.raises(
            UnifiedError, match="^the checkpoint names the criterion 'cross_entropy' of fairseq itself, "
        ):
            trust.check_criterion(settings)


def test_a_model_or_criterion_of_the_library_may_be_given_by_its_name_alone():
    trust.check_model("unified_lm")
    trust.check_criterion("unified_understanding")


def test_a_backend_to_import_is_taken_from_the_command_alone():
    settings = {**OWN, "attention_backend": "os:system"}
    says = (
        "^the checkpoint names the attention backend os:system of another library, and no checkpoint chooses what is "
    )
    for options in ({}, None, {"beam": 3}):
        with pytest.raises(UnifiedError, match=says):
            given(options, trust.check_model, settings)
    given({"attention_backend": "os:system"}, trust.check_model, settings)
    with pytest.raises(UnifiedError, match=says):
        trust.check_model(settings)
    trust.check_model({**OWN, "attention_backend": "dense"})


def test_what_the_command_gives_is_known_while_a_checkpoint_is_loaded():
    assert not trust.is_given("objectives")
    assert given({"objectives": None}, trust.is_given, "objectives")
    assert not given({"beam": 3}, trust.is_given, "objectives") and not given(None, trust.is_given, "objectives")

    def failing():
        assert trust.is_given("beam")
        raise ValueError

    with pytest.raises(ValueError):
        given({"beam": 3}, failing)
    assert not trust.is_given("beam")


def test_a_task_of_a_checkpoint_is_looked_at_before_it_is_made():
    made = []
    setup = trust.checking_tasks(lambda cfg, **keywords: made.append((cfg, keywords)) or "task")
    assert "translation" in tasks.TASK_REGISTRY
    with pytest.raises(SystemExit, match="^unified_lm: error: the checkpoint names the task 'translation' of fairseq "):
        setup(OmegaConf.create({"_name": "translation"}), from_checkpoint=True)
    assert not made
    for keywords in ({"from_checkpoint": False}, {}):
        assert setup({"_name": "translation"}, **keywords) == "task"
    assert setup({"_name": "unified_lm"}, from_checkpoint=True) == "task"
    assert [cfg["_name"] for cfg, _ in made] == ["translation", "translation", "unified_lm"]
    assert [keywords for _, keywords in made] == [{"from_checkpoint": False}, {}, {"from_checkpoint": True}]


def test_processes_that_a_training_starts_do_not_import_from_the_current_folder(monkeypatch):
    seen = {}
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.task, cfg.checkpoint.no_save, cfg.distributed_training.distributed_world_size = {"_name": "other"}, True, 1
    distributed_utils.call_main(cfg, lambda cfg: seen.update(os.environ))
    assert seen["PYTHONSAFEPATH"] == "1" and "PYTHONSAFEPATH" not in os.environ
