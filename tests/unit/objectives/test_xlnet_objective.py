"""XLNet's examples against a literal reading of the published ``data_utils.py``, and the shares of what is drawn."""

from collections import Counter

import numpy as np
import pytest
import torch

from tests.support.asked import is_next
from tests.support.rates import assert_rate
from tests.support.token_files import SPECIAL
from tests.unit.model.test_xlnet_model import published_perm_mask
from unified.cli.commands.showing.objectives import example_of
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts
from unified.errors import UnifiedError
from unified.masks import GIVEN, permutation
from unified.objectives import Supply, parse_objectives
from unified.objectives.joined_segments import Sequences
from unified.objectives.xlnet import XLNet


def text_of(first, second, rng, backward=False, word_share=0.6, is_next=True):
    tokens = rng.integers(SPECIAL.ordinary_start, SPECIAL.ordinary_stop, first + second)
    starts = rng.random(first + second) < word_share
    return Text(tokens[:first], SPECIAL, tokens[first:], is_next, starts, backward)


def literal_sample_mask(starts, lengths, uniforms, context, goal, words=False):
    """Spans of ``_sample_mask``, a token at a time, on given draws.

    With ``words`` a gram is a word, as the published loop would count if it looked at the right index (xlnet#220).
    """
    size, taken, index = len(starts), set(), 0
    for n, uniform in zip(lengths, uniforms, strict=True):
        if index >= size or len(taken) >= goal:
            break
        n = min(n, goal - len(taken))
        stretch = n * context
        left = int(uniform * stretch)
        begin = index + left
        while begin < size and not starts[begin]:
            begin += 1
        if begin >= size:
            break
        end, grams = begin + 1, 1
        while end < size:
            grams += starts[end] if words else 1
            if grams > n:
                break
            end += 1
        if words:  # ours: a budget is met exactly, by whole words
            ends = [*(index for index in range(begin + 1, end) if starts[index]), end]
            end = max((index for index in ends if index - begin <= goal - len(taken)), default=begin)
        if end >= size or end == begin:
            break
        taken |= set(range(begin, end))
        index = end + stretch - left
    return taken


@pytest.mark.slow
@pytest.mark.parametrize("words", [False, True], ids=["in tokens", "in words"])
@pytest.mark.parametrize("seed", range(60))
def test_spans_are_those_of_the_published_loop(seed, words):
    rng = np.random.default_rng(seed)
    size, context, max_span = int(rng.integers(1, 300)), int(rng.integers(2, 8)), int(rng.integers(1, 6))
    starts, goal = rng.random(size) < rng.random(), min(size, int(rng.integers(0, 60)))
    draws, goals = Draws.from_generator(rng), np.array([goal])
    found = XLNet(context=context, max_span=max_span, span_words=words).drawn_spans(
        starts, Extents(np.array([size])), goals, draws
    )
    shares = np.cumsum(1 / np.arange(1, max_span + 1))
    lengths = 1 + np.searchsorted(shares / shares[-1], draws.uniforms("lengths", goals), side="right")
    spans = literal_sample_mask(starts, lengths, draws.uniforms("places", goals), context, goal, words)
    free = np.array([i for i in range(size) if i not in spans], dtype=int)
    free = free[draws.permutations("single tokens", np.array([len(free)]))]
    assert set(np.flatnonzero(found)) == spans | set(free[: goal - len(spans)].tolist())
    assert found.sum() == goal


def test_lengths_of_spans_are_in_inverse_proportion():
    """P(n) = .438 .219 .146 .109 .088: chi-square over spans that neither the budget nor the end has cut."""
    rng, counts = np.random.default_rng(5), Counter()
    extents = Extents(np.full(400, 4000))
    all_taken = XLNet().drawn_spans(
        np.ones(extents.total, dtype=bool), extents, np.full(400, 300), Draws.from_generator(rng, 400)
    )
    for taken in all_taken.reshape(400, 4000):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], taken, [0]])))
        lengths = (edges[1::2] - edges[::2])[:40]  # far from the end, where single tokens fill up
        counts.update(lengths.tolist())
    # Two spans may touch: only when the first has no context behind it and the second none before.
    total = sum(counts[n] for n in range(1, 6))
    expected = np.array([0.4380, 0.2190, 0.1460, 0.1095, 0.0876])
    observed = np.array([counts[n] for n in range(1, 6)])
    touching = sum(count for n, count in counts.items() if n > 5) / total
    assert touching < 0.02
    statistic = ((observed - total * expected) ** 2 / (total * expected)).sum()
    assert np.abs(observed / total - expected).max() < 0.015 and statistic < 4 * 40, (observed / total, statistic)


@pytest.mark.parametrize("backward", [False, True], ids=["forwards", "backwards"])
def test_spans_of_words_are_whole_words_as_many_as_drawn(backward):
    """Words of three tokens: runs of targets are 3, 6, 9 ... tokens from a word's first, P(n) as of single tokens."""
    size, counts, whole = 900, Counter(), 0
    starts = np.arange(size) % 3 == (2 if backward else 0)  # a word begins where it is read last
    text = Text(np.full(size, 7), SPECIAL, np.full(size, 8), True, np.tile(starts, 2), backward)
    objective = XLNet(span_words=True, context=30, reuse=10**6)
    for seed in range(40):
        target = np.zeros(2 * size + 3, dtype=bool)
        target[objective(text, np.random.default_rng(seed)).targets["token"].output_indices[:, 0]] = True
        # Of the segment that comes first in the text; the budget ends within it.
        order = target[size + 1 : 2 * size + 1][::-1] if backward else target[:size]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], order, [0]])))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            if start % 3 == 0 and (stop - start) % 3 == 0:
                counts[(stop - start) // 3] += 1
                whole += stop - start
    observed = np.array([counts[n] for n in range(1, 6)]) / sum(counts[n] for n in range(1, 6))
    assert whole > 1500 and np.abs(observed - [0.438, 0.219, 0.146, 0.1095, 0.0876]).max() < 0.08, observed
    assert XLNet().span_words is False, "the published code counts tokens"


def test_spans_of_words_need_words():
    text = Text(np.full(30, 7), SPECIAL, np.full(30, 8), True)
    with pytest.raises(UnifiedError, match="does not say where words begin"):
        XLNet(span_words=True)(text, np.random.default_rng(0))
    assert "counts spans in words" in XLNet(span_words=True).unmet(Supply(SPECIAL, False, 100))
    assert XLNet(span_words=True).unmet(Supply(SPECIAL, True, 100)) is None
    assert XLNet().unmet(Supply(SPECIAL, False, 100)) is None


@pytest.mark.parametrize("seed", range(30))
def test_the_mask_is_that_of_the_published_permutation(seed):
    rng = np.random.default_rng(seed)
    first, second = int(rng.integers(20, 60)), int(rng.integers(1, 30))
    length = first + second + 3
    reuse, size = [(None, None), (16, 8), (20, None), (None, 5), (length + 5, None)][seed % 5]
    objective = XLNet(reuse=reuse, permutation_size=size)
    text = text_of(first, second, rng, backward=seed % 2 == 0)
    example = objective(text, rng)
    reuse = length // 2 if reuse is None else reuse
    order, target = example.mask.key_start.long() - 1, torch.zeros(length, dtype=torch.bool)
    target[torch.from_numpy(example.targets["token"].output_indices[:, 0])] = True
    functional = torch.zeros(length, dtype=torch.bool)
    functional[[first, -2, -1]] = True
    perm_mask = published_perm_mask(order, target, functional, reuse)
    content = permutation(example.mask.key_start)
    assert content == example.mask
    assert torch.equal(content.dense(), (perm_mask == 0) | torch.eye(length, dtype=torch.bool))
    stream = content.query_stream(example.targets["token"].output_indices[:, 0])
    assert torch.equal(stream.dense(), perm_mask[example.targets["token"].output_indices[:, 0]] == 0)
    ordered = np.flatnonzero(target | functional)
    for half in (ordered[ordered < reuse], ordered[ordered >= reuse]):
        assert len(set(example.mask.key_start[half].tolist())) == len(half), "an order has no ties"
    if size is None or reuse > length:
        return
    for start, stop in ((0, reuse), (reuse, length)):
        for i in range(start, stop - size):
            for j in (i + size - (i - start) % size,):  # whatever belongs to the next run comes later
                if j < stop and i in ordered and j in ordered:
                    assert example.mask.key_start[i] < example.mask.key_start[j]


def test_the_example_of_facts_3_2():
    """L = 8, targets 1 and 3, SEP at 5, CLS at 7, order 1: 2, 3: 7, 5: 0, 7: 4, one half (xlnet#104)."""
    steps = np.full(8, GIVEN)
    steps[[1, 3, 5, 7]] = [3, 8, 1, 5]
    dense = permutation(steps).dense()
    expected = {1: {0, 2, 4, 5, 6}, 3: {0, 1, 2, 4, 5, 6, 7}, 5: {0, 2, 4, 6}, 7: {0, 1, 2, 4, 5, 6}}
    for index in range(8):
        seen = expected.get(index, {0, 2, 4, 6}) | {index}
        assert set(dense[index].nonzero()[:, 0].tolist()) == seen
    for index, stream in zip((1, 3), permutation(steps).query_stream([1, 3]).dense(), strict=True):
        assert set(stream.nonzero()[:, 0].tolist()) == expected[index]


def test_the_sequence_its_types_and_its_two_directions():
    rng = np.random.default_rng(0)
    forward, backward = text_of(7, 4, rng), text_of(7, 4, rng, backward=True)
    for text in (forward, backward):
        example = XLNet(next_sentence=True)(text, rng)
        end = [SPECIAL.separator]
        assert example.tokens.tolist() == [*text.tokens, *end, *text.second, *end, SPECIAL.begin]
        assert example.token_types.tolist() == [0] * 8 + [1] * 5 + [2]
        assert (is_next(example), example.targets["next_sentence"].output_indices[0, 0], example.query_stream) == (
            1,
            13,
            True,
        )
        assert (
            example.targets["token"].labels == example.tokens[example.targets["token"].output_indices[:, 0]]
        ).all(), "the content stream has the real tokens"
        assert np.diff(example.positions).tolist() == [-1 if text.backward else 1] * 13
    assert is_next(XLNet()(forward, rng)) == -1


@pytest.mark.parametrize("seed", range(10))
def test_backward_texts_have_their_words_as_they_stand_in_the_text(seed):
    """Read backwards, the same text with the same draws has the same targets, mirrored."""
    rng, length, first = np.random.default_rng(seed), 90, 40
    starts = rng.random(length) < 0.4
    starts[[0, 1, first, length - 1 - first, length - 2, length - 1]] = True  # SEP and CLS, in either reading
    texts = []
    for backward in (False, True):
        along = starts[::-1] if backward else starts
        words = np.concatenate([along[:first], along[first + 1 : -2]])
        tokens = rng.integers(4, 50, length - 3)
        texts.append(Text(tokens[:first], SPECIAL, tokens[first:], True, words, backward))
    one_half = Extents(np.array([length, 0]))

    def targets(text, key):
        both = Texts.of([text])
        draws = Draws.from_generator(np.random.default_rng(key), 2)
        return XLNet().drawn_targets(both, Sequences.cls_last(both, "xlnet"), one_half, draws)

    forward, backward = (targets(text, seed) for text in texts)
    assert forward.sum() == 15 and (forward == backward[::-1]).all()
    assert not (forward == targets(texts[0], seed + 1)).all()


def test_one_token_in_context_is_predicted_and_the_first_half_has_one_more():
    rng = np.random.default_rng(1)
    firsts, lost = [], 0
    for _ in range(400):
        example = XLNet(reuse=256)(text_of(430, 79, rng), rng)
        firsts.append(int((example.targets["token"].output_indices[:, 0] < 256).sum()))
        lost += 85 - len(example.targets["token"].output_indices)
        assert 82 <= len(example.targets["token"].output_indices) <= 85
    assert set(firsts) <= {43} and lost > 0, "SEP and CLS can be drawn, but are never targets"
    for reuse, later in ((128, 63), (384, 21)):  # of 85, by the length of the second part
        behind = [
            (XLNet(reuse=reuse)(text_of(430, 79, rng), rng).targets["token"].output_indices[:, 0] >= reuse).sum()
            for _ in range(20)
        ]
        assert later - 3 <= min(behind) and max(behind) == later
    assert len(XLNet(context=7, reuse=256)(text_of(430, 79, rng), rng).targets["token"].output_indices[:, 0]) in (
        73,
        72,
        71,
        70,
    )


def test_texts_shorter_than_the_context_have_one_target_in_the_first_half():
    """A twelfth of eight tokens is none, so the minimum of one counts; of an odd number the first half has more."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        example = XLNet(context=12)(text_of(5, 0, rng, word_share=1.0), rng)  # 5 tokens, two SEP, CLS
        indices = example.targets["token"].output_indices[:, 0]
        assert len(indices) == 1 and indices[0] < 4


def test_orders_are_uniform():
    """The step of a given index within its half, over many draws."""
    objective, rng, counts = XLNet(), np.random.default_rng(2), np.zeros((6, 6))
    orders = objective.orders(Extents(np.full(6000, 6)), Draws.from_generator(rng, 6000)).reshape(-1, 6)
    assert (np.sort(orders) == np.arange(6)).all()
    for index in range(6):
        counts[index] = np.bincount(orders[:, index], minlength=6)
    statistic = ((counts - 1000) ** 2 / 1000).sum()
    assert statistic < 25 + 4.5 * np.sqrt(50), statistic


@pytest.mark.slow
@pytest.mark.parametrize("denoising", [False, True])
def test_the_shortest_texts_have_a_target_and_symbols_never_are(denoising):
    """Any division into halves and runs; separators between documents within the text are symbols too."""
    rng = np.random.default_rng(3)
    for first, second in ((a, b) for a in range(6) for b in range(6) if a + b):
        for reuse in (None, 1, 2, 5, 100):
            for size in (None, 1, 3):
                text = text_of(first, second, rng, backward=bool(rng.random() < 0.5))
                text.tokens[1:-1:2] = SPECIAL.separator
                example = XLNet(reuse=reuse, permutation_size=size, denoising=denoising)(text, rng)
                assert (
                    len(example.targets["token"].output_indices) >= 1
                    and (np.diff(example.targets["token"].output_indices[:, 0]) > 0).all()
                )
                assert not np.isin(example.targets["token"].labels, [SPECIAL.separator, SPECIAL.begin]).any()
                if not denoising:
                    symbols = np.isin(example.tokens, [SPECIAL.separator, SPECIAL.begin])
                    assert (example.mask.key_start[symbols] > GIVEN).all()
                    assert (example.mask.key_start[example.targets["token"].output_indices[:, 0]] > GIVEN).all()


def test_denoising_hides_the_same_indices_and_shows_everything():
    rng = np.random.default_rng(4)
    text = text_of(300, 150, rng)
    example = XLNet(denoising=True)(text, rng)
    assert not example.query_stream and example.mask.structure == "full"
    plain = XLNet()(text, np.random.default_rng(0)).tokens
    kept = np.setdiff1d(np.arange(453), example.targets["token"].output_indices[:, 0])
    assert (example.tokens[kept] == plain[kept]).all() and (
        example.targets["token"].labels == plain[example.targets["token"].output_indices[:, 0]]
    ).all()
    masked = other = total = 0
    for _ in range(60):
        example = XLNet(denoising=True)(text, rng)
        now = example.tokens[example.targets["token"].output_indices[:, 0]]
        masked, total = masked + (now == SPECIAL.mask).sum(), total + len(now)
        other += ((now != SPECIAL.mask) & (now != example.targets["token"].labels)).sum()
    assert_rate(int(masked), int(total), 0.8)
    assert_rate(int(other), int(total), 0.1)


@pytest.mark.parametrize(
    "setting, says",
    [
        ("context=1", "context must be at least 2"),
        ("max_span=0", "max_span must be from 1 to 1,048,576, got 0"),
        (f"max_span={2**31}", "max_span must be from 1 to 1,048,576, got 2147483648"),
        ("reuse=0", "reuse must be at least 1"),
        ("permutation_size=1.5", "permutation_size must be an integer or None, got 1.5"),
        ("denoising=1", "denoising must be True or False"),
        ("mask_replace_share=0.95", "must be at most 1"),
    ],
)
def test_settings_out_of_range_are_refused(setting, says):
    with pytest.raises(UnifiedError, match=says):
        parse_objectives(f"xlnet({setting})")


def test_texts_that_cannot_be_are_refused():
    rng, empty = np.random.default_rng(0), np.empty(0, dtype=np.int64)
    with pytest.raises(UnifiedError, match="xlnet: the text has no token that may be predicted"):
        XLNet()(Text(empty, SPECIAL, empty), rng)
    with pytest.raises(UnifiedError, match="needs two segments"):
        XLNet()(Text(np.arange(5), SPECIAL), rng)
    with pytest.raises(UnifiedError, match="needs Text.is_next"):
        XLNet(next_sentence=True)(text_of(5, 5, rng, is_next=None), rng)


def test_what_xlnet_declares_is_that_of_the_paper():
    """[XLNet, sec. 2.3 to 2.5]: streams with a memory, pairs of segments half of which are random, three types."""
    assert XLNet().scorings == ("left_to_right", "right_to_left", "pseudo_likelihood", "permutation")
    assert (XLNet.paired, XLNet.segments, XLNet.wants_random_second, XLNet.reads_streams) == (False, 2, True, True)
    assert (XLNet.special_tokens, XLNet.token_types) == (3, 3)
    objective = XLNet()
    assert (objective.context, objective.max_span, objective.both_directions) == (6, 5, True)


def test_what_is_given_of_the_second_half_appears_one_step_behind_the_seven_of_the_first():
    shown = example_of("xlnet", "a b c d e f", "g h i j k l", 1)
    assert shown.example.mask.key_start.tolist() == [0, 0, 0, 0, 2, 0, 6, 8, 8, 8, 8, 13, 8, 14, 10]
