"""`fairseq-generate` from start to end on a file of mixed lengths: our checkpoint beside fairseq's own Transformer.

    python benchmarks/generating.py --beam 5 --bar 1.5
    python benchmarks/generating.py --beam 1 --bar 1.5

Both read the same folder of pairs, whose sources have log-normal lengths, and write exactly ``--written`` tokens for
each, since the end symbol is forbidden before (`--min-len`) and forced then (`--max-len-b`). The weights are random: a
run of `fairseq-train` with one update at rate 0 made each checkpoint. Ours asks by a [MASK] at every step. ``ratio`` is
of whole commands, imports and loading included; ``of_generation`` of the time that the commands themselves log for
decoding.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from models import SIZES, VOCABULARY, Size
from paired import OURS, options, ratios, report, run_program, say, set_up, take_turns

from unified.data.token_files import TokenFileWriter, token_dtype
from unified.data.vocabulary import Vocabulary

PLUGINS = Path(__file__).resolve().parent.parent / "fairseq_plugins"
THEIRS = "fairseq"
MEAN, DEVIATION = 200, 0.5
#: fairseq's checkpoints hold a namespace, which torch refuses to load unless told otherwise; our plug-in tells it.
_COMMAND = """import argparse, torch
torch.serialization.add_safe_globals([argparse.Namespace])
from fairseq_cli.{module} import cli_main
cli_main()"""
_LOGGED = re.compile(r"Translated ([\d,]+) sentences \(([\d,]+) tokens\) in ([\d.]+)s")


def write_pairs(folder: Path, sentences: int, longest: int, written: int) -> None:
    """A folder with as many pairs in each part as are to be translated; for training eight are enough."""
    folder.mkdir(exist_ok=True)
    vocabulary = Vocabulary([f"w{i}" for i in range(VOCABULARY - 105)])
    for side in ("src", "tgt"):
        vocabulary.save(folder / f"dict.{side}.txt")
    rng = np.random.default_rng(0)
    for part, count in (("train", 8), ("valid", 8), ("test", sentences)):
        drawn = rng.lognormal(np.log(MEAN) - DEVIATION**2 / 2, DEVIATION, count).astype(int).clip(8, longest)
        for side, sizes in (("src", drawn), ("tgt", np.full(count, written))):
            with TokenFileWriter(folder / f"{part}.src-tgt.{side}", token_dtype(len(vocabulary))) as file:
                for size in sizes:
                    ordinary = rng.integers(vocabulary.special.ordinary_start, vocabulary.special.ordinary_stop, size)
                    file.add(np.append(ordinary, vocabulary.special.separator))


def task_of(library: str, size: Size) -> tuple[list[object], list[object]]:
    """Options that name the task, and those that name the model."""
    if library == OURS:
        shape = ["--arch", "unified_lm_small", "--layers", size.layers, "--width", size.width, "--heads", size.heads]
        return ["--user-dir", PLUGINS, "--task", "unified_lm"], [*shape, "--criterion", "unified_lm"]
    shape = ["--arch", "transformer", "--share-all-embeddings", "--max-source-positions", 1024]
    for half in ("encoder", "decoder"):
        shape += [f"--{half}-layers", size.layers, f"--{half}-attention-heads", size.heads]
        shape += [f"--{half}-embed-dim", size.width, f"--{half}-ffn-embed-dim", 4 * size.width]
    return ["--task", "translation"], [*shape, "--criterion", "cross_entropy"]


def launch(module: str, *words: object) -> subprocess.Popen:
    """Start one of fairseq's commands."""
    line = [sys.executable, "-P", "-c", _COMMAND.format(module=module), *map(str, words)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> str:
    """Waits for a command, and returns what it printed."""
    printed, notes = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(process.args)}\n{printed[-2000:]}\n{notes[-2000:]}")
    return printed + notes


def decoding(printed: str) -> tuple[int, float]:
    """Tokens that `fairseq-generate` wrote and seconds that it took for them, by its own line."""
    found = _LOGGED.search(printed)
    return int(found[2].replace(",", "")), float(found[3])


def checkpoint(library: str, size: Size, data: Path, save: Path) -> Path:
    """Random weights in a file like those of training."""
    task, model = task_of(library, size)
    saving = ("--save-dir", save, "--no-epoch-checkpoints", "--max-update", 1, "--disable-validation", "--cpu")
    optimizer = ("--optimizer", "sgd", "--lr", 0, "--batch-size", 8, "--seed", 1, "--num-workers", 0)
    finish(launch("train", data, *task, *model, *saving, *optimizer))
    return save / "checkpoint_last.pt"


@dataclass
class Generation:
    """One command that writes the whole file, with its log.

    Attributes:
        seconds: that decoding took, run by run.
        tokens: that were written, run by run.
    """

    words: list[object]
    seconds: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def __call__(self) -> None:
        tokens, seconds = decoding(finish(launch("generate", *self.words)))
        self.tokens.append(tokens)
        self.seconds.append(seconds)


#: Options of the file and of how it is translated.
FILE_OPTIONS = ("size", "sentences", "batch", "max_length", "written", "beam")


def file_options(parser: argparse.ArgumentParser, sentences: int, batch: int) -> None:
    """Adds :data:`FILE_OPTIONS`."""
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the models (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=sentences, help="sentences of the file (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=batch, help="sentences generated together (default: %(default)s)")
    parser.add_argument("--max-length", type=int, default=440, help="tokens of a source (default: %(default)s)")
    parser.add_argument(
        "--written", type=int, default=32, help="tokens to write for each source (default: %(default)s)"
    )
    parser.add_argument("--beam", type=int, default=5, help="width of the beam (default: %(default)s)")


def words_of(library: str, folder: Path, arguments: argparse.Namespace) -> list[object]:
    """Command line of `fairseq-generate` that writes the file in ``folder``; makes the checkpoint."""
    size, data = SIZES[arguments.size], folder / "data"
    path = checkpoint(library, size, data, folder / library)
    say(f"made the checkpoint of {library}")
    length = ("--min-len", arguments.written, "--max-len-a", 0, "--max-len-b", arguments.written)
    shared = ("--path", path, "--batch-size", arguments.batch, "--beam", arguments.beam, "--cpu", *length)
    return [data, *task_of(library, size)[0], *shared, "--num-workers", 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    file_options(parser, sentences=128, batch=16)
    parser.add_argument("--bar", type=float, help="lowest acceptable speed-up over fairseq (default: no bar)")
    options(parser, rounds=3)
    arguments = parser.parse_args()
    set_up(arguments)
    with tempfile.TemporaryDirectory() as name:
        write_pairs(Path(name) / "data", arguments.sentences, arguments.max_length, arguments.written)
        calls = {library: Generation(words_of(library, Path(name), arguments)) for library in (OURS, THEIRS)}
        times = take_turns(calls, arguments.rounds, warm=False)
    require_equal_work(calls)
    own = {library: call.seconds for library, call in calls.items()}
    report(
        f"generating, beam {arguments.beam} / {THEIRS}",
        {one: getattr(arguments, one) for one in FILE_OPTIONS},
        ratios(times, THEIRS),
        arguments.bar,
        of_generation=round(statistics.median(ratios(own, THEIRS)), 3),
        seconds={library: round(statistics.median(some), 3) for library, some in times.items()},
        seconds_of_generation={library: round(statistics.median(some), 3) for library, some in own.items()},
        rounds=arguments.rounds,
    )


def require_equal_work(calls: dict[str, Generation]) -> None:
    """Refuses runs that did not write equally many tokens."""
    if len({count for call in calls.values() for count in call.tokens}) > 1:
        raise SystemExit(
            f"generating: unequal work, tokens { ({library: call.tokens for library, call in calls.items()}) }"
        )


if __name__ == "__main__":
    run_program(main)
