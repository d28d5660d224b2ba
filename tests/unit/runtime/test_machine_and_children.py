"""The machine that is described, programs that are started without the current folder, and worker processes."""

import builtins
import io
import logging
import os
import platform
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

from unified.errors import Interrupted
from unified.runtime.announcements import log_once
from unified.runtime.machine import machine, processor_name
from unified.runtime.parallel import available_cores, ordered_map
from unified.runtime.processes import guarded_children, module_command, read_module, run_module

# ---------------------------------------------------------------- the machine


@pytest.fixture
def cpuinfo(monkeypatch):
    """Says what /proc/cpuinfo holds; None where there is no such file."""
    really_open, content = builtins.open, [None]

    def opened(path, *arguments, **named):
        if path != "/proc/cpuinfo":
            return really_open(path, *arguments, **named)
        assert named == {"encoding": "utf-8"}
        if content[0] is None:
            raise FileNotFoundError(path)
        return io.StringIO(content[0])

    monkeypatch.setattr(builtins, "open", opened)
    return content


def test_a_processor_has_the_name_of_its_first_core(cpuinfo, monkeypatch):
    cpuinfo[0] = "processor\t: 0\nmodel\t\t: 6\nmodel name\t: A: 3 GHz \nmodel name\t: B\n"
    assert processor_name() == "A: 3 GHz"
    monkeypatch.setattr(platform, "processor", lambda: "ppc")
    monkeypatch.setattr(platform, "machine", lambda: "ppc64")
    for none in (None, "", "processor : 0\n"):
        cpuinfo[0] = none
        assert processor_name() == "ppc"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor_name() == "ppc64"


def test_a_machine_has_a_processor_cores_and_perhaps_a_gpu(cpuinfo, monkeypatch):
    cpuinfo[0] = "model name : A\n"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert machine() == {"processor": "A", "cores": 12}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine() == {"processor": "A", "cores": 1, "gpu": "a card"}


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 6} if process == 0 else set())
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert available_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_cores() == 12
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


def test_a_note_is_logged_once(caplog):
    logger = logging.getLogger("unified.a_test_of_notes")
    log_once.cache_clear()
    with caplog.at_level(logging.INFO, logger.name):
        for note in ("one", "two", "one"):
            log_once(logger, note)
        assert [(record.levelno, record.message) for record in caplog.records] == [(20, "one"), (20, "two")]
        log_once.cache_clear()
        log_once(logger, "one")
    assert len(caplog.records) == 3


# ---------------------------------------------------------------- programs that are started


def test_a_module_is_started_without_the_current_folder_on_its_path(monkeypatch):
    asked = []

    def run(command):
        asked.append((command, os.environ["PYTHONSAFEPATH"], signal.getsignal(signal.SIGTERM)))
        return subprocess.CompletedProcess(command, 7)

    monkeypatch.setattr(subprocess, "run", run)
    before = signal.getsignal(signal.SIGTERM)
    assert run_module("a.b", ["--c", 3]) == 7
    ((command, safe, handler),) = asked
    assert command == module_command("a.b", ["--c", 3]) == [sys.executable, "-P", "-m", "a.b", "--c", "3"]
    assert module_command("a") == [sys.executable, "-P", "-m", "a"] and safe == "1"
    with pytest.raises(SystemExit) as left:
        handler(signal.SIGTERM, None)
    assert left.value.code == 143 and signal.getsignal(signal.SIGTERM) is before is not handler


def test_in_another_thread_signals_stay_as_they_are(monkeypatch):
    seen = []
    before = signal.getsignal(signal.SIGTERM)

    def run(command):
        seen.append(signal.getsignal(signal.SIGTERM))
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", run)
    thread = threading.Thread(target=lambda: seen.append(run_module("a", [])))
    thread.start()
    thread.join()
    assert seen == [before, 3]


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


def test_lines_of_both_streams_are_read_as_they_come(talker):
    lines = []
    assert read_module(talker, ["x y", 0], lines.append) == 5
    assert lines == ["one é\n", "two \ufffd x y\n"]


def test_a_program_is_ended_where_reading_fails(talker):
    start = time.monotonic()

    def read(line):
        raise ZeroDivisionError(line)

    with pytest.raises(ZeroDivisionError, match="one é"):
        read_module(talker, ["x", 60], read)
    assert time.monotonic() - start < 30


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


# ---------------------------------------------------------------- worker processes


def surroundings(_):
    return os.getpid(), os.environ["TOKENIZERS_PARALLELISM"], os.environ["OMP_NUM_THREADS"], threading.active_count()


def test_a_worker_has_one_core_and_watches_its_parent(monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    found = list(ordered_map(surroundings, range(2), workers=2))
    assert {one[1:3] for one in found} == {("false", "1")} and os.environ["OMP_NUM_THREADS"] == "7"
    assert os.getpid() not in {one[0] for one in found} and min(one[3] for one in found) >= 2
    ((process, *kept, _),) = ordered_map(surroundings, range(1), workers=1)
    assert process == os.getpid() and kept == ["true", "7"]


def square(number):
    return number * number


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


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_an_interruption():
    with pytest.raises(Interrupted) as raised:
        list(ordered_map(die, range(3), workers=2))
    assert str(raised.value) == ("a worker process was killed; is there enough memory? Fewer processes need less")
