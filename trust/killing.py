"""Runs commands of the library and kills them, at a random moment or at a call that writes or renames files."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trust.cases import require

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600  # seconds that a command may take


@dataclass(frozen=True)
class Aim:
    """Where a command is killed.

    Attributes:
        call: function, number of its call and when, such as ``os.replace:3:before``; empty for a random moment.
        seconds: moment of a random kill.
    """

    call: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        return self.call or f"{self.seconds:.2f} s"


@dataclass(frozen=True)
class Ended:
    """A command that has ended.

    Attributes:
        status: as of the shell; negative for a signal.
        calls: how often each function was called that an aim can name.
        seconds: how long it took.
    """

    status: int
    output: str
    calls: dict[str, int]
    seconds: float


def run(words: Sequence[object], folder: Path, aim: Aim | None = None) -> Ended:
    """Runs ``python -m`` with the words, in a group of processes of its own, to its end or until it is killed.

    Args:
        folder: for the counts of calls; it is made.
    """
    folder.mkdir(parents=True)
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "trust" / "injected"), str(ROOT))),
        "TRUST_CALLS": str(folder), "TRUST_KILL": aim.call if aim else "", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    began = time.monotonic()
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *map(str, words)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(aim.seconds if aim and not aim.call else LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
            require(aim is not None, f"{' '.join(map(str, words))}: not over after {LIMIT} s")
    calls = {path.name: path.stat().st_size for path in folder.iterdir() if path.name != "output"}
    return Ended(status, (folder / "output").read_text(errors="replace"), calls, time.monotonic() - began)


def aims(whole: Ended, count: int, rng: random.Random) -> list[Aim]:
    """Half of them, or one more, at calls that the uninterrupted command has made, the rest at random moments."""
    found = []
    for number in range(count):
        if number % 2 or not whole.calls:
            found.append(Aim(seconds=rng.uniform(0.05, 1) * whole.seconds))
            continue
        name = rng.choice(sorted(whole.calls))
        when = rng.choice(("before", "after", *(["middle"] if name == "shutil.copyfileobj" else [])))
        found.append(Aim(f"{name}:{rng.randint(1, whole.calls[name])}:{when}"))
    return found
