"""Comparisons of two systems over the items of each task, by the commands of the plan."""

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


@pytest.mark.parametrize("task", ["squad_qg_sentence", "reuters", "aeslc", "scitldr"])
def test_who_writes_better_is_told_by_the_measures_of_the_table(tmp_path, capsys, task):
    """Ours writes the references, the others something else."""
    generation = load(QUEUE / "tables.py").generation
    entry = generation.beside(task, 1)
    texts = ["what is a fox ?", "who saw the red sea ?", "where is Paris now ?"]
    others = ["what is a fox ?", "who is it ?", "where is Paris ?"]
    for word in {word for command in entry.commands for word in command if word.startswith("{")}:
        path = tmp_path / word.strip("{").replace("}", "")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
            continue
        rows = [{"id": str(i), "text": text} for i, text in enumerate(texts if "/ours-" in word else others)]
        if path.parent.name == "items":
            rows = [{"id": str(i), "references": [text], "source": text} for i, text in enumerate(texts)]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    for command in entry.commands:
        words = [str(tmp_path / word.strip("{").replace("}", "")) if word.startswith("{") else word for word in command]
        assert main([*words[1:-1], str(tmp_path / words[-1])]) == 0
    found = load(QUEUE / "figures.py").read_figures(tmp_path, entry.figures)
    own = [row for row in generation.rows() if row.against and row.lines == (entry.name,)]
    assert {row.prefix for row in own} == {figures.prefix for figures in entry.figures} >= {"transformers"}
    for row in own:
        assert row.task == f"{task}, equal updates" and row.measures
        for measure in row.measures:
            low, high = found[f"{row.prefix}.against.intervals.{measure}"]
            assert low <= found[f"{row.prefix}.against.differences.{measure}"] <= high
        assert found[f"{row.prefix}.against.differences.rougeL"] > 0
    assert entry.needs == (f"generation/equal/{task}-1",)
    capsys.readouterr()
