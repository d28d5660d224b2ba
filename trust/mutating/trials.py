"""Tries many mutants of a module in forks of one process, which has imported the code and collected the tests once.

A fork exchanges the code of the functions that a mutant changes and runs some tests. What runs at import alone is not
mutated so, and what a test has kept from before might hide a mistake. So only what is noticed counts here; all other
mutants are left to :func:`trust.mutating.forks.run_pytest`, which imports everything anew.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from trust.mutating import exchange, forks
from trust.mutating.coverage_map import within_budget
from trust.mutating.operators import Mutant

#: Seconds of tests that a mutant is tried on.
BUDGET = 10.0
#: Files of tests that are collected for a module, those that run most of its mutants.
FILES = 20

#: Is told of a mutant that is noticed: the mutant, its status, the first test that failed, seconds.
Noticed = Callable[[Mutant, str, str, float], None]


def plan(
    concerned: Mapping[Mutant, Sequence[str]], seconds: Mapping[str, float], files: int = FILES, budget: float = BUDGET
) -> dict[Mutant, list[str]]:
    """The tests that each mutant is tried on: quick ones of a few files, those of one file together.

    Args:
        concerned: ids of the tests that may notice a mutant, quick ones first.
        seconds: of each test.
        files: how many files of tests may be used in all.
        budget: seconds that the tests of a mutant may take, the first one aside.
    """
    counts = Counter(file for tests in concerned.values() for file in {_file_of(test) for test in tests})
    taken = {file for file, _ in counts.most_common(files)}
    chosen = {}
    for mutant, tests in concerned.items():
        within, _ = within_budget(budget, [test for test in tests if _file_of(test) in taken], seconds)
        first = {file: number for number, file in reversed([*enumerate(map(_file_of, within))])}
        if within:
            chosen[mutant] = sorted(within, key=lambda test: first[_file_of(test)])
    return chosen


def try_all(
    project: Path, module: str, source: str, chosen: Mapping[Mutant, Sequence[str]], seconds: Mapping[str, float],
    spare: float, noticed: Noticed
) -> forks.Outcome:  # fmt: skip
    """Tries mutants on their tests; calls ``noticed`` in another process, in which the whole trial runs.

    Args:
        project: a copy of the project.
        module: path of the mutated module in it.
        source: of the module.
        chosen: tests of each mutant.
        seconds: of each test.
        spare: seconds of a processor that a mutant may take beyond five times those of its tests.
        noticed: has to keep what it is told, in a file.
    """
    trials = _Trials(project, module, source, chosen, seconds, spare, noticed)
    files = sorted({_file_of(test) for tests in chosen.values() for test in tests})
    return forks.run_pytest(project, files, forks.FOREVER, plugins=[trials])


def _file_of(test: str) -> str:
    return test.partition("::")[0]


class _Trials:
    """A plug-in of pytest that runs the tests of each mutant in a fork."""

    def __init__(
        self, project: Path, module: str, source: str, chosen: Mapping[Mutant, Sequence[str]],
        seconds: Mapping[str, float], spare: float, noticed: Noticed
    ):  # fmt: skip
        self.file, self.name = project / module, module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self.source, self.chosen, self.spare, self.noticed = source, chosen, spare, noticed
        self.seconds = seconds
        self.failed: list[str] = []
        self.sound: dict[str, bool] = {}
        self.said = Path()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.said = Path(tempfile.mkdtemp()) / "said"  # pytest captures what forks print
        items = {item.nodeid: item for item in session.items}
        functions = exchange.functions_of(self.file)
        for mutant, tests in self.chosen.items():
            self._try(mutant, functions, [items[test] for test in tests if test in items])
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def _try(self, mutant: Mutant, functions: exchange.Functions, items: Sequence[pytest.Item]) -> None:
        mutated = mutant.applied(self.source)
        new = exchange.changes(self.source, mutated, self.file)

        def mutate() -> bool:
            return self.name not in sys.modules or (new is not None and exchange.exchange(functions, new))

        began = time.monotonic()
        with forks.changed(self.file, mutated):  # what tests start as a program, and what they import later
            status, failed = self._run(items, mutate)
        if status == forks.TIMED_OUT or (failed and self._passes(failed, items)):
            self.noticed(mutant, status, f"FAILED {failed}" if failed else "", time.monotonic() - began)

    def _run(self, items: Sequence[pytest.Item], mutate: Callable[[], bool]) -> tuple[str, str]:
        """Runs tests in a fork, up to the first that fails; returns how the fork ended, and that test or nothing."""

        def run() -> int:
            for item, following in zip(items if mutate() else [], [*items[1:], None], strict=False):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    self.said.write_text(self.failed[0], encoding="utf-8")
                    return 1
            return 0

        outcome = forks.run_fork(run, self.spare + 5 * sum(self.seconds[item.nodeid] for item in items))
        failed = self.said.read_text(encoding="utf-8") if self.said.exists() else ""
        self.said.unlink(missing_ok=True)
        return outcome.status, failed

    def _passes(self, test: str, items: Sequence[pytest.Item]) -> bool:
        """Whether a test passes without a mistake behind those before it, as they are when it is first asked about."""
        if test not in self.sound:
            before = [item.nodeid for item in items].index(test) + 1
            self.sound[test] = self._run(items[:before], lambda: True) == (forks.PASSED, "")
        return self.sound[test]
