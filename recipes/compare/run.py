"""Every objective at the same budget, side by side: own losses, cost, and a common yardstick.

    python recipes/compare/run.py OUTPUT [--size tiny|small] [--only NAMES]

Each objective trains the same Transformer alone for the same number of updates of the same number of tokens. Then every
model goes on for the same few updates with one task, the plain cloze on the same masks, beside models that had no
pre-training. All is done by plain commands, which are printed; a second call repeats nothing that is finished.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "recipes" / "quickstart"))  # steps and logs

from panels import picture  # noqa: E402
from plan import CLOZE, MODELS, SIZES, Comparison, Size, comparisons  # noqa: E402
from rows import row_facts  # noqa: E402
from steps import Run, Step  # noqa: E402
from tables import tables  # noqa: E402

from unified.corpus.readers import DocumentCorpus  # noqa: E402
from unified.errors import UnifiedError  # noqa: E402
from unified.reports.training_log import read_training_log, seconds_per_update  # noqa: E402
from unified.runtime.processes import module_command  # noqa: E402
from unified.tasks.metrics import folder_unigram_entropy  # noqa: E402

#: Validations of a pre-training: the points of a learning curve.
POINTS = 10


@dataclass(frozen=True)
class Work:
    """A folder in which everything is done, with what all its runs have in common."""

    run: Run
    size: Size
    seed: int
    inputs: tuple[str, ...]
    valid: tuple[str, ...]
    spacy: str | None

    @property
    def data(self) -> Path:
        return self.run.folder / "data"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that all runs share, by the names of options and of :class:`Size`."""
        own = {"--seed": self.seed, "--input": self.inputs, "--valid": self.valid, "--spacy": self.spacy}
        return {**asdict(self.size), **own}

    def prepare(self) -> None:
        """Prepares some of the text, once, sentence by sentence as BERT's instances want it, with word starts."""
        splits = (
            ("train", self.inputs, self.size.megacharacters),
            ("valid", self.valid, self.size.valid_megacharacters),
        )
        texts = {split: self.run.folder / f"{split}.jsonl" for split, _, _ in splits}
        for split, paths, millions in splits:
            if not texts[split].exists():
                write_atomically(texts[split], first_documents(paths, round(millions * 1e6)))
        annotate = ["--annotate", "noun_phrases", "--spacy", self.spacy] if self.spacy else []
        self.run.run(Step("prepare", [
            *module_command("unified.cli"), "prepare", texts["train"], "--valid", texts["valid"], "--output", self.data,
            "--tokenizer", "unigram", "--vocabulary-size", self.size.vocabulary, "--sample-megabytes", 3,
            "--clean", "sentences", *annotate,
        ], self.data))  # fmt: skip

    def training(self, name: str, updates: int, validations: int, more: list) -> Step:
        """A call of fairseq-train; only ``more`` and the number of updates differ from run to run."""
        size, save = self.size, self.run.folder / "models" / name.replace(" ", "-")
        every = max(1, updates // validations)
        return Step(name, [
            *module_command("fairseq_cli.train"), self.data,
            "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm",
            "--arch", *size.arch, "--criterion", "unified_lm", "--tokens-per-sample", size.row,
            "--max-positions", size.row, "--batch-size", size.rows, "--batch-size-valid", 4 * size.rows,
            "--optimizer", "unified_adam", "--adam-betas", "(0.9, 0.98)", "--clip-norm", 1.0, "--weight-decay", 0.01,
            "--lr", size.rate, "--lr-scheduler", "polynomial_decay", "--warmup-updates", max(1, updates // 10),
            "--total-num-update", updates, "--max-update", updates, "--save-dir", save, "--no-epoch-checkpoints",
            "--validate-interval-updates", every, "--validate-interval", updates, "--save-interval-updates", every,
            "--keep-interval-updates", 1, "--save-interval", updates, "--log-format", "json",
            "--log-interval", max(1, updates // 40), "--num-workers", 0, "--seed", self.seed, *size.machine, *more,
        ], save / "checkpoint_last.pt")  # fmt: skip

    def compare_all(self, comparisons: Sequence[Comparison]) -> list[dict]:
        """The facts of each, in order."""
        results = []
        for number, comparison in enumerate(comparisons, 1):
            print(f"\n==== {number} of {len(comparisons)}: {comparison.name}", flush=True)
            results.append(self.compare(comparison))
        return results

    def compare(self, comparison: Comparison) -> dict:
        """Pre-train unless from scratch, go on with the yardstick, and gather what the logs say; once."""
        path = self.run.folder / "results" / f"{comparison.name.replace(' ', '-')}.json"
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
        result = {"name": comparison.name, "objectives": comparison.objectives, "model": comparison.model}
        start = []
        if comparison.objectives:
            pretrain = self.training(comparison.name, self.size.updates, POINTS, comparison.pretraining(self.size))
            self.run.run(pretrain)
            log = read_training_log(self.run.log(pretrain.name))
            streams = self.size.rows if comparison.memory else 0
            facts = row_facts(self.data, comparison.objectives, self.size.row, self.seed, streams)
            result |= {"losses": own_losses(log), "seconds": seconds_per_update(log), **asdict(facts)}
            start = ["--finetune-from-model", pretrain.output]
        cloze = [*MODELS[comparison.model], "--objectives", CLOZE, *start]
        yardstick = self.training(f"{comparison.name} then cloze", self.size.cloze_updates, 3, cloze)
        self.run.run(yardstick)
        log = read_training_log(self.run.log(yardstick.name))
        for key, logged in (("cloze", "valid_bidirectional_loss"), ("accuracy", "valid_bidirectional_accuracy")):
            result[key] = log[logged]
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, json.dumps(result, indent=2) + "\n")
        return json.loads(path.read_text(encoding="utf-8"))


def own_losses(log: dict) -> dict[str, dict[str, list]]:
    """Loss -> its training and validation curves, (update, bits) pairs, from a log as the quickstart reads it."""
    names = [key.removesuffix("_loss") for key in log if f"valid_{key}" in log and key.endswith("_loss")]
    return {name: {"train": log[f"{name}_loss"], "valid": log[f"valid_{name}_loss"]} for name in names}


def first_documents(paths: tuple[str, ...], characters: int) -> str:
    """JSON lines of the first documents that have so many characters together, in the order of the files."""
    lines, taken = [], 0
    for chunk in DocumentCorpus(paths).chunks(whole_documents=True):
        for _, paragraphs in chunk.documents():
            if taken >= characters:
                return "".join(lines)
            lines.append(json.dumps({"text": "\n".join(paragraphs)}, ensure_ascii=False) + "\n")
            taken += sum(map(len, paragraphs))
    return "".join(lines)


def write_atomically(path: Path, text: str) -> None:
    """The file is there in full or not at all."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def wikipedia() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files of text to train on and to validate on, in the folder of real data."""
    folder = os.environ.get("UNIFIED_DATA")
    if not folder:
        raise UnifiedError("no text: pass --input and --valid, or set UNIFIED_DATA to the folder of real data sets")
    files = sorted(map(str, Path(folder, "pretrain_wiki").glob("train-*.jsonl.xz")))
    return tuple(files), (str(Path(folder, "pretrain_wiki", "valid.jsonl.xz")),)


def chosen(names: str | None, known: list[Comparison]) -> list[Comparison]:
    """The comparisons that ``--only`` lists, separated by semicolons."""
    if names is None:
        return known
    wanted = [name.strip() for name in names.split(";")]
    unknown = set(wanted) - {comparison.name for comparison in known}
    if unknown:
        listed = "; ".join(comparison.name for comparison in known)
        raise UnifiedError(f"--only names {', '.join(sorted(unknown))}; known: {listed}")
    return [comparison for comparison in known if comparison.name in wanted]


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="folder for everything that is made")
    parser.add_argument(
        "--size", choices=SIZES, default="tiny", help="budget of all runs (default: %(default)s, for one core)"
    )
    parser.add_argument("--input", nargs="+", help="files of text to train on (default: Wikipedia in UNIFIED_DATA)")
    parser.add_argument("--valid", nargs="+", help="files of text to validate on; required with --input")
    parser.add_argument(
        "--spacy", help="spaCy pipeline that finds noun phrases for ANNA (default: ANNA hides words only)"
    )
    parser.add_argument("--only", help="names of runs, separated by semicolons (default: all)")
    parser.add_argument("--updates", type=int, help="updates of pre-training (default: those of --size)")
    parser.add_argument(
        "--cloze-updates",
        type=int,
        help="updates of the cloze model that all are compared by (default: those of --size)",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all runs (default: %(default)s)")
    arguments = parser.parse_args(words)
    if bool(arguments.input) != bool(arguments.valid):
        parser.error("--input and --valid go together")
    return arguments


def main(words: list[str] | None = None) -> None:
    arguments = parse(words)
    given = arguments.input and (tuple(arguments.input), tuple(arguments.valid))
    inputs, valid = given or wikipedia()
    changes = {"updates": arguments.updates, "cloze_updates": arguments.cloze_updates}
    size = replace(SIZES[arguments.size], **{key: value for key, value in changes.items() if value is not None})
    work = Work(Run(arguments.output.resolve()), size, arguments.seed, inputs, valid, arguments.spacy)
    listed = chosen(arguments.only, comparisons(annotated=bool(arguments.spacy)))
    with work.run.claimed(work.settings):
        work.prepare()
        results = work.compare_all(listed)
        unigram = folder_unigram_entropy(work.data, "valid").bits
        write_atomically(work.run.folder / "tables.md", tables(results))
        write_atomically(work.run.folder / "curves.svg", picture(results, unigram))
    print(f"\n{tables(results)}\nunigram entropy of the validation text: {unigram:.2f} bits", flush=True)
    print(f"wrote {work.run.folder / 'tables.md'} and curves.svg")


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"compare: error: {error}")
