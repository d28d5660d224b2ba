"""Puts small mistakes into the code, one at a time, and counts those that the tests notice.

    python -m trust.mutation                                   two mutants of every module
    python -m trust.mutation --sample 20 unified/masks         20 of every module of a package
    python -m trust.mutation --sample 0 unified/masks/mask.py  all of a module
    python -m trust.mutation --seconds 12 unified/masks        each on 12 seconds of tests at most
    python -m trust.mutation --show unified/masks/mask.py      lists them, runs nothing
    python -m trust.mutation --record                          puts what is finished into the record

A run that was stopped goes on where it stopped. Mutants that were noticed are not run again unless the class, function
or constant that they stand in changes; those that were not are, when tests or code have changed, or with more seconds
of tests. The record, trust/mutating/tried.jsonl, holds for every machine. The status is 1 where fewer than 98 % are
noticed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from trust.cases import Case, require
from trust.mutating import forks
from trust.mutating.collected import UNDECIDED, Collected
from trust.mutating.coverage_map import Coverage, measure
from trust.mutating.operators import Mutant, mutants_of
from trust.mutating.record import FILE, Record

ROOT = Path(__file__).resolve().parents[1]
CODE = ("unified", "fairseq_plugins")
TESTS = ("tests/unit", "tests/integration")
KEPT = ROOT / "trust" / "results" / "mutation"
#: Mutants that behave as the code does, each with its reason.
EQUIVALENT = Path(__file__).parent / "mutating" / "equivalent.txt"
#: Status of a mutant that was noticed, as the record says.
RECORDED = "noticed before"
NOTICED = (forks.KILLED, forks.TIMED_OUT, RECORDED)
LEAST = 0.98
#: Seconds of tests, as they take without a mistake, on which a mutant is tried.
SECONDS = 660.0
#: It is tried on so many of them first, and on the others if none of these notices it.
FIRST = 60.0
#: Seconds of a processor that a mutant may take beyond five times those of its tests. One test may take as many beyond
#: five times its own and those of its file, whose fixtures it may have to make.
SPARE = 10.0


def modules_of(places: Sequence[str], root: Path = ROOT) -> list[str]:
    """Paths of the modules in files and folders, those that have mutants."""
    found = [
        path for place in places for path in ([root / place] if place.endswith(".py") else (root / place).rglob("*.py"))
    ]
    return sorted({path.relative_to(root).as_posix() for path in found if mutants_of(path.read_text(encoding="utf-8"))})


def tests_of(places: Sequence[str], root: Path = ROOT) -> list[str]:
    """Paths of the files of tests in files and folders."""
    found = [
        path
        for place in places
        for path in ([root / place] if place.endswith(".py") else (root / place).rglob("test_*.py"))
    ]
    return sorted({path.relative_to(root).as_posix() for path in found})


def drawn(module: str, source: str, sample: int, seed: int, equivalent: set[tuple[str, str, str]]) -> list[Mutant]:
    """The mutants of a module to run: ``sample`` of them, 0 for all, without those known to be equivalent."""
    found = mutants_of(source)
    if sample:
        random.Random(f"{seed} {module}").shuffle(found)
    chosen: list[Mutant] = []
    for mutant in found:
        if sample and len(chosen) == sample:
            break
        if (module, mutant.text, mutant.said) not in equivalent and mutant.is_valid(source):
            chosen.append(mutant)
    return chosen


def equivalents(file: Path = EQUIVALENT) -> set[tuple[str, str, str]]:
    """What the list of equivalent mutants names: module, line, mistake. Blocks of four lines, the last a reason."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {(module, text, said) for module, text, said, _ in zip(*[iter(lines)] * 4, strict=True)}


class Results:
    """Statuses of mutants, kept in a file of JSON lines."""

    def __init__(self, file: Path, code: str):
        self.file, self.code = file, code
        file.parent.mkdir(parents=True, exist_ok=True)
        self.lines: dict[tuple[str, str, str], dict] = {}
        for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            if text.endswith("}"):  # else a kill has cut it
                line = json.loads(text)
                self.lines[line["module"], line["part"], line["mutant"]] = line

    def of(self, module: str, mutant: Mutant, seconds: float) -> dict | None:
        """The line of a mutant that need not be run again on ``seconds`` of tests, or None."""
        line = self.lines.get((module, mutant.part, mutant.key))
        if line is None or line["status"] in NOTICED:
            return line
        return line if line["code"] == self.code and line["seconds"] >= seconds else None

    def add(self, module: str, mutant: Mutant, status: str, seconds: float, **more: object) -> dict:
        """Keeps the status of a mutant that was tried on at most ``seconds`` of tests; returns its line."""
        line = {"module": module, "line": mutant.line, "status": status, "said": str(mutant), "text": mutant.text,
                "part": mutant.part, "mutant": mutant.key, "code": self.code, "seconds": seconds,
                **more}  # fmt: skip
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return line

    def remove(self, lines: Sequence[dict]) -> None:
        """Takes lines out of the file."""
        texts = {json.dumps(line, ensure_ascii=False) for line in lines}
        kept = [text for text in self.file.read_text(encoding="utf-8").splitlines() if text not in texts]
        self.file.write_text("".join(f"{text}\n" for text in kept), encoding="utf-8")


def _hash(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:12]


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
        #: Tests that have noticed a mutant.
        self.noticing: set[str] = set()
        quick = [covered.concerned(module, one.lines) for one in mutants if self._is_quick(one)]
        first = [_within(min(FIRST, most), tests, covered.seconds)[0] for tests in quick]
        files = sorted({_file(test) for tests in first for test in tests})
        self._collected: Collected | None = None
        if files:
            seconds = {test: self._limit(test) for test in covered.seconds if _file(test) in files}
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
                status, by = self._collected.tried(file, self.source, mutated, chosen, limit)
                tried = 0 if status == UNDECIDED else len(chosen)
            if status in (forks.PASSED, forks.NO_TESTS, UNDECIDED):
                status, tried, by = self._anew(tests, tried)
        if by:
            self.noticing.add(by)
        return status, {"tests": len(tests), "tried": tried, "by": by}

    def _anew(self, tests: Sequence[str], tried: int) -> tuple[str, int, str]:
        """Status on the tests behind the first ``tried``, with all modules imported anew; how many, and which one."""
        status = forks.PASSED if tried else forks.NO_TESTS
        first, second = min(FIRST, self.most), max(self.most - FIRST, 0)
        for budget in (second,) if tried else (first, second):
            chosen, seconds = _within(budget, tests[tried:], self.covered.seconds)
            if not budget or not chosen:
                break
            limits = forks.TimeOfEachTest({one: self._limit(one) for one in chosen})
            outcome = forks.run_pytest(self.project, chosen, self.spare + 5 * seconds, plugins=[limits])
            status, tried = outcome.status, tried + len(chosen)
            if status != forks.PASSED:
                printed = f"\n{outcome.output}\n"  # a long name leaves no room for the message
                named = (one for one in chosen if any(f"\nFAILED {one}{end}" in printed for end in (" - ", "\n")))
                return status, tried, next(named, "")
        return status, tried, ""

    def _is_quick(self, mutant: Mutant) -> bool:
        """Whether a mutant can be tried without importing its module anew."""
        return mutant.is_in_a_function and not self.covered.runs_at_import(self.module, mutant.lines)

    def failing(self) -> str:
        """What pytest prints where tests that have noticed a mutant fail without any; empty where they pass."""
        if not self.noticing:
            return ""
        seconds = self.spare + 5 * sum(map(self._limit, self.noticing))
        outcome = forks.run_pytest(self.project, sorted(self.noticing), seconds)
        return "" if outcome.status == forks.PASSED else outcome.output[-2000:] or outcome.status

    def _limit(self, test: str) -> float:
        """Seconds of a processor that a test may take."""
        return self.spare + 5 * self.covered.seconds[test] + self.covered.file_seconds[_file(test)]


def _file(test: str) -> str:
    return test.partition("::")[0]


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


def report(lines: Sequence[dict]) -> str:
    """A line for each package and one for all, and one for each mutant that was not noticed."""
    packages: dict[str, Counter[str]] = {}
    for line in lines:
        package = line["module"].rpartition("/")[0]
        for name in (package, "all"):
            packages.setdefault(name, Counter())[line["status"]] += 1
    rows = [
        f"{name}: {counts.total():,} mutants, {noticed(counts):.1%} noticed ({counts[forks.KILLED]:,} by a test, "
        f"{counts[forks.TIMED_OUT]:,} by time, {counts[RECORDED]:,} before), {counts[forks.PASSED]:,} not, "
        f"{counts[forks.NO_TESTS]:,} run by no test"
        for name, counts in sorted(packages.items(), key=lambda item: (item[0] == "all", item[0]))
    ]
    left = [
        f"{line['module']}:{line['line']}: {line['status']}: {line['said']}    [{line['text']}]"
        for line in lines
        if line["status"] in (forks.PASSED, forks.NO_TESTS)
    ]
    return "\n".join([*left, *rows])


def noticed(counts: Counter[str]) -> float:
    """Share of mutants that tests notice; those that take too long are noticed."""
    return sum(counts[status] for status in NOTICED) / max(counts.total(), 1)


def run(modules: Sequence[str], tests: Sequence[str], sample: int, seed: int, kept: Path, root: Path = ROOT,
        code: Sequence[str] = CODE, spare: float = SPARE, seconds: float = SECONDS) -> list[dict]:  # fmt: skip
    """Runs the mutants that have no result yet; returns the lines of all.

    Args:
        modules: paths of modules.
        tests: paths of files of tests.
        sample: mutants of each module, 0 for all.
        seed: of the sample.
        kept: folder of results, and of which test runs which line.
        root: folder of the project.
        code: folders of the project's code.
        spare: seconds, see :data:`SPARE`.
        seconds: of tests on which a mutant is tried, see :data:`SECONDS`.
    """
    known, record = (equivalents(), Record(FILE)) if root == ROOT else (set(), Record(root / FILE.name))
    with tempfile.TemporaryDirectory(prefix="mutated-") as folder:
        project = forks.copied(root, Path(folder))
        covered = measure(project, tests, code, kept / "lines", lambda text: print(text, flush=True))
        for file in covered.failed:
            print(f"{file}: tests fail without any mistake; they are left out", flush=True)
        files = [*tests_of(["tests"], project), *(path for one in code for path in modules_of([one], project))]
        results = Results(kept / "results.jsonl", _hash((project / file).read_text(encoding="utf-8") for file in files))
        lines = []
        for module in modules:
            source = (project / module).read_text(encoding="utf-8")
            mutants = drawn(module, source, sample, seed, known)
            before = record.noticed(module, mutants_of(source))
            left = [one for one in mutants if (one.part, one.key) not in before]
            lines += [{"module": module, "status": RECORDED}] * (len(mutants) - len(left))
            found = [results.of(module, one, seconds) for one in left]
            lines += [line for line in found if line]
            new = [one for one, line in zip(left, found, strict=True) if not line]
            with Trials(project, module, new, covered, seconds, spare) as trials:
                tried = []
                for mutant in new:
                    began = time.monotonic()
                    status, more = trials.of(mutant)
                    took = round(time.monotonic() - began, 1)
                    tried.append(results.add(module, mutant, status, seconds, **more, took=took))
                    print(f"{module} | {mutant} | {status} | {took} s", flush=True)
                failing = trials.failing()
            if failing:
                results.remove(tried)
                print(f"{module}: tests fail without a mistake; its mistakes will be run again\n{failing}", flush=True)
            else:
                lines += tried
    return lines


def put_on_record(modules: Sequence[str], results: Results, record: Record, root: Path = ROOT) -> list[str]:
    """Adds to the record the modules of which each mistake has a result, and says of each how many were noticed."""
    known, said = equivalents() if root == ROOT else set(), []
    for module in modules:
        source = (root / module).read_text(encoding="utf-8")
        mutants = mutants_of(source)
        noticed = record.noticed(module, mutants)
        tried = [one for one in drawn(module, source, 0, 0, known) if (one.part, one.key) not in noticed]
        lines = [results.lines.get((module, one.part, one.key)) for one in tried]
        if all(lines):
            new = {(line["part"], line["mutant"]) for line in lines if line and line["status"] in NOTICED}
            record.add(module, mutants, noticed | new)
            said.append(f"{module}: {len(mutants)} mistakes, {len(tried) - len(new)} missed")
    return said


def cases(full: bool, seed: int) -> list[Case]:
    """One case, since the bar is that of all mutants together: all there are, or two of each module of unified/masks.

    It resumes by the results that it keeps.
    """
    places, tests, sample = (CODE, TESTS, 0) if full else (("unified/masks",), ("tests/unit/masks",), 2)

    def check(folder: Path) -> dict[str, int]:
        words = [*places, "--sample", sample, "--seed", seed, "--json", folder / "counts.json", "--tests", *tests]
        done = subprocess.run([sys.executable, "-m", "trust.mutation", *map(str, words)], cwd=ROOT)
        require(done.returncode in (0, 1), "the mutants could not be run")
        counts = json.loads((folder / "counts.json").read_text())
        require(not done.returncode, f"tests notice less than {LEAST:.0%} of the mutants: {counts}")
        return counts

    return [Case(f"{', '.join(places)}, {sample or 'all'} mutants of a module, seed {seed}", check)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", default=list(CODE), help="modules, or folders of them (default: all code)")
    parser.add_argument("--tests", nargs="+", default=list(TESTS), metavar="PLACE", help="files of tests, or folders")
    parser.add_argument("--sample", type=int, default=2, help="mutants of each module, 0: all (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of tests on which a mutant is tried (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: %(default)s)")
    parser.add_argument("--kept", type=Path, default=KEPT, help="folder of results (default: trust/results/mutation)")
    parser.add_argument("--json", type=Path, help="file for the counts")
    parser.add_argument("--show", action="store_true", help="list the mutants and run nothing")
    parser.add_argument("--record", action="store_true", help=f"put what --kept has into {FILE.name} and run nothing")
    options = parser.parse_args()
    if options.sample < 0 or options.seconds <= 0:
        parser.error("--sample must be at least 0, --seconds more than 0")
    modules = modules_of(options.places)
    if options.show:
        for module in modules:
            source = (ROOT / module).read_text(encoding="utf-8")
            for mutant in drawn(module, source, options.sample, options.seed, equivalents()):
                print(f"{module}: {mutant}    [{mutant.text}]")
        return 0
    if options.record:
        record = Record(FILE)
        print("\n".join(put_on_record(modules, Results(options.kept.resolve() / "results.jsonl", ""), record)))
        record.write(modules_of(CODE))
        return 0
    forks.preload()
    tests, kept = tests_of(options.tests), options.kept.resolve()
    lines = run(modules, tests, options.sample, options.seed, kept, seconds=options.seconds)
    print(report(lines))
    counts = Counter(line["status"] for line in lines)
    if options.json:
        options.json.write_text(json.dumps({"mutants": counts.total(), **counts}))
    return int(noticed(counts) < LEAST)


if __name__ == "__main__":
    sys.exit(main())
