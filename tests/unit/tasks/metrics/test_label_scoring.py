"""Labels and tags scored by `unified score`: every type of file, and what is refused."""

import json
import re
from pathlib import Path

import pytest

from unified.cli import main
from unified.tasks.metrics import (
    score_classification,
    score_relations,
)


def write(path, *lines: str) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def command(capsys, *arguments: str) -> dict:
    assert main(["score", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_kind_from_the_command_line(tmp_path, capsys):
    gold, predicted = write(tmp_path / "g", "1", "1", "0"), write(tmp_path / "p", "1", "0", "0")
    scores = command(capsys, "classification", gold, predicted, "--positive", "1")
    assert scores == score_classification(["1", "1", "0"], ["1", "0", "0"], positive="1")
    assert command(capsys, "regression", gold, predicted)["pearson"] == pytest.approx(50)
    ids = write(tmp_path / "ids", "b\tno_relation", "a\tx"), write(tmp_path / "other ids", "a\tx", "b\ty")
    assert command(capsys, "relation", *ids) == score_relations(["no_relation", "x"], ["y", "x"])
    others = (
        write(tmp_path / "others", "a\tz", "b\tx", "c\tz"),
        write(tmp_path / "found others", "a\tx", "b\tz", "c\tx"),
    )
    assert command(capsys, "relation", *others, "--negative", "x")["f1"] == 0
    task8 = write(tmp_path / "task8", "1\tA-B(e1,e2)", "2\tOther")
    assert command(capsys, "relation", task8, task8, "--rules", "semeval2010")["macro_f1"] == 100
    tags = (
        write(tmp_path / "tags", "Ann NNP B-PER", "Lee NNP I-PER", "", "", "in\tIN\tO"),
        write(tmp_path / "found", "Ann B-PER", "Lee B-PER", "", "in O"),
    )
    scores = command(capsys, "tagging", *tags, "--output", str(tmp_path / "scores.json"))
    assert scores["types"] == {"PER": {"precision": 0, "recall": 0, "f1": 0, "gold": 1, "predicted": 2, "correct": 0}}
    assert scores["accuracy"] == pytest.approx(200 / 3)
    assert json.loads((tmp_path / "scores.json").read_text()) == scores


def objects(path, *rows: dict) -> str:
    return write(path, *(json.dumps(row) for row in rows))


def test_files_of_finetune_are_read_as_they_are(tmp_path, capsys):
    """Items and predictions as JSON lines, matched by id, whatever else stands there."""
    gold = objects(tmp_path / "g.jsonl", {"id": "a", "text": "x", "label": "yes"}, {"id": "b", "label": "no"})
    found = objects(tmp_path / "p.jsonl", {"id": "b", "label": "no", "probabilities": {}}, {"id": "a", "label": "no"})
    assert command(capsys, "classification", gold, found) == score_classification(["yes", "no"], ["no", "no"])
    plain = write(tmp_path / "p", "a\tno", "b\tno")
    assert command(capsys, "relation", gold, plain) == score_relations(["yes", "no"], ["no", "no"])
    numbers = objects(tmp_path / "n.jsonl", {"label": 1}, {"label": 2.5}, {"label": 3})
    assert command(capsys, "regression", numbers, write(tmp_path / "m", "1", "2.5", "3"))["pearson"] == 100
    tags = [{"id": "1", "words": ["a", "b"], "tags": ["B-X", "O"]}, {"id": "2", "tags": ["O"]}]
    key, response = objects(tmp_path / "k.jsonl", *tags), objects(tmp_path / "r.jsonl", *reversed(tags))
    assert command(capsys, "tagging", key, response)["f1"] == 100


def broken(folder) -> dict[str, tuple[list[str], str]]:
    good, short = write(folder / "good", "1", "0"), write(folder / "short", "1")
    return {
        "fewer": (["classification", good, short], "short: 1 label, but 2 in .*good"),
        "blank": (["classification", good, write(folder / "blank", "1", "")], "blank, line 2: no label"),
        "empty": (["classification", good, write(folder / "empty")], "the file is empty"),
        "ids": (
            ["relation", good, write(folder / "ids", "a\t1", "b\t0")],
            "ids: has no id of .*good, but such as 'a', where that has '1'",
        ),
        "twice": (["relation", good, write(folder / "twice", "a\t1", "a\t0")], "line 2: id 'a' was"),
        "no number": (
            ["regression", good, write(folder / "words", "1", "x")],
            "words: id '2': expected a finite number, got 'x'",
        ),
        "tag": (["tagging", good, good], "good, .*good: tag '0': expected O, B-TYPE"),
        "no tags": (["tagging", good, write(folder / "blanks", "", "")], "blanks: no tags"),
        "no label": (
            ["classification", objects(folder / "x.jsonl", {"label": "1"}, {"text": "a"}, {"label": True}), good],
            "x.jsonl, line 2: no field 'label'; its fields: .*line 3: 'label' must be a name or an integer, got True",
        ),
        "same id": (
            ["relation", good, objects(folder / "y.jsonl", {"id": 1, "label": "1"}, {"id": "1", "label": "0"})],
            "y.jsonl, line 2: id '1' was in this file before",
        ),
        "mixed": (
            ["tagging", good, objects(folder / "z.jsonl", {"tags": ["O"]})],
            "good: expected rows with the field 'tags'",
        ),
        "missing": (["tagging", good, str(folder / "nowhere")], "nowhere"),
    }


@pytest.mark.parametrize(
    "case",
    [
        "fewer",
        "blank",
        "empty",
        "ids",
        "twice",
        "no number",
        "tag",
        "no tags",
        "no label",
        "same id",
        "mixed",
        "missing",
    ],
)
def test_every_unusable_file_is_one_line_of_error(tmp_path, capsys, monkeypatch, case):
    monkeypatch.chdir(tmp_path)  # short names, so that nothing of a message is left out
    arguments, message = broken(Path())[case]
    assert main(["score", *arguments]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error) and error.count("\n") == 1 and error.startswith("unified score: error:")
