"""Grids of settings: their notation, the scores of their runs, the choice among them, and the table."""

import math

import pytest

from unified.errors import UnifiedError
from unified.tasks.grids import (
    SPANBERT_GRID,
    Grid,
    Tried,
    choose,
    described,
    option,
    parse_grid,
    parse_seeds,
    run_folder,
    table,
)

KNOWN = "lr, batch-size, epochs, max-length, head-lr, layer-decay"


def refused(function, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        function(*arguments)
    return str(raised.value)


def test_all_combinations_are_tried_and_the_last_value_varies_fastest():
    grid = parse_grid(["epochs=2,3", "head-lr=1e-3", "layer-decay=0.5,1"])
    assert grid.source == "" and grid.settings == [
        {"epochs": epochs, "head_lr": 1e-3, "layer_decay": decay} for epochs in (2, 3) for decay in (0.5, 1.0)
    ]
    assert all(type(setting["epochs"]) is int for setting in grid.settings)
    assert Grid({}).settings == [{}]


def test_settings_may_stand_in_one_word_as_in_quotation_marks_on_the_command_line():
    assert parse_grid(["lr=1e-5,2e-5 batch-size=16,32"]) == parse_grid(["lr=1e-5,2e-5", "batch-size=16,32"])
    assert refused(parse_grid, ["lr=1 lr=2"]) == "--grid lr=2: lr is there twice; give all of its values at once"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lr"], f"--grid lr: expected a setting and its values, such as lr=1e-5,2e-5; settings are {KNOWN}"),
        ([""], f"--grid : expected a setting and its values, such as lr=1e-5,2e-5; settings are {KNOWN}"),
        (["batch-sise=3"], "--grid batch-sise=3: expected a setting and its values, such as lr=1e-5,2e-5 (did you mean "
            f"'batch-size'?); settings are {KNOWN}"),
        (["lr=1", "lr=2"], "--grid lr=2: lr is there twice; give all of its values at once"),
        (["lr=1,x"], "--grid lr=1,x: expected numbers with commas between them"),
        (["epochs=1.5"], "--grid epochs=1.5: expected integers with commas between them"),
        (["lr="], "--grid lr=: expected numbers with commas between them"),
        (["lr=1,2,1e0"], "--grid lr=1,2,1e0: a value is there twice"),
    ],
)  # fmt: skip
def test_words_that_name_no_grid_are_refused(words, says):
    assert refused(parse_grid, words) == says


def test_seeds_are_integers_and_none_is_there_twice():
    assert parse_seeds("3,1,2") == (3, 1, 2)
    assert refused(parse_seeds, "1,a") == "--seeds 1,a: expected integers with commas between them"
    assert refused(parse_seeds, "1,1") == "--seeds 1,1: a value is there twice"
    assert parse_seeds("0,2147483647") == (0, 2147483647)
    for seed in (-1, 2147483648):
        assert refused(parse_seeds, f"1,{seed}") == (
            f"--seeds 1,{seed}: seeds are integers from 0 to 2147483647, got {seed}"
        )


def test_settings_in_words_and_as_names_of_folders():
    setting = {"lr": 1e-5, "batch_size": 16}
    assert described(setting) == "lr 1e-05, batch-size 16" and described({}) == "as given"
    assert run_folder(setting, 3) == "lr-1e-05_batch-size-16_seed-3" and run_folder({}, 3) == "seed-3"
    assert option("max_length") == "max-length"
    near = [{"lr": value} for value in (1.23456e-5, 1.234561e-5)]  # the same in six digits
    assert [run_folder(one, 1) for one in near] == ["lr-1.23456e-05_seed-1", "lr-1.234561e-05_seed-1"]
    assert described(near[1]) == "lr 1.234561e-05" and "| 1.234561e-05 |" in table([Tried(near[1])], [], "F1", None)


def tried(setting, *scores) -> Tried:
    one = Tried({"lr": setting})
    for seed, score in enumerate(scores, 1):
        one.add(seed, score)
    return one


def test_mean_and_deviation_are_those_of_the_seeds_that_have_a_score():
    one = tried(1, 80.0, 83.0, 89.0)
    assert one.mean == 84.0 and one.deviation == pytest.approx(math.sqrt((16 + 1 + 25) / 2)) and one.best_seed == 3
    assert tried(1, 80.0).deviation is None and math.isnan(tried(1).mean) and tried(1).deviation is None
    equal = tried(1, 80.0, 81.0, 81.0)
    assert equal.best_seed == 2
    failed = tried(1, 80.0, math.nan, math.inf)
    assert failed.scores == {1: 80.0}
    assert failed.problems == {2: "diverged, its score is nan", 3: "diverged, its score is inf"}


def test_the_highest_mean_is_chosen_and_equal_ones_are_named():
    grid = [tried(1, 80.0, 90.0), tried(2, 84.0, 86.0), tried(3, 70.0, 71.0), tried(4, 85.0, 85.0)]
    choice = choose(grid)
    assert choice.tried is grid[0] and choice.ties == (grid[1], grid[3])
    assert choose(grid[1:3]).tried is grid[1] and choose(grid[1:3]).ties == ()


def test_a_setting_of_which_a_run_failed_is_not_chosen():
    broken, none, whole = tried(1, 99.0, math.nan), Tried({"lr": 2}), tried(3, 1.0, 2.0)
    broken.problems[3] = "out of memory"
    assert choose([broken, none, whole]).tried is whole
    another = tried(4, math.nan, math.nan)
    assert refused(choose, [broken, none, another]) == (
        "--grid: no setting has a score for each of its seeds: diverged, its score is nan; out of memory"
    )


def test_the_table_has_a_line_for_each_setting():
    grid = [tried(1e-5, 80.0, 90.0), tried(2e-5, 80.0, math.nan), Tried({"lr": 3e-5})]
    grid[2].problems |= {1: "a | b", 2: "c"}
    assert table(grid, iter((1, 2)), "accuracy", grid[0]).splitlines() == [
        "| lr | seed 1 | seed 2 | accuracy |  |",
        "|---|---|---|---|---|",
        "| 1e-05 | 80.00 | 90.00 | 85.00 ± 7.07 | chosen |",
        "| 2e-05 | 80.00 | failed | 80.00 | seed 2: diverged, its score is nan |",
        "| 3e-05 | failed | failed |  | seed 1: a \\| b; seed 2: c |",
    ]


def test_spanberts_grid_is_that_of_the_paper():
    """[SpanBERT, appendix B]."""
    rates = (5e-6, 1e-5, 2e-5, 3e-5, 5e-5)
    assert SPANBERT_GRID.settings == [{"lr": rate, "batch_size": size} for rate in rates for size in (16, 32)]
