"""Samples of answers beside the right ones, and tables of mistakes, from files of items and predictions."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from unified.errors import UnifiedError
from unified.reports.run_page import Sample, Table
from unified.tasks.heads import Choice
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.items import write_items
from unified.tasks.mistakes import Answered


def answered(folder: Path, items: list[dict], predictions: list[dict]) -> Answered:
    """Rows are numbered where they have no id."""
    for name, rows in (("items", items), ("predictions", predictions)):
        text = "".join(json.dumps({"id": str(i), **row}) + "\n" for i, row in enumerate(rows))
        (folder / name).write_text(text, encoding="utf-8")
    return Answered("mine", folder / "items", folder / "predictions")


def one(folder: Path, item: dict, prediction: dict) -> Sample:
    [sample] = answered(folder, [item], [prediction]).samples(1, random.Random(1))
    return sample


# ---------------------------------------------------------------- multiple choice


@torch.no_grad()
def test_answers_of_multiple_choice_are_numbers(tmp_path):
    """Items and predictions as the head writes them."""
    codec, task = runs.codec(32), Choice()
    items = [ChoiceItem(str(i), "w1 w2", ("w3", "w4", "w5 w6"), "w7", i % 3) for i in range(9)]
    encoded = task.encode(items, codec)
    order, scores, reading = runs.run_batch(
        runs.small_model(task, codec), encoded, np.arange(len(encoded.examples)), packed=True
    )
    predictions = task.predict(items, encoded, order, scores, reading)
    write_items(tmp_path / "items", items)
    (tmp_path / "predictions").write_text("".join(json.dumps(row) + "\n" for row in predictions))
    found = Answered("race", tmp_path / "items", tmp_path / "predictions")
    labels = sorted({str(item.label) for item in items})
    [table] = found.mistakes(random.Random(1))
    assert table.header == ("right \\ model", *labels)
    right = sum(item.label == row["label"] for item, row in zip(items, predictions, strict=True))
    assert sum(int(row[1 + i]) for i, row in enumerate(table.rows)) == right
    sample, *_ = found.samples(9, random.Random(1))
    assert sample.fields == {
        "context": "w1 w2", "choices": "w3 | w4 | w5 w6", "question": "w7", "right answer": "0",
        "model": str(predictions[0]["label"]),
    }  # fmt: skip
    assert sample.right == (predictions[0]["label"] == 0)


# ---------------------------------------------------------------- what is right


@pytest.mark.parametrize(
    ("item", "prediction", "right", "shown"),
    [
        ({"label": "a"}, {"label": "a"}, True, "a"),
        ({"label": "a"}, {"label": "b"}, False, "a"),
        ({"label": None}, {"label": "b"}, None, ""),
        ({"label": 2.0}, {"label": 2.0}, None, "2"),
        ({"label": 1.23456}, {"label": 0.5}, None, "1.235"),
        ({"tags": ["O", "B"]}, {"tags": ["O", "B"]}, True, "O B"),
        ({"tags": ["O", "B"]}, {"tags": ["B", "B"]}, False, "O B"),
        ({}, {"tags": ["B", "B"]}, None, ""),
        ({"answers": ["x", {"text": "y"}, "x"]}, {"answer": "y"}, True, "x | y"),
        ({"answers": ["x"]}, {"answer": "X"}, False, "x"),
        ({"answers": []}, {"answer": ""}, True, ""),
        ({"answers": []}, {"answer": "x"}, False, ""),
        ({"answers": None}, {"answer": "x"}, None, ""),
        ({"answers": [], "choice": "yes"}, {"answer": "yes"}, True, "yes"),
        ({"answers": [], "choice": "yes"}, {"answer": "no"}, False, "yes"),
        ({"answers": ["x"], "references": ["y", "z"]}, {"answer": "z"}, True, "y | z"),
        ({"answers": ["x"], "choice": "yes", "references": ["Yes."]}, {"answer": "yes"}, True, "Yes."),
        ({"answers": ["x"], "choice": "yes", "references": ["Yes."]}, {"answer": "x"}, False, "Yes."),
        ({"answers": ["2"]}, {"answer": 2.0}, None, "2"),
        ({"target": "x"}, {"text": "x"}, True, "x"),
        ({"target": "x"}, {"text": "y"}, None, "x"),
        ({"references": ["y", "z"], "target": "x"}, {"text": "z"}, True, "y | z"),
        ({"references": ["y", "z"], "target": "x"}, {"text": "x"}, None, "y | z"),
        ({"references": None, "target": "x"}, {"text": "x"}, True, "x"),
        ({}, {"text": "x"}, None, ""),
        ({"chains": [[[0, 1]]]}, {"chains": [[[0, 1]]]}, None, "[[[0, 1]]]"),
        ({"label": "a"}, {"number": 3}, None, ""),
    ],
)  # fmt: skip
def test_a_prediction_is_right_wrong_or_nobody_knows(tmp_path, item, prediction, right, shown):
    sample = one(tmp_path, item, prediction)
    assert sample.right is right and sample.fields["right answer"] == shown


def test_a_sample_shows_what_is_there_in_order_and_the_answer_last(tmp_path):
    item = {"second": None, "words": ["a", "b"], "count": 3, "label": "x", "more": {"é": [1]}, "reference_group": "g"}
    sample = one(tmp_path, {**item, "share": 0.123456, "mixed": ["a", 1]}, {"label": "y", "probabilities": {"y": 1}})
    assert list(sample.fields.items()) == [
        ("words", "a b"), ("count", "3"), ("more", '{"é": [1]}'), ("share", "0.1235"), ("mixed", '["a", 1]'),
        ("right answer", "x"), ("model", "y"),
    ]  # fmt: skip
    # What another kind of prediction has is shown whole, but for the name of the item.
    sample = one(tmp_path, {"text": "a"}, {"number": 3, "more": "é"})
    assert list(sample.fields.items()) == [("text", "a"), ("right answer", ""), ("model", '{"number": 3, "more": "é"}')]
    assert one(tmp_path, {"answers": ["x"], "target": "t"}, {"answer": "x"}).fields["target"] == "t"
    assert "answers" not in one(tmp_path, {"answers": ["x"]}, {"answer": "x"}).fields


def test_long_texts_are_cut_and_say_so(tmp_path):
    for length, shown in ((400, "x" * 400), (401, "x" * 400 + " …")):
        assert one(tmp_path, {"text": "x" * length}, {"label": "a"}).fields["text"] == shown


def test_samples_are_in_the_order_of_the_items_and_all_are_enough(tmp_path):
    found = answered(tmp_path, [{"text": str(i), "label": "a"} for i in range(9)], [{"label": "a"}] * 9)
    drawn = [int(sample.fields["text"]) for sample in found.samples(5, random.Random(3))]
    assert drawn == sorted(random.Random(3).sample(range(9), 5)) and len(set(drawn)) == 5
    assert [sample.fields["text"] for sample in found.samples(20, random.Random(1))] == list("012345678")
    nothing = answered(tmp_path, [], [])
    assert nothing.field is None and nothing.samples(3, random.Random(1)) == []


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize(("count", "title"), [(24, "Confusion matrix: mine"), (25, "Most frequent confusions: mine")])
def test_up_to_24_labels_have_a_matrix_and_more_have_a_list(tmp_path, count, title):
    labels = [f"l{i:02}" for i in range(count)]
    items = [*({"label": label} for label in labels), {"label": None}]
    [table] = answered(tmp_path, items, [{"label": label} for label in [*labels, "l00"]]).mistakes(random.Random(1))
    assert table.title == title


def test_an_item_without_a_label_is_in_no_confusion_matrix(tmp_path):
    items = [{"label": "a"}, {"label": None}, {"label": "b"}]
    [table] = answered(tmp_path, items, [{"label": "a"}] * 3).mistakes(random.Random(1))
    assert (table.header, table.note) == (("right \\ model", "a", "b"), "a row for each right label")
    assert table.rows == [("a", "1", "0"), ("b", "1", "0")]


def test_a_confusion_matrix_counts_every_pair_of_labels(tmp_path):
    rng = random.Random(3)
    gold, said = ([rng.choice("abc") for _ in range(60)] for _ in range(2))
    found = answered(tmp_path, [{"text": "x", "label": one} for one in gold], [{"label": one} for one in said])
    [table] = found.mistakes(rng)
    pairs = list(zip(gold, said, strict=True))
    assert table.rows == [(one, *(str(pairs.count((one, other))) for other in "abc")) for one in "abc"]


@pytest.mark.parametrize(
    ("labels", "order"), [([10, 2, 9], ["2", "9", "10"]), (["b", "10", "a", "2"], ["2", "10", "a", "b"])]
)
def test_numbers_stand_in_their_order_and_in_front_of_names(tmp_path, labels, order):
    items = [{"label": label} for label in labels]
    [table] = answered(tmp_path, items, [{"label": labels[0]}] * len(labels)).mistakes(random.Random(1))
    assert table.header[1:] == tuple(order) and [row[0] for row in table.rows] == order


def test_of_many_labels_the_twenty_most_frequent_confusions_are_listed(tmp_path):
    """The label that the model always gives is right once, and no confusion then; of equal counts the first come."""
    labels = [f"l{i:02}" for i in range(25)]
    gold = [*labels, "l07", "l07", "l24"]
    [table] = answered(tmp_path, [{"label": one} for one in gold], [{"label": "l00"}] * 28).mistakes(random.Random(1))
    assert (table.header, table.note) == (("right", "model", "times"), "")
    others = [label for label in labels[1:] if label not in ("l07", "l24")]
    assert table.rows == [
        ("l07", "l00", "3"), ("l24", "l00", "2"), *((label, "l00", "1") for label in others[:18]),
    ]  # fmt: skip


def test_tags_are_compared_word_by_word(tmp_path):
    items = [{"tags": ["O", "B"]}, {"tags": None}, {"words": ["x"]}, {"tags": ["O"]}]
    predictions = [{"tags": tags} for tags in (["O", "O"], ["X"], ["X"], ["B"])]
    [table] = answered(tmp_path, items, predictions).mistakes(random.Random(1))
    assert table == Table("Confusion matrix: mine, tags of words", ("right \\ model", "B", "O"),
                          [("B", "0", "1"), ("O", "1", "1")], "a row for each right label")  # fmt: skip


def test_the_largest_errors_of_numbers_come_first(tmp_path):
    rng = random.Random(2)
    gold = [rng.uniform(-5, 5) for _ in range(25)]
    said = [rng.uniform(-5, 5) for _ in range(25)]
    items = [{"label": value} for value in gold] + [{"label": None}]
    [table] = answered(tmp_path, items, [*({"label": value} for value in said), {"label": 99.0}]).mistakes(rng)
    order = sorted(range(25), key=lambda i: abs(gold[i] - said[i]), reverse=True)
    assert table == Table(
        "mine, largest errors",
        ("item", "right", "model"),
        [(str(i), f"{gold[i]:.4g}", f"{said[i]:.4g}") for i in order[:20]],
    )


def test_of_many_wrong_answers_twenty_are_drawn(tmp_path):
    items = [{"answers": ["a", "b"] if i % 2 else ["c"]} for i in range(60)]
    found = answered(tmp_path, items, [{"answer": "a"}] * 60)
    [table] = found.mistakes(random.Random(4))
    assert table.title == "mine, answers that are not the right one word by word"
    assert (table.header, table.note) == (("item", "right", "model"), "30 of 60 items")
    wrong = [(str(i), "c", "a") for i in range(0, 60, 2)]
    assert table.rows == random.Random(4).sample(wrong, 20)
    [table] = answered(tmp_path, [{"chains": [[[0, 0]]]}], [{"chains": []}]).mistakes(random.Random(4))
    assert table.rows == [("0", "[[[0, 0]]]", "")] and table.note == "1 of 1 item"
    thousand = answered(tmp_path, [{"target": "a"}] * 1000, [{"text": "b"}] * 1000)
    assert thousand.mistakes(random.Random(4))[0].note == "1,000 of 1,000 items"


def test_answers_of_another_kind_have_samples_and_no_table(tmp_path):
    found = answered(tmp_path, [{"text": "a"}, {"text": "b"}], [{"number": 3}, {"number": 4}])
    assert found.field is None and found.mistakes(random.Random(1)) == []
    assert [sample.fields["model"] for sample in found.samples(2, random.Random(1))] == [
        '{"number": 3}',
        '{"number": 4}',
    ]


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("items", "predictions", "says"),
    [
        ([{}] * 2, [{"label": "a"}, {}], "predictions, line 2: 'label' is missing"),
        ([{}], [{"label": None}], "predictions, line 1: 'label' must be a text or an integer"),
        ([{}] * 2, [{"label": "a"}, {"label": 0.5}], "predictions, line 2: 'label' must be a text or an integer"),
        ([{}] * 2, [{"label": 0.5}, {"label": "a"}], "predictions, line 2: 'label' must be a number"),
        ([{}], [{"tags": "O"}], "predictions, line 1: 'tags' must be a list or null"),
        ([{}], [{"tags": [3]}], "predictions, line 1: a member of 'tags' must be a text"),
        ([{}], [{"answer": []}], "predictions, line 1: 'answer' must be a text or a number or null"),
        ([{}], [{"text": 3}], "predictions, line 1: 'text' must be a text or null"),
        ([{}], [{"chains": "x"}], "predictions, line 1: 'chains' must be a list or null"),
        ([{"label": "a"}], [{"label": 0.5}], "items, line 1: 'label' must be a number or null"),
        ([{"label": []}], [{"label": "a"}], "items, line 1: 'label' must be a text or a number or null"),
        ([{"tags": ["a", 3]}], [{"label": "a"}], "items, line 1: a member of 'tags' must be a text"),
        ([{"answers": "x"}], [{"answer": "a"}], "items, line 1: 'answers' must be a list or null"),
        ([{"answers": [3]}], [{"answer": "a"}], "items, line 1: a member of 'answers' must be a text or an object"),
        ([{"answers": [{}]}], [{"answer": "a"}], "items, line 1: 'text' of a member of 'answers' is missing"),
        ([{"choice": 3}], [{"answer": "a"}], "items, line 1: 'choice' must be a text or null"),
        ([{"references": "x"}], [{"text": "a"}], "items, line 1: 'references' must be a list or null"),
        ([{"references": [1]}], [{"text": "a"}], "items, line 1: a member of 'references' must be a text"),
        ([{"target": ["x"]}], [{"text": "a"}], "items, line 1: 'target' must be a text or null"),
        ([{"chains": 3}], [{"chains": []}], "items, line 1: 'chains' must be a list or null"),
    ],
)  # fmt: skip
def test_values_of_another_kind_are_refused(tmp_path, items, predictions, says):
    with pytest.raises(UnifiedError) as raised:
        answered(tmp_path, items, predictions)
    assert str(raised.value) == f"{tmp_path}/{says}"


def test_a_prediction_has_a_tag_for_each_word_of_its_item(tmp_path):
    items = [{"tags": ["O"]}, {"tags": ["O", "B"]}]
    for tags in (["O"], ["O", "B", "B"]):
        with pytest.raises(UnifiedError) as raised:
            answered(tmp_path, items, [{"tags": ["O"]}, {"tags": tags}])
        assert raised.value.details == (
            f"{tmp_path}/predictions, line 2: 'tags' must be one for each word of the item, 2, got {len(tags)}"
        )


@pytest.mark.parametrize("ids", [["b", "a"], [None, "a"], ["a"], ["a", "b", "c"]])
def test_items_and_predictions_have_the_same_ids_in_order(tmp_path, ids):
    with pytest.raises(UnifiedError) as raised:
        answered(tmp_path, [{"id": "a"}, {"id": "b"}], [{"id": name, "label": "x"} for name in ids])
    assert raised.value.details == (
        f"{tmp_path}/predictions: not the predictions of {tmp_path}/items; score the run anew"
    )


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_texts_may_hold_what_python_takes_for_the_end_of_a_line(tmp_path, character):
    for name in ("items", "predictions"):
        rows = [{"id": str(i), "text": f"a{character}b", "label": "x"} for i in range(2)]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = Answered("task", tmp_path / "items", tmp_path / "predictions")
    assert [one["text"] for one in found.items] == [f"a{character}b"] * 2
