"""Runs the campaigns: one JSON line a case in a file; status 1 where any promise is broken.

    python -m trust.run                      a seeded sample of every campaign: `make trust`
    python -m trust.run --set full           all cases: `make trust-full`
    python -m trust.run --only losses        one campaign
    python -m trust.run --cases seq2seq      the cases whose names contain a text

A run that was stopped is started again by the same words: it skips the cases that have passed with the
same code, set and seed. The folder of a case that fails is kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from trust import bombs, fuzz, kills, losses, mutation
from trust.cases import Broken, Campaign, Case, hash_of

ROOT = Path(__file__).resolve().parents[1]
#: Name -> cases, in the order in which they run.
CAMPAIGNS: dict[str, Campaign] = {
    "bombs": bombs.cases,
    "fuzz": fuzz.cases,
    "kills": kills.cases,
    "losses": losses.cases,
    "mutation": mutation.cases,
}
SETS = ("sample", "full")
#: Folders of all that a case runs and reads, but for the tests that mutation runs, of which its case's name has a hash.
CODE = ("unified", "fairseq_plugins", "trust", "tests/golden", "tests/support")
#: Campaign -> count of its cases that is 0 in several of them together only where nothing was tried.
TRIED = {"kills": "kills", "losses": "losses"}


def passed(file: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Counts of the cases in a file of results that have passed, by campaign and case; a cut last line is none."""
    found = {}
    if file.exists():
        for text in file.read_text(encoding="utf-8").splitlines():
            if text.startswith("{") and text.endswith("}"):
                line = json.loads(text)
                if line["passed"]:
                    found[line["campaign"], line["case"]] = line["counts"]
    return found


def run_case(campaign: str, case: Case, folder: Path) -> dict:
    """The line of a case. Its folder is new, and removed unless the case fails."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began, counts, error = time.monotonic(), {}, None
    try:
        counts = case.check(folder)
    except Broken as broken:
        error = str(broken)
    except Exception:  # a mistake of the campaign or a crash of what it attacks: both count as failures
        error = traceback.format_exc()
    if error is None:
        shutil.rmtree(folder)
    seconds = round(time.monotonic() - began, 1)
    line = {"campaign": campaign, "case": case.name, "passed": error is None, "seconds": seconds, "counts": counts}
    return line if error is None else {**line, "error": error, "folder": str(folder)}


def run(campaigns: Mapping[str, list[Case]], output: Path) -> dict[str, Counter[str]]:
    """Runs the cases that have not passed yet; returns for each campaign the sums of what its cases counted.

    Args:
        campaigns: name -> cases.
        output: folder of the file ``results.jsonl`` and of what failed cases leave.
    """
    output.mkdir(parents=True, exist_ok=True)
    file = output / "results.jsonl"
    before = passed(file)
    totals: dict[str, Counter[str]] = {}
    with file.open("a", encoding="utf-8") as kept:
        if file.stat().st_size and not file.read_bytes().endswith(b"\n"):
            kept.write("\n")  # a kill has cut the last line
        for campaign, cases in campaigns.items():
            total = totals[campaign] = Counter(cases=0, failed=0)
            counted: dict[str, dict[str, int]] = {}
            for number, case in enumerate(cases):
                total["cases"] += 1
                if (campaign, case.name) in before:
                    counted[case.name] = before[campaign, case.name]
                    total.update(counted[case.name])
                    continue
                line = run_case(campaign, case, output / campaign / str(number))
                kept.write(json.dumps(line, ensure_ascii=False) + "\n")
                kept.flush()
                total.update(line["counts"])
                total["failed"] += not line["passed"]
                if line["passed"]:
                    counted[case.name] = line["counts"]
                said = "passed" if line["passed"] else f"FAILED: {line['error']} (left in {line['folder']})"
                print(f"{campaign} | {case.name} | {line['seconds']} s | {said}", flush=True)
            for cases_of in untried(campaign, counted):
                total["failed"] += 1
                print(f"{campaign} | {cases_of} | FAILED: {TRIED[campaign]} are 0 in all of its cases", flush=True)
    return totals


def untried(campaign: str, counted: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Groups of cases that have passed without having tried anything: a case may miss, but not all of a group.

    Args:
        counted: case -> its counts; a group is named before the first bar of the names of its cases.
    """
    groups: dict[str, list[int]] = {}
    for name, counts in counted.items() if campaign in TRIED else ():
        for group in (name.partition(" | ")[0], "all"):
            groups.setdefault(group, []).append(counts.get(TRIED[campaign], 0))
    return [group for group, counts in groups.items() if len(counts) > 1 and not any(counts)]


def summary(totals: Mapping[str, Counter[str]]) -> str:
    """A line for each campaign: its numbers of cases, of failures and of what it counted."""
    return "\n".join(
        f"{campaign}: " + ", ".join(f"{number:,} {name}" for name, number in total.items())
        for campaign, total in totals.items()
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, default="sample", help="cases to run (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=CAMPAIGNS, metavar="NAME", help="run only these campaigns")
    parser.add_argument("--cases", default="", metavar="TEXT", help="run only the cases whose names contain TEXT")
    parser.add_argument("--seed", type=int, default=1, help="seed of all that is drawn (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="folder of the results (default: trust/results/SET-SEED-CODE)")
    options = parser.parse_args()
    name = f"{options.set}-{options.seed}-{hash_of(ROOT, CODE)}"
    output = options.output or ROOT / "trust" / "results" / name
    chosen = {
        campaign: [case for case in cases(options.set == "full", options.seed) if options.cases in case.name]
        for campaign, cases in CAMPAIGNS.items()
        if options.only is None or campaign in options.only
    }
    totals = run(chosen, output.resolve())
    print(f"{summary(totals)}\n{output / 'results.jsonl'}")
    return int(any(total["failed"] for total in totals.values()))


if __name__ == "__main__":
    sys.exit(main())
