"""Made questions before real ones [UniLM, app. A], from a checkpoint to a table of scores.

    UNIFIED_DATA=... OMP_NUM_THREADS=1 python recipes/unilm/augment/run.py OUTPUT --init CHECKPOINT
    python recipes/unilm/augment/run.py OUTPUT --size debug                           # half a minute, no data

Trains the three models of `unified augment` on a part of SQuAD, makes questions of a corpus, and fine-tunes on them and
then on real ones; beside it, with as many updates, on real questions alone. All of SQuAD 2.0 that is fine-tuned starts
from the reading model, so that no run knows less than the filter does. Commands are printed before they run and each
log is kept; what is done is not repeated, and what was interrupted goes on. Steps that do not wait for each other run
at the same time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parents[1] / name) for name in ("quickstart", "common"))]

import augment_data  # noqa: E402
from augment_sizes import SIZES, Size  # noqa: E402
from steps import Run, Step  # noqa: E402

from unified.errors import UnifiedError  # noqa: E402
from unified.reports.result_tables import tables  # noqa: E402
from unified.reports.results import FILE_NAME, read_results  # noqa: E402
from unified.runtime.processes import module_command  # noqa: E402

UNIFIED = tuple(module_command("unified.cli"))
#: Option of ``unified augment`` for the model in each folder.
ROLES = {"answers": "--answer-model", "asks": "--question-model", "reads": "--reader-model"}


@dataclass(frozen=True)
class Work:
    """A folder in which everything is done.

    Attributes:
        run: of its commands.
        start: checkpoint that the three models begin with, as ``unified convert`` writes it.
        corpus: files of passages.
        seed: of everything.
    """

    run: Run
    size: Size
    start: Path
    corpus: tuple[Path, ...]
    seed: int

    def data(self, name: str) -> Path:
        return self.run.folder / "data" / name

    def finetuning(self, name: str, task: str, source: str, model: Path, options: tuple, updates: int = 0) -> Step:
        """Makes a folder of this name with a model; of so many updates where they are given."""
        output = self.run.folder / name
        words = [*UNIFIED, "finetune", task, "--data", self.data(source), "--init", model, "--output", output]
        words += [*options, "--seed", self.seed, "--run", name]
        exact = (
            f"--max-update {updates} --total-num-update {updates} --warmup-updates {updates // 10}" if updates else ""
        )
        return Step(name, [*words, "--fairseq", f"{self.size.fairseq} {exact}"], output / FILE_NAME)

    def augment(self, models: dict[str, Path], model: Path) -> Path:
        """``unified augment`` with both stages of fine-tuning; the folder of the second."""
        output = self.run.folder / "augmented"
        options = shlex.join(map(str, [*self.size.task, "--fairseq", self.size.fairseq]))
        words = [*UNIFIED, "augment", *self.corpus, "--output", output, *self.size.augment, "--seed", self.seed]
        words += [word for name, path in models.items() for word in (ROLES[name], path)]
        words += ["--data", self.data("few"), "--init", model, "--finetune"]
        words += ["--first-stage", options, "--second-stage", f"--epochs 1 {options}"]
        self.run.run(Step("augment", words, output / "second" / FILE_NAME))
        return output

    def baselines(self, augmented: Path, model: Path) -> list[Step]:
        """Fine-tunings on real questions alone, with as many updates as both stages have."""
        updates = sum(planned_updates(augmented / name) for name in ("first", "second"))
        found = []
        for name in self.size.baselines:
            questions = {"few": self.size.few, "many": self.size.many}[name]
            epochs = math.ceil(updates / (questions // batch_size(self.size)))
            options = ("--epochs", epochs, *self.size.task)
            found.append(self.finetuning(f"baseline-{name}", "squad2.0", name, model, options, updates))
        return found


def batch_size(size: Size) -> int:
    return int(size.task[size.task.index("--batch-size") + 1])


def planned_updates(folder: Path) -> int:
    """Number of updates of a run of ``unified finetune``."""
    words = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))["command"]
    return int(words[words.index("--max-update") + 1])


def prepare(size: Size, folder: Path, real: Path | None, model: Path | None) -> tuple[Path, tuple[Path, ...]]:
    """Makes the data, unless they are there; checkpoint to start from and files of the corpus."""
    if size.corpus:
        if real is None or model is None:
            raise UnifiedError("this size needs UNIFIED_DATA, the folder of real data sets, and --init CHECKPOINT")
        corpus = tuple(real / path for path in size.corpus)
    else:
        import augment_debug

        corpus, model = (folder / "corpus.jsonl",), folder / "start"
        if not model.exists():
            augment_debug.make_model(model, size.start_shape)
            augment_debug.write_corpus(corpus[0])
    if not (folder / "data").exists():
        if size.corpus:
            articles = augment_data.real_articles(real)
        else:
            articles = tuple(
                augment_debug.articles(name, getattr(augment_debug, name.upper())) for name in ("train", "score")
            )
        augment_data.write(folder / "data", *articles, size)
    return model, corpus


def made(folder: Path, size: Size, real: Path | None, arguments: argparse.Namespace) -> str:
    """Everything in ``folder``; returns the tables."""
    start, corpus = prepare(size, folder, real, arguments.init and arguments.init.resolve())
    work = Work(Run(folder), size, start, corpus, arguments.seed)
    models = {name: folder / name for name in ROLES}
    reading = work.finetuning("reads", "squad1.1", "answerable", start, size.reading)
    work.run.run(reading, work.finetuning("asks", "squad_qg", "pairs", start, size.asking))
    work.run.run(work.finetuning("answers", "squad-answers", "spans", models["reads"], size.spans_training))
    augmented = work.augment(models, models["reads"])
    baselines = work.baselines(augmented, models["reads"])
    work.run.run(*baselines)
    text = tables(read_results([augmented / "first", augmented / "second", *(step.output for step in baselines)]))
    (folder / "tables.md").write_text(text + "\n", encoding="utf-8")
    return text


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="folder for everything that is made")
    parser.add_argument(
        "--size", choices=SIZES, default="small", help="budget: models, data and updates (default: %(default)s)"
    )
    parser.add_argument(
        "--init", type=Path, help="folder of `unified convert` to start from (default with --size debug: a tiny model)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of everything (default: %(default)s)")
    arguments = parser.parse_args(words)
    folder, size, real = arguments.output.resolve(), SIZES[arguments.size], os.environ.get("UNIFIED_DATA")
    model = arguments.init and str(arguments.init)
    with Run(folder).claimed({"--size": arguments.size, "--seed": arguments.seed, "--init": model}):
        text = made(folder, size, real and Path(real), arguments)
    print(f"\n{text}")


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"augment: error: {error}")
