"""What a worker process does before it works, in this process, where each step can be seen."""

import os
import signal
import threading
from concurrent.futures import Future
from multiprocessing import connection
from types import SimpleNamespace

import pytest
import torch

from unified.runtime import parallel


class Here:
    """An executor whose only worker is this process."""

    def __init__(self, workers, initializer, initargs):
        assert workers == 2
        initializer(*initargs)

    def submit(self, call, item):
        future = Future()
        future.set_result(call(item))
        return future

    def shutdown(self, cancel_futures):
        assert cancel_futures


@pytest.fixture
def begun(monkeypatch):
    """Handlers of signals and threads that a worker asks for."""
    handlers, threads = [], []

    class Thread:
        def __init__(self, **options):
            self.options = options

        def start(self):
            threads.append(self.options)

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Here)
    with monkeypatch.context() as patched:
        patched.setattr(signal, "signal", lambda *given: handlers.append(given))
        patched.setattr(threading, "Thread", Thread)
        assert list(parallel.ordered_map(str, range(9), 2)) == list("012345678")
    yield handlers, threads
    torch.set_num_threads(before)


def test_a_worker_leaves_interruptions_to_others_and_keeps_to_one_thread(begun):
    handlers, _ = begun
    assert handlers == [(signal.SIGINT, signal.SIG_IGN)]
    assert (os.environ["OMP_NUM_THREADS"], os.environ["TOKENIZERS_PARALLELISM"]) == ("1", "false")
    assert torch.get_num_threads() == 1


def test_a_worker_ends_with_its_parent_and_does_not_wait_for_it(begun, monkeypatch):
    """A thread waits that does not keep the process alive."""
    ((options,), waited) = (begun[1], [])
    assert options.keys() == {"target", "daemon"} and options["daemon"] is True

    def leave(status):
        raise SystemExit(status)

    monkeypatch.setattr(parallel, "parent_process", lambda: SimpleNamespace(sentinel=7))
    monkeypatch.setattr(connection, "wait", waited.append)
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(SystemExit) as left:
        options["target"]()
    assert left.value.code == 1 and waited == [[7]]
