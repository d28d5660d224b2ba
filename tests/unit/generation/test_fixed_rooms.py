"""Room for texts in fixed shapes at its limits, and what is left in it of an earlier search."""

from types import SimpleNamespace

import pytest
import torch

from tests.support.tiny_models import decoder, model, sources, vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, generate
from unified.generation.fixed import FixedAttention, FixedState, halves, rounded, serves

SPECIAL = vocabulary().special


class Fixed(CachedDecoder):
    """A decoder that writes in fixed shapes on any device."""

    def begin(self, source, beam, most=None):
        return self.begin_fixed(source, beam, most)


def fixed(scheme: str = "cloze", **changes) -> Fixed:
    cached = decoder(scheme, **changes)
    return Fixed(cached.model, SPECIAL, cached.scheme)


def answers(cached: CachedDecoder, rows: torch.Tensor, **options) -> list:
    config = GenerationConfig(**{"beam": 2, "nbest": 2, "max_length": 6, **options})
    return [[(one.tokens.tolist(), round(one.score, 4)) for one in some] for some in generate(cached, rows, config)]


def test_a_search_is_served_where_its_columns_fit_into_a_quarter_of_the_memory(monkeypatch):
    """A beam of 5; the columns of source and steps are rounded up to multiples of 32 and 16."""
    plain, scheme, card = model(), SCHEMES["cloze"], SimpleNamespace(total_memory=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    for length, most, columns in (
        (27, 15, 32 + 5 * 16),
        (28, 15, 64 + 5 * 16),
        (27, 16, 32 + 5 * 32),
        (59, 47, 64 + 5 * 48),
        (60, 48, 96 + 5 * 64),
    ):
        keys = SimpleNamespace(device=torch.device("cuda"), size=lambda axis, length=length: {2: length}[axis])
        source = SimpleNamespace(keys=[keys], bytes=1000 * length)
        card.total_memory = 4000 * columns
        assert serves(plain, scheme, source, 5, most) is True
        card.total_memory -= 1
        assert serves(plain, scheme, source, 5, most) is False


def test_rooms_of_fixed_size_do_not_serve_a_processor_nor_a_query_stream():
    """The answer is False itself, not another false value."""
    on = {name: SimpleNamespace(keys=[SimpleNamespace(device=torch.device(name))], bytes=0) for name in ("cpu", "cuda")}
    assert serves(model(), SCHEMES["cloze"], on["cpu"], 2, 3) is False
    assert serves(model(), SCHEMES["permutation"], on["cuda"], 2, 3) is False


def test_numbers_are_rounded_up_to_multiples():
    assert [rounded(count, 4) for count in (0, 1, 3, 4, 5, 8, 9)] == [0, 4, 4, 4, 8, 8, 12]
    for most in range(1, 200):
        for least, multiple in ((1, 1), (64, 16), (3, 2)):
            sizes = halves(most, least, multiple)
            assert sizes[-1] == rounded(most, multiple) and sizes == sorted(set(sizes))
            assert all(
                small == rounded(-(-large // 2), multiple) for small, large in zip(sizes, sizes[1:], strict=False)
            )
            assert sizes[0] <= max(least, multiple) and all(size > least for size in sizes[1:])


@pytest.mark.parametrize("most", [15, 16, 31])
def test_there_is_room_for_a_text_and_its_end(most):
    cached = fixed("next", max_positions=200)
    state = cached.begin_fixed(cached.encode(sources([4])), 1, most)
    with torch.no_grad():
        for step in range(rounded(most + 1, 16)):
            cached.step(torch.tensor([5]) if step else None, state)
        with pytest.raises(UnifiedError) as raised:
            cached.step(torch.tensor([5]), state)
    assert str(raised.value) == f"there is room for {rounded(most + 1, 16)} steps, and another is asked for"


def test_a_workspace_serves_texts_that_leave_room_for_the_end_symbol():
    cached = fixed(max_positions=200)
    source = cached.encode(sources([4, 2]))
    cached.begin_fixed(source, 2, 12)
    first = cached.workspace
    for most, same in ((15, True), (3, True), (16, False)):
        cached.begin_fixed(source, 2, most)
        assert (cached.workspace is first) == same


@pytest.mark.parametrize("scheme", ["cloze", "next", "left_to_right"])
def test_a_model_of_one_layer_writes_in_fixed_shapes(scheme):
    cached = fixed(scheme, layers=1)
    growing = CachedDecoder(cached.model, SPECIAL, cached.scheme)
    rows = sources([5, 1, 9])
    found = answers(cached, rows)
    assert found == answers(growing, rows) == answers(cached, rows)
    assert len(cached.workspace.keys) == len(cached.workspace.values) == 1


@pytest.mark.parametrize("scheme", ["cloze", "next"])
def test_nothing_of_an_earlier_search_is_left_even_if_it_is_no_number(scheme):
    cached, rows = fixed(scheme), sources([5, 1, 9])
    expected = answers(cached, rows)
    for tensor in (*cached.workspace.keys, *cached.workspace.values):
        tensor.fill_(torch.nan)
    for tensor in (cached.workspace.positions, cached.workspace.last):
        tensor.fill_(7)
    cached.workspace.visible.fill_(True)
    assert answers(cached, rows) == expected


def test_a_search_keeps_nothing_for_gradients():
    """Although whoever calls it may have gradients on."""
    cached = fixed("next")
    source = cached.encode(sources([4, 2]))
    assert source.keys[0].requires_grad
    state = cached.begin_fixed(source, 2, 5)
    assert isinstance(state, FixedState)
    logits = cached.step(None, state)
    state.reorder(torch.tensor([1, 0, 2, 3]))
    more = cached.step(torch.full((4,), 5), state)
    kept = [*cached.workspace.keys, *cached.workspace.values]
    assert not any(tensor.requires_grad for tensor in (logits, more, *kept))


def test_sentences_move_only_when_half_of_the_rows_are_free(monkeypatch):
    """Of four the first to leave moves nobody; the second does, to the front of two."""
    cached = fixed(max_positions=200)
    state, moved = cached.begin_fixed(cached.encode(sources([4, 2, 3, 5])), 2, 5), []
    monkeypatch.setattr(cached.workspace, "compact", lambda kept: moved.append(kept.tolist()))
    for keep, indices, rows, moves in (
        ([0, 2, 3], [0, 2, 3], 4, []),
        ([0, 1, 2], [0, 2, 3], 4, []),
        ([0, 2], [0, 1], 2, [[0, 3]]),
        ([0, 1], [0, 1], 2, [[0, 3]]),
        ([1], [0], 1, [[0, 3], [1]]),
    ):
        state.source = state.source.select(torch.tensor(keep))
        assert (state.source.indices.tolist(), state.sentences, moved) == (indices, rows, moves)


def test_attention_in_fixed_shapes_has_no_weights():
    empty = torch.zeros(1, 1, 2, 4)
    attention = FixedAttention(empty, empty, torch.tensor([0]), torch.zeros(1, 1, 1, 2))
    assert attention.fully_masked is None and attention.shape is None
    with pytest.raises(UnifiedError) as raised:
        attention.with_weights(empty, empty, empty)
    assert str(raised.value) == "decoding in fixed shapes gives no attention weights"
