"""Tasks by name: those of the library, heads, and tasks of somebody's own."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tests.support.refusals import refused
from unified.tasks.catalogue import TASK_GROUPS, TASKS, task_named, with_changes, with_head
from unified.tasks.heads import TASK_HEADS, Classification
from unified.tasks.settings import Task, Training


@pytest.fixture
def own(monkeypatch) -> ModuleType:
    """A module of somebody's own."""
    module = ModuleType("my_module")
    monkeypatch.setitem(sys.modules, "my_module", module)
    module.TASK = Task(name="mine", head="classification", read=dict)
    module.WRITING = TASKS["texts"]
    module.BROKEN = Task(name="mine", head="classification(x=3)", read=dict)
    module.NUMBER = 3
    module.Plain = dict
    return module


def test_a_task_of_the_library_is_found_by_its_name():
    assert all(task_named(name) is task for name, task in TASKS.items()) and list(TASK_GROUPS) == ["mrqa"]
    assert refused(task_named, "mrqa") == (
        "mrqa stands for several tasks with a model each: newsqa, triviaqa, searchqa, hotpotqa, naturalquestions; name "
        "one of them"
    )


@pytest.mark.parametrize("name", sorted(TASK_HEADS))
def test_a_head_is_a_task_whose_data_are_rows(name):
    task = task_named(name)
    assert (task.name, task.head, task.training, task.published) == (name, name, Training(), {})
    assert task.read.names.parts == TASK_HEADS[name].parts and task.read.has_classes == TASK_HEADS[name].has_classes
    chosen = task_named(f"{name}(dropout=0.3)")
    assert (chosen.name, chosen.head) == (name, f"{name}(dropout=0.3)")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("sqad1.1", "squad1.1"),
        ("gigawords", "gigaword"),
        ("clasification", "classification"),  # a head
        ("mrqaa", "mrqa"),  # a group of tasks
    ],
)
def test_a_name_of_no_task_is_refused_with_the_nearest(name, nearest):
    assert refused(task_named, name) == f"task {name!r}: no such task (did you mean {nearest!r}?)"


def test_a_name_like_no_other_is_refused_with_all_names():
    known = ", ".join([*TASKS, *TASK_GROUPS, *TASK_HEADS])
    assert refused(task_named, "nothing at all") == (
        f"task 'nothing at all': no such task; known are {known}, and any package.module:NAME"
    )


def test_a_task_of_ones_own_is_imported(own):
    assert task_named("my_module:TASK") is own.TASK and task_named("my_module:WRITING") is own.WRITING


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("my_module:NUMBER", "task 'my_module:NUMBER': NUMBER is no Task, WritingTask or head"),
        ("my_module:Plain", "task 'my_module:Plain': Plain is no Task, WritingTask or head"),
        ("my_module:TASK(x=1)", "task 'my_module:TASK': TASK is no Task, WritingTask or head"),
        ("my_module:NONE", "task 'my_module:NONE': module my_module has no 'NONE'"),
        ("my_module:BROKEN", "head 'classification(x=3)': no setting 'x'; its settings are labels, positive, dropout"),
    ],
)
def test_what_is_no_task_of_ones_own_is_refused(own, name, says):
    assert refused(task_named, name) == says


def test_a_head_of_ones_own_is_a_task_whose_data_are_rows(own):
    class Mine(Classification):
        """A head of somebody's own."""

        name = "mine_here"

    own.Mine = Mine
    try:
        task = task_named("my_module:Mine(dropout=0.2)")
        assert (task.name, task.head) == ("mine_here", "my_module:Mine(dropout=0.2)")
        assert task.read.names.parts == Mine.parts and TASK_HEADS["mine_here"] is Mine
    finally:
        TASK_HEADS.pop("mine_here", None)


def test_settings_of_the_head_change_and_the_head_does_not():
    changed = with_head(TASKS["rte"], "classification(dropout=0.3)")
    assert changed.head == "classification(dropout=0.3)" and changed.training == TASKS["rte"].training
    assert refused(with_head, TASKS["rte"], "span(nbest=3)") == (
        "--head span(nbest=3): rte is learnt by classification, not by span"
    )


def test_settings_change_where_a_value_is_given():
    training = Training(lr=1e-3, epochs=2)
    assert with_changes(training, lr=None, epochs=5, clip=0.0) == Training(lr=1e-3, epochs=5, clip=0.0)
    assert with_changes(training, lr=None) == training
    assert refused(with_changes, training, lr=0) == "--lr must be above 0, got 0"
