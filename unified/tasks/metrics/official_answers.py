"""Predicted answers as the official programs of SQuAD, MRQA and CoQA read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def squad_files(predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """JSON by file name: objects by question; MRQA's program reads the first one, too.

    ``predictions.json`` has the answers, "" for none; ``nbest_predictions.json`` the lists of best answers with their
    probabilities. Where there may be no answer ``na_prob.json`` has the probability of that, and
    ``best_non_null.json`` the answers if there is one: with these two the official program searches the best threshold.
    """
    files: dict[str, Any] = {
        "predictions.json": {one["id"]: one["answer"] for one in predictions},
        "nbest_predictions.json": {one["id"]: one["nbest"] for one in predictions},
    }
    if any("no_answer" in one for one in predictions):
        files["na_prob.json"] = {one["id"]: one["no_answer"] for one in predictions}
        files["best_non_null.json"] = {one["id"]: one["best_non_null"]["text"] for one in predictions}
    return files


def coqa_files(predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """JSON by file name; nothing where an ``id`` is not a story and the number of a turn, as in CoQA's own data."""
    table = []
    for one in predictions:
        story, _, turn = one["id"].rpartition(" ")
        if not story or not turn.isdecimal():
            return {}
        table.append({"id": story, "turn_id": int(turn), "answer": one["answer"]})
    return {"predictions.json": table}
