"""The display of a running training, line by line of its log: what is shown of updates and of validations."""

from __future__ import annotations

import json

import pytest

from tests.support.terminal import Terminal
from unified.cli.training_display import TrainingDisplay


def line(logger: str, content: object) -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    return f"2026-01-01 10:00:00 | INFO | {logger} | {text}\n"


def inner(update: object, loss: object) -> str:
    return line("train_inner", {"num_updates": update, "loss": loss})


def valid(**scores: object) -> str:
    return line("valid", {f"valid_{name}": value for name, value in scores.items()})


def shown(capsys, options: dict[str, str | bool], *lines: str) -> list[str]:
    """The lines that are printed, without the time that is left."""
    with TrainingDisplay(options) as display:
        for each in lines:
            display.read(each)
    return [said.rsplit(", 0:", 1)[0] for said in capsys.readouterr().err.splitlines()]


def test_a_training_of_unknown_length_has_a_line_for_each_interval(capsys):
    for options in ({}, {"--max-update": True}, {"--max-update": "0"}):
        found = shown(capsys, options, inner("1000", "2.34567"), inner("2e3", 2), valid(loss="3", num_updates="2000"))
        assert found == [
            "training: 1,000 updates, loss 2.346",
            "training: 2,000 updates, loss 2.000",
            "validation after 2,000 updates: loss 3",
        ]


def test_a_training_of_known_length_shows_its_progress(capsys):
    """First and last line are shown at once, others only after seconds."""
    found = shown(capsys, {"--max-update": "4e3"}, inner(1500, 9), inner(2000, 8), inner(4000, "7.0004"))
    assert found == ["training: 1,500 of 4,000 updates, loss 9.000", "training: 4,000 of 4,000 updates, loss 7.000"]


def test_updates_are_counted_from_the_first_line_of_either_logger(capsys):
    start = line("first_updates", {"num_updates": 1, "loss": 9})
    found = shown(capsys, {"--max-update": "3"}, start, inner(2, 8), inner(3, 7))
    assert found == ["training: 1 of 3 updates, loss 9.000", "training: 3 of 3 updates, loss 7.000"]


def test_a_validation_after_the_last_interval_completes_the_progress(capsys):
    found = shown(
        capsys, {"--max-update": "30"}, inner(10, 9), valid(loss=1, num_updates=10), valid(loss=2, num_updates="30")
    )
    assert found == [
        "training: 10 of 30 updates, loss 9.000",
        "validation after 10 updates: loss 1",
        "training: 30 of 30 updates, loss 9.000",
        "validation after 30 updates: loss 2",
    ]
    again = shown(capsys, {"--max-update": "30"}, inner(30, 9), valid(loss=2, num_updates="30"))
    assert again == ["training: 30 of 30 updates, loss 9.000", "validation after 30 updates: loss 2"]
    before = shown(capsys, {"--max-update": "30"}, valid(loss=2, num_updates="7"))
    assert before == ["validation after 7 updates: loss 2"]


FIGURES = {"loss": "1", "ppl": "2", "wps": "3", "wpb": "4", "bsz": "5", "ups": "6", "wall": "7", "num_updates": "8"}


@pytest.mark.parametrize(
    ("measure", "scores", "says"),
    [
        (None, {}, "loss 1"),
        (None, {"best_loss": "0.5"}, "loss 1"),
        (None, {"epoch": "3", "none": None}, "loss 1"),
        (None, {"bert_loss": "4", "bert_accuracy": "50", "bert_ppl": "9"}, "loss 1, bert_loss 4"),
        (None, {"accuracy": "50", "f1": "60"}, "loss 1, accuracy 50, f1 60"),
        ("f1", {"f1": "60", "best_f1": "60"}, "f1 60 (the best so far), loss 1"),
        ("f1", {"f1": "60", "best_f1": "65"}, "f1 60 (the best so far: 65), loss 1"),
        ("f1", {"f1": "60"}, "f1 60 (the best so far), loss 1"),
        ("f1", {"accuracy": "60", "best_f1": "65"}, "loss 1, accuracy 60"),
        ("loss", {"best_loss": "0.5"}, "loss 1 (the best so far: 0.5)"),
        (True, {"f1": "60", "best_loss": "0.5"}, "loss 1, f1 60"),
    ],
)
def test_scores_are_shown_and_figures_of_the_machine_are_not(capsys, measure, scores, says):
    options = {} if measure is None else {"--best-checkpoint-metric": measure}
    assert shown(capsys, options, valid(**FIGURES, **scores)) == [f"validation after 8 updates: {says}"]


def test_notes_of_the_plug_ins_are_shown_and_other_lines_are_not(capsys):
    found = shown(
        capsys,
        {},
        line("fairseq_plugins.tasks", "a note"),
        line("fairseq_plugins.tasks", {"num_updates": 3, "loss": 2}),
        line("fairseq_cli.train", "another"),
        line("fairseq_cli.train", {"num_updates": 3, "loss": 2}),
        line("train", {"train_loss": 3}),
        line("train_inner", "epoch 001"),
        line("first_updates", "epoch 002"),
        line("valid", "epoch 003"),
        "no line of a log\n",
        "\n",
    )
    assert found == ["a note", '{"num_updates": 3, "loss": 2}', "epoch 001", "epoch 002", "epoch 003"]


def test_notes_can_be_printed_before_and_after_the_first_update(capsys):
    with TrainingDisplay({"--max-update": "9"}) as display:
        display.say("before")
        display.read(inner(1, 2))
        display.say("after")
    assert [said.partition(" of ")[0] for said in capsys.readouterr().err.splitlines()] == [
        "before",
        "training: 1",
        "after",
    ]


def test_an_error_within_the_display_is_raised():
    with pytest.raises(RuntimeError, match="^no memory$"), TrainingDisplay({}):
        raise RuntimeError("no memory")


def test_the_bar_of_a_terminal_is_closed_when_the_training_fails(monkeypatch):
    """An open bar would leave the cursor behind it, where the error is printed then."""
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with pytest.raises(RuntimeError), TrainingDisplay({"--max-update": "9"}) as display:
        display.read(inner(1, 2))
        assert not terminal.getvalue().endswith("\n")
        raise RuntimeError
    assert " 1/9 " in terminal.getvalue() and terminal.getvalue().endswith("\n")


def test_a_terminal_without_a_training_shows_no_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with TrainingDisplay({"--max-update": "9"}):
        pass
    assert terminal.getvalue() == ""
