"""Intervals of one example are refused before it is scored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpora import jsonl
from tests.support.task_folders import language_model
from unified.cli import main


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl(Path("pairs.jsonl"), [{"sentence_good": "w1 w2", "sentence_bad": "w3 w4"}])
    Path("labels").write_text("a\n", encoding="utf-8")
    Path("text.txt").write_text("w1 w2\n", encoding="utf-8")


def refused(capsys, command: str, *words: str) -> None:
    assert main([command, *words, "--intervals"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"unified {command}: error: intervals need at least 2 examples to draw from; there is 1\n"


def never(*_: object) -> None:
    raise AssertionError("it was scored")


def test_scores_of_files(capsys, monkeypatch):
    monkeypatch.setattr("unified.tasks.metrics.classification.Classification.scores", never)
    refused(capsys, "score", "classification", "labels", "labels")


def test_minimal_pairs_before_the_model_is_loaded(capsys):
    refused(capsys, "evaluate", "minimal-pairs", "pairs.jsonl", "--model", "nowhere")


def test_perplexity_before_the_model_reads_the_text(capsys, monkeypatch, tmp_path):
    language_model(tmp_path / "m")
    monkeypatch.setattr("unified.evaluation.perplexity.score_documents", never)
    refused(capsys, "evaluate", "perplexity", "text.txt", "--model", "m", "--scoring", "pseudo_likelihood")
