"""Several tasks that one model learns at once: notation, heads, folders, and settings of another paper."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from tests.support.refusals import refused
from unified.tasks.catalogue import TASKS, task_named
from unified.tasks.heads import Classification
from unified.tasks.heads.registry import TASK_HEADS, parse_heads
from unified.tasks.settings import Training
from unified.tasks.several import MT_DNN, SeveralTasks, WeightedTask, folders_of, head_name, tasks_named

#: A task of one's own.
RTE = TASKS["rte"]


def test_settings_are_those_of_mt_dnn():
    assert MT_DNN == Training(epochs=5, batch_size=32, lr=5e-5, max_length=512, optimizer="adamax", weight_decay=0.0)
    assert tasks_named("rte, cola").training == MT_DNN


def test_one_name_is_a_task_and_several_go_together_with_their_weights():
    assert tasks_named("rte") == task_named("rte")
    several = tasks_named("rte:2, mine=cola:0.5, mrpc")
    assert isinstance(several, SeveralTasks) and several.name == "rte, mine, mrpc"
    assert [(member.name, member.weight) for member in several.members] == [("rte", 2), ("mine", 0.5), ("mrpc", 1)]
    heads = {name: TASKS[name].head for name in ("rte", "cola", "mrpc")}
    assert several.head == f"rte={heads['rte']}:2, mine={heads['cola']}:0.5, mrpc={heads['mrpc']}"


def test_a_task_may_be_learnt_twice_under_different_names():
    found = [(one.task.name, one.task.head, one.weight) for one in tasks_named("a=rte, b=rte:0.5").members]
    assert found == [("a", TASKS["rte"].head, 1), ("b", TASKS["rte"].head, 0.5)]


@dataclass(frozen=True)
class OwnHead(Classification):
    """A head of another package."""

    name: ClassVar[str] = "own_of_several"


@pytest.fixture
def own_heads():
    """Forgets the head that a test names."""
    yield
    TASK_HEADS.pop(OwnHead.name, None)


@pytest.mark.usefixtures("own_heads")
def test_own_heads_and_tasks_are_named_by_their_import_paths():
    own, rte = f"{__name__}:OwnHead", f"{__name__}:RTE"
    several = tasks_named(f"{own}, a={own}(dropout=0.5):2, b={rte}:0.5, c={own}:3, classification")
    assert [(one.name, one.task.head, one.weight) for one in several.members] == [
        ("own_of_several", own, 1),
        ("a", f"{own}(dropout=0.5)", 2),
        ("b", RTE.head, 0.5),
        ("c", own, 3),
        ("classification", "classification", 1),
    ]
    heads = [(one.name, one.head_class, one.weight) for one in parse_heads(several.head)]
    assert heads == [
        ("own_of_several", OwnHead, 1),
        ("a", OwnHead, 2),
        ("b", Classification, 0.5),
        ("c", OwnHead, 3),
        ("classification", Classification, 1),
    ]
    assert refused(tasks_named, f"rte, {own}x").endswith("has no 'OwnHeadx' (did you mean 'OwnHead'?)")


@pytest.mark.parametrize(("weight", "shown"), [(1, ""), (2, ":2"), (0.5, ":0.5"), (1e-7, ":0.0000001"), (10, ":10")])
def test_the_head_names_weights_as_decimal_numbers(weight, shown):
    several = SeveralTasks((WeightedTask(TASKS["squad1.1"], weight), WeightedTask(TASKS["rte"])))
    assert several.head == f"squad1_1=span{shown}, rte=classification(dropout=0.1)"
    assert several.name == "squad1.1, rte"


def test_a_name_becomes_that_of_a_head():
    assert head_name("squad1.1") == "squad1_1" and head_name("a-b c") == "a_b_c"
    assert WeightedTask(TASKS["squad1.1"]).name == "squad1_1" and WeightedTask(TASKS["rte"]).weight == 1.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rte, squad_qg", "it is a generation task, which has no head; only understanding tasks go together"),
        ("rte, data=cola", "'data' is what the folder with the data of all is called; take another name"),
        ("rte, rte", "two tasks are called rte; give each a name of its own, as in other=rte"),
        ("rte, colla", "task 'colla': no such task (did you mean 'cola'?)"),
    ],
)
def test_tasks_that_do_not_go_together_are_refused(text, says):
    assert says in refused(tasks_named, text)


def test_settings_of_another_paper_are_taken_where_all_tasks_have_the_same():
    found = tasks_named("rte:2, mrpc").as_in("spanbert")
    wanted = [TASKS[name].as_in("spanbert") for name in ("rte", "mrpc")]
    assert [member.task for member in found.members] == wanted and found.training == wanted[0].training
    assert [member.weight for member in found.members] == [2, 1]
    assert TASKS["squad2.0"].as_in("spanbert").training != wanted[0].training
    assert refused(tasks_named("rte, squad2.0").as_in, "spanbert") == (
        "--system spanbert: rte and squad2.0 have different settings there, so they cannot be learnt at once by them; "
        "leave --system out"
    )


def test_each_task_has_a_folder_called_like_it_or_like_glues(tmp_path):
    """Capitals and hyphens do not count, but a folder of the very name comes first."""
    for name in ("RTE", "STS-B", "sts-b", "stsb", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "cola").write_text("a file")
    members = [WeightedTask(TASKS[name]) for name in ("rte", "stsb", "cola", "mrpc")]
    assert folders_of(tmp_path, members[:2]) == [tmp_path / "RTE", tmp_path / "stsb"]
    (tmp_path / "stsb").rmdir()
    assert folders_of(tmp_path, members[1:2]) == [tmp_path / "STS-B"]
    assert refused(folders_of, tmp_path, members) == (
        f"--data {tmp_path}: no folder cola and no folder mrpc in it; several tasks have one each there"
    )
    for source in (tmp_path / "cola", tmp_path / "none"):
        assert refused(folders_of, source, members[:1]) == (
            f"--data {source}: no folder rte in it; several tasks have one each there"
        )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rte, cola)", "tasks 'rte, cola)': a bracket"),
        ("rte, cola:x", "task 'cola:x': the weight after the colon must be a number"),
    ],
)
def test_a_notation_that_is_wrong_begins_with_what_it_names(text, says):
    assert refused(tasks_named, text).startswith(says)
