"""`unified score` on the files that were learnt from: the same scores in every format, and fields by name."""

from __future__ import annotations

import json

import pytest

from tests.integration.cli.test_task_commands import refused
from tests.support.corpora import jsonl, write
from tests.unit.tasks.datasets.test_own_files import files_of
from unified.cli import main


def scored(capsys, *arguments):
    capsys.readouterr()
    assert main(["score", *map(str, arguments)]) == 0
    return json.loads(capsys.readouterr().out)


def test_labels_of_own_files_are_gold(tmp_path, capsys):
    rows = [{"sentence": f"a, {i}", "liked": i % 2} for i in range(8)]
    found = jsonl(tmp_path / "found.jsonl", [{"id": str(i + 1), "label": ("no", "yes")[i % 4 == 1]} for i in range(8)])
    options = ("--label-field", "liked", "--labels", "no,yes", "--positive", "yes")
    scores = [scored(capsys, "classification", path, found, *options) for path in files_of(tmp_path, rows)]
    assert all(one == scores[0] for one in scores) and scores[0]["accuracy"] == 75 and scores[0]["recall"] == 50
    numbers = [{"n": i / 4} for i in range(8)]
    given = jsonl(tmp_path / "numbers.jsonl", [{"id": i, "label": i} for i in range(1, 9)])
    for path in files_of(tmp_path, numbers):
        assert scored(capsys, "regression", path, given, "--label-field", "n")["pearson"] == pytest.approx(100)
    words = [{"tokens": ["Anna", "is"], "ner": [1, 0]} for _ in range(4)]
    tagged = jsonl(tmp_path / "tagged.jsonl", [{"id": str(i), "tags": ["B-X", "O"]} for i in range(1, 5)])
    for path in files_of(tmp_path, words):
        assert scored(capsys, "tagging", path, tagged, "--label-field", "ner", "--labels", "O,B-X")["f1"] == 100


def test_tables_without_names_are_lines_as_before(tmp_path, capsys):
    gold, found = write(tmp_path / "gold.tsv", "7\tyes\n8\tno\n"), write(tmp_path / "found.tsv", "8\tno\n7\tno\n")
    assert scored(capsys, "classification", gold, found)["accuracy"] == 50
    named = write(tmp_path / "named.tsv", "id\tlabel\n7\tyes\n8\tno\n")
    assert scored(capsys, "classification", named, found)["accuracy"] == 50
    table = write(tmp_path / "films.csv", "sentence,liked\na,1\nb,0\n")
    assert "2 lines (2, 3): no field 'label'; its fields: 'sentence', 'liked'; --label-field names" in refused(
        capsys, "score", "classification", table, found
    )


def test_texts_of_own_files_are_references(tmp_path, capsys):
    rows = [{"long": "x", "short": f"the {word} sentence"} for word in ("first", "second")]
    texts = [{"id": "1", "text": "the first sentence"}, {"id": "2", "text": "the other sentence"}]
    found = jsonl(tmp_path / "found.jsonl", texts)
    for path in files_of(tmp_path, rows):
        scores = scored(capsys, "generation", found, "--references", path, "--target-field", "short", "--json")
        assert scores["exact_match"] == 50 and scores["sentences"] == 2
        assert "no field 'target'; its fields: 'long', 'short'; --target-field names the one to read" in refused(
            capsys, "score", "generation", found, "--references", path
        )


def test_answers_to_own_questions_are_scored_as_official_ones(tmp_path, capsys):
    """Against `score squad` on the same questions in SQuAD's format, with and without questions that have no answer."""
    answers = ["Anna Berg", "the bridge", "in 1990", ""]
    found = {"1": "anna berg", "2": "bridge of stone", "3": "Rome", "4": "Rome"}
    written = [{"id": key, "answer": text, "no_answer": 0.1} for key, text in found.items()]
    names = ("--text-field", "passage", "--second-field", "asked", "--label-field", "told")
    for count, version in ((4, "v2.0"), (3, "1.1")):
        rows = [
            {"passage": "Anna Berg built the bridge in 1990.", "asked": "?", "told": one} for one in answers[:count]
        ]
        qas = [{"id": i, "answers": [{"text": one}] if one else []} for i, one in enumerate(answers[:count], 1)]
        document = {"version": version, "data": [{"paragraphs": [{"qas": qas}]}]}
        official = write(tmp_path / "squad.json", json.dumps(document))
        expected = scored(capsys, "squad", official, write(tmp_path / "found.json", json.dumps(found)))
        assert 0 < expected["f1"] < 100 and expected["total"] == count
        own = jsonl(tmp_path / "found.jsonl", written[:count])
        for path in files_of(tmp_path, rows):
            assert scored(capsys, "span", path, own, *names) == expected
    assert scored(capsys, "span", path, own, *names, "--rules", "2.0")["HasAns_total"] == 3
    table = write(tmp_path / "rows.tsv", "passage\tasked\ttold\n")
    assert "rows.tsv: rows, not a file of SQuAD; `unified score span`" in refused(capsys, "score", "squad", table, own)
    assert "no field 'answer'" in refused(capsys, "score", "span", path, jsonl(tmp_path / "x.jsonl", rows), *names)
