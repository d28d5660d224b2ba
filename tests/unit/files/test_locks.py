"""Locks of folders: one command at a time, and a killed one hinders nobody."""

import os
import signal
import subprocess
import sys

import pytest

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


def test_what_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnifiedError, match="file: File exists"), locked_training(tmp_path / "file"):
        pass
    with (
        pytest.raises(UnifiedError, match="none/lock: No such file"),
        locked_file(tmp_path / "none" / "lock", tmp_path),
    ):
        pass
