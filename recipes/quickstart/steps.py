"""Steps of a recipe: plain commands, printed as they start, skipped where their output is there already."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Run:
    """Runs steps in order and remembers their commands and seconds."""

    folder: Path
    commands: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def step(self, name: str, command: list[str | Path | int | float], output: Path) -> None:
        """Run ``command`` unless ``output``, which it makes, is there already; a failure ends the run."""
        words = [str(word) for word in command]
        self.commands.append(shlex.join(words))
        if output.exists():
            print(f"== {name}: done before ({output})", flush=True)
            return
        print(f"\n== {name}\n$ {self.commands[-1]}", flush=True)
        start = time.time()
        log = self.folder / "logs" / f"{name.replace(' ', '-')}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        code = run_with_progress(words, log)
        if code:
            raise SystemExit(f"{name} failed with status {code}; all it printed is in {log}")
        self.seconds[name] = round(time.time() - start, 1)
        print(f"   {name}: {self.seconds[name]} s", flush=True)


def run_with_progress(words: list[str], log: Path) -> int:
    """Run a command, keep all its output in ``log`` and show the lines that tell how far it is."""
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(words, cwd=ROOT, env=environment, text=True, **pipes)
    with log.open("w", encoding="utf-8") as stream:
        for line in process.stdout:
            stream.write(line)
            shown = shorten(line)
            if shown:
                print(f"   {shown}", flush=True)
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
    if line.startswith(("S-", "T-", "H-", "D-", "P-")) or " | INFO | " in line:
        return None
    return line.rstrip()[:160] or None
