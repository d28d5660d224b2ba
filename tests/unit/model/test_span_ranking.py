"""Spans and their rankings by loops: candidates, vectors, scores, chains, losses of antecedents, settings."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from unified.errors import UnifiedError
from unified.model.coreference import CoreferenceHead, SpanRanking
from unified.model.ranking import Ranking, antecedent_losses, gold_chains
from unified.model.spans import MentionScorer, SpanVectors, candidate_spans, kept_spans


def drawn(module: torch.nn.Module) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(0)
    for parameter in module.double().parameters():
        parameter.data = 0.7 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return module.eval()


def states_of(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def ranking(spans: list[tuple[int, int]], antecedents: list[list[int]], scores: torch.Tensor | None = None) -> Ranking:
    starts, ends = torch.tensor(spans).unbind(1)
    scores = states_of(len(spans), 1 + len(antecedents[0])) if scores is None else scores
    return Ranking(starts, ends, torch.tensor(antecedents), scores)


# Chains and losses


def test_chains_are_those_of_mentions_with_the_same_words():
    """A mention that is there twice counts once, by its first place; a span beyond all mentions has none."""
    spans = [(0, 0), (0, 3), (1, 3), (3, 1), (5, 5), (9, 9), (2, 7)]
    found = ranking(spans, [[0]] * 7)
    mentions = torch.tensor([[5, 5, 2], [0, 3, 1], [1, 3, 4], [5, 5, 3], [0, 3, 7], [8, 8, 9]])
    assert gold_chains(found, mentions).tolist() == [0, 1, 4, 0, 2, 0, 0]
    assert gold_chains(found, mentions[:0]).tolist() == [0] * 7
    assert gold_chains(found, torch.tensor([[2, 7, 3]])).tolist() == [0, 0, 0, 0, 0, 0, 3]
    assert gold_chains(found, torch.tensor([[2, 30, 3]])).tolist() == [0] * 7
    twice = torch.tensor([[4, 4, n] for n in range(40, 0, -1)])
    assert gold_chains(ranking([(4, 4)], [[0]]), twice).tolist() == [40]
    with PretendCard():
        there = Ranking(*(side.to(DEVICE) for side in vars(found).values()))
        assert gold_chains(there, mentions.to(DEVICE)).cpu().tolist() == [0, 1, 4, 0, 2, 0, 0]


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_mentions_stand_in_any_order(order):
    """Spans share a first word, last words come in another order than first ones, and some are beyond all spans."""
    mentions = {(5, 5): 1, (0, 7): 2, (0, 3): 3, (0, 5): 4, (6, 6): 5, (1, 8): 6, (8, 9): 7}
    spans = [*mentions, (0, 4), (5, 6), (8, 8), (9, 9)]
    rows = torch.tensor([[*span, chain] for span, chain in [*mentions.items()][order]])
    assert gold_chains(ranking(spans, [[0]] * len(spans)), rows).tolist() == [*range(1, 8), 0, 0, 0, 0]
    assert gold_chains(ranking([(1, 3)], [[0]]), torch.tensor([[0, 7, 1]])).tolist() == [0]


def test_words_and_spans_are_not_mixed_up():
    """Every pair of words is another span, whatever their sum or order."""
    spans = [(a, b) for a in range(6) for b in range(a, 6)]
    for number, (a, b) in enumerate(spans):
        expected = [0] * len(spans)
        expected[number] = 5
        assert gold_chains(ranking(spans, [[0]] * len(spans)), torch.tensor([[a, b, 5]])).tolist() == expected


def test_losses_are_those_of_the_right_antecedents():
    chains = torch.tensor([1, 0, 1, 2, 1, 0, 2])
    antecedents = [[0, 1], [0, 4], [1, 0], [2, 1], [2, 0], [4, 1], [3, 6]]
    spans = ranking([(i, i) for i in range(7)], antecedents)
    scores = spans.scores
    scores[:, 0] = 0.0
    for i, of in enumerate(antecedents):
        for column, j in enumerate(of):
            if j >= i:
                scores[i, 1 + column] = -math.inf
    losses, best = antecedent_losses(spans, chains)
    for i, of in enumerate(antecedents):
        right = [1 + column for column, j in enumerate(of) if j < i and chains[i] > 0 and chains[i] == chains[j]] or [0]
        total = sum(math.exp(score) for score in scores[i].tolist())
        assert float(losses[i]) == pytest.approx(-math.log(sum(math.exp(scores[i, c]) for c in right) / total))
        assert bool(best[i]) == (int(scores[i].argmax()) in right)
    assert 0 < int(best.sum()) < 7 and losses.shape == best.shape == (7,)
    with pytest.raises(FrozenInstanceError):
        spans.starts = spans.ends
    with PretendCard():
        there = Ranking(*(side.to(DEVICE) for side in vars(spans).values()))
        assert torch.equal(antecedent_losses(there, chains.to(DEVICE))[0].cpu(), losses)


# Spans


@pytest.mark.parametrize("sentences", [[0, 0, 0, 1, 1, 2], [0, 0, 0, 0], [3], [0, 1, 2]])
@pytest.mark.parametrize("widest", [1, 2, 3, 9])
def test_candidates_are_all_spans_of_a_sentence(sentences, widest):
    count = len(sentences)
    expected = [(i, j) for i in range(count) for j in range(i, min(count, i + widest)) if sentences[i] == sentences[j]]
    found = candidate_spans(torch.tensor(sentences), widest)
    assert list(zip(*(side.tolist() for side in found), strict=True)) == expected
    with PretendCard():
        there = candidate_spans(torch.tensor(sentences).to(DEVICE), widest)
        assert all(torch.equal(one.cpu(), other) for one, other in zip(there, found, strict=True))


def test_the_best_spans_that_do_not_cross_are_kept():
    """In one order of scores after another, against the greedy rule by pairs; of equal ones the first."""
    starts, ends = candidate_spans(torch.zeros(6, dtype=torch.long), 4)
    spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
    for seed in range(40):
        scores = torch.randint(4, (len(spans),), generator=torch.Generator().manual_seed(seed)).double()
        for count in (1, 3, 7, 50):
            kept: list[int] = []
            for number in sorted(range(len(spans)), key=lambda i: (-scores[i], i)):
                a, b = spans[number]
                others = [spans[one] for one in kept]
                if len(kept) < count and not any(a < c <= b < d or c < a <= d < b for c, d in others):
                    kept.append(number)
            assert kept_spans(scores, starts, ends, count).tolist() == sorted(kept)
    with PretendCard():
        assert kept_spans(scores.to(DEVICE), starts.to(DEVICE), ends.to(DEVICE), 3).device.type == DEVICE.type


@pytest.fixture
def spans():
    """Vectors of spans, states of nine tokens, and of four spans the first and last token and the words."""
    vectors = drawn(SpanVectors(4, 5, 3, 0.0))
    return vectors, states_of(9, 4), torch.tensor([0, 2, 2, 8]), torch.tensor([3, 2, 8, 8]), torch.tensor([2, 1, 5, 1])


def mean_of(vectors: SpanVectors, values: torch.Tensor, states: torch.Tensor, first: int, last: int) -> torch.Tensor:
    inside = range(first, last + 1)
    scores = torch.stack([vectors.attention.weight[0] @ states[i] + vectors.attention.bias[0] for i in inside])
    return sum(weight * values[i] for weight, i in zip(scores.softmax(0), inside, strict=True))


def test_a_span_is_its_ends_its_width_and_a_mean_of_its_tokens(spans):
    vectors, states, first, last, words = spans
    found = vectors(states, first, last, words)
    assert found.shape == (4, vectors.size) and vectors.size == 3 * 4 + 3
    values = states_of(9, 2) + 3
    means = vectors.mean(values, states, first, last)
    for row, (a, b, count) in enumerate(zip(first.tolist(), last.tolist(), words.tolist(), strict=True)):
        parts = [states[a], states[b], vectors.widths.weight[count - 1], mean_of(vectors, states, states, a, b)]
        torch.testing.assert_close(found[row], torch.cat(parts))
        torch.testing.assert_close(means[row], mean_of(vectors, values, states, a, b))
    far = vectors.mean(values, states * 1e4, first, last)
    assert far.isfinite().all()
    with PretendCard():
        there = drawn(SpanVectors(4, 5, 3, 0.0)).to(DEVICE)
        moved = (side.to(DEVICE) for side in (states, first, last, words))
        torch.testing.assert_close(there(*moved).cpu(), found)


def test_gradients_of_means_are_those_of_the_definition(spans):
    vectors, states, first, last, _ = spans
    states, values = states.requires_grad_(), (states_of(9, 2) + 3).requires_grad_()
    leaves = [states, values, vectors.attention.weight]
    expected = torch.stack([mean_of(vectors, values, states, a, b) for a, b in zip(first, last, strict=True)])
    found = vectors.mean(values, states, first, last)
    wanted = torch.autograd.grad(expected.square().sum(), leaves)
    torch.testing.assert_close(torch.autograd.grad(found.square().sum(), leaves), wanted)


def test_a_mention_is_scored_from_the_parts_of_its_vector(spans):
    vectors, states, first, last, words = spans
    scorer = drawn(MentionScorer(vectors, 4, 6, 0.0))
    joined = torch.cat([scorer.first.weight, scorer.last.weight, scorer.width.weight, scorer.mean.weight], dim=1)
    hidden = vectors(states, first, last, words) @ joined.T + scorer.first.bias
    expected = hidden.relu() @ scorer.output.weight[0] + scorer.output.bias
    found = scorer(vectors, states, first, last, words)
    assert found.shape == (4,)
    torch.testing.assert_close(found, expected)
    biases = {name for name, _ in scorer.named_parameters() if name.endswith("bias")}
    assert biases == {"first.bias", "output.bias"}


def test_widths_and_hidden_layers_are_dropped():
    vectors = SpanVectors(4, 5, 500, 0.5)
    assert 0.4 < (vectors.width(torch.tensor([2])) == 0).float().mean() < 0.6
    scorer, seen = MentionScorer(SpanVectors(4, 5, 3, 0.0), 4, 500, 0.5), []
    torch.nn.init.constant_(scorer.first.bias, 100.0)
    scorer.output.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    one = torch.tensor([0])
    scorer(SpanVectors(4, 5, 3, 0.0), torch.randn(2, 4), one, one, one + 1)
    assert 0.4 < (seen[0] == 0).float().mean() < 0.6


# Settings


def test_settings_are_those_of_the_published_model():
    settings = SpanRanking()
    assert vars(settings) == {
        "genres": (),
        "max_windows": 3,
        "max_width": 30,
        "spans_per_word": 0.4,
        "max_spans": 3900,
        "antecedents": 50,
        "hidden": 3000,
        "features": 20,
        "depth": 2,
        "dropout": 0.3,
    }
    assert (CoreferenceHead.candidates_at_once, CoreferenceHead.spans_at_once) == (2048, 256)
    with pytest.raises(FrozenInstanceError):
        settings.depth = 3


def refusal(**settings) -> str:
    with pytest.raises(UnifiedError) as raised:
        SpanRanking(**settings)
    return str(raised.value)


@pytest.mark.parametrize(
    "name", ["max_windows", "max_width", "max_spans", "antecedents", "hidden", "features", "depth"]
)
def test_sizes_have_bounds(name):
    most = 1000 if name == "depth" else 1_048_576
    for taken in (1, most):
        assert vars(SpanRanking(**{name: taken}))[name] == taken
    assert refusal(**{name: 0}) == f"coreference: {name} must be from 1 to {most:,}, got 0"
    assert refusal(**{name: most + 1}) == f"coreference: {name} must be from 1 to {most:,}, got {most + 1}"


def test_shares_have_bounds():
    assert SpanRanking(dropout=0.0).dropout == 0.0 and SpanRanking(dropout=0.999).dropout == 0.999
    assert refusal(dropout=1.0) == "coreference: dropout must be at least 0 and below 1, got 1.0"
    assert refusal(dropout=-0.1) == "coreference: dropout must be at least 0 and below 1, got -0.1"
    assert SpanRanking(spans_per_word=1e-9).spans_per_word == 1e-9
    assert refusal(spans_per_word=0.0) == "coreference: spans_per_word must be above 0, got 0.0"
    assert refusal(spans_per_word=-1.0) == "coreference: spans_per_word must be above 0, got -1.0"
