"""Kills hit where they are aimed, and what a kill has changed is found."""

import json

import pytest

from trust.cases import Broken
from trust.killing import Aim, run
from trust.kills import COMMANDS, compare_lines, differing_files

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
