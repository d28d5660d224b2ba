"""ANNA's masking: against a literal reading of its three steps, and the distribution of every choice."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.support.asked import boundaries, is_next
from tests.support.many import many
from tests.support.rates import assert_rate
from unified.data.annotations import TAGS
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import Supply, parse_objectives
from unified.objectives.anna import SCHEMES, Anna
from unified.objectives.tags import with_tags

SPECIAL = Vocabulary([f"w{i}" for i in range(300)]).special
CLS, SEP = SPECIAL.begin, SPECIAL.separator


def text_of(length, spans=(), starts=None, kind="noun_phrases"):
    tokens = np.arange(length) % 250 + SPECIAL.ordinary_start
    starts = np.ones(length, dtype=bool) if starts is None else np.array(starts, dtype=bool)
    spans = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return Text(tokens, SPECIAL, word_starts=starts, spans={kind: spans})


def random_text(rng, kind="noun_phrases"):
    """Words of about two tokens; spans of one to eight tokens, whole words or not."""
    n = int(rng.integers(1, 400))
    starts = rng.random(n) < 0.5
    starts[0] = True
    bounds = np.flatnonzero(rng.random(n + 1) < 0.4)
    return text_of(n, np.stack([bounds[:-1], bounds[1:]], axis=1)[::2], starts, kind)


def assert_chi_square(counts, probabilities):
    """Within 5 standard deviations of the statistic: a right distribution fails once in some thousand seeds."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    expected = counts.sum() * probabilities
    assert counts[expected == 0].sum() == 0 and abs(probabilities.sum() - 1) < 1e-9
    counts, expected = counts[expected > 0], expected[expected > 0]
    freedom = len(counts) - 1
    assert ((counts - expected) ** 2 / expected).sum() < freedom + 5 * np.sqrt(2 * freedom), counts / counts.sum()


def literal(objective, text, draws):
    """Indices of the text hidden by spans, by words and as tokens, by the docstring, with ``draws`` of one example."""
    n = len(text.tokens)
    count = max(1, round(objective.mask_share * n))
    (uniform,) = draws.uniforms("quotas").tolist()
    first = min(count, int(np.floor(count * objective.span_share + uniform)))
    second = min(count, int(np.floor(count * (objective.span_share + objective.word_share) + uniform)))
    words, hidden = [], set()
    for index in range(n):
        if index == 0 or text.word_starts[index]:
            words.append([index, index + 1])
        words[-1][1] = index + 1
    by_kind = []
    for purpose, group, budget in (
        ("spans", next(iter(text.spans.values())).tolist(), first),
        ("words", words, second),
    ):
        before = set(hidden)
        for number in draws.permutations(purpose, np.array([len(group)])).tolist():
            start, stop = group[number]
            fresh = set(range(start, stop)) - hidden
            if len(hidden) + len(fresh) <= budget:
                hidden |= fresh
        by_kind.append(hidden - before)
    rest = [index for index in range(n) if index not in hidden]
    order = draws.permutations("tokens", np.array([len(rest)])).tolist()
    return *by_kind, {rest[number] for number in order[: count - len(hidden)]}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"span_share": 0.6, "word_share": 0.4}, {"mask_share": 0.5}])
@pytest.mark.parametrize("scheme", ["noun_phrase", "entity"])
def test_three_steps_are_those_of_a_literal_reading(scheme, settings):
    objective, rng = Anna(scheme=scheme, **settings), np.random.default_rng(0)
    kinds = Counter()
    for seed in range(60):
        text = random_text(rng, SCHEMES[scheme])
        draws = Draws.from_generator(np.random.default_rng(seed))
        by_span, by_word, single = literal(objective, text, draws)
        example = objective(text, np.random.default_rng(seed))
        assert example.targets["token"].output_indices[:, 0].tolist() == sorted(
            1 + index for index in by_span | by_word | single
        )
        assert len(example.targets["token"].output_indices) == max(1, round(objective.mask_share * len(text.tokens)))
        kinds += Counter(spans=len(by_span), words=len(by_word), tokens=len(single))
    shares = np.array([kinds[name] for name in ("spans", "words", "tokens")]) / kinds.total()
    wanted = objective.span_share, objective.word_share, 1 - objective.span_share - objective.word_share
    assert np.allclose(shares, wanted, atol=0.05)  # what does not fit moves on, so not exactly


def test_structure():
    text = text_of(20, [(3, 6)])
    example = Anna()(text, np.random.default_rng(0))
    assert example.tokens.shape == (22,) and example.tokens[[0, -1]].tolist() == [CLS, SEP]
    restored = example.tokens.copy()
    restored[example.targets["token"].output_indices[:, 0]] = example.targets["token"].labels
    assert restored.tolist() == [CLS, *text.tokens.tolist(), SEP]
    assert example.mask.structure == "full" and (example.token_types == 0).all()
    assert example.positions.tolist() == list(range(22)) and is_next(example) == -1 and len(boundaries(example)) == 0
    assert Anna().segments == 1 and Anna().special_tokens == 2 and not Anna().wants_random_second


@pytest.mark.parametrize("count, length", [(1, 7), (2, 13), (77, 512)])
def test_each_kind_has_its_share_of_the_budget(count, length):
    """Single tokens are spans and words here, so every quota is filled exactly; it is its share rounded up or down."""
    shares, trials = (0.45, 0.35, 0.2), 6000
    objective = Anna(span_share=shares[0], word_share=shares[1])
    draws = Draws.from_generator(np.random.default_rng(1), trials)
    quotas = objective.quotas(np.full(trials, count), draws).T
    assert (quotas.sum(axis=1) == count).all() and quotas.min() >= 0
    for kind, share in enumerate(shares):
        floor = int(np.floor(count * share + 1e-9))
        assert set(quotas[:, kind].tolist()) <= {floor, floor + 1}
        assert_rate(int((quotas[:, kind] - floor).sum()), trials, count * share - floor)
    assert max(1, round(0.15 * length)) == count


def test_one_hidden_token_is_a_span_a_word_or_a_token_equally_often():
    """Seven tokens, one of them hidden: index 0 is a span and a word, index 1 a word, the rest a word too long."""
    text = text_of(7, [(0, 1), (3, 6)], [1, 1, 1, 0, 0, 0, 0])
    objective, rng = Anna(), np.random.default_rng(2)
    made = many(objective, text, 20_000, rng)
    assert (made.target_counts["token"] == 1).all()
    counts = np.bincount(made.targets["token"].output_indices[:, 0] - 1, minlength=7)
    single = np.full(7, 1 / 7) / 3
    by_word = np.array([1, 1, 0, 0, 0, 0, 0]) / 2 / 3
    by_span = np.array([1, 0, 0, 0, 0, 0, 0]) / 3
    assert_chi_square(counts, single + by_word + by_span)


def test_spans_words_and_tokens_are_drawn_evenly():
    spans = [(3 * i, 3 * i + 2) for i in range(20)]
    starts = np.arange(60) % 3 == 0
    text, rng = text_of(60, spans, starts), np.random.default_rng(3)
    for settings, unit in [((1, 0), spans), ((0, 1), [(3 * i, 3 * i + 3) for i in range(20)]), ((0, 0), None)]:
        objective = Anna(span_share=settings[0], word_share=settings[1], mask_share=0.1)
        made = many(objective, text, 4000, rng)
        assert (made.target_counts["token"] == 6).all()
        predicted = made.targets["token"].output_indices[:, 0].reshape(4000, 6) - 1
        counts = np.bincount(predicted.ravel(), minlength=60)
        if unit:
            hidden = np.zeros((4000, 60), dtype=bool)
            np.put_along_axis(hidden, predicted, True, axis=1)
            whole = np.zeros_like(hidden)
            for start, stop in unit:
                whole[:, start:stop] = hidden[:, start, None]
            assert (hidden == whole).all() and (hidden.sum(1) == 6).all()
        units = counts if unit is None else counts[[start for start, _ in unit]]
        # Drawn without replacement, so the statistic is smaller than that of independent draws.
        assert_chi_square(units, np.full(len(units), 1 / len(units)))


def test_what_spans_cannot_fill_goes_to_words_and_then_to_tokens():
    starts = np.arange(100) % 2 == 0
    none = text_of(100, [], starts)
    too_long = text_of(100, [(0, 40), (40, 100)], starts)
    one_word = text_of(100, [], np.arange(100) == 0)
    rng = np.random.default_rng(0)
    for text in (none, too_long):
        made = many(Anna(span_share=0.8, word_share=0.2), text, 50, rng)
        for indices in made.targets["token"].output_indices[:, 0].reshape(50, 15):
            hidden_of_word = Counter(((indices - 1) // 2).tolist())
            assert sorted(hidden_of_word.values()) == [1] + [2] * 7
    assert (many(Anna(), one_word, 50, rng).target_counts["token"] == 15).all()


def test_the_budget_is_met_and_spans_are_whole_where_they_may_overlap():
    text = text_of(40, [(0, 4), (2, 6), (2, 6), (10, 11)])
    for example in many(Anna(span_share=1, word_share=0), text, 100, np.random.default_rng(0)).split():
        hidden = set((example.targets["token"].output_indices[:, 0] - 1).tolist())
        assert len(hidden) == 6
        first, other = set(range(4)) <= hidden, set(range(2, 6)) <= hidden
        assert first or other  # either span of four fits, and both together do
        assert first and other or 10 in hidden


def test_token_scheme_is_the_plain_masked_language_model():
    text = Text(np.arange(100) + SPECIAL.ordinary_start, SPECIAL)  # no spans, no word starts
    objective, rng = Anna(scheme="token"), np.random.default_rng(4)
    made = many(objective, text, 3000, rng)
    assert (made.target_counts["token"] == 15).all()
    counts = np.bincount(made.targets["token"].output_indices[:, 0] - 1, minlength=100)
    assert_chi_square(counts, np.full(100, 0.01))


def test_eighty_ten_ten():
    text, rng = text_of(400, [(i, i + 3) for i in range(0, 400, 5)]), np.random.default_rng(5)
    made = many(Anna(), text, 400, rng)
    labels = made.targets["token"].labels
    tokens = np.concatenate([example.tokens[example.targets["token"].output_indices[:, 0]] for example in made.split()])
    kinds = np.where(tokens == SPECIAL.mask, "mask", np.where(tokens == labels, "kept", "random"))
    seen = Counter(kinds.tolist())
    total = seen.total()
    chance = 0.1 / (SPECIAL.ordinary_stop - SPECIAL.ordinary_start)  # a random token may be the old one
    assert_rate(seen["mask"], total, 0.8)
    assert_rate(seen["kept"], total, 0.1 + chance)
    assert_rate(seen["random"], total, 0.1 - chance)


def tagged_text(rng):
    """A text of 1 to 120 tokens with words by letters, and words of a tagger that often end elsewhere and overlap."""
    n = int(rng.integers(1, 120))
    starts = rng.random(n) < 0.6
    starts[0] = True
    bounds = np.flatnonzero(np.append(rng.random(n) < 0.7, True))
    spans = np.stack([bounds[:-1], bounds[1:]], axis=1)[rng.random(len(bounds) - 1) < 0.9]
    spans[:, 0] = np.maximum(0, spans[:, 0] - (rng.random(len(spans)) < 0.15))  # shares a token with the word before
    nested = np.column_stack([spans[:, 0], np.maximum(spans[:, 0] + 1, spans[:, 1] - 1)])
    spans = np.stack([spans, nested], axis=1)[:, : 1 + (rng.random() < 0.2)].reshape(-1, 2)
    tags = rng.integers(len(TAGS), size=len(spans))
    tokens = np.arange(n) % 250 + SPECIAL.ordinary_start
    return Text(tokens, SPECIAL, word_starts=starts, spans={"parts_of_speech": np.column_stack([spans, tags])})


def literal_tags(text):
    """By the definition, a token at a time: (tokens of a word, its tag, None where it has none)."""
    words = []
    for start, stop, tag in text.spans["parts_of_speech"].tolist():
        if words and start < words[-1][1]:
            words[-1] = (words[-1][0], max(stop, words[-1][1]), words[-1][2])
        else:
            words.append((start, stop, tag))
    found, index = [], 0
    for start, stop, tag in [*words, (len(text.tokens), len(text.tokens), None)]:
        while index < start:  # in no word of the tagger
            last = index + 1
            while last < start and not text.word_starts[last]:
                last += 1
            found.append((list(range(index, last)), None))
            index = last
        if stop > start:
            found.append((list(range(start, stop)), tag))
        index = stop
    return found


def test_a_tag_is_a_word_by_itself_and_spans_of_the_untagged_text_are_gone():
    """Words of tokens 0 1, 2 and 4; token 3 is a word without a tag."""
    spans = np.array([[0, 2, 3], [2, 3, 1], [4, 5, 2]])
    starts = np.array([True, True, True, True, True])
    text = Text(np.arange(5) + 10, SPECIAL, word_starts=starts, spans={"parts_of_speech": spans})
    tagged, first = with_tags(Texts.of([text]), "anna"), SPECIAL.first_sentinel + SPECIAL.sentinel_count - len(TAGS)
    assert tagged.tokens.tolist() == [10, 11, first + 3, 12, first + 1, 13, 14, first + 2]
    assert tagged.word_starts.astype(int).tolist() == [1, 0, 1, 1, 1, 1, 1, 1]
    assert tagged.lengths.tolist() == [[8]] and tagged.spans == {}


def test_pos_puts_a_tag_behind_each_word_and_hides_whole_words():
    """Table 7, "POS": words and tags in turn, 15 % of the words' tokens hidden by whole words, tags never."""
    objective, rng = Anna(scheme="pos"), np.random.default_rng(7)
    first, hidden_words, tagged = SPECIAL.first_sentinel + SPECIAL.sentinel_count - len(TAGS), 0, 0
    for _ in range(150):
        text = tagged_text(rng)
        words = literal_tags(text)
        expected, of_words = [CLS], []
        for indices, tag in words:
            of_words.append(list(range(len(expected), len(expected) + len(indices))))
            expected += [*text.tokens[indices].tolist(), *([first + tag] if tag is not None else [])]
            tagged += tag is not None
        example = objective(text, rng)
        restored = example.tokens.copy()
        restored[example.targets["token"].output_indices[:, 0]] = example.targets["token"].labels
        assert restored.tolist() == [*expected, SEP]
        assert len(example.tokens) <= objective.lengths(np.array([len(text.tokens)]))[0]
        assert (example.targets["token"].labels < SPECIAL.ordinary_stop).all(), "tags are not predicted"
        is_tag = np.array(restored) >= first
        assert (example.tokens[is_tag] == restored[is_tag]).all(), "tags are not hidden"
        count, hidden = (
            max(1, round(0.15 * len(text.tokens))),
            set(example.targets["token"].output_indices[:, 0].tolist()),
        )
        assert len(hidden) == count
        whole = [set(word) for word in of_words if set(word) <= hidden]
        rest = hidden - set().union(*whole) if whole else hidden
        # Single tokens fill up only where no other word would fit.
        assert all(len(word) > len(rest) for word in of_words if not set(word) & hidden), "a word would have fitted"
        hidden_words += len(whole)
        assert len(rest) < min((len(word) for word in of_words if not set(word) <= hidden), default=1)
    assert hidden_words > 500 and tagged > 2500
    with pytest.raises(UnifiedError, match="cannot mark entities"):
        Anna(scheme="pos", mark_entities=True)


def test_tokens_within_entities_are_marked_whether_they_are_hidden_or_not():
    """By an interval for each entity, behind CLS; two texts, so that the second stands behind the first."""
    rng, objective = np.random.default_rng(0), Anna(scheme="entity", mark_entities=True)
    for _ in range(5):
        texts = [random_text(rng, "entities") for _ in range(2)]
        examples = [objective(text, rng) for text in texts]
        for text, example in zip(texts, examples, strict=True):
            within = [
                any(start < i <= stop for start, stop in text.spans["entities"]) for i in range(len(example.tokens))
            ]
            assert example.entities.dtype == bool and example.entities.tolist() == within
    assert Anna(scheme="entity")(texts[0], rng).entities is None


def test_what_it_needs():
    nothing, everything = Supply(SPECIAL, False, 100), Supply(SPECIAL, True, 100, SCHEMES.values())
    words = Supply(SPECIAL, True, 100)
    assert "where words begin" in Anna().unmet(nothing)
    for scheme, kind in SCHEMES.items():
        assert Anna(scheme=scheme).unmet(everything) is None
        assert Anna(scheme=scheme).annotations == (() if scheme == "token" else (kind,))
        if scheme != "token":
            assert f"needs the annotation {kind}" in Anna(scheme=scheme).unmet(words)
    assert Anna(scheme="token").unmet(nothing) is None
    assert Anna(span_share=0, word_share=0).unmet(nothing) is None
    assert Anna(span_share=0).unmet(words) is None
    with pytest.raises(UnifiedError, match="anna: needs the annotation entities, but this text has none"):
        Anna(scheme="entity")(text_of(10), np.random.default_rng(0))
    with pytest.raises(UnifiedError, match="the text has no token that may be predicted"):
        Anna()(text_of(0), np.random.default_rng(0))
    with pytest.raises(UnifiedError, match="anna: a span of noun_phrases reaches beyond its text"):
        Anna()(text_of(10, [(8, 11)]), np.random.default_rng(0))
    few = Supply(replace(SPECIAL, sentinel_count=16), True, 100, SCHEMES.values())
    assert Anna(scheme="pos").unmet(few) == "needs 17 sentinels for parts of speech, the dictionary has 16"
    assert Anna(scheme="pos").unmet(replace(few, special=replace(SPECIAL, sentinel_count=17))) is None
    tagged = Text(np.arange(5, 9), SPECIAL, spans={"parts_of_speech": np.array([[0, 4, 1]])})
    with pytest.raises(UnifiedError, match="this text does not say where words begin"):
        Anna(scheme="pos")(tagged, np.random.default_rng(0))
    spans = {"parts_of_speech": np.array([[0, 5, 1]])}
    beyond = Text(np.arange(5, 9), SPECIAL, word_starts=np.ones(4, bool), spans=spans)
    with pytest.raises(UnifiedError, match="a span of parts_of_speech reaches beyond its text"):
        Anna(scheme="pos")(beyond, np.random.default_rng(0))


@pytest.mark.parametrize(
    "settings, message",
    [
        ("scheme='verb'", "scheme must be one of noun_phrase, entity, pos, token, got 'verb'"),
        ("mark_entities=2", "mark_entities must be True or False, got 2"),
        ("mask_share=0", "mask_share must be above 0 and at most 1"),
        ("span_share=1.5", "span_share must be from 0 to 1"),
        ("span_share=0.7, word_share=0.4", "span_share \\+ word_share must be at most 1, got 0.7 \\+ 0.4"),
        ("mask_replace_share=0.9, random_replace_share=0.2", "must be at most 1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(UnifiedError, match=message):
        parse_objectives(f"anna({settings})")
