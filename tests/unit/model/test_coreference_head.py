"""The head for coreference by loops over spans and pairs: documents of a batch, scores, gradients, and portions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from unified.model import TransformerConfig, coreference
from unified.model.coreference import CoreferenceHead, SpanRanking
from unified.model.ranking import Ranking
from unified.model.spans import candidate_spans, kept_spans

WIDTH = 4
CONFIG = TransformerConfig(9, layers=1, width=WIDTH, heads=2, initializer_range=0.3)
SETTINGS = SpanRanking(
    genres=("bc", "nw"), max_windows=3, max_width=3, spans_per_word=0.7, antecedents=4, hidden=5, features=2, depth=2,
    dropout=0.0,
)  # fmt: skip
#: Tokens of each word, the sentence, the speaker and the window of each word, and the genre of each document.
DOCUMENTS = [
    (
        [1, 2, 1, 1, 3, 1, 1, 2, 1],
        [0, 0, 0, 1, 1, 1, 1, 2, 2],
        [1, 1, 1, 2, 2, 2, 2, 1, 1],
        [0] * 3 + [1] * 4 + [4] * 2,
        2,
    ),
    ([2, 1], [3, 3], [0, 0], [0, 0], 0),
    ([1] * 12, [4] * 6 + [5] * 6, [3] * 4 + [5] * 8, [0] * 6 + [1] * 6, 1),
    ([1], [6], [7], [0], 2),
]


def head_of(settings: SpanRanking = SETTINGS) -> CoreferenceHead:
    generator = torch.Generator().manual_seed(0)
    head = CoreferenceHead(CONFIG, settings).double().eval()
    for parameter in head.parameters():
        parameter.data = 0.6 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return head


def batch(order: list[int] | None = None) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """States of all tokens and the reading of their windows, which stand in the given order."""
    windows, word = [], 0
    for owner, (tokens, sentences, speakers, of_words, genre) in enumerate(DOCUMENTS):
        for window in dict.fromkeys(of_words):
            facts = [
                (word + i, sentences[i], speakers[i], window)
                for i, count in enumerate(tokens) if of_words[i] == window for _ in range(count)
            ]  # fmt: skip
            windows.append((owner, genre, facts))
        word += len(tokens)
    states, number = {}, 0
    generator = torch.Generator().manual_seed(1)
    for i, (_, _, facts) in enumerate(windows):
        states[i] = torch.randn(len(facts), WIDTH, generator=generator, dtype=torch.float64)
        number += 1
    order = list(range(number)) if order is None else order
    sides = zip(*(fact for i in order for fact in windows[i][2]), strict=True)
    reading = {
        name: torch.tensor(side)
        for name, side in zip(("words", "sentences", "speakers", "windows"), sides, strict=True)
    }
    reading["owners"] = torch.tensor([windows[i][0] for i in order])
    reading["sizes"] = torch.tensor([len(windows[i][2]) for i in order])
    reading["genres"] = torch.tensor([windows[i][1] for i in order])
    return torch.cat([states[i] for i in order]), reading


def bucket(distance: int) -> int:
    """0, 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, 64 and more."""
    return distance if distance <= 4 else min(9, int(math.log2(distance)) + 3)


class ByDefinition:
    """Everything that the head says of one document, span by span and pair by pair."""

    def __init__(self, head: CoreferenceHead, number: int):
        self.head, settings = head, head.settings
        states, reading = batch()
        tokens, sentences, self.speakers, self.windows, self.genre = DOCUMENTS[number]
        before = sum(len(document[0]) for document in DOCUMENTS[:number])
        of_word = [states[reading["words"] == before + i] for i in range(len(tokens))]
        starts, ends = candidate_spans(torch.tensor(sentences), settings.max_width)
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        vectors = [self.vector(torch.cat(of_word[a : b + 1]), b - a + 1) for a, b in spans]
        mentions = [self.mention(vector, b - a) for vector, (a, b) in zip(vectors, spans, strict=True)]
        count = max(1, min(settings.max_spans, int(settings.spans_per_word * len(tokens))))
        kept = kept_spans(torch.stack(mentions), starts, ends, count).tolist()
        self.spans = [(before + spans[i][0], before + spans[i][1]) for i in kept]
        self.first_words = [spans[i][0] for i in kept]
        vectors, mentions = [vectors[i] for i in kept], [mentions[i] for i in kept]
        self.antecedents, coarse = [], []
        for i in range(len(kept)):
            scores = {j: mentions[i] + mentions[j] + self.coarse(vectors[i], vectors[j], i - j) for j in range(i)}
            best = sorted(scores, key=lambda j, scores=scores: -float(scores[j].detach()))[: settings.antecedents]
            self.antecedents.append(best)
            coarse.append([scores[j] for j in best])
        for turn in range(settings.depth):
            if turn:
                vectors = [self.refined(vectors, i) for i in range(len(kept))]
            self.scores = [
                [rough + self.pair(vectors, i, j) for rough, j in zip(coarse[i], best, strict=True)]
                for i, best in enumerate(self.antecedents)
            ]

    def vector(self, states: torch.Tensor, words: int) -> torch.Tensor:
        of = self.head.vectors
        weights = (states @ of.attention.weight[0] + of.attention.bias[0]).softmax(0)
        return torch.cat([states[0], states[-1], of.widths.weight[words - 1], weights @ states])

    def mention(self, vector: torch.Tensor, width: int) -> torch.Tensor:
        of, head = self.head.mention, self.head
        joined = torch.cat([of.first.weight, of.last.weight, of.width.weight, of.mean.weight], dim=1)
        hidden = (joined @ vector + of.first.bias).relu()
        prior = head.width[3](head.width[0](head.width_prior.weight[width]).relu())
        return of.output(hidden)[0] + prior[0]

    def coarse(self, later: torch.Tensor, earlier: torch.Tensor, distance: int) -> torch.Tensor:
        prior = self.head.distance(self.head.distance_prior.weight[bucket(distance)])[0]
        return self.head.coarse(later) @ earlier + prior

    def pair(self, vectors: list[torch.Tensor], i: int, j: int) -> torch.Tensor:
        of, mine, other = self.head.pair, vectors[i], vectors[j]
        a, b = self.first_words[i], self.first_words[j]
        apart = max(0, min(self.head.settings.max_windows - 1, self.windows[a] - self.windows[b]))
        features = torch.cat([
            of.same_speaker.weight[int(self.speakers[a] == self.speakers[b])], of.genres.weight[self.genre],
            of.distances.weight[bucket(i - j)], of.windows.weight[apart],
        ])  # fmt: skip
        joined = torch.cat([of.span.weight, of.earlier.weight, of.product.weight, of.features.weight], dim=1)
        hidden = (joined @ torch.cat([mine, other, mine * other, features]) + of.span.bias).relu()
        return of.output(hidden)[0]

    def refined(self, vectors: list[torch.Tensor], i: int) -> torch.Tensor:
        weights = torch.stack([torch.zeros((), dtype=torch.float64), *self.scores[i]]).softmax(0)
        others = zip(weights[1:], self.antecedents[i], strict=True)
        expected = weights[0] * vectors[i] + sum(weight * vectors[j] for weight, j in others)
        gate = self.head.gate(torch.cat([vectors[i], expected])).sigmoid()
        return gate * expected + (1 - gate) * vectors[i]

    def check(self, found: Ranking) -> None:
        assert list(zip(found.starts.tolist(), found.ends.tolist(), strict=True)) == self.spans
        assert found.antecedents.shape[1] == min(self.head.settings.antecedents, len(self.spans))
        assert not found.scores[:, 0].any() and found.scores.dtype == torch.float64
        for i, best in enumerate(self.antecedents):
            assert found.antecedents[i, : len(best)].tolist() == best
            if best:
                torch.testing.assert_close(found.scores[i, 1 : 1 + len(best)], torch.stack(self.scores[i]))
            assert (found.scores[i, 1 + len(best) :] == -math.inf).all()


@pytest.mark.parametrize(
    "changes",
    [{}, {"depth": 1}, {"depth": 3, "max_spans": 5}, {"antecedents": 50, "spans_per_word": 3.0}, {"max_windows": 1}]
    + [{"max_width": 1, "spans_per_word": 1.0, "antecedents": 1}, {"genres": ("bc", "nw", "mz"), "max_windows": 9}],
)
def test_rankings_are_those_of_the_definition(changes):
    head = head_of(replace(SETTINGS, **changes))
    rankings = head(*batch())
    assert len(rankings) == 4
    for number, found in enumerate(rankings):
        ByDefinition(head, number).check(found)


def test_windows_stand_in_any_order():
    head = head_of()
    expected = head(*batch())
    for order in ([6, 5, 4, 3, 2, 1, 0], [2, 0, 5, 6, 3, 1, 4]):
        for one, other in zip(head(*batch(order)), expected, strict=True):
            torch.testing.assert_close(vars(one), vars(other))


def test_gradients_are_those_of_the_definition():
    head = head_of()
    found = [one.scores[one.scores.isfinite()].sin().sum() for one in head(*batch())]
    expected = [score.sin() for number in range(4) for of in ByDefinition(head, number).scores for score in of]
    names, parameters = zip(*head.named_parameters(), strict=True)
    mine = torch.autograd.grad(sum(found), parameters)
    for name, one, other in zip(names, mine, torch.autograd.grad(sum(expected), parameters), strict=True):
        assert other.any(), name
        torch.testing.assert_close(one, other, msg=name)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_portions_do_not_matter(size):
    head = head_of()
    assert head.pair.pairs_at_once == 3200
    with torch.no_grad():
        expected, met, pairs = head(*batch()), [], []
        head.candidates_at_once = head.spans_at_once = head.pair.pairs_at_once = size
        head.mention.register_forward_hook(lambda module, given, out: met.append(len(out)))
        head.pair.output.register_forward_pre_hook(lambda module, given: pairs.append(given[0].shape[:2]))
        for one, other in zip(head(*batch()), expected, strict=True):
            torch.testing.assert_close(vars(one), vars(other))
    assert max(met) == size
    assert all(rows <= max(1, size // others) for rows, others in pairs) and len({others for _, others in pairs}) > 1


@torch.no_grad()
def test_everything_is_made_on_the_device_of_the_states():
    head, (states, reading) = head_of(), batch()
    expected = head(states, reading)
    with PretendCard():
        head.to(DEVICE)
        found = head(states.to(DEVICE), {name: side.to(DEVICE) for name, side in reading.items()})
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close({name: side.cpu() for name, side in vars(one).items()}, vars(other))


def test_only_kept_spans_are_computed_with_gradients():
    head, met = head_of(), []
    head.mention.register_forward_hook(lambda module, given, out: met.append((len(out), out.requires_grad)))
    rankings = head(*batch())
    assert [count for count, wanted in met if wanted] == [len(one.starts) for one in rankings]
    met.clear()
    with torch.no_grad():
        head(*batch())
    assert len(met) == 4 and not any(wanted for _, wanted in met)


def test_scores_are_float32_at_least():
    states, reading = batch()
    head = head_of().float()
    assert {one.scores.dtype for one in head(states.float(), reading)} == {torch.float32}
    half = head_of().bfloat16()
    assert {one.scores.dtype for one in half(states.bfloat16(), reading)} == {torch.float32}


def test_parts_have_the_sizes_of_the_settings_and_begin_as_berts_do():
    torch.manual_seed(0)
    settings = replace(SETTINGS, hidden=300, features=60, dropout=0.5)
    head = CoreferenceHead(replace(CONFIG, width=40), settings)
    size = 3 * 40 + 60
    shapes = {name: tuple(parameter.shape) for name, parameter in head.named_parameters()}
    assert shapes["coarse.weight"] == (size, size) and shapes["gate.weight"] == (size, 2 * size)
    assert shapes["width_prior.weight"] == (3, 60) and shapes["width.0.weight"] == (300, 60)
    assert shapes["width.3.weight"] == shapes["pair.output.weight"] == (1, 300)
    assert shapes["distance_prior.weight"] == shapes["pair.distances.weight"] == (10, 60)
    assert shapes["distance.weight"] == (1, 60) and shapes["pair.same_speaker.weight"] == (2, 60)
    assert shapes["pair.genres.weight"] == (3, 60) and shapes["pair.windows.weight"] == (3, 60)
    assert shapes["pair.features.weight"] == (300, 240)
    assert shapes["pair.span.weight"] == shapes["pair.earlier.weight"] == shapes["pair.product.weight"] == (300, size)
    assert {name for name in shapes if name.endswith("bias") and name.startswith("pair")} == {
        "pair.span.bias", "pair.output.bias",
    }  # fmt: skip
    for name, parameter in head.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        else:
            assert 0.2 < parameter.detach().square().mean().sqrt().item() < 0.4, name
    rates = {name: module.p for name, module in head.named_modules() if isinstance(module, torch.nn.Dropout)}
    assert set(rates) == {"vectors.dropout", "mention.dropout", "width.2", "pair.dropout", "dropout"}
    assert set(rates.values()) == {0.5}


def test_hidden_layers_features_and_the_coarse_comparison_are_dropped():
    """How often for each document: of mentions twice, since kept spans are scored again; of pairs at each depth."""
    head, dropped = head_of(replace(SETTINGS, dropout=0.5)).train(), []
    for name, module in head.named_modules():
        if isinstance(module, torch.nn.Dropout):
            module.register_forward_hook(lambda module, given, out, name=name: dropped.append(name))
    head(*batch())
    counts = {name: dropped.count(name) / 4 for name in dropped}
    assert counts == {"vectors.dropout": 3, "mention.dropout": 2, "width.2": 2, "dropout": 3, "pair.dropout": 4}


def test_distances_beyond_four_share_buckets_up_to_the_next_power_of_two():
    distances = list(range(130))
    assert coreference.distance_buckets(torch.tensor(distances)).tolist() == [
        bucket(distance) for distance in distances
    ]
