"""SpanBERT: draws against a literal reading of the published loop, the shares of lengths, and the boundary head."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.support.asked import boundaries, is_next
from tests.support.many import each, many, one_text
from tests.support.rates import assert_rate
from tests.support.token_files import numbered_documents, random_sizes, write_documents
from unified.data.annotations import Spans
from unified.data.collate import collate
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel
from unified.objectives import Supply, parse_objectives
from unified.objectives.spanbert import SpanBert
from unified.objectives.spans import cover_annotated, cover_spans, geometric_shares, hidden_ranges
from unified.planning.documents import DocumentTexts

VOCABULARY = Vocabulary([f"w{i}" for i in range(300)])
SPECIAL = VOCABULARY.special
#: facts of the published code: lengths 1 to 10 at p = 0.2, renormalized.
PUBLISHED = (0.2241, 0.1792, 0.1434, 0.1147, 0.0918, 0.0734, 0.0587, 0.0470, 0.0376, 0.0301)


def text_of(length, rng, word_share=0.6, second=0):
    starts = rng.random(length + second) < word_share
    tokens = rng.integers(SPECIAL.ordinary_start, SPECIAL.ordinary_stop, length + second)
    return Text(tokens[:length], SPECIAL, tokens[length:] if second else None, True if second else None, starts)


def literal_cover(candidates, word_starts, count, anchors, lengths):
    """The published loop, a token at a time; anchors and lengths are given."""
    hidden = set()
    n = len(candidates)
    ends_at = {i for i in range(n) if i + 1 == n or word_starts[i + 1] or not candidates[i + 1]}
    for anchor, length in zip(anchors, lengths, strict=True):
        if len(hidden) >= count:
            break
        if anchor in hidden:
            continue
        index = anchor
        while index > 0 and not word_starts[index] and candidates[index - 1]:
            index -= 1
        words = 0
        while words < length and index < n and candidates[index] and len(hidden) < count:
            while True:
                if len(hidden) >= count:
                    break
                hidden.add(index)
                index += 1
                if index - 1 in ends_at:
                    break
            words += 1
    return sorted(hidden)


@pytest.mark.parametrize("seed", range(30))
def test_spans_are_those_of_the_published_loop(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 120))
    candidates = rng.random(n) < 0.95
    candidates[rng.integers(n)] = True
    starts = rng.random(n) < 0.6
    starts[0] = True
    count = math.ceil(float(rng.choice([0.15, 0.5, 1.0])) * candidates.sum())
    shares = geometric_shares(0.2, 10)
    draws, extents = Draws.from_generator(rng), Extents(np.array([n]))
    hidden = cover_spans(candidates, starts, extents, np.array([count]), shares, draws)
    anchors, lengths, some = [], [], np.array([32])
    indices = np.flatnonzero(candidates)
    for attempt in range(100):  # the draws of the function, in its order
        anchors += indices[draws.integers(f"anchors, attempt {attempt}", len(indices), some)].tolist()
        uniforms = draws.uniforms(f"lengths, attempt {attempt}", some)
        lengths += (np.searchsorted(np.cumsum(shares)[:-1], uniforms, side="right") + 1).tolist()
    assert np.flatnonzero(hidden).tolist() == literal_cover(candidates, starts, count, anchors, lengths)
    assert hidden.sum() == count


@pytest.mark.parametrize("words", [False, True])
def test_a_batch_is_its_sequences_one_by_one(words):
    """Sequences that touch without a symbol between them: no span reaches into the next."""
    rng = np.random.default_rng(5)
    extents = Extents(rng.integers(1, 40, 50))
    candidates = rng.random(extents.total) < 0.95
    candidates[extents.starts] = True
    starts = rng.random(extents.total) < 0.6 if words else None
    counts = np.minimum(rng.integers(0, 30, 50), extents.counts(np.flatnonzero(candidates)))
    draws, shares = Draws.from_generator(rng, 50), geometric_shares(0.2, 10)
    together = cover_spans(candidates, starts, extents, counts, shares, draws)
    for i, (start, stop) in enumerate(zip(extents.starts, extents.stops, strict=True)):
        one, words_of_one = Extents(extents.lengths[i : i + 1]), starts[start:stop] if words else None
        alone = cover_spans(candidates[start:stop], words_of_one, one, counts[i : i + 1], shares, draws.take([i]))
        assert together[start:stop].tolist() == alone.tolist() and alone.sum() == counts[i]


def test_lengths_have_the_published_shares():
    shares = geometric_shares(0.2, 10)
    assert np.allclose(shares, PUBLISHED, atol=5e-5)
    assert (shares * np.arange(1, 11)).sum() == pytest.approx(3.797, abs=1e-3)


def test_drawn_lengths_follow_the_shares():
    """Chi-square of the first span's length; in a text so long that other spans hardly ever touch it."""
    trials, batch = 8000, 400
    counts, shares, rng = np.zeros(30), geometric_shares(0.2, 10), np.random.default_rng(0)
    extents = Extents(np.full(batch, 2000))
    for _ in range(trials // batch):
        draws = Draws.from_generator(rng, batch)
        drawn = draws.integers("anchors, attempt 0", 2000, np.full(batch, 32)).reshape(batch, 32)
        anchors = extents.starts + drawn[:, 0]
        candidates = np.ones(extents.total, dtype=bool)
        first, lengths = hidden_ranges(cover_spans(candidates, None, extents, np.full(batch, 10), shares, draws))
        own = first.searchsorted(anchors, side="right") - 1
        assert (anchors < first[own] + lengths[own]).all()
        counts += np.bincount(lengths[own], minlength=30)
    expected = np.array(PUBLISHED) / sum(PUBLISHED) * trials
    statistic = ((counts[1:11] - expected) ** 2 / expected).sum()
    assert statistic < 27.9  # chi-square with 9 degrees of freedom exceeds it once in 1,000


def test_runs():
    first, lengths = hidden_ranges(np.array([1, 1, 0, 0, 1, 0, 1], dtype=bool))
    assert first.tolist() == [0, 4, 6] and lengths.tolist() == [2, 1, 1]


@pytest.mark.parametrize("next_sentence", [False, True])
def test_an_example(next_sentence):
    objective, rng = SpanBert(next_sentence=next_sentence, boundary_offsets=3), np.random.default_rng(4)
    seen = 0
    for _ in range(300):
        text = text_of(int(rng.integers(1, 60)), rng, second=int(rng.integers(1, 30)) if next_sentence else 0)
        example = objective(text, rng)
        whole = example.tokens.copy()
        whole[example.targets["token"].output_indices[:, 0]] = example.targets["token"].labels
        parts = [text.tokens, text.second] if next_sentence else [text.tokens]
        assert whole.tolist() == [SPECIAL.begin] + [t for part in parts for t in [*part.tolist(), SPECIAL.separator]]
        assert len(example.targets["token"].output_indices) == math.ceil(0.15 * sum(map(len, parts)) - 1e-9)
        assert is_next(example) == (1 if next_sentence else -1)
        hidden = set(example.targets["token"].output_indices[:, 0].tolist())
        rows = []
        for first in sorted(hidden):
            if first - 1 in hidden:
                continue
            last = first
            while last + 1 in hidden:
                last += 1
            left, right = first - 1, last + 1
            if whole[left] in (SPECIAL.begin, SPECIAL.separator) or whole[right] == SPECIAL.separator:
                continue
            rows += [[left, right, i - first, int(whole[i])] for i in range(first, min(last, first + 2) + 1)]
        assert boundaries(example).tolist() == rows
        seen += len(rows)
    assert seen > 300


def test_spans_are_replaced_whole():
    rng, counts = np.random.default_rng(5), Counter()
    objective = SpanBert(mask_share=0.3)
    for example in each(objective, [text_of(100, rng) for _ in range(400)], rng):
        hidden = np.isin(np.arange(len(example.tokens)), example.targets["token"].output_indices[:, 0])
        original = example.tokens.copy()
        original[example.targets["token"].output_indices[:, 0]] = example.targets["token"].labels
        for first, length in zip(*hidden_ranges(hidden), strict=True):
            now, before = example.tokens[first : first + length], original[first : first + length]
            kind = "mask" if (now == SPECIAL.mask).all() else "kept" if (now == before).all() else "random"
            assert kind != "random" or SPECIAL.mask not in now
            counts[kind] += length > 2
    total = sum(counts.values())
    assert_rate(counts["mask"], total, 0.8)
    assert_rate(counts["random"], total, 0.1)


def test_per_token_replacement_mixes_within_a_span():
    rng = np.random.default_rng(6)
    example = SpanBert(mask_share=0.9, per_span=False)(text_of(400, rng), rng)
    masked = example.tokens[example.targets["token"].output_indices[:, 0]] == SPECIAL.mask
    assert_rate(int(masked.sum()), len(masked), 0.8)


def test_ablations():
    rng = np.random.default_rng(7)
    text = text_of(300, rng, word_share=0.5)
    starts = text.word_starts.copy()
    starts[0] = True
    word_of = np.cumsum(starts)
    hidden = SpanBert(scheme="whole_word")(text, rng).targets["token"].output_indices[:, 0] - 1
    sizes = np.bincount(word_of)
    partly = [word for word, count in Counter(word_of[hidden].tolist()).items() if count != sizes[word]]
    assert len(partly) <= 1  # the budget may cut the last word
    singles = SpanBert(scheme="subword")(text_of(300, rng, word_share=0.0), rng)
    assert len(hidden_ranges(np.isin(np.arange(302), singles.targets["token"].output_indices[:, 0]))[0]) > 20


def test_without_the_boundary_objective_examples_have_one_head_and_are_the_same():
    text = text_of(60, np.random.default_rng(7))
    with_it, without = (
        objective(text, np.random.default_rng(8)) for objective in (SpanBert(), SpanBert(boundary_offsets=0))
    )
    assert list(without.targets) == ["token"] and list(with_it.targets) == ["token", "boundary"]
    assert without.tokens.tolist() == with_it.tokens.tolist()
    assert without.targets["token"].labels.tolist() == with_it.targets["token"].labels.tolist()


def test_random_tokens_come_from_the_corpus(tmp_path):
    documents = numbered_documents(random_sizes(np.random.default_rng(0), 8, 5, 6))
    texts = DocumentTexts(write_documents(tmp_path / "train", documents), Vocabulary([]).special)
    text = one_text(texts, 0, 5, SpanBert(), np.random.default_rng(0))
    drawn = text.sampler(np.array([20_000]), Draws.from_generator(np.random.default_rng(1)))
    total = int(texts.bounds[-1])
    assert drawn.dtype == np.int64 and len(drawn) == 20_000
    counts = np.bincount(drawn, minlength=10 + total)[10:]
    assert counts.sum() == 20_000  # never a separator
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < total + 5 * np.sqrt(2 * total)


def model():
    torch.manual_seed(0)
    sizes = {"layers": 2, "width": 32, "heads": 2, "dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2}
    config = TransformerConfig(vocabulary_size=len(VOCABULARY), boundary_offsets=20, **sizes)
    return UnifiedModel.for_language(config).double()


def batch_of(*examples, row_length=None):
    return collate([list(examples)], row_length, ("spanbert",), SPECIAL.pad)


def example_of(seed=8, length=60):
    rng = np.random.default_rng(seed)
    return SpanBert()(text_of(length, rng), rng)


def test_boundary_scores_are_the_published_formula():
    """h0 = [x_left; x_right; p]; h1 = LN(GELU(W1 h0)); h2 = LN(GELU(W2 h1)); scores = E h2 + b, a token at a time."""
    net, example = model().eval(), example_of()
    batch = batch_of(example)
    states, head, table = net.hidden(batch)[0], net.heads["boundary"], net.transformer.embeddings.tokens.weight
    total = 0.0
    for left, right, offset, label in boundaries(example).tolist():
        h = torch.cat([states[left], states[right], head.distances.weight[offset]])
        for layer, norm in ((head.first, head.first_norm), (head.second, head.second_norm)):
            h = layer.weight @ h + layer.bias
            h = 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))
            h = (h - h.mean()) / torch.sqrt(h.var(unbiased=False) + norm.eps) * norm.weight + norm.bias
        total -= torch.log_softmax(table @ h + head.bias, 0)[label]
    losses = net(batch)
    loss = losses["spanbert_boundary"]
    assert int(loss.count) == len(boundaries(example)) > 5
    assert float(loss.total) == pytest.approx(float(total), rel=1e-6)  # losses are summed in float32
    assert float(losses["spanbert"].total) > 0


def test_only_the_boundaries_receive_gradient_from_the_last_layer():
    net, example = model().eval(), example_of()
    batch = batch_of(example)
    states = net.hidden(batch).flatten(0, 1).detach().requires_grad_()
    asked = batch.targets["boundary"]
    scores = net.heads["boundary"](
        *(states[side] for side in asked.output_indices.unbind(1)), asked.inputs["distances"], net.symbols
    )
    functional.cross_entropy(scores, asked.labels).backward()
    touched = states.grad.abs().sum(-1) > 0
    assert set(touched.nonzero().ravel().tolist()) == set(boundaries(example)[:, :2].ravel().tolist())
    assert not touched[
        torch.from_numpy(np.setdiff1d(example.targets["token"].output_indices[:, 0], boundaries(example)[:, :2]))
    ].any()


def test_packed_equals_alone():
    net, one, two = model().eval(), example_of(1, 40), example_of(2, 50)
    together = net(batch_of(one, two, row_length=100))["spanbert_boundary"]
    alone = [net(batch_of(example))["spanbert_boundary"] for example in (one, two)]
    assert float(together.total) == pytest.approx(sum(float(loss.total) for loss in alone), rel=1e-6)
    assert int(together.count) == sum(int(loss.count) for loss in alone)


def test_a_model_without_the_head_says_so():
    net = UnifiedModel.for_language(TransformerConfig(len(VOCABULARY), layers=1, width=8, heads=2))
    assert not any("boundary" in name for name, _ in net.named_parameters())
    with pytest.raises(UnifiedError, match="no span-boundary head"):
        net(batch_of(example_of()))


def literal_annotated(candidates, word_starts, spans, count, rounds):
    """Rounds of (anchor, number of a span or None), a token at a time."""
    hidden, n = [], len(candidates)
    for anchor, span in rounds:
        if span is not None:
            start, stop = spans[span]
        else:
            start, stop = anchor, anchor + 1
            while not word_starts[start] and start > 0 and candidates[start - 1]:
                start -= 1
            while stop < n and candidates[stop] and not word_starts[stop]:
                stop += 1
        for index in range(start, stop):
            if index not in hidden and len(hidden) < count:
                hidden.append(index)
    return sorted(hidden)


def annotated_sequences(rng, n):
    """Candidates, word starts, spans, extents and counts of n sequences that begin and end with a special symbol."""
    extents = Extents(rng.integers(3, 120, n))
    candidates = np.ones(extents.total, dtype=bool)
    candidates[extents.starts] = candidates[extents.stops - 1] = False
    spans = []
    for start, length in zip(extents.starts, extents.lengths, strict=True):
        bounds = start + 1 + np.flatnonzero(rng.random(length - 1) < 0.3)
        spans.append(np.stack([bounds[:-1], bounds[1:]], axis=1)[rng.integers(3) :])
    words = extents.counts(np.flatnonzero(candidates))
    counts = np.ceil(rng.choice([0.15, 0.5, 1.0], n) * words).astype(np.int64)
    return candidates, rng.random(extents.total) < 0.6, spans, extents, counts


@pytest.mark.parametrize("seed", range(30))
def test_annotated_rounds_are_those_of_a_literal_reading(seed):
    rng = np.random.default_rng(seed)
    candidates, starts, (spans,), extents, (count,) = annotated_sequences(rng, 1)
    draws, some = Draws.from_generator(rng), np.array([64])
    hidden = cover_annotated(candidates, starts, Spans.of([spans]), extents, np.array([count]), 0.5, draws)
    rounds, indices = [], np.flatnonzero(candidates)
    for attempt in range(100):  # the draws of the function, in its order
        anchors = indices[draws.integers(f"words, attempt {attempt}", len(indices), some)].tolist()
        annotated = draws.uniforms(f"rounds, attempt {attempt}", some) < (0.5 if len(spans) else 0)
        numbers = draws.integers(f"spans, attempt {attempt}", len(spans), some)
        chosen = [number if yes else None for yes, number in zip(annotated, numbers, strict=True)]
        rounds += zip(anchors, chosen, strict=True)
    assert np.flatnonzero(hidden).tolist() == literal_annotated(candidates, starts, spans, count, rounds)
    assert hidden.sum() == count


def test_annotated_spans_of_a_batch_are_those_of_its_sequences_one_by_one():
    """Some have no spans, and those with many tokens to hide take several attempts."""
    rng = np.random.default_rng(5)
    candidates, starts, spans, extents, counts = annotated_sequences(rng, 50)
    assert not all(map(len, spans))
    draws = Draws.from_generator(rng, 50)
    together = cover_annotated(candidates, starts, Spans.of(spans), extents, counts, 0.5, draws)
    for i, (start, stop) in enumerate(zip(extents.starts, extents.stops, strict=True)):
        own, one = Spans.of([spans[i] - start]), Extents(extents.lengths[i : i + 1])
        alone = cover_annotated(
            candidates[start:stop], starts[start:stop], own, one, counts[i : i + 1], 0.5, draws.take([i])
        )
        assert together[start:stop].tolist() == alone.tolist() and alone.sum() == counts[i]


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme, kind, spans",
    [("named_entity", "entities", [[1, 3], [4, 6]]), ("noun_phrase", "noun_phrases", [[4, 6]])],
)
def test_half_of_the_rounds_hide_an_annotated_span(scheme, kind, spans):
    """Six tokens, one of them hidden: the first of an annotated span, or the first of the word of a random token."""
    spans = np.array(spans)
    starts = np.array([True, True, True, False, False, True])
    text = Text(np.arange(6) + 10, SPECIAL, word_starts=starts, spans={kind: spans})
    objective, rng = SpanBert(scheme=scheme), np.random.default_rng(3)
    made = many(objective, text, 4_000, rng)
    assert (made.target_counts["token"] == 1).all()
    counts = np.bincount(made.targets["token"].output_indices[:, 0] - 1, minlength=6)
    of_spans = np.bincount(spans[:, 0], minlength=6) / len(spans)
    expected = 4_000 * (of_spans / 2 + np.array([1, 1, 3, 0, 0, 1]) / 12)
    seen = expected > 0
    assert counts[~seen].sum() == 0
    assert ((counts - expected)[seen] ** 2 / expected[seen]).sum() < 4 + 5 * np.sqrt(8)


def test_annotated_spans_of_both_segments_are_hidden():
    """The second begins with one of them."""
    spans = np.array([[2, 5], [7, 10]])
    tokens = np.arange(14) + 10
    text = Text(tokens[:7], SPECIAL, tokens[7:], True, np.ones(14, dtype=bool), spans={"entities": spans})
    objective, seen = SpanBert(scheme="named_entity", next_sentence=True, mask_share=0.2), Counter()
    for example in many(objective, text, 300, np.random.default_rng(0)).split():
        seen[tuple(example.targets["token"].labels.tolist())] += 1
        assert len(example.targets["token"].labels) == 3
    first, second = tuple(tokens[2:5].tolist()), tuple(tokens[7:10].tolist())
    assert seen[first] > 30 and seen[second] > 30 and len(seen) > 10


def test_annotations_are_needed():
    for scheme, kind in [("named_entity", "entities"), ("noun_phrase", "noun_phrases")]:
        objective = SpanBert(scheme=scheme)
        assert objective.annotations == (kind,)
        assert f"needs the annotation {kind}" in objective.unmet(Supply(SPECIAL, True, 100))
        assert objective.unmet(Supply(SPECIAL, True, 100, [kind])) is None
        assert "where words begin" in objective.unmet(Supply(SPECIAL, False, 100, [kind]))
    assert SpanBert().annotations == ()


def test_words_are_needed():
    assert "where words begin" in SpanBert().unmet(Supply(SPECIAL, False, 100))
    assert SpanBert(scheme="subword").unmet(Supply(SPECIAL, False, 100)) is None


@pytest.mark.parametrize(
    "settings, message",
    [
        ("scheme='entity'", "scheme must be one of geometric, whole_word, subword"),
        ("p=0", "p must be above 0 and at most 1"),
        ("max_words=0", "max_words must be from 1 to 1,048,576, got 0"),
        (f"max_words={2**70}", "spanbert: max_words must be an integer, got an integer of more than 64 bits"),
        (f"max_words={2**31}", "spanbert: max_words must be from 1 to 1,048,576, got 2147483648"),
        ("boundary_offsets=-1", "boundary_offsets must be at least 0"),
        ("mask_replace_share=0.9, random_replace_share=0.2", "must be at most 1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(UnifiedError, match=message):
        parse_objectives(f"spanbert({settings})")


def test_settings_and_declarations_are_those_of_the_paper():
    """[SpanBERT, sec. 3]: p 0.2, at most 10 words, 15 % hidden; two segments where next sentences are predicted."""
    objective = SpanBert()
    assert (objective.p, objective.max_words, objective.mask_share, objective.boundary_offsets) == (0.2, 10, 0.15, 20)
    assert (objective.scheme, objective.next_sentence, objective.per_span) == ("geometric", False, True)
    assert (SpanBert.scorings, SpanBert.paired, SpanBert.token_types) == (("pseudo_likelihood",), False, 2)
    assert SpanBert.writes == "left_to_right"
