"""Locks of folders: one command at a time, and a killed one hinders nobody."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.refusals import refused
from unified.errors import UnifiedError
from unified.files.locks import TRAINING, locked_file, locked_training

# Locks the folder and forks a process, as a data loader does; both wait.
HOLDER = """
import os, sys, time
from pathlib import Path
from unified.files.locks import locked_training

with locked_training(Path(sys.argv[1])):
    if os.fork() == 0:
        print(os.getpid(), flush=True)
    time.sleep(60)
"""


def test_a_second_one_is_refused_and_a_third_is_not(tmp_path):
    folder = tmp_path / "deep" / "run"
    for _ in range(2):
        with locked_training(folder):
            with pytest.raises(UnifiedError, match=f"{folder}: a command is at work on it; wait for its end"):
                with locked_training(folder):
                    pytest.fail("not refused")
            assert [path.name for path in folder.iterdir()] == [TRAINING], "a refusal leaves the lock"
        assert list(folder.iterdir()) == []


def test_the_lock_of_a_killed_command_is_free_though_its_processes_live(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    try:
        with pytest.raises(UnifiedError, match="at work on it"), locked_training(tmp_path):
            pytest.fail("not refused")
        process.kill()
        assert process.wait() == -signal.SIGKILL and (tmp_path / TRAINING).exists()
        with locked_training(tmp_path):
            pass
    finally:
        signal.pidfd_send_signal(os.pidfd_open(child), signal.SIGKILL)


def in_a_fork(check: Callable[[], bool]) -> bool:
    """What a function returns in a forked process."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_process_does_not_hold_the_lock(tmp_path):
    begun, end = os.pipe(), os.pipe()
    with locked_file(tmp_path / "lock", tmp_path):
        child = os.fork()
        if child == 0:
            os.write(begun[1], b".")
            os.read(end[0], 1)
            os._exit(0)
        os.read(begun[0], 1)
    try:
        with locked_file(tmp_path / "lock", tmp_path):
            pass
    finally:
        os.write(end[1], b".")
        os.waitpid(child, 0)
        for descriptor in (*begun, *end):
            os.close(descriptor)


def test_a_fork_closes_no_file_that_was_opened_after_the_lock(tmp_path):
    """A new file gets the lowest free number, such as that of a lock that was given up."""

    def stay_open() -> bool:
        files = [os.open(tmp_path / "lock", os.O_RDONLY) for _ in range(50)]
        try:
            return in_a_fork(lambda: all(map(os.fstat, files)))
        finally:
            for file in files:
                os.close(file)

    with locked_file(tmp_path / "lock", tmp_path):
        assert stay_open() and in_a_fork(stay_open)
    assert stay_open()


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_lock_file_that_the_command_before_takes_away_is_locked_anew(tmp_path, monkeypatch, is_made_anew):
    """A lock of a file that has no name any more would keep nobody away."""
    file, flock, taken = tmp_path / "lock", fcntl.flock, []

    def lock(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if not taken:
            taken.append(file.unlink())
            if is_made_anew:
                file.touch()

    monkeypatch.setattr(fcntl, "flock", lock)
    before = os.listdir("/proc/self/fd")
    with locked_file(file, tmp_path):
        says = f"{tmp_path}: a command is at work on it; wait for its end"
        assert refused(locked_file(file, tmp_path).__enter__) == says
    assert len(os.listdir("/proc/self/fd")) == len(before) and taken == [None]


def test_what_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnifiedError, match="file: File exists"), locked_training(tmp_path / "file"):
        pass
    with (
        pytest.raises(UnifiedError, match="none/lock: No such file"),
        locked_file(tmp_path / "none" / "lock", tmp_path),
    ):
        pass
