"""Work in several processes: results in order, what is taken ahead, and what a worker process is."""

import operator
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from multiprocessing import active_children
from threading import Thread
from types import SimpleNamespace

import pytest
import torch

from unified.errors import Interrupted
from unified.runtime import parallel
from unified.runtime.parallel import available_cores, kept_workers, ordered_map


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 6} if process == 0 else set())
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert available_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_cores() == 12
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


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


def test_no_more_processes_are_started_than_there_are_items():
    before = len(active_children())
    squares = ordered_map(slow_square, iter([1, 2]), workers=9)
    assert next(squares)[1] == 1 and len(active_children()) == before + 2
    assert [square for _, square in squares] == [4]
    assert list(ordered_map(slow_square, [], workers=9)) == []
    alone = ordered_map(slow_square, [3], workers=9)
    assert next(alone)[1] == 9 and len(active_children()) == before + 1


def ignores_interrupts(_):
    return signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_workers_leave_ctrl_c_to_the_first_process():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert list(ordered_map(ignores_interrupts, range(4), workers=2)) == [True] * 4
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


def surroundings(_):
    return os.getpid(), os.environ["TOKENIZERS_PARALLELISM"], os.environ["OMP_NUM_THREADS"]


def test_libraries_of_a_worker_are_told_to_use_one_core(monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    found = list(ordered_map(surroundings, range(2), workers=2))
    assert {one[1:] for one in found} == {("false", "1")} and os.environ["OMP_NUM_THREADS"] == "7"
    assert os.getpid() not in {one[0] for one in found}
    assert list(ordered_map(surroundings, range(1), workers=1)) == [(os.getpid(), "true", "7")]


def test_a_worker_ends_when_its_parent_is_killed():
    """It holds the other end of the pipe, which is closed when it has ended."""
    code = """if True:
        import os, time
        from unified.runtime.parallel import ordered_map

        def work(_):
            print("begun", flush=True)
            time.sleep(30)

        list(ordered_map(work, range(1), workers=2))
    """
    environment = os.environ | {"PYTHONPATH": os.environ.get("PYTHONPATH", os.getcwd())}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout.readline() == "begun\n"
        parent.kill()
        rest, _ = parent.communicate(timeout=20)
    assert rest == ""


def square(number):
    return number * number


@pytest.fixture
def here(monkeypatch):
    """What a worker does is done in this process; returns the threads that it would start: target, daemon."""
    begun = []

    class Thread:
        def __init__(self, target, daemon):
            self.asked = target, daemon

        def start(self):
            begun.append(self.asked)

    class Here:
        def __init__(self, workers, initializer, initargs):
            initializer(*initargs)

        def submit(self, call, *given):
            done = Future()
            done.set_result(call(*given))
            return done

        def shutdown(self, cancel_futures):
            assert cancel_futures

    before = signal.getsignal(signal.SIGINT), torch.get_num_threads()
    torch.set_num_threads(3)
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Thread", Thread)
        patched.setattr(parallel, "ProcessPoolExecutor", Here)
        for name in ("TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS"):
            patched.setenv(name, "5")
        yield begun
    signal.signal(signal.SIGINT, before[0])
    torch.set_num_threads(before[1])


def test_a_worker_takes_one_core_and_leaves_interrupts_to_its_parent(here):
    def told(number):
        return number, ignores_interrupts(number), threads(number), surroundings(number)[1:]

    assert list(ordered_map(told, [2, 3], workers=2)) == [(n, True, 1, ("false", "1")) for n in (2, 3)]


def test_a_worker_without_torch_does_not_import_it(here, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    assert list(ordered_map(square, [2, 3], workers=2)) == [4, 9] and "torch" not in sys.modules


def test_a_worker_waits_for_the_end_of_its_parent_beside_its_work(here, monkeypatch):
    """In a thread that does not keep its process alive."""
    list(ordered_map(square, [2], workers=2))
    ((waits, daemon),) = here
    happened, (reading, writing) = [], os.pipe()

    def parent():
        time.sleep(0.1)
        happened.append("the parent ends")
        os.close(writing)

    beside = Thread(target=parent)
    with monkeypatch.context() as patched:
        patched.setattr(parallel, "parent_process", lambda: SimpleNamespace(sentinel=reading))
        patched.setattr(os, "_exit", happened.append)
        beside.start()
        waits()
    beside.join()
    os.close(reading)
    assert daemon and happened == ["the parent ends", 1]


def test_three_items_per_worker_are_under_way_and_none_after_the_first_results_are_left():
    taken = []

    def numbers():
        for number in range(100):
            taken.append(number)
            yield number

    squares = ordered_map(square, numbers(), workers=2)
    assert next(squares) == 0 and len(taken) == 6
    assert next(squares) == 1 and len(taken) == 7
    squares.close()
    assert len(taken) == 7


def gated(path):
    """Notes that it has begun; all but the first wait for a file "go"."""
    path.touch()
    while path.name != "0" and not (path.parent / "go").exists():
        time.sleep(0.01)


def test_what_waits_is_not_begun_where_results_are_no_longer_asked_for(tmp_path):
    """Of twelve items under way, one is done, four run, and five lie ready for the four workers."""
    results = ordered_map(gated, (tmp_path / str(number) for number in range(40)), workers=4)
    next(results)
    threading.Timer(0.3, (tmp_path / "go").touch).start()
    results.close()
    begun = {path.name for path in tmp_path.iterdir()} - {"go"}
    assert 5 <= len(begun) <= 10 and not {"10", "11"} & begun


def die_at_seven(number):
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("count", [8, 100])
def test_a_killed_worker_is_an_interruption(count):
    """Whether items are still to come, or all of them are under way."""
    with pytest.raises(Interrupted) as raised:
        list(ordered_map(die_at_seven, range(count), workers=3))
    assert str(raised.value) == "a worker process was killed; is there enough memory? Fewer processes need less"


def raised_to(base, exponent):
    return os.getpid(), base**exponent


def divided_by(base, divisor):
    return os.getpid(), base // divisor


def test_processes_stay_for_several_maps_over_what_they_hold():
    before = set(active_children())
    with kept_workers(10, workers=2) as workers:
        powers = list(workers.ordered_map(raised_to, range(20)))
        started = set(active_children()) - before
        parts = list(workers.ordered_map(divided_by, iter([1, 2, 3])))
        assert set(active_children()) - before == started and len(started) == 2
    assert [found for _, found in powers] == [10**n for n in range(20)] and [found for _, found in parts] == [10, 5, 3]
    assert {process for process, _ in powers + parts} <= {process.pid for process in started}
    assert set(active_children()) == before
    with kept_workers(10, workers=1) as alone:
        assert list(alone.ordered_map(raised_to, [2])) == [(os.getpid(), 100)]


def test_a_process_that_is_killed_in_a_later_map_is_an_interruption():
    with pytest.raises(Interrupted), kept_workers(die_at_seven, workers=2) as workers:
        assert list(workers.ordered_map(operator.call, range(3))) == [None] * 3
        list(workers.ordered_map(operator.call, [7]))
