"""How far a job is: lines in a log, which say the time left, and a bar in a terminal."""

import io

import pytest

from tests.support.terminal import Terminal
from unified.runtime import progress
from unified.runtime.progress import StepProgress


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_has_lines_some_seconds_apart_the_first_and_the_last(clock):
    log = io.StringIO()
    with StepProgress("training", 1000, "updates", done=200, stream=log, interval=10) as bar:
        bar.advance("loss 9", 0)
        for _ in range(8):
            clock[0] += 4
            bar.advance(f"at {clock[0]:.0f}", 100)
        bar.say("a note")
    assert log.getvalue().splitlines() == [
        "training: 200 of 1,000 updates, loss 9",
        "training: 500 of 1,000 updates, at 112, 0:00:20 left",  # 300 in 12 seconds, 500 to go
        "training: 800 of 1,000 updates, at 124, 0:00:08 left",
        "training: 1,000 of 1,000 updates, at 132, 0:00:00 left",
        "a note",
    ]


def test_the_time_left_does_not_count_what_the_first_step_waits_for(clock):
    log = io.StringIO()
    with StepProgress("predict", 50, "items", stream=log) as bar:
        clock[0] += 18  # a model is loaded
        for _ in range(50):
            bar.advance()
            clock[0] += 0.5
    assert log.getvalue().splitlines() == [
        "predict: 1 of 50 items",
        "predict: 21 of 50 items, 0:00:14 left",
        "predict: 41 of 50 items, 0:00:04 left",
        "predict: 50 of 50 items, 0:00:00 left",
    ]


def test_a_short_job_leaves_no_line_in_a_log_and_a_long_one_some(clock, capsys):
    assert list(progress.shown(iter("abc"), "predict", 3, "items")) == ["a", "b", "c"] and capsys.readouterr().err == ""
    for _ in progress.shown(range(4), "predict", 8, "items", 4):
        clock[0] += 6
    lines = ["predict: 6 of 8 items, 0:00:12 left", "predict: 8 of 8 items, 0:00:00 left"]
    assert capsys.readouterr().err.splitlines() == lines


def test_a_terminal_has_a_bar_with_the_note_and_lines_above_it():
    terminal = Terminal()
    with StepProgress("training", 4, "updates", stream=terminal) as bar:
        bar.advance("loss 8.125")
        bar.say("validation: loss 8.5")
        bar.advance("loss 7.5", 3)
    said = terminal.getvalue()
    assert "\nvalidation: loss 8.5\n" in said.replace("\r", "\n")
    assert "4/4" in said and "loss 7.5" in said and "training: 100%" in said
