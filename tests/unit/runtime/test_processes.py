"""Programs that are started: their paths and output, and that they end with the process that waits for them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.support.locales import plain_locale
from unified.runtime.processes import guarded_children, module_command, read_module, run_module


def alive(process: int) -> bool:
    """Whether it runs; one that has ended may still wait for somebody to ask how."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("call", ["read_module('sleeper', [], lambda line: print(line, end='', flush=True))",
                                  "run_module('sleeper', [])"])  # fmt: skip
def test_a_terminated_command_ends_the_program_that_it_waits_for(call, number, tmp_path):
    (tmp_path / "sleeper.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    code = f"from unified.runtime.processes import read_module, run_module\n{call}"
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", os.getcwd())))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}
    ) as command:
        sleeper = int(command.stdout.readline())
        command.send_signal(number)
        assert command.wait(30) == (128 + number if number == signal.SIGTERM else -number)
    for _ in range(100):
        if not alive(sleeper):
            return
        time.sleep(0.05)
    os.kill(sleeper, signal.SIGKILL)
    raise AssertionError("the program runs on")


def test_a_module_is_started_without_the_current_folder_on_its_path(tmp_path, monkeypatch, capfd):
    """Neither by ``-m`` nor by an empty entry of PYTHONPATH, in the program and in those that it starts."""
    modules, current = tmp_path / "modules", tmp_path / "current"
    for folder in (modules, current):
        folder.mkdir()
    (modules / "shows.py").write_text(
        "import json, os, subprocess, sys\n"
        "child = subprocess.run([sys.executable, '-c', 'import sys; print(sys.path)'], stdout=subprocess.PIPE)\n"
        "print(json.dumps([sys.argv[1:], sys.path, eval(child.stdout)]))\nsys.exit(7)\n"
    )
    monkeypatch.chdir(current)
    monkeypatch.setenv("PYTHONPATH", f"{modules}{os.pathsep}")
    before = signal.getsignal(signal.SIGTERM)
    lines: list[str] = []
    assert run_module("shows", ["--c", 3]) == 7 == read_module("shows", ["--c", 3], lines.append)
    assert signal.getsignal(signal.SIGTERM) is before
    for line in (capfd.readouterr().out, *lines):
        words, *paths = json.loads(line)
        assert words == ["--c", "3"]
        for path in paths:
            assert str(modules) in path and not {"", ".", str(current)} & set(path)


def test_a_command_is_that_of_this_python():
    assert module_command("a.b", ["--c", 3]) == [sys.executable, "-P", "-m", "a.b", "--c", "3"]
    assert module_command("a") == [sys.executable, "-P", "-m", "a"]


@pytest.fixture
def talker(tmp_path, monkeypatch):
    """A module that says something on both streams, in UTF-8 but for one byte, and ends with status 5."""
    (tmp_path / "talker.py").write_text(
        "import os, sys, time\n"
        "os.write(1, b'one \\xc3\\xa9\\n')\nos.write(2, b'two \\xff ' + sys.argv[1].encode() + b'\\n')\n"
        "time.sleep(float(sys.argv[2]))\nsys.exit(5)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    return "talker"


def test_only_the_main_thread_changes_what_a_signal_does(talker):
    before, seen = signal.getsignal(signal.SIGTERM), []

    def read_once() -> None:
        assert read_module(talker, ["x", 0], lambda line: seen.append(signal.getsignal(signal.SIGTERM))) == 5

    read_once()
    assert len(seen) == 2 and before not in seen
    seen.clear()
    thread = threading.Thread(target=read_once)
    thread.start()
    thread.join()
    assert seen == [before, before]


def test_lines_of_both_streams_are_read_as_they_come(talker):
    lines = []
    with plain_locale():
        assert read_module(talker, ["x y", 0], lines.append) == 5
    assert lines == ["one é\n", "two \ufffd x y\n"]


def test_a_program_is_ended_where_reading_fails(talker):
    """At its second line, behind which it says nothing more for a while."""
    start, lines = time.monotonic(), []

    def read(line):
        lines.append(line)
        if len(lines) == 2:
            raise ZeroDivisionError(line)

    with pytest.raises(ZeroDivisionError, match="two"):
        read_module(talker, ["x", 60], read)
    assert time.monotonic() - start < 30


def test_a_command_that_is_terminated_while_it_reads_ends_with_that_signal(talker):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as raised:
        read_module(talker, ["x", 0], lambda line: os.kill(os.getpid(), signal.SIGTERM))
    assert raised.value.code == 128 + signal.SIGTERM and signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("raised", [None, KeyError])
@pytest.mark.parametrize(
    ("path", "inside"),
    [(None, None), ("", ""), ("/a", "/a"), (":/a::/b:", "/a:/b"), (".:/a", ".:/a"), ("::", "")],
)
def test_empty_entries_of_the_path_are_left_out_for_children_and_come_back(monkeypatch, path, inside, raised):
    for safe in (None, "before"):
        for name, value in (("PYTHONPATH", path), ("PYTHONSAFEPATH", safe)):
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        try:
            with guarded_children():
                assert (os.environ.get("PYTHONPATH"), os.environ["PYTHONSAFEPATH"]) == (inside, "1")
                os.environ["PYTHONPATH"] = "/changed/within"
                if raised:
                    raise raised
        except KeyError:
            assert raised is KeyError
        assert (os.environ.get("PYTHONPATH"), os.environ.get("PYTHONSAFEPATH")) == (path, safe)
