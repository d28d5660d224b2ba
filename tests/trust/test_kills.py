"""Kills hit where they are aimed, and what a kill has changed is found."""

import json

import pytest
import torch

from trust.cases import Broken
from trust.killing import Aim, run
from trust.kills import COMMANDS, compare_lines, differing_files, differing_training

# Renames twice, writes in between, and copies.
PROGRAM = """
import os, shutil
def put(name, text):
    with open(name + ".part", "w") as file:
        file.write(text)
    os.replace(name + ".part", name)
put("a", "1234")
put("b", "1234")
with open("a") as reader, open("c", "w") as writer:
    shutil.copyfileobj(reader, writer)
"""


@pytest.mark.parametrize(
    "call, left",
    [
        ("os.replace:1:before", {"a.part": "1234"}),
        ("os.replace:2:before", {"a": "1234", "b.part": "1234"}),
        ("os.replace:2:after", {"a": "1234", "b": "1234"}),
        ("shutil.copyfileobj:1:middle", {"a": "1234", "b": "1234", "c": "12"}),
        ("", {"a": "1234", "b": "1234", "c": "1234"}),
    ],
)
def test_a_kill_hits_the_call_at_which_it_is_aimed(call, left, tmp_path):
    (tmp_path / "program.py").write_text(f"import os\nos.chdir({str(tmp_path / 'work')!r})\n{PROGRAM}")
    (tmp_path / "work").mkdir()
    ended = run(
        ["timeit", "-n1", "-r1", f"exec(open({str(tmp_path / 'program.py')!r}).read(), {{}})"],
        tmp_path / "calls",
        Aim(call) if call else None,
    )
    assert {path.name: path.read_text() for path in (tmp_path / "work").iterdir()} == left
    assert ended.status == (-9 if call else 0) and ended.calls["os.replace"] == (2 if "1:before" not in call else 1)


def test_prepare_gives_the_same_folder_after_kills_at_its_last_rename(tmp_path):
    prepare = next(command for command in COMMANDS if command.name == "prepare")
    words = prepare.prepare(tmp_path)

    def ended(name, aim=None):
        own = [tmp_path / name if word == "OUTPUT" else word for word in words]
        return run(own, tmp_path / f"calls of {name} {aim}", aim)

    whole = ended("whole")
    assert whole.status == 0 and whole.calls["os.rename"] >= 1
    aim = Aim(f"os.rename:{whole.calls['os.rename']}:before")
    assert ended("killed", aim).status == -9 and not (tmp_path / "killed").exists()
    assert ended("killed").status == 0
    assert differing_files(tmp_path / "whole", tmp_path / "killed") is None
    (tmp_path / "killed" / "dict.txt").write_text("w 1\n")
    assert differing_files(tmp_path / "whole", tmp_path / "killed") == "dict.txt has other contents"


def test_a_line_that_differs_or_is_missing_is_found(tmp_path):
    def log(name, *lines):
        text = "".join(f"10:00 | INFO | train_inner | {json.dumps(line)}\n" for line in lines)
        (tmp_path / name).write_text(text)
        return tmp_path / name

    lines = [{"num_updates": str(n), "loss": str(n / 7), "wall": "1"} for n in range(1, 5)]
    whole = log("whole", *lines)
    assert compare_lines(whole, log("again", *lines[:3], {**lines[2], "wall": "2"}, lines[3])) == 5
    for wrong, says in (
        ([*lines[:3], {**lines[3], "loss": "0.5714285714285715"}], "update 4 logs"),
        ([*lines[:2], lines[3]], "updates without a line: .'3'."),
        ([*lines, {"num_updates": "5", "loss": "1"}], "update 5 logs"),
        ([*lines[:3], {"num_updates": "4"}], "update 4 logs"),
    ):
        with pytest.raises(Broken, match=says):
            compare_lines(whole, log("killed", *wrong))


def test_logs_without_a_loss_line_are_not_equal(tmp_path):
    (tmp_path / "whole").write_text('10:00 | INFO | train_inner_v2 | {"num_updates": "1", "loss": "9"}\n')
    (tmp_path / "killed").write_text("killed, never trained\n")
    with pytest.raises(Broken, match="whole has no loss line, so nothing is compared"):
        compare_lines(tmp_path / "whole", tmp_path / "killed")


def trained(folder, seconds):
    """Files of a training that names its folder and says when it was made and how long it took."""
    folder.mkdir()
    parts = {"model": {"x": torch.ones(2)}, "last_optimizer_state": {"state": {0: {"m": torch.ones(2), "step": 3}}}}
    for name in ("best", "last"):
        torch.save({**parts, "extra_state": {"time": seconds}}, folder / f"checkpoint_{name}.pt")
    results = {"metrics": {"accuracy": 1.0}, "date": f"{seconds}"} | ({"seconds": seconds} if seconds < 2 else {})
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "README.md").write_text(f"| date | {seconds} |\n| accuracy | 1.0 |\n")
    (folder / "run.yaml").write_text(f"output: {folder}\n")
    (folder / "train.log").write_text(f"{seconds} s\n")
    return folder


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("run.yaml", None, None),
        ("training.lock", "", None),
        (".data.21276.partial/dict.txt", "w 1", None),
        ("data.partial/dict.txt", "w 1", "data.partial/dict.txt is there after kills alone"),
        ("checkpoint_best.pt", {"model": {"x": torch.zeros(2)}}, "checkpoint_best.pt: model.x differs"),
        (
            "checkpoint_last.pt",
            {"last_optimizer_state": {"state": {0: {"m": torch.zeros(2), "step": 3}}}},
            "checkpoint_last.pt: last_optimizer_state.state.0.m differs",
        ),
        (
            "checkpoint_last.pt",
            {"last_optimizer_state": {"state": {0: {"m": torch.ones(2), "step": 4}}}},
            "checkpoint_last.pt: last_optimizer_state.state.0.step differs",
        ),
        ("checkpoint_last.pt", {"model": {}}, "checkpoint_last.pt: model differs"),
        ("checkpoint_1_4.pt", {}, "checkpoint_1_4.pt is there after kills alone"),
        ("results.json", '{"metrics": {"accuracy": 0.5}}', "results.json has other contents"),
        ("README.md", "| date | 2 |\n| accuracy | 0.5 |\n", "README.md has other contents"),
        ("predictions.valid.jsonl", "{}", "predictions.valid.jsonl is there after kills alone"),
    ],
)
def test_trainings_differ_in_any_file_but_by_the_clock(tmp_path, file, change, says):
    whole, killed = trained(tmp_path / "whole", 1.5), trained(tmp_path / "killed", 2.5)
    (killed / file).parent.mkdir(exist_ok=True)
    if isinstance(change, str):
        (killed / file).write_text(change)
    elif change is not None:
        torch.save(torch.load(killed / "checkpoint_last.pt", weights_only=True) | change, killed / file)
    assert differing_training(whole, killed) == says


def test_checkpoints_without_parameters_are_not_equal(tmp_path):
    for name in ("whole", "killed"):
        torch.save({"parameters": {}}, trained(tmp_path / name, 1.5) / "checkpoint_last.pt")
    found = differing_training(tmp_path / "whole", tmp_path / "killed")
    assert found == "checkpoint_last.pt has no model, so nothing is compared"
