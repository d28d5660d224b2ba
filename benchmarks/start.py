"""Measures the time from the start of `fairseq-train` to its first update, by the size of the corpus.

    python benchmarks/start.py [--tokens 1000000 10000000 100000000]

Random tokens in running documents, in the folder's own binary form, UniLM's mixture of objectives in packed rows of
512, and a tiny model, whose update takes a fraction of a second. ``seconds`` runs from the launch of the command to the
line of its first update; ``megabytes`` is the most that the process and its loader had until the end of the run,
mapped files counted as far as they were read; ``processor_seconds``, of all cores to the end of the run, say what a
busy machine hides. Bars of the largest corpus: 10 seconds, 1,500 megabytes.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from paired import options, report, run_program, say, set_up
from resident import MEGABYTE, TreePeak

from unified.data.token_files import TokenFileWriter, token_dtype
from unified.data.vocabulary import Vocabulary
from unified.runtime.processes import module_command

PLUGINS = Path(__file__).resolve().parent.parent / "fairseq_plugins"
SYMBOLS = 30_000
#: Tokens of a paragraph, paragraphs of a document: about those of Wikipedia's articles.
PARAGRAPH, PARAGRAPHS = (20, 140), (10, 70)


def write_corpus(folder: Path, tokens: int) -> None:
    """A folder like those of `unified prepare`, with at least this many tokens."""
    vocabulary = Vocabulary([f"w{i}" for i in range(SYMBOLS)])
    vocabulary.save(folder / "dict.txt")
    for part, size in (("train", tokens), ("valid", 10_000)):
        write_documents(folder / part, size, vocabulary)


def write_documents(prefix: Path, tokens: int, vocabulary: Vocabulary) -> None:
    """Documents are written some hundred at a time."""
    rng, special = np.random.default_rng(0), vocabulary.special
    with TokenFileWriter(prefix, token_dtype(len(vocabulary))) as file:
        while file.tokens < tokens:
            per_document = rng.integers(*PARAGRAPHS, 200)
            sizes = rng.integers(*PARAGRAPH, per_document.sum()) + 1
            sizes = np.insert(sizes, np.cumsum(per_document), 1)  # </s> alone between documents
            flat = rng.integers(special.ordinary_start, special.ordinary_stop, sizes.sum())
            flat[np.cumsum(sizes) - 1] = special.separator
            file.add_many(flat, sizes)


def start_of(folder: Path) -> tuple[float, float, float]:
    """Seconds to the first update, the most megabytes until the end, and seconds of all cores until then."""
    used = _used()
    words = [
        *module_command("fairseq_cli.train", [folder, "--user-dir", PLUGINS, "--task", "unified_lm"]),
        *("--criterion", "unified_lm", "--arch", "unified_lm_tiny", "--tokens-per-sample", 512, "--batch-size", 4),
        *("--optimizer", "adam", "--lr", 1e-4, "--max-update", 1, "--log-interval", 1, "--log-format", "json"),
        *("--disable-validation", "--no-save", "--cpu", "--num-workers", 1, "--seed", 1),
    ]
    began, seen = time.perf_counter(), None
    with (
        subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
        TreePeak(process.pid) as tree,
    ):
        lines = []
        for line in process.stdout:
            lines.append(line)
            if seen is None and "| train_inner | {" in line:
                seen = time.perf_counter() - began
    if seen is None:
        raise SystemExit("".join(lines)[-3000:] + "\nstart: no update was made")
    return seen, tree.peak / MEGABYTE, _used() - used


def _used() -> float:
    """Seconds of processors that ended children have taken."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [1_000_000, 10_000_000, 100_000_000]
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=sizes, help="sizes of the corpora, in tokens (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=10,
        help="longest acceptable start with the largest corpus, in seconds (default: %(default)s)",
    )
    parser.add_argument(
        "--megabytes",
        type=float,
        default=1500,
        help="highest acceptable memory with the largest corpus, in megabytes (default: %(default)s)",
    )
    options(parser, rounds=2)
    arguments = parser.parse_args()
    set_up(arguments)
    with tempfile.TemporaryDirectory() as name:
        folders = {}
        for tokens in sorted(arguments.tokens):
            folders[tokens] = Path(name) / str(tokens)
            folders[tokens].mkdir()
            say(f"start: writing {tokens:,} tokens")
            write_corpus(folders[tokens], tokens)
        found: dict[int, list[tuple[float, float, float]]] = {tokens: [] for tokens in folders}
        for _ in range(arguments.rounds):
            for tokens, folder in folders.items():
                found[tokens].append(start_of(folder))
    least, most = min(found), max(found)
    wanted = {"arch": "unified_lm_tiny", "row": 512}
    for tokens, measured in found.items():
        seconds, megabytes, used = (list(values) for values in zip(*measured, strict=True))
        more = {"at": ("tokens of the corpus", tokens), "processor_seconds": round(statistics.median(used), 2)}
        bars = (arguments.seconds, arguments.megabytes) if tokens == most else (None, None)
        for unit, values, bar in (("seconds", seconds, bars[0]), ("megabytes", megabytes, bars[1])):
            report(f"start of training: {unit}", wanted, values, bar, at_most=True, unit=unit, **more)
    if least == most:
        return
    added = [large[0] - small[0] for small, large in zip(found[least], found[most], strict=True)]
    wanted |= {"tokens": most, "less_tokens": least}
    report("start of training: what the corpus adds", wanted, added, unit="seconds", rounds=arguments.rounds)


if __name__ == "__main__":
    run_program(main)
