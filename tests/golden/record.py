"""Makes all golden figures, and compares them with those in the repository.

    python -m tests.golden.record             compare; status 1 where a figure differs
    python -m tests.golden.record --write     replace tests/golden/figures.json, with --only the figures of some runs

Figures repeat bit for bit on one kind of processor with one version of torch. Write new ones only together with the
change that explains them. Before a refactoring on another processor, write them at the commit that it starts from.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

import torch

from fairseq_plugins.dataset import to_batch
from tests.golden import data, outputs, plan, training, visible
from unified.runtime.machine import processor_name

GOLDEN = Path(__file__).resolve().parent / "figures.json"
#: Updates whose losses are written down; a hash stands for all of them.
SHOWN = (1, 2, 5, 10, 20, 50, 100)


def machine() -> dict[str, str]:
    """What decides the last digits: the processor and torch."""
    return {
        "processor": processor_name(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
    }


def figures(only: str = "") -> dict[str, dict]:
    """Run -> its losses, the hashes of its first batch, and what the trained model writes or predicts.

    Args:
        only: a part of the names of the runs that are made.
    """
    chosen = [run for run in plan.runs() if only in run.name]
    with tempfile.TemporaryDirectory() as name:
        folders = {kind: data.FOLDERS[kind](Path(name)) for kind in dict.fromkeys(run.data for run in chosen)}
        return {run.name: _figures(run, folders[run.data], Path(name) / f"model{i}") for i, run in enumerate(chosen)}


def _figures(run: plan.Run, folder: Path, save: Path) -> dict:
    began = time.monotonic()
    losses, first = training.train(folder, save, *run.options)
    found: dict = {"losses": {name: _short(own) for name, own in losses.items()}}
    if run.is_language:
        found["first batch"] = visible.hashes(to_batch(first))
    found |= {
        name: make(save / "checkpoint_last.pt", folder) for name, make in outputs.KINDS.items() if name in run.outputs
    }
    print(f"{run.name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    return found


def _short(values: list[float]) -> list:
    digest = hashlib.sha256(" ".join(value.hex() for value in values).encode()).hexdigest()[:16]
    return [*(values[update - 1] for update in SHOWN if update <= len(values)), digest]


def differences(expected: dict[str, dict], found: dict[str, dict]) -> list[str]:
    """One line for each figure that is not the same, or that only one side has."""
    flat = [
        {
            (run, kind, name): own
            for run, kinds in side.items()
            for kind, names in kinds.items()
            for name, own in names.items()
        }
        for side in (expected, found)
    ]
    return [
        f"{', '.join(place)}: {flat[1].get(place)} here, {flat[0].get(place)} expected"
        for place in sorted(flat[0].keys() | flat[1].keys())
        if flat[0].get(place) != flat[1].get(place)
    ]


def write(found: dict[str, dict]) -> None:
    """Replace the figures in the repository: a line a run."""
    runs = ",\n".join(f"{json.dumps(run)}: {json.dumps(own)}" for run, own in found.items())
    content = f'{{"made_with": {json.dumps(machine())}, "figures": {{\n{runs}\n}}}}\n'
    GOLDEN.write_text(content, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="golden figures of training, writing and masks")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="make only the runs whose names contain TEXT (default: all)"
    )
    parser.add_argument("--write", action="store_true", help="replace the figures in the repository")
    options = parser.parse_args()
    if not (options.write or GOLDEN.exists()):
        parser.error(f"{GOLDEN} is not there yet; --write makes it")
    expected = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {"made_with": None, "figures": {}}
    if options.write and options.only and expected["made_with"] != machine():
        parser.error(
            f"the other figures were made with {expected['made_with']}, here is {machine()}: write all of them"
        )
    found = figures(options.only)
    if options.write:
        write(expected["figures"] | found if options.only else found)
        return 0
    if expected["made_with"] != machine():
        print(f"made with {expected['made_with']}, here {machine()}: last digits differ", file=sys.stderr)
    different = differences({run: own for run, own in expected["figures"].items() if options.only in run}, found)
    print("\n".join(different) or f"{len(found)} runs give the golden figures")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
