"""T5's objectives: typed-out examples, both sides put together again, the published table of lengths, chi-square."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tests.support.rates import assert_rate
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.masks import GIVEN
from unified.objectives import OBJECTIVES, Supply
from unified.objectives.noise import composition, run_starts, span_counts, span_noise
from unified.objectives.t5 import BertStyle, Deshuffling, DropTokens, MassStyle, PrefixLM, RandomSpans, ReplaceSpans

SPECIAL = Vocabulary([f"w{i}" for i in range(1000)]).special
CLS, SEP, S0 = SPECIAL.begin, SPECIAL.separator, SPECIAL.first_sentinel
KINDS = [PrefixLM, BertStyle, Deshuffling, MassStyle, ReplaceSpans, DropTokens, RandomSpans]


def words(length: int, rng=None) -> np.ndarray:
    rng = rng or np.random.default_rng(0)
    return rng.integers(SPECIAL.ordinary_start, SPECIAL.ordinary_stop, length)


def rewritten(objective, tokens, seed=0):
    source, target = objective.rewrite(tokens, SPECIAL, np.random.default_rng(seed))
    return source.tolist(), target.tolist()


def sentinel_number(token: int) -> int | None:
    return token - S0 if S0 <= token < S0 + SPECIAL.sentinel_count else None


def merged(source: list[int], target: list[int]) -> list[int]:
    """The text that an input and a target with sentinels come from, put together token by token."""
    spans, number = {}, None
    for token in target:
        if sentinel_number(token) is not None:
            number = sentinel_number(token)
            spans[number] = []
        else:
            spans[number].append(token)
    text = []
    for token in source:
        number = sentinel_number(token)
        text += [token] if number is None else spans.pop(number)
    assert not any(spans.values())
    return text


@pytest.mark.parametrize("kind", [ReplaceSpans, RandomSpans])
@pytest.mark.parametrize("closing", [False, True])
def test_sentinels_on_both_sides_give_the_text_back(kind, closing):
    objective, rng = kind(closing_sentinel=closing), np.random.default_rng(1)
    at_the_start = 0
    for seed in range(500):
        tokens = words(int(rng.integers(1, 120)), rng)
        source, target = rewritten(objective, tokens, seed)
        numbers = [sentinel_number(t) for t in source if sentinel_number(t) is not None]
        assert numbers == list(range(len(numbers)))
        assert [n for t in target if (n := sentinel_number(t)) is not None] == list(range(len(numbers) + closing))
        assert not closing or sentinel_number(target[-1]) == len(numbers)
        assert merged(source, target) == tokens.tolist()
        at_the_start += sentinel_number(source[0]) is not None
    assert (at_the_start > 0) == (kind is ReplaceSpans)  # the published numbering is wrong in just these


def test_examples_of_every_objective():
    tokens = words(8)
    noise = np.array([1, 0, 0, 1, 1, 0, 0, 1], dtype=bool)
    a, b, c, d, e, f, g, h = tokens.tolist()

    def given(kind, **settings):
        objective = kind(**settings)
        object.__setattr__(objective, "noise", lambda length, rng: noise)
        object.__setattr__(objective, "most_runs", lambda length: np.array(9))
        return rewritten(objective, tokens)

    assert given(ReplaceSpans) == ([S0, b, c, S0 + 1, f, g, S0 + 2], [S0, a, S0 + 1, d, e, S0 + 2, h])
    assert given(ReplaceSpans, closing_sentinel=True)[1] == [S0, a, S0 + 1, d, e, S0 + 2, h, S0 + 3]
    assert given(DropTokens) == ([b, c, f, g], [a, d, e, h])
    assert given(MassStyle) == ([S0, b, c, S0, S0, f, g, S0], tokens.tolist())
    assert given(BertStyle, random_share=0.0) == ([S0, b, c, S0, S0, f, g, S0], tokens.tolist())
    source, target = given(BertStyle, random_share=1.0)
    assert target == tokens.tolist() and S0 not in source and [source[i] for i in (1, 2, 5, 6)] == [b, c, f, g]
    source, target = rewritten(PrefixLM(), tokens)
    assert source and target and source + target == tokens.tolist()
    source, target = rewritten(Deshuffling(), tokens)
    assert sorted(source) == sorted(target) and source != target == tokens.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_sequence(kind):
    """CLS input SEP BOS target, the input given, every index from BOS on predicting the next token."""
    objective, rng = kind(), np.random.default_rng(2)
    for length in (1, 2, 3, 20, 90):
        text = Text(words(length, rng), SPECIAL)
        (drawing,) = Draws.from_generator(np.random.default_rng(3)).generators("noise")  # as the objective does
        source, target = (side.tolist() for side in objective.rewrite(text.tokens, SPECIAL, drawing))
        example = objective(text, np.random.default_rng(3))
        assert example.tokens.tolist() == [CLS, *source, SEP, CLS, *target]
        assert example.targets["token"].labels.tolist() == [*target, SEP]
        first = len(source) + 2
        assert example.targets["token"].output_indices[:, 0].tolist() == list(range(first, first + len(target) + 1))
        steps = [GIVEN] * first + list(range(1, len(target) + 2))
        assert example.mask.query_step.tolist() == example.mask.key_start.tolist() == steps
        assert example.token_types.tolist() == [4] * first + [5] * (len(target) + 1)
        assert len(example.tokens) <= objective.lengths(np.array(length))


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_never_fall_and_are_exact_where_they_can_be(kind):
    objective, lengths = kind(), np.arange(1, 2000)
    assert (np.diff(objective.lengths(lengths)) >= 0).all()
    if kind is ReplaceSpans:
        return
    for length in (2, 3, 17, 400):
        source, target = rewritten(objective, words(length), seed=length)
        assert len(source) + len(target) + 3 == objective.lengths(np.array(length))


def test_texts_of_fewer_than_two_tokens_count_as_two():
    noise, spans = span_counts(np.array([0, 1, 2, 3]), 0.9, 1.0)
    assert noise.tolist() == [1, 1, 1, 2] and spans.tolist() == [1, 1, 1, 1]


def test_two_tokens_are_cut_between_them():
    """One token is all prefix."""
    for seed in range(20):
        two, one = (rewritten(PrefixLM(), words(length), seed=seed) for length in (2, 1))
        assert [len(side) for side in (*two, *one)] == [1, 1, 1, 0]


def test_spans_may_be_single_tokens():
    assert RandomSpans(mean_span=1).most_runs(np.array([100])).tolist() == [15]


def test_short_texts_have_room_for_a_run_at_every_other_token():
    assert ReplaceSpans(noise_density=0.5).most_runs(np.array([1, 2, 3, 4])).tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("objective", [BertStyle(), MassStyle()])
def test_one_sentinel_is_enough_where_all_noise_becomes_the_same(objective):
    one, none = (Supply(replace(SPECIAL, sentinel_count=count), False, 10) for count in (1, 0))
    assert objective.unmet(one) is None
    assert "may take 1 sentinels, but the dictionary has 0" in objective.unmet(none)


def test_raw_lengths_of_the_published_table():
    """Facts of T5: the longest text whose input of kept tokens, sentinels and EOS fits, and its target with EOS."""
    lengths = np.arange(1, 2000)

    def fitting(input_length, density=0.15, mean=3.0):
        noise, spans = span_counts(lengths, density, mean)
        longest = int(np.flatnonzero(lengths - noise + spans + 1 <= input_length)[-1])
        return int(lengths[longest]), int(noise[longest] + spans[longest] + 1)

    published = {64: (70, 14), 128: (141, 29), 256: (284, 58), 384: (426, 86), 512: (568, 114), 1024: (1137, 229)}
    assert {length: fitting(length) for length in published} == published
    assert [fitting(512, mean=mean) for mean in (2, 5, 10)] == [(552, 126), (581, 105), (591, 99)]
    assert [fitting(512, density) for density in (0.10, 0.25)] == [(548, 74), (614, 206)]
    # Here the published helper takes one token off, (766, 512), so that the target is not longer than the input.
    assert fitting(512, 0.5) == (767, 513)


def published_span_noise(length, density, mean):
    """Counts as t5/data/preprocessors.py has them, for one length."""
    length = max(length, 2)
    noise = min(max(int(round(length * density)), 1), length - 1)
    return noise, max(1, int(round(noise / mean)))


def test_spans_have_the_published_counts_and_begin_kept():
    rng = np.random.default_rng(4)
    for length in [*range(2, 60), 511, 568]:
        noise = span_noise(length, 0.15, 3.0, rng)
        assert (int(noise.sum()), int(run_starts(noise).sum())) == published_span_noise(length, 0.15, 3.0)
        assert len(noise) == length and not noise[0] and noise[-1]
    assert span_noise(1, 0.15, 3.0, rng).tolist() == [False]
    assert int(run_starts(span_noise(4, 0.9, 1.0, rng)).sum()) == 1  # one kept token parts no more


def test_divisions_are_equally_likely():
    total, parts, trials = 7, 3, 15_000
    rng = np.random.default_rng(5)
    counts = Counter(tuple(composition(total, parts, rng).tolist()) for _ in range(trials))
    cuts = combinations(range(1, total), parts - 1)
    expected = {tuple(np.diff([0, *cut, total]).tolist()) for cut in cuts}
    assert set(counts) == expected
    mean = trials / len(expected)
    statistic = sum((count - mean) ** 2 / mean for count in counts.values())
    assert statistic < 36.1  # chi-square with 14 degrees of freedom exceeds it once in 1,000


def test_rates_of_independent_noise():
    tokens, trials = words(100), 1000
    hidden = dropped = random = 0
    rng = np.random.default_rng(6)
    for _ in range(trials):
        source, _ = MassStyle().rewrite(tokens, SPECIAL, rng)
        hidden += int((source == S0).sum())
        source, target = DropTokens().rewrite(tokens, SPECIAL, rng)
        dropped += len(target)
        source, _ = BertStyle().rewrite(tokens, SPECIAL, rng)
        random += int(((source != tokens) & (source != S0)).sum())
    assert_rate(hidden, 100 * trials, 0.15)
    assert_rate(dropped, 100 * trials, 0.15)
    # A random word is the same word by chance once in a thousand.
    assert_rate(random, 100 * trials, 0.15 * 0.1 * 0.999)


def test_prefixes_of_every_length_are_equally_likely():
    rng = np.random.default_rng(7)
    cuts = np.bincount([len(PrefixLM().rewrite(words(9), SPECIAL, rng)[0]) for _ in range(8000)], minlength=10)
    assert cuts[0] == cuts[9] == 0
    statistic = ((cuts[1:9] - 1000) ** 2 / 1000).sum()
    assert statistic < 24.4  # chi-square with 7 degrees of freedom exceeds it once in 1,000


def test_runs_are_bounded_and_few_are_lost():
    """Two deviations above the mean of a nearly normal number: 2.3 % of the texts, and one run in 1,000."""
    objective, rng = ReplaceSpans(), np.random.default_rng(8)
    most = int(objective.most_runs(np.array(300)))
    runs = [int(run_starts(objective.noise(300, rng)).sum()) for _ in range(3000)]
    beyond = np.maximum(np.array(runs) - most, 0)
    assert 0.01 < (beyond > 0).mean() < 0.035 and beyond.sum() < 0.0025 * sum(runs)
    object.__setattr__(objective, "most_runs", lambda tokens: np.array(2))
    source, target = rewritten(objective, words(300))
    assert [sentinel_number(t) for t in source if sentinel_number(t) is not None] == [0, 1]
    assert merged(source, target) == words(300).tolist()


@pytest.mark.parametrize(
    ("density", "texts", "runs"),
    [(0.15, (50, 953), (391, 29)), (0.1, (49, 1017), (184, 18)), (0.05, (47, 994), (62, 11))],
)
def test_what_the_bound_of_runs_costs_at_most(density, texts, runs):
    """By the exact distribution, of texts of up to 1,024 tokens: one text of so many, one run, and in which length."""
    objective, numbers = ReplaceSpans(noise_density=density), np.arange(514)
    by_runs = np.zeros((514, 2))  # number of runs, whether the last token is noise -> probability
    by_runs[0, 0] = 1
    beyond, lost = [], []
    for length in range(1, 1025):
        kept, begun = by_runs.sum(1) * (1 - density), np.append(0, by_runs[:-1, 0]) * density
        by_runs = np.stack([kept, begun + by_runs[:, 1] * density], axis=1)
        share, more = by_runs.sum(1), np.maximum(numbers - int(objective.most_runs(np.array(length))), 0)
        beyond.append(share[more > 0].sum())
        lost.append((share * more).sum() / (share * numbers).sum())
    worst = [(round(1 / max(shares)), 1 + int(np.argmax(shares))) for shares in (beyond, lost)]
    assert worst == [texts, runs]


@pytest.mark.parametrize("density", [0.05, 0.15, 0.3])
def test_the_bound_of_runs_is_exceeded_by_one_text_in_forty(density):
    """By the exact distribution of the number of runs; two runs fewer would be too few."""
    objective = ReplaceSpans(noise_density=density)
    by_runs = np.zeros((202, 2))  # number of runs, whether the last token is noise -> probability
    by_runs[0, 0] = 1
    for length in range(1, 400):
        kept, begun = by_runs.sum(1) * (1 - density), np.append(0, by_runs[:-1, 0]) * density
        by_runs = np.stack([kept, begun + by_runs[:, 1] * density], axis=1)
        most = int(objective.most_runs(np.array(length)))
        assert by_runs[most + 1 :].sum() <= 1 / 40, (length, most)
        assert most == 1 or by_runs[most - 1 :].sum() > 0.0228, (length, most)


@pytest.mark.parametrize("kind, longest", [(RandomSpans, 2050), (ReplaceSpans, 720)])
def test_too_few_sentinels_are_refused(kind, longest):
    complaint = kind().unmet(Supply(SPECIAL, True, longest))
    assert "sentinels" in complaint and "100" in complaint
    assert kind().unmet(Supply(SPECIAL, True, longest // 4)) is None


def test_no_sentinels_are_refused():
    bare = Vocabulary(["a"]).special.__class__(**{**vars(SPECIAL), "sentinel_count": 0})
    lacking = {
        kind.name for kind in KINDS if getattr(kind, "unmet", lambda _, __: None)(kind(), Supply(bare, True, 10))
    }
    assert lacking == {"bert_style", "mass_style", "replace_spans", "random_spans"}


@pytest.mark.parametrize(
    "kind, settings, message",
    [
        (RandomSpans, {"noise_density": 0}, "noise_density"),
        (RandomSpans, {"mean_span": 0.5}, "mean_span"),
        (RandomSpans, {"mean_span": float("nan")}, "mean_span"),
        (RandomSpans, {"mean_span": float("inf")}, "mean_span"),
        (RandomSpans, {"mean_span": "3"}, "mean_span"),
        (RandomSpans, {"mean_span": True}, "mean_span"),
        (ReplaceSpans, {"closing_sentinel": 1}, "closing_sentinel"),
        (BertStyle, {"random_share": 1.5}, "random_share"),
    ],
)
def test_settings_are_checked(kind, settings, message):
    with pytest.raises(UnifiedError, match=f"{kind.name}: {message}"):
        kind(**settings)


def test_all_are_listed():
    assert {kind.name: kind for kind in KINDS}.items() <= OBJECTIVES.items()


def test_objectives_that_predict_the_whole_text_show_labels_on_purpose():
    shown = {name for name, objective in OBJECTIVES.items() if objective().shows_labels}
    assert shown == {"deshuffling", "bert_style", "mass_style"}
