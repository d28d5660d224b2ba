"""Fine-tunings for the data sets of a benchmark: the options of each run, and when the average of all is written."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from unified.cli.commands.finetuning.task_groups import finetune_each
from unified.reports.results import read_results, write_result
from unified.tasks.task_groups import TaskGroup

PUBLISHED = {"valid": {"a system": {"average": 70.0}}}


def is_there(folder: Path, name: str) -> bool:
    return (folder / name).exists()


GROUP = TaskGroup("both", {"One": "task-1", "Two": "task-2"}, is_there, ("f1",), PUBLISHED, "a paper")


class Runs:
    """Stands for `unified finetune`: leaves results, an F1 of 60 for the first data set and of 80 for the second."""

    def __init__(self) -> None:
        self.asked: list[Namespace] = []

    def __call__(self, args: Namespace) -> int:
        self.asked.append(args)
        folder = Path(args.output)
        if not args.dry_run and not (folder / "results.json").exists():
            folder.mkdir(parents=True)
            write_result(
                folder, task=args.task, run="ours", seed=args.seed, command=["train", args.task],
                scores={"valid": {"f1": {"task-1": 60.0, "task-2": 80.0}[args.task], "total": 2}}, measure="f1",
                model={"name": "m", "sha256": "a"}, settings={"lr": 1}, data={"valid.jsonl": "b"}, published={},
            )  # fmt: skip
        return 0


@pytest.fixture
def args(tmp_path, monkeypatch) -> Namespace:
    monkeypatch.chdir(tmp_path)
    for name in ("One", "Two"):
        Path("data", name).mkdir(parents=True)
    return Namespace(task="both", data="data", output="out", seed=3, dry_run=False, lr=None)


def test_each_data_set_is_learnt_in_a_folder_of_its_own_and_the_average_is_written(args, capsys):
    runs = Runs()
    assert finetune_each(args, GROUP, runs) == 0
    assert [vars(one) for one in runs.asked] == [
        vars(args) | {"task": task, "output": str(Path("out", task))} for task in ("task-1", "task-2")
    ]
    printed = capsys.readouterr()
    found = json.loads(Path("out/results.json").read_text(encoding="utf-8"))["scores"]
    assert found == {"valid": {"f1_One": 60.0, "f1_Two": 80.0, "average_f1": 70.0}}
    assert printed.out == json.dumps(found, indent=2) + "\n"
    assert printed.err.splitlines() == [
        "both, 1 of 2: One",
        "both, 2 of 2: Two",
        f"written to {Path('out/results.json')}; `unified results out` makes tables of it",
    ]
    [result] = [one for one in read_results(["out"]) if one["task"] == "both"]
    assert (result["seed"], result["command"]) == (3, ["train task-1", "train task-2"])
    assert result["published"] == PUBLISHED


def test_an_unchanged_average_keeps_its_file_and_another_one_is_replaced(args):
    finetune_each(args, GROUP, Runs())
    path = Path("out/results.json")
    content = json.loads(path.read_text(encoding="utf-8")) | {"date": "long ago"}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert finetune_each(args, GROUP, Runs()) == 0
    assert json.loads(path.read_text(encoding="utf-8"))["date"] == "long ago"
    path.write_text(json.dumps(content | {"seed": 4}), encoding="utf-8")
    assert finetune_each(args, GROUP, Runs()) == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["seed"] == 3 and written["date"] != "long ago"


def test_a_dry_run_or_a_missing_data_set_leaves_no_average(args, capsys):
    assert finetune_each(Namespace(**{**vars(args), "dry_run": True}), GROUP, Runs()) == 0
    assert not Path("out").exists() and capsys.readouterr().out == ""
    Path("data/Two").rmdir()
    runs = Runs()
    assert finetune_each(args, GROUP, runs) == 0
    assert [one.task for one in runs.asked] == ["task-1"] and not Path("out/results.json").exists()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == ["both, 1 of 1: One", "both: no average, as data has no files of Two"]
