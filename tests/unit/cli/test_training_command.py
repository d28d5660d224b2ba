"""The command of fairseq-train: its words, where a training resumes, and what is printed when it ends or fails."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from unified.checkpoints import save
from unified.cli.commands import plugin_dir
from unified.cli.fairseq_train import check_further, gpu_count, print_command, run_command, updates_done, words_of
from unified.errors import TrainingFailed, UnifiedError

WORDS = ["fairseq-train", "data", "--max-update", "1e2", "--save-dir", "runs/a", "--cpu"]


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Replaces fairseq-train by a program that prints some lines and ends with a status or an error."""
    monkeypatch.chdir(tmp_path)
    given: list[list[str]] = []

    def play(lines: list[str], ends: int | BaseException = 0) -> list[list[str]]:
        def module(name, words, read):
            assert name == "fairseq_cli.train"
            given.append(list(words))
            for line in lines:
                read(line)
            if isinstance(ends, BaseException):
                raise ends
            return ends

        monkeypatch.setattr("unified.cli.fairseq_train.read_module", module)
        return given

    return play


def leave(updates: int) -> None:
    """Leaves a checkpoint after so many updates."""
    Path("runs/a").mkdir(parents=True, exist_ok=True)
    history = [{"num_updates": updates - before} for before in (2, 1, 0)]
    save({"optimizer_history": history}, Path("runs/a/checkpoint_last.pt"))


def test_the_command_has_the_plug_ins_and_the_options_of_the_user_and_can_be_pasted(capsys):
    words = print_command(["a data", "--lr", "1"], "--fp16 --x 'y z'")
    assert words == [
        "fairseq-train",
        "a data",
        "--user-dir",
        str(plugin_dir.folder()),
        "--lr",
        "1",
        "--fp16",
        "--x",
        "y z",
    ]
    line = f"fairseq-train 'a data' --user-dir {plugin_dir.folder()} --lr 1 --fp16 --x 'y z'\n"
    assert capsys.readouterr() == ("", line)
    assert print_command(["a data", "--lr", "1"], "--fp16 --x 'y z'", alone=True) == words
    assert capsys.readouterr() == (line, "")
    assert words_of("--fairseq", "") == []
    with pytest.raises(UnifiedError) as refused:
        print_command(["data"], "--x 'y")
    assert str(refused.value) == '--fairseq "--x \'y": a quotation mark is not closed'
    with pytest.raises(UnifiedError) as refused:
        check_further("--x 'y", own=())
    assert str(refused.value) == '--fairseq "--x \'y": a quotation mark is not closed'


def test_options_that_the_command_decides_by_itself_are_refused_and_the_others_are_returned():
    given = {"--fp16": True, "--lr": "1", "--max-update": "7", "--total-num-update": "7"}
    assert check_further("--fp16 --lr 1 --max-update 7 --total-num-update=7", own=("--seed",)) == given
    for further, says in (
        *((f"--fp16 {option} x", f" {option}: the command gives it by itself; leave it out")
          for option in ("--user-dir", "--task", "--criterion")),
        ("--save-dir x", ": the checkpoints go into the folder of --output; leave out save-dir"),
        ("--checkpoint-suffix x",
         ": the checkpoints go into the folder of --output under names without a suffix; leave out checkpoint-suffix"),
        ("--max-update 1e2", ": --max-update must be a whole number, got 1e2"),
        ("--max-update", ": --max-update must be a whole number, got nothing"),
        ("--max-update 7",
         " --max-update 7: fairseq-train would let the learning rate reach 0 at another update; add "
         "--total-num-update 7 and --warmup-updates, or give --epochs in place of all three"),
        *((f"--fp16 {given}", " --seed: the command has an option --seed; give it outside of --fairseq")
          for given in ("--seed 3", "--seed=3")),
    ):  # fmt: skip
        with pytest.raises(UnifiedError) as refused:
            check_further(further, own=("--lr-scheduler", "--seed"))
        assert str(refused.value) == f"--fairseq{says}"


def test_a_training_resumes_after_its_last_checkpoint_and_a_finished_one_is_not_repeated(played, capsys):
    assert updates_done(Path("runs/a")) == 0
    given = played([])
    run_command(WORDS)
    started = "training on the CPU; fairseq-train logs to runs/a/train.log"
    assert given == [WORDS[1:]] and capsys.readouterr().err.splitlines() == [started]
    leave(99)
    assert updates_done(Path("runs/a")) == 99
    run_command(WORDS)
    goes_on = "runs/a holds 99 updates of this training, which goes on behind them"
    assert len(given) == 2 and capsys.readouterr().err.splitlines() == [started, goes_on]
    Path("runs/a/model.safetensors").touch()
    for updates in (100, 101):
        leave(updates)
        run_command(WORDS)
        assert capsys.readouterr().err == "runs/a: trained with these settings before; nothing is changed\n"
    without_end = ["fairseq-train", "data", "--save-dir", "runs/a"]
    run_command(without_end)
    assert len(given) == 3


def test_a_training_that_was_killed_before_its_files_for_transformers_gets_them(played, monkeypatch, capsys):
    """Given once more, the command said that nothing is changed, and wrote no files for transformers."""
    given, published = played([]), []
    monkeypatch.setattr("unified.tasks.publishing.publish", lambda *given: published.append(given))
    leave(100)
    run_command([*WORDS, "--no-export"])
    assert published == []
    run_command(WORDS)
    assert published == [(Path("runs/a"), ())]
    nothing, written = capsys.readouterr().err.splitlines()
    assert nothing == "runs/a: trained with these settings before; nothing is changed"
    assert written == (
        "runs/a: trained with these settings before; the files for transformers were missing and are written now"
    )

    def refused(*given):
        raise UnifiedError("its data folder is gone")

    monkeypatch.setattr("unified.tasks.publishing.publish", refused)
    run_command(WORDS)
    said = "runs/a: trained with these settings before; not written for transformers: its data folder is gone\n"
    assert capsys.readouterr().err == said and given == []


def test_all_that_fairseq_train_prints_is_appended_to_the_log(played):
    played(["één\n", "two\n"])
    run_command(WORDS)
    run_command(WORDS)
    assert Path("runs/a/train.log").read_text(encoding="utf-8") == "één\ntwo\n" * 2


def test_a_line_is_in_the_log_as_soon_as_it_is_printed(played, monkeypatch):
    """Somebody may watch it, or the power may fail."""
    seen = []

    def module(name, words, read):
        for line in ("one\n", "two\n"):
            read(line)
            seen.append(Path("runs/a/train.log").read_text(encoding="utf-8"))
        return 0

    monkeypatch.setattr("unified.cli.fairseq_train.read_module", module)
    run_command(WORDS)
    assert seen == ["one\n", "one\ntwo\n"]


def test_an_interruption_is_noted_and_raised_again(played, capsys):
    played(["one\n"], KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run_command(WORDS)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "interrupted before the first checkpoint; the same command begins anew"
    ]
    assert Path("runs/a/train.log").read_text(encoding="utf-8") == "one\n"
    leave(3)
    with pytest.raises(KeyboardInterrupt):
        run_command(WORDS)
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "interrupted; the same command goes on from the last checkpoint"


@pytest.mark.parametrize(
    ("lines", "reason", "shown"),
    [
        ([], "it printed nothing", []),
        (["\n", " \n"], "it printed nothing", []),
        (["  RuntimeError: no memory \n", "\n"], "RuntimeError: no memory", ["    RuntimeError: no memory"]),
        (["unified_lm: error: first\n", "train.py: error: second\n", "more\n"], "second", []),
        ([f"unified_lm: error: {n}\n" for n in range(3)], "2", []),
        (["see unified_lm: error: no refusal\n"], "see unified_lm: error: no refusal",
         ["  see unified_lm: error: no refusal"]),
        ([f"{n}\n" for n in range(30)], "29", [f"  {n}" for n in range(18, 30)]),
        (["unified_lm: error: long ago\n", *(f"{n}\n" for n in range(12))], "11", [f"  {n}" for n in range(12)]),
    ],
)  # fmt: skip
def test_a_failure_names_its_reason_after_the_last_lines_of_the_log(played, capsys, lines, reason, shown):
    played(lines, 1)
    with pytest.raises(TrainingFailed) as failed:
        run_command(WORDS)
    assert failed.value.details == (
        f"fairseq-train has failed: {reason}; all that it printed is in {Path('runs/a/train.log')}"
    )
    assert capsys.readouterr().err.splitlines()[1:] == shown


def test_a_training_that_the_system_kills_is_said_to_be(played, capsys):
    """It prints nothing about it, so that its last lines would be taken for the reason."""
    played(["2026-01-01 10:00:00 | INFO | fairseq.trainer | begin training epoch 2\n"], -signal.SIGKILL)
    with pytest.raises(TrainingFailed) as failed:
        run_command(WORDS)
    assert failed.value.details == (
        "fairseq-train has failed: it was killed, perhaps for want of memory, of which smaller batches need less; "
        f"all that it printed is in {Path('runs/a/train.log')}"
    )
    assert "begin training" not in capsys.readouterr().err


def test_a_log_without_figures_gets_no_summary_at_the_end(played, capsys):
    validation = {"valid_loss": "nothing", "valid_num_updates": "3"}
    played([f"2026-01-01 10:00:00 | INFO | valid | {json.dumps(validation)}\n"])
    run_command(WORDS)
    assert capsys.readouterr().err.splitlines()[1:] == ["validation after 3 updates: loss nothing"]


def test_a_training_uses_all_gpus_unless_a_device_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    assert (gpu_count(None), gpu_count("cpu"), gpu_count("cuda")) == (3, 0, 3)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(UnifiedError, match="^--device cuda: "):
        gpu_count("cuda")
