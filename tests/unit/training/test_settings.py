"""Numbers of a pre-training: defaults, bounds, and the schedule of the learning rate."""

from argparse import Namespace

import pytest
import torch

from unified.arguments import as_option
from unified.errors import UnifiedError
from unified.training.settings import TrainingSettings, require_a_row

DEFAULTS = {
    "tokens_per_sample": 512,
    "max_tokens": 16384,
    "update_freq": 1,
    "max_update": 20000,
    "warmup_updates": None,
    "lr": 3e-4,
    "seed": 1,
}


def test_defaults_are_those_of_the_manual():
    own = TrainingSettings()
    assert vars(own) == DEFAULTS and vars(own.checked()) == {**DEFAULTS, "warmup_updates": 1000}
    assert (own.weight_decay, own.clip_norm, own.betas, own.eps) == (0.01, 1.0, (0.9, 0.999), 1e-6)


@pytest.mark.parametrize(("warmup", "updates"), [(0, 1), (0, 7), (1, 2), (3, 10), (9, 10)])
def test_the_rate_is_that_of_fairseq(warmup, updates):
    """Of its schedule polynomial_decay, over all updates and one more."""
    from fairseq.optim.adam import FairseqAdam
    from fairseq.optim.lr_scheduler.polynomial_decay_schedule import PolynomialDecayLRSchedule

    adam = Namespace(lr=[0.5], adam_betas="(0.9, 0.999)", adam_eps=1e-6, weight_decay=0.0, tpu=False)
    adam.use_old_adam = adam.fp16_adam_stats = False
    options = Namespace(
        lr=[0.5], warmup_updates=warmup, force_anneal=None, end_learning_rate=0.0, total_num_update=updates, power=1.0
    )
    schedule = PolynomialDecayLRSchedule(options, FairseqAdam(adam, [torch.nn.Parameter(torch.zeros(1))]))
    settings = TrainingSettings(max_update=updates, warmup_updates=warmup, lr=0.5).checked()
    rates = [settings.rate(update) for update in range(updates + 2)]
    assert rates == pytest.approx([schedule.step_update(update) for update in range(updates + 2)], abs=1e-12)
    assert max(rates) == 0.5 and rates[updates:] == [0.0, 0.0]


@pytest.mark.parametrize("updates", [1, 19, 20, 39, 40, 60, 20000])
def test_a_twentieth_is_rounded_down(updates):
    warmup = TrainingSettings(max_update=updates).checked().warmup_updates
    assert 20 * warmup <= updates < 20 * (warmup + 1)


def test_the_warm_up_is_a_twentieth_unless_it_is_given():
    assert TrainingSettings(max_update=59).checked().warmup_updates == 2
    assert TrainingSettings(max_update=19).checked().warmup_updates == 0
    given = TrainingSettings(max_update=60, warmup_updates=0)
    assert given.checked() == given
    assert TrainingSettings(max_update=60, warmup_updates=59).checked().warmup_updates == 59


@pytest.mark.parametrize("name", ["tokens_per_sample", "max_tokens", "update_freq", "max_update", "lr"])
def test_numbers_are_above_zero_and_named_as_options_unless_told_otherwise(name):
    wanted = "above 0" if name == "lr" else "at least 1"
    with pytest.raises(UnifiedError) as raised:
        TrainingSettings(**{name: 0}).checked()
    assert str(raised.value) == f"--{name.replace('_', '-')} must be {wanted}, got 0"
    with pytest.raises(UnifiedError, match=f"^my {name} must be {wanted}, got -1$"):
        TrainingSettings(**{name: -1}).checked("my {}".format)


def test_the_least_numbers_are_taken():
    least = TrainingSettings(tokens_per_sample=1, max_tokens=1, update_freq=1, max_update=1, lr=1e-30, seed=0)
    assert least.checked().warmup_updates == 0


@pytest.mark.parametrize(("warmup", "updates"), [(-1, 5), (5, 5), (6, 5)])
def test_a_warm_up_that_does_not_end_is_refused(warmup, updates):
    with pytest.raises(UnifiedError) as raised:
        TrainingSettings(warmup_updates=warmup, max_update=updates).checked()
    assert str(raised.value) == f"--warmup-updates must be from 0 to below --max-update {updates}, got {warmup}"


def test_a_setting_of_another_type_is_refused_under_its_name():
    with pytest.raises(UnifiedError, match="^--seed must be an integer, got 1.5$"):
        TrainingSettings(seed=1.5).checked()


def test_a_batch_holds_a_row():
    require_a_row(64, 64)
    with pytest.raises(UnifiedError) as raised:
        require_a_row(63, 64)
    assert str(raised.value) == (
        "--max-tokens 63 is less than one row of --tokens-per-sample 64; raise the first or lower the second"
    )
    with pytest.raises(UnifiedError, match="^MAX_TOKENS 63 is less than one row of TOKENS_PER_SAMPLE 64; "):
        TrainingSettings(max_tokens=63, tokens_per_sample=64).checked(str.upper)


@pytest.mark.parametrize("seed", [-1, 2**31, 2**40])
def test_a_seed_is_one_that_numpy_takes_in_every_epoch(seed):
    for called, name in ((as_option, "--seed"), (str, "seed")):
        with pytest.raises(UnifiedError) as refused:
            TrainingSettings(seed=seed).checked(called)
        assert str(refused.value) == f"{name} must be from 0 to 2,147,483,647, got {seed}"
    for taken in (0, 2**31 - 1):
        assert TrainingSettings(seed=taken).checked().seed == taken
