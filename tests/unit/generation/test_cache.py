"""Caches of decoding: sentences that leave, rows that move, and attention that remembers or reads them."""

from dataclasses import replace

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import decoder, next_logits, sources, vocabulary
from unified import generation, masks
from unified.attention import prepare
from unified.generation.cache import (
    DecodingState,
    RecordingAttention,
    Seen,
    SourceCache,
    Window,
    join_beams,
    split_beams,
)

SPECIAL = vocabulary().special


def source_cache(counts=(2, 5, 3)) -> SourceCache:
    """Caches of two layers whose numbers say which sentence they belong to."""
    numbers = torch.arange(len(counts), dtype=torch.float32)
    layers = [numbers.view(-1, 1, 1, 1).expand(-1, 2, 5, 4) + 10 * layer for layer in (0, 1)]
    positions = torch.arange(5).expand(len(counts), -1)
    next_position = torch.tensor(counts)
    return SourceCache(
        layers, [-layer for layer in layers], positions < next_position.unsqueeze(1), positions, next_position, 5
    )


def on_card(source: SourceCache) -> SourceCache:
    """A copy of ``source`` on the pretended card. Its keys and values stay on the CPU: these tests do not read them."""
    moved = {name: vars(source)[name].to(DEVICE) for name in ("visible", "positions", "next_position")}
    return replace(source, **moved)


@pytest.mark.parametrize("keep", [torch.tensor([2, 0]), torch.tensor([True, False, True])])
def test_sentences_that_stay_keep_all_that_is_theirs(keep):
    whole, rest = source_cache(), source_cache().select(keep)
    rows = torch.arange(3)[keep]
    for name in ("keys", "values"):
        for mine, before in zip(getattr(rest, name), getattr(whole, name), strict=True):
            assert torch.equal(mine, before[rows])
    for name in ("visible", "positions", "next_position"):
        assert torch.equal(getattr(rest, name), getattr(whole, name)[rows])
    assert rest.longest == 3


def test_where_no_sentence_stays_the_longest_has_no_token():
    assert source_cache().select(torch.tensor([], dtype=torch.long)).longest == 0


def test_the_size_of_a_cache_is_that_of_keys_and_values():
    assert source_cache().bytes == 2 * 2 * (3 * 2 * 5 * 4) * 4


def test_rows_of_a_text_move_and_its_sources_stay():
    keys = [torch.randn(6, 2, 3, 4) for _ in range(2)]
    state = DecodingState(source_cache(), 2, keys, [key + 1 for key in keys])
    source, rows = state.source, torch.tensor([1, 1, 5, 0])
    assert state.length == 3
    state.reorder(rows)
    assert all(torch.equal(found, key[rows]) for found, key in zip(state.keys, keys, strict=True))
    assert all(torch.equal(found, key[rows] + 1) for found, key in zip(state.values, keys, strict=True))
    assert state.source is source


def test_beams_side_by_side():
    """Rows of a sentence become queries of one, and rows again."""
    rows = torch.randn(3 * 2, 4, 5, 7)
    joined = join_beams(rows, 2)
    assert joined.shape == (3, 4, 2 * 5, 7)
    for sentence in range(3):
        for beam in range(2):
            assert torch.equal(joined[sentence, :, 5 * beam : 5 * (beam + 1)], rows[2 * sentence + beam])
    assert torch.equal(split_beams(joined, 2), rows)


def test_a_window_reaches_as_far_on_either_side():
    """Positions of the text are counted on from those of each source."""
    window = Window(2, torch.tensor([3, 4]), torch.tensor([0, 1, 2, 3, 4]))
    assert window.in_text().tolist() == [[False, True, True, True, True], [False, False, True, True, True]]
    source = source_cache((5, 2))
    found = Window(2, torch.tensor([0, 1]), torch.tensor([0])).in_source(source)
    for sentence, count in enumerate((5, 2)):
        for query in range(2):
            wanted = [abs(count + query - position) <= 2 for position in range(5)]
            assert found[sentence, query].tolist() == wanted


@pytest.mark.parametrize("device", ["a processor", "a card"])
@pytest.mark.parametrize("size", [0, 1, 2], ids="window {}".format)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_are_a_softmax_over_what_is_seen(dtype, size, device):
    """Three tokens are written and two asked for; the first source is empty, and the first query sees no text."""
    torch.manual_seed(0)
    source, beam = source_cache((0, 2, 5)), 2
    visible = torch.tensor([[False] * 5, [True, False, True, False, True]])
    queries, keys = torch.tensor([3, 4]), torch.tensor([0, 1, 2, 3, 4])
    scores = torch.randn(3, 4, beam * 2, 5 + 5, dtype=dtype)
    expected = torch.zeros_like(scores)
    for sentence, count in enumerate((0, 2, 5)):
        for row in range(beam * 2):
            query = row % 2
            near = size or 100
            seen = [key < count and abs(count + 3 + query - key) <= near for key in range(5)]
            seen += [bool(visible[query, key]) and abs(3 + query - key) <= near for key in range(5)]
            if any(seen):
                expected[sentence, :, row, seen] = scores[sentence, :, row, seen].softmax(-1)
    with PretendCard() as card:
        if device == "a card":
            source, visible, scores, queries, keys = (
                one.to(DEVICE) if isinstance(one, torch.Tensor) else on_card(one)
                for one in (source, visible, scores, queries, keys)
            )
        window = Window(size, queries, keys) if size else None
        found = Seen(source, visible, beam, True, dtype, window).softmax(scores)
        assert not card.looks
        torch.testing.assert_close(found.cpu(), expected)


def test_what_records_attends_as_what_it_stands_for_and_drops_nothing_by_itself():
    mask = masks.batch([masks.left_to_right(4).without_self()] * 2)
    inner = prepare(mask, torch.float32, torch.device("cpu"), backend="dense")
    recorder, (query, key, value) = RecordingAttention(inner), torch.randn(3, 2, 3, 4, 8)
    assert recorder.fully_masked is inner.fully_masked is not None and recorder.shape == inner.shape
    assert torch.equal(recorder(query, key, value), inner(query, key, value))
    assert recorder.key is key and recorder.value is value
    other = key + 1
    found = recorder.with_weights(query, other, value)
    assert all(map(torch.equal, found, inner.with_weights(query, other, value))) and recorder.key is other
    recorder.read = False
    assert recorder(query, key, value) is value and recorder.key is key


@pytest.mark.parametrize("scheme", ["cloze", "next", "left_to_right", "permutation"])
def test_a_model_of_one_layer_writes_too(scheme):
    cached, rows = decoder(scheme, layers=1), sources([3, 5])
    state = cached.begin(cached.encode(rows), 1)
    written: list[list[int]] = [[], []]
    last = None
    for _ in range(3):
        logits = cached.step(last, state)
        for row, own in enumerate(written):
            expected = next_logits(cached.model, SPECIAL, scheme, rows[row], own)
            torch.testing.assert_close(logits[row], expected, rtol=1e-4, atol=1e-4)
        last = logits.argmax(-1)
        for own, token in zip(written, last.tolist(), strict=True):
            own.append(token)


def test_a_query_behind_an_empty_prompt_sees_nothing():
    """Another prompt of the batch has tokens, and what the first one writes is seen by its next query."""
    cached, rows = decoder("permutation"), sources([0, 3])
    state = cached.begin(cached.encode(rows), 1)
    for written in ([], [7]):
        logits = cached.step(torch.tensor(written * 2) if written else None, state)
        for row in range(2):
            expected = next_logits(cached.model, SPECIAL, "permutation", rows[row], written)
            torch.testing.assert_close(logits[row], expected, rtol=1e-4, atol=1e-4)


def test_every_name_of_the_package_is_there():
    assert sorted(generation.__all__) == sorted(set(generation.__all__))
    assert all(getattr(generation, name).__name__ == name for name in generation.__all__ if name != "SCHEMES")
    assert set(generation.SCHEMES) == {"cloze", "next", "left_to_right", "permutation"}
    with pytest.raises(AttributeError, match="module 'unified.generation' has no attribute 'serach'"):
        generation.serach  # noqa: B018


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_texts_are_written_in_the_type_of_the_model(dtype):
    writer = decoder("next")
    writer.model.to(dtype)
    found = generation.generate(writer, sources([2, 3]), generation.GenerationConfig(max_length=3))
    assert len(found) == 2 and all(found)
