"""What is wrong with lines of data: missing fields are named with those that are there, equal problems once."""

from __future__ import annotations

import json
import pickle
import random
import re

import pytest

from tests.support.checkpoint_samples import checkpoint, data_folder
from tests.support.corpora import jsonl, run, write
from unified.cli import main
from unified.corpus.readers import DocumentCorpus
from unified.errors import MissingField, Problems, UnifiedError, require_fields
from unified.tasks.catalogue import TASKS, task_named
from unified.tasks.heads.registry import parse_head


def test_a_missing_field_is_named_with_those_that_are_there():
    require_fields({"a": 1, "b": None}, "a", "b")
    with pytest.raises(MissingField, match="^no field 'c'; its fields: 'a', 'b'$"):
        require_fields({"a": 1, "b": 2}, "a", "c", "d")
    with pytest.raises(MissingField, match="^no field 'c'; its fields: none$"):
        require_fields({}, "c")
    many = MissingField("x", [f"f{i}" for i in range(9)], "column")
    assert str(many).endswith("'f6', 'f7', ...") and str(many).startswith("no column 'x'; its columns: 'f0', ")
    assert str(pickle.loads(pickle.dumps(many))) == str(many)  # errors come from other processes


def test_equal_problems_are_one():
    """Whatever their order, all problems are counted, and each kind is said once with its first three locations."""
    rng = random.Random(5)
    for _ in range(50):
        kinds = [f"kind {i}" for i in range(rng.randint(1, 14))]
        drawn = [rng.choice(kinds) for _ in range(rng.randint(1, 200))]
        problems = Problems()
        for number, kind in enumerate(drawn, 1):
            problems.add(f"x.jsonl, line {number}", kind)
        assert len(problems) == len(drawn)
        order = list(dict.fromkeys(drawn))
        expected = []
        for kind in order[:10]:
            lines = [str(number) for number, other in enumerate(drawn, 1) if other == kind]
            some = ", ".join(lines[:3]) + (", ..." if len(lines) > 3 else "")
            location = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines):,} lines ({some})"
            expected.append(f"x.jsonl, {location}: {kind}")
        rest = sum(kind in order[10:] for kind in drawn)
        assert str(problems) == "; ".join(expected) + (f"; and {rest} more" if rest else "")


def test_lines_that_lack_a_field_are_one_problem_whatever_else_they_have():
    problems = Problems()
    for number in range(1, 1235):
        problems.add(f"line {number}", MissingField("text", ["id", f"other {number}"]))
    problems.add("line 9", "no field")
    problems.add("a.txt, line 9", "no field")
    problems.add("story 's', turn 4", "no field")
    assert str(problems) == (
        "1,234 lines (1, 2, 3, ...): no field 'text'; its fields: 'id', 'other 1'; line 9: no field; "
        "a.txt, line 9: no field; story 's', turn 4: no field"
    )
    with pytest.raises(UnifiedError, match="^x: 1,234 lines"):
        problems.check("x: ")
    Problems().check("x: ")


# ---------------------------------------------------------------- commands


def message(capsys) -> str:
    error = capsys.readouterr().err
    return error.splitlines()[-1]


ROWS = [{"id": i, "body": "x", **({"extra": 1} if i % 2 else {})} for i in range(40)]
SAYS = r"40 lines \(1, 2, 3, \.\.\.\): no field '{}'; its fields: 'id', 'body'"


def test_prepare(tmp_path, capsys):
    path = jsonl(tmp_path / "in.jsonl", ROWS)
    assert run(path, "--output", tmp_path / "data") == 2
    said = message(capsys)
    assert (
        re.search(SAYS.format("text") + "; --text-field names the one to read; nothing behind line 40", said)
        and said.count("no field") == 1
    )
    assert run(path, "--source-field", "article", "--target-field", "body", "--output", tmp_path / "data") == 2
    assert re.search(SAYS.format("article"), message(capsys))
    # A single bad line among good ones is named alone, and lines behind its chunk are not read.
    good = [{"text": "a b"}] * 3
    path = jsonl(tmp_path / "in.jsonl", [*good, {"body": 1}, *good])
    assert run(path, "--output", tmp_path / "data") == 2
    assert message(capsys).endswith(
        f"{path}, line 4: no field 'text'; its fields: 'body'; --text-field names the one to read"
    )
    chunks = [list(chunk.documents()) for chunk in DocumentCorpus((jsonl(tmp_path / "g.jsonl", good),)).chunks()]
    assert chunks == [[(i, ["a b"]) for i in range(3)]]


def test_pairs(tmp_path, capsys):
    assert main(["pairs", "gigaword", jsonl(tmp_path / "in.jsonl", ROWS), "--output", str(tmp_path / "out.jsonl")]) == 2
    assert re.search(SAYS.format("document"), message(capsys))


def test_predict(tmp_path, capsys):
    checkpoint(tmp_path / "model.pt", data_folder(tmp_path / "pairs", pairs=True), str(tmp_path / "pairs"))
    model = ("--model", str(tmp_path / "model.pt"))
    assert main(["predict", "texts", jsonl(tmp_path / "in.jsonl", ROWS), *model]) == 2
    assert re.search(SAYS.format("source"), message(capsys))


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_score(tmp_path, capsys, kind):
    gold = jsonl(tmp_path / "gold.jsonl", [{"id": i, "label": 1} for i in range(40)])
    assert main(["score", kind, gold, jsonl(tmp_path / "found.jsonl", ROWS)]) == 2
    assert re.search("found.jsonl, " + SAYS.format("label"), message(capsys))
    lines = write(tmp_path / "found.txt", "1\t2\n" + "x\t \n" * 30)
    assert main(["score", kind, gold, lines]) == 2
    assert r"found.txt, 30 lines (2, 3, 4, ...): no label" in message(capsys)


NEEDED = {
    "classification": "text", "regression": "text", "tagging": "words", "span": "question", "choice": "context",
    "relation": "words", "coreference": "sentences",
}  # fmt: skip


@pytest.mark.parametrize("head", NEEDED)
def test_items_of_every_head(tmp_path, head):
    path = jsonl(tmp_path / "train.jsonl", ROWS)
    with pytest.raises(UnifiedError, match=SAYS.format(NEEDED[head])):
        parse_head(head).head_class.read(path)


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if hasattr(task, "decoding")])
def test_items_of_every_task_of_writing(name):
    with pytest.raises(MissingField, match="its fields: 'body'"):
        task_named(name).item({"body": "x"}, 1, None)


def test_columns(tmp_path):
    path = write(tmp_path / "train.tsv", "index\tsentence\n" + "0\ta\n" * 5)
    with pytest.raises(UnifiedError, match=r"line 1: no column 'label'; its columns: 'index', 'sentence'$"):
        task_named("sst2").read(_both(tmp_path, path))
    path = write(tmp_path / "train.tsv", "sentence\tlabel\n" + "a\n" * 5)
    with pytest.raises(UnifiedError, match=r"5 lines \(2, 3, 4, \.\.\.\): 1 column instead of 2$"):
        task_named("sst2").read(_both(tmp_path, path))


def _both(folder, path):
    write(folder / "dev.tsv", "sentence\tlabel\na\t1\n")
    return folder


def test_a_data_set_in_one_value(tmp_path):
    data = {"data": [{"title": "T", "paragraphs": [{"context": "a", "qas": [{"id": f"{i}"} for i in range(30)]}]}]}
    for version in ("train-v1.1.json", "dev-v1.1.json"):
        write(tmp_path / version, json.dumps(data))
    with pytest.raises(UnifiedError) as refusal:
        task_named("squad1.1").read(tmp_path)
    assert "30 times (article 1 (T), paragraph 1, question 1 (0), " in refusal.value.details
    assert "no field 'question'; its fields: 'id'" in refusal.value.details
