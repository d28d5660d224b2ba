"""Finds out which tests run which lines of the code: each file of tests runs once, and each line is noted by test.

The notes of a file of tests hold as long as it, what tests share, and the modules that it runs or imports stay as they
are. So a stopped run goes on, and a change elsewhere costs nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trust.mutating import forks, line_notes

#: Seconds that a file of tests may take while lines are noted.
LIMIT = 900
#: Seconds that any test is taken to need beside its own, and what a step farther from the module weighs.
_START, _FARTHER = 0.01, 4
_SETUP = "|setup"  # behind the name of a test: lines that ran while its fixtures were made


@dataclass
class Coverage:
    """Lines that tests run, and how long the tests take.

    Attributes:
        seconds: of each test by its id, fixtures of its own included.
        longest: seconds of the longest test of each file.
        tests: path of a module, line -> ids of the tests that run it.
        makers: path of a module, line -> files of tests of which a fixture runs it, which the file may share.
        importers: path of a module, line -> files of tests that run it while they are imported.
        failed: files of tests that fail without any mistake; they notice nothing.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    makers: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    importers: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def concerned(self, module: str, lines: Sequence[int]) -> list[str]:
        """Ids of the tests that may notice a change of some lines: first those that are near to the module and quick.

        Nearest are those that have the module's name in their own or in their file's, then the others of the package's
        folder of tests; and those that run the lines themselves are nearer than the other tests of files whose fixtures
        or cases do. A test that is farther by a step comes behind nearer ones that take up to :data:`_FARTHER` times as
        long. The n-th case of a function that is not among the nearest comes behind tests that take up to n² times as
        long, since its cases notice much the same.
        Without lines, for what runs when the module is imported, these are all tests that run anything of it, or, where
        it has nothing but that, anything of its package; and with them those of the package's folder of tests that
        import the module, since they may read its constants.
        """
        if lines:
            files = self._at(self.makers, module, lines) | self._at(self.importers, module, lines)
            return self._ordered(module, self._at(self.tests, module, lines), files)
        package = module.rpartition("/")[0]
        for members in ([module], [name for name in self.tests | self.makers if name.rpartition("/")[0] == package]):
            own = {test for one in members for test in self._at(self.tests, one)}
            files = {file for one in members for file in self._at(self.makers, one)}
            if own or files:
                break
        beside = {one for one in self._at(self.importers, module) if _is_of(one, package)}
        return self._ordered(module, own | self._of(files | beside), set())

    def runs_at_import(self, module: str, lines: Sequence[int]) -> bool:
        """Whether some lines run while a file of tests is imported."""
        return bool(self._at(self.importers, module, lines))

    @staticmethod
    def _at(where: dict[str, dict[int, set[str]]], module: str, lines: Sequence[int] | None = None) -> set[str]:
        """What is noted of some lines of a module, of all without ``lines``."""
        by_line = where.get(module, {})
        return set().union(*(by_line.get(line, set()) for line in (by_line if lines is None else lines)))

    def _ordered(self, module: str, own: set[str], files: set[str]) -> list[str]:
        cases: Counter[str] = Counter()
        prices: dict[str, float] = {}
        for test in sorted(own | self._of(files), key=lambda test: (self.seconds[test], test)):
            function, distance = test.partition("[")[0], _distance(test, module)
            cases[function] += 1
            case = cases[function] if distance else 1
            farther = distance + (test not in own)
            prices[test] = (_START + self.seconds[test]) * _FARTHER**farther * case**2
        return sorted(prices, key=lambda test: (prices[test], test))

    def _of(self, files: set[str]) -> set[str]:
        return {test for test in self.seconds if file_of(test) in files}


def measure(
    project: Path, files: Sequence[str], modules: Sequence[str], folder: Path, say: Callable[[str], None]
) -> Coverage:
    """Runs files of tests that have not been noted yet, each in a fork.

    Args:
        project: a copy of the project.
        files: paths of tests in it.
        modules: folders of the code.
        folder: where the notes are kept, a file for each file of tests.
        say: is told what happens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hashes = {
        path.relative_to(project).as_posix(): _hash([path]) for one in modules for path in (project / one).rglob("*.py")
    }
    shared = [path for path in (project / "tests").rglob("*.py") if not path.name.startswith("test_")]
    found = Coverage()
    for number, file in enumerate(files, 1):
        kept = folder / f"{file.replace('/', '.')}.json"
        notes = json.loads(kept.read_text()) if kept.exists() else None
        own = _hash([project / file, *shared])
        if notes is None or notes["own"] != own or any(hashes.get(one) != code for one, code in notes["code"].items()):
            began = time.monotonic()
            notes = _note(project, file, modules)
            read = notes["lines"] or hashes  # of a file that could not be run nothing is known
            waiting = kept.with_suffix(".part")
            waiting.write_text(json.dumps({**notes, "own": own, "code": {one: hashes[one] for one in read}}))
            waiting.rename(kept)
            say(f"lines of {file} ({number} of {len(files)}): {time.monotonic() - began:.0f} s")
        _add(found, file, notes)
    return found


def _is_of(file: str, package: str) -> bool:
    """Whether a file of tests lies in the folder of a package's tests, or in that of one that holds the package."""
    folder = file.split("/")[2:-1]
    inner = [] if package == "unified" else package.removeprefix("unified/").split("/")
    return folder == inner or (bool(folder) and inner[: len(folder)] == folder)


def _distance(test: str, module: str) -> int:
    """How far a test is from a module: 0 if it or its file has its name, 1 in the folder of its package, or 2."""
    if not _is_of(file_of(test), module.rpartition("/")[0]):
        return 2
    # A name begins a word: a test of "roberta" is not near to "bert".
    return int(not re.search(rf"(?<![A-Za-z0-9]){re.escape(Path(module).stem)}", test.rpartition("/")[2]))


def file_of(test: str) -> str:
    """Path of the file that a test stands in."""
    return test.partition("::")[0]


def _hash(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:10]


def _note(project: Path, file: str, modules: Sequence[str]) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "notes.json"
        words = [file, f"--notes={noted}", *(f"--noted={one}" for one in modules)]
        outcome = forks.run_pytest(project, words, LIMIT, stop_early=False, plugins=[line_notes])
        if noted.exists():
            return json.loads(noted.read_text())
    return {"failed": outcome.output[-2000:] or outcome.status, "seconds": {}, "lines": {}}


def _add(found: Coverage, file: str, notes: dict) -> None:
    if notes["failed"]:
        found.failed.append(file)
    found.seconds.update(notes["seconds"])
    found.longest[file] = max(notes["seconds"].values(), default=0.0)
    for module, lines in notes["lines"].items():
        for line, contexts in lines.items():
            for context in contexts:
                test = context.removesuffix(_SETUP)
                if context == line_notes.COLLECTION:
                    where, who = found.importers, file
                elif test not in notes["seconds"]:
                    continue  # a test that fails
                else:
                    where, who = (found.makers, file) if context.endswith(_SETUP) else (found.tests, test)
                where.setdefault(module, {}).setdefault(int(line), set()).add(who)
