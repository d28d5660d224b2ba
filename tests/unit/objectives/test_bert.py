"""BERT's objective: how many tokens are hidden and which, against the published rules; the ablations."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from tests.support.asked import is_next
from tests.support.many import many
from tests.support.rates import assert_probabilities, assert_rate
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import Supply, parse_objectives
from unified.objectives.bert import Bert
from unified.objectives.contract import loss_names
from unified.objectives.covering import cover_words
from unified.planning.instances import Instances

SPECIAL = Vocabulary([f"w{i}" for i in range(300)]).special


def text_of(rng, first, second=0, word_share=0.6, is_next=True):
    tokens = rng.integers(SPECIAL.ordinary_start, SPECIAL.ordinary_stop, first + second)
    starts = rng.random(first + second) < word_share
    pair = (tokens[first:], is_next) if second else (None, None)
    return Text(tokens[:first], SPECIAL, *pair, starts)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"max_predictions": 3}, {"mask_share": 0.4}, {"next_sentence": False}])
def test_an_example(settings):
    objective, rng = Bert(**settings), np.random.default_rng(1)
    for _ in range(200):
        second = int(rng.integers(1, 60)) if objective.next_sentence else 0
        text = text_of(rng, int(rng.integers(1, 60)), second, is_next=bool(rng.integers(2)))
        example = objective(text, rng)
        whole = example.tokens.copy()
        whole[example.targets["token"].output_indices[:, 0]] = example.targets["token"].labels
        parts = [text.tokens.tolist(), text.second.tolist()] if second else [text.tokens.tolist()]
        assert whole.tolist() == [SPECIAL.begin] + [t for part in parts for t in [*part, SPECIAL.separator]]
        assert len(whole) == objective.lengths(len(text.tokens) + second)
        # The published count: CLS and SEP are counted, and never hidden.
        count = max(1, int(round(len(whole) * settings.get("mask_share", 0.15))))
        assert len(example.targets["token"].output_indices) == min(count, settings.get("max_predictions", count))
        assert not set(example.targets["token"].labels.tolist()) & {SPECIAL.begin, SPECIAL.separator}
        assert (np.diff(example.targets["token"].output_indices[:, 0]) > 0).all()
        assert example.token_types.tolist() == [0] * (len(parts[0]) + 2) + [1] * (second + 1 if second else 0)
        assert example.positions.tolist() == list(range(len(whole)))
        assert set(example.mask.key_start.tolist()) == set(example.mask.query_step.tolist()) == {0}
        assert is_next(example) == (int(text.is_next) if second else -1)


def test_every_token_is_hidden_equally_often_and_replaced_80_10_10():
    rng = np.random.default_rng(2)
    made = many(Bert(), text_of(rng, 7, 6), 4000, rng)
    assert (made.target_counts["token"] == 2).all()  # 15 % of 16
    indices, labels = made.targets["token"].output_indices[:, 0], made.targets["token"].labels
    shown = made.tokens.reshape(4000, 16)[np.arange(8000) // 2, indices]
    assert ((shown == SPECIAL.mask) | ((shown >= SPECIAL.ordinary_start) & (shown < SPECIAL.ordinary_stop))).all()
    became = Counter(np.select([shown == SPECIAL.mask, shown == labels], ["mask", "same"], "random").tolist())
    hidden = Counter(indices.tolist())
    assert_probabilities(hidden, dict.fromkeys([*range(1, 8), *range(9, 15)], 1 / 13))
    ordinary = SPECIAL.ordinary_stop - SPECIAL.ordinary_start
    assert_probabilities(became, {"mask": 0.8, "same": 0.1 + 0.1 / ordinary, "random": 0.1 - 0.1 / ordinary})


def literal_words(words, order, count):
    """The published loop over shuffled words, lists of indices."""
    hidden = []
    for word in (words[i] for i in order):
        if len(hidden) >= count:
            break
        if len(hidden) + len(word) > count:
            continue
        hidden += word
    return sorted(hidden)


def grouped(candidates, word_starts):
    """Words as the published code groups pieces; a piece behind a special symbol begins one."""
    words = []
    for index in np.flatnonzero(candidates).tolist():
        if word_starts[index] or not words or words[-1][-1] != index - 1:
            words.append([])
        words[-1].append(index)
    return words


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_whole_words_are_hidden_as_published(seed):
    """Every set of indices as often as the loop hides it over all orders of the words."""
    rng = np.random.default_rng(seed)
    candidates, starts = rng.random(9) < 0.85, rng.random(9) < 0.6
    candidates[0] = False
    count = int(rng.integers(1, 5))
    words = grouped(candidates, starts)
    orders = list(permutations(range(len(words))))
    probabilities = Counter()
    for order in orders:
        probabilities[tuple(literal_words(words, order, count))] += 1 / len(orders)
    times = 2000
    drawn = cover_words(
        np.tile(candidates, times),
        np.tile(starts, times),
        Extents(np.full(times, 9)),
        np.full(times, count),
        Draws.from_generator(rng, times),
    )
    counts = Counter(tuple((drawn[drawn // 9 == one] % 9).tolist()) for one in range(times))
    assert set(counts) <= set(probabilities)
    if len(probabilities) > 1:
        common = {indices: p for indices, p in probabilities.items() if p > 0.01}
        rare = 1 - sum(common.values())
        pooled = Counter({indices if indices in common else "rare": 0 for indices in probabilities})
        for indices, number in counts.items():
            pooled[indices if indices in common else "rare"] += number
        assert_probabilities(pooled, {**common, **({"rare": rare} if "rare" in pooled else {})})


def test_whole_words_in_an_example():
    objective, rng = Bert(whole_words=True), np.random.default_rng(3)
    short = 0
    for _ in range(300):
        text = text_of(rng, int(rng.integers(1, 40)), int(rng.integers(1, 40)))
        example = objective(text, rng)
        first = len(text.tokens)
        starts = np.concatenate([[True], text.word_starts[:first], [True], text.word_starts[first:], [True]])
        candidates = np.ones(len(starts), dtype=bool)
        candidates[[0, first + 1, -1]] = False
        hidden = set(example.targets["token"].output_indices[:, 0].tolist())
        words = grouped(candidates, starts)
        assert all(hidden >= set(word) or not hidden & set(word) for word in words)
        left = max(1, round(0.15 * len(starts))) - len(hidden)
        assert left >= 0
        assert all(len(word) > left for word in words if not hidden & set(word))
        short += left > 0
    assert short > 0
    # One word, longer than what may be hidden: nothing is.
    alone = Text(np.arange(20, 26), SPECIAL, word_starts=np.arange(6) == 0)
    assert len(Bert(whole_words=True, next_sentence=False)(alone, rng).targets["token"].output_indices) == 0


def test_left_to_right_by_hand():
    begin, separator = SPECIAL.begin, SPECIAL.separator
    example = Bert(next_sentence=False, left_to_right=True)(
        Text(np.array([21, 22, 23]), SPECIAL), np.random.default_rng(0)
    )
    assert example.tokens.tolist() == [begin, 21, 22, 23, separator]
    assert example.targets["token"].output_indices[:, 0].tolist() == [0, 1, 2, 3]
    assert example.targets["token"].labels.tolist() == [21, 22, 23, separator]
    assert example.mask.key_start.tolist() == example.mask.query_step.tolist() == [1, 2, 3, 4, 5]
    assert example.token_types.tolist() == [0] * 5
    assert is_next(example) == -1


def test_what_it_asks_of_the_data():
    assert Bert().planner == Instances(next_sentence=True, short_share=0.1)
    assert Bert(next_sentence=False, short_share=0.5).planner == Instances(next_sentence=False, short_share=0.5)
    assert loss_names(Bert()) == ("bert", "bert_next_sentence")
    assert loss_names(Bert(next_sentence=False, left_to_right=True)) == ("bert",)
    assert Bert(whole_words=True).unmet(Supply(SPECIAL, False, 60)).startswith("whole_words needs to know")
    assert Bert(whole_words=True).unmet(Supply(SPECIAL, True, 60)) is None
    assert Bert().unmet(Supply(SPECIAL, False, 60)) is None


def test_random_tokens_are_ordinary_ones():
    rng, shown = np.random.default_rng(4), []
    objective = Bert(mask_replace_share=0, random_replace_share=1)
    text = text_of(rng, 50, 50)
    for _ in range(50):
        example = objective(text, rng)
        shown += example.tokens[example.targets["token"].output_indices[:, 0]].tolist()
    assert min(shown) >= SPECIAL.ordinary_start and max(shown) < SPECIAL.ordinary_stop
    assert_rate(sum(token % 2 == 0 for token in shown), len(shown), 0.5)


@pytest.mark.parametrize(
    "settings, message",
    [
        ("left_to_right=True", "left_to_right=True needs next_sentence=False"),
        ("next_sentence=1", "next_sentence must be True or False"),
        ("short_share=1.5", "short_share must be from 0 to 1"),
        ("mask_share=0", "mask_share must be above 0 and at most 1"),
        ("max_predictions=0", "max_predictions must be at least 1, got 0"),
        (
            f"max_predictions={2**70}",
            "bert: max_predictions must be an integer or None, got an integer of more than 64",
        ),
        ("mask_replace_share=0.95", "must be at most 1"),
        ("masks=3", "no setting 'masks'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(UnifiedError, match=message):
        parse_objectives(f"bert({settings})")


def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(UnifiedError, match="bert: needs two segments"):
        Bert()(Text(np.array([21]), SPECIAL, is_next=True), rng)
    with pytest.raises(UnifiedError, match="bert: next-sentence prediction needs Text.is_next"):
        Bert()(Text(np.array([21]), SPECIAL, second=np.array([22])), rng)
    with pytest.raises(UnifiedError, match="bert: the text has no token that may be predicted"):
        Bert(next_sentence=False)(Text(np.array([], dtype=np.int64), SPECIAL), rng)
    with pytest.raises(UnifiedError, match="bert: whole words are wanted"):
        Bert(next_sentence=False, whole_words=True)(Text(np.array([21]), SPECIAL), rng)
