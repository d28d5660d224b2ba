"""Lengths of source/target pairs in a fairseq task: how they are chosen and loaded, and the refusals of long texts."""

import sys

import numpy as np
import pytest

from fairseq_plugins.lengths import TaskLengths
from tests.support.token_files import write
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths


def loaded(*states, options=(None, None), positions=()):
    """The lengths of a task that has loaded checkpoints with these lengths and numbers of positions."""
    lengths = TaskLengths(*options)
    for state in states:
        lengths.load(PairLengths(*state).state())
    for limit in positions:
        lengths.load_positions(limit)
    return lengths


def test_without_training_or_checkpoints_nothing_is_cut():
    lengths = TaskLengths(None, None)
    assert lengths.trained == PairLengths(0, 0, 0) and lengths.state() == {} and not lengths.from_checkpoint
    assert TaskLengths(30, 0).trained == PairLengths(30, 0, 0) and TaskLengths(None, 9).trained == PairLengths(0, 9, 0)
    # Of endless positions, 128 tokens of the target and three special symbols are not the source's.
    assert lengths.source_limit() == sys.maxsize - 128 - 3


def test_a_checkpoint_keeps_the_lengths_that_training_has_chosen(tmp_path):
    sides = [write(tmp_path / side, [[5] * 4 + [2], [5] * length + [2]]) for side, length in (("a", 9), ("b", 6))]
    lengths = loaded((7, 7, 7), positions=[64])
    lengths.choose([sides], 20)
    assert lengths.trained == PairLengths(0, 0, 6) and lengths.state() == {"pair_lengths": vars(PairLengths(0, 0, 6))}
    cut = TaskLengths(None, 4)
    cut.choose([sides], 10)
    assert cut.trained == PairLengths(6, 4, 4)
    other = TaskLengths(None, None)
    other.load(cut.state())
    assert other.trained == cut.trained and other.from_checkpoint


@pytest.mark.parametrize(
    ("options", "state", "trained", "limit"),
    [
        ((None, None), (400, 60, 60), (400, 60, 60), 400),
        ((0, None), (400, 60, 60), (0, 60, 60), None),  # whole sources
        ((50, None), (400, 60, 60), (50, 60, 60), 50),
        ((None, 20), (400, 60, 60), (400, 20, 60), 400),
        ((None, None), (0, 0, 60), (0, 0, 60), 512 - 60 - 3),  # what the positions leave beside the target
    ],
)
def test_options_override_what_a_checkpoint_was_trained_with(options, state, trained, limit):
    lengths = loaded(state, options=options, positions=[512])
    assert lengths.trained == PairLengths(*trained) and lengths.source_limit() == limit


@pytest.mark.parametrize(
    ("option", "state", "most"),
    [(None, (0, 60, 70), 60), (None, (0, 0, 70), 70), (None, (0, 0, 0), 0), (20, (0, 60, 70), 20), (0, (0, 60, 70), 0)],
)
def test_texts_are_as_long_as_targets_in_training_where_no_option_says_otherwise(option, state, most):
    assert loaded(state, options=(None, option)).most_to_write() == most


def test_an_ensemble_has_the_fewest_positions_and_the_longest_targets_of_its_models():
    lengths = loaded((0, 0, 20), (0, 0, 40), (0, 0, 30), positions=(96, 64, 80))
    assert lengths.trained == PairLengths(0, 0, 40) and lengths.source_limit() == 64 - 40 - 3


@pytest.mark.parametrize("option", ["max_source", "max_target"])
def test_models_that_were_trained_with_other_lengths_need_the_option(option):
    states = [(10, 60, 60), (0, 60, 60)] if option == "max_source" else [(10, 8, 60), (10, 60, 60)]
    values = "0, 10" if option == "max_source" else "8, 60"
    named = f"--{option.replace('_', '-')}"
    for given in (None, 5):  # the other option does not decide it
        options = (None, given) if option == "max_source" else (given, None)
        with pytest.raises(UnifiedError) as raised:
            _ = loaded(*states, options=options).trained
        assert str(raised.value) == (
            f"--path: the models were trained with {named} {values} (0: whole texts); choose one with {named}"
        )
    options = (5, None) if option == "max_source" else (None, 5)
    expected = PairLengths(5, 60, 60) if option == "max_source" else PairLengths(10, 5, 60)
    assert loaded(*states, options=options).trained == expected


@pytest.mark.parametrize(("state", "cut"), [((9, 0, 6), True), ((0, 5, 5), True), ((0, 0, 6), False)])
def test_a_split_is_cut_as_in_training_or_by_its_own_pairs_where_training_cut_nothing(tmp_path, state, cut):
    sides = [write(tmp_path / side, [[5] * length + [2]]) for side, length in (("a", 90), ("b", 6))]
    assert loaded(state).of_split(sides, 20) == (PairLengths(*state) if cut else PairLengths(14, 6, 6))
    if not cut:
        assert loaded(state, options=(0, 0)).of_split([sides[1], sides[1]], 20) == PairLengths(0, 0, 6)


def test_other_splits_may_hold_longer_pairs_than_training(tmp_path):
    def files(name, pairs):
        return tuple(
            write(tmp_path / f"{name}.{side}", [[5] * pair[i] + [2] for pair in pairs])
            for i, side in enumerate(("source", "target"))
        )

    train, valid = files("train", [(50, 10), (20, 30)]), files("valid", [(300, 12), (20, 30)])
    lengths = TaskLengths(None, None)
    lengths.choose([train, train], 100)
    assert lengths.trained == lengths.of_split(train, 100) == PairLengths(0, 0, 30)
    assert lengths.of_split(valid, 100) == PairLengths(70, 30, 30)
    cutting = TaskLengths(None, None)
    cutting.choose([train, valid], 100)
    assert [cutting.trained, *(cutting.of_split(own, 100) for own in (train, valid))] == [PairLengths(70, 30, 30)] * 3


def test_a_source_that_leaves_no_position_to_write_at_is_refused():
    lengths = loaded((0, 0, 0), options=(2000, None), positions=[1504])
    lengths.check_source(1500)
    with pytest.raises(UnifiedError) as raised:
        lengths.check_source(1501)
    assert str(raised.value) == (
        "--max-source 2000: the longest source has 1,501 tokens then, but the model's 1504 positions leave room for "
        "1500; without the option sources are cut as in training"
    )
    with pytest.raises(UnifiedError) as raised:
        lengths.check_source(1501, prompt=True)
    assert str(raised.value) == (
        "--max-source 2000: the longest prompt has 1,501 tokens then, but the model's 1504 positions leave room for "
        "1500; lower it"
    )


@pytest.mark.parametrize(("least", "left"), [(1, 92), (2, 91), (50, 43), (95, 0)])
def test_what_has_to_be_written_needs_positions(least, left):
    lengths = loaded((0, 0, 0), options=(None, None), positions=[96])
    beside = "" if least == 1 else f" beside --min-len {least}"
    for prompt, text in ((False, "source"), (True, "prompt")):
        if left:
            lengths.check_source(left, prompt, least)
        with pytest.raises(UnifiedError) as raised:
            lengths.check_source(left + 1, prompt, least)
        assert str(raised.value) == (
            f"the longest {text} has {left + 1} tokens, but the model's 96 positions leave room for {left}{beside}; "
            f"cut {text}s with --max-source"
        )


def test_pairs_whose_targets_do_not_fit_beside_their_sources_are_refused():
    lengths = loaded((0, 0, 0), positions=[16])
    sources, targets = np.array([10, 1, *[3] * 1198]), np.array([5, 14, *[3] * 1198])
    lengths.check_pairs(sources, targets)
    with pytest.raises(UnifiedError) as raised:
        lengths.check_pairs(sources + (targets > 3), targets)
    assert str(raised.value) == (
        "--score-reference: 2 of 1,200 sources have no room beside their targets in the model's 16 positions; cut "
        "sources with --max-source"
    )


@pytest.mark.parametrize(
    ("options", "states", "source", "target"),
    [
        ((None, None), [], "so that pairs fit into rows of 20 tokens", "so that pairs fit into rows of 20 tokens"),
        ((None, None), [(9, 6, 6)], "as in training", "as in training"),
        ((9, None), [], "--max-source", "so that pairs fit into rows of 20 tokens"),
        ((0, 4), [(9, 6, 6)], "as in training", "--max-target"),
    ],
)
def test_a_log_says_why_texts_are_cut(options, states, source, target):
    lengths = loaded(*states, options=options)
    assert (lengths.why("source", 20), lengths.why("target", 20)) == (source, target)
