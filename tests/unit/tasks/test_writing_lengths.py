"""Lengths of sources and targets of tasks that generate text: what options choose, and what follows from them."""

import itertools
from dataclasses import replace

import pytest

from tests.support.task_folders import language_model
from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks.catalogue import task_named, with_changes

MORE = [".", "|"]


def lengths(**changes) -> tuple[int, int]:
    training = with_changes(task_named("texts").training, **changes)
    return training.max_source_tokens, training.max_target


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (384, 125)),
        ({"max_length": 1024}, (896, 125)),  # a longer sequence is filled with source
        ({"max_length": 256}, (128, 125)),
        ({"max_target": 20}, (489, 20)),  # one follows the other
        ({"max_source": 450}, (450, 59)),
        ({"max_source": 300}, (300, 125)),
        ({"max_source": 300, "max_target": 200}, (300, 200)),
        ({"max_source": 300, "max_length": 1024}, (300, 125)),
    ],
)
def test_lengths_that_are_not_given_follow_from_those_that_are(changes, expected):
    assert lengths(**changes, epochs=3, lr=None) == expected


@pytest.mark.parametrize(("published", "batch"), [(4, 4), (8, 8), (64, 8)])
def test_an_encoder_predicts_every_token_at_a_high_rate_in_small_batches(published, batch):
    """The settings that docs/background/results.md measures; all others stay the task's own."""
    training = with_changes(task_named("texts").training, batch_size=published)
    found = training.for_encoder()
    assert (found.objective, found.lr, found.batch_size) == ("target_next", 3e-4, batch)
    assert replace(found, objective=training.objective, lr=training.lr, batch_size=published) == training


def test_what_is_given_is_taken_as_it_is_or_refused():
    """All combinations around what 40 tokens have room for, 37 of source and target."""
    for source, target in itertools.product((None, 1, 20, 36, 37, 40), repeat=2):
        if (source or 1) + (target or 1) <= 37:
            found = lengths(max_length=40, max_source=source, max_target=target)
            assert found[0] + found[1] <= 37 or (source, target) == (None, None)
            assert source in (None, found[0]) and target in (None, found[1])
        else:
            with pytest.raises(UnifiedError, match=r"--max-\w+ \d+: a sequence of 40 tokens .* has room for 37 of a"):
                lengths(max_length=40, max_source=source, max_target=target)


def test_options_of_finetune_reach_fairseq_train(tmp_path, capsys):
    model = language_model(tmp_path / "model", *MORE, max_positions=64)
    rows = "".join(f'{{"source": "w{i} w2 w3 .", "target": "w{i}"}}\n' for i in range(20))
    (tmp_path / "pairs.jsonl").write_text(rows)
    words = ["--data", str(tmp_path / "pairs.jsonl"), "--init", str(model), "--dry-run"]
    options = ["--max-length", "64", "--max-source", "40", "--max-target", "10"]
    assert main(["finetune", "texts", *words, "--output", str(tmp_path / "run"), *options]) == 0
    said = "".join(capsys.readouterr())
    assert "--max-source 40 --max-target 10" in said and "--tokens-per-sample 64" in said
    rows = "".join(f'{{"text": "w{i} w2 w3 .", "label": "a"}}\n' for i in range(20))
    (tmp_path / "texts.jsonl").write_text(rows)
    words[1] = str(tmp_path / "texts.jsonl")
    assert main(["finetune", "classification", *words, "--output", str(tmp_path / "no"), *options]) == 2
    error = capsys.readouterr().err
    assert "--max-source 40: classification generates no text; --max-length cuts its sequences" in error
