"""Cached decoding against recomputing everything at every step, under masks that unified.masks builds."""

import pytest
import torch

from tests.support.tiny_models import decoder, next_logits, sources, vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder, score
from unified.model import TransformerConfig, UnifiedModel

SPECIAL = vocabulary().special
LENGTHS = [5, 1, 9, 0]
#: Those of a model with a table of positions.
OF_LEARNED_POSITIONS = [name for name, scheme in SCHEMES.items() if not scheme.query_stream]


def recomputed(cached: CachedDecoder, scheme: str, source: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
    return next_logits(cached.model, SPECIAL, scheme, source, written.tolist())


def steps(cached: CachedDecoder, rows: torch.Tensor, written: torch.Tensor, beam: int = 1) -> torch.Tensor:
    """Logits (R, t + 1, V) of decoding ``written`` (R, t) step by step."""
    state = cached.begin(cached.encode(rows), beam)
    inputs = [None, *written.unbind(1)]
    return torch.stack([cached.step(last, state) for last in inputs], dim=1)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_cached_logits_equal_full_recomputation(scheme, left, norm):
    cached, beam = decoder(scheme, norm=norm), 2
    rows = sources(LENGTHS, left=left, width=14)
    written = torch.randint(4, 16, (len(LENGTHS) * beam, 4))
    logits = steps(cached, rows, written, beam)
    for row in range(len(written)):
        for t in range(5):
            expected = recomputed(cached, scheme, rows[row // beam], written[row, :t])
            torch.testing.assert_close(logits[row, t], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sublayers",
    ["self,neighbor,feed_forward", "neighbor,neighbor,feed_forward", "relative_key,relative_value,feed_forward"],
)
@pytest.mark.parametrize("scheme", OF_LEARNED_POSITIONS)
@torch.no_grad()
def test_caches_of_other_attentions_equal_full_recomputation(scheme, sublayers):
    cached = decoder(scheme, sublayers=sublayers)
    rows, written = sources(LENGTHS, width=14), torch.randint(4, 16, (len(LENGTHS) * 2, 5))
    logits = steps(cached, rows, written, beam=2)
    for row in range(len(written)):
        for t in (0, 1, 2, 5):
            expected = recomputed(cached, scheme, rows[row // 2], written[row, :t])
            torch.testing.assert_close(logits[row, t], expected, atol=1e-4, rtol=1e-4)
    targets = torch.cat([written[::2], written[1::2]], dim=1)
    forced = cached.model.logits(cached.forced_states(cached.encode(rows), targets))
    torch.testing.assert_close(forced, steps(cached, rows, targets)[:, :-1], atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"attn_type": "uni"}, {"clamp_len": 3}, {"attn_type": "uni", "clamp_len": 6}])
@torch.no_grad()
def test_caches_of_one_way_and_clamped_attention_equal_full_recomputation(setting):
    """Prompts padded on either side, longer than the clamped distance; the setting matters."""
    cached, plain = decoder("permutation", **setting), decoder("permutation")
    for left in (False, True):
        rows, written = sources(LENGTHS, width=14, left=left), torch.randint(4, 16, (len(LENGTHS) * 2, 9))
        logits = steps(cached, rows, written, beam=2)
        for row in range(len(written)):
            for t in (0, 1, 4, 9):
                expected = recomputed(cached, "permutation", rows[row // 2], written[row, :t])
                torch.testing.assert_close(logits[row, t], expected, atol=1e-5, rtol=1e-5)
        assert (logits - steps(plain, rows, written, beam=2)).abs().max() > 1e-2
        targets = written[::2]
        forced = cached.model.logits(cached.forced_states(cached.encode(rows), targets))
        torch.testing.assert_close(forced, steps(cached, rows, targets)[:, :-1], atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("windows", ["0", "0,2", "1"])
@pytest.mark.parametrize("sublayers", ["neighbor,feed_forward", "self,neighbor,feed_forward"])
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_caches_of_tokens_that_do_not_see_themselves_equal_full_recomputation(scheme, sublayers, windows):
    """Behind an empty prompt, too, where queries see nothing and the biases of the output must not be added."""
    cached = decoder(scheme, sublayers=sublayers, positions="rotary", attention_windows=windows)
    rows, written = sources([5, 0, 9], width=14), torch.randint(4, 16, (6, 3))
    logits = steps(cached, rows, written, beam=2)
    for row in range(len(written)):
        for t in range(4):
            expected = recomputed(cached, scheme, rows[row // 2], written[row, :t])
            torch.testing.assert_close(logits[row, t], expected, atol=1e-4, rtol=1e-4)
    targets = written[::2]
    forced = cached.model.logits(cached.forced_states(cached.encode(rows), targets))
    torch.testing.assert_close(forced, steps(cached, rows, targets)[:, :-1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("setting", [{"positions": "rotary"}, {}], ids=["rotary", "as the scheme has it"])
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_caches_of_layers_with_windows_equal_full_recomputation(scheme, setting):
    """Windows shorter than sources and texts; the whole text at once, step by step and forced; windows matter."""
    cached = decoder(scheme, layers=3, attention_windows="0,2,3", **setting)
    rows, written = sources(LENGTHS, width=14, left=True), torch.randint(4, 16, (len(LENGTHS) * 2, 5))
    logits = steps(cached, rows, written, beam=2)
    for row in range(len(written)):
        for t in (0, 1, 2, 5):
            expected = recomputed(cached, scheme, rows[row // 2], written[row, :t])
            torch.testing.assert_close(logits[row, t], expected, atol=1e-4, rtol=1e-4)
    targets = torch.cat([written[::2], written[1::2]], dim=1)
    forced = cached.model.logits(cached.forced_states(cached.encode(rows), targets))
    torch.testing.assert_close(forced, steps(cached, rows, targets)[:, :-1], atol=1e-4, rtol=1e-4)
    assert (steps(decoder(scheme, layers=3, **setting), rows, written, beam=2) - logits).abs().max() > 1e-2


@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_step_can_tell_what_was_written_and_from_what(scheme):
    """Guards the test above: logits that ignored the source or the written tokens would also agree with themselves."""
    cached = decoder(scheme)
    rows, written = sources([4, 4]), torch.tensor([[5, 6], [5, 7]])
    rows[1] = rows[0]
    logits = steps(cached, rows, written)
    torch.testing.assert_close(logits[0, :2], logits[1, :2])
    assert (logits[0, 2] - logits[1, 2]).abs().max() > 0.01
    changed = rows.clone()
    changed[:, 1] = 15 - changed[:, 1] + 4
    assert (steps(cached, changed, written) - logits).abs().amax((0, 2)).min() > 0.01


@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_prompts_may_end_with_separators_or_not(scheme):
    cached = decoder(scheme)
    plain, ended = sources([3, 6], separator=False), sources([3, 6], separator=True)
    if not SCHEMES[scheme].prompt:
        with pytest.raises(UnifiedError, match="must end with the separator"):
            cached.encode(plain)
        return
    written = torch.tensor([[5], [6]])
    torch.testing.assert_close(steps(cached, plain, written), steps(cached, ended, written))


@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_reorder_and_select_carry_rows_to_their_new_places(scheme):
    cached, beam = decoder(scheme), 2
    rows = sources([4, 7, 2])
    written = torch.randint(4, 16, (6, 3))
    state = cached.begin(cached.encode(rows), beam)
    for last in (None, *written.unbind(1)):
        cached.step(last, state)
    order = torch.tensor([1, 1, 4, 5])  # both rows continue row 1 of sentence 0; sentence 1 leaves
    state.reorder(order)
    state.source = state.source.select(torch.tensor([0, 2]))
    after = cached.step(torch.tensor([8, 9, 10, 11]), state)
    for row, (old, last) in enumerate(zip(order.tolist(), [8, 9, 10, 11], strict=True)):
        history = torch.cat([written[old], torch.tensor([last])])
        expected = recomputed(cached, scheme, rows[old // beam], history)
        torch.testing.assert_close(after[row], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_source_cache_does_not_grow_with_the_beam(scheme):
    cached = decoder(scheme)
    rows = sources(LENGTHS)
    source = cached.encode(rows)
    config, indices = cached.model.config, rows.size(1) + (not SCHEMES[scheme].query_stream)
    assert source.bytes == 2 * config.layers * len(LENGTHS) * indices * config.width * 4
    assert source.bytes == sum(tensor.untyped_storage().nbytes() for tensor in source.keys + source.values)
    for beam in (1, 5, 20):
        state = cached.begin(source, beam)
        cached.step(None, state)
        cached.step(torch.full((len(LENGTHS) * beam,), 5), state)
        state.reorder(torch.arange(len(LENGTHS) * beam).flip(0))
        assert state.source is source
        assert all(key.size(0) == len(LENGTHS) * beam for key in state.keys)
        # A [MASK] is never kept; where the last token predicts, the start symbol has a query of its own.
        assert state.length == (2 if scheme == "next" else 1)


@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_score_in_one_pass_equals_decoding_step_by_step(scheme):
    cached = decoder(scheme)
    rows = sources([5, 1, 9, 0])
    targets = torch.tensor([[5, 6, 7, 8, 2], [9, 2, 1, 1, 1], [4, 4, 12, 2, 1], [7, 5, 2, 1, 1]])
    expected = steps(cached, rows, targets[:, :-1]).log_softmax(-1).gather(2, targets.unsqueeze(2)).squeeze(2)
    expected[targets == SPECIAL.pad] = 0
    torch.testing.assert_close(score(cached, rows, targets), expected, atol=1e-5, rtol=1e-5)


def test_score_refuses_left_padding_and_too_long_targets():
    cached = decoder()
    with pytest.raises(UnifiedError, match="padded on the right"):
        score(cached, sources([2]), torch.tensor([[1, 5, 2]]))
    with pytest.raises(UnifiedError, match="54 positions are needed .* table has 48"):
        score(cached, sources([2]), torch.full((1, 50), 5))


@torch.no_grad()
def test_the_position_table_is_used_to_its_last_row_and_no_further():
    for scheme in OF_LEARNED_POSITIONS:
        cached = decoder(scheme, max_positions=10)
        rows = sources([4])
        state = cached.begin(cached.encode(rows), 1)
        left = 10 - state.source.longest
        for i in range(left):
            cached.step(torch.tensor([5]) if i else None, state)
        with pytest.raises(UnifiedError, match="11 positions are needed .* table has 10"):
            cached.step(torch.tensor([5]), state)
        with pytest.raises(UnifiedError, match="table has 10"):
            cached.encode(sources([20]))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_relative_positions_go_beyond_any_table_and_equal_full_recomputation(scheme):
    cached, beam = decoder(scheme, max_positions=8, positions="relative"), 2
    rows, written = sources([5, 1, 9, 0], left=True), torch.randint(4, 16, (8, 12))
    logits = steps(cached, rows, written, beam)
    for row in range(len(written)):
        for t in (0, 1, 5, 12):
            expected = recomputed(cached, scheme, rows[row // beam], written[row, :t])
            torch.testing.assert_close(logits[row, t], expected, atol=1e-4, rtol=1e-4)
    forced = cached.model.logits(cached.forced_states(cached.encode(rows), written[::2]))
    torch.testing.assert_close(forced, steps(cached, rows, written[::2])[:, :-1], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_distances_are_projected_seldom_while_decoding():
    """Once for the source, then whenever the text has doubled, and not at every step."""
    cached, calls = decoder("permutation"), []
    for layer in cached.model.transformer.layers:
        layer.attention.sublayer.distances.register_forward_hook(lambda *_: calls.append(1))
    steps(cached, sources([5, 3]), torch.randint(4, 16, (2, 40)))
    assert len(calls) == 2 * (1 + 3)  # two layers: the source of 5 tokens, then tables for 12, 26 and 54


def test_a_query_stream_needs_positions_in_attention():
    with pytest.raises(UnifiedError, match="needs a model with positions 'relative' or 'rotary'"):
        decoder("permutation", positions="learned")


def test_too_few_token_types_are_refused():
    small = UnifiedModel.for_language(TransformerConfig(vocabulary_size=20, layers=1, width=8, heads=1, token_types=2))
    with pytest.raises(UnifiedError, match="needs 6 token types, the model has 2"):
        CachedDecoder(small, SPECIAL, SCHEMES["cloze"])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_decoding_has_gradients_equal_to_recomputation(scheme):
    """Steps compute under the caller's grad mode; sequence-level training needs them."""
    cached = decoder(scheme)
    rows, written = sources([5, 2]), torch.tensor([[5, 6], [7, 8]])
    weight = cached.model.transformer.layers[0].attention.sublayer.query_key_value.weight
    (mine,) = torch.autograd.grad(steps(cached, rows, written)[:, -1].logsumexp(-1).sum(), weight)
    full = sum(recomputed(cached, scheme, r, w).logsumexp(-1) for r, w in zip(rows, written, strict=True))
    (expected,) = torch.autograd.grad(full, weight)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(mine, expected, atol=1e-5, rtol=1e-4)
