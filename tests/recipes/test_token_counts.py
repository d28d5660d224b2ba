"""Counts of tokens as the floor of minimal pairs."""

import json
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from tests.recipes.test_recipes import load
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.evaluation.pair_files import Paradigm
from unified.tokenization import load_tokenizer

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "queue" / "token_counts.py"
#: A pair decided by a frequent word, one by a word never read, one by a capital, and one by order alone.
PAIRS = [
    ("the cat sat", "the dog sat"),
    ("a zebra sat", "a cat sat"),
    ("The cat sat", "the cat sat"),
    ("the cat sat", "sat the cat"),
]
TEXT = "the cat sat . the cat ran . a cat saw the dog ."


def test_the_sentence_of_the_more_frequent_tokens_is_preferred():
    """By the product of the tokens' shares, each count with one added, whatever their order."""
    module = load(SCRIPT)
    counts = Counter(TEXT.split())
    scores = module.scored([Paradigm("one", {}, *zip(*PAIRS, strict=True), places=[])], module.words_of, counts)
    total = sum(counts.values()) + len(counts)

    def share(sentence: str) -> Fraction:
        return math.prod(Fraction(counts[word] + 1, total) for word in sentence.lower().split())

    for (good, bad), own, other in zip(PAIRS, scores.good, scores.bad, strict=True):
        assert own == pytest.approx(math.log(share(good))) and other == pytest.approx(math.log(share(bad)))
    assert scores.points.tolist() == [1, 0, 0.5, 0.5]
    assert scores.measures()["accuracy"] == 50


def test_a_run_counts_the_pieces_and_the_words_of_the_training_text(tmp_path):
    """The words are those of the text, though the folder has its pieces alone."""
    (tmp_path / "text.txt").write_text(f"{TEXT} The cat sat .\n" * 20)
    (tmp_path / "pairs.jsonl").write_text(
        "".join(json.dumps({"sentence_good": good, "sentence_bad": bad}) + "\n" for good, bad in PAIRS)
    )
    words = ["prepare", tmp_path / "text.txt", "--valid", tmp_path / "text.txt", "--output", tmp_path / "prepared"]
    options = ["--tokenizer", "unigram", "--vocabulary-size", "20"]
    subprocess.run([sys.executable, "-m", "unified.cli", *map(str, words), *options], check=True, capture_output=True)
    run = [sys.executable, SCRIPT, tmp_path / "prepared", tmp_path / "pairs.jsonl"]
    subprocess.run([*map(str, run)], check=True, cwd=tmp_path)
    scores, found = {}, {}
    for tokens in ("pieces", "words"):
        rows = [json.loads(line) for line in (tmp_path / tokens / "examples.jsonl").read_text().splitlines()]
        scores[tokens] = [(row["good"], row["bad"]) for row in rows]
        found[tokens] = json.loads((tmp_path / tokens / "scores.json").read_text())
    assert [good > bad for good, bad in scores["words"]] == [True, False, False, False]
    assert scores["words"][2][0] == scores["words"][2][1], "capitals do not count"
    assert found["words"]["accuracy"] == 50 and found["words"]["accuracy.interval"][0] < 50
    symbols, train = Vocabulary.load(tmp_path / "prepared" / "dict.txt").symbols, TokenFile(tmp_path / "prepared/train")
    counts = Counter(symbols[token] for number in range(len(train)) for token in train[number].tolist())
    total, pieces = sum(counts.values()) + len(counts), load_tokenizer(tmp_path / "prepared").encode("The cat sat")
    expected = sum(math.log((counts[piece] + 1) / total) for piece in pieces)
    assert scores["pieces"][2][0] == pytest.approx(expected) and scores["pieces"][2][0] < scores["pieces"][2][1]
