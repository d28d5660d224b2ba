"""How long sources and targets may be: chosen for training so that pairs fit into rows, defaults of generation."""

from __future__ import annotations

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths, fit_pairs

MAX_LENGTH = 100


def kept(lengths, maximum):
    return [min(length, maximum) if maximum else length for length in lengths]


def random_pairs(rng, count):
    """Lengths of sources and targets, of which some are much longer than the others."""
    scale = int(rng.integers(5, 200))
    return rng.integers(0, scale, count), rng.integers(0, max(2, scale // int(rng.integers(1, 8))), count)


def test_every_pair_fits_and_no_more_is_cut_than_said():
    rng, cut = np.random.default_rng(4), 0
    for _ in range(300):
        sources, targets = random_pairs(rng, int(rng.integers(1, 300)))
        found = fit_pairs(sources, targets, MAX_LENGTH)
        total = [s + t for s, t in zip(sources, targets, strict=True)]
        if max(total) <= MAX_LENGTH:
            assert found == PairLengths(0, 0, int(max(targets)))
            continue
        cut += 1
        ours = [kept(sources, found.max_source), kept(targets, found.max_target)]
        assert max(s + t for s, t in zip(*ours, strict=True)) <= MAX_LENGTH
        # All sources get what the longest kept target leaves: their lengths say nothing of the target's.
        assert found.max_source == MAX_LENGTH - max(ours[1]) and found.longest_target == max(ours[1])
        longer = sum(target > found.max_target for target in targets)
        if longer:  # targets are cut above a quarter of the row alone, and all but one in a hundred below half of it
            assert found.max_target >= MAX_LENGTH // 4
            assert longer <= 0.01 * len(targets) or found.max_target == MAX_LENGTH // 2
    assert 100 < cut < 300


@pytest.mark.parametrize(
    ("sources", "targets", "given", "expected"),
    [
        ([90, 10], [10, 60], (None, None), (0, 0, 60)),  # all fit
        ([91, 10], [10, 20], (None, None), (80, 20, 20)),
        ([300] * 3, [10, 20, 40], (None, None), (60, 40, 40)),  # more than one in a hundred needs 40
        ([300] * 200, [10] * 199 + [90], (None, None), (75, 25, 25)),  # one in two hundred is cut
        ([300] * 200, [10] * 100 + [90] * 100, (None, None), (50, 50, 50)),
        ([300, 20], [10, 90], (70, None), (70, 30, 30)),
        ([40, 20], [10, 90], (70, None), (70, 60, 60)),
        ([300, 20], [10, 30], (None, 15), (85, 15, 15)),
        ([300, 20], [10, 30], (None, 0), (70, 0, 30)),
        ([80, 20], [25, 30], (0, None), (0, 20, 20)),
        ([80, 20], [20, 30], (0, None), (0, 0, 30)),
        ([300, 20], [10, 30], (0, 0), (0, 0, 30)),  # refused where rows are planned
        ([], [], (None, None), (0, 0, 0)),
    ],
)
def test_what_the_user_gives_is_kept(sources, targets, given, expected):
    arrays = (np.array(lengths, dtype=np.int64) for lengths in (sources, targets))
    assert fit_pairs(*arrays, MAX_LENGTH, *given) == PairLengths(*expected)


def test_what_leaves_no_room_names_only_what_was_given():
    long = np.array([300]), np.array([250])
    for given, option, other in (((0, None), "--max-source 0", "target"), ((None, 100), "--max-target 100", "source")):
        with pytest.raises(UnifiedError, match=option) as refusal:
            fit_pairs(*long, MAX_LENGTH, *given)
        assert f"--max-{other}" not in str(refusal.value)
    with pytest.raises(UnifiedError, match="max_source must be 0 .whole texts. or a number of tokens, got -1"):
        fit_pairs(*long, MAX_LENGTH, -1)


def test_a_row_has_room_for_one_token_of_either_side_at_least():
    one = np.array([1, 1])
    assert fit_pairs(one, one, 2) == PairLengths(0, 0, 1)
    with pytest.raises(UnifiedError) as refused:
        fit_pairs(one, one, 1)
    assert str(refused.value) == (
        "a row has no room for a source and a target; lengthen the rows (--tokens-per-sample)"
    )


def test_a_target_leaves_a_position_to_its_source():
    assert PairLengths().source_limit(10, 6) == 1  # beside three special symbols
    with pytest.raises(UnifiedError) as refused:
        PairLengths().source_limit(10, 7)
    assert str(refused.value) == (
        "the model's 10 positions leave none for a source beside a target of 7 tokens; a target must be shorter"
    )


def test_generation_takes_over_what_training_had():
    trained = PairLengths(max_source=400, max_target=60, longest_target=60)
    assert PairLengths.of_state(trained.state()) == trained and PairLengths.of_state({}) == PairLengths()
    assert trained.default_length(512) == 60 and trained.source_limit(512, 60) == 400
    assert trained.source_limit(512, 200) == 512 - 200 - 3  # the positions have room for no more
    assert trained.source_limit(512, 60, 0) is None and trained.source_limit(512, 60, 450) == 450
    assert trained.default_length(512, max_source=480) == 512 - 480 - 3
    whole = PairLengths(longest_target=30)
    assert whole.default_length(512) == 30 and whole.source_limit(512, 30) == 512 - 30 - 3
    unknown = PairLengths()
    assert unknown.default_length(512) == 128 and unknown.source_limit(512, 128) == 512 - 128 - 3
    assert unknown.default_length(96) == 24 and unknown.default_length(96, size=10) == 96 - 10 - 3
    assert unknown.default_length(512, size=500) == 128
    # Behind a prompt no length of pairs counts: what the prompt, or what is read of it, leaves.
    for lengths in (trained, whole, unknown):
        assert [lengths.default_length(96, size, prompt=True) for size in (0, 10, 92, 95)] == [93, 83, 1, 1]
        assert lengths.default_length(512, 10, prompt=True) == 128 == lengths.default_length(512, prompt=True)
        read = [lengths.default_length(96, 50, prompt=True, max_source=most) for most in (0, 20, 60)]
        assert read == [43, 73, 43]
        assert lengths.default_length(96, 10, prompt=True, usual=40) == 40
        assert lengths.default_length(96, 90, prompt=True, least=7) == 7
    assert trained.default_length(512, least=60) == 60 and trained.default_length(512, least=61) == 61
    assert unknown.default_length(512, usual=40) == 40 and unknown.default_length(96, usual=40) == 24
    assert whole.default_length(512, usual=40) == 30  # what is usual does not concern models that have learned pairs
    assert [lengths.learnt_target for lengths in (trained, whole, unknown, PairLengths(5, 6, 9))] == [60, 30, 0, 6]
    with pytest.raises(UnifiedError, match="^max_source must be 0 "):
        unknown.default_length(96, max_source=-1)
    with pytest.raises(UnifiedError, match="positions leave none for a source beside a target of 100 tokens"):
        trained.source_limit(96, 100)
