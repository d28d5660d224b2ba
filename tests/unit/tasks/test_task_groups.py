"""Data sets of a benchmark that are learnt one after another: which a folder has, and one result of them all."""

import copy
import hashlib
import json

import pytest

from unified.errors import UnifiedError
from unified.reports.differences import canonical
from unified.tasks.task_groups import TaskGroup

GROUP = TaskGroup(
    name="bench",
    members={"A": "a", "B": "b", "C": "c"},
    has=lambda folder, name: (folder / name).is_file(),
    measures=("f1",),
    published={"test": {"BERT": {"average_f1": 80.0}}},
    source="a paper",
)


def result(score: float, **more) -> dict:
    return {
        "run": "first", "seed": 3, "model": {"sha256": "m", "name": "model"}, "command": ["fairseq-train", "a folder"],
        "scores": {"valid": {"f1": score, "em": 1.0}, "test": {"f1": score + 1, "em": 2.0}},
        "settings": {"lr": 1e-3, "epochs": score}, "data": {"train": f"t{score}", "valid": f"v{score}"}, **more,
    }  # fmt: skip


def test_a_folder_has_the_data_sets_of_which_it_has_files(tmp_path):
    for name in ("A", "C"):
        (tmp_path / name).touch()
    assert GROUP.present(tmp_path) == {"A": "a", "C": "c"}
    with pytest.raises(UnifiedError) as raised:
        GROUP.present(tmp_path / "none")
    assert str(raised.value) == f"--data {tmp_path / 'none'}: no files of A, B, C in it"


def test_measures_are_listed_by_data_set_and_averaged():
    found = GROUP.result({"A": result(60.0), "B": result(80.0)})
    assert found["scores"] == {
        "valid": {"f1_A": 60.0, "f1_B": 80.0, "average_f1": 70.0},
        "test": {"f1_A": 61.0, "f1_B": 81.0, "average_f1": 71.0},
    }
    same = {name: found[name] for name in ("task", "run", "seed", "command", "model", "published")}
    assert same == {
        "task": "bench", "run": "first", "seed": 3, "command": ["fairseq-train 'a folder'"] * 2,
        "model": {"sha256": "m", "name": "model"}, "published": GROUP.published,
    }  # fmt: skip


def test_settings_that_differ_are_listed_by_data_set_and_data_are_hashed_together():
    other = result(80.0)
    other["settings"] = {"lr": 1e-3, "epochs": 80.0, "more": [1]}
    other["data"]["test"] = "x"
    found = GROUP.result({"A": result(60.0), "B": other})
    assert found["settings"] == {"lr": 1e-3, "epochs": {"A": 60.0, "B": 80.0}, "more": {"A": None, "B": [1]}}
    assert found["data"] == {
        name: hashlib.sha256(canonical({"A": f"{name[0]}60.0", "B": f"{name[0]}80.0"}).encode()).hexdigest()
        for name in ("train", "valid")
    }
    assert json.loads(canonical({"A": "t60.0"})) == {"A": "t60.0"}


def test_a_split_that_one_data_set_lacks_is_left_out():
    other = result(80.0)
    del other["scores"]["test"]
    assert set(GROUP.result({"A": result(60.0), "B": other})["scores"]) == {"valid"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"run": "second"}, "bench: the results of its data sets differ in their run; make them anew"),
        ({"seed": 4}, "bench: the results of its data sets differ in their seed; make them anew"),
        ({"model": {"sha256": "n", "name": "model"}}, "bench: the results of its data sets are of different models; "
            "make them anew"),
    ],
)  # fmt: skip
def test_results_of_different_runs_are_not_put_together(changed, says):
    results = {"A": result(60.0), "B": result(80.0), "C": {**result(70.0), **changed}}
    before = copy.deepcopy(results)
    with pytest.raises(UnifiedError) as raised:
        GROUP.result(results)
    assert str(raised.value) == says and results == before
