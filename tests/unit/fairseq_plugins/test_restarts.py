"""A checkpoint that other options have made: its average of parameters begins, and what does not fit is refused."""

import logging
from types import SimpleNamespace

import pytest
import torch
from fairseq.dataclass.configs import EMAConfig
from fairseq.models.ema.ema import EMA
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from fairseq.optim.adamax import FairseqAdamax
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer, MemoryEfficientFP16Optimizer
from fairseq.trainer import Trainer
from omegaconf import OmegaConf
from torch import nn

from fairseq_plugins import best_checkpoints, early_stopping
from fairseq_plugins.criterions.unified_lm import UnifiedLMCriterion
from fairseq_plugins.optimizer import UnifiedAdam, UnifiedAdamax, UnifiedAdamaxConfig, UnifiedAdamConfig
from fairseq_plugins.parameter_groups import Role
from fairseq_plugins.restarts import going_on, loading_what_other_options_made
from fairseq_plugins.task import DictionaryTask
from unified.errors import UnifiedError

BASE = {
    "criterion_name": "UnifiedLMCriterion", "optimizer_name": "UnifiedAdam", "lr_scheduler_state": {"lr": 1.0},
    "num_updates": 3,
}  # fmt: skip


def made(kind: type) -> object:
    """An object of a class, without what its class does at its beginning."""
    return object.__new__(kind)


def trainer(store_ema=False, ema_fp32=False, optimizer=UnifiedAdam, schedule=None, history=(BASE,), task=None, done=3):
    averages = {"store_ema": store_ema, "ema_fp32": ema_fp32}
    cfg = OmegaConf.create({"ema": averages, "checkpoint": {"finetune_from_model": "begin.pt"}})
    OmegaConf.set_struct(cfg, True)
    return SimpleNamespace(
        cfg=cfg,
        task=task,
        ema=None,
        optimizer=made(optimizer),
        lr_scheduler=SimpleNamespace(state_dict=lambda: schedule or {"lr": 1.0}),
        get_criterion=lambda: made(UnifiedLMCriterion),
        get_num_updates=lambda: done,
        _optim_history=[*history],
    )


def test_fairseqs_trainer_loads_a_checkpoint_without_an_average():
    """fairseq read the parameters that it had deleted: KeyError, also with --finetune-from-model."""
    own, seen = trainer(store_ema=True), []

    def load(trainer, *given, **options):
        seen.append((trainer.cfg.ema.store_ema, given, options))
        return {"train_iterator": {}}

    assert loading_what_other_options_made(load)(own, "a.pt", True, reset_meters=False) == {"train_iterator": {}}
    assert seen == [(False, ("a.pt", True, False, None), {"reset_meters": False})]
    assert own.cfg.ema.store_ema is True and own.ema is None
    assert loading_what_other_options_made(lambda trainer, name, *given: None)(own, "a.pt") is None


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("saved_exact", [False, True])
def test_the_average_of_a_checkpoint_goes_on(exact, saved_exact):
    config = EMAConfig(store_ema=True, ema_decay=0.5, ema_fp32=exact)
    own = trainer(store_ema=True, ema_fp32=exact)
    own.ema = EMA(nn.Linear(1, 1, bias=False), config)
    state = {"ema": {"weight": torch.tensor([[3.0]])}}
    if saved_exact:
        state["ema_fp32_params"] = {"weight": torch.tensor([[3.25]])}
    loading_what_other_options_made(lambda trainer, name, *given: state)(own, "a.pt")
    average = own.ema.fp32_params["weight"] if exact else own.ema.get_model().weight
    assert average.item() == (3.25 if exact and saved_exact else 3.0)


@pytest.mark.parametrize("exact", [False, True])
def test_with_the_parameters_alone_the_average_begins_with_them(exact):
    """It was that of the training before, in which tables may have another size."""
    own = trainer(store_ema=True, ema_fp32=exact)
    own.ema = EMA(nn.Linear(1, 1, bias=False), EMAConfig(store_ema=True, ema_fp32=exact))
    begun = own.ema.get_model().weight.item()
    for before in (torch.tensor([[begun + 1]]), torch.ones(2, 1)):
        state = {"ema": {"weight": before}, "ema_fp32_params": {"weight": before}}
        loading_what_other_options_made(lambda *given, state=state: state)(own, "a.pt", True)
        assert own.ema.get_model().weight.item() == begun
        assert [average.item() for average in own.ema.fp32_params.values()] == [begun] * exact


def test_without_the_option_no_average_is_loaded():
    state = {"ema": {"weight": torch.tensor([[3.0]])}}
    assert loading_what_other_options_made(lambda trainer, name, *given: state)(trainer(), "a.pt") is state


@pytest.mark.parametrize(
    ("changes", "of_run", "said"),
    [
        ({}, {"optimizer": UnifiedAdamax}, ("--optimizer unified_adam", "--optimizer unified_adamax")),
        ({}, {"optimizer": FP16Optimizer}, ("--optimizer unified_adam", "--fp16 or --bf16")),
        (
            {"optimizer_name": "FP16Optimizer"},
            {"optimizer": MemoryEfficientFP16Optimizer},
            ("--fp16 or --bf16", "--memory-efficient-fp16 or --memory-efficient-bf16"),
        ),
        ({"optimizer_name": "AMPOptimizer"}, {}, ("--amp", "--optimizer unified_adam")),
        ({"optimizer_name": "Another"}, {"optimizer": AMPOptimizer}, ("Another", "--amp")),
        ({"criterion_name": "CrossEntropyCriterion"}, {}, ("--criterion cross_entropy", "--criterion unified_lm")),
    ],
)
def test_another_optimizer_or_criterion_is_named_by_its_option(changes, of_run, said):
    def load(trainer, name, *given):
        raise AssertionError("Optimizer does not match")

    own = trainer(store_ema=True, history=[{}, {**BASE, **changes}], **of_run)
    with pytest.raises(SystemExit) as raised:
        loading_what_other_options_made(load)(own, "a.pt")
    assert str(raised.value) == (
        f"unified_lm: error: a.pt was trained with {said[0]}, this run has {said[1]}; --reset-optimizer goes on with "
        "the parameters alone and counts updates from 0"
    )
    assert own.cfg.ema.store_ema is True


def test_other_groups_of_parameters_are_refused_by_their_options():
    """torch refuses another number of groups of parameters by a traceback."""

    def loading(saved, own):
        def load(trainer, name, *given):
            weights = [nn.Parameter(torch.zeros(1)) for _ in range(3)]
            state, optimizer = (torch.optim.SGD(groups(weights), lr=1.0) for groups in (saved, own))
            optimizer.load_state_dict(state.state_dict())

        with pytest.raises(SystemExit) as raised:
            loading_what_other_options_made(load)(trainer(history=[BASE]), "a.pt")
        return str(raised.value)

    def one(weights):
        return [{"params": weights}]

    def two(weights):
        return [{"params": weights[:1]}, {"params": weights[1:]}]

    said = (
        "unified_lm: error: a.pt was trained with other groups of parameters (--weight-decay, --layer-decay, "
        "--head-lr, --head-weight-decay, --decay-biases-and-norms) or other heads; --reset-optimizer goes on with the "
        "parameters alone and counts updates from 0"
    )
    assert loading(one, two) == loading(two, one) == loading(one, lambda weights: one(weights[:2])) == said


class Told(DictionaryTask):
    """A task that is told of checkpoints, and refuses those that say so."""

    def __init__(self):
        self.told = []

    def require_same_meaning(self, extra_state, heads_may_differ):
        self.told.append((extra_state, heads_may_differ))
        if extra_state.get("other"):
            raise UnifiedError("means something else")


def optimizer_of(kind, decay, beta, eps):
    """An optimizer of a parameter that decays; one of ours has a bias in a group of its own, too."""
    weight, bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    weight.param_group, bias.param_group = Role(), Role(decays=False)
    prefix = "adamax" if kind in (FairseqAdamax, UnifiedAdamax) else "adam"
    moments = {f"{prefix}_betas": f"({beta}, 0.99)", f"{prefix}_eps": eps}
    if kind is FairseqAdamax:
        return kind(SimpleNamespace(lr=[1.0], weight_decay=decay, no_bias_correction=False, **moments), [weight])
    if kind is FairseqAdam:
        own = FairseqAdamConfig(lr=[1.0], weight_decay=decay, use_old_adam=True, **moments)
        return kind(OmegaConf.create(vars(own) | {"tpu": False}), [weight])
    defaults = UnifiedAdamConfig() if kind is UnifiedAdam else UnifiedAdamaxConfig()
    return kind(OmegaConf.create({**vars(defaults), "lr": [1.0], "weight_decay": decay, **moments}), [weight, bias])


def within(wrapper, optimizer):
    """The optimizer in the one that fairseq puts around it with ``--amp`` or ``--fp16``; None puts none around it."""
    if wrapper is None:
        return optimizer
    around = made(wrapper)
    around.fp32_optimizer = optimizer
    return around


@pytest.mark.parametrize("wrapper", [None, AMPOptimizer, FP16Optimizer])
@pytest.mark.parametrize("kind", [FairseqAdam, FairseqAdamax, UnifiedAdam, UnifiedAdamax])
@pytest.mark.parametrize("overrides", [{}, {"eps": 0.5, "weight_decay": 0.04}])
def test_a_restart_has_the_options_of_its_command(kind, overrides, wrapper):
    """But the rate, which the schedule sets; fairseq kept those of the state, but for --optimizer-overrides."""

    def restarted(task, reset=False, given=overrides, name="a.pt"):
        own = trainer(task=task)
        own.optimizer = within(wrapper, optimizer_of(kind, 0.02, 0.7, 1e-2))

        def load(trainer, name, reset_optimizer, reset_lr_scheduler, optimizer_overrides):
            if not reset_optimizer:
                trainer.optimizer.load_state_dict(before.state_dict(), optimizer_overrides)
            return {"some": "state"}

        assert loading_what_other_options_made(load)(own, name, reset, False, given) == {"some": "state"}
        return [[group[one] for one in ("weight_decay", "betas", "eps", "lr")] for group in own.optimizer.param_groups]

    before = optimizer_of(kind, 0.01, 0.9, 1e-3)
    before.set_lr(0.125)
    biases = [] if kind in (FairseqAdam, FairseqAdamax) else [0.0]
    options = (0.7, 0.99), overrides.get("eps", 1e-2)
    task = Told()
    decay = overrides.get("weight_decay", 0.02)
    assert restarted(task) == [[decay, *options, 0.125] for decay in (decay, *biases)]
    assert restarted(task, reset=True) == [[decay, (0.7, 0.99), 1e-2, 1.0] for decay in (0.02, *biases)]
    assert task.told == [({"some": "state"}, False), ({"some": "state"}, True)]
    restarted(task, reset=True, name="begin.pt")  # a new training begins with these parameters
    assert len(task.told) == 2
    if kind is FairseqAdam:  # tasks of others do as fairseq does
        kept = {"weight_decay": 0.01, "eps": 1e-3, **overrides}
        assert restarted(None) == [[kept["weight_decay"], (0.9, 0.99), kept["eps"], 0.125]]


def test_a_checkpoint_without_a_state_of_the_optimizer_is_refused():
    """Without a refusal the same command would train anew from the parameters, and say nothing."""

    def loads(done, saved, task, reset=False, name="run/a.pt"):
        own = trainer(history=[{**BASE, "num_updates": 9}, {**BASE, "num_updates": saved}], done=done, task=task)
        own.optimizer = optimizer_of(UnifiedAdam, 0.01, 0.9, 1e-3)
        state = loading_what_other_options_made(lambda *given: {"some": "state"})(own, name, reset)
        return state == {"some": "state"}

    with pytest.raises(SystemExit) as raised:
        loads(0, 1, Told())
    assert str(raised.value) == (
        "unified_lm: error: run/a.pt has no state of the optimizer (--no-save-optimizer-state); --reset-optimizer goes "
        "on with the parameters alone and counts updates from 0"
    )
    assert loads(0, 1, Told(), reset=True) and loads(0, 1, Told(), reset=True, name="begin.pt")
    assert loads(0, 0, Told())  # a converted model has made no update here
    assert loads(1, 1, Told()) and loads(0, 1, None)  # tasks of others do as fairseq does


def test_a_checkpoint_that_means_something_else_is_refused():
    with pytest.raises(SystemExit) as raised:
        loading_what_other_options_made(lambda *given: {"other": True})(trainer(task=Told()), "run/a.pt")
    assert str(raised.value) == "unified_lm: error: run/a.pt: means something else"


def test_another_schedule_is_refused():
    def load(trainer, name, *given):
        raise KeyError("best")

    with pytest.raises(SystemExit) as raised:
        loading_what_other_options_made(load)(trainer(schedule={"best": None}, history=[BASE]), "a.pt")
    said = "a.pt was trained with another --lr-scheduler; --reset-lr-scheduler begins that of this run"
    assert str(raised.value) == f"unified_lm: error: {said}"


@pytest.mark.parametrize("history", [[], [BASE]], ids=["nothing is read", "nothing differs"])
@pytest.mark.parametrize("error", [AssertionError, KeyError, ValueError])
def test_errors_of_other_causes_stay_what_they_are(history, error):
    def load(trainer, name, *given):
        raise error("model")

    with pytest.raises(error, match="model"):
        loading_what_other_options_made(load)(trainer(history=history), "a.pt")


def training(max_update=0, done=0, restore="checkpoint_last.pt", max_epoch=0, once=None, save_dir="run"):
    """A trainer that has made ``done`` updates."""
    own = {"optimization": {"max_update": max_update, "max_epoch": max_epoch}, "checkpoint": {"restore_file": restore}}
    cfg = OmegaConf.create(own)
    cfg.checkpoint.update(save_dir=str(save_dir), continue_once=once, checkpoint_suffix=None, finetune_from_model=None)
    cfg.checkpoint.update(best_checkpoint_metric="loss", load_checkpoint_on_all_dp_ranks=False)
    OmegaConf.set_struct(cfg, True)
    return SimpleNamespace(cfg=cfg, get_num_updates=lambda: done)


def last_epoch(*given, **options):
    """Loads a checkpoint of some updates; returns ``--max-epoch`` as the training finds it then."""
    trainer = training(*given, **options)
    load = going_on(lambda cfg, trainer, **more: (None, more))
    assert load(trainer.cfg.checkpoint, trainer, a=1) == (None, {"a": 1})
    return trainer.cfg.optimization.max_epoch


def test_every_process_reads_a_checkpoint_itself():
    def load(cfg, trainer):
        assert cfg is trainer.cfg.checkpoint and cfg.load_checkpoint_on_all_dp_ranks is True
        return {"some": "state"}, "iterator"

    trainer = training()
    assert going_on(load)(trainer.cfg.checkpoint, trainer) == ({"some": "state"}, "iterator")


@pytest.mark.parametrize("state", [None, {"some": "state"}])
def test_validations_and_the_best_value_are_told_of_what_was_loaded(monkeypatch, state):
    """And whether it is another training's."""
    told = []
    monkeypatch.setattr(early_stopping, "restore", lambda *given: told.append(given))
    monkeypatch.setattr(best_checkpoints, "forget", lambda *given: told.append(given))
    for restore, other in (("checkpoint_last.pt", None), ("other/a.pt", "other/a.pt")):
        trainer = training(restore=restore)
        cfg = trainer.cfg.checkpoint
        going_on(lambda cfg, trainer: (state, "iterator"))(cfg, trainer)
        assert told == [(cfg, trainer, state or {}, other), (cfg, state or {}, other)]
        told.clear()


@pytest.mark.parametrize(
    ("max_update", "done", "ends"),
    [(6, 6, True), (5, 6, True), (1, 1, True), (7, 6, False), (0, 6, False), (0, 0, False)],
)
@pytest.mark.parametrize("max_epoch", [0, 3])
def test_a_training_with_all_its_updates_makes_none(caplog, max_update, done, ends, max_epoch):
    """fairseq made one more each time."""
    caplog.set_level(logging.INFO, logger="fairseq_plugins.restarts")
    assert last_epoch(max_update, done, max_epoch=max_epoch) == (-1 if ends else max_epoch)
    said = f"run holds all updates of --max-update {max_update} ({done}): none is made"
    assert [one.getMessage() for one in caplog.records] == [said] * ends


def test_a_checkpoint_of_another_training_that_leaves_no_update_is_refused():
    with pytest.raises(SystemExit) as raised:
        last_epoch(5, 6, "a.pt")
    said = "--max-update 5: a.pt has 6 updates; raise it, or count from 0 with --reset-optimizer"
    assert str(raised.value) == f"unified_lm: error: {said}"
    assert last_epoch(7, 6, "a.pt") == last_epoch(0, 6, "a.pt") == 0


def test_a_training_that_would_begin_with_all_its_updates_is_refused(tmp_path):
    """It said that a folder holds them in which nothing was."""
    with pytest.raises(SystemExit) as raised:
        last_epoch(5, 6, once="a.pt", save_dir=tmp_path)
    said = "--max-update 5: a.pt has 6 updates; raise it, or count from 0 with --reset-optimizer"
    assert str(raised.value) == f"unified_lm: error: {said}"
    assert last_epoch(7, 6, once="a.pt", save_dir=tmp_path) == 0
    (tmp_path / "checkpoint_last.pt").touch()
    assert last_epoch(5, 6, once="a.pt", save_dir=tmp_path) == -1


def test_the_trainer_has_the_change():
    assert Trainer.load_checkpoint.__module__ == "fairseq_plugins.restarts"
