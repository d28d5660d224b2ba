"""Running fairseq's commands in a process of their own, as a user would."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import socket
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.support import quick_composition
from tests.support.prepared_client import LIMIT
from tests.support.prepared_python import interpreter

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ("--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm")
MODULES = {name: f"fairseq_cli.{name}" for name in ("train", "validate", "generate", "interactive", "preprocess")}
MODULES["train_exactly"] = "tests.support.exact_training"
TINY = (
    "--arch", "unified_lm_tiny", "--criterion", "unified_lm", "--width", 64, "--tokens-per-sample", 64,
    "--dropout", 0, "--attention-dropout", 0, "--optimizer", "adam", "--lr", 1e-3, "--log-format", "json",
    "--no-epoch-checkpoints", "--num-workers", 0, "--cpu", "--seed", 7, "--no-export",
)  # fmt: skip


def environment() -> dict[str, str]:
    """Variables of a command: this checkout stands before the folders that PYTHONPATH names already."""
    paths = os.pathsep.join([str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


@cache
def _asked_of_fairseq() -> dict:
    result = subprocess.run(
        [interpreter(), "-m", "tests.support.fairseq_options"],
        capture_output=True, text=True, cwd=ROOT, env=environment(),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


def options_of_fairseq() -> dict[str, set[str]]:
    """Options of fairseq's commands with the plug-ins, asked once in a process of its own."""
    return {command: set(flags) for command, flags in _asked_of_fairseq()["flags"].items()}


def fields_of_plugins() -> set[str]:
    """Fields of the plug-ins' configurations of task, model, criterion and optimizers."""
    return set(_asked_of_fairseq()["fields"])


def start(command: str, *arguments, **keywords) -> subprocess.Popen:
    words = [interpreter(), "-m", MODULES[command], *map(str, arguments)]
    return subprocess.Popen(
        words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords
    )


def finish(process: subprocess.Popen, check: bool = True, feed: str | None = None) -> subprocess.CompletedProcess:
    output, errors = process.communicate(feed, timeout=LIMIT)
    result = subprocess.CompletedProcess(process.args, process.returncode, output, errors)
    if check and result.returncode:
        raise AssertionError(f"{process.args} ended with {result.returncode}:\n{output[-3000:]}\n{errors[-3000:]}")
    return result


def run(command: str, *arguments, check: bool = True) -> subprocess.CompletedProcess:
    return finish(start(command, *arguments), check)


def printed_command(errors: str) -> list[str]:
    """Words of the command line of fairseq-train that a training has printed on standard error."""
    [line] = [line for line in errors.splitlines() if line.startswith("fairseq-train ")]
    return shlex.split(line)


def import_plugins() -> None:
    """Import what fairseq imports from the folder that --user-dir names."""
    for name in ("models.unified_lm", "tasks.unified_lm", "tasks.unified_understanding"):
        importlib.import_module(f"fairseq_plugins.{name}")


def in_this_process(command: str, *arguments) -> None:
    """fairseq's command without a process of its own, whose start takes a second.

    It prints and logs here, and a refusal is a SystemExit. Only for commands that do not train.
    """
    quick_composition.install()
    import_plugins()
    module = importlib.import_module(MODULES[command])
    importlib.import_module("fairseq.logging.metrics").reset()  # as in a process of its own: nothing is logged yet
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\s*'config' is validated against ConfigStore schema")  # by hydra
        patch.setattr(sys, "argv", [f"fairseq-{command}", *map(str, arguments), "--cpu", "--num-workers", "0"])
        if command == "validate":  # it would take away pytest's handlers of the log
            patch.setattr(module, "reset_logging", lambda: None)
        module.cli_main()


def preprocess(*arguments) -> None:
    """fairseq-preprocess in this process."""
    module = importlib.import_module(MODULES["preprocess"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fairseq-preprocess", *map(str, arguments), "--workers", "1"])
        module.cli_main()
    module.logger.handlers.clear()  # it writes its log into the folder


def refusal_to_train(*arguments) -> str:
    """The one line with which fairseq-train refuses its arguments, asked in this process."""
    with pytest.raises(SystemExit) as refused:
        in_this_process("train", *arguments)
    status = str(refused.value)
    assert status.startswith("unified_lm: error: ") and "\n" not in status, status
    return status


def train(data: Path, save: Path, *arguments, check: bool = True) -> subprocess.CompletedProcess:
    return run("train", data, *PLUGINS, *TINY, "--save-dir", save, *arguments, check=check)


def in_processes(count: int, *arguments, command: str = "train") -> subprocess.CompletedProcess:
    """fairseq-train in some processes that train together; the result of the first."""
    if count == 1:
        return run(command, *arguments)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = (
        *arguments, "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp", "--distributed-no-spawn",
        "--distributed-world-size", count, "--distributed-init-method", f"tcp://127.0.0.1:{port}",
    )  # fmt: skip
    started = [start(command, *words, "--distributed-rank", rank) for rank in range(count)]
    first, *_ = [finish(process) for process in started]
    return first


def assert_refused(result: subprocess.CompletedProcess, says: str) -> None:
    """Non-zero, one line of ours that says so, no traceback."""
    assert result.returncode != 0
    assert "Traceback" not in result.stdout + result.stderr, result.stderr[-2000:]
    message = [line for line in result.stderr.splitlines() if line.startswith("unified_lm: error:")]
    assert len(message) == 1 and says in message[0], result.stderr[-1000:]


def logged(text: str, tag: str) -> list[dict]:
    """The JSON statistics that fairseq printed under ``tag`` (train_inner, train, valid)."""
    rows = []
    for line in text.splitlines():
        if f"| {tag} | {{" in line:
            rows.append(json.loads(line[line.index("{") :]))
    return rows


def documents(folder: Path, rng: np.random.Generator, count: int = 40, symbols: int = 30) -> Path:
    """A folder of plain fairseq-preprocess with random documents: no tokenizer, no [MASK] in its dictionary."""
    text = folder / "text"
    text.mkdir(parents=True)
    for split, documents in (("train", count), ("valid", count // 4)):
        lines = []
        for _ in range(documents):
            for _ in range(rng.integers(2, 8)):
                lines.append(" ".join(f"w{w}" for w in rng.integers(symbols, size=rng.integers(4, 20))))
            lines.append("")
        (text / split).write_text("\n".join(lines) + "\n", encoding="utf-8")
    preprocess("--only-source", "--trainpref", text / "train", "--validpref", text / "valid",
               "--destdir", folder / "bin")  # fmt: skip
    return folder / "bin"


def pairs(
    folder: Path, rewrite, rng: np.random.Generator, sizes: dict[str, int], symbols: int = 12, lengths=(3, 9)
) -> Path:
    """A source/target folder of plain fairseq-preprocess: random symbols and what ``rewrite`` makes of them."""
    text = folder / "text"
    text.mkdir(parents=True)
    for split, count in sizes.items():
        sources = [[f"w{w}" for w in rng.integers(symbols, size=rng.integers(*lengths))] for _ in range(count)]
        for language, rows in (("src", sources), ("tgt", [rewrite(row) for row in sources])):
            (text / f"{split}.{language}").write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
    preprocess("-s", "src", "-t", "tgt", "--joined-dictionary", "--destdir", folder / "bin",
               *(word for split in sizes for word in (f"--{split}pref", text / split)))  # fmt: skip
    return folder / "bin"


def exact_share(generated: str) -> float:
    """Share of sentences whose hypothesis equals the reference in fairseq-generate's output."""
    rows: dict[str, dict[str, str]] = {}
    for line in generated.splitlines():
        if line[:2] in ("T-", "H-"):
            number, _, rest = line[2:].partition("\t")
            rows.setdefault(number, {})[line[0]] = rest.split("\t")[-1]
    return sum(row["T"] == row["H"] for row in rows.values()) / len(rows)
