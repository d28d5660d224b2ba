"""Extractive question answering through fairseq-train: a synthetic task is learnt with each of the designs."""

from __future__ import annotations

import numpy as np
import pytest

from tests import fairseq_runs as fairseq
from tests.understanding_runs import TASK
from unified.data.vocabulary import Vocabulary
from unified.tasks.items import write_items
from unified.tasks.questions import Answer, QuestionItem
from unified.tokenization.wordpiece import WordPieceTokenizer

KINDS = range(6)
FILLERS = [f"w{i}" for i in range(20)]
SYMBOLS = [*(f"{part}{kind}" for part in ("ask", "open", "close") for kind in KINDS), *FILLERS]
TINY = (
    "--arch", "bert_tiny", "--criterion", "unified_understanding", "--width", 64, "--tokens-per-sample", 24,
    "--dropout", 0, "--attention-dropout", 0, "--optimizer", "adam", "--lr", 2e-3, "--cpu", "--clip-norm", 1,
    "--log-format", "json", "--no-epoch-checkpoints", "--num-workers", 0, "--batch-size", 32, "--seed", 3,
)  # fmt: skip


def bracketed_items(count, rng, impossible=0.0):
    """Which words stand between the brackets of a kind? Passages hold several kinds, in up to three windows."""
    items = []
    for i in range(count):
        kinds = rng.permutation(KINDS)[:4]
        words, places = [], {}
        for kind in kinds:
            words += rng.choice(FILLERS, rng.integers(0, 9)).tolist()
            inside = [f"open{kind}", *rng.choice(FILLERS, rng.integers(0, 3)).tolist(), f"close{kind}"]
            places[kind] = len(words), inside
            words += inside
        if rng.random() < impossible:
            asked = next(kind for kind in KINDS if kind not in kinds)
            items.append(QuestionItem(str(i), f"ask{asked}", " ".join(words), (), impossible=True))
            continue
        asked = kinds[rng.integers(len(kinds))]
        place, inside = places[asked]
        start = len(" ".join([*words[:place], ""]))
        items.append(QuestionItem(str(i), f"ask{asked}", " ".join(words), (Answer(" ".join(inside), start),)))
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
    items = bracketed_items(1100, rng, impossible=0.25)
    data = folder(tmp_path / "data", {"train": items[100:], "valid": items[:100]})
    valid, log = train(data, tmp_path / "save", "--head", f"span(design={design!r}, stride=8)", "--max-epoch", 12)
    print(valid)
    assert 0
