"""Programs that are started and waited for end with the process that waits."""

import os
import signal
import subprocess
import sys
import time

import pytest


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("call", ["read_module('sleeper', [], lambda line: print(line, end='', flush=True))",
                                  "run_module('sleeper', [])"])  # fmt: skip
def test_a_terminated_command_ends_the_program_that_it_waits_for(call, tmp_path):
    (tmp_path / "sleeper.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    code = f"from unified.runtime.processes import read_module, run_module\n{call}"
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", os.getcwd())))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}
    ) as command:
        sleeper = int(command.stdout.readline())
        command.send_signal(signal.SIGTERM)
        assert command.wait(30) == 128 + signal.SIGTERM
    for _ in range(100):
        if not alive(sleeper):
            return
        time.sleep(0.05)
    os.kill(sleeper, signal.SIGKILL)
    raise AssertionError("the program runs on")
