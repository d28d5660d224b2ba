"""The main job in one sitting: prepare, pre-train, fine-tune, generate, score. Every step is a plain command.

    python recipes/quickstart/run.py [--output quickstart] [--long]

The commands are printed as they start, so that each can be repeated or changed by hand; what a finished step made is
reused by a second call. Scores of the test split are computed once, at the end. With a GPU, or with --long, a larger
model also learns to summarize.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from report import METRICS, SHOWN_SAMPLES, Metric, Sample, Task, environment_facts, make_report, score_table
from steps import ROOT, Run, Step

from unified import masks
from unified.files.rows import read_rows
from unified.masks.pictures import svg
from unified.reports.charts import Chart
from unified.reports.training_log import loss_curves, next_sentence_note, read_training_log
from unified.runtime.processes import module_command
from unified.tasks.metrics import folder_unigram_entropy
from unified.tasks.metrics.outputs import read_generate_output, read_lines

HERE = Path(__file__).resolve().parent
#: Programs that steps call, and the modules that they are.
MODULES = {"unified": "unified.cli", "fairseq-train": "fairseq_cli.train", "fairseq-generate": "fairseq_cli.generate"}
DEVICE = () if torch.cuda.is_available() else ("--cpu",)
PRETRAINED, SCRATCH = "with pre-training", "without pre-training"
SEED = 1  # of training, and of the samples that are shown
INTRODUCTION = (
    "A Transformer was pre-trained on documentation strings with UniLM's four objectives and fine-tuned; beside it "
    "stand the same model fine-tuned without pre-training, and a rule that needs no model."
)


@dataclass(frozen=True)
class Phase:
    """A call of fairseq-train: updates, learning rate, tokens per row and rows per batch."""

    updates: int
    rate: float
    row: int
    rows: int


@dataclass(frozen=True)
class Size:
    """Models to train, and how long."""

    arch: tuple[str, ...]
    vocabulary: int
    initializer_range: float
    dropout: float
    mask_share: float
    pretraining: Phase
    finetuning: Phase
    max_source: int = 0
    max_target: int = 0


# Below twelve minutes on two cores. At this size progress goes with the number of updates, so batches are small and
# more tokens than UniLM's 15 % are hidden. Four layers with narrow feed-forward networks copy with fewer slips than
# two wide ones of as many parameters. Rows of 32 learn to look at their neighbours in half the updates that rows of 64
# need, and rows of 192 had not learnt it after 3,000; fine-tuning extends the positions as UniLM does.
TINY = Size(
    arch=("unified_lm_tiny", "--layers", "4", "--feed-forward", "128"),
    vocabulary=400,
    initializer_range=0.04,
    dropout=0.0,
    mask_share=0.3,
    pretraining=Phase(4400, 2e-3, row=32, rows=36),
    finetuning=Phase(3600, 2e-3, row=192, rows=6),
)
# Minutes on a GPU, most of a day on two cores.
SMALL = Size(
    arch=("unified_lm_small",),
    vocabulary=8000,
    initializer_range=0.05,
    dropout=0.1,
    mask_share=0.15,
    pretraining=Phase(20000, 5e-4, row=256, rows=64),
    finetuning=Phase(6000, 2e-4, row=256, rows=64),
    max_source=180,
    max_target=60,
)


@dataclass(frozen=True)
class Experiment:
    """A generation task: its pairs in ``corpus/<name>``, the model that learns it and the rule to compare with.

    Attributes:
        why: why the report's first column is the one to read.
        metrics: the report's columns.
    """

    name: str
    title: str
    description: str
    why: str
    rule: str
    size: Size
    metrics: tuple[Metric, ...] = METRICS


RESTORE = Experiment(
    "restore",
    "Restoring capitals and punctuation",
    "Source: a sentence lower-cased, its punctuation removed. Target: the sentence. From modules unseen in training. "
    "The rule: capital first, full stop last.",
    "Exact sentences are the point: the task is to bring back every capital and mark, and a sentence with one of them "
    "wrong still has to be read and corrected. The other columns mostly count words, which the source has already. The "
    "rule copies them and never misspells one; a model writes the sentence anew, and a slip in copying costs it there. "
    "A third of the sentences hold no other capital or mark, and these are all that the rule can get right.",
    "rule",
    TINY,
)
SUMMARIZE = Experiment(
    "summarize",
    "First lines of documentation",
    "Source: qualified name and body of a documentation string. Target: its first line. The rule: the lead sentence.",
    "A first line can be said in many ways, so exact sentences are rare. BLEU and ROUGE count the words and phrases "
    "in common.",
    "lead",
    SMALL,
    METRICS[2:] + METRICS[:2],
)


def program(name: str) -> list[str | Path]:
    """Words that start a program: its script beside Python, or its module where packages lie on PYTHONPATH alone."""
    script = Path(sys.executable).parent / name
    return [script] if script.exists() else [*module_command(MODULES[name])]


def training_command(data: Path, save: Path, size: Size, phase: Phase) -> list:
    """The fairseq-train call that pre-training and fine-tuning share."""
    updates = phase.updates
    return [
        *program("fairseq-train"), data, "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm",
        "--arch", *size.arch, "--criterion", "unified_lm", "--tokens-per-sample", phase.row,
        "--max-positions", phase.row, "--initializer-range", size.initializer_range,
        "--dropout", size.dropout, "--attention-dropout", 0.0,
        "--batch-size", phase.rows, "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--clip-norm", 1.0,
        "--lr", phase.rate, "--lr-scheduler", "polynomial_decay", "--warmup-updates", updates // 10,
        "--total-num-update", updates, "--max-update", updates, "--save-dir", save, "--no-epoch-checkpoints",
        "--validate-interval-updates", updates // 4, "--save-interval-updates", updates, "--validate-interval", 1000,
        "--log-format", "json", "--log-interval", max(1, updates // 40), "--num-workers", 0, "--seed", SEED, *DEVICE,
    ]  # fmt: skip


def pretraining_objectives(size: Size) -> str:
    """UniLM's mixture [UniLM, sec. 2.4] with this size's share of hidden tokens."""
    shares = {"bidirectional": 2, "seq2seq": 2, "left_to_right": 1, "right_to_left": 1}
    return ",".join(f"{name}(mask_share={size.mask_share}):{weight}" for name, weight in shares.items())


def settings_shown(size: Size) -> dict[str, object]:
    """The settings of a size by plain names, for the report."""
    shown: dict[str, object] = {
        "architecture": " ".join(size.arch),
        "pieces in the vocabulary": f"{size.vocabulary:,}",
        "dropout": size.dropout,
        "hidden tokens in pre-training": f"{size.mask_share:.0%}",
        "seed": SEED,
    }
    for name, phase in {"pre-training": size.pretraining, "fine-tuning": size.finetuning}.items():
        shown[name] = (
            f"{phase.updates:,} updates of {phase.rows} rows with {phase.row} tokens; "
            f"the learning rate rises to {phase.rate}"
        )
    return shown


class Trial:
    """One experiment in its folder: the steps, and the files that they left."""

    def __init__(self, run: Run, experiment: Experiment):
        self.run, self.experiment, self.size = run, experiment, experiment.size
        self.corpus = run.folder / "corpus"
        self.folder = run.folder / experiment.name
        self.documents, self.pairs = self.folder / "data" / "documents", self.folder / "data" / "pairs"
        self.references, self.rule = self.folder / "references.txt", self.folder / "rule.txt"

    def step(self, name: str, command: list, output: Path) -> Step:
        return Step(f"{self.experiment.name} {name}", command, output)

    def model(self, system: str) -> Path:
        return self.folder / system.replace(" ", "-")

    def outputs(self, system: str) -> Path:
        return self.rule if system == self.experiment.rule else self.model(system) / "generate-test.txt"

    @property
    def systems(self) -> tuple[str, ...]:
        return PRETRAINED, SCRATCH, self.experiment.rule

    def prepare(self) -> None:
        """Text to pre-train on, and pairs under the same dictionary."""
        text, pairs = self.corpus / "documents", self.corpus / self.experiment.name
        documents = self.step("documents", [
            *program("unified"), "prepare", text / "train.txt", "--valid", text / "valid.txt",
            "--output", self.documents, "--tokenizer", "unigram", "--vocabulary-size", self.size.vocabulary,
            "--character-coverage", 1.0, "--sample-megabytes", 3,
        ], self.documents)  # fmt: skip
        if (pairs / "train.jsonl").exists():
            sides = ["--source-field", "source", "--target-field", "target"]
            files = [pairs / "train.jsonl", "--valid", pairs / "valid.jsonl", "--test", pairs / "test.jsonl"]
        else:
            sides = ["--target", pairs / "train.target", "--valid-target", pairs / "valid.target",
                     "--test-target", pairs / "test.target"]  # fmt: skip
            files = [pairs / "train.source", "--valid", pairs / "valid.source", "--test", pairs / "test.source"]
        command = [*program("unified"), "prepare", *files, *sides, "--output", self.pairs]
        self.run.run(documents)
        self.run.run(self.step("pairs", [*command, "--tokenizer", self.documents], self.pairs))
        _, _, references = self.test_split()
        self.references.write_text("".join(f"{line}\n" for line in references), encoding="utf-8")

    def test_split(self) -> tuple[Path, list[str], list[str]]:
        """The file that holds the test sources, the sources, and the references."""
        pairs = self.corpus / self.experiment.name
        if (pairs / "test.jsonl").exists():
            rows = [row.fields for row in read_rows(pairs / "test.jsonl")]
            return pairs / "test.jsonl", [row["source"] for row in rows], [row["target"] for row in rows]
        return pairs / "test.source", read_lines(pairs / "test.source"), read_lines(pairs / "test.target")

    def train(self) -> None:
        """Pre-train once, fine-tune twice: from the pre-trained model and from nothing."""
        size, pretrained = self.size, self.folder / "pretrained" / "checkpoint_last.pt"
        command = training_command(self.documents, pretrained.parent, size, size.pretraining)
        pretrain = self.step("pre-train", [*command, "--objectives", pretraining_objectives(size)], pretrained)
        self.run.run(pretrain, self.fine_tuning(SCRATCH, []))
        self.run.run(self.fine_tuning(PRETRAINED, ["--finetune-from-model", pretrained]))

    def fine_tuning(self, system: str, more: list) -> Step:
        """Source to target, every target token predicting the next."""
        size, model = self.size, self.model(system)
        command = training_command(self.pairs, model, size, size.finetuning)
        command += ["--objectives", "target_next", "--max-source", size.max_source, "--max-target", size.max_target]
        return self.step(f"train {system}", [*command, *more], model / "checkpoint_last.pt")

    def score(self) -> dict[str, dict]:
        """Generate with both models, apply the rule, score all three: system -> scores."""
        source, _, _ = self.test_split()
        rule = [sys.executable, HERE / "baseline.py", self.experiment.rule, source, self.rule]
        self.run.run(self.step("rule", rule, self.rule))
        self.run.run(self.generation(PRETRAINED), self.generation(SCRATCH))
        results = {}
        scores = {system: self.folder / "scores" / f"{system.replace(' ', '-')}.json" for system in self.systems}
        for system, path in scores.items():
            path.parent.mkdir(exist_ok=True)
            files = [self.outputs(system), "--references", self.references, "--output", path]
            self.run.run(self.step(f"score {system}", [*program("unified"), "score", "generation", *files], path))
            results[system] = json.loads(path.read_text(encoding="utf-8"))
        return results

    def generation(self, system: str) -> Step:
        """Generates the test split's targets by beam search."""
        return self.step(f"generate {system}", [
            *program("fairseq-generate"), self.pairs, "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm",
            "--path", self.model(system) / "checkpoint_last.pt", "--beam", 5,
            "--batch-size", 50, "--max-len-b", self.size.max_target or self.size.finetuning.row // 2,
            "--results-path", self.model(system), *DEVICE,
        ], self.outputs(system))  # fmt: skip

    def report(self, scores: dict[str, dict]) -> Task:
        """The report's part on this experiment; its samples are test sentences drawn at random."""
        texts = {system: read_generate_output([self.outputs(system)])[0] for system in (PRETRAINED, SCRATCH)}
        texts[self.experiment.rule] = read_lines(self.rule)
        _, sources, references = self.test_split()
        drawn = sorted(random.Random(SEED).sample(range(len(sources)), min(SHOWN_SAMPLES, len(sources))))
        return Task(
            self.experiment.title,
            self.experiment.description,
            scores,
            self.experiment.why,
            [Sample(sources[i], references[i], {system: texts[system][i] for system in self.systems}) for i in drawn],
            f"{len(drawn)} of {len(sources):,} sentences, drawn at random (seed {SEED}).",
            settings_shown(self.size),
            self.experiment.metrics,
        )

    def charts(self) -> list[Chart]:
        """Learning curves of pre-training by objective, and of both fine-tunings."""
        name = self.experiment.name
        pretraining = read_training_log(self.run.log(f"{name} pre-train"))
        curves = loss_curves(pretraining)
        levels = {"unigram entropy": folder_unigram_entropy(self.documents).bits}
        fine = {}
        for system in (PRETRAINED, SCRATCH):
            log = read_training_log(self.run.log(f"{name} train {system}"))
            for curve, points in loss_curves(log, ["target_next"]).items():
                fine[curve.replace("target_next", system)] = points
        note = next_sentence_note(pretraining)
        return [
            Chart(f"{name}: pre-training, by objective", curves, levels, note=note),
            Chart(f"{name}: fine-tuning", fine, {}),
        ]


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
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "quickstart",
        help="folder for everything that is made (default: quickstart in the repository)",
    )
    parser.add_argument(
        "--long", action="store_true", help="train summarization, too, which takes a GPU or most of a day"
    )
    arguments = parser.parse_args()
    start, run = time.time(), Run(arguments.output.resolve())
    corpus = run.folder / "corpus"
    run.run(Step("corpus", [sys.executable, HERE / "corpus.py", "--output", corpus], corpus))
    experiments = [RESTORE, SUMMARIZE] if arguments.long or torch.cuda.is_available() else [RESTORE]
    tasks, charts = [], []
    for trial in (Trial(run, experiment) for experiment in experiments):
        trial.prepare()
        trial.train()
        tasks.append(trial.report(trial.score()))
        charts += trial.charts()
    report = run.folder / "report.html"
    facts = environment_facts() | {f"seconds: {name}": str(seconds) for name, seconds in run.seconds.items()}
    make_report(
        report, title="UNIFIED quickstart", introduction=INTRODUCTION, charts=charts, masks=mask_pictures(),
        tasks=tasks, commands=run.commands, environment=facts,
    )  # fmt: skip
    for task in tasks:
        print(f"\n== {task.title}")
        for sample in task.samples:
            print(f"\n  {'source':<22} {sample.source[:200]}\n  {'reference':<22} {sample.reference}")
            for system, text in sample.outputs.items():
                print(f"  {system:<22} {text}")
        print(f"\n{score_table(task)}")
    print(f"\n{time.time() - start:.0f} s in all; the report is {report}")


if __name__ == "__main__":
    main()
