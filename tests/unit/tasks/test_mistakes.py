"""Samples and tables of mistakes, from files of items and predictions."""

import json
import random

import pytest

from unified.errors import UnifiedError
from unified.tasks.mistakes import Answered


def answered(folder, items: list[dict], predictions: list[dict]) -> Answered:
    for name, rows in (("items", items), ("predictions", predictions)):
        text = "".join(json.dumps({"id": str(i), **row}) + "\n" for i, row in enumerate(rows))
        (folder / name).write_text(text, encoding="utf-8")
    return Answered("task", folder / "items", folder / "predictions")


def test_a_confusion_matrix_counts_every_pair_of_labels(tmp_path):
    rng = random.Random(3)
    gold, said = ([rng.choice("abc") for _ in range(60)] for _ in range(2))
    found = answered(tmp_path, [{"text": "x", "label": one} for one in gold], [{"label": one} for one in said])
    [table] = found.mistakes(rng)
    assert table.header == ("right \\ model", "a", "b", "c")
    for row in table.rows:
        expected = [sum((g, s) == (row[0], other) for g, s in zip(gold, said, strict=True)) for other in "abc"]
        assert [int(cell) for cell in row[1:]] == expected
    assert [row[0] for row in table.rows] == ["a", "b", "c"]


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_texts_may_hold_what_python_takes_for_the_end_of_a_line(tmp_path, character):
    for name in ("items", "predictions"):
        rows = [{"id": str(i), "text": f"a{character}b", "label": "x"} for i in range(2)]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = Answered("task", tmp_path / "items", tmp_path / "predictions")
    assert [one["text"] for one in found.items] == [f"a{character}b"] * 2


def test_many_labels_give_the_most_frequent_confusions_and_tags_count_words(tmp_path):
    gold = [f"l{i}" for i in range(30)] + ["l1"] * 3
    found = answered(tmp_path, [{"label": one} for one in gold], [{"label": "l2"} for _ in gold])
    [table] = found.mistakes(random.Random(1))
    assert table.rows[0] == ("l1", "l2", "4") and len(table.rows) == 20 and ("l2", "l2", "1") not in table.rows
    items = [{"words": ["a", "b"], "tags": ["O", "B"]}, {"words": ["c"], "tags": ["O"]}]
    [table] = answered(tmp_path, items, [{"tags": ["O", "O"]}, {"tags": ["B"]}]).mistakes(random.Random(1))
    assert table.rows == [("B", "0", "1"), ("O", "1", "1")]


def test_numbers_show_the_largest_errors_and_answers_those_that_are_wrong(tmp_path):
    items = [{"text": "x", "label": float(i)} for i in range(30)]
    found = answered(tmp_path, items, [{"label": i + (-1) ** i * i / 10} for i in range(30)])
    [table] = found.mistakes(random.Random(1))
    assert [row[0] for row in table.rows[:3]] == ["29", "28", "27"] and len(table.rows) == 20
    items = [{"question": "q", "answers": [{"text": "Anna"}, {"text": "Berg"}]}, {"question": "q", "answers": ["Rome"]}]
    found = answered(tmp_path, items, [{"answer": "Berg"}, {"answer": "rome"}])
    [table] = found.mistakes(random.Random(1))
    assert [row[0] for row in table.rows] == ["1"] and table.note == "1 of 2 items"
    assert [sample.right for sample in found.samples(9, random.Random(1))] == [True, False]
    assert found.samples(9, random.Random(1))[0].fields["right answer"] == "Anna | Berg"
    nothing = answered(tmp_path, [{"question": "q", "answers": []}] * 2, [{"answer": ""}, {"answer": "Rome"}])
    assert [sample.right for sample in nothing.samples(2, random.Random(1))] == [True, False]


def test_a_text_is_right_word_by_word_or_nobody_knows(tmp_path):
    items = [{"source": "s", "target": "a b", "references": ["a b", "c"]}, {"source": "s", "target": "a b"}]
    found = answered(tmp_path, items, [{"text": "c"}, {"text": "b a"}])
    assert [sample.right for sample in found.samples(2, random.Random(1))] == [True, None]
    [table] = found.mistakes(random.Random(1))
    assert table.rows == [("1", "a b", "b a")]


def test_samples_are_drawn_by_the_seed_and_show_item_and_answer(tmp_path):
    items = [{"text": f"text {i} " + "long " * 200, "second": None, "label": "a"} for i in range(50)]
    found = answered(tmp_path, items, [{"label": "ab"[i % 2]} for i in range(50)])
    first, again, other = (found.samples(5, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again != other
    for sample in first:
        assert list(sample.fields) == ["text", "right answer", "model"] and len(sample.fields["text"]) < 420
        number = int(sample.fields["text"].split()[1])
        assert sample.right == (number % 2 == 0) and sample.fields["model"] == "ab"[number % 2]


def test_predictions_of_other_items_are_refused(tmp_path):
    with pytest.raises(UnifiedError, match="predictions: not the predictions of .*items; score the run anew"):
        answered(tmp_path, [{"label": "a"}], [])


@pytest.mark.parametrize("labels", [["a", 2.5], [2.5, "a"]])
def test_labels_and_numbers_in_one_file_of_predictions_are_refused(tmp_path, labels):
    with pytest.raises(UnifiedError, match="predictions, line 2: 'label' must be"):
        answered(tmp_path, [{"label": "a"}] * 2, [{"label": label} for label in labels])
