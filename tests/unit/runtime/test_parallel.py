"""Work in several processes, and progress lines."""

import io
import os
import signal
import time

import pytest
import torch

from tests.support.terminal import Terminal
from unified.errors import UnifiedError
from unified.runtime.parallel import ordered_map
from unified.runtime.progress import Progress


def slow_square(number):
    time.sleep(0.02 * (number % 3 == 0))
    return os.getpid(), number * number


def test_results_come_in_order_and_little_is_taken_ahead():
    taken = []

    def numbers():
        for number in range(60):
            taken.append(number)
            yield number

    processes = set()
    for i, (process, square) in enumerate(ordered_map(slow_square, numbers(), workers=2)):
        assert square == i * i and len(taken) <= i + 6
        processes.add(process)
    assert os.getpid() not in processes and len(taken) == 60


def ignores_interrupts(_):
    return signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_workers_leave_ctrl_c_to_the_first_process():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert all(ordered_map(ignores_interrupts, range(4), workers=2))
        assert not ignores_interrupts(0)
    finally:
        signal.signal(signal.SIGINT, before)


def threads(_):
    return torch.get_num_threads()


def test_a_worker_computes_in_one_thread_and_leaves_its_parent_alone():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert set(ordered_map(threads, range(4), workers=2)) == {1}
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def die_at_seven(number):
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_reported():
    with pytest.raises(UnifiedError, match="a worker process was killed; is there enough memory"):
        list(ordered_map(die_at_seven, range(100), workers=2))


def test_progress_says_how_far_and_no_more_than_once_an_interval():
    stream = io.StringIO()
    progress = Progress("train", stream=stream, interval=3600)
    for i in range(100):
        progress.add(1_000_000, f"{i} documents")
    assert stream.getvalue() == ""
    progress.finish("100 documents")
    assert stream.getvalue().startswith("train: 100 documents, 100.0 MB, ")
    often = Progress("train", stream=stream, interval=0)
    often.add(10, "1 document")
    assert len(stream.getvalue().splitlines()) == 2


def test_progress_says_the_time_left_where_the_whole_is_known(monkeypatch):
    monkeypatch.setattr("unified.runtime.progress.time.monotonic", lambda: 0.0)
    stream = io.StringIO()
    progress = Progress("train", stream=stream, interval=0, total=4_000_000)
    monkeypatch.setattr("unified.runtime.progress.time.monotonic", lambda: 30.0)
    progress.add(1_000_000, "9 lines")
    assert stream.getvalue() == "train: 9 lines, 1.0 MB, 0.0 MB/s, 0:01:30 left\n"


def test_progress_in_a_terminal_is_one_line_that_renews_itself():
    stream = Terminal()
    progress = Progress("train", stream=stream)
    progress.add(5_000_000, "50 documents")
    progress.finish("100 documents")
    assert stream.getvalue().count("\n") == 1 and stream.getvalue().startswith("\r")
    last = stream.getvalue().rstrip().split("\r")[-1]
    assert last.startswith("train: 5.00MB [") and "100 documents" in last
