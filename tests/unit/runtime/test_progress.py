"""Progress of a job, of bytes or of steps: lines in a log, which say the time left, and a bar in a terminal."""

import io
import sys

import pytest

from tests.support.terminal import Terminal
from unified.runtime import progress
from unified.runtime.progress import Progress, StepProgress


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def bars(monkeypatch):
    """What is asked of tqdm: its settings, then each call with its arguments."""
    asked = []

    class Bar:
        def __init__(self, **settings):
            asked.append(("made", settings))

        def __getattr__(self, name):
            return lambda *given, **named: asked.append((name, given, named))

    monkeypatch.setattr("tqdm.tqdm", Bar)
    return asked


# ---------------------------------------------------------------- bytes


def test_bytes_are_told_a_second_apart_on_standard_error(clock, capsys):
    job = Progress("reading")
    for second, said in ((0.5, ""), (0.999, ""), (1.0, "reading: 3 lines, 6.0 MB, 6.0 MB/s\n"), (1.9, "")):
        clock[0] = 100 + second
        job.add(2_000_000, "3 lines")
        assert capsys.readouterr() == ("", said)
    clock[0] = 102
    job.add(0, "4 lines")
    assert capsys.readouterr().err == "reading: 4 lines, 8.0 MB, 4.0 MB/s\n"
    clock[0] = 104
    job.finish("1,000 lines")
    assert capsys.readouterr().err == "reading: 1,000 lines, 8.0 MB, 2.0 MB/s\n"


def test_bytes_are_told_an_interval_apart(clock):
    stream = io.StringIO()
    job = Progress("reading", stream, interval=5)
    for second in (4.9, 5, 9.9, 10):
        clock[0] = 100 + second
        job.add(1, f"at {second}")
    assert [line.partition(",")[0] for line in stream.getvalue().splitlines()] == ["reading: at 5", "reading: at 10"]


@pytest.mark.parametrize(
    ("total", "size", "left"),
    [
        (4_000_000, 1_000_000, ", 0:00:30 left"),
        (1_000_000, 1_000_000, ", 0:00:00 left"),
        (999_999, 1_000_000, ", 0:00:00 left"),  # the file has shrunk meanwhile
        (4_000_000, 0, ""),
        (None, 1_000_000, ""),
        (0, 1_000_000, ", 0:00:00 left"),
        (36_001_000_000, 100_000_000, ", 0:59:50 left"),
        (1_000_000_000_000, 100_000_000, ", 1 day, 3:46:30 left"),
    ],
)
def test_the_time_left_is_that_of_the_bytes_left(clock, total, size, left):
    stream = io.StringIO()
    job = Progress("reading", stream, interval=0, total=total)
    clock[0] += 10
    job.add(size, "3 lines")
    assert stream.getvalue() == f"reading: 3 lines, {size / 1e6:,.1f} MB, {size / 1e7:,.1f} MB/s{left}\n"
    job.finish("3 lines")
    assert "left" not in stream.getvalue().splitlines()[1]


def test_a_job_that_takes_no_time_is_told_too(clock):
    stream = io.StringIO()
    job = Progress("reading", stream)
    job.add(3_000_000_000, "3 lines")
    job.finish("3 lines")
    assert stream.getvalue() == "reading: 3 lines, 3,000.0 MB, 3,000,000,000,000.0 MB/s\n"


def test_a_line_of_its_own_goes_to_standard_error(capsys):
    Progress.say("a note")
    Progress("reading", io.StringIO()).say("another")
    assert capsys.readouterr() == ("", "a note\nanother\n")


def test_a_terminal_shows_bytes_in_a_bar(bars):
    terminal = Terminal()
    job = Progress("reading", terminal, total=70)
    job.add(40, "3 lines")
    job.finish("5 lines")
    settings = {
        "desc": "reading",
        "total": 70,
        "file": terminal,
        "unit": "B",
        "unit_scale": True,
        "dynamic_ncols": True,
    }
    assert bars == [
        ("made", settings),
        ("set_postfix_str", ("3 lines",), {"refresh": False}),
        ("update", (40,), {}),
        ("set_postfix_str", ("5 lines",), {}),
        ("close", (), {}),
    ]
    assert terminal.getvalue() == ""


def test_progress_in_a_terminal_is_one_line_that_renews_itself():
    stream = Terminal()
    progress = Progress("train", stream=stream)
    progress.add(5_000_000, "50 documents")
    progress.finish("100 documents")
    assert stream.getvalue().count("\n") == 1 and stream.getvalue().startswith("\r")
    last = stream.getvalue().rstrip().split("\r")[-1]
    assert last.startswith("train: 5.00MB [") and "100 documents" in last


# ---------------------------------------------------------------- steps


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


def test_steps_are_told_ten_seconds_apart_the_first_and_the_last_at_once(clock, capsys):
    job = StepProgress("predict", 4, "items")
    for second in (0, 5, 9.5, 10):
        clock[0] = 100 + second
        job.advance()
    assert capsys.readouterr().err.splitlines() == [
        "predict: 1 of 4 items",
        "predict: 4 of 4 items, 0:00:00 left",
    ]


def test_the_last_note_stays_until_there_is_another(clock):
    log = io.StringIO()
    with StepProgress("training", 9000, "updates", stream=log, interval=0) as job:
        assert isinstance(job, StepProgress)
        job.advance("loss 9")
        clock[0] += 1
        job.advance(steps=999)
        clock[0] += 1
        job.advance("", 1000)
    assert log.getvalue().splitlines() == [
        "training: 1 of 9,000 updates, loss 9",
        "training: 1,000 of 9,000 updates, loss 9, 0:00:08 left",
        "training: 2,000 of 9,000 updates, 0:00:07 left",
    ]


def test_a_job_of_more_steps_than_were_told_has_no_time_left(clock):
    log = io.StringIO()
    job = StepProgress("predict", 2, "items", stream=log)
    for _ in range(3):
        job.advance()
        clock[0] += 1
    assert log.getvalue().splitlines()[-1] == "predict: 3 of 2 items, 0:00:00 left"


def test_a_patient_job_waits_for_its_interval_from_the_start(clock):
    log = io.StringIO()
    job = StepProgress("predict", 3, "items", stream=log, eager=False)
    for second in (0, 9.9, 10):
        clock[0] = 100 + second
        job.advance()
    assert log.getvalue() == "predict: 3 of 3 items, 0:00:00 left\n"


def test_a_terminal_shows_steps_in_a_bar(bars):
    terminal = Terminal()
    with StepProgress("training", 9, "updates", 4, terminal) as job:
        job.advance("loss 9", 2)
        job.advance()
        job.say("a note")
    settings = {
        "desc": "training",
        "total": 9,
        "initial": 4,
        "unit": " updates",
        "file": terminal,
        "dynamic_ncols": True,
    }
    assert bars == [
        ("made", settings),
        ("set_postfix_str", ("loss 9",), {"refresh": False}),
        ("update", (2,), {}),
        ("set_postfix_str", ("loss 9",), {"refresh": False}),
        ("update", (1,), {}),
        ("write", ("a note",), {"file": terminal}),
        ("close", (), {}),
    ]


def test_a_notebook_shows_a_bar_and_a_log_none(bars, monkeypatch):
    StepProgress("training", 9, "updates", stream=io.StringIO()).close()
    assert bars == []
    monkeypatch.setitem(sys.modules, "ipykernel", io)
    StepProgress("training", 9, "updates", stream=io.StringIO()).close()
    assert [one[0] for one in bars] == ["made", "close"] and bars[0][1]["initial"] == 0


def test_items_of_a_job_are_steps_in_a_terminal(bars, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    steps = progress.shown("ab", "predict", 5, "items")
    assert next(steps) == "a" and [one[0] for one in bars] == ["made"]  # an item is done when the next is asked for
    assert next(steps) == "b" and [one[0] for one in bars] == ["made", "set_postfix_str", "update"]
    assert list(steps) == [] and bars[-1][0] == "close" and [one[0] for one in bars].count("update") == 2
    assert bars[0][1]["initial"] == 0 and bars[0][1]["total"] == 5
