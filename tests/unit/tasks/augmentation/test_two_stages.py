"""Fine-tuning on generated questions and then on real ones: commands, data, and what ends it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.full_disk import full_disk
from tests.support.refusals import refused
from unified.tasks.augmentation import two_stages
from unified.tasks.augmentation.two_stages import TwoStages


def two(folder: Path, masking: float = 0.3) -> TwoStages:
    return TwoStages(folder, folder / "generated", folder / "squad", folder / "model.pt", masking, ("--lr", "1"),
                     ("--a b",), 7)  # fmt: skip


def test_the_commands_of_both_fine_tunings(tmp_path):
    first, second = two(tmp_path).commands().items()
    assert first == ("first", [
        "unified", "finetune", "squad2.0", "--data", str(tmp_path / "generated"), "--init", str(tmp_path / "model.pt"),
        "--output", str(tmp_path / "first"), "--run", "first", "--epochs", "1", "--auxiliary-masking", "0.3",
        "--seed", "7", "--lr", "1",
    ])  # fmt: skip
    assert second == ("second", [
        "unified", "finetune", "squad2.0", "--data", str(tmp_path / "squad"), "--init",
        str(tmp_path / "first" / "checkpoint_last.pt"), "--output", str(tmp_path / "second"), "--run", "second",
        "--epochs", "2", "--auxiliary-masking", "0.3", "--seed", "7", "--a b",
    ])  # fmt: skip
    assert "--auxiliary-masking" not in two(tmp_path, 0.0).commands()["first"]


def test_missing_data_and_checkpoints_are_refused_before_any_work(tmp_path):
    squad = tmp_path / "squad"
    squad.mkdir()
    assert refused(two(tmp_path).check) == f"--data {squad}: no file train-v2.0*.json*"
    (squad / "train-v2.0.json.xz").touch()
    assert refused(two(tmp_path).check) == f"--data {squad}: no file dev-v2.0*.json*"
    (squad / "dev-v2.0.json").touch()
    assert refused(two(tmp_path).check) == f"--init {tmp_path / 'model.pt'}: no such checkpoint"
    (tmp_path / "model.pt").touch()
    two(tmp_path).check()


def test_the_development_set_stands_beside_the_generated_questions(tmp_path):
    for name in ("generated", "squad"):
        (tmp_path / name).mkdir()
    (tmp_path / "generated" / "dev-v2.0-old.json").touch()
    (tmp_path / "generated" / "train-v2.0.json").touch()
    for name in ("dev-v2.0.json.gz", "train-v2.0.json"):
        (tmp_path / "squad" / name).write_text(name)
    two(tmp_path).prepare()
    assert {path.name: path.read_text() for path in (tmp_path / "generated").iterdir()} == {
        "dev-v2.0.json.gz": "dev-v2.0.json.gz", "train-v2.0.json": "",
    }  # fmt: skip
    with pytest.raises(OSError, match="File too large") as raised, full_disk():
        two(tmp_path).prepare()
    assert raised.value.filename == str(tmp_path / "generated" / "dev-v2.0.json.gz")


@pytest.mark.parametrize(("statuses", "says"), [((0, 0), None), ((1,), "first"), ((0, 2), "second")])
def test_a_stage_that_fails_ends_both(tmp_path, monkeypatch, capsys, statuses, says):
    called, left = [], list(statuses)
    monkeypatch.setattr(two_stages, "run_module", lambda *arguments: called.append(arguments) or left.pop(0))
    if says is None:
        two(tmp_path).run()
    else:
        assert refused(two(tmp_path).run) == f"the {says} stage of fine-tuning has failed; what it printed says why"
    words = list(two(tmp_path).commands().values())[: len(statuses)]
    assert called == [("unified.cli", command[1:]) for command in words]
    assert [shlex.split(line) for line in capsys.readouterr().out.splitlines()] == words
