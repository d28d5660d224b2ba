"""Tries mistakes in functions on tests that were imported once: each in a fork of the process that did.

In the fork, the functions of a module get the code that the mutated source gives. What a module makes while it is
imported stays as it was; so mistakes in functions that run then have to be tried with everything imported anew.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from inspect import CO_OPTIMIZED
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from trust.mutating import forks

#: Status of a mistake in a function that is not found, or cannot be changed.
UNDECIDED = "undecided"
_FAILED, _NOT_TRIED = 1, 70
#: Seconds of a processor that all that one process does may take.
_LIMIT = 100_000


class Collected:
    """A process that has collected the tests of some files and waits for mistakes.

    Args:
        project: a copy of the project.
        files: paths of files of tests.
        seconds: test -> how many of a processor it may take.
    """

    def __init__(self, project: Path, files: Sequence[str], seconds: Mapping[str, float]):
        self._requests, theirs = multiprocessing.Pipe()
        server = _Server(project, theirs, self._requests)
        self._pid, self._scratch = forks.started(project, files, _LIMIT, [forks.TimeOfEachTest(seconds), server])
        theirs.close()
        self._answer()  # all is imported before a source changes

    def close(self) -> None:
        """Ends the process."""
        self._requests.close()
        forks.waited(self._pid, 60)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def tried(self, file: Path, before: str, after: str, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        """Status of a mistake, and the test that noticed it, empty where none did.

        Args:
            file: of the module, which holds the mutated source already, for what is imported or started later.
            before, after: the module's source without the mistake and with it; the same twice to try no mistake.
            tests: in this order, until one fails.
            seconds: of a processor that all of them may take.

        Raises:
            RuntimeError: the process has ended; with the end of what it printed.
        """
        self._requests.send((str(file), before, after, list(tests), seconds))
        return self._answer()

    def _answer(self) -> tuple[str, str]:
        try:
            return self._requests.recv()
        except EOFError as error:
            printed = self._scratch / forks.PRINTED
            text = printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else ""
            raise RuntimeError(f"the process that had collected the tests has ended: {text[-2000:]}") from error


class _Server:
    """A plug-in of pytest that answers requests where other sessions run tests.

    Args:
        project: folder of the modules whose functions may change.
        requests: where requests come from and answers go to.
        other_end: that of the process that asks.
    """

    def __init__(self, project: Path, requests: Connection, other_end: Connection):
        self.project, self.requests, self.other_end = project, requests, other_end
        self.functions: list[FunctionType] = []
        self.failed = Path()

    def pytest_configure(self) -> None:
        """Lets go of the other end, so that it is closed when the process that asks has ended."""
        self.other_end.close()

    @pytest.hookimpl(tryfirst=True)  # before tests/conftest.py hides all objects from the garbage collector
    def pytest_collection_finish(self) -> None:
        """Notes all functions of the project."""
        self.functions = [
            one for one in gc.get_objects()
            if type(one) is FunctionType and one.__code__.co_filename.startswith(f"{self.project}/")
        ]  # fmt: skip

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answers until the other end is closed."""
        items = {item.nodeid: item for item in session.items}
        self.requests.send(("ready", ""))
        while True:
            try:
                file, before, after, tests, seconds = self.requests.recv()
            except EOFError:
                return True
            self.requests.send(self._tried(file, before, after, [items[test] for test in tests], seconds))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Ends the fork with the first test that fails."""
        if report.failed:
            self.failed.write_text(report.nodeid, encoding="utf-8")
            os._exit(_FAILED)

    def _tried(
        self, file: str, before: str, after: str, items: Sequence[pytest.Item], seconds: float
    ) -> tuple[str, str]:
        # Not in this process's own folder: some tests compare messages, and a longer path would be shortened in them.
        scratch = Path(tempfile.mkdtemp(prefix="mutant-", dir=Path(tempfile.gettempdir()).parent))
        self.failed = scratch / "failed"
        pid = os.fork()
        if pid == 0:
            self._run(file, before, after, items, int(seconds), scratch)
        statuses = {0: forks.PASSED, _FAILED: forks.KILLED}
        status = forks.status_of(forks.waited(pid, seconds), statuses, UNDECIDED)
        by = self.failed.read_text(encoding="utf-8") if self.failed.exists() else ""
        shutil.rmtree(scratch, ignore_errors=True)
        return status, by

    def _run(
        self, file: str, before: str, after: str, items: Sequence[pytest.Item], seconds: int, scratch: Path
    ) -> None:
        """Changes this process, a fork, runs tests, and ends."""
        status = _NOT_TRIED
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            shared = tempfile.gettempdir()
            for name, value in os.environ.items():
                if value.startswith(shared):  # folders that tests/conftest.py has made
                    os.environ[name] = tempfile.mkdtemp(dir=scratch)
            os.environ["TMPDIR"], tempfile.tempdir = str(scratch), None
            if before != after and not give_code(self.functions, file, before, after):
                return
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            status = 0
        finally:
            os._exit(status)


def give_code(functions: Sequence[FunctionType], file: str, before: str, after: str) -> bool:
    """Gives those ``functions`` that stand in ``file`` the code of its other source, of as many functions.

    Returns whether the other source will run: a function has other code now, or the file has not been imported.
    """
    codes = [compile(source, file, "exec", dont_inherit=True) for source in (before, after)]
    new = {old: other for old, other in zip(*map(_functions_in, codes), strict=True) if old != other}
    there = [function for function in functions if function.__code__.co_filename == file]
    found = [function for function in there if function.__code__ in new]
    for function in found:
        function.__code__ = new[function.__code__]
    return bool(found) or not there


def _functions_in(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module, those of its classes, and those that stand in others, which decorators return."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if one.co_flags & CO_OPTIMIZED:
                yield one
            yield from _functions_in(one)
