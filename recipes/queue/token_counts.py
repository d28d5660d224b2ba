"""Scores minimal pairs by how often their tokens are, whatever their order: the floor of every model that reads order.

    python recipes/queue/token_counts.py PREPARED PAIRS

PREPARED is the folder of ``unified prepare`` that models are trained on, PAIRS one of minimal pairs. Tokens are the
pieces that the models read (``pieces``) and, since these tell capitals apart, words and marks in lower case
(``words``). Of each, a folder gets ``examples.jsonl`` with the scores of both sentences of every pair, and
``scores.json`` with the accuracy and its interval of 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.evaluation.minimal_pairs import PairScores
from unified.evaluation.pair_files import Paradigm, read_paradigms
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tokenization import load_tokenizer

_WORD = re.compile(r"\w+|[^\w\s]")


def words_of(text: str) -> list[str]:
    """Words and marks of a text, in lower case."""
    return _WORD.findall(text.lower())


def scored(
    paradigms: Sequence[Paradigm], tokens_of: Callable[[str], Iterable[str]], counts: Counter[str]
) -> PairScores:
    """Both sentences of pairs by the sum of the logarithms of their tokens' shares, with one added to each count."""
    total = sum(counts.values()) + len(counts)

    def score(sentence: str) -> float:
        return math.fsum(math.log((counts[token] + 1) / total) for token in tokens_of(sentence))

    good, bad = ([score(one) for p in paradigms for one in side(p)] for side in (lambda p: p.good, lambda p: p.bad))
    return PairScores(paradigms, np.array(good), np.array(bad))


def write(folder: Path, scores: PairScores) -> None:
    """Writes the scores of the pairs, and their accuracy."""
    folder.mkdir()
    numbers = zip(scores.good.tolist(), scores.bad.tolist(), strict=True)
    rows = [json.dumps({"good": good, "bad": bad}) + "\n" for good, bad in numbers]
    (folder / "examples.jsonl").write_text("".join(rows), encoding="utf-8")
    found = {"accuracy": scores.measures()["accuracy"], "accuracy.interval": bootstrap_intervals(scores)["accuracy"]}
    (folder / "scores.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared", type=Path, metavar="PREPARED", help="folder of the training text")
    parser.add_argument("pairs", type=Path, metavar="PAIRS", help="folder of minimal pairs")
    arguments = parser.parse_args()
    paradigms = read_paradigms(arguments.pairs).paradigms
    symbols = np.array(Vocabulary.load(arguments.prepared / "dict.txt").symbols)
    tokenizer, documents = load_tokenizer(arguments.prepared), TokenFile(arguments.prepared / "train")
    pieces: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for number in range(len(documents)):
        own = symbols[documents[number]].tolist()
        pieces.update(own)
        words.update(words_of(tokenizer.decode(own)))
    write(Path("pieces"), scored(paradigms, tokenizer.encode, pieces))
    write(Path("words"), scored(paradigms, words_of, words))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UnifiedError as error:
        sys.exit(f"token counts: error: {error}")
