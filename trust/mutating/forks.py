"""Runs pytest in forks of one process that has imported what is slow to import, on a copy of the project.

The copy is what is mutated. So what a test imports and what a command that it starts imports are both mutated, as are
constants, defaults and decorators, which are evaluated while a module is imported.
"""

from __future__ import annotations

import atexit
import importlib
import itertools
import logging
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

#: Imported once, before the forks; none of them imports the project. All take seconds.
PRELOADED = ("numpy", "torch", "torch._dynamo", "pytest", "transformers", "fairseq", "fairseq.tasks", "fairseq.trainer",
             "fairseq.options", "scipy.optimize", "sacrebleu", "rouge_score.rouge_scorer")  # fmt: skip
PRINTED = "printed"  # name of the file
PASSED, KILLED, TIMED_OUT, NO_TESTS = "survived", "killed", "timed out", "no tests"
#: Bytes of addresses that a fork may take beyond those of its parent.
MEMORY = 8 << 30
_NO_TESTS_COLLECTED = 5
_SECONDS = itertools.count(1)  # between the time of a module and that of each source it gets
# With pytest's own tracebacks a failure takes a quarter of a second more.
_OPTIONS = ("-q", "--no-header", "--tb=native", "-p", "no:cacheprovider", "-p", "pytest_timeout", "-o", "addopts=")


@dataclass(frozen=True)
class Outcome:
    """What pytest made of a mutant: one of the constants above, and the end of what it printed."""

    status: str
    output: str


def preload(modules: Sequence[str] = PRELOADED) -> None:
    """Imports what tests import anyway, with the settings of tests/conftest.py, in this process."""
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE", TOKENIZERS_PARALLELISM="false",
                      HF_HUB_OFFLINE="1")  # fmt: skip
    folder = tempfile.mkdtemp(prefix="modules-cache-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["HF_MODULES_CACHE"] = folder
    log = logging.getLogger()
    level, handlers = log.level, [*log.handlers]
    for module in modules:
        importlib.import_module(module)
    log.level, log.handlers = level, handlers  # fairseq changes them, but not while pytest imports it


def copied(root: Path, folder: Path) -> Path:
    """Copies the files of the project, those that git knows or would take, into a new ``folder``."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            check=True, capture_output=True).stdout.decode()  # fmt: skip
    for name in filter(None, listed.split("\0")):
        source, target = root / name, folder / name
        if source.is_file():  # neither removed nor a link to a folder
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return folder


@contextmanager
def changed(file: Path, source: str) -> Iterator[None]:
    """Gives a module another source for a while. Nothing that Python compiles meanwhile is taken for that of another.

    Python takes compiled code for that of a file of the same size that was written in the same second. So each source
    gets a second of its own, and what is compiled of it is removed; what was compiled before comes back.
    """
    before, when = file.read_bytes(), file.stat()
    compiled = {path: path.read_bytes() for path in _compiled(file)}
    for path in compiled:
        path.unlink()
    file.write_text(source, encoding="utf-8")
    os.utime(file, ns=(when.st_atime_ns, when.st_mtime_ns - next(_SECONDS) * 10**9))
    try:
        yield
    finally:
        file.write_bytes(before)
        os.utime(file, ns=(when.st_atime_ns, when.st_mtime_ns))
        for path in _compiled(file):
            path.unlink()
        for path, code in compiled.items():
            path.write_bytes(code)


def _compiled(file: Path) -> list[Path]:
    return list((file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"))


class TimeOfEachTest:
    """A plugin of pytest that ends the process where one test takes more seconds of a processor than it may.

    Args:
        seconds: test -> how many.
    """

    def __init__(self, seconds: Mapping[str, float]):
        self.seconds = seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Moves the soft limit of this process, which the next test moves again."""
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        most = int(sum(os.times()[:2]) + self.seconds[item.nodeid]) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (min(most, hard), hard))


def run_pytest(
    project: Path, words: Sequence[str], seconds: float, stop_early: bool = True, plugins: Sequence[object] = ()
) -> Outcome:
    """Runs pytest with ``words`` in a fork whose project is the folder ``project``.

    Args:
        seconds: of a processor that it may take; of the clock it may take ten times as many, on a busy machine.
        stop_early: end with the first test that fails.
        plugins: of pytest.
    """
    pid, scratch = started(project, [*(["-x"] if stop_early else []), *words], seconds, plugins)
    code, printed = waited(pid, seconds), scratch / PRINTED
    output = printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else ""
    shutil.rmtree(scratch, ignore_errors=True)
    return Outcome(status_of(code, {0: PASSED, _NO_TESTS_COLLECTED: NO_TESTS}, KILLED), output)


def started(project: Path, words: Sequence[str], seconds: float, plugins: Sequence[object]) -> tuple[int, Path]:
    """Starts pytest in a fork; returns its number, and the folder of its temporary files and of what it prints."""
    scratch = Path(tempfile.mkdtemp(prefix="mutant-"))
    pid = os.fork()
    if pid == 0:
        _be_pytest(project, [*_OPTIONS, *words], scratch / PRINTED, scratch, int(seconds), plugins)
    return pid, scratch


def waited(pid: int, seconds: float) -> int | None:
    """Waits for a fork, and ends all that it has started; returns its exit code, None where time was up.

    Args:
        pid: of a fork that leads a group of processes.
        seconds: of a processor; of the clock ten times as many pass.
    """
    descriptor = os.pidfd_open(pid)
    try:
        ended, _, _ = select.select([descriptor], [], [], 10 * seconds)
    finally:
        os.close(descriptor)
    try:
        os.killpg(pid, signal.SIGKILL)  # what the tests have started too
    except ProcessLookupError:
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if ended else None


def status_of(code: int | None, statuses: Mapping[int, str], other: str) -> str:
    """What an exit code says of a mutant: one of ``statuses``, or ``other``. A crash of the process notices it."""
    if code is None or code == -signal.SIGXCPU:
        return TIMED_OUT
    return KILLED if code < 0 else statuses.get(code, other)


def _be_pytest(
    project: Path, words: list[str], printed: Path, scratch: Path, seconds: int, plugins: Sequence[object]
) -> None:
    """Turns this process, a fork, into one that runs pytest and ends."""
    status = 70
    try:
        os.setsid()
        with printed.open("wb") as file:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        used = int(sum(os.times()[:2])) + 1
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, used + seconds + 5))
        os.chdir(project)
        os.environ.update(PYTHONPATH=str(project), TMPDIR=str(scratch))
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # importing those of other packages takes a second
        os.environ["FRESH_PYTHON"] = "1"  # see tests/support/prepared_python.py
        tempfile.tempdir = None
        root = str(Path(__file__).resolve().parents[2])
        sys.path[:] = [str(project), *(path for path in sys.path if path not in ("", root))]
        for name in [*sys.modules]:  # of the project's own packages, the campaign's among them
            if name.partition(".")[0] in ("trust", "unified", "fairseq_plugins", "tests"):
                del sys.modules[name]
        status = int(pytest.main(words, plugins))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
