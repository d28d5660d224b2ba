"""The main job in one sitting: prepare, pre-train, fine-tune, generate, score. Every step is a plain command.

    python recipes/quickstart/run.py [--folder quickstart]

The commands are printed as they start, so that each can be repeated or changed by hand; what a finished step made is
reused by a second call. Scores of the test part are computed once, at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOOLS = Path(sys.executable).parent
SHOWN = ("train_inner", "valid", "Translated", "error", "Error", "unified")


@dataclass(frozen=True)
class Size:
    """How long to train what; these values keep the whole below twelve minutes on two cores."""

    arch: str = "unified_lm_tiny"
    vocabulary: int = 400
    row: int = 256
    rows_per_batch: int = 16
    pretrain_updates: int = 1200
    finetune_updates: int = 900
    pretrain_lr: float = 2e-3
    finetune_lr: float = 1.5e-3


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
    process = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
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
        losses = [f"{key.removeprefix(prefix)} {stats[key]}" for key in stats if key.endswith("_loss") and "best" not in key]
        update = stats.get(f"{prefix}num_updates", stats.get("num_updates", "?"))
        return f"{prefix.rstrip('_') or 'train'} update {update}: {', '.join(losses)} (bits)"
    if line.startswith(("S-", "T-", "H-", "D-", "P-")) or " | INFO | " in line:
        return None
    return line.rstrip()[:160] or None


def training_command(data: Path, save: Path, size: Size, updates: int, rate: float) -> list:
    """The fairseq-train call that pre-training and fine-tuning share."""
    return [
        TOOLS / "fairseq-train", data, "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm",
        "--arch", size.arch, "--criterion", "unified_lm", "--tokens-per-sample", size.row,
        "--max-positions", size.row, "--dropout", 0.0, "--attention-dropout", 0.0,
        "--batch-size", size.rows_per_batch, "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)",
        "--clip-norm", 1.0, "--lr", rate, "--lr-scheduler", "polynomial_decay", "--warmup-updates", updates // 10,
        "--total-num-update", updates, "--max-update", updates, "--save-dir", save, "--no-epoch-checkpoints",
        "--validate-interval-updates", updates // 4, "--save-interval-updates", updates, "--validate-interval", 1000,
        "--log-format", "json", "--log-interval", max(1, updates // 40), "--num-workers", 0, "--seed", 1, "--cpu",
    ]  # fmt: skip


def restore_capitals(run: Run, size: Size) -> None:
    """Everything the quickstart does, in order."""
    folder, python = run.folder, sys.executable
    corpus, documents, pairs = folder / "corpus", folder / "data" / "documents", folder / "data" / "restore"
    run.step("corpus", [python, HERE / "corpus.py", "--output", corpus], corpus / "restore")
    pretrain = corpus / "pretrain"
    run.step("prepare documents", [
        TOOLS / "unified", "prepare", pretrain / "train.txt", "--valid", pretrain / "valid.txt",
        "--destination", documents, "--tokenizer", "unigram", "--vocabulary-size", size.vocabulary,
    ], documents)  # fmt: skip
    restore = corpus / "restore"
    run.step("prepare pairs", [
        TOOLS / "unified", "prepare", restore / "train.source", "--target", restore / "train.target",
        "--valid", restore / "valid.source", restore / "valid.target",
        "--test", restore / "test.source", restore / "test.target",
        "--destination", pairs, "--tokenizer", documents,
    ], pairs)  # fmt: skip
    pretrained = folder / "pretrained"
    run.step(
        "pre-train",
        training_command(documents, pretrained, size, size.pretrain_updates, size.pretrain_lr),
        pretrained / "checkpoint_last.pt",
    )
    for name, more in (("finetuned", ["--finetune-from-model", pretrained / "checkpoint_last.pt"]), ("from-scratch", [])):
        model = folder / name
        command = training_command(pairs, model, size, size.finetune_updates, size.finetune_lr)
        run.step(f"train {name}", command + more, model / "checkpoint_last.pt")
        run.step(f"generate {name}", [
            TOOLS / "fairseq-generate", pairs, "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm",
            "--path", model / "checkpoint_last.pt", "--beam", 5, "--batch-size", 64, "--max-len-b", size.row // 2,
            "--results-path", model, "--cpu",
        ], model / "generate-test.txt")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "quickstart", help="where everything is written")
    arguments = parser.parse_args()
    run = Run(arguments.folder.resolve())
    start = time.time()
    restore_capitals(run, Size())
    print(f"\n{time.time() - start:.0f} s in all")


if __name__ == "__main__":
    main()
