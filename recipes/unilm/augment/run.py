"""Questions that improve answers (UniLM, appendix A), from a checkpoint to a table of scores.

    UNIFIED_DATA=... OMP_NUM_THREADS=1 python recipes/unilm/augment/run.py OUTPUT --init CHECKPOINT
    python recipes/unilm/augment/run.py OUTPUT --size debug                           # half a minute, no data

Trains the three models of `unified augment` on a part of SQuAD, makes questions of a corpus, and fine-tunes on them and
then on real ones; beside it, with as many updates, on real questions alone. Commands are printed before they run and
each log is kept; what is done is not repeated, and what was interrupted goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "quickstart")]  # steps

import augment_data as data  # noqa: E402
from augment_sizes import SIZES, Size  # noqa: E402
from steps import ROOT, Run, Step  # noqa: E402

from unified.errors import UnifiedError  # noqa: E402
from unified.results import FILE_NAME, read_results, tables  # noqa: E402

UNIFIED = (sys.executable, "-m", "unified.cli")
TRAIN = (sys.executable, "-m", "fairseq_cli.train")


@dataclass(frozen=True)
class Work:
    """A folder in which everything is done.

    Attributes:
        start: checkpoint that all begin with, as ``unified convert`` writes it.
        corpus: files of passages.
        seed: of everything.
    """

    run: Run
    size: Size
    start: Path
    corpus: tuple[Path, ...]
    seed: int

    @property
    def folder(self) -> Path:
        return self.run.folder

    def finetune(self, name: str, task: str, source: str, init: Path, options: tuple) -> Path:
        """The folder of a model."""
        output = self.folder / name
        words = [
            *UNIFIED,
            "finetune",
            task,
            "--data",
            self.folder / "data" / source,
            "--init",
            init,
            "--output",
            output,
        ]
        words += [*options, "--seed", self.seed, "--run", name]
        self.run.run(Step(name, words, output / FILE_NAME))
        return output

    def train_asking(self) -> Path:
        """The model that asks for an answer, trained on pairs of ``squad_qg``."""
        folder, answerable = self.folder / "questions", self.folder / "data" / "answerable"
        prepare = ["bash", HERE.parent / "squad_qg" / "prepare.sh", folder, self.start.parent, "--split", "paper"]
        prepare += ["--max-source", self.option("--max-source"), "--local"]
        prepare += [answerable / "train-v1.1.json", answerable / "dev-v1.1.json"]
        self.run.run(Step("question pairs", prepare, folder / "data"))
        output = self.folder / "asks"
        words = [*TRAIN, folder / "data", "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm"]
        words += ["--criterion", "unified_lm", "--arch", "unified_lm", *self.size.shape]
        words += ["--objectives", "target_cloze(mask_probability=0.7)", "--label-smoothing", 0.1]
        words += ["--finetune-from-model", self.start, "--optimizer", "adam", "--adam-betas", "(0.9, 0.999)"]
        words += ["--adam-eps", 1e-6, "--weight-decay", 0.01, "--clip-norm", 1.0, "--lr-scheduler", "inverse_sqrt"]
        words += ["--warmup-updates", 30, "--no-epoch-checkpoints", "--disable-validation", "--log-format", "json"]
        words += ["--log-interval", 20, "--num-workers", 0, "--seed", self.seed, "--save-dir", output, "--cpu"]
        self.run.run(Step("asks", [*words, *self.size.pairs], output / "checkpoint_last.pt"))
        return output

    def augment(self, models: dict[str, Path], init: Path) -> Path:
        """``unified augment`` and both stages of fine-tuning; the folder of the second."""
        output, task = self.folder / "augmented", " ".join(f"'{word}'" for word in self.size.task)
        words = [*UNIFIED, "augment", *self.corpus, "--output", output, *self.size.augment, "--seed", self.seed]
        words += [word for role, model in models.items() for word in (f"--{role}", model)]
        words += ["--squad", self.folder / "data" / "few", "--init", init, "--finetune", f"{task} --seed {self.seed}"]
        self.run.run(Step("augment", words, output / "second" / FILE_NAME))
        return output

    def option(self, name: str) -> object:
        words = self.size.augment
        return words[words.index(name) + 1]


def epochs_for(updates: int, questions: int, batch: int) -> int:
    """Epochs that make at least so many updates."""
    return math.ceil(updates / math.ceil(questions / batch))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="folder for everything that is made")
    parser.add_argument("--size", choices=SIZES, default="small", help="how much is done (%(default)s)")
    parser.add_argument("--init", type=Path, help="checkpoint to start from; the debug size makes its own")
    parser.add_argument("--seed", type=int, default=1, help="of everything (%(default)s)")
    arguments = parser.parse_args(words)
    print(arguments, json.dumps(str(os.environ.get("UNIFIED_DATA"))))


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"augment: error: {error}")
