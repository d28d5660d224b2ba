"""Settings of a fine-tuning: defaults, bounds, and those of another paper."""

import math

import pytest

from unified.errors import UnifiedError
from unified.tasks.catalogue import TASKS, with_changes
from unified.tasks.grids import Grid
from unified.tasks.settings import Task, Training


def test_defaults_are_those_of_bert():
    """[BERT, app. A.3]: a batch of 32, three epochs, rates from 2e-5 to 5e-5; the last checkpoint is scored."""
    assert vars(Training()) == {
        "epochs": 3, "batch_size": 32, "lr": 3e-5, "max_length": 128, "warmup": 0.1, "optimizer": "adam",
        "weight_decay": 0.01, "clip": 1.0, "head_lr": None, "head_weight_decay": None, "layer_decay": 1.0,
        "select": "last", "validations": 1,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["epochs", "batch_size", "lr", "max_length", "head_lr", "validations"])
def test_numbers_are_above_zero_and_finite(name):
    Training(**{name: 1e-9})
    for value in (0, -1, math.inf, math.nan):
        with pytest.raises(UnifiedError) as raised:
            Training(**{name: value})
        assert str(raised.value) == f"{name} must be above 0, got {value}"
        with pytest.raises(UnifiedError) as raised:
            with_changes(Training(), **{name: value})
        assert str(raised.value) == f"--{name.replace('_', '-')} must be above 0, got {value}"


def test_a_share_of_layers_is_at_most_one():
    Training(layer_decay=1e-9)
    for value in (0, 1.001):
        with pytest.raises(UnifiedError) as raised:
            Training(layer_decay=value)
        assert str(raised.value) == f"layer_decay must be above 0 and at most 1, got {value}"
        with pytest.raises(UnifiedError, match=f"^--layer-decay must be above 0 and at most 1, got {value}$"):
            with_changes(Training(), layer_decay=value)


def test_some_settings_change_and_are_checked_again():
    assert Training().changed(lr=1e-4, epochs=2) == Training(lr=1e-4, epochs=2)
    with pytest.raises(UnifiedError, match="^lr must be above 0, got 0$"):
        Training().changed(lr=0)


GRID, OTHER = Grid({"lr": (1.0,)}), Grid({"lr": (2.0,)})


def task(**more) -> Task:
    systems = {"spanbert": ("another", Training(epochs=7)), "xlnet": ("third", Training(epochs=8))}
    return Task(name="mine", head="own", read=dict, systems=systems, grid=GRID, grids={"spanbert": OTHER}, **more)


def test_another_paper_has_its_head_its_settings_and_its_grid():
    found = task(measure="f1").as_in("spanbert")
    assert (found.head, found.training.epochs, found.grid, found.measure) == ("another", 7, OTHER, "f1")
    assert task().as_in("xlnet").grid is None


@pytest.mark.parametrize(
    ("own", "system", "says"),
    [
        (task(), "spanbart", "no settings of 'spanbart' for mine (did you mean 'spanbert'?); known are spanbert, "
            "xlnet"),
        (Task(name="mine", head="own", read=dict), "spanbert", "no settings of 'spanbert' for mine; only one paper's "
            "are known"),
    ],
)  # fmt: skip
def test_an_unknown_paper_is_refused(own, system, says):
    with pytest.raises(UnifiedError) as raised:
        own.as_in(system)
    assert str(raised.value) == says


def test_a_task_says_of_itself_no_more_than_it_is_told():
    plain = Task(name="mine", head="own", read=dict)
    assert (plain.training, plain.published, plain.source, plain.measure) == (Training(), {}, "", None)
    assert (plain.validates_on_test, plain.unlabelled, plain.systems, plain.grid, plain.grids, plain.submit) == (
        False, (), {}, None, {}, None,
    )  # fmt: skip
    assert all(one.name == name for name, one in TASKS.items())


def test_a_task_is_made_by_the_names_of_its_fields():
    with pytest.raises(TypeError, match="positional argument"):
        Task("mine", "own", dict)
