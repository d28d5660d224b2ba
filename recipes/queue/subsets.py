"""Writes parts of data sets that a small model can be trained on and scored by in minutes.

    UNIFIED_DATA=... python recipes/queue/subsets.py blimp FOLDER    # the first 100 pairs of each of BLiMP's paradigms
    UNIFIED_DATA=... python recipes/queue/subsets.py paragraphs FOLDER  # a paragraph of each validation document
    UNIFIED_DATA=... python recipes/queue/subsets.py sst2 FOLDER     # SST-2 with 10,000 training examples
    UNIFIED_DATA=... python recipes/queue/subsets.py squad FOLDER    # SQuAD 1.1 with passages of at most 100 words
    UNIFIED_DATA=... python recipes/queue/subsets.py questions FOLDER  # SQuAD 1.1, all that there is of it
    UNIFIED_DATA=... python recipes/queue/subsets.py more-questions FOLDER  # questions of QAMR and SQuAD, as pairs

Nothing is drawn but the 1,000 questions of SQuAD that score, always the same.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

RECIPES = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(RECIPES / "common"), str(RECIPES / "peers")]

from peer_data import first_sentences, squad1_articles  # noqa: E402
from squad_splits import drawn, kept, write_splits  # noqa: E402

from unified.errors import UnifiedError  # noqa: E402
from unified.files.destination import new_folder  # noqa: E402

PAIRS, MOST_WORDS, QUESTIONS = 100, 100, 1000
#: Words of a paragraph for perplexity, at least and at most.
WORDS = (20, 60)
#: Brackets in the tokens of the Penn Treebank, which QAMR's sentences consist of, and in plain text.
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}


def blimp(folder: Path, real: Path) -> None:
    """The first pairs of every paradigm."""
    for path in sorted((real / "blimp").glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            (folder / path.stem).write_text("".join(islice(lines, PAIRS)), encoding="utf-8")


def paragraphs(folder: Path, real: Path) -> None:
    """The first paragraph of a fitting length of each document of Wikipedia that models are validated on."""
    with lzma.open(real / "pretrain_wiki" / "valid.jsonl.xz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line)["text"].split("\n") for line in lines]
    fitting = ([one for one in document if WORDS[0] <= len(one.split()) <= WORDS[1]] for document in documents)
    texts = [json.dumps({"text": found[0]}, ensure_ascii=False) + "\n" for found in fitting if found]
    (folder / "valid.jsonl").write_text("".join(texts), encoding="utf-8")


def sst2(folder: Path, real: Path) -> None:
    """SST-2 with the first examples of its training set, and its development set."""
    first_sentences(folder, real)


def squad(folder: Path, real: Path) -> None:
    """SQuAD 1.1's questions about short passages: all of its training set that there is, and some that score."""
    train, dev = map(_short, squad1_articles(real))
    write_splits(folder, "v1.1", train, drawn(dev, QUESTIONS))


def questions(folder: Path, real: Path) -> None:
    """SQuAD 1.1: all of its training set that there is, and its development set."""
    write_splits(folder, "v1.1", *squad1_articles(real))


def more_questions(folder: Path, real: Path) -> None:
    """Pairs whose sources are a sentence and an answer (QAMR), or a sentence alone (of SQuAD's training set, ReQA)."""
    _write_pairs(folder / "train.jsonl", [*_qamr(real, "train"), *_reqa(real)])
    _write_pairs(folder / "valid.jsonl", islice(_qamr(real, "dev"), QUESTIONS))


def _qamr(real: Path, split: str) -> Iterator[dict]:
    with lzma.open(real / "qamr" / f"{split}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            words = [BRACKETS.get(word, word) for word in row["tokens"]]
            for pair in row["qas"]:
                answer = " ".join(words[place] for place in pair["answer"])
                yield {"source": [" ".join(words), answer], "target": pair["question"]}


def _reqa(real: Path) -> Iterator[dict]:
    with lzma.open(real / "squad_qg" / "reqa-squad-train.jsonl.xz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            yield {"source": [row["sentence"]], "target": row["question"]}


def _write_pairs(path: Path, pairs: Iterable[dict]) -> None:
    path.write_text("".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs), encoding="utf-8")


def _short(articles: list[dict]) -> list[dict]:
    short = [
        article | {"paragraphs": [one for one in article["paragraphs"] if len(one["context"].split()) <= MOST_WORDS]}
        for article in articles
    ]
    return kept(short, lambda question: True)


SUBSETS: dict[str, Callable[[Path, Path], None]] = {
    "blimp": blimp,
    "paragraphs": paragraphs,
    "sst2": sst2,
    "squad": squad,
    "questions": questions,
    "more-questions": more_questions,
}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subset", choices=SUBSETS, help="data set to take a part of")
    parser.add_argument("folder", type=Path, help="folder to make")
    arguments = parser.parse_args(words)
    real = os.environ.get("UNIFIED_DATA")
    if not real:
        raise UnifiedError("set UNIFIED_DATA to the folder of real data sets")
    if arguments.folder.exists():
        print(f"{arguments.folder}: is there already")
        return
    with new_folder(arguments.folder, overwrite=False) as folder:
        SUBSETS[arguments.subset](folder, Path(real))


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"subsets: error: {error}")
