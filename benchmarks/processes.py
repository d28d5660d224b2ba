"""Decoding a file by two processes beside one, a core for each: `fairseq-generate --distributed-world-size 2`.

    python benchmarks/processes.py --sentences 256

Every process has one thread, and its part by `--distributed-rank` (`fairseq-generate` ignores its `--num-shards`).
``ratio`` is the time that one process logs for decoding over that of the slower of two; ``of_commands`` counts their
start too, which does not become shorter. The sentences of the two together must be those of the file. That training by
two processes is training by one with `--update-freq 2` is a test (tests/integration/fairseq/test_training.py).
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from pathlib import Path

from generating import FILE_OPTIONS, decoding, file_options, finish, launch, words_of, write_pairs
from paired import OURS, options, report, run_program, set_up


def decode(words: list[object], processes: int) -> tuple[float, float, list[int]]:
    """Seconds of decoding in the slowest process, of all from start to end, and the numbers of the sentences."""
    began = time.perf_counter()
    running = [
        launch("generate", *words, "--distributed-world-size", processes, "--distributed-rank", i)
        for i in range(processes)
    ]
    printed = [finish(process) for process in running]
    whole = time.perf_counter() - began
    written = sorted(int(number) for text in printed for number in re.findall(r"^H-(\d+)\t", text, re.MULTILINE))
    return max(decoding(text)[1] for text in printed), whole, written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    file_options(parser, sentences=256, batch=8)
    parser.add_argument("--workers", type=int, default=2, help="processes to compare with one (default: %(default)s)")
    parser.add_argument("--bar", type=float, default=1.8, help="lowest acceptable speed-up (default: %(default)s)")
    options(parser, rounds=3)
    arguments = parser.parse_args()
    arguments.threads = 1
    set_up(arguments)
    with tempfile.TemporaryDirectory() as name:
        write_pairs(Path(name) / "data", arguments.sentences, arguments.max_length, arguments.written)
        words = words_of(OURS, Path(name), arguments)
        found = [(decode(words, 1), decode(words, arguments.workers)) for _ in range(arguments.rounds)]
    if any(written != list(range(arguments.sentences)) for pair in found for *_, written in pair):
        raise SystemExit("processes: the sentences that were written are not those of the file")
    report(
        f"decoding by {arguments.workers} processes / one",
        {one: getattr(arguments, one) for one in FILE_OPTIONS},
        [one[0] / several[0] for one, several in found],
        arguments.bar,
        of_commands=round(statistics.median(one[1] / several[1] for one, several in found), 3),
        rounds=arguments.rounds,
    )


if __name__ == "__main__":
    run_program(main)
