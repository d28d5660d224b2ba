"""Extractive question answering through fairseq-train: a synthetic task is learnt with each of the designs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.support import fairseq_runs as fairseq
from tests.support.understanding_runs import TASK
from tests.unit.tasks.heads.test_span_decoding import every_span
from unified import load
from unified.data.vocabulary import Vocabulary
from unified.tasks.heads.batches import assembled
from unified.tasks.heads.items import write_items
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tokenization.wordpiece import WordPieceTokenizer

KINDS = range(6)
FILLERS = [f"w{i}" for i in range(20)]
SYMBOLS = [*(f"{part}{kind}" for part in ("ask", "is", "open", "close") for kind in KINDS), *FILLERS]
TINY = (
    "--arch", "bert_tiny", "--criterion", "unified_understanding", "--width", 32, "--heads", 2, "--dropout", 0,
    "--attention-dropout", 0, "--initializer-range", 0.15, "--tokens-per-sample", 24, "--optimizer", "adam",
    "--lr", 6e-3, "--lr-scheduler", "polynomial_decay", "--warmup-updates", 10, "--clip-norm", 1, "--cpu",
    "--log-format", "json", "--no-epoch-checkpoints", "--no-export", "--num-workers", 0,
    "--batch-size", 32, "--seed", 3,
)  # fmt: skip


def bracketed(rng, most):
    """Words of a passage with brackets of some kinds, and for each kind its first word and what the brackets hold."""
    words, indices = [], {}
    for kind in rng.permutation(KINDS)[:most].tolist():
        words += rng.choice(FILLERS, rng.integers(0, 9)).tolist()
        inside = [f"open{kind}", *rng.choice(FILLERS, rng.integers(0, 3)).tolist(), f"close{kind}"]
        indices[kind] = len(words), inside
        words += inside
    return words, indices


def bracketed_items(count, rng, impossible=0.0, choices=0.0):
    """What stands between the brackets of a kind, or is a kind one of the first? Passages take up to three windows."""
    items = []
    for i in range(count):
        drawn = rng.random()
        words, indices = bracketed(rng, 4)
        context, absent = " ".join(words), [kind for kind in KINDS if kind not in indices]
        if drawn < choices:
            kind = int(rng.choice(KINDS))
            items.append(QuestionItem(str(i), f"is{kind}", context, (), choice="yes" if kind < 3 else "no"))
        elif drawn < choices + impossible:
            items.append(QuestionItem(str(i), f"ask{absent[0]}", context, (), impossible=True))
        else:
            kind = int(rng.choice(list(indices)))
            index, inside = indices[kind]
            answer = Answer(" ".join(inside), len(" ".join([*words[:index], ""])))
            items.append(QuestionItem(str(i), f"ask{kind}", context, (answer,)))
    return items


def folder(path, items):
    path.mkdir()
    WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SYMBOLS], lowercase=False).save(path)
    Vocabulary(SYMBOLS).save(path / "dict.txt")
    for name, part in items.items():
        write_items(path / f"{name}.jsonl", part)
    return path


def train(data, save, *arguments):
    """What was logged of validations, and all that was printed."""
    result = fairseq.run("train", data, *TASK, *TINY, "--save-dir", save, *arguments)
    text = result.stdout + result.stderr
    return fairseq.logged(text, "valid"), text


def last_validation(valid):
    return {name.removeprefix("valid_"): value for name, value in valid[-1].items()}


@pytest.mark.parametrize("design", ["bert", "unilm", "xlnet"])
def test_synthetic_questions_are_learnt(tmp_path, design):
    choices = 0.25 if design == "unilm" else 0.0
    items = bracketed_items(1000, np.random.default_rng(2), impossible=0.25, choices=choices)
    broken = QuestionItem("broken", "ask1", "w1 w2", (Answer("w2", 0),))
    data = folder(tmp_path / "data", {"train": [*items[100:], broken], "valid": items[:100]})
    # Some 2,000 windows: two epochs.
    options = ("--head", f"span(design={design!r}, stride=8)",
               "--max-update", 130, "--total-num-update", 130, "--validate-interval", 5)  # fmt: skip
    valid, log = train(data, tmp_path / "save", *options)
    found = last_validation(valid)
    assert float(found["f1"]) >= 95 and float(found["exact"]) >= 95, valid
    assert float(found["best_f1"]) >= float(found["f1"])
    assert "1 of 901 questions cannot be learnt from and count in no loss: item broken: the answer stands else" in log
    # The trained model answers alike in other batches and without fairseq, and its answers have the logged score.
    predictor = load(tmp_path / "save" / "checkpoint_last.pt", data=data).predictor()
    labels = ("", "no", "yes") if design == "unilm" else ("",)
    assert predictor.task.labels == labels and predictor.task.design == design and predictor.task.stride == 8
    predictions = list(predictor.predict(items[:100]))
    scores = predictor.task.score(items[:100], predictions)
    for name in ("f1", "exact", "best_f1", "best_exact"):
        assert round(scores[name], 2) == float(found[name])
    assert_best_spans(predictor, items[:40], predictions)


@torch.no_grad()
def assert_best_spans(predictor, items, predictions):
    """They are the best of all spans of all windows, each question read alone."""
    encoded = predictor.task.encode(items, predictor.codec)
    several = 0
    for number, (item, prediction) in enumerate(zip(items, predictions, strict=False)):
        members, batch, reading = assembled(encoded, np.flatnonzero(encoded.owners == number), None, 1)
        scores = predictor.model.scores(batch, reading, "span")
        several += len(members) > 1
        sizes = reading["sizes"].numpy()
        spans = every_span(predictor.task, predictor.task.design, encoded, members, range(len(members)), scores, sizes)
        listed = [entry for entry in prediction["nbest"] if "start" in entry]
        if not spans:
            assert not listed
            continue
        _, window, first, last = spans[0]
        offsets = encoded.notes[members[window]].offsets
        assert (listed[0]["start"], listed[0]["end"]) == (offsets[first, 0], offsets[last, 1]), item
    assert several > 10
