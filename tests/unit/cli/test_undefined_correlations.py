"""Equal labels or predictions, with which no correlation is defined, are refused by the commands that report one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.corpora import jsonl
from tests.support.task_folders import language_model
from unified.cli import main
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tasks.metrics.classification import Regression


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(capsys, *words: str) -> str:
    assert main(list(words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_similarity_of_equal_labels_is_refused_before_the_model_is_loaded(capsys):
    jsonl(Path("rows.jsonl"), [{"text": f"w{i}", "second": "w1", "label": 2.5} for i in range(3)])
    words = ("evaluate", "similarity", "rows.jsonl", "--model", "nowhere", "--intervals")
    assert refused(capsys, *words) == (
        "unified evaluate: error: rows.jsonl: the correlation is not defined, as every number is 2.5\n"
    )


def test_equal_similarities_are_refused_and_nothing_is_written(tmp_path, capsys):
    language_model(tmp_path / "m", initializer_range=0.5, max_positions=24)
    jsonl(Path("rows.jsonl"), [{"text": "w1 w2", "second": "w3", "label": i} for i in range(3)])
    said = refused(capsys, "evaluate", "similarity", "rows.jsonl", "--model", "m", "--output", "out")
    assert "error: m, cosines of the pairs: the correlation is not defined, as every number is " in said
    assert not Path("out").exists()


@pytest.mark.parametrize("equal", ["gold", "found"])
def test_scores_of_equal_numbers_are_refused(capsys, equal):
    for name in ("gold", "found"):
        Path(name).write_text("3\n3\n3\n" if name == equal else "1\n2\n4\n", encoding="utf-8")
    assert refused(capsys, "score", "regression", "gold", "found") == (
        f"unified score: error: {equal}: the correlation is not defined, as every number is 3\n"
    )


def test_samples_without_a_correlation_do_not_count_for_its_interval():
    numbers = Regression(np.array([1.0, 2.0]), np.array([5.0, 9.0]))
    assert numbers.measures(np.array([2.0, 0.0])) == {}
    for low, high in bootstrap_intervals(numbers).values():
        assert low == pytest.approx(100) and high == pytest.approx(100)
