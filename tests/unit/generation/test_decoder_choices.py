"""What a decoder makes of its model and its sources: the attention that reads them, the state, and refusals."""

from dataclasses import replace

import pytest
import torch

from tests.support.tiny_models import decoder, model, sources, vocabulary
from unified.attention import BACKENDS
from unified.attention.dense import DenseAttention
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder
from unified.generation.cache import DecodingState
from unified.generation.fixed import FixedState
from unified.generation.schemes import NO_ENTITIES_IN_WRITING

SPECIAL = vocabulary().special


def refused(scheme: str, **changes) -> str:
    with pytest.raises(UnifiedError) as raised:
        CachedDecoder(model(**changes), SPECIAL, SCHEMES[scheme])
    return str(raised.value)


def test_models_that_cannot_write_so_are_refused():
    assert refused("cloze", sublayers="entity,feed_forward") == NO_ENTITIES_IN_WRITING
    assert refused("permutation") == (
        "this decoding scheme asks by a query stream, which needs a model with positions 'relative' or 'rotary'"
    )
    assert refused("cloze", token_types=5) == "this decoding scheme needs 6 token types, the model has 5"
    assert refused("left_to_right", token_types=2) == "this decoding scheme needs 3 token types, the model has 2"
    CachedDecoder(model(token_types=3), SPECIAL, SCHEMES["left_to_right"])


def test_no_source_has_no_length():
    found = decoder().encode(torch.zeros(0, 3, dtype=torch.long))
    assert found.longest == 0 and found.keys[0].size(0) == 0


class Shaped(DenseAttention):
    """Attention that would have to be compiled for each shape."""

    name = "shaped"
    any_shape = False

    def __init__(self, mask, dtype):
        raise AssertionError("sources have ever new shapes")


def test_sources_are_read_by_attention_that_serves_any_shape(monkeypatch):
    monkeypatch.setitem(BACKENDS, "shaped", Shaped)
    rows = sources([3, 5])
    found = decoder(attention_backend="shaped").encode(rows)
    expected = decoder(attention_backend="dense").encode(rows)
    for mine, theirs in zip(found.keys, expected.keys, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_steps_go_by_fixed_shapes_where_their_number_is_known_and_they_are_served(monkeypatch):
    asked = []

    def serves(*given):
        asked.append(given)
        return True

    monkeypatch.setattr("unified.generation.decoder.serves", serves)
    cached = decoder()
    source = cached.encode(sources([3, 5]))
    assert isinstance(cached.begin(source, 2), DecodingState) and not asked
    state = cached.begin(source, 2, 4)
    assert isinstance(state, FixedState) and asked == [(cached.model, cached.scheme, source, 2, 4)]
    monkeypatch.setattr("unified.generation.decoder.serves", lambda *given: False)
    growing = cached.begin(source, 2, 4)
    assert isinstance(growing, DecodingState) and growing.beam == 2 and growing.length == 0
    assert [key.shape for key in growing.keys] == [(4, 4, 0, 8)] * 2


def test_the_positions_of_a_search_in_fixed_shapes_are_counted_before_it_begins():
    """A text of three tokens, five to write, and the query for the last: nine positions."""
    cached = decoder(max_positions=9)
    source = cached.encode(sources([2]))
    assert source.longest == 4
    cached.begin_fixed(source, 1, 4)
    with pytest.raises(UnifiedError, match="^10 positions are needed .* the model's table has 9; "):
        cached.begin_fixed(source, 1, 5)


def test_a_source_must_end_with_the_separator():
    rows = sources([3, 2, 4])
    rows[2, 4] = 7
    with pytest.raises(UnifiedError) as raised:
        decoder().encode(rows)
    assert str(raised.value) == f"source_tokens[2] must end with the separator (id {SPECIAL.separator})"


def test_schemes_with_one_token_type_for_all_take_one():
    assert SCHEMES["permutation"].token_types == 1 and SCHEMES["left_to_right"].token_types == 3
    assert SCHEMES["cloze"].token_types == SCHEMES["next"].token_types == 6
    assert replace(SCHEMES["cloze"], source_type=7).token_types == 8
