"""The comparison of fine-tuning with transformers over the items of each task, by the commands of the plan."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.recipes.test_recipes import load
from unified.cli import main

QUEUE = Path(__file__).resolve().parents[2] / "recipes" / "queue"
TASKS = ("cola", "wnut17", "stsb", "mrpc", "rte", "codah", "semeval2010", "squad2.0")
#: Two answers of each type. Ours gives the second of four examples its right answer, the peer does not.
PARITY_ROWS = {
    "tagging": ({"tags": ["B-person", "O"]}, {"tags": ["O", "O"]}),
    "regression": ({"label": 0.5}, {"label": 0.25}),
    "classification": ({"label": "1"}, {"label": "0"}),
    "choice": ({"label": 1}, {"label": 0}),
    "relation": ({"label": "A-B(e1,e2)"}, {"label": "Other"}),
}


@pytest.mark.parametrize("task", TASKS)
def test_both_sides_of_parity_are_compared_by_the_measure_of_the_table(tmp_path, capsys, task):
    """The command of the plan itself, on small files in the places of those that the runs leave."""
    tables = load(QUEUE / "tables.py")
    parity = tables.parity
    entry = parity.compared(task)
    (command,) = entry.commands
    paths = {word: tmp_path / word.strip("{").replace("}", "") for word in command if word.startswith("{")}
    kind = command[2]
    for word, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        ours, seed = "/ours-" in word, int(re.search(r"-(\d)}", word)[1])
        if kind == "squad":
            answers = [["x"], ["y"], [], []]
            questions = [{"id": str(i), "question": "?", "answers": [{"text": t, "answer_start": 0} for t in own],
                          "is_impossible": not own} for i, own in enumerate(answers)]  # fmt: skip
            gold = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "x y", "qas": questions}]}]}
            probabilities = dict(zip("0123", (0.1, 0.2 if ours else 0.95, 0.9, 0.8), strict=True))
            found = {"dev-v2.0.json": gold, "valid.na_prob.json": probabilities}
            path.write_text(json.dumps(found.get(path.name, {"0": "x", "1": "y", "2": "x", "3": "x"})))
        else:
            right, wrong = PARITY_ROWS[kind]
            gold = path.name == "valid.jsonl"
            rights = [True, ours or gold, False, not gold]
            rows = [{"id": str(i)} | (right if own else wrong) for i, own in enumerate(rights)]
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        assert seed in parity.SEEDS
    output = tmp_path / "compared.json"
    assert main([str(paths.get(word, output if word == "compared.json" else word)) for word in command[1:]]) == 0
    (figures,) = entry.figures
    found = load(QUEUE / "figures.py").read_figures(tmp_path, [figures])
    measure = parity.MEASURES[task]
    low, high = found[f"against.intervals.{measure}"]
    assert low <= found[f"against.differences.{measure}"] <= high and found[f"against.differences.{measure}"] > 0
    assert found["runs"] == len(parity.SEEDS)
    assert parity.TASKS == TASKS and entry.needs == tuple(f"parity/{task}-{seed}" for seed in parity.SEEDS)
    capsys.readouterr()
