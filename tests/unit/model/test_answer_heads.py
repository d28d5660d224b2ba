"""Heads of answers in passages by their formulas, example by example; beams against all pairs of starts and ends."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from unified.kernels.plain import LinearMap
from unified.model import TransformerConfig
from unified.model.span_heads import (
    BEAMS,
    BertSpanHead,
    SpanScores,
    UnilmSpanHead,
    XlnetSpanHead,
    beams_of,
    example_maxima,
    example_of_states,
    firsts,
    log_sum_exp,
    softmax,
)

CONFIG = TransformerConfig(9, layers=1, width=6, heads=2, dropout=0.0, initializer_range=0.3, norm_epsilon=0.25)
SIZES = torch.tensor([7, 3, 9, 1])
FIRST = [0, 7, 10, 19]
CLS = torch.tensor([6, 1, 0, 0])
STATES = torch.randn(20, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def drawn(head: torch.nn.Module) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(1)
    for parameter in head.double().parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return head.eval()


def norm(states: torch.Tensor, of: torch.nn.LayerNorm) -> torch.Tensor:
    centred = states - states.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 0.25).sqrt() * of.weight + of.bias


def test_a_batch_is_flat():
    assert firsts(SIZES).tolist() == FIRST
    assert example_of_states(SIZES, int(SIZES.sum())).tolist() == [0] * 7 + [1] * 3 + [2] * 9 + [3]
    with PretendCard():
        assert torch.equal(
            example_of_states(SIZES.to(DEVICE), int(SIZES.sum())).cpu(), example_of_states(SIZES, int(SIZES.sum()))
        )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_softmaxes_are_those_of_each_example(dtype):
    """Of large values too, and of half precision in float32; gradients as well."""
    values = (STATES[:, 0] * 100).to(dtype).requires_grad_()
    example = example_of_states(SIZES, int(SIZES.sum()))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    found = log_sum_exp(values, example, 4)
    parts = values.to(wide).split(SIZES.tolist())
    expected = torch.stack([part.logsumexp(0) for part in parts])
    assert found.dtype == wide
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(one.sum(), values)[0] for one in (found, expected)))
    chances = softmax(values, example, 4)
    torch.testing.assert_close(chances.to(wide), torch.cat([part.softmax(0) for part in parts]), atol=1e-2, rtol=1e-2)
    maxima = example_maxima(values, example, 4)
    assert maxima.tolist() == [float(part.max()) for part in values.detach().split(SIZES.tolist())]
    assert not maxima.requires_grad
    assert example_maxima(values[:7], example[:7], 2).tolist()[1] == float("-inf")


def test_bert_scores_starts_and_ends_by_one_map():
    head = drawn(BertSpanHead(CONFIG))
    found = head(STATES, {})
    for side, row in ((found.start, 0), (found.end, 1)):
        torch.testing.assert_close(side, STATES @ head.output.weight[row] + head.output.bias[row])
    assert head.output.out_features == 2
    assert found.answer_types is None and found.beams is None and found.ends_of is None
    with pytest.raises(FrozenInstanceError):
        found.start = found.end
    assert SpanScores(found.start, None).answer_types is None


def test_unilm_scores_types_of_answers_from_cls():
    head = drawn(UnilmSpanHead(CONFIG, 4))
    found = head(STATES, {"sizes": SIZES, "cls": CLS})
    for side, row in ((found.start, 0), (found.end, 1)):
        torch.testing.assert_close(side, STATES @ head.output.weight[row] + head.output.bias[row])
    cls = STATES[[6, 8, 10, 19]]
    torch.testing.assert_close(found.answer_types, cls @ head.answer_type.weight.T + head.answer_type.bias)
    assert found.answer_types.shape == (4, 4) and head.output.out_features == 2


def ends_by_definition(head: XlnetSpanHead, states: torch.Tensor, start: int) -> torch.Tensor:
    pairs = torch.cat([states, states[start].expand_as(states)], dim=1)
    hidden = norm(torch.tanh(pairs @ head.end_dense.weight.T + head.end_dense.bias), head.end_norm)
    return hidden @ head.end.weight[0] + head.end.bias[0]


@pytest.mark.parametrize("labels", [[[2, 3], [0, 1], [8, 8], [0, 0]], [[-1, -1], [2, 2], [0, 4], [-1, 0]], None])
@pytest.mark.parametrize("training", [False, True])
def test_xlnet_scores_an_end_behind_a_start(labels, training):
    """A start that is not known, -1, counts as the first state, whose loss nobody reads."""
    head = drawn(XlnetSpanHead(CONFIG)).train(training)
    reading = {"sizes": SIZES, "cls": CLS} | ({} if labels is None else {"labels": torch.tensor(labels)})
    found = head(STATES, reading)
    for number, states in enumerate(STATES.split(SIZES.tolist())):
        part = slice(FIRST[number], FIRST[number] + len(states))
        start = states @ head.start.weight[0] + head.start.bias[0]
        torch.testing.assert_close(found.start[part], start)
        expected = (start.softmax(0).unsqueeze(1) * states).sum(0)
        joined = torch.cat([expected, states[CLS[number]]])
        answer = torch.tanh(joined @ head.answer_dense.weight.T + head.answer_dense.bias) @ head.answer.weight[0]
        torch.testing.assert_close(found.answer_types[number], answer[None])
        if labels is not None:
            end = ends_by_definition(head, states, max(0, labels[number][0]))
            torch.testing.assert_close(found.end[part], end)
    assert (found.end is None) is (labels is None)
    assert (found.beams is None) is (found.ends_of is None) is training
    assert type(head.linear) is LinearMap and head.answer.bias is None


def test_beams_are_the_best_pairs_of_starts_and_ends():
    head = drawn(XlnetSpanHead(CONFIG))
    found = head(STATES, {"sizes": SIZES, "cls": CLS})
    beams = found.beams
    assert BEAMS == 5 and beams.starts.shape == (4, 5) and beams.ends.shape == beams.scores.shape == (4, 5, 5)
    for number, states in enumerate(STATES.split(SIZES.tolist())):
        start = (states @ head.start.weight[0] + head.start.bias[0]).log_softmax(0)
        few = min(5, len(states))
        best = start.argsort(descending=True)[:few]
        assert beams.starts[number, :few].tolist() == best.tolist()
        for rank, at in enumerate(best.tolist()):
            end = ends_by_definition(head, states, at).log_softmax(0)
            ends = end.argsort(descending=True)[:few]
            assert beams.ends[number, rank, :few].tolist() == ends.tolist()
            torch.testing.assert_close(beams.scores[number, rank, :few], start[at] + end[ends])
        assert not beams.scores[number, few:].isfinite().any() and not beams.scores[number, :, few:].isfinite().any()
    flat = torch.tensor([3, 9, 10, 19])
    behind = found.ends_of(flat).split(SIZES.tolist())
    for number, states in enumerate(STATES.split(SIZES.tolist())):
        expected = ends_by_definition(head, states, int(flat[number]) - FIRST[number])
        torch.testing.assert_close(behind[number], expected)
    with pytest.raises(FrozenInstanceError):
        beams.starts = beams.ends


def test_ends_are_asked_for_starts_within_each_example():
    """An example with fewer states than beams is asked for its last one again."""
    asked = []

    def ends(starts: torch.Tensor) -> torch.Tensor:
        asked.append(starts.tolist())
        return STATES[:, 1]

    sizes = torch.tensor([2, 18])
    beams_of(STATES[:, 0], ends, sizes)
    assert len(asked) == 5
    order = STATES[2:, 0].argsort(descending=True)[:5] + 2
    assert [one for _, one in asked] == order.tolist()
    assert sorted({one for one, _ in asked}) == [0, 1]
    with PretendCard() as card:
        there = beams_of(STATES[:, 0].to(DEVICE), lambda starts: STATES[:, 1].to(DEVICE), sizes.to(DEVICE))
        assert card.looks.total() == 1, "the greatest size"
        assert torch.equal(there.starts.cpu(), beams_of(STATES[:, 0], ends, sizes).starts)


@pytest.mark.parametrize("kind", [UnilmSpanHead, XlnetSpanHead])
def test_states_of_cls_are_dropped(kind):
    config = replace(CONFIG, width=400, dropout=0.5)
    head = UnilmSpanHead(config, 2) if kind is UnilmSpanHead else XlnetSpanHead(config)
    seen = []
    last = head.answer_type if kind is UnilmSpanHead else head.answer
    last.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    reading = {"sizes": torch.tensor([3]), "cls": torch.tensor([0])}
    for training in (True, False):
        head.train(training)(torch.ones(3, 400), reading)
    assert 0.4 < (seen[0] == 0).float().mean() < 0.6 and not (seen[1] == 0).any()


@pytest.mark.parametrize("make", [BertSpanHead, lambda config: UnilmSpanHead(config, 3), XlnetSpanHead])
def test_heads_start_normal_with_biases_of_0(make):
    torch.manual_seed(0)
    for name, parameter in make(replace(CONFIG, width=200)).named_parameters():
        if "norm" in name:
            assert (parameter == float(name.endswith("weight"))).all()
        elif name.endswith("bias"):
            assert not parameter.any(), name
        else:
            assert 0.25 < parameter.detach().std().item() < 0.35, name
