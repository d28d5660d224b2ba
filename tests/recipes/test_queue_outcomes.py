"""Outcomes of single items in lines of the queue: what a run leaves, and two systems on the same items."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.recipes.test_queue import QUEUE, Queue
from tests.recipes.test_recipes import load
from tests.support.queue_lines import queue_line
from unified.errors import UnifiedError
from unified.tasks.metrics.classification import score_classification
from unified.tasks.metrics.squad import score_squad_v1


def module(name: str) -> ModuleType:
    """A module of the queue; tables.py first makes all of them known by their names."""
    load(QUEUE.with_name("tables.py"))
    return load(QUEUE.with_name(f"{name}.py"))


PLAN = """
from entries import Entry, Figures

rows = [{"good": -1.0, "bad": -2.0}, {"good": -2.5, "bad": -1.0}, {"good": -3.0, "bad": -3.0}]
script = f"import json, os; os.mkdir('both'); rows = {rows!r}; " \\
    "open('both/examples.jsonl', 'w').writelines(json.dumps(row) + chr(10) for row in rows)"
ENTRIES = [
    Entry(name, "small", (("python", "-c", command),), (), outcomes=(Figures("pairs", "both/examples.jsonl", "both"),))
    for name, command in (("pairs", script), ("lacks", "pass"))
]
"""


def test_a_line_keeps_who_was_right(tmp_path):
    queue = Queue(tmp_path, PLAN)
    ended = queue.run()
    assert [line["outcomes"] for line in queue.lines("small")] == [{"both": "10="}]
    assert "examples.jsonl: missing; the run should have left the scores of its items there" in ended.stdout


def test_outcomes_decide_no_recipe():
    """A plan that keeps outcomes now leaves lines from before as they are."""
    entries, objectives = module("entries"), module("objectives")
    one = entries.Entry("one", "small", (("python",),), ())
    other = entries.Entry("one", "small", (("python",),), (), outcomes=(entries.Figures("pairs", "examples.jsonl"),))
    assert entries.Plan([one]).recipes == entries.Plan([other]).recipes
    unilm = next(one for one in objectives.SYSTEMS if one.name == "unilm")
    pairs, perplexity = (objectives.evaluation(unilm, 1, what) for what in ("minimal-pairs", "perplexity"))
    assert {place.prefix for place in pairs.outcomes} == {place.prefix for place in pairs.figures} == {*unilm.scorings}
    assert perplexity.outcomes == ()
    for task in objectives.TASKS:
        (place,) = objectives.finetuning(unilm, 1, task).outcomes
        assert place.kind == ("answers" if task == "squad1.1" else "classes")


def test_a_fine_tuning_keeps_gold_and_predicted_classes(tmp_path):
    """Items and predictions are matched by their ids; F1 is that of the second class, as MRPC has it."""
    outcomes, kinds = module("outcomes"), module("outcomes").KINDS
    rng = np.random.default_rng(5)
    gold, predicted = (rng.choice(["no", "yes"], size=300, p=[0.3, 0.7]).tolist() for _ in range(2))
    order = rng.permutation(300).tolist()
    write_run(
        tmp_path,
        [{"id": str(number), "text": "a", "label": label} for number, label in enumerate(gold)],
        [{"id": str(number), "label": predicted[number]} for number in order],
    )
    text = outcomes.read_outcomes(tmp_path, [outcomes.Figures("classes", "run/predictions.valid.jsonl")])[""]
    assert text.split(" ")[:2] == [f"{int(gold[n] == 'yes')}{int(predicted[n] == 'yes')}" for n in (0, 1)]
    wanted = score_classification(gold, predicted, positive="yes")
    found = kinds["classes"].examples(text).measures()
    assert {name: found[name] for name in ("accuracy", "matthews", "f1")} == pytest.approx(
        {name: wanted[name] for name in ("accuracy", "matthews", "f1")}
    )
    write_run(
        tmp_path,
        [{"id": str(number), "text": "a", "label": f"c{number}"} for number in range(11)],
        [{"id": str(number), "label": f"c{number}"} for number in range(11)],
    )
    with pytest.raises(UnifiedError, match="11 classes; outcomes have one digit for each"):
        outcomes.read_outcomes(tmp_path, [outcomes.Figures("classes", "run/predictions.valid.jsonl")])


def test_a_fine_tuning_keeps_the_f1_of_each_answer(tmp_path):
    outcomes, context = module("outcomes"), "the red house on the hill"
    answers = {"a": ["red house"], "b": ["the hill", "hill on the"], "c": ["house"]}
    items = [
        {"id": key, "question": "?", "context": context, "answers": [{"text": text} for text in texts]}
        for key, texts in answers.items()
    ]
    predicted = {"c": "hill", "b": "on the hill", "a": "the red house on"}
    write_run(tmp_path, items, [{"id": key, "answer": text} for key, text in predicted.items()])
    text = outcomes.read_outcomes(tmp_path, [outcomes.Figures("answers", "run/predictions.valid.jsonl")])[""]
    assert text == "80 100 0"  # articles do not count
    wanted = score_squad_v1(answers, predicted)["f1"]
    assert outcomes.KINDS["answers"].examples(text).measures()["f1"] == pytest.approx(wanted, abs=0.005)


def write_run(folder: Path, items: list[dict[str, Any]], predictions: list[dict[str, Any]]) -> None:
    """What ``unified finetune --output run`` leaves of the validation items."""
    (folder / "run" / "data").mkdir(parents=True, exist_ok=True)
    for path, rows in (("data/valid.jsonl", items), ("predictions.valid.jsonl", predictions)):
        (folder / "run" / path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_the_interval_of_a_difference_is_a_paired_one():
    """Beside a plain paired bootstrap: seeds are averaged, and both systems have the same draws."""
    outcomes, rng = module("outcomes"), np.random.default_rng(3)
    points = {"1": 1.0, "0": 0.0, "=": 0.5}
    first = ["".join(rng.choice(["1", "0", "="], p=[0.6, 0.35, 0.05], size=400)) for _ in range(2)]
    # The second system answers as the first run does in nine of ten items.
    second = ["".join(one if rng.random() < 0.9 else "0" for one in first[0])]
    values = [np.mean([[points[one] for one in run] for run in runs], axis=0) for runs in (first, second)]
    above, (low, high) = outcomes.difference("pairs", "accuracy", first, second)
    assert above == pytest.approx(100 * (values[0] - values[1]).mean())
    draws = [100 * rng.choice(values[0] - values[1], 400).mean() for _ in range(4000)]
    assert [low, high] == pytest.approx(np.quantile(draws, (0.025, 0.975)).tolist(), abs=0.5)
    apart = np.sqrt(sum(value.var() for value in values) / 400) * 100 * 1.96
    assert high - low < 0.8 * 2 * apart  # not that of two systems with draws of their own
    with pytest.raises(UnifiedError, match="400 examples, but .*: 3"):
        outcomes.difference("pairs", "accuracy", first, ["101"])
    with pytest.raises(UnifiedError, match="example 2 is scored against '?0'?, but in the second against '?1'?"):
        outcomes.difference("classes", "accuracy", ["11 01"], ["11 11"])


def test_the_table_compares_on_the_same_pairs(tmp_path):
    tables, lines = module("tables"), module("lines")
    recipes = tables.Plan(tables.plan.ENTRIES).recipes
    outcomes = {
        "next_token-1": {"left_to_right": "0" * 400},
        "bert-1": {"pseudo_likelihood": "10" * 200},
        "xlnet-1": {"pseudo_likelihood": "10" * 150 + "11" * 50, "left_to_right": "1" * 400},
        "xlnet-2": {"pseudo_likelihood": "11" * 200, "left_to_right": "1" * 400},
    }
    for model, own in outcomes.items():
        name = f"objectives/{model}/minimal-pairs"
        figures = {f"{scoring}.accuracy": 100 * text.count("1") / len(text) for scoring, text in own.items()}
        lines.append_line(tmp_path, queue_line(name, "objectives", recipes[name], figures=figures, outcomes=own))
    figures = {"pseudo_likelihood.accuracy": 50.0}  # a line from before outcomes were kept
    name = "objectives/anna-1/minimal-pairs"
    lines.append_line(tmp_path, queue_line(name, "objectives", recipes[name], figures=figures))
    text = tables.section("objectives", tmp_path).split("On the same minimal pairs, in points of accuracy:")[1]
    rows = {tuple(cells[:2]): cells[2:] for row in text.splitlines() if (cells := row.strip("| ").split(" | "))}
    heads = rows["objective", "scoring"]
    assert heads == ["ahead of next_token", "ahead of bert"]  # no untrained model has outcomes
    # A quarter of the pairs more with the first seed and half of them with the second.
    above, low, high = map(float, re.findall(r"[-+][\d.]+", rows["xlnet", "pseudo_likelihood"][1]))
    assert above == 31.2 and 27 < low < above < high < 36
    assert rows["xlnet", "left_to_right"][0] == "+100.0 [+100.0, +100.0]"
    (beside,) = rows["bert", "pseudo_likelihood"]  # it is not compared with itself
    assert beside.startswith("+50.0 [+45.")
    assert rows["xlnet", "left_to_right"][1].startswith("+50.0 [")
    assert "anna" not in text  # it was scored before lines had outcomes


def test_the_table_compares_fine_tunings_on_the_same_items(tmp_path):
    """Each beside the untrained model; a mean over seeds; a task that one of the two lacks is empty."""
    tables, lines = module("tables"), module("lines")
    recipes = tables.Plan(tables.plan.ENTRIES).recipes
    right, wrong, none = "11 00 11 00", "10 01 10 01", "11 01 11 01"
    outcomes = {
        "untrained-1/sst2": " ".join([none] * 50),
        "bert-1/sst2": " ".join([right] * 50),
        "bert-2/sst2": " ".join([right] * 40 + [wrong] * 10),
        "bert-1/cola": " ".join([right] * 50),
        "xlnet-1/squad1.1": "50 100",
        "untrained-1/squad1.1": "0 40",
    }
    for run, text in outcomes.items():
        name = f"objectives/{run}"
        figures = {f"valid.{measure}": 50.0 for measure in set(tables.objectives.MEASURES.values())}
        line = queue_line(name, "objectives", recipes[name], figures=figures, outcomes={"": text})
        lines.append_line(tmp_path, line)
    # A line from before outcomes were kept.
    name = "objectives/anna-1/sst2"
    lines.append_line(tmp_path, queue_line(name, "objectives", recipes[name], figures=figures))
    text = tables.section("objectives", tmp_path).split("in points ahead of untrained:")[1].split("\n\n")[1]
    rows = {
        cells[0]: cells[1:] for row in text.splitlines() if (cells := [one.strip() for one in row.split("|")[1:-1]])
    }
    assert rows.keys() == {"objective", "---", "bert", "xlnet"}
    assert rows["objective"] == ["cola", "rte", "mrpc", "sst2", "squad1.1"]
    assert [bool(cell) for cell in rows["bert"]] == [False, False, False, True, False]
    above, low, high = map(float, re.findall(r"[-+][\d.]+", rows["bert"][3]))
    assert above == 40.0 and 30 < low < above < high < 50  # all of the half that is wrong, less a tenth of all
    assert rows["xlnet"][4].startswith("+55.0 [")


def test_the_table_compares_over_seeds(tmp_path):
    """Intervals are those of Welch's test; a model of one seed is left out."""
    tables, lines = module("tables"), module("lines")
    recipes = tables.Plan(tables.plan.ENTRIES).recipes
    scores = {
        ("next_token", "minimal-pairs", "left_to_right.accuracy"): [58.0, 60.0, 59.5],
        ("xlnet", "minimal-pairs", "pseudo_likelihood.accuracy"): [51.0, 52.5],
        ("xlnet", "minimal-pairs", "left_to_right.accuracy"): [53.0, 53.5],
        ("bert", "minimal-pairs", "pseudo_likelihood.accuracy"): [54.0],
        ("untrained", "squad1.1", "valid.f1"): [14.0, 15.0],
        ("xlnet", "squad1.1", "valid.f1"): [18.0, 18.5],
    }
    figures: dict[str, dict[str, float]] = {}
    for (model, what, figure), values in scores.items():
        for seed, value in enumerate(values, start=1):
            figures.setdefault(f"objectives/{model}-{seed}/{what}", {})[figure] = value
    for name, own in figures.items():
        lines.append_line(tmp_path, queue_line(name, "objectives", recipes[name], figures=own))
    text = tables.section("objectives", tmp_path).split("two or more, in points:")[1]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines() if row.startswith("|")]
    assert rows[0] == ["objective", "score", "ahead of next_token", "ahead of untrained"]

    def wanted(one: tuple[str, str, str], other: tuple[str, str, str]) -> str:
        found = stats.ttest_ind(scores[one], scores[other], equal_var=False)
        low, high = found.confidence_interval(0.95)
        return f"{np.mean(scores[one]) - np.mean(scores[other]):+.1f} [{low:+.1f}, {high:+.1f}]"

    next_token, by_likelihood, from_left, _, untrained, answers = scores
    assert rows[2:] == [
        ["xlnet", "minimal pairs, pseudo_likelihood", wanted(by_likelihood, next_token), ""],
        ["xlnet", "minimal pairs, left_to_right", wanted(from_left, next_token), ""],
        ["xlnet", "squad1.1", "", wanted(answers, untrained)],
    ]


def test_the_table_compares_settings_of_fine_tuning(tmp_path):
    tables, lines = module("tables"), module("lines")
    recipes = tables.Plan(tables.plan.ENTRIES).recipes

    def add(name: str, score: float, text: str) -> None:
        figures = {f"valid.{measure}": score for measure in set(tables.objectives.MEASURES.values())}
        line = queue_line(name, "objectives", recipes[name], figures=figures, outcomes={"": text} if text else {})
        lines.append_line(tmp_path, line)

    add("objectives/bert-1/sst2", 70.0, "11 00")
    assert "other settings" not in tables.section("objectives", tmp_path)
    add("objectives/untrained-1/sst2", 60.0, "")  # from before outcomes were kept
    add("objectives/bert-1/sst2/1e-4", 75.0, "11 00 11 00")
    add("objectives/untrained-1/sst2/1e-4", 50.0, "11 01 11 01")
    add("objectives/bert-1/mrpc/2e-4-10-epochs", 81.0, "11 00")
    text = tables.section("objectives", tmp_path).split("other settings, seed 1:")[1]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines() if row.startswith("|")]
    assert rows[0] == ["task", "measure", "learning rate (5e-4 above)", "bert", "untrained", "difference"]
    assert rows[2] == ["sst2", "accuracy", "5e-4", "70.0", "60.0", "missing"]
    assert rows[3][:5] == ["sst2", "accuracy", "1e-4", "75.0", "50.0"] and rows[3][5].startswith("+50.0 [")
    assert ["mrpc", "f1", "2e-4, 10 epochs", "81.0", "missing", "missing"] in rows


def test_kept_outcomes_have_the_accuracies_of_their_lines():
    """Accuracy of pairs is the mean over paradigms, which have as many pairs each, so that it is that over pairs."""
    lines, outcomes, objectives, kept = module("lines"), module("outcomes"), module("objectives"), 0
    results = QUEUE.with_name("results")
    for path in results.glob("*.jsonl"):
        for line in lines.read_lines(results, path.stem):
            for scoring, text in line["outcomes"].items():
                kept += 1
                task = line["settings"]["what"]
                if task in objectives.TASKS:
                    kind, measure, figure = objectives.OUTCOMES[task], objectives.MEASURES[task], "valid"
                else:
                    kind, measure, figure = "pairs", "accuracy", scoring
                found = outcomes.KINDS[kind].examples(text).measures()[measure]
                rounded = 0.005 if kind == "answers" else 1e-5
                assert found == pytest.approx(line["figures"][f"{figure}.{measure}"], abs=rounded), line["name"]
    assert kept
