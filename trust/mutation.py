"""Puts small mistakes into the code, one at a time, and counts those that the tests notice.

    python -m trust.mutation                                   two mutants of every module
    python -m trust.mutation --sample 20 unified/masks         20 of every module of a package
    python -m trust.mutation --sample 0 unified/masks/mask.py  all of a module
    python -m trust.mutation --seconds 12 unified/masks        each on 12 seconds of tests at most
    python -m trust.mutation --show unified/masks/mask.py      lists them, runs nothing
    python -m trust.mutation --record                          puts what was noticed into the record

A run that was stopped goes on where it stopped. Mutants that were noticed are not run again unless the class, function
or constant that they stand in changes; those that were not are, when tests or code have changed, or with more seconds
of tests. The record, trust/mutating/tried.jsonl, holds for every machine. The status is 1 where fewer than 98 % are
noticed, or where tests fail without a mistake, so that those of a module were not tried.
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
from collections.abc import Iterable, Sequence
from pathlib import Path

from trust.cases import Case, hash_of, require
from trust.mutating import forks
from trust.mutating.coverage_map import measure
from trust.mutating.operators import Mutant, mutants_of
from trust.mutating.record import FILE, Record
from trust.mutating.trials import SECONDS, SPARE, Trials

ROOT = Path(__file__).resolve().parents[1]
CODE = ("unified", "fairseq_plugins")
TESTS = ("tests/unit", "tests/integration")
KEPT = ROOT / "trust" / "results" / "mutation"
#: Mutants that behave as the code does, each with its reason.
EQUIVALENT = Path(__file__).parent / "mutating" / "equivalent.txt"
#: Status of a mutant that was noticed, as the record says.
RECORDED = "noticed before"
#: Status of a mutant of which nothing is known, because tests of its module fail without it.
UNTRIED = "not tried"
NOTICED = (forks.KILLED, forks.TIMED_OUT, RECORDED)
LEAST = 0.98


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
        f"{counts[forks.NO_TESTS]:,} run by no test" + (f", {counts[UNTRIED]:,} not tried" if counts[UNTRIED] else "")
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
                lines += [{"module": module, "status": UNTRIED}] * len(tried)
                print(f"{module}: tests fail without a mistake; its mistakes will be run again\n{failing}", flush=True)
            else:
                lines += tried
    return lines


def put_on_record(modules: Sequence[str], results: Results, record: Record, root: Path = ROOT) -> list[str]:
    """Adds what has results to the record, and says of each module how many mistakes were missed or not tried."""
    known, said = equivalents() if root == ROOT else set(), []
    for module in modules:
        source = (root / module).read_text(encoding="utf-8")
        mutants = mutants_of(source)
        noticed = record.noticed(module, mutants)
        left = {(one.part, one.key) for one in drawn(module, source, 0, 0, known)} - noticed
        tried = {one: line["status"] for one in left if (line := results.lines.get((module, *one)))}
        if tried:
            new = {one for one, status in tried.items() if status in NOTICED}
            record.add(module, mutants, noticed | new)
            missed, untried = len(tried) - len(new), len(left) - len(tried)
            said.append(f"{module}: {len(mutants)} mistakes, {missed} missed, {untried} not tried")
    return said


def cases(full: bool, seed: int) -> list[Case]:
    """One case, since the bar is that of all mutants together: all there are, or two of each module of unified/masks.

    It resumes by the results that it keeps.
    """
    places, tests, sample = (CODE, TESTS, 0) if full else (("unified/masks",), ("tests/unit/masks",), 2)
    noticing = hash_of(ROOT, ["tests"])  # what has passed by other tests is run again

    def check(folder: Path) -> dict[str, int]:
        words = [*places, "--sample", sample, "--seed", seed, "--json", folder / "counts.json", "--tests", *tests]
        done = subprocess.run([sys.executable, "-m", "trust.mutation", *map(str, words)], cwd=ROOT)
        require(done.returncode in (0, 1), "the mutants could not be run")
        counts = json.loads((folder / "counts.json").read_text())
        said = f"tests notice less than {LEAST:.0%} of the mutants, or fail without any"
        require(not done.returncode, f"{said}: {counts}")
        return counts

    return [Case(f"{', '.join(places)}, {sample or 'all'} mutants of a module, seed {seed}, tests {noticing}", check)]


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
    return status(counts)


def status(counts: Counter[str]) -> int:
    """1 where tests notice too few mutants, or fail without any, so that some were not tried."""
    return int(noticed(counts) < LEAST or counts[UNTRIED] > 0)


if __name__ == "__main__":
    sys.exit(main())
