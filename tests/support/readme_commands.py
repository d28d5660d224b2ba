"""The commands of the README's section "Your own text", run in a small size."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from tests.support import fairseq_runs as fairseq
from tests.support.prepared_python import interpreter

#: What makes the commands of the README small; fairseq takes the last value of an option.
TINY = "--arch unified_lm_tiny --width 32 --cpu --num-workers 0 --log-format json"
#: What makes them short, options of `unified pretrain`, too.
SHORT = "--max-update 2 --seed 3"


def run_readme(folder: Path) -> list[tuple[list[str], str, str]]:
    """Each command in ``folder``, which has the files that they read: its words, what it printed, and its log."""
    return [(words, *_run(words, folder)) for words in _commands()]


def _commands() -> list[list[str]]:
    """The commands of "Your own text" in the README, each as its words."""
    text = (fairseq.ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^## Your own text\n\n```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    block = block.replace("\\\n", " ").replace("$(unified plugin-dir)", str(fairseq.ROOT / "fairseq_plugins"))
    return [shlex.split(line) for line in block.splitlines() if line.strip()]


def _run(words: list[str], folder: Path) -> tuple[str, str]:
    """Run a command of the README in ``folder``, in a small size; what it printed, and its log."""
    words, _, output = " ".join(map(shlex.quote, words)).partition(" '>' ")
    words = shlex.split(words)
    words = ["400" if word == "8000" else word for word in words]
    if words[:2] == ["unified", "pretrain"]:
        words = [*words, *SHORT.split(), f"--fairseq={TINY}"]
    if words[0] == "unified":
        start = ["-m", "unified.cli", *words[1:]]
    else:
        more = f"{TINY} {SHORT}".split() if words[0] == "fairseq-train" else ["--cpu", "--num-workers", "0"]
        start = ["-m", fairseq.MODULES[words[0].removeprefix("fairseq-")], *words[1:], *more]
    result = subprocess.run(
        [interpreter(), *start], cwd=folder, env=fairseq.environment(), capture_output=True, text=True
    )
    assert result.returncode == 0, (words, result.stderr[-3000:])
    if output:
        (folder / output).write_text(result.stdout, encoding="utf-8")
    return result.stdout, result.stderr
