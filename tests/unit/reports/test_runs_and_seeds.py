"""Differences in few words, runs of results, and scores over seeds."""

from __future__ import annotations

import json
import math
import random
import statistics

import pytest
import scipy.stats

from unified.reports.differences import Digest, canonical, described, differing, flat, short_paths
from unified.reports.result_runs import file_of, runs_of
from unified.reports.seeds import LEVEL, SeedScores, seed_scores


def test_settings_are_flat_without_what_says_nothing():
    settings = {"a": 0, "b": "", "c": {"d": {"e": True, "f": None}, "g": False}, "h": [], "i": {}}
    assert list(flat(settings).items()) == [("a", 0), ("b", ""), ("c d e", True), ("h", [])]
    assert flat({"x": 1, "y": {"z": 2}}, "p ") == {"p x": 1, "p y z": 2}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True), (1, 1.5, False), (1, "1", False), ({"a": 1, "b": 2.0}, {"b": 2, "a": 1.0}, True),
        ([1, 2], (1.0, 2.0), True), ([1, 2], [2, 1], False), ({"a": [1.0, {"b": 3.0}]}, {"a": [1, {"b": 3}]}, True),
        (None, False, False), ("é", "e", False), (0.1, 0.1 + 1e-16, False), (True, "true", False),
        (10**30, 1e30, False),
    ],
)  # fmt: skip
def test_values_are_the_same_where_they_are_in_json(one, other, same):
    assert (canonical(one) == canonical(other)) is same


def test_canonical_texts_are_json_that_can_be_read():
    value = {"b": [1.0, 2.5, "é"], "a": None}
    assert canonical(value) == '{"a": null, "b": [1, 2.5, "é"]}' and json.loads(canonical(value)) == value


def test_names_differ_in_the_order_in_which_they_occur():
    runs = [{"b": 1, "a": 1, "same": 2}, {"a": 2, "same": 2.0, "c": 3}]
    assert differing(runs) == ["b", "a", "c"] and differing(runs[:1]) == differing([]) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "no x"), (True, "x"), (3, "x 3"), (0.5, "x 0.5"), (2e-5, "x 2e-05"), (1 / 3, "x 0.3333333333333333"),
        (1e6, "x 1e+06"), ("a b", "x a b"), (Digest("abcdefgh"), "x abcdef"), ([1, "é"], 'x [1, "é"]'), (1.0, "x 1"),
    ],
)  # fmt: skip
def test_a_value_is_shown_in_few_words(value, said):
    assert described({"x": value}, ["x"]) == said


def test_several_values_are_shown_in_the_order_of_their_names():
    assert described({"a": 1, "b": 2}, ["b", "none", "a"]) == "b 2, no none, a 1" and described({"a": 1}, []) == ""


def test_a_hash_is_compared_whole_and_shown_by_its_beginning():
    assert Digest("abcdefgh").short == "abcdef" and Digest("abc").short == "abc"
    assert differing([{"x": Digest("abcdefgh")}, {"x": Digest("abcdefgi")}]) == ["x"]


def test_short_paths_are_ends_that_no_other_path_has_and_as_short_as_can_be():
    """Against a search through all ends."""
    rng = random.Random(2)
    for _ in range(100):
        paths = sorted({"/".join(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(5)})
        for path, short in short_paths(paths).items():
            parts = path.split("/")
            ends = ["/".join(parts[-n:]) for n in range(1, len(parts) + 1)]
            others = [other for other in paths if other != path]
            free = [end for end in ends if not any(f"/{other}".endswith(f"/{end}") for other in others)]
            assert short == (free[0] if free else path)
    assert short_paths([]) == {} and short_paths(["/a"]) == {"/a": "a"} and short_paths([""]) == {"": "."}


def result(seed=1, accuracy=90.0, run="ours", **changes) -> dict:
    fields = {
        "run": run, "seed": seed, "command": ["fairseq-train", "--save-dir", f"runs/{seed}"],
        "model": {"name": "models/bert", "sha256": "a" * 64}, "settings": {"lr": 1e-5, "fairseq": {"--dropout": "0.1"}},
        "data": {"train.jsonl": "1", "valid.jsonl": "2", "test.jsonl": "3", "other.jsonl": "4"},
        "scores": {"valid": {"accuracy": accuracy, "signature": "s"}, "test": {"accuracy": 1.0}},
        "versions": {"torch": "2"},
    }  # fmt: skip
    return fields | changes


def test_the_identity_of_a_run_is_all_but_the_seed_that_decides_its_scores():
    (run,) = runs_of([result(1), result(2)], "valid")
    assert list(run.identity.items()) == [
        ("model", "bert"), ("lr", 1e-5), ("fairseq --dropout", "0.1"), ("train.jsonl", "1"), ("valid.jsonl", "2"),
        ("signature", "s"), ("torch", "2"),
    ]  # fmt: skip
    assert isinstance(run.identity["train.jsonl"], Digest) and run.name == "ours" and len(run.results) == 2
    (run,) = runs_of([result(1)], "test")
    assert list(run.identity)[3:] == ["train.jsonl", "valid.jsonl", "test.jsonl", "torch"]
    (run,) = runs_of([result(1, data={"train.jsonl": "1"})], "test")
    assert list(run.identity)[3:] == ["train.jsonl", "torch"] and file_of("dev") == "dev.jsonl"


@pytest.mark.parametrize("name", ["train.jsonl", "valid.jsonl", "test.jsonl", "other.jsonl"])
@pytest.mark.parametrize("split", ["valid", "test"])
def test_items_of_other_splits_decide_nothing(name, split):
    other = result(2, data=result()["data"] | {name: "9"})
    decides = name in ("train.jsonl", "valid.jsonl", f"{split}.jsonl")
    assert len(runs_of([result(1), other], split)) == 1 + decides


def test_runs_have_the_order_of_their_first_results():
    results = [result(1, run="b"), result(1, run="a"), result(2, run="b"), result(1, run="b", settings={})]
    runs = runs_of(results, "valid")
    assert [(run.name, len(run.results)) for run in runs] == [("b", 2), ("a", 1), ("b", 1)] and runs_of(
        [], "valid"
    ) == []


def test_a_seed_counts_once_by_its_mean():
    results = [result(1, 90.0), result(2, 80.0), result(1, 94), result(3, 1.0, scores={"valid": {"accuracy": None}})]
    results[3]["scores"]["valid"]["signature"] = "s"
    (run,) = runs_of(results, "valid")
    assert run.scores("valid", "accuracy") == [92.0, 80.0] and run.scores("valid", "none") == []
    assert run.counts == {1: 2, 2: 1, 3: 1}


def test_where_models_are_the_seeds_each_counts_once_and_sizes_stay_apart():
    """Two models of one size, one of them with two seeds of its fine-tuning, and one of another size."""
    small, other, large = (
        {"name": f"models/{name}", "sha256": letter * 64, "layers": layers}
        for name, letter, layers in (("a", "a", 2), ("b", "b", 2), ("c", "c", 4))
    )
    results = [
        result(seed, accuracy, model=model)
        for seed, accuracy, model in ((1, 90.0, small), (2, 80.0, other), (2, 94.0, small), (1, 70.0, large))
    ]
    assert len(runs_of(results, "valid")) == 3  # models stay apart where they are not named as seeds
    two, one = runs_of(results, "valid", models_as_seeds=True)
    assert two.scores("valid", "accuracy") == [92.0, 80.0] and two.counts == {"a": 2, "b": 1}
    assert one.scores("valid", "accuracy") == [70.0] and two.models == ["a", "b", "a"]
    assert (two.identity["model's layers"], one.identity["model's layers"]) == (2, 4) and "model" not in two.identity
    # All else that decides scores keeps results apart, as it does among seeds.
    changed = result(1, 60.0, model=other, settings={"lr": 2e-5})
    assert len(runs_of([*results, changed], "valid", models_as_seeds=True)) == 3


def test_folders_are_those_that_commands_name():
    commands = [["x", "--save-dir", "a"], ["x"], ["--save-dir", 7, "--save-dir", "b"], ["x", "--save-dir"], []]
    (run,) = runs_of([result(seed, command=command) for seed, command in enumerate(commands)], "valid")
    assert run.folders == ["a", "7"]


def model_names(*models: dict) -> list[str]:
    return [run.identity["model"] for run in runs_of([result(1, model=model) for model in models], "valid")]


def test_models_are_named_by_as_much_as_tells_them_apart():
    one, two = "a" * 64, "b" * 64
    assert model_names({"name": "x/bert", "sha256": one}, {"name": "y/bert", "sha256": two}) == ["x/bert", "y/bert"]
    assert model_names({"name": "bert", "sha256": one}, {"name": "bert", "sha256": two}) == [
        "bert (aaaaaa)", "bert (bbbbbb)",
    ]  # fmt: skip
    hashes = ["a" * 9 + "x" * 55, "a" * 9 + "y" * 55]
    assert model_names(*({"name": "bert", "sha256": one} for one in hashes)) == [
        "bert (aaaaaaaaax)",
        "bert (aaaaaaaaay)",
    ]
    # Models with the same contents are called as in their first result, whatever their folder.
    assert model_names({"name": "x/bert", "sha256": one}, {"name": "copy", "sha256": one}) == ["bert"]
    # Without a hash, what is said of a model is its identity.
    unknown = [{"name": "hub", "sha256": None, "layers": layers} for layers in (2, 4)]
    assert len(set(model_names(*unknown))) == 2 and model_names(unknown[0], dict(unknown[0])) == ["hub"]


def test_an_interval_is_that_of_students_t():
    rng = random.Random(5)
    for count in (2, 3, 5, 30):
        values = [rng.gauss(80, 3) for _ in range(count)]
        scores = seed_scores(values)
        assert scores == SeedScores(tuple(values)) and scores.mean == statistics.mean(values)
        assert scores.deviation == pytest.approx(math.sqrt(sum((v - scores.mean) ** 2 for v in values) / (count - 1)))
        expected = scipy.stats.t.interval(0.95, count - 1, scores.mean, scipy.stats.sem(values))
        assert scores.interval == pytest.approx(expected, rel=1e-9)
    assert LEVEL == 0.95 and seed_scores([]) is None
    alone = seed_scores([3.0])
    assert (alone.mean, alone.deviation, alone.interval) == (3.0, None, None)
    assert seed_scores([2.0, 2.0]).interval == (2.0, 2.0)


def test_the_interval_of_a_difference_is_that_of_welch():
    rng = random.Random(6)
    for first, second in ((2, 2), (3, 3), (2, 9), (30, 3)):
        values = [[rng.gauss(80, spread) for _ in range(count)] for count, spread in ((first, 3), (second, 0.5))]
        own, other = map(seed_scores, values)
        ahead = own.ahead_of(other)
        assert ahead.mean == own.mean - other.mean
        expected = scipy.stats.ttest_ind(*values, equal_var=False).confidence_interval(0.95)
        assert ahead.interval == pytest.approx(tuple(expected), rel=1e-9)
        assert other.ahead_of(own).interval == pytest.approx((-expected.high, -expected.low), rel=1e-9)


def test_a_difference_without_spread_has_no_width_and_one_of_a_single_seed_no_interval():
    alone, equal, spread = seed_scores([3.0]), seed_scores([2.0, 2.0]), seed_scores([1e-170, 3e-170, 8e-170])
    assert equal.ahead_of(equal).interval == (0.0, 0.0) and alone.ahead_of(equal).mean == 1.0
    assert alone.ahead_of(equal).interval is None and equal.ahead_of(alone).interval is None
    assert seed_scores([math.inf, 1.0]).ahead_of(equal).interval is None
    low, high = spread.ahead_of(seed_scores([0.0, 0.0])).interval
    assert (low, high) == pytest.approx(spread.interval, rel=1e-9) and low < high


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ((math.inf, math.inf), math.inf), ((1.0, math.inf), math.inf), ((math.nan, math.nan), math.nan),
        ((math.inf, -math.inf), math.nan),
    ],
)  # fmt: skip
def test_scores_that_are_not_finite_have_no_deviation_and_no_interval(values, mean):
    """A perplexity of words is infinite where texts have no words."""
    scores = seed_scores(values)
    assert scores.mean == pytest.approx(mean, nan_ok=True) and (scores.deviation, scores.interval) == (None, None)
    assert seed_scores([1e308, 1.7e308]).deviation == pytest.approx(0.7e308 / math.sqrt(2))
