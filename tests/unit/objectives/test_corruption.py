"""What is drawn to be hidden and by what it is replaced: typed out, and rates on many tokens."""

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pytest

from tests.support.rates import assert_rate
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import Supply, corruption, covering
from unified.objectives.corruption import Cloze, maskable, prediction_count

SPECIAL = Vocabulary([f"w{i}" for i in range(50)]).special


@dataclass(frozen=True)
class Hiding(Cloze):
    name: ClassVar[str] = "hiding"


def whole(candidates):
    """All indices as one sequence."""
    return Extents(np.array([len(candidates)]))


def draw_ngrams(candidates, share, longest, rng, limit=None):
    limits = None if limit is None else np.array([limit])
    drawn = corruption.draw_ngrams(candidates, whole(candidates), share, longest, Draws.from_generator(rng), limits)
    assert len(drawn[0]) == len(drawn[1]) == drawn[2][0]
    return drawn[:2]


def replace(tokens, indices, special, mask_share, random_share, rng):
    shares = mask_share, random_share
    return corruption.replace(tokens, indices, np.array([len(indices)]), special, *shares, Draws.from_generator(rng))


def hide(cloze, candidates, count, rng, word_starts=None):
    return cloze.hide(candidates, whole(candidates), np.array([count]), Draws.from_generator(rng), word_starts)


def assert_uniform(counts: np.ndarray) -> None:
    expected = counts.sum() / len(counts)
    statistic, freedom = ((counts - expected) ** 2 / expected).sum(), len(counts) - 1
    assert statistic < freedom + 5 * np.sqrt(2 * freedom), (statistic, freedom)


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_a_batch_is_its_sequences_one_by_one(whole_words, seed):
    """Sequences that touch without a symbol between them, some of them without a candidate."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, 12)
    extents = Extents(sizes)
    candidates, word_starts = rng.random(sizes.sum()) < 0.9, rng.random(sizes.sum()) < 0.6
    candidates[extents.starts[3] : extents.starts[4]] = False
    counts, draws = rng.integers(0, 20, 12), Draws.from_generator(rng, 12)
    hiding = Hiding(whole_words=whole_words, ngram_share=0.5, ngram_max=5)
    together = hiding.hide(candidates, extents, counts, draws, word_starts)
    words_together = covering.cover_words(candidates, word_starts, extents, counts, draws)
    alone, words_alone = [], []
    for i, (start, stop) in enumerate(zip(extents.offsets[:-1], extents.offsets[1:], strict=True)):
        own = candidates[start:stop], word_starts[start:stop]
        one, count, drawn = whole(own[0]), counts[i : i + 1], draws.take([i])
        alone += (start + hiding.hide(own[0], one, count, drawn, own[1])).tolist()
        words_alone += (start + covering.cover_words(*own, one, count, drawn)).tolist()
    assert together.tolist() == alone and words_together.tolist() == words_alone
    assert len(alone) > 20 and len(words_alone) > 20


def test_words_that_do_not_fit_make_room_for_those_that_do():
    """A word of eight tokens, and two of one token each: two tokens to hide are these, whatever is drawn first."""
    word_starts = np.repeat((True, False, True), (1, 7, 2))
    for seed in range(40):
        hidden = hide(Hiding(whole_words=True), np.ones(10, dtype=bool), 2, np.random.default_rng(seed), word_starts)
        assert hidden.tolist() == [8, 9]


def test_single_tokens_divide_by_nothing():
    with np.errstate(all="raise"):
        _, lengths = draw_ngrams(np.ones(100, dtype=bool), 0.0, 3, np.random.default_rng(1))
    assert set(lengths.tolist()) == {1}


def test_draws_have_the_published_rates():
    rng = np.random.default_rng(3)
    candidates = np.ones(200_000, dtype=bool)
    candidates[::10] = False
    starts, lengths = draw_ngrams(candidates, 0.2, 3, rng)
    assert np.array_equal(np.sort(starts), np.flatnonzero(candidates))
    n = len(starts)
    assert_rate((lengths == 1).sum(), n, 0.8)
    assert_rate((lengths == 2).sum(), n, 0.1)
    assert_rate((lengths == 3).sum(), n, 0.1)
    assert (lengths <= 3).all()
    longer = draw_ngrams(candidates, 1.0, 6, rng)[1]
    assert_uniform(np.bincount(longer, minlength=7)[2:])


@pytest.mark.slow
def test_every_draw_order_is_equally_likely():
    rng = np.random.default_rng(4)
    candidates = np.array([True, False, True, True])
    firsts = [draw_ngrams(candidates, 0.2, 3, rng, limit=2)[0] for _ in range(4000)]
    assert {len(first) for first in firsts} == {2}
    pairs = np.array(firsts) @ [4, 1]
    _, counts = np.unique(pairs, return_counts=True)
    assert len(counts) == 6  # ordered pairs of three candidates
    assert_uniform(counts)


def test_hidden_runs_have_the_rates_of_the_draws():
    """Far apart, draws do not touch, so the runs in the result show their lengths: 80, 10 and 10 per cent."""
    rng = np.random.default_rng(5)
    runs, batch = np.zeros(4, dtype=int), 200
    extents = Extents(np.full(batch, 2000))
    candidates = np.ones(extents.total, dtype=bool)
    candidates[extents.starts] = False  # so that no run goes on in the next sequence
    for _ in range(25):
        indices = Hiding().hide(candidates, extents, np.full(batch, 12), Draws.from_generator(rng, batch))
        ends = np.flatnonzero(np.diff(indices, append=extents.total + 1) > 1)
        lengths = np.diff(ends, prepend=-1)
        runs += np.bincount(np.minimum(lengths, 4), minlength=5)[:4]
    runs = runs[1:] / runs.sum()
    # The last draw of 12 indices loses its surplus, and a few runs touch: less than two points.
    assert abs(runs - [0.8, 0.1, 0.1]).max() < 0.02


def test_replacement_rates():
    rng = np.random.default_rng(6)
    tokens = np.full(220_000, SPECIAL.ordinary_start + 7)
    indices = np.arange(0, len(tokens), 2)
    result = replace(tokens, indices, SPECIAL, 0.8, 0.1, rng)
    assert (tokens == SPECIAL.ordinary_start + 7).all()  # the original is not changed
    assert (result[1::2] == tokens[1::2]).all()
    result = result[::2]
    ordinary = SPECIAL.ordinary_stop - SPECIAL.ordinary_start
    assert_rate((result == SPECIAL.mask).sum(), len(result), 0.8)
    assert_rate((result == tokens[0]).sum(), len(result), 0.1 + 0.1 / ordinary)
    random_tokens = result[(result != SPECIAL.mask) & (result != tokens[0])]
    assert_rate(len(random_tokens), len(result), 0.1 * (1 - 1 / ordinary))
    counts = np.bincount(random_tokens, minlength=SPECIAL.ordinary_stop)
    assert counts[: SPECIAL.ordinary_start].sum() == 0 and len(counts) == SPECIAL.ordinary_stop
    assert_uniform(np.delete(counts[SPECIAL.ordinary_start :], 7))


@pytest.mark.parametrize("mask_share, random_share, expected", [(1.0, 0.0, "mask"), (0.0, 0.0, "keep")])
def test_replacement_extremes(mask_share, random_share, expected):
    tokens = np.arange(4, 34)
    result = replace(tokens, np.arange(30), SPECIAL, mask_share, random_share, np.random.default_rng(7))
    assert (result == (SPECIAL.mask if expected == "mask" else tokens)).all()


def test_maskable_is_everything_but_the_special_symbols():
    """Markers that a task adds stand behind the sentinels, and are hidden as words are."""
    markers = SPECIAL.first_sentinel + SPECIAL.sentinel_count
    tokens = np.arange(markers + 2)
    expected = np.zeros(len(tokens), dtype=bool)
    expected[SPECIAL.ordinary_start : SPECIAL.ordinary_stop] = True
    expected[SPECIAL.unknown] = expected[markers:] = True
    assert np.array_equal(maskable(tokens, SPECIAL), expected)


def test_words_are_hidden_whole():
    rng = np.random.default_rng(8)
    hiding = Hiding(whole_words=True)
    hidden = 0
    for _ in range(300):
        candidates = np.ones(400, dtype=bool)
        candidates[[0, 200, 399]] = False
        word_starts = rng.random(400) < 0.6
        indices = hide(hiding, candidates, 60, rng, word_starts)
        chosen = np.isin(np.arange(400), indices)
        inside = ~word_starts & candidates
        inside[1:] &= candidates[:-1]
        continued = np.flatnonzero(inside)
        assert (chosen[continued] == chosen[continued - 1]).all()
        assert not chosen[~candidates].any()
        assert len(indices) <= 60
        hidden += len(indices)
    assert hidden > 0.99 * 300 * 60


@pytest.mark.parametrize(
    "share, length, expected", [(0.15, 1, 1), (0.15, 2, 1), (0.15, 100, 15), (0.7, 10, 7), (1, 5, 5)]
)
def test_prediction_count(share, length, expected):
    assert prediction_count(share, length) == expected


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"ngram_share": 1.5}, "hiding: ngram_share must be from 0 to 1, got 1.5"),
        ({"ngram_share": -0.1}, "ngram_share .* got -0.1"),
        ({"mask_replace_share": float("nan")}, "mask_replace_share .* got nan"),
        ({"random_replace_share": "0.1"}, "random_replace_share .* got '0.1'"),
        ({"random_replace_share": True}, "random_replace_share .* got True"),
        ({"mask_replace_share": 0.8, "random_replace_share": 0.3}, r"must be at most 1, got 0.8 \+ 0.3"),
        ({"ngram_max": 1}, "ngram_max must be at least 2, got 1"),
        ({"ngram_max": 2.5}, "ngram_max .* got 2.5"),
        ({"whole_words": 1}, "whole_words must be True or False, got 1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(UnifiedError, match=message):
        Hiding(**settings)


def test_whole_words_need_data_that_say_where_words_begin():
    refused = Hiding(whole_words=True).unmet(Supply(SPECIAL, False, 100))
    assert refused == "whole_words needs to know where words begin; prepare the data with a tokenizer"
    assert Hiding(whole_words=True).unmet(Supply(SPECIAL, True, 100)) is None
    assert Hiding().unmet(Supply(SPECIAL, False, 100)) is None


def test_tokens_are_hidden_as_in_unilm_unless_settings_say_otherwise():
    """[UniLM, sec. 2.3]: one draw of five is a bigram or trigram; 80 % become [MASK], 10 % a random token."""
    expected = {"ngram_share": 0.2, "ngram_max": 3, "mask_replace_share": 0.8, "random_replace_share": 0.1}
    assert asdict(Hiding()) == {**expected, "whole_words": False}


def test_the_order_of_draws_is_that_of_earlier_runs():
    """Another random stream would change what every resumed run reads."""
    starts, _ = draw_ngrams(np.ones(8, dtype=bool), 0.2, 3, np.random.default_rng(1))
    assert starts.tolist() == [5, 2, 0, 3, 1, 6, 7, 4]
