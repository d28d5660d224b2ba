"""UniLM's objectives: typed-out examples, masks against the published formula, rates on many tokens."""

import numpy as np
import pytest

from tests.support.asked import is_next
from tests.support.many import each, many
from tests.support.rates import assert_rate
from unified import masks
from unified.data.annotations import KINDS, columns
from unified.data.example import Example
from unified.data.text import Text
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import (
    OBJECTIVES,
    Objective,
    parse_objectives,
)
from unified.objectives.unilm import Bidirectional, LeftToRight, RightToLeft, Seq2Seq, TargetCloze, TargetNext

SPECIAL = Vocabulary([f"w{i}" for i in range(1000)]).special
CLS, SEP, MASK = SPECIAL.begin, SPECIAL.separator, SPECIAL.mask
#: UniLM's own; other systems have files of their own, and the contract here.
UNILM = [name for name, kind in OBJECTIVES.items() if kind.__module__ == "unified.objectives.unilm"]
PRETRAINING = [Bidirectional, LeftToRight, RightToLeft, Seq2Seq]
#: Nothing is replaced: the sequence is seen as it is.
PLAIN = {"mask_replace_share": 0.0, "random_replace_share": 0.0}


def text_of(first: int, second: int = 0, rng=None, words: float | None = None) -> Text:
    rng = rng or np.random.default_rng(0)
    total = first + second
    return Text(
        tokens=rng.integers(SPECIAL.ordinary_start, SPECIAL.ordinary_stop, first),
        special=SPECIAL,
        second=rng.integers(SPECIAL.ordinary_start, SPECIAL.ordinary_stop, second),
        is_next=True,
        word_starts=None if words is None else rng.random(total) < words,
        spans={kind: spans_of(kind, first, second, rng) for kind in KINDS if words is not None},
    )


def spans_of(kind: str, first: int, second: int, rng) -> np.ndarray:
    """Every other stretch of both segments, cut at random indices and at the border, with tags of zero."""
    bounds = np.union1d(np.flatnonzero(rng.random(first + second) < 0.3), [0, first, first + second])
    starts, stops = bounds[:-1][::2], bounds[1:][::2]
    return np.stack([starts, stops, np.zeros_like(starts)], axis=1)[:, : columns(kind)]


def dense(example: Example) -> np.ndarray:
    return example.mask.dense().numpy()


# ---------------------------------------------------------------- structure, typed out


@pytest.mark.parametrize(
    "objective, tokens, types, steps",
    [
        (Bidirectional(**PLAIN), [CLS, 11, 12, SEP, 21, 22, 23, SEP], [0, 0, 0, 0, 1, 1, 1, 1], [0] * 8),
        (Bidirectional(next_sentence=False, **PLAIN), [CLS, 11, 12, SEP], [0] * 4, [0] * 4),
        (LeftToRight(**PLAIN), [CLS, 11, 12, SEP], [2] * 4, [1, 2, 3, 4]),
        (RightToLeft(**PLAIN), [CLS, 11, 12, SEP], [3] * 4, [4, 3, 2, 1]),
        (Seq2Seq(**PLAIN), [CLS, 11, 12, SEP, 21, 22, 23, SEP], [4] * 4 + [5] * 4, [0, 0, 0, 0, 1, 2, 3, 4]),
        (TargetCloze(**PLAIN), [CLS, 11, 12, SEP, 21, 22, 23, SEP], [4] * 4 + [5] * 4, [0, 0, 0, 0, 1, 2, 3, 4]),
        (TargetNext(), [CLS, 11, 12, SEP, CLS, 21, 22, 23], [4] * 4 + [5] * 4, [0, 0, 0, 0, 1, 2, 3, 4]),
    ],
)
def test_structure(objective, tokens, types, steps):
    text = Text(np.array([11, 12]), SPECIAL, second=np.array([21, 22, 23]), is_next=True)
    example = objective(text, np.random.default_rng(1))
    assert example.tokens.tolist() == tokens
    assert example.positions.tolist() == list(range(len(tokens)))
    assert example.token_types.tolist() == types
    assert example.mask.key_start.tolist() == example.mask.query_step.tolist() == steps
    assert (example.mask.key_stop == 1 + max(steps)).all()


def test_target_next_predicts_the_following_token():
    text = Text(np.array([11, 12]), SPECIAL, second=np.array([21, 22, 23]))
    example = TargetNext()(text, np.random.default_rng(1))
    assert example.targets["token"].output_indices[:, 0].tolist() == [4, 5, 6, 7]
    assert example.targets["token"].labels.tolist() == [21, 22, 23, SEP]
    assert MASK not in example.tokens


def test_everything_hidden():
    text = Text(np.array([11, 12]), SPECIAL, second=np.array([21, 22, 23]))
    all_masks = {"mask_replace_share": 1.0, "random_replace_share": 0.0}
    example = Seq2Seq(mask_share=1.0, **all_masks)(text, np.random.default_rng(1))
    assert example.tokens.tolist() == [CLS, MASK, MASK, SEP, MASK, MASK, MASK, SEP]
    assert example.targets["token"].output_indices[:, 0].tolist() == [1, 2, 4, 5, 6]
    assert example.targets["token"].labels.tolist() == [11, 12, 21, 22, 23]
    example = TargetCloze(mask_probability=1.0, mask_source=1.0, **all_masks)(text, np.random.default_rng(1))
    assert example.tokens[:4].tolist() == [CLS, MASK, MASK, SEP]
    assert (
        len(example.targets["token"].output_indices) == 2 + 3
    )  # three of the four indices of the target block, SEP one of them
    assert set(example.targets["token"].output_indices[:, 0].tolist()) - {4, 5, 6, 7} == {1, 2}


# ---------------------------------------------------------------- masks: facts of the published forward pass


def visible(name: str, i: int, j: int, n_a: int) -> bool:
    """May query i see key j? The table of UniLM's pre-training code; n_a counts CLS, source and its SEP."""
    return {
        "bidirectional": True,
        "left_to_right": j <= i,
        "right_to_left": j >= i,
        "seq2seq": j < n_a or j <= i,
        "target_cloze": j < n_a or j <= i,
        "target_next": j < n_a or j <= i,
    }[name]


@pytest.mark.parametrize("name", UNILM)
@pytest.mark.parametrize("first, second", [(1, 1), (2, 2), (1, 5), (7, 3)])
def test_mask_is_the_published_formula(name, first, second):
    objective = OBJECTIVES[name]()
    example = objective(text_of(first, second), np.random.default_rng(2))
    n = len(example.tokens)
    expected = [[visible(name, i, j, n_a=first + 2) for j in range(n)] for i in range(n)]
    assert np.array_equal(dense(example), np.array(expected))


@pytest.mark.parametrize(
    "objective, first, second, pairs, build",
    [
        (Bidirectional(), 2, 2, 49, masks.bidirectional),
        (LeftToRight(), 5, 0, 28, masks.left_to_right),
        (RightToLeft(), 5, 0, 28, masks.right_to_left),
        (Seq2Seq(), 2, 2, 34, lambda n: masks.seq2seq(4, 3)),
    ],
)
def test_visible_pairs_of_four_and_three_tokens(objective, first, second, pairs, build):
    example = objective(text_of(first, second), np.random.default_rng(3))
    assert len(example.tokens) == 7
    assert dense(example).sum() == pairs
    assert np.array_equal(dense(example), build(7).dense().numpy())


# ---------------------------------------------------------------- the contract, for every objective


@pytest.mark.parametrize("name", OBJECTIVES)
def test_contract(name):
    """What every objective of the library keeps beyond what `unified.testing.check_objective` asks of all."""
    kind = OBJECTIVES[name]
    objective = kind()
    assert objective.name == name == kind.name
    assert kind.__doc__ and "Attributes" not in kind.__doc__.splitlines()[0]
    assert parse_objectives(name).objectives == (objective,)
    rng = np.random.default_rng(4)
    for first, second in [(1, 1), (2, 1), (1, 2), (2, 2), (3, 17), (60, 1), (40, 50)]:
        example = objective(text_of(first, second, rng, words=0.5), np.random.default_rng(5))
        given_length = first + (second if objective.segments == 2 else 0)
        assert len(example.tokens) == given_length + objective.special_tokens or kind.lengths is not Objective.lengths
        assert len(example.targets["token"]) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in UNILM if name != "target_next"])
def test_labels_restore_the_text(name):
    rng = np.random.default_rng(6)
    objective = OBJECTIVES[name]()
    for _ in range(200):
        text = text_of(int(rng.integers(1, 40)), int(rng.integers(1, 40)), rng)
        example = objective(text, rng)
        restored = example.tokens.copy()
        restored[example.targets["token"].output_indices[:, 0]] = example.targets["token"].labels
        segments = [text.tokens, text.second][: objective.segments]
        assert restored.tolist() == [CLS] + [token for segment in segments for token in [*segment.tolist(), SEP]]


@pytest.mark.parametrize("name", [name for name in UNILM if name != "target_next"])
def test_other_seeds_hide_other_indices(name):
    text = text_of(50, 50)
    examples = [OBJECTIVES[name]()(text, np.random.default_rng(seed)) for seed in range(20)]
    assert len({tuple(example.targets["token"].output_indices[:, 0].tolist()) for example in examples}) == 20


# ---------------------------------------------------------------- rates


@pytest.mark.parametrize("kind", PRETRAINING)
def test_pretraining_rates(kind):
    """15 per cent of 100,000 tokens, 80/10/10 of them replaced; special symbols never."""
    rng = np.random.default_rng(7)
    objective = kind()
    count, tokens, masked, kept, indices = 0, 0, 0, 0, []
    texts = [text_of(150, 150, rng) for _ in range(120_000 // (150 * objective.segments))]
    for example in each(objective, texts, rng):
        assert not np.isin(example.targets["token"].labels, [CLS, SEP]).any()
        assert (example.tokens == CLS).sum() == 1 and (example.tokens == SEP).sum() == objective.segments
        tokens += 150 * objective.segments
        count += len(example.targets["token"].output_indices)
        masked += (example.tokens[example.targets["token"].output_indices[:, 0]] == MASK).sum()
        kept += (example.tokens[example.targets["token"].output_indices[:, 0]] == example.targets["token"].labels).sum()
        indices.append(example.targets["token"].output_indices[:, 0])
    assert abs(count / tokens - 0.15) < 0.005
    assert_rate(masked, count, 0.8)
    assert_rate(kept, count, 0.1 + 0.1 / 1000)
    # An n-gram never wraps round, so only the first index of a segment is hidden less often than the others.
    hidden = np.bincount(np.concatenate(indices), minlength=len(example.tokens))
    inner = hidden[4:148]
    assert abs(inner / inner.mean() - 1).max() < 0.35
    if objective.segments == 2:
        assert_rate(hidden[:151].sum(), count, 0.5)  # source and target, or both parts, alike


def test_target_cloze_rates():
    """0.7 of 100,000 target tokens; the final SEP is hidden as often as any other index; the source never."""
    rng = np.random.default_rng(8)
    objective, m, repeats = TargetCloze(), 20, 6000
    made = many(objective, text_of(5, m, rng), repeats, rng)
    assert (made.target_counts["token"] == 14).all()
    tokens, indices = (
        made.tokens.reshape(repeats, m + 8),
        made.targets["token"].output_indices[:, 0].reshape(repeats, 14),
    )
    assert (tokens[:, :7] != MASK).all()
    hidden = np.bincount(indices.ravel() - 7, minlength=m + 1)
    shown = np.take_along_axis(tokens, indices, axis=1).ravel()
    masked, kept = (shown == MASK).sum(), (shown == made.targets["token"].labels).sum()
    for index in range(m + 1):
        assert_rate(hidden[index], repeats, 14 / 21)
    assert_rate(masked, repeats * 14, 0.8)
    assert_rate(kept, repeats * 14, 0.1 + 0.1 / 1000)


@pytest.mark.parametrize(
    "settings, m, expected",
    [({}, 1, 1), ({}, 0, 1), ({}, 10, 7), ({"max_predictions": 3}, 10, 3), ({"mask_probability": 0.01}, 10, 1)],
)
def test_target_cloze_counts(settings, m, expected):
    example = TargetCloze(**settings)(text_of(4, m), np.random.default_rng(9))
    assert len(example.targets["token"].output_indices) == expected
    assert (example.targets["token"].output_indices[:, 0] >= 6).all()


def test_source_tokens_are_hidden_on_request():
    rng = np.random.default_rng(10)
    objective = TargetCloze(mask_source=0.25)
    tokens = np.array([11, 12, SEP, 13, 14, 15, 16, 17, 18])  # passage SEP answer: eight tokens that may be hidden
    made = many(objective, Text(tokens, SPECIAL, second=np.array([21, 22])), 3000, rng)
    indices = made.targets["token"].output_indices[:, 0].reshape(3000, -1)
    assert ((indices < 11).sum(1) == 2).all()
    hidden = np.bincount(indices[indices < 11], minlength=12)
    assert hidden[[0, 3, 10]].sum() == 0  # CLS and SEPs
    for index in (1, 2, 4, 5, 6, 7, 8, 9):
        assert_rate(hidden[index], 3000, 0.25)


# ---------------------------------------------------------------- whole words, next sentence, refusals


@pytest.mark.parametrize("kind", [*PRETRAINING, TargetCloze])
def test_whole_words(kind):
    rng = np.random.default_rng(11)
    objective = kind(whole_words=True)
    several = 0
    for _ in range(100):
        text = text_of(60, 60, rng, words=0.5)
        example = objective(text, rng)
        segments = [(1, text.word_starts[:60]), (62, text.word_starts[60:])][: objective.segments]
        chosen = np.isin(np.arange(len(example.tokens)), example.targets["token"].output_indices[:, 0])
        for begin, starts in segments:
            inside = begin + 1 + np.flatnonzero(~starts[1:])
            assert (chosen[inside] == chosen[inside - 1]).all()
            several += chosen[inside].sum()
    assert several > 0


@pytest.mark.parametrize("kind", [*PRETRAINING, TargetCloze])
def test_whole_words_need_word_starts(kind):
    with pytest.raises(UnifiedError, match=f"{kind.name}: whole words are wanted, but .*Text.word_starts is None"):
        kind(whole_words=True)(text_of(5, 5), np.random.default_rng(0))


def test_next_sentence():
    rng = np.random.default_rng(12)
    first, second = np.array([11, 12]), np.array([21])
    for follows in (True, False):
        example = Bidirectional()(Text(first, SPECIAL, second=second, is_next=follows), rng)
        assert is_next(example) == int(follows)
    with_pairs, without = Bidirectional(), Bidirectional(next_sentence=False)
    assert (with_pairs.segments, with_pairs.wants_random_second, with_pairs.special_tokens) == (2, True, 3)
    assert (without.segments, without.wants_random_second, without.special_tokens) == (1, False, 2)
    assert is_next(without(Text(first, SPECIAL), rng)) == -1
    wanting = [name for name, kind in OBJECTIVES.items() if kind().wants_random_second]
    assert wanting == ["bidirectional", "bert", "xlnet"]
    with pytest.raises(UnifiedError, match="bidirectional: .* needs Text.is_next"):
        with_pairs(Text(first, SPECIAL, second=second), rng)


@pytest.mark.parametrize("kind", [Bidirectional, Seq2Seq, TargetCloze, TargetNext])
def test_two_segments_are_needed(kind):
    with pytest.raises(UnifiedError, match=f"{kind.name}: needs two segments"):
        kind()(Text(np.array([11]), SPECIAL, is_next=True), np.random.default_rng(0))


@pytest.mark.parametrize("kind", PRETRAINING)
def test_an_empty_text_is_refused(kind):
    with pytest.raises(UnifiedError, match=f"{kind.name}: the text has no token that may be predicted"):
        kind()(text_of(0, 0), np.random.default_rng(0))


@pytest.mark.parametrize(
    "kind, settings, message",
    [
        (Seq2Seq, {"mask_share": 0}, "seq2seq: mask_share must be above 0 and at most 1, got 0"),
        (Seq2Seq, {"mask_share": 15}, "mask_share .* got 15"),
        (LeftToRight, {"ngram_share": 2}, "left_to_right: ngram_share .* got 2"),
        (Bidirectional, {"next_sentence": 0}, "next_sentence must be True or False, got 0"),
        (TargetCloze, {"mask_probability": 0.0}, "mask_probability .* got 0.0"),
        (TargetCloze, {"mask_source": -1}, "mask_source must be from 0 to 1, got -1"),
        (TargetCloze, {"max_predictions": 0}, "max_predictions must be at least 1, got 0"),
    ],
)
def test_settings_are_checked(kind, settings, message):
    with pytest.raises(UnifiedError, match=message):
        kind(**settings)
