"""`unified score` of answers to questions: what each type of score reads, and by which version of SQuAD."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import exit_status, leaving
from tests.support.corpora import jsonl
from unified.errors import UnifiedError
from unified.tasks.metrics.squad import SquadV1Examples

ANSWERS, FOUND = {"a": ["red"], "b": ["blue"]}, {"a": "the red", "b": "green blue"}
SQUAD = [{"qas": [{"id": key, "answers": [{"text": text} for text in texts]} for key, texts in ANSWERS.items()]}]
MRQA = {"context": "c", "qas": [{"qid": key, "answers": texts} for key, texts in ANSWERS.items()]}
ROWS = [{"id": key, "context": "red blue", "question": "?", "answers": texts} for key, texts in ANSWERS.items()]
CONTENTS = {
    "squad.json": {"version": "v1.1", "data": [{"paragraphs": SQUAD}]},
    "mrqa.jsonl": MRQA,
    "found.json": FOUND,
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in CONTENTS.items():
        Path(name).write_text(json.dumps(content), encoding="utf-8")
    jsonl(tmp_path / "rows.jsonl", ROWS)
    jsonl(tmp_path / "found.jsonl", [{"id": key, "answer": text} for key, text in FOUND.items()])


@pytest.mark.parametrize(
    "line", ["squad squad.json found.json", "mrqa mrqa.jsonl found.json", "span rows.jsonl found.jsonl"]
)
def test_equal_answers_in_different_formats_have_equal_scores(line, capsys):
    assert exit_status("score", *line.split()) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores == SquadV1Examples(ANSWERS, FOUND).scores()
    assert scores["exact_match"] == 50 and scores["f1"] == pytest.approx(100 * (1 + 2 / 3) / 2)


@pytest.mark.parametrize("version", ["v3", "3", "1.2", "X1.1", "1.1v", ""])
def test_another_version_of_squad_is_refused(version):
    content = {"version": version, "data": [{"paragraphs": SQUAD}]}
    Path("squad.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnifiedError) as refused:
        exit_status("score", "squad", "squad.json", "found.json")
    assert str(refused.value) == f"squad.json: states version {version!r}; say --rules 1.1 or --rules 2.0"


def test_predictions_of_other_turns_are_refused():
    turns = {"questions": [{"input_text": "?", "turn_id": 1}], "answers": [{"input_text": "x", "turn_id": 1}]}
    story = {"id": "s1", "source": "cnn", **turns}
    Path("coqa.json").write_text(json.dumps({"data": [story]}), encoding="utf-8")
    Path("p.json").write_text(json.dumps([{"id": "other", "turn_id": 1, "answer": "x"}]), encoding="utf-8")
    with pytest.raises(UnifiedError) as refused:
        exit_status("score", "coqa", "coqa.json", "p.json")
    assert str(refused.value) == (
        "p.json: has no turn of coqa.json, but such as 'other 1', where that has 's1 1'; both files must use the same"
    )


def test_help_says_above_which_probability_no_answer_is_given(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = " ".join(leaving(capsys, "score", "squad", "--help")[1].split())
    assert " --na-prob-thresh X probability above which no answer is given, with --na-prob (default: 1.0) " in text
