"""`unified pairs`: what is asked of the conversion of a data set, and what is said of the pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import exit_status
from unified.errors import UnifiedError
from unified.tasks.datasets.summaries.inputs import Inputs
from unified.tasks.datasets.summaries.pairs import Counts, PairConverter

LINE = ("pairs", "xsum", "a.jsonl", "--output", "out.jsonl")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Lets the pairs be as many as a test says; returns what was asked for."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "b.jsonl"):
        Path(name).touch()
    asked: list[tuple] = []

    def so(counts: Counts) -> list[tuple]:
        monkeypatch.setattr(
            "unified.tasks.datasets.summaries.pairs.write_pairs", lambda *given: asked.append(given) or counts
        )
        return asked

    return so


def test_options_reach_the_conversion(written, monkeypatch):
    monkeypatch.setattr("unified.runtime.parallel.available_cores", lambda: 3)
    asked = written(Counts(pairs=1))
    assert exit_status(*LINE) is None
    more = "--separator [SEP] --oracle greedy --skip-empty --workers 2 --overwrite".split()
    assert exit_status(*LINE[:3], "b.jsonl", *LINE[3:], *more) is None
    Path("folder").mkdir()
    assert exit_status("pairs", "xsum", "folder", "--list", "names", "--output", "o", "--workers", "1") is None
    assert asked == [
        (PairConverter(Inputs("xsum", ("a.jsonl",), None), "|", None, False), "out.jsonl", 3, False),
        (PairConverter(Inputs("xsum", ("a.jsonl", "b.jsonl"), None), "[SEP]", "greedy", True), "out.jsonl", 2, True),
        (PairConverter(Inputs("xsum", ("folder",), "names"), "|", None, False), "o", 1, False),
    ]


@pytest.mark.parametrize("workers", [0, -1])
def test_less_than_one_process_is_refused(written, workers):
    asked = written(Counts(pairs=1))
    with pytest.raises(UnifiedError) as refused:
        exit_status(*LINE, "--workers", str(workers))
    assert str(refused.value) == f"--workers must be at least 1, got {workers}" and asked == []


NOTES = {
    "empty": "left out, a side is empty: {}",
    "replaced": "with '|' in a text, now a slash: {}",
    "without_oracle": "without a sentence that the oracle takes: {}",
    "limited": "whose oracle might be better with more sentences than were tried: {}",
}


@pytest.mark.parametrize("counted", [[], *([name] for name in NOTES), [*NOTES]])
def test_pairs_are_counted_and_what_did_not_happen_is_not_named(written, capsys, counted):
    written(Counts(pairs=12345, **dict.fromkeys(counted, 6789)))
    assert exit_status(*LINE, "--workers", "1") is None
    notes = [NOTES[name].format("6,789") for name in counted]
    assert capsys.readouterr().out.splitlines() == ["12,345 pairs", *notes, "wrote out.jsonl"]


def test_a_note_names_the_separator_and_counts_from_one(written, capsys):
    written(Counts(pairs=1, replaced=1))
    assert exit_status(*LINE, "--separator", "'") is None
    assert capsys.readouterr().out.splitlines() == ["1 pair", 'with "\'" in a text, now a slash: 1', "wrote out.jsonl"]


def test_programs_get_all_counts(written, capsys):
    written(Counts(pairs=5, empty=4, replaced=3, without_oracle=2, limited=0))
    assert exit_status(*LINE, "--json") is None
    assert json.loads(capsys.readouterr().out) == {
        "output": "out.jsonl", "pairs": 5, "empty": 4, "replaced": 3, "without_oracle": 2, "limited": 0,
    }  # fmt: skip
