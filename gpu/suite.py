"""Tests of the library that want a card, one finding for each test function."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from gpu.findings import Finding, Place

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
PRECISION = TESTS / "integration" / "fairseq" / "test_precision.py"
#: Characters of a failure's message that are kept.
_KEPT = 600


@dataclass
class Outcome:
    """Cases of one test function."""

    counts: dict[str, int] = field(default_factory=lambda: {"passed": 0, "failed": 0, "skipped": 0})
    notes: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)


def files_with_marker() -> list[Path]:
    """Test files that mention the marker ``gpu``: the others need not be imported."""
    files = sorted(TESTS.rglob("test_*.py"))
    return [path for path in files if "pytest.mark.gpu" in path.read_text(encoding="utf-8")]


def outcomes(report: Path) -> dict[str, Outcome]:
    """Read pytest's report in JUnit's format: file and function -> what its cases came to."""
    found: dict[str, Outcome] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        function, _, parameters = case.get("name", "").partition("[")
        one = found.setdefault(f"{case.get('classname', '')}.{function}", Outcome())
        problems = [part for part in case if part.tag in ("failure", "error")]
        kind = "failed" if problems else "skipped" if case.find("skipped") is not None else "passed"
        one.counts[kind] += 1
        for problem in problems:
            one.notes.append(f"[{parameters} {problem.get('message', '')[:_KEPT]}")
        for part in case.iter("property"):
            one.properties[f"[{parameters} {part.get('name')}"] = part.get("value", "")
    return found


def run(files: Sequence[Path], more: Sequence[str], place: Place) -> Iterator[Finding]:
    """Run tests by pytest; on a card none may be skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", *map(str, files), *more, "-q", f"--junitxml={report}"]
        if place.on_card:
            command += ["--numprocesses", "4", "--dist", "worksteal"]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if not report.exists():
            raise RuntimeError(f"pytest ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-2000:]}")
        found = outcomes(report)
    yield Finding("tests that were found", len(found), "at least one", bool(found))
    for name, one in found.items():
        note = "; ".join(one.notes[:3])
        settings = {"cases": sum(one.counts.values()), **one.properties}
        clean = not one.counts["failed"]
        if place.on_card:
            holds = clean and not one.counts["skipped"] and one.counts["passed"] > 0
            yield Finding(name, one.counts, "all cases pass", holds, None, settings, note)
        else:
            holds = None if clean and not one.counts["passed"] else clean
            yield Finding(name, one.counts, "all cases pass, or want a card", holds, None, settings, note)


def marked(place: Place) -> Iterator[Finding]:
    """Run all tests with the marker ``gpu`` but those of precision."""
    yield from run([path for path in files_with_marker() if path != PRECISION], ["-m", "gpu"], place)


def precision(place: Place) -> Iterator[Finding]:
    """Run the tests of half precision through fairseq-train: bf16 and autocast anywhere, fp16 and amp on a card."""
    yield from run([PRECISION], [], place)
