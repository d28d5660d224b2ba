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

from charts import Chart
from report import SHOWN_SAMPLES, Sample, Task, environment_facts, make_report, score_table
from training_log import loss_curves, read_training_log

from unified import masks
from unified.mask_pictures import svg
from unified.metrics import folder_unigram_entropy
from unified.metrics.outputs import read_generate_output, read_lines

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOOLS = Path(sys.executable).parent
PRETRAINED, SCRATCH, RULE = "with pre-training", "without pre-training", "rule"
INTRODUCTION = """A tiny Transformer was pre-trained on documentation sentences with UniLM's four objectives, then
fine-tuned to restore capitals and punctuation; beside it the same model fine-tuned without pre-training, and the rule
"capital first, full stop last"."""


@dataclass(frozen=True)
class Size:
    """How long to train what; these values keep the whole below twelve minutes on two cores."""

    arch: str = "unified_lm_tiny"
    vocabulary: int = 400
    row: int = 192
    rows_per_batch: int = 6  # small batches: at this size progress goes with the number of updates
    initializer_range: float = 0.08  # about 1/sqrt(width); BERT's 0.02 suits its width of 768
    pretrain_updates: int = 2800
    finetune_updates: int = 2600
    pretrain_lr: float = 2e-3
    finetune_lr: float = 2e-3


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


def training_command(data: Path, save: Path, size: Size, updates: int, rate: float) -> list:
    """The fairseq-train call that pre-training and fine-tuning share."""
    return [
        TOOLS / "fairseq-train", data, "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm",
        "--arch", size.arch, "--criterion", "unified_lm", "--tokens-per-sample", size.row,
        "--max-positions", size.row, "--initializer-range", size.initializer_range,
        "--dropout", 0.0, "--attention-dropout", 0.0,
        "--batch-size", size.rows_per_batch, "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)",
        "--clip-norm", 1.0, "--lr", rate, "--lr-scheduler", "polynomial_decay", "--warmup-updates", updates // 10,
        "--total-num-update", updates, "--max-update", updates, "--save-dir", save, "--no-epoch-checkpoints",
        "--validate-interval-updates", updates // 4, "--save-interval-updates", updates, "--validate-interval", 1000,
        "--log-format", "json", "--log-interval", max(1, updates // 40), "--num-workers", 0, "--seed", 1, "--cpu",
    ]  # fmt: skip


def prepare(run: Run, size: Size) -> tuple[Path, Path]:
    """The corpus and its two data folders: documents to pre-train on, pairs to restore."""
    corpus, documents, pairs = (run.folder / name for name in ("corpus", "data/documents", "data/restore"))
    run.step("corpus", [sys.executable, HERE / "corpus.py", "--output", corpus], corpus)
    text, restore = corpus / "pretrain", corpus / "restore"
    run.step("prepare documents", [
        TOOLS / "unified", "prepare", text / "train.txt", "--valid", text / "valid.txt", "--destination", documents,
        "--tokenizer", "unigram", "--vocabulary-size", size.vocabulary, "--sample-megabytes", 3,
    ], documents)  # fmt: skip
    run.step("prepare pairs", [
        TOOLS / "unified", "prepare", restore / "train.source", "--target", restore / "train.target",
        "--valid", restore / "valid.source", "--valid-target", restore / "valid.target",
        "--test", restore / "test.source", "--test-target", restore / "test.target",
        "--destination", pairs, "--tokenizer", documents,
    ], pairs)  # fmt: skip
    return documents, pairs


def train(run: Run, size: Size, documents: Path, pairs: Path) -> None:
    """Pre-train once, fine-tune twice: from the pre-trained model and from nothing."""
    pretrained = run.folder / "pretrained" / "checkpoint_last.pt"
    command = training_command(documents, pretrained.parent, size, size.pretrain_updates, size.pretrain_lr)
    run.step("pre-train", command, pretrained)
    for system, more in ((PRETRAINED, ["--finetune-from-model", pretrained]), (SCRATCH, [])):
        model = run.folder / system.replace(" ", "-")
        command = training_command(pairs, model, size, size.finetune_updates, size.finetune_lr)
        command += ["--objectives", "target_next", *more]
        run.step(f"train {system}", command, model / "checkpoint_last.pt")


def score(run: Run, size: Size, pairs: Path) -> dict[str, dict]:
    """Generate with both models, apply the rule, and score all three: system -> scores."""
    restore, results = run.folder / "corpus" / "restore", {}
    outputs = {RULE: run.folder / "rule.txt"}
    run.step(
        "rule", [sys.executable, HERE / "baseline.py", "rule", restore / "test.source", outputs[RULE]], outputs[RULE]
    )
    for system in (PRETRAINED, SCRATCH):
        model = run.folder / system.replace(" ", "-")
        outputs[system] = model / "generate-test.txt"
        run.step(f"generate {system}", [
            TOOLS / "fairseq-generate", pairs, "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm",
            "--path", model / "checkpoint_last.pt", "--beam", 5, "--batch-size", 50, "--max-len-b", size.row // 2,
            "--results-path", model, "--cpu",
        ], outputs[system])  # fmt: skip
    for system in (PRETRAINED, SCRATCH, RULE):
        scores = run.folder / "scores" / f"{system.replace(' ', '-')}.json"
        scores.parent.mkdir(exist_ok=True)
        command = [TOOLS / "unified", "score", "generation", outputs[system], "--references", restore / "test.target"]
        run.step(f"score {system}", [*command, "--output", scores], scores)
        results[system] = json.loads(scores.read_text(encoding="utf-8"))
    return results


def samples(run: Run) -> list[Sample]:
    """The first test sentences with what each system made of them."""
    restore = run.folder / "corpus" / "restore"
    lines = {part: read_lines(restore / f"test.{part}") for part in ("source", "target")}
    outputs = {RULE: read_lines(run.folder / "rule.txt")}
    for system in (PRETRAINED, SCRATCH):
        outputs[system], _ = read_generate_output([run.folder / system.replace(" ", "-") / "generate-test.txt"])
    order = (PRETRAINED, SCRATCH, RULE)
    return [
        Sample(lines["source"][i], lines["target"][i], {system: outputs[system][i] for system in order})
        for i in range(SHOWN_SAMPLES)
    ]


def charts(run: Run, documents: Path) -> list[Chart]:
    """Learning curves of pre-training by objective, and of both fine-tunings."""
    entropy = folder_unigram_entropy(documents).bits
    curves = loss_curves(read_training_log(run.folder / "logs" / "pre-train.log"))
    fine = {}
    for system in (PRETRAINED, SCRATCH):
        log = read_training_log(run.folder / "logs" / f"train-{system.replace(' ', '-')}.log")
        fine.update(
            {f"{system}{name.removeprefix('target_next')}": c for name, c in loss_curves(log, ["target_next"]).items()}
        )
    unigram = {"unigram entropy": entropy}
    return [Chart("Pre-training, by objective", curves, unigram), Chart("Fine-tuning", fine, {})]


def mask_pictures() -> dict[str, str]:
    """The masks of the four objectives as SVG."""
    drawn = {
        "bidirectional": masks.bidirectional(7),
        "left_to_right": masks.left_to_right(7),
        "right_to_left": masks.right_to_left(7),
        "seq2seq: source of 4, target of 3": masks.seq2seq(4, 3),
    }
    return {caption: svg(mask) for caption, mask in drawn.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "quickstart", help="where everything is written")
    arguments = parser.parse_args()
    run, size, start = Run(arguments.folder.resolve()), Size(), time.time()
    documents, pairs = prepare(run, size)
    train(run, size, documents, pairs)
    scores, shown = score(run, size, pairs), samples(run)
    facts = environment_facts() | {f"seconds: {name}": str(seconds) for name, seconds in run.seconds.items()}
    description = "Source: lower-cased, punctuation removed. Target: the sentence. Unseen modules."
    report = run.folder / "report.html"
    make_report(
        report,
        title="UNIFIED quickstart",
        introduction=INTRODUCTION,
        charts=charts(run, documents),
        masks=mask_pictures(),
        tasks=[Task("Restoring capitals and punctuation", description, scores, shown)],
        commands=run.commands,
        environment=facts,
    )
    for sample in shown:
        print(f"\n  source     {sample.source}\n  reference  {sample.reference}")
        for system, text in sample.outputs.items():
            print(f"  {system:<24} {text}")
    print(f"\n{score_table(scores)}\n\n{time.time() - start:.0f} s in all; {report}")


if __name__ == "__main__":
    main()
