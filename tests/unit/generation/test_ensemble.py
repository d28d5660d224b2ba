"""Decoders of several models against each model alone, and an ensemble of one against its model."""

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import decoder, sources
from unified.errors import UnifiedError
from unified.generation import SCHEMES, GenerationConfig, generate, score
from unified.generation.ensemble import EnsembleDecoder, EnsembleSource, EnsembleState

LENGTHS = [3, 5, 1]


def members(scheme: str, count: int = 2):
    return [decoder(scheme, seed=seed) for seed in range(count)]


@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_a_step_has_the_logarithm_of_the_mean_probability_at_the_temperature(scheme):
    """Also after rows have changed places and a sentence has left; the temperature is 1 where none is given."""
    alone, beam = members(scheme, 3), 2
    together = EnsembleDecoder(alone)
    source, own_sources = together.encode(sources(LENGTHS)), [one.encode(sources(LENGTHS)) for one in alone]
    state = together.begin(source, beam)
    own = [one.begin(cache, beam) for one, cache in zip(alone, own_sources, strict=True)]
    last = None
    for step, temperature in enumerate((None, 1.0, 0.3, 2.0)):
        if step == 2:
            order, kept = torch.tensor([1, 0, 5, 4]), torch.tensor([0, 2])
            for one in (state, *own):
                one.reorder(order)
                one.source = one.source.select(kept)
            last = last[order]
        settings = {} if temperature is None else {"temperature": temperature}
        found = together.step(last, state, **settings)
        each = [(one.step(last, mine) / (temperature or 1.0)).softmax(-1) for one, mine in zip(alone, own, strict=True)]
        torch.testing.assert_close(found, torch.stack(each).mean(0).log(), atol=1e-5, rtol=1e-5)
        assert not torch.allclose(each[0], each[1], atol=1e-2)
        last = torch.arange(5, 5 + len(found))
    assert isinstance(state, EnsembleState) and len(state.members) == 3


def test_sources_and_symbols_are_those_of_the_members():
    alone = members("cloze")
    together = EnsembleDecoder(iter(alone))
    assert together.members == tuple(alone)
    assert (together.special, together.scheme) == (alone[0].special, alone[0].scheme)
    assert together.vocabulary_size == alone[0].vocabulary_size == alone[0].model.config.vocabulary_size
    source = together.encode(sources(LENGTHS))
    assert isinstance(source, EnsembleSource) and source.longest == 7  # begin, five words, separator
    assert torch.equal(source.visible, alone[0].encode(sources(LENGTHS)).visible)
    short = source.select(torch.tensor([2, 0]))
    assert short.longest == 5 and [one.longest for one in short.members] == [5, 5]


def test_a_symbol_is_left_out_where_no_member_has_learnt_it():
    alone = members("cloze", 3)
    together = EnsembleDecoder(alone)
    assert together.left_out.shape == (together.vocabulary_size,) and not together.left_out.any()
    for number, one in enumerate(alone):
        one.model.symbols.scored[[4, 5 + number]] = 0
    assert together.left_out.nonzero().flatten().tolist() == [4]


def test_the_least_positions_of_a_member_are_those_of_all():
    together = EnsembleDecoder([decoder(), decoder(max_positions=10)])
    together.check_positions(10)
    for some in (together, EnsembleDecoder(together.members[::-1])):
        with pytest.raises(UnifiedError) as raised:
            some.check_positions(11)
        assert str(raised.value) == (
            "11 positions are needed (source and generated tokens together), the model's table has 10; shorten the "
            "source or what is generated"
        )


def test_models_that_write_in_different_ways_are_refused():
    with pytest.raises(UnifiedError) as raised:
        EnsembleDecoder([decoder("cloze"), decoder("cloze"), decoder("next")])
    assert str(raised.value) == (
        "the models of an ensemble write in different ways; they cannot write one text together"
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_ensemble_of_one_model_writes_and_scores_as_it_does(scheme):
    """Of two equal ones as well."""
    alone, rows = decoder(scheme), sources(LENGTHS)
    config = GenerationConfig(beam=3, nbest=3, max_length=6)
    targets = torch.tensor([[5, 6, 2], [9, 2, 1], [4, 4, 2]])
    for count in (1, 2):
        together = EnsembleDecoder([decoder(scheme) for _ in range(count)])
        for here, there in zip(generate(together, rows, config), generate(alone, rows, config), strict=True):
            assert [one.tokens.tolist() for one in here] == [one.tokens.tolist() for one in there]
            assert [one.score for one in here] == pytest.approx([one.score for one in there], abs=1e-5)
        torch.testing.assert_close(score(together, rows, targets), score(alone, rows, targets), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_scores_on_a_card_are_those_of_a_cpu(scheme):
    targets = torch.tensor([[5, 6, 7, 2], [9, 2, 1, 1], [4, 4, 2, 1]])
    expected = score(EnsembleDecoder(members(scheme)), sources(LENGTHS), targets)
    with PretendCard():
        alone = members(scheme)
        for one in alone:
            one.model.to(DEVICE)
        found = score(EnsembleDecoder(alone), sources(LENGTHS).to(DEVICE), targets.to(DEVICE)).cpu()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
