"""Tables of results line by line: headings, columns, folders of runs, published figures, and notes below."""

import pytest

from unified.errors import UnifiedError
from unified.reports.result_tables import result_tables, tables

COPIES = "Several results of one run and seed count as one, their mean."


def result(run="ours", seed=1, task="sst2", folder=None, published=None, settings=None, **scores):
    """A result as a file of results holds it; scores are those of the split ``valid`` unless they say another."""
    split = {name: value if isinstance(value, dict) else {"accuracy": value} for name, value in scores.items()}
    return {
        "task": task, "run": run, "seed": seed, "scores": split or {"valid": {"accuracy": 90.0}},
        "command": ["x"] if folder is None else ["x", "--save-dir", folder], "model": {"name": "bert", "sha256": "a"},
        "settings": settings or {}, "data": {"valid.jsonl": "1"}, "versions": {},
        **({} if published is None else {"published": published}),
    }  # fmt: skip


def test_each_task_and_split_has_a_table():
    results = [result(task="b", valid=1.0, test=2.0), result(task="a", test=3.0), result("x", 2, "b", test=4.0)]
    assert tables(results) == "\n\n".join(
        [
            "### b, valid\n\n| run | seeds | accuracy |\n|---|---|---|\n| ours | 1 | 1.00 |",
            "### b, test\n\n| run | seeds | accuracy |\n|---|---|---|\n| ours | 1 | 2.00 |\n| x | 2 | 4.00 |",
            "### a, test\n\n| run | seeds | accuracy |\n|---|---|---|\n| ours | 1 | 3.00 |",
        ]
    )
    assert tables([]) == "" and result_tables([]) == []


def test_measures_are_those_that_all_have_or_those_that_are_asked_for():
    results = [result(valid={"f1": 1.0, "em": 2.0, "total": 9}), result("x", valid={"em": 3.0, "f1": 4.0, "acc": 5.0})]
    (table,) = result_tables(results)
    assert list(table.columns) == ["f1", "em"]
    (table,) = result_tables(results, ["acc", "f1"])
    assert table.markdown(False).splitlines()[2:] == [
        "| run | seeds | acc | f1 |", "|---|---|---|---|", "| ours | 1 |  | 1.00 |", "| x | 1 | 5.00 | 4.00 |",
    ]  # fmt: skip
    with pytest.raises(UnifiedError) as raised:
        result_tables(results, ["f1", "bleu"])
    assert str(raised.value) == "no measure 'bleu'; the results have f1, em, total, acc"


@pytest.mark.parametrize("measure", ["signature", "subsets", "none"])
def test_values_that_are_no_numbers_are_no_measures(measure):
    scores = {"f1": 1.0, "signature": "a|b", "subsets": {"high": 2.0}, "none": None}
    with pytest.raises(UnifiedError) as raised:
        result_tables([result(valid=scores)], [measure])
    assert str(raised.value) == f"no measure {measure!r}; the results have f1"
    # Where another run has a number of that name, this one has an empty cell.
    (table,) = result_tables([result(valid=scores), result("x", valid={measure: 3.0})], [measure])
    assert table.markdown(False).splitlines()[-2:] == ["| ours | 1 |  |", "| x | 1 | 3.00 |"]


def test_runs_of_one_name_show_three_short_folders_at_most():
    results = [result(seed=seed, folder=f"runs/a/{seed}", settings={"lr": 1}) for seed in range(5)]
    results += [
        result(seed=9, folder="runs/b/9", settings={"lr": 2}),
        result("other", folder="runs/c", settings={"lr": 3}),
    ]
    found = tables(results).splitlines()
    assert found[2:] == [
        "| run | folder | differs in | seeds | accuracy |",
        "|---|---|---|---|---|",
        "| ours | 0; 1; 2; and 2 more | lr 1 | 0, 1, 2, 3, 4 | 90.00 ± 0.00 |",
        "| ours | 9 | lr 2 | 9 | 90.00 |",
        "| other | c |  | 1 | 90.00 |",
    ]
    without = tables(results[:6:5] + results[6:]).splitlines()[2]
    assert without == "| run | folder | differs in | seeds | accuracy |"
    assert tables([results[0], results[6]]).splitlines()[2] == "| run | seeds | accuracy |"
    assert tables([results[0], results[6]], every_difference=True).splitlines()[2:] == [
        "| run | differs in | seeds | accuracy |", "|---|---|---|---|", "| ours | lr 1 | 0 | 90.00 |",
        "| other | lr 3 | 1 | 90.00 |",
    ]  # fmt: skip


def test_published_figures_stand_below_with_empty_cells_where_there_are_none():
    published = {"valid": {"BERT": {"accuracy": 93.456}, "GPT": {"f1": 1.0}}, "test": {"T5": {"accuracy": 1.0}}}
    more = {"valid": {"BERT": {"accuracy": 94.0}, "XLNet": {"accuracy": 95}}}
    results = [result(published=published), result(seed=2, published=more), result(seed=3)]
    assert tables(results).splitlines()[4:] == [
        "| ours | 1, 2, 3 | 90.00 ± 0.00 |",
        "| BERT (published) |  | 94.00 |",
        "| GPT (published) |  |  |",
        "| XLNet (published) |  | 95.00 |",
    ]


def test_published_figures_have_empty_cells_in_the_columns_that_tell_runs_apart():
    published = {"valid": {"BERT": {"accuracy": 93.456}}}
    results = [result(folder=f"r/{lr}", settings={"lr": lr}, published=published) for lr in (1, 2)]
    assert tables(results).splitlines()[2:] == [
        "| run | folder | differs in | seeds | accuracy |",
        "|---|---|---|---|---|",
        "| ours | 1 | lr 1 | 1 | 90.00 |",
        "| ours | 2 | lr 2 | 1 | 90.00 |",
        "| BERT (published) |  |  |  | 93.46 |",
    ]


def test_notes_say_what_counts_once_and_what_brackets_are():
    once, twice = [result(valid=1.0), result(seed=2, valid=3.0)], [result(valid=1.0), result(valid=2.0)]
    assert tables(once).count("\n") == 4 and tables(once[:1], intervals=True).count("\n") == 4
    assert tables(twice).splitlines()[-3:] == ["| ours | 1 (2 times) | 1.50 |", "", COPIES]
    assert tables(twice, intervals=True).splitlines()[-2:] == ["", COPIES]
    both = tables([*once, *twice], intervals=True).splitlines()
    assert both[-3:-1] == ["", COPIES] and both[-1] == (
        "In brackets the 95 % interval of the mean by Student's t over n seeds: it says what other seeds would give on "
        "the same items, and takes their scores for normally distributed."
    )
    assert "[" not in tables(once) and "; n = 2]" in tables(once, intervals=True)


def test_a_single_training_has_the_interval_over_its_items():
    """Of several, the interval of each says nothing about their mean; of a split, or a measure, each has its own."""
    bounds = {"valid": {"f1": [3.25, 4.125]}, "test": {"f1": [0.0, 9.0]}}
    one = result(valid={"f1": 4.0, "em": 1.0}) | {"intervals": bounds}
    other = result(seed=2, valid={"f1": 2.0, "em": 1.0}) | {"intervals": bounds}
    line, empty, note = tables([one], intervals=True).splitlines()[-3:]
    assert line == "| ours | 1 | 4.00 [3.25, 4.12; items] | 1.00 |" and not empty
    assert note == (
        'In brackets with "items" the 95 % interval of the score of one training by a bootstrap: it says what other '
        "items would give, and nothing about other seeds."
    )
    assert "[" not in tables([one])
    for several in ([one, other], [one, one]):
        text = tables(several, intervals=True)
        assert "; items]" not in text and '"items"' not in text
    for given, bounds in (([one], (3.25, 4.125)), ([one, other], None)):
        (table,) = result_tables(given)
        ((run,), (scores,)) = table.runs, (one["scores"] for one in table.described()["runs"])
        assert run.item_interval("valid", "f1") == bounds == scores["f1"]["item_interval"]
        assert scores["em"]["item_interval"] is None


def test_a_table_for_programs_has_all_that_lines_show_and_more():
    results = [result(seed=2, folder="r/2", valid={"f1": 1.0}), result(folder="r/1", valid={"f1": 4.0})]
    (table,) = result_tables(results, ["f1"])
    (run,) = table.described().pop("runs")
    interval = run["scores"]["f1"].pop("interval")
    assert interval[0] < 2.5 < interval[1]
    assert run == {
        "run": "ours", "differs_in": "", "models": ["bert"], "folders": ["r/2", "r/1"], "seeds": [1, 2],
        "scores": {"f1": {"mean": 2.5, "deviation": 4.5**0.5, "n": 2, "item_interval": None}},
    }  # fmt: skip
    rest = table.described()
    del rest["runs"]
    assert rest == {"task": "sst2", "split": "valid", "published": {}}
    (bare,) = result_tables([result(valid={"f1": 1.0}), result("x", valid={"em": 1.0})], ["em"])
    assert [run["scores"].keys() for run in bare.described()["runs"]] == [set(), {"em"}]
