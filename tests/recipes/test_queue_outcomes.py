"""Outcomes of single items in lines of the queue: what a run leaves, and two systems on the same items."""

from __future__ import annotations

import re
from types import ModuleType

import numpy as np
import pytest

from tests.recipes.test_queue import QUEUE, Queue
from tests.recipes.test_recipes import load
from tests.support.queue_lines import queue_line
from unified.errors import UnifiedError


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


def test_the_interval_of_a_difference_is_a_paired_one():
    """Beside a plain paired bootstrap: seeds are averaged, and both systems have the same draws."""
    outcomes, rng = module("outcomes"), np.random.default_rng(3)
    points = {"1": 1.0, "0": 0.0, "=": 0.5}
    first = ["".join(rng.choice(["1", "0", "="], p=[0.6, 0.35, 0.05], size=400)) for _ in range(2)]
    # The second system answers as the first run does in nine of ten items.
    second = ["".join(one if rng.random() < 0.9 else "0" for one in first[0])]
    values = [np.mean([[points[one] for one in run] for run in runs], axis=0) for runs in (first, second)]
    above, (low, high) = outcomes.difference(first, second)
    assert above == pytest.approx(100 * (values[0] - values[1]).mean())
    draws = [100 * rng.choice(values[0] - values[1], 400).mean() for _ in range(4000)]
    assert [low, high] == pytest.approx(np.quantile(draws, (0.025, 0.975)).tolist(), abs=0.5)
    apart = np.sqrt(sum(value.var() for value in values) / 400) * 100 * 1.96
    assert high - low < 0.8 * 2 * apart  # not that of two systems with draws of their own
    with pytest.raises(UnifiedError, match="400 examples, but .*: 3"):
        outcomes.difference(first, ["101"])


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


def test_kept_outcomes_have_the_accuracies_of_their_lines():
    """Accuracy is the mean over paradigms, which have as many pairs each, so that it is that over pairs."""
    lines, outcomes, kept = module("lines"), module("outcomes"), 0
    results = QUEUE.with_name("results")
    for path in results.glob("*.jsonl"):
        for line in lines.read_lines(results, path.stem):
            for scoring, text in line["outcomes"].items():
                kept += 1
                found = outcomes.scored(text).measures()["accuracy"]
                assert found == pytest.approx(line["figures"][f"{scoring}.accuracy"], abs=1e-5), line["name"]
    assert kept
