"""Ids and labels of two files are matched as texts, whatever the files are and however they write them."""

import json
import random
from pathlib import Path

import pytest

from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks import metrics
from unified.tasks.datasets.dream import read_dream
from unified.tasks.datasets.glue import write_submission
from unified.tasks.datasets.squad import squad_items
from unified.tasks.datasets.tacred import read_tacred
from unified.tasks.heads.classification import Classification, Regression
from unified.tasks.heads.registry import TASK_HEADS
from unified.tasks.metrics.files import read_labels, read_numbers, read_tagged

#: Labelled items of each head, without ids.
ITEMS = {
    "classification": {"text": "a", "label": "x"},
    "regression": {"text": "a", "label": 1.5},
    "choice": {"context": "a", "choices": ["b", "c"], "label": 1},
    "tagging": {"words": ["a"], "tags": ["O"]},
    "relation": {"words": ["a", "b"], "entities": [{"start": 0, "stop": 1}, {"start": 1, "stop": 2}], "label": "x"},
    "span": {"question": "a", "context": "b", "answers": [{"text": "b"}]},
    "coreference": {"sentences": [["a"]], "chains": []},
}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def objects(path: Path, *rows: dict) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def spelled(rng: random.Random, text: str) -> str | int:
    """An id as JSON may have it: an integer may be one, or a text."""
    return int(text) if text.lstrip("-").isdecimal() and str(int(text)) == text and rng.random() < 0.5 else text


def json_lines(rng: random.Random, path: Path, field: str, rows: dict, line_numbers: bool) -> Path:
    """Rows as JSON lines: by ids in any order, or without ids at the lines that they are called by."""
    spelling = {value: spelled(rng, value) for value in rows.values() if isinstance(value, str)}
    values = {key: spelling.get(value, value) if isinstance(value, str) else value for key, value in rows.items()}
    if line_numbers:
        lines = [""] * max(map(int, rows))
        for key, value in values.items():
            lines[int(key) - 1] = json.dumps({field: value} | rng.choice([{}, {"id": None}, {"id": spelled(rng, key)}]))
    else:
        lines = [json.dumps({"id": spelled(rng, key), field: value}) for key, value in values.items()]
        rng.shuffle(lines)
        lines.insert(rng.randint(0, len(lines)), "")
    return write(path.with_suffix(".jsonl"), "".join(line + "\n" for line in lines))


def columns(rng: random.Random, path: Path, rows: dict) -> Path:
    lines = [f"{key}\t{value}" for key, value in rows.items()]
    rng.shuffle(lines)
    return write(path, "".join(f"{rng.choice(['', ' '])}{line}{rng.choice(['', ' '])}\n" for line in lines))


def file_of(rng: random.Random, path: Path, rows: dict, numbers: bool) -> Path:
    """Rows in one of the forms that can hold them; ``numbers``: ids are numbers of lines."""
    forms = [lambda: json_lines(rng, path, "label", rows, False), lambda: columns(rng, path, rows)]
    if numbers:
        forms.append(lambda: json_lines(rng, path, "label", rows, True))
    if list(rows) == [str(i) for i in range(1, len(rows) + 1)]:
        forms.append(lambda: write(path, "".join(f"{value}\n" for value in rows.values())))
    return rng.choice(forms)()


def random_ids(rng: random.Random) -> tuple[list[str], bool]:
    count = rng.randint(1, 6)
    kind = rng.choice(["all lines", "some lines", "integers", "texts"])
    if kind == "all lines":
        return [str(i) for i in range(1, count + 1)], True
    if kind == "some lines":
        return sorted(map(str, rng.sample(range(1, 12), count)), key=int), True
    if kind == "integers":
        return list(map(str, rng.sample(range(-5, 1000), count))), False
    return rng.sample(["a", "b 1", "01", "1", "2.0", "é", "null", "dev-3"], count), False


@pytest.mark.slow
def test_files_of_all_forms_and_types_are_paired_by_the_texts_of_their_ids(tmp_path):
    """Against dictionaries of texts: 400 pairs of files of labels and of numbers, 200 of tags, each in its own form."""
    rng = random.Random(1)
    for _ in range(400):
        ids, numbers = random_ids(rng)
        labels = rng.choice([["0", "1"], ["1", "01", "x"], ["yes", "no", "1.0"]])
        gold = {key: rng.choice(labels) for key in ids}
        predicted = {key: rng.choice(labels) for key in rng.sample(ids, len(ids))}
        predicted[ids[0]] = gold[ids[0]]
        if numbers:
            predicted = {key: predicted[key] for key in ids}
        paths = file_of(rng, tmp_path / "gold", gold, numbers), file_of(rng, tmp_path / "found", predicted, numbers)
        pairs = list(zip(*read_labels(*paths), strict=True))
        assert sorted(pairs) == sorted((gold[key], predicted[key]) for key in ids)
        amounts = [{key: rng.choice(["1", "-2", "2.5"]) for key in ids} for _ in range(2)]
        paths = [file_of(rng, tmp_path / f"{i}", rows, numbers) for i, rows in enumerate(amounts)]
        pairs = list(zip(*read_numbers(*paths), strict=True))
        assert sorted(pairs) == sorted((float(amounts[0][key]), float(amounts[1][key])) for key in ids)
    for _ in range(200):
        ids, numbers = random_ids(rng)
        sides = [{key: [rng.choice(["O", "B-X", "B-Y"]), "B-X"] for key in ids} for _ in range(2)]
        paths = [
            json_lines(rng, tmp_path / f"tags{i}", "tags", rows, numbers and rng.random() < 0.5)
            for i, rows in enumerate(sides)
        ]
        pairs = list(zip(*read_tagged(*paths), strict=True))
        assert sorted(pairs) == sorted((sides[0][key], sides[1][key]) for key in ids)


@pytest.mark.parametrize("name", TASK_HEADS)
def test_an_item_is_called_by_the_text_of_its_id_or_by_the_number_of_its_line(name, tmp_path):
    path = tmp_path / "items.jsonl"
    ids = [{"id": 17}, {"id": "seventeen"}, {}, {"id": None}, {"id": "05"}, {"id": -3}]
    lines = [json.dumps(ITEMS[name] | one) for one in ids]
    write(path, "\n".join([*lines[:3], "", *lines[3:]]))
    assert [item.id for item in TASK_HEADS[name].read(path)] == ["17", "seventeen", "3", "5", "05", "-3"]
    for wrong in (True, 1.5, "", " ", [1], {}):
        objects(path, ITEMS[name], ITEMS[name] | {"id": wrong})
        with pytest.raises(UnifiedError, match="line 2: 'id' must be a text that is not empty, or an integer, got"):
            TASK_HEADS[name].read(path)
    for one, other in ((5, "5"), ("5", 5), (2, None)):
        objects(path, ITEMS[name] | {"id": one}, ITEMS[name] | {"id": other})
        with pytest.raises(UnifiedError, match="the id '[25]' is that of line 1, too"):
            TASK_HEADS[name].read(path)


def scored(capsys, *arguments: object) -> dict:
    capsys.readouterr()
    assert main(["score", *map(str, arguments)]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments: object) -> str:
    capsys.readouterr()
    assert main(["score", *map(str, arguments)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("unified score: error:")
    return error


def test_own_gold_without_ids_is_scored(tmp_path, capsys):
    """Predictions are called by the items that training read of the same file."""
    texts = [{"text": "a", "label": label} for label in ("x", "y", "x")]
    gold = objects(tmp_path / "gold.jsonl", *texts)
    found = [{"id": item.id, "label": "x"} for item in Classification.read(gold)]
    predictions = objects(tmp_path / "found.jsonl", *found)
    expected = metrics.score_classification(["x", "y", "x"], ["x"] * 3)
    assert scored(capsys, "classification", gold, predictions) == expected
    numbers = objects(tmp_path / "numbers.jsonl", *({"text": "a", "label": n} for n in (1.5, 3, 2)))
    found = [{"id": item.id, "label": item.label} for item in Regression.read(numbers)]
    predictions = objects(tmp_path / "found.jsonl", *reversed(found))
    assert scored(capsys, "regression", numbers, predictions)["pearson"] == pytest.approx(100)


def test_labels_are_texts_or_integers_and_one_of_both_in_a_file(tmp_path, capsys):
    """1 of one file is "1" of the other; within a file nobody knows, in training as in scoring."""
    gold, found = objects(tmp_path / "g.jsonl", {"label": 1}, {"label": 0}), write(tmp_path / "p", "1\n1\n")
    assert scored(capsys, "classification", gold, found, "--positive", "1")["recall"] == 100
    texts = [{"text": "a", "label": label} for label in (1, 0)]
    own = objects(tmp_path / "own.jsonl", *texts)
    assert Classification.of(Classification.read(own)).labels == ("0", "1")
    choice = objects(tmp_path / "choice.jsonl", *(ITEMS["choice"] | {"label": label} for label in (1, 0)))
    again = objects(tmp_path / "again.jsonl", *(ITEMS["choice"] | {"label": label} for label in ("1", "0")))
    assert TASK_HEADS["choice"].read(choice) == TASK_HEADS["choice"].read(again)
    both = objects(tmp_path / "both.jsonl", *texts, {"text": "a", "label": "1"})
    says = 'line 3: both 1 and "1" are labels of this file; write the label in one of the two ways'
    assert says in refused(capsys, "classification", both, both)
    with pytest.raises(UnifiedError, match=says):
        Classification.read(both)
    empty = objects(tmp_path / "empty.jsonl", {"text": "a", "label": ""})
    assert "line 1: the field 'label' is empty" in refused(capsys, "classification", empty, empty)
    for label in (1.0, True, [1]):
        wrong = objects(tmp_path / "wrong.jsonl", {"text": "a", "label": label})
        assert "'label' must be a name or an integer, got" in refused(capsys, "classification", wrong, wrong)
        with pytest.raises(UnifiedError, match="'label' must be a name in quotes or an integer, got"):
            Classification.read(wrong)


def squad(*ids: object) -> dict:
    questions = [{"id": i, "question": "a", "answers": [{"text": "b", "answer_start": 0}]} for i in ids]
    return {"version": "1.1", "data": [{"title": "", "paragraphs": [{"context": "b", "qas": questions}]}]}


def mrqa(*ids: object) -> dict:
    return {"context": "b", "qas": [{"qid": i, "question": "a", "answers": ["b"]} for i in ids]}


def coqa(story: object, *turns: object) -> dict:
    questions = [{"input_text": "a", "turn_id": turn} for turn in turns]
    answers = [{"input_text": "b", "turn_id": turn} for turn in turns]
    return {"data": [{"id": story, "source": "cnn", "questions": questions, "answers": answers}]}


def test_questions_with_numbers_for_ids_find_their_predictions(tmp_path, capsys):
    """Names of a JSON object are always texts."""
    predictions = objects(tmp_path / "p.json", {"3": "b", "x": "c"})
    data = objects(tmp_path / "squad.json", squad(3, "x"))
    assert scored(capsys, "squad", data, predictions)["exact_match"] == 50
    assert scored(capsys, "mrqa", objects(tmp_path / "mrqa.jsonl", mrqa(3, "x")), predictions)["exact_match"] == 50
    for story, turn in ((7, 1), ("7", 1), (7, "1")):
        told = objects(tmp_path / "coqa.json", coqa(7, 1, 2))
        rows = [{"id": story, "turn_id": turn, "answer": "b"}]
        found = write(tmp_path / "c.json", json.dumps(rows))
        assert scored(capsys, "coqa", told, found)["overall"]["em"] == 50
    from unified.tasks.datasets.squad_json import read_squad_file

    assert [item.id for item in squad_items(read_squad_file(data))] == ["3", "x"]


def test_official_files_have_texts_or_integers_for_ids(tmp_path):
    sentence = {"token": ["a", "b"], "relation": "x"} | {
        f"{role}_{end}": i for i, role in enumerate(("subj", "obj")) for end in ("start", "end")
    } | {"subj_type": "A", "obj_type": "B"}  # fmt: skip
    dialogue = [["M: a"], [{"question": "b", "choice": ["c", "d"], "answer": "c"}]]
    tacred = write(tmp_path / "tacred.json", json.dumps([sentence | {"id": 5}, sentence, sentence | {"id": "x"}]))
    dream = write(tmp_path / "dream.json", json.dumps([[*dialogue, 5], [*dialogue, "x"]]))
    assert [item.id for item in read_tacred(tacred)] == ["5", "2", "x"]
    assert [item.id for item in read_dream(dream)] == ["5-0", "x-0"]
    for read, rows in ((read_tacred, [sentence | {"id": 1.5}]), (read_dream, [[*dialogue, None]])):
        with pytest.raises(UnifiedError, match="no id 'id', which is a text or an integer"):
            read(write(tmp_path / "wrong.json", json.dumps(rows)))


def nothing_in_common(folder: Path) -> dict[str, tuple[list, tuple[str, str]]]:
    """Kind of score -> arguments, and an example of each file that the refusal shows."""
    labels = objects(folder / "labels.jsonl", {"id": "a", "label": "yes"}, {"id": "b", "label": "none"})
    renamed = objects(folder / "renamed.jsonl", {"id": "a", "label": "TRUE"}, {"id": "b", "label": "none"})
    others = objects(folder / "others.jsonl", {"id": "a", "label": "TRUE"}, {"id": "b", "label": "FALSE"})
    zero = objects(folder / "zero.jsonl", {"id": 0, "label": "yes"}, {"id": 1, "label": "none"})
    tags, types = objects(folder / "t.jsonl", {"tags": ["B-PER"]}), objects(folder / "u.jsonl", {"tags": ["B-person"]})
    numbers = objects(folder / "n.jsonl", {"label": 1}), objects(folder / "m.jsonl", {"id": "x", "label": 1})
    answers = objects(folder / "a.json", {"q9": "b"})
    told = objects(folder / "c.json", coqa("s", 1))
    return {
        "ids": (["classification", labels, zero], ("'0'", "'a'")),
        "numbers": (["regression", *numbers], ("'x'", "'1'")),
        "labels": (["classification", labels, others], ("'TRUE'", "'yes'")),
        "relations": (["relation", labels, renamed, "--negative", "none"], ("'TRUE'", "'yes'")),
        "types": (["tagging", tags, types], ("'person'", "'PER'")),
        "squad": (["squad", objects(folder / "s.json", squad("q1")), answers], ("'q9'", "'q1'")),
        "mrqa": (["mrqa", objects(folder / "q.jsonl", mrqa("q1")), answers], ("'q9'", "'q1'")),
        "coqa": (
            ["coqa", told, write(folder / "d.json", '[{"id": "s", "turn_id": 0, "answer": "b"}]')],
            ("'s 0'", "'s 1'"),
        ),
    }


@pytest.mark.parametrize("case", ["ids", "numbers", "labels", "relations", "types", "squad", "mrqa", "coqa"])
def test_files_without_a_common_id_or_label_are_no_score_of_0(tmp_path, capsys, case):
    arguments, examples = nothing_in_common(tmp_path)[case]
    error = refused(capsys, *arguments)
    assert all(example in error for example in examples)


def test_predictions_that_say_two_things_of_one_id_are_refused(tmp_path, capsys):
    data = objects(tmp_path / "squad.json", squad("a"))
    twice = write(tmp_path / "twice.json", '{"a": "b", "a": "c"}')
    assert "twice.json: 'a' is in the file twice" in refused(capsys, "squad", data, twice)
    told = objects(tmp_path / "coqa.json", coqa("s", 1))
    rows = [{"id": "s", "turn_id": turn, "answer": "b"} for turn in (1, "1")]
    twice = write(tmp_path / "turns.json", json.dumps(rows))
    assert "prediction 2: turn 1 of story 's' was in the file before" in refused(capsys, "coqa", told, twice)
    line = objects(tmp_path / "line.jsonl", {"id": 2, "label": "x"}, {"label": "x"})
    assert "line 2: id '2' was in this file before" in refused(capsys, "classification", line, line)


def test_a_submission_takes_labels_as_texts_or_integers(tmp_path):
    files = []
    for name, row_of in (("texts", lambda i: (str(i), "1")), ("integers", lambda i: (i, 1))):
        rows = [dict(zip(("id", "label"), row_of(i), strict=True)) for i in range(146)]
        files.append(write_submission("WNLI", objects(tmp_path / f"{name}.jsonl", *rows), tmp_path / name).read_text())
    assert files[0] == files[1]
