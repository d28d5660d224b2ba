"""Tries mistakes of one module on the tests that run their lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from trust.mutating import forks
from trust.mutating.collected import UNDECIDED, Collected
from trust.mutating.coverage_map import Coverage, file_of
from trust.mutating.operators import Mutant

#: Seconds of tests, as they take without a mistake, on which a mutant is tried.
SECONDS = 660.0
#: It is tried on so many of them first, and on the others if none of these notices it.
FIRST = 60.0
#: Seconds of a processor that a mutant may take beyond five times those of its tests.
SPARE = 10.0
#: One test may take so many beyond five times its own and those of the longest test of its file, whose fixtures it may
#: have to make.
SPARE_OF_A_TEST = 3.0


class Trials:
    """Tries mutants of one module on the tests that run their lines.

    Args:
        project: a copy of the project.
        module: path of the module in it.
        mutants: those that will be tried.
        covered: which tests run which lines.
        most: seconds of tests on which a mutant is tried, see :data:`SECONDS`.
        spare: seconds, see :data:`SPARE`.
    """

    def __init__(
        self, project: Path, module: str, mutants: Sequence[Mutant], covered: Coverage, most: float, spare: float
    ):
        self.project, self.module, self.covered, self.most, self.spare = project, module, covered, most, spare
        self.source = (project / module).read_text(encoding="utf-8")
        #: How many mutants each test has noticed, and which tests did so with all modules imported anew.
        self.noticing: Counter[str] = Counter()
        self._noticing_anew: set[str] = set()
        quick = [covered.concerned(module, one.lines) for one in mutants if self._is_quick(one)]
        first = [_within(min(FIRST, most), tests, covered.seconds)[0] for tests in quick]
        files = sorted({file_of(test) for tests in first for test in tests})
        self._collected: Collected | None = None
        if files:
            seconds = {test: self._limit(test) for test in covered.seconds if file_of(test) in files}
            self._collected = Collected(project, files, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._collected:
            self._collected.close()

    def of(self, mutant: Mutant) -> tuple[str, dict]:
        """Status of a mutant, and what was done: how many tests may notice it, how many were tried, which one did."""
        tests = self.covered.concerned(self.module, mutant.lines)
        mutated = mutant.applied(self.source)
        with forks.changed(self.project / self.module, mutated):
            status, tried, by = forks.NO_TESTS, 0, ""
            if self._collected and self._is_quick(mutant):
                chosen, seconds = _within(min(FIRST, self.most), tests, self.covered.seconds)
                file, limit = self.project / self.module, self.spare + 5 * seconds
                status, by = self._collected.tried(file, self.source, mutated, self._promising(chosen), limit)
                tried = 0 if status == UNDECIDED else len(chosen)
            if status in (forks.PASSED, forks.NO_TESTS, UNDECIDED):
                status, tried, by = self._anew(tests, tried)
                self._noticing_anew.update(filter(None, [by]))
        if by:
            self.noticing[by] += 1
        return status, {"tests": len(tests), "tried": tried, "by": by}

    def _anew(self, tests: Sequence[str], tried: int) -> tuple[str, int, str]:
        """Status on the tests behind the first ``tried``, with all modules imported anew; how many, and which one."""
        status = forks.PASSED if tried else forks.NO_TESTS
        first, second = min(FIRST, self.most), max(self.most - FIRST, 0)
        for budget in (second,) if tried else (first, second):
            chosen, _ = _within(budget, tests[tried:], self.covered.seconds)
            if not budget or not chosen:
                break
            for some in _one_file_first(self._promising(chosen)):
                seconds = sum(self.covered.seconds[one] for one in some)
                limits = forks.TimeOfEachTest({one: self._limit(one) for one in some})
                outcome = forks.run_pytest(self.project, some, self.spare + 5 * seconds, plugins=[limits])
                status, tried = outcome.status, tried + len(some)
                if status != forks.PASSED:
                    printed = f"\n{outcome.output}\n"  # a long name leaves no room for the message
                    named = (one for one in some if any(f"\nFAILED {one}{end}" in printed for end in (" - ", "\n")))
                    return status, tried, next(named, "")
        return status, tried, ""

    def _promising(self, tests: Sequence[str]) -> list[str]:
        """Tests in another order: those that have noticed most mutants for their time come first."""
        return sorted(tests, key=lambda test: -self.noticing[test] / (0.05 + self.covered.seconds[test]))

    def _is_quick(self, mutant: Mutant) -> bool:
        """Whether a mutant can be tried without importing its module anew."""
        return mutant.is_in_a_function and not self.covered.runs_at_import(self.module, mutant.lines)

    def failing(self) -> str:
        """What tests that have noticed a mutant say where they fail without any, run as then; empty where they pass."""
        anew = sorted(self._noticing_anew)
        if anew:
            outcome = forks.run_pytest(self.project, anew, self._limit_of_all(anew))
            if outcome.status != forks.PASSED:
                return outcome.output[-2000:] or outcome.status
        others = sorted(set(self.noticing).difference(anew))
        if self._collected and others:
            file, limit = self.project / self.module, self._limit_of_all(others)
            status, by = self._collected.tried(file, self.source, self.source, others, limit)
            if status != forks.PASSED:
                return f"{status}: {by}"
        return ""

    def _limit_of_all(self, tests: Sequence[str]) -> float:
        return self.spare + 5 * sum(map(self._limit, tests))

    def _limit(self, test: str) -> float:
        """Seconds of a processor that a test may take."""
        return min(self.spare, SPARE_OF_A_TEST) + 5 * self.covered.seconds[test] + self.covered.longest[file_of(test)]


def _one_file_first(tests: Sequence[str]) -> Iterator[list[str]]:
    """The tests that are in one file with the first, as a file takes time to import, then the others."""
    file = file_of(tests[0])
    for there in (True, False):
        some = [test for test in tests if (file_of(test) == file) is there]
        if some:
            yield some


def _within(budget: float, tests: Sequence[str], seconds: Mapping[str, float]) -> tuple[list[str], float]:
    """The first tests, as many as take ``budget`` seconds, one at least; and how long they take."""
    chosen: list[str] = []
    total = 0.0
    for test in tests:
        if chosen and total + seconds[test] > budget:
            break
        chosen.append(test)
        total += seconds[test]
    return chosen, total
