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


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"epochs": 2.5}, "epochs must be an integer, got 2.5"),
        ({"epochs": True}, "epochs must be an integer, got True"),
        ({"epochs": "3"}, "epochs must be an integer, got '3'"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"lr": 0.0}, "lr must be above 0, got 0.0"),
        ({"max_length": -1}, "max_length must be at least 1, got -1"),
        ({"warmup": 7.0}, "warmup must be from 0 to 1, got 7.0"),
        ({"warmup": math.nan}, "warmup must be a number, got nan"),
        ({"optimizer": "adm"}, "optimizer must be one of adam, adamax, got 'adm' (did you mean 'adam'?)"),
        ({"weight_decay": -1}, "weight_decay must be at least 0, got -1"),
        ({"clip": -1}, "clip must be at least 0, got -1"),
        ({"head_lr": 0}, "head_lr must be above 0, got 0"),
        ({"head_weight_decay": -0.1}, "head_weight_decay must be at least 0, got -0.1"),
        ({"layer_decay": 1.001}, "layer_decay must be above 0 and at most 1, got 1.001"),
        ({"select": "lst"}, "select must be one of last, best, got 'lst' (did you mean 'last'?)"),
        ({"validations": 0}, "validations must be at least 1, got 0"),
    ],
)
def test_a_wrong_setting_is_named_as_field_and_as_option(settings, says):
    with pytest.raises(UnifiedError) as raised:
        Training(**settings)
    assert str(raised.value) == says
    with pytest.raises(UnifiedError) as raised:
        with_changes(Training(), **settings)
    assert str(raised.value) == f"--{says.partition(' ')[0].replace('_', '-')} {says.partition(' ')[2]}"


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
