"""Samples and tables of mistakes of each kind of task, at their edges."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import torch

from tests.support import understanding_runs as runs
from unified.reports.run_page import Sample
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
        "context": "w1 w2", "choices": "w3 w4 w5 w6", "question": "w7", "right answer": "0",
        "model": str(predictions[0]["label"]),
    }  # fmt: skip
    assert sample.right == (predictions[0]["label"] == 0)
