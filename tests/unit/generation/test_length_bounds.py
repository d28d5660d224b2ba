"""Lengths of pairs at their limits: what a checkpoint may say, and the least that is left to write or to read."""

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths, fit_pairs, kept_lengths, positions_left


@pytest.mark.parametrize("name", ["max_source", "max_target", "longest_target"])
@pytest.mark.parametrize("value", [-1, True, 1.0, "3", None])
def test_a_length_is_a_number_of_tokens(name, value):
    assert PairLengths(**{name: 0}) == PairLengths() and vars(PairLengths(**{name: 1}))[name] == 1
    with pytest.raises(UnifiedError) as raised:
        PairLengths(**{name: value})
    assert str(raised.value) == f"{name} must be 0 (whole texts) or a number of tokens, got {value!r}"


def test_a_checkpoint_says_the_lengths_by_their_names():
    kept = {"max_source": 4, "max_target": 3, "longest_target": 2}
    assert PairLengths(4, 3, 2).state() == {"pair_lengths": kept}
    assert PairLengths.of_state({"pair_lengths": kept, "other": {"x": 1}}) == PairLengths(4, 3, 2)
    assert PairLengths.of_state({"pair_lengths": {"max_target": 3}}) == PairLengths(0, 3, 0)


@pytest.mark.parametrize("kept", [{"max_sources": 3}, {"max_source": 4, "more": 1}, [4, 3], "max_source", None])
def test_what_a_checkpoint_does_not_say_so_is_refused(kept):
    with pytest.raises(UnifiedError) as raised:
        PairLengths.of_state({"pair_lengths": kept})
    assert str(raised.value) == f"pair_lengths must hold longest_target, max_source, max_target, got {kept!r}"


def test_only_what_is_given_replaces_what_training_had():
    trained = PairLengths(4, 3, 2)
    assert trained.overridden(None, None) == trained
    assert trained.overridden(0, None) == PairLengths(0, 3, 2) and trained.overridden(None, 0) == PairLengths(4, 0, 2)


def test_three_positions_are_those_of_special_symbols():
    assert positions_left(10, 4) == 3 and positions_left(10, 8) == -1


def test_at_least_one_token_is_written_and_no_position_is_wasted():
    unknown = PairLengths()
    assert [unknown.default_length(8, max_source=given) for given in (3, 4, 5, 50)] == [2, 1, 1, 1]
    assert PairLengths(longest_target=17).default_length(20) == 17
    assert PairLengths(longest_target=18).default_length(20) == 17
    assert PairLengths(max_target=9, longest_target=5).default_length(20) == 9
    # No source or one of one token: what it leaves, and it may have a token all the same.
    assert unknown.default_length(20, size=0) == unknown.default_length(20, size=1) == 16
    assert unknown.default_length(20, size=2) == 15
    assert [unknown.default_length(positions) for positions in (20, 24, 511, 512, 600)] == [5, 6, 127, 128, 128]
    assert unknown.default_length(24, size=23) == 6


def test_a_source_is_read_up_to_what_training_read_or_the_target_leaves():
    trained = PairLengths(max_source=5)
    assert [trained.source_limit(20, length) for length in (3, 12, 13, 16)] == [5, 5, 4, 1]
    assert trained.source_limit(20, 100, max_source=7) == 7 and trained.source_limit(20, 100, max_source=0) is None
    with pytest.raises(UnifiedError, match="^max_source must be 0 "):
        trained.source_limit(20, 3, max_source=-1)


def test_nothing_is_cut_without_a_limit():
    lengths = np.array([0, 3, 9])
    assert kept_lengths(lengths, 0).tolist() == [0, 3, 9] and kept_lengths(lengths, 3).tolist() == [0, 3, 3]


def fitted(sources, targets, *given) -> PairLengths:
    return fit_pairs(*(np.array(lengths, dtype=np.int64) for lengths in (sources, targets)), 1000, *given)


def test_a_target_has_room_for_a_token_even_where_all_are_empty():
    assert fitted([3000], [0]) == PairLengths(1000, 1, 0)
    assert fitted([3000], [1]) == PairLengths(999, 1, 1)


def test_one_token_is_the_least_that_may_be_left_to_the_other_side():
    assert fitted([999, 10], [50, 10], 0) == PairLengths(0, 1, 1)
    assert fitted([50, 10], [999, 10], None, 0) == PairLengths(1, 0, 999)
    for given, option in (((0, None), "--max-source 0"), ((None, 0), "--max-target 0")):
        for longest in (1000, 1200):
            sides = ([longest, 10], [50, 10]) if given[0] == 0 else ([50, 10], [longest, 10])
            with pytest.raises(UnifiedError) as raised:
                fitted(*sides, *given)
            assert str(raised.value) == (
                f"{option}: the longest text then has {longest:,} tokens, and a row holds 1,000 of a source and its "
                f"target together; lower {option[:12]}, or lengthen the rows (--tokens-per-sample)"
            )
            with pytest.raises(UnifiedError) as raised:
                fitted(*sides, *given, str)
            in_python = option[2:12].replace("-", "_")
            assert str(raised.value).startswith(f"{in_python} 0: the longest text then has {longest:,} tokens, ")
            assert str(raised.value).endswith(f"lower {in_python}, or lengthen the rows (tokens_per_sample)")
