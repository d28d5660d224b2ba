"""Tasks by name: those of the library, heads, tasks of one's own, and several at once."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from unified.errors import UnifiedError
from unified.notation import split_entries
from unified.tasks.catalogue import TASK_GROUPS, TASKS, task_named, with_changes, with_head
from unified.tasks.heads import TASK_HEADS, Classification
from unified.tasks.settings import Task, Training
from unified.tasks.several import SeveralTasks, WeightedTask, folders_of, tasks_named


def refused(function, *arguments, **named) -> str:
    """All that a refusal says."""
    with pytest.raises(UnifiedError) as raised:
        function(*arguments, **named)
    return raised.value.details


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


def test_a_name_of_no_task_is_refused_with_the_nearest():
    assert refused(task_named, "sqad1.1").startswith("task 'sqad1.1': ") and "squad1.1" in refused(
        task_named, "sqad1.1"
    )
    assert "package.module:NAME" in refused(task_named, "nothing at all")
    for name, nearest in (("clasification", "classification"), ("mrqaa", "mrqa"), ("gigawords", "gigaword")):
        assert f"did you mean '{nearest}'?" in refused(task_named, name)


def test_a_task_of_ones_own_is_imported(own):
    assert task_named("my_module:TASK") is own.TASK and task_named("my_module:WRITING") is own.WRITING
    for name in ("NUMBER", "Plain"):
        assert refused(task_named, f"my_module:{name}") == (
            f"task 'my_module:{name}': {name} is no Task, WritingTask or head"
        )
    assert refused(task_named, "my_module:TASK(x=1)") == ("task 'my_module:TASK': TASK is no Task, WritingTask or head")
    assert "x" in refused(task_named, "my_module:BROKEN")
    assert refused(task_named, "my_module:NONE").startswith("task 'my_module:NONE': ")


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


def test_changes_that_are_none_are_no_changes():
    training = Training(lr=1e-3, epochs=2)
    assert with_changes(training, lr=None, epochs=5, clip=0.0) == Training(lr=1e-3, epochs=5, clip=0.0)
    assert with_changes(training, lr=None) == training
    assert refused(with_changes, training, lr=0) == "--lr must be above 0, got 0"


# ---------------------------------------------------------------- several


@pytest.mark.parametrize(("weight", "shown"), [(1, ""), (2, ":2"), (0.5, ":0.5"), (1e-7, ":0.0000001"), (10, ":10")])
def test_heads_of_several_tasks_have_their_weights(weight, shown):
    several = SeveralTasks((WeightedTask(TASKS["squad1.1"], weight), WeightedTask(TASKS["rte"])))
    assert several.head == f"squad1_1=span{shown}, rte=classification(dropout=0.1)"
    assert several.name == "squad1.1, rte"


def test_two_entries_are_several_tasks_and_one_is_one():
    assert isinstance(tasks_named("classification(dropout=0.3)"), Task)
    assert isinstance(tasks_named("rte, cola"), SeveralTasks) and len(split_entries("rte, cola", "tasks")) == 2
    named = tasks_named("a=rte, b=rte:0.5").members
    assert [(one.task.name, one.task.head, one.weight) for one in named] == [
        ("a", TASKS["rte"].head, 1), ("b", TASKS["rte"].head, 0.5),
    ]  # fmt: skip
    assert "rte" in refused(tasks_named, "rte, rte") and "task" in refused(tasks_named, "rte, rte")


def test_folders_are_called_exactly_or_alike(tmp_path):
    members = [WeightedTask(TASKS[name]) for name in ("mnli", "stsb")]
    for name in ("MNLI", "mn-li", "STS-B", "sts-b"):
        (tmp_path / name).mkdir()
    assert folders_of(tmp_path, members) == [tmp_path / "MNLI", tmp_path / "STS-B"]
    (tmp_path / "stsb").mkdir()
    assert folders_of(tmp_path, members)[1] == tmp_path / "stsb"
    (tmp_path / "file").touch()
    for source in (tmp_path / "file", tmp_path / "none"):
        assert refused(folders_of, source, members[:1]) == (
            f"--data {source}: no folder mnli in it; several tasks have one each there"
        )
