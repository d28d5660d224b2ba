"""Extractive question answering through fairseq-train: a synthetic task is learnt with each of the designs."""

from __future__ import annotations

import numpy as np
import pytest

from tests import fairseq_runs as fairseq
from tests.test_understanding import TASK
from unified.data.vocabulary import Vocabulary
from unified.tasks.items import write_items
from unified.tasks.questions import Answer, QuestionItem
from unified.tokenization.wordpiece import WordPieceTokenizer

MARKERS = [f"m{i}" for i in range(8)]
WORDS = [f"w{i}" for i in range(20)]
SYMBOLS = [*MARKERS, *WORDS, "not"]
TINY = (
    "--arch", "bert_tiny", "--criterion", "unified_understanding", "--width", 64, "--tokens-per-sample", 24,
    "--dropout", 0, "--attention-dropout", 0, "--optimizer", "adam", "--lr", 2e-3, "--cpu", "--clip-norm", 1,
    "--log-format", "json", "--no-epoch-checkpoints", "--num-workers", 0, "--batch-size", 32, "--seed", 3,
)  # fmt: skip


def marked_items(count, rng, impossible=0.0):
    """What follows the marker that is asked for? Passages hold several others, and up to three windows of words."""
    items = []
    for i in range(count):
        words = rng.choice(WORDS, rng.integers(6, 40)).tolist()
        markers = rng.permutation(MARKERS)[:4].tolist()
        for marker in markers[1:]:
            words[int(rng.integers(0, len(words) - 1))] = marker
        place = int(rng.integers(0, len(words) - 1))
        words[place : place + 2] = [markers[0], str(rng.choice(WORDS))]
        asked = markers[0]
        if rng.random() < impossible:
            words[place] = WORDS[0]
            words = [WORDS[1] if word == asked else word for word in words]
            items.append(QuestionItem(str(i), asked, " ".join(words), (), impossible=True))
            continue
        start = len(" ".join(words[: place + 1])) + 1
        items.append(QuestionItem(str(i), asked, " ".join(words), (Answer(words[place + 1], start),)))
    return items


def folder(path, items):
    path.mkdir()
    WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SYMBOLS], lowercase=False).save(path)
    Vocabulary(SYMBOLS).save(path / "dict.txt")
    for name, part in items.items():
        write_items(path / f"{name}.jsonl", part)
    return path


def train(data, save, *arguments):
    result = fairseq.run("train", data, *TASK, *TINY, "--save-dir", save, *arguments)
    return fairseq.logged(result.stdout + result.stderr, "valid"), result.stdout + result.stderr


@pytest.mark.parametrize("design", ["bert", "unilm", "xlnet"])
def test_synthetic_questions_are_learnt(tmp_path, design):
    rng = np.random.default_rng(2)
    items = marked_items(1100, rng, impossible=0.25)
    data = folder(tmp_path / "data", {"train": items[100:], "valid": items[:100]})
    valid, log = train(data, tmp_path / "save", "--head", f"span(design={design!r}, stride=8)", "--max-epoch", 12)
    print(valid)
    assert 0
