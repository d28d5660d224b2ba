"""Steps of a recipe: plain commands, printed as they start, skipped where their output is there already.

Their progress is plain lines and no bar, since two steps run side by side and each has a log of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unified.files.claims import Claim, claimed_folder

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Step:
    """A command and the file or folder that it makes."""

    name: str
    command: Sequence[str | Path | int | float]
    output: Path

    @property
    def words(self) -> list[str]:
        return [str(word) for word in self.command]


@dataclass
class Run:
    """Runs steps and remembers their commands and seconds."""

    folder: Path
    commands: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _processes: list[subprocess.Popen] = field(default_factory=list)
    _failed: bool = False

    def claimed(self, settings: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Claim the folder for a block, by what all its runs have in common, as users call it.

        Raises:
            UnifiedError: see :func:`unified.files.claims.claimed_folder`.
        """
        return claimed_folder(self.folder, Claim(settings), "name another folder")

    def run(self, *steps: Step) -> None:
        """Run the steps at the same time, sharing the processors; skip those whose output is there already.

        A tiny model keeps one processor busy and hardly more, so two trainings side by side take half the time.

        Raises:
            SystemExit: a step failed; the others are ended.
        """
        self.commands += [shlex.join(step.words) for step in steps]
        missing = [step for step in steps if not self._done(step)]
        if not missing:
            return
        with ThreadPoolExecutor(len(missing)) as pool:
            for finished in as_completed([pool.submit(self._run, step, len(missing)) for step in missing]):
                finished.result()

    def log(self, name: str) -> Path:
        """Log file of the step of this name."""
        return self.folder / "logs" / f"{name.replace(' ', '-')}.log"

    def _done(self, step: Step) -> bool:
        """A step that was interrupted may have left its output, but not its seconds."""
        mark = self.log(step.name).with_suffix(".seconds")
        if not (mark.exists() and step.output.exists()):
            return False
        self.seconds[step.name] = float(mark.read_text())
        print(f"== {step.name}: done before ({step.output})", flush=True)
        return True

    def _run(self, step: Step, share: int) -> None:
        print(f"\n== {step.name}\n$ {shlex.join(step.words)}", flush=True)
        start = time.time()
        log = self.log(step.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        label = f"{step.name}: " if share > 1 else ""
        code = self._follow(step.words, log, label, max(1, (os.cpu_count() or 1) // share))
        if code:
            self._failed = True
            for process in self._processes:
                process.terminate()
            raise SystemExit(f"{step.name} failed with status {code}; all it printed is in {log}")
        self.seconds[step.name] = round(time.time() - start, 1)
        log.with_suffix(".seconds").write_text(str(self.seconds[step.name]))
        print(f"   {step.name}: {self.seconds[step.name]} s", flush=True)

    def _follow(self, words: list[str], log: Path, label: str, threads: int) -> int:
        """Run a command, add all its output to ``log`` and show the lines that tell how far it is."""
        threads = os.environ.get("OMP_NUM_THREADS", str(threads))
        # fairseq's own libraries warn of each other on dozens of lines.
        environment = {"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": threads}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(words, cwd=ROOT, env=os.environ | environment, text=True, **pipes)
        self._processes.append(process)
        if self._failed:  # the step beside this one, just before
            process.terminate()
        with log.open("a", encoding="utf-8") as stream:
            for line in process.stdout:
                stream.write(line)
                shown = shorten(line)
                if shown:
                    print(f"   {label}{shown}", flush=True)
        return process.wait()


def shorten(line: str) -> str | None:
    """One readable line of progress from a fairseq log line; None for lines that tell nothing."""
    if line.startswith("{") or "| {" in line:
        try:
            stats = json.loads(line[line.index("{") :])
        except ValueError:
            return None
        if "epoch" not in stats:
            return None
        prefix = "valid_" if any(key.startswith("valid_") for key in stats) else ""
        names = [key for key in stats if key.endswith("_loss") and "best" not in key]
        losses = [f"{name.removeprefix(prefix)} {stats[name]}" for name in names]
        update = stats.get(f"{prefix}num_updates", stats.get("num_updates", "?"))
        return f"{prefix.rstrip('_') or 'train'} update {update}: {', '.join(losses)} (bits)"
    if line.startswith(("S-", "T-", "H-", "D-", "P-", "INFO:", "DEBUG:")) or " | INFO | " in line:
        return None
    return line.rstrip()[:160] or None
