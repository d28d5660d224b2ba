"""`unified prepare` on real text beside the encoding alone, by the same tokenizer in as many processes.

    python benchmarks/preparing.py [--megabytes 10] [--all] [--compressed] [--tokenizer unigram|wordpiece]

The text is that of ``pretrain_wiki`` in the folder UNIFIED_DATA. First, not timed, a tokenizer is trained on a part of
it. Ours is the whole command from its start: reading JSON lines, encoding, checking, and both files brought to disk.
The encoding alone is the library's own call on paragraphs that lie in memory, in processes that run already. The ratio
is our time over the encoding's; the command's start, about a second, weighs less the more text there is, so that the
bar is for ``--all`` (220 MB). With ``--compressed`` ours reads the files as they lie there, by xz, which the encoding
alone is spared. ``start`` is the command's time on a few lines.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import multiprocessing
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paired import OURS, options, ratios, report, run_program, say, seconds_of, set_up, take_turns
from resident import MEGABYTE, TreePeak

from unified.runtime.processes import module_command

ALONE = "encoding alone"
#: Paragraphs that a process of the encoding alone takes at once: about as many as a chunk of ours has.
TAKEN = 2000


def documents(paths: list[Path]) -> Iterator[str]:
    """The JSON lines of all files."""
    for path in paths:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            yield from lines


def write_text(paths: list[Path], megabytes: float, destination: Path) -> None:
    """The first documents that hold so much text."""
    written = 0.0
    with destination.open("w", encoding="utf-8") as file:
        for line in documents(paths):
            file.write(line)
            written += len(line.encode()) / MEGABYTE
            if written >= megabytes:
                return


def paragraphs(lines: Iterator[str]) -> list[list[str]]:
    """Paragraphs of all documents, in lists of :data:`TAKEN`."""
    texts = [part for line in lines for part in json.loads(line)["text"].split("\n") if part.strip()]
    return [texts[i : i + TAKEN] for i in range(0, len(texts), TAKEN)]


def command(*arguments: object) -> list[str]:
    return module_command("unified.cli", ["prepare", *arguments])


def run(words: list[str]) -> None:
    """One command, whose output is shown if it fails."""
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(words)}: {result.stderr[-2000:]}")


_chunks: list[list[str]] = []
_encode: Callable[[list[str]], object] | None = None


def encode_chunk(number: int) -> None:
    """Encodes a chunk in a worker by the library's own call."""
    _encode(_chunks[number])


def encoder(folder: Path) -> Callable[[list[str]], object]:
    """The library's call of the tokenizer that a prepared folder has."""
    if (folder / "tokenizer.model").exists():
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
        return lambda texts: processor.encode(texts, out_type=int, num_threads=1)
    from unified.tokenization.wordpiece import WordPieceTokenizer

    tokenizer = WordPieceTokenizer.load(folder / "vocab.txt")._tokenizer
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]


def peak_of(words: list[str]) -> int:
    """Bytes that a command and its processes have at most."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with TreePeak(process.pid) as tree:
            process.wait()
    return tree.peak


def main() -> None:
    global _chunks, _encode
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--megabytes", type=float, default=10, help="megabytes of text to prepare (default: %(default)s)"
    )
    parser.add_argument("--all", action="store_true", help="prepare the whole text")
    parser.add_argument("--compressed", action="store_true", help="prepare the whole text from its compressed file")
    parser.add_argument(
        "--tokenizer",
        choices=("unigram", "wordpiece"),
        default="unigram",
        help="type of tokenizer (default: %(default)s)",
    )
    parser.add_argument(
        "--vocabulary-size", type=int, default=8000, help="symbols of the tokenizer's vocabulary (default: %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes of either program (default: %(default)s)")
    options(parser, rounds=3)
    arguments = parser.parse_args()
    set_up(arguments)
    data = Path(os.environ.get("UNIFIED_DATA", ""), "pretrain_wiki")
    paths = sorted(data.glob("train-*.jsonl.xz"))
    if not paths:
        say(f"preparing: no text in {data}; set UNIFIED_DATA. Nothing was measured.")
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, part, trained = folder / "few.jsonl", folder / "part.jsonl", folder / "trained"
        write_text(paths, 0.01, few)
        whole = arguments.all or arguments.compressed
        write_text(paths, math.inf if whole else arguments.megabytes, part)
        size = ("--tokenizer", arguments.tokenizer, "--vocabulary-size", arguments.vocabulary_size)
        run(command(part, "--output", trained, *size, "--sample-megabytes", 2))
        shared = ("--tokenizer", trained, "--output", folder / "made", "--overwrite", "--workers")
        texts = paths if arguments.compressed else [part]
        ours = command(*texts, *shared, arguments.workers)
        start = command(few, *shared, arguments.workers)
        _chunks = paragraphs(iter(part.open(encoding="utf-8")))
        _encode = encoder(trained)
        with multiprocessing.get_context("fork").Pool(arguments.workers) as pool:
            numbers = range(len(_chunks))
            calls = {OURS: lambda: run(ours), ALONE: lambda: pool.map(encode_chunk, numbers, chunksize=1)}
            times = take_turns(calls, arguments.rounds)
        starting = seconds_of(lambda: run(start))
        peak = peak_of(ours)
    wanted = {name: getattr(arguments, name) for name in ("tokenizer", "vocabulary_size", "workers")}
    wanted["megabytes"] = "all, compressed" if arguments.compressed else "all" if arguments.all else arguments.megabytes
    found = ratios(times, OURS, ALONE)
    bar = 1.3 if arguments.all else None
    middle = {one: round(sorted(some)[len(some) // 2], 3) for one, some in times.items()}
    more = {"seconds": middle, "start": round(starting, 3), "rounds": arguments.rounds}
    report("prepare / encoding alone", wanted, found, bar, at_most=True, **more)
    beyond = [(own - starting) / alone for own, alone in zip(times[OURS], times[ALONE], strict=True)]
    report(
        "prepare, beyond its start / encoding alone",
        wanted,
        beyond,
        None if arguments.compressed else 1.3,
        at_most=True,
        **more,
    )
    report("prepare: memory", wanted, [peak / MEGABYTE], 1000, at_most=True, unit="megabytes")


if __name__ == "__main__":
    run_program(main)
