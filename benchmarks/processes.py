"""Decoding a file by two processes beside one, a core for each: `fairseq-generate --distributed-world-size 2`.

    python benchmarks/processes.py --sentences 256

Every process has one thread, and its part by `--distributed-rank` (`fairseq-generate` ignores its `--num-shards`).
``ratio`` is the time that one process logs for decoding over that of the slower of two; ``of_commands`` counts their
start too, which does not become shorter. The sentences of the two together must be those of the file. That training by
two processes is training by one with `--update-freq 2` is a test (tests/test_training.py).
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from pathlib import Path

from generating import checkpoint, decoding, finish, launch, task_of, write_pairs
from models import SIZES
from paired import OURS, options, report, set_up


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
    parser.add_argument("--size", choices=SIZES, default="small", help="of the model (%(default)s)")
    parser.add_argument("--sentences", type=int, default=256, help="of the file (%(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="sentences together (%(default)s)")
    parser.add_argument("--longest", type=int, default=440, help="tokens of a source (%(default)s)")
    parser.add_argument("--written", type=int, default=32, help="tokens to write (%(default)s)")
    parser.add_argument("--beam", type=int, default=5, help="hypotheses kept (%(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="beside one (%(default)s)")
    parser.add_argument("--bar", type=float, default=1.8, help="least ratio that is wanted (%(default)s)")
    options(parser, rounds=3)
    arguments = parser.parse_args()
    arguments.threads = 1
    set_up(arguments)
    size = SIZES[arguments.size]
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        data.mkdir()
        write_pairs(data, arguments.sentences, arguments.longest, arguments.written)
        path = checkpoint(OURS, size, data, Path(name) / "model")
        length = ("--min-len", arguments.written, "--max-len-a", 0, "--max-len-b", arguments.written)
        shared = ("--path", path, "--batch-size", arguments.batch, "--beam", arguments.beam, "--cpu", *length)
        words = [data, *task_of(OURS, size)[0], *shared, "--num-workers", 0]
        found = [(decode(words, 1), decode(words, arguments.processes)) for _ in range(arguments.rounds)]
    if any(written != list(range(arguments.sentences)) for pair in found for *_, written in pair):
        raise SystemExit("processes: the sentences that were written are not those of the file")
    report(
        f"decoding by {arguments.processes} processes / one",
        {one: getattr(arguments, one) for one in ("size", "sentences", "batch", "longest", "written", "beam")},
        [one[0] / several[0] for one, several in found],
        arguments.bar,
        of_commands=round(statistics.median(one[1] / several[1] for one, several in found), 3),
        rounds=arguments.rounds,
    )


if __name__ == "__main__":
    main()
