"""Options of fairseq-train as words of a command line, and back."""

from __future__ import annotations

import pytest

from unified.training.fairseq_options import (
    OPTIMIZERS,
    by_name,
    decisive_options,
    flags,
    log_options,
    schedule,
    words_of,
)


def test_an_option_that_is_true_is_a_flag_and_all_come_back():
    options = {"--gated": True, "--layers": 8, "--adam-betas": "(0.9, 0.98)", "--embedding-norm": True}
    assert words_of(options) == ["--gated", "--layers", "8", "--adam-betas", "(0.9, 0.98)", "--embedding-norm"]
    assert by_name(words_of(options)) == {
        name: value if value is True else str(value) for name, value in options.items()
    }


def test_values_are_several_words_or_stand_behind_an_equals_sign():
    words = ["--lr=1e-3", "--betas", "(0.9,", "0.98)", "--fp16", "--name=a=b", "--lr", "2"]
    assert by_name(words) == {"--lr": "2", "--betas": "(0.9, 0.98)", "--fp16": True, "--name": "a=b"}
    assert by_name(["first", "words", "--fp16"]) == {"": "first words", "--fp16": True}


def test_what_decides_nothing_that_is_learnt_is_left_out():
    text = (
        "--lr 1e-3 --log-format json --log-interval 5 --log-file 'a b' --num-workers 2 --no-progress-bar --name 'a b'"
    )
    assert decisive_options(text) == {"--lr": "1e-3", "--name": "a b"}


def test_the_rate_falls_to_zero_at_the_last_update():
    assert schedule(1e-3, 5, 100) == {
        "--lr": 1e-3,
        "--lr-scheduler": "polynomial_decay",
        "--warmup-updates": 5,
        "--total-num-update": 100,
        "--max-update": 100,
    }


@pytest.mark.parametrize(
    ("updates", "interval"), [(1, 1), (49, 1), (100, 2), (149, 2), (2499, 49), (2500, 50), (90000, 50)]
)
def test_a_fiftieth_of_the_updates_is_logged_or_every_fiftieth(updates, interval):
    assert log_options(updates) == {"--log-format": "json", "--log-interval": interval, "--num-workers": 1}


def test_one_process_trains_on_a_cpu_and_as_many_as_there_are_on_cards():
    always = ["--no-epoch-checkpoints", "--fp16-no-flatten-grads"]
    assert flags(0) == [*always, "--cpu", "--distributed-world-size", "1"]
    assert flags(1) == flags(8) == always


@pytest.mark.parametrize("name", ["adam", "adamax"])
def test_optimizers_are_the_papers(name):
    """[BERT, app. A.2] and [UniLM, sec. 2.5]; the epsilon is that of BERT's program."""
    options = by_name(OPTIMIZERS[name])
    assert options == {
        "--optimizer": f"unified_{name}",
        f"--{name}-betas": "(0.9, 0.999)",
        f"--{name}-eps": "1e-6",
    }
