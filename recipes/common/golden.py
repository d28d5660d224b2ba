"""Runs the debug size of recipes and compares the losses with those in the repository.

    python recipes/common/golden.py [SYSTEM ...]            compare; status 1 where a loss differs
    python recipes/common/golden.py [SYSTEM ...] --write    replace recipes/<system>/golden.json

A system takes 10 to 25 seconds of one core. Write new losses only together with the change that explains them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from unified.reports.training_log import read_training_log

RECIPES = Path(__file__).resolve().parent.parent
PRETRAIN = RECIPES / "pretrain.py"
SYSTEMS = ("bert", "spanbert", "xlnet", "anna", "t5")
#: Relative, for each loss. Sums in another order change the last digits of a float32, and training adds up what they
#: change. All printed digits (1e-4 of a loss) stayed as they are with another instruction set (SSE, AVX-512), with two
#: threads, and with initial weights changed by 2e-6 of their size; this leaves a few units of the last one to other
#: processors. Other examples, another model or another rate change a loss by 1 % somewhere.
TOLERANCE = 5e-4
#: Libraries that the debug data and its numbers depend on.
LIBRARIES = ("torch", "numpy", "sentencepiece", "tokenizers")

#: Loss by name, then by update: {"train": ..., "valid": ...} as fairseq named them.
Losses = dict[str, dict[str, float]]


def prepare(system: str, folder: Path, python: str = sys.executable) -> Path:
    """The debug corpus, prepared for ``system`` in ``folder`` by ``python``.

    Raises:
        RuntimeError: a command fails; ends with what it printed.
    """
    text, data = folder / "text", folder / "data"
    run(python, RECIPES / "common" / "corpora.py", text, "debug")
    run(python, PRETRAIN, system, "prepare", "debug", data, text / "debug.jsonl", "--workers", 1)
    return data


def pretrain(system: str, data: Path, folder: Path, *options: str, python: str = sys.executable) -> Losses:
    """The losses that the debug size of ``system`` logs while training in ``folder``."""
    log = folder / "train.log"
    log.write_text(run(python, PRETRAIN, system, "pretrain", "debug", data, folder / "model", *options))
    logged = read_training_log(log)
    names = sorted(name for name in logged if name.endswith("loss") and not name.startswith(("train_", "valid_best")))
    return {name: {str(update): value for update, value in logged[name]} for name in names}


def golden(system: str) -> Losses:
    """The losses in the repository."""
    return json.loads(_path(system).read_text(encoding="utf-8"))["losses"]


def differences(expected: Losses, found: Losses) -> list[str]:
    """One line for each loss that is more than :data:`TOLERANCE` away, or that only one side has."""
    lines = []
    for name in sorted(expected.keys() | found.keys()):
        ours, theirs = found.get(name, {}), expected.get(name, {})
        for update in sorted(ours.keys() | theirs.keys(), key=int):
            a, b = ours.get(update), theirs.get(update)
            if a is None or b is None or abs(a - b) > TOLERANCE * abs(b):
                lines.append(f"{name}, update {update}: {a} here, {b} expected")
    return lines


def made_with(system: str) -> str:
    """Versions that the losses in the repository come from, and those installed here."""
    then = json.loads(_path(system).read_text(encoding="utf-8"))["made_with"]
    return f"made with {_listed(then)}; here {_listed(_versions())}"


def write(system: str, losses: Losses) -> None:
    content = {"made_with": _versions(), "losses": losses}
    _path(system).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _path(system: str) -> Path:
    return RECIPES / system / "golden.json"


def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def run(*words) -> str:
    """All that a command prints, on one core."""
    environment = {**os.environ, "CARDS": "0", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # An empty entry would be the current folder, whose files could be imported instead of Python's own.
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(RECIPES.parent), os.environ.get("PYTHONPATH"))))
    for name in ("PRINT", "TOKENIZER"):
        environment.pop(name, None)
    result = subprocess.run(
        [*map(str, words)], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {result.returncode}:\n{result.stdout[-3000:]}")
    return result.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="golden losses of the recipes' debug sizes")
    parser.add_argument(
        "systems", nargs="*", metavar="SYSTEM", help=f"system to train: {', '.join(SYSTEMS)} (default: all)"
    )
    parser.add_argument(
        "--write", action="store_true", help="replace the losses in the repository (default: compare with them)"
    )
    options = parser.parse_args()
    unknown = set(options.systems) - set(SYSTEMS)
    if unknown:
        parser.error(f"no system {', '.join(sorted(unknown))}; there are {', '.join(SYSTEMS)}")
    failed = False
    for system in options.systems or SYSTEMS:
        with tempfile.TemporaryDirectory() as name:
            losses = pretrain(system, prepare(system, Path(name)), Path(name))
        if options.write:
            write(system, losses)
            print(f"{system}: written to {_path(system)}")
            continue
        different = differences(golden(system), losses)
        print(f"{system}: {'the golden losses' if not different else made_with(system)}")
        print("".join(f"  {line}\n" for line in different), end="")
        failed |= bool(different)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
