"""What tests of `unified evaluate` share: models, data, and a way to run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import exit_status
from tests.support.corpora import jsonl
from tests.support.evaluations import PAIRS
from tests.support.task_folders import language_model


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """``m``: a model with 24 absolute positions, ``x``: one with relative positions, and files of data."""
    folder = tmp_path_factory.mktemp("evaluate")
    language_model(folder / "m", initializer_range=0.5, max_positions=24)
    language_model(folder / "x", initializer_range=0.5, positions="relative")
    jsonl(folder / "pairs.v1.jsonl", PAIRS)
    (folder / "text.v1.txt").write_text("w1 w2 w3 w4 w5 w6 w7\n\nw8 nothing\n", encoding="utf-8")
    rows = [{"text": f"w{i} w1", "second": f"w{2 * i} w3 w4", "label": i * i % 5} for i in range(6)]
    jsonl(folder / "rows.jsonl", rows)
    jsonl(folder / "long.jsonl", [row | {"text": row["text"] + " w9" * 40} for row in rows])
    return folder


@pytest.fixture
def evaluate(shared, monkeypatch, capsys):
    """Runs `unified evaluate`; returns what it prints, and the notes on standard error."""
    monkeypatch.chdir(shared)

    def run(*words: str) -> tuple[str, str]:
        assert exit_status("evaluate", *words) == 0
        printed = capsys.readouterr()
        return printed.out, printed.err

    return run
