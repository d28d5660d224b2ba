"""What a mask's own methods make of it, each against a definition over pairs of tokens."""

import numpy as np
import pytest
import torch

from tests.support.mask_samples import random_document, random_queries, random_row, structures_of, visible_by_definition
from unified import masks
from unified.masks import NO_DOCUMENT, NO_KEY, NOWHERE, AttentionMask
from unified.masks.constants import HIDDEN_START, HIDDEN_STOP


def require_sound(mask: AttentionMask, visible: torch.Tensor) -> None:
    """The mask says what is visible and claims no structure that this has not; it could be built by hand."""
    assert torch.equal(mask.dense(), visible)
    assert torch.equal(mask.fully_masked(), ~visible.any(-1))
    assert mask.structure in structures_of(visible)
    AttentionMask(
        **mask.tensors(), exclude_self=mask.exclude_self, structure=mask.structure, window=mask.window
    )  # checks the fields


@pytest.fixture(params=range(12))
def rng(request):
    return np.random.default_rng(request.param)


def samples(rng: np.random.Generator) -> list[AttentionMask]:
    """Rows of seven tokens, those of the plainest structures among them."""
    return [masks.bidirectional(7), masks.left_to_right(7), random_row(rng, 7), random_document(rng, 7)]


def test_hidden_keys_are_seen_by_nobody_and_bound_no_tile(rng):
    hidden = torch.from_numpy(rng.random((3, 7)) < 0.4)
    hidden[0, 0] = True
    for mask in samples(rng):
        for changed in (
            mask.without_keys(hidden[0]),
            mask.without_keys(hidden),
            masks.batch([mask] * 3).without_keys(hidden),
        ):
            of_rows = hidden if changed.batched else hidden[0]
            require_sound(changed, mask.dense() & ~of_rows.unsqueeze(-2))
            starts, stops = mask.key_start.expand(of_rows.shape), mask.key_stop.expand(of_rows.shape)
            assert torch.equal(changed.key_start, torch.where(of_rows, HIDDEN_START, starts).to(starts.dtype))
            assert torch.equal(changed.key_stop, torch.where(of_rows, HIDDEN_STOP, stops).to(stops.dtype))


def any_interval(rng: np.random.Generator, length: int) -> AttentionMask:
    """A row whose keys have any intervals, also before step 0 and behind the last one."""
    step, ends = (rng.integers(low, high, length) for low, high in ((0, 4), (-6, 7)))
    start = ends - rng.integers(-1, 6, length)
    return AttentionMask(*(torch.from_numpy(vector) for vector in (step, start, ends)))


def visible_at_some_step(mask: AttentionMask) -> torch.Tensor:
    """bool (S,): whether some step from 0 on lies in a key's interval, each looked at by itself."""
    intervals = zip(mask.key_start.tolist(), mask.key_stop.tolist(), strict=True)
    return torch.tensor([any(start <= step < stop for step in range(20)) for start, stop in intervals])


def test_hidden_keys_are_visible_at_no_step(rng):
    for mask in (any_interval(rng, 7), random_document(rng, 7), masks.left_to_right(7)):
        visible = visible_at_some_step(mask)
        assert torch.equal(mask.hidden_keys, ~visible)
        first = mask.dense()[mask.query_step == 0].any(0)
        assert not (mask.given_keys() & ~visible).any() and not (first & ~mask.given_keys()).any()
        assert (mask.key_documents()[~visible] == NO_DOCUMENT).all()


def test_sinks_stay_visible_from_their_start_on(rng):
    for mask in (masks.sliding_window(7, 1), masks.bidirectional(7), random_document(rng, 7), any_interval(rng, 7)):
        count = int(rng.integers(0, 8))
        changed = mask.with_sinks(count)
        sinks = (torch.arange(7) < count) & visible_at_some_step(mask)  # what is hidden stays hidden
        since = mask.key_start <= mask.query_step.unsqueeze(-1)
        looks = mask.query_step.unsqueeze(-1) < mask.steps
        require_sound(changed, torch.where(sinks, since & looks, mask.dense()))
        assert changed.structure == "mixed"


def test_one_way_masks_hide_what_stands_behind_a_query(rng):
    behind = torch.arange(7).unsqueeze(-1) < torch.arange(7)
    for mask in samples(rng):
        require_sound(mask.causal(), mask.dense() & ~behind)
        assert mask.causal().structure == "mixed"
        order = torch.from_numpy(rng.integers(0, 7, 7))
        require_sound(mask.causal(order), mask.dense() & (torch.arange(7) <= order.unsqueeze(-1)))
        orders = torch.from_numpy(rng.integers(0, 7, (3, 7)))
        seen = mask.dense() & (torch.arange(7) <= orders.unsqueeze(-1))
        require_sound(masks.batch([mask] * 3).causal(orders), seen)


def test_windows_hide_what_lies_too_far_away(rng):
    for mask in samples(rng):
        window = int(rng.integers(0, 4))
        places = torch.arange(7)
        far = (places.unsqueeze(-1) - places).abs() > window
        require_sound(mask.windowed(window), mask.dense() & ~far)
        assert mask.windowed(window).structure == "mixed"
        queries, keys = (torch.from_numpy(rng.integers(0, 9, (3, 7))) for _ in range(2))
        near = (queries.unsqueeze(-1) - keys.unsqueeze(-2)).abs() <= window
        require_sound(mask.windowed(window, queries, keys), mask.dense() & near)
        require_sound(mask.windowed(window, queries[0], keys[0]), mask.dense() & near[0])
        require_sound(masks.batch([mask] * 3).windowed(window, queries, keys), mask.dense() & near)


def test_who_sees_nothing_is_told_for_every_kind_of_limit(rng):
    queries = random_queries(rng, 6, 7, exclude_self=True)
    last = torch.from_numpy(rng.integers(0, 3, 6))
    at, of = torch.from_numpy(rng.integers(0, 40, 6)), torch.from_numpy(rng.integers(0, 40, 7))
    for mask in (queries, queries.causal(last), queries.windowed(2, at, of), queries.causal(last).windowed(2, at, of)):
        assert torch.equal(mask.dense(), visible_by_definition(mask))
        assert torch.equal(mask.fully_masked(), ~mask.dense().any(-1))
    # A key of one's own that has gone, or has not yet come, is not one to take off.
    for start, stop in ((0, 2), (2, 3), (3, 4)):
        other = AttentionMask(
            torch.tensor([2]), torch.tensor([start, 0]), torch.tensor([stop, 3]), query_key=torch.tensor([0])
        ).without_self()
        assert other.dense().tolist() == [[False, True]] and not other.fully_masked().any()


def test_memory_stands_in_front_of_every_limit(rng):
    filled = int(rng.integers(0, 4))
    slots = torch.arange(3) >= 3 - filled
    for mask in (masks.bidirectional(7), masks.left_to_right(7), random_document(rng, 7)):
        order = torch.from_numpy(rng.integers(0, 7, 7))
        looks = (mask.query_step < mask.steps).unsqueeze(-1)
        for before in (mask, mask.without_self(), mask.causal(order)):
            changed = before.with_memory(3, filled)
            require_sound(changed, torch.cat([looks & slots, before.dense()], dim=-1))
            assert changed.own_keys.tolist() == [3 + i for i in range(7)]


def test_memory_of_a_packed_row_is_seen_by_its_first_document_alone(rng):
    filled = int(rng.integers(0, 4))
    slots = torch.arange(3) >= 3 - filled
    packed = masks.pack([random_document(rng, 4), random_document(rng, 3)], 9)
    first = (packed.query_documents() == 0).unsqueeze(-1)
    for before in (packed, packed.without_self()):
        require_sound(before.with_memory(3, filled), torch.cat([first & slots, before.dense()], dim=-1))
        assert masks.batch([before.with_memory(3, filled)]) == masks.batch([before]).with_memory(3, filled)


def test_query_streams_look_just_before_their_tokens_and_keep_every_limit(rng):
    order = rng.permutation(7) + 1
    content = masks.permutation(order)
    targets = rng.permutation(7)[: int(rng.integers(0, 8))]
    index = torch.from_numpy(targets)
    steps = torch.from_numpy(order)
    earlier = steps < steps[index].unsqueeze(-1)
    last, at = torch.from_numpy(rng.integers(0, 7, 7)), torch.from_numpy(rng.integers(0, 9, 7))
    near = (at[index].unsqueeze(-1) - at).abs() <= 2
    for mask, seen in (
        (content, earlier),
        (content.causal(last), earlier & (torch.arange(7) <= last[index].unsqueeze(-1))),
        (content.windowed(2, at, at), earlier & near),
    ):
        stream = mask.query_stream(targets)
        assert torch.equal(stream.dense(), seen) and (stream.own_keys == NO_KEY).all()
        assert stream.structure == "mixed"
        idle = stream.with_idle_queries(2)
        assert torch.equal(idle.dense(), torch.cat([seen, torch.zeros(2, 7, dtype=torch.bool)]))
        assert idle.query_step[len(targets) :].tolist() == [NOWHERE] * 2
        assert idle.own_keys.tolist() == [NO_KEY] * (len(targets) + 2) and idle.structure == "mixed"


def test_query_streams_see_no_key_that_their_targets_do_not_see(rng):
    # Refused exactly where one would, of tokens that look as they appear; of others perhaps without need.
    outcomes = set()
    for _ in range(60):
        mask = any_interval(rng, 6)
        at_once = AttentionMask(mask.key_start.clamp(min=0), mask.key_start.clamp(min=0), mask.key_stop)
        for exact, content in ((False, mask), (True, at_once)):
            for target in torch.nonzero(~content.hidden_keys & ~content.given_keys()).flatten().tolist():
                at_step_before = AttentionMask.unchecked(
                    query_step=content.key_start[target : target + 1] - 1,
                    key_start=content.key_start,
                    key_stop=content.key_stop,
                ).dense()
                more = bool((at_step_before & ~content.dense()[target]).any())
                try:
                    assert torch.equal(content.query_stream([target]).dense(), at_step_before) and not more
                    outcomes.add("made")
                except ValueError as error:
                    assert "see all that is visible at the step before they appear" in str(error)
                    assert more or not exact
                    outcomes.add("refused")
    assert outcomes == {"made", "refused"}


def test_query_streams_of_packed_rows_have_block_masks_and_pass_the_checks_or_are_refused(rng):
    content = masks.pack([masks.permutation(range(4))] * 2, 9)
    refused = 0
    for _ in range(20):
        targets = rng.choice([1, 2, 3, 5, 6, 7], int(rng.integers(1, 12)))
        try:
            stream = content.query_stream(targets)
        except ValueError as error:
            assert str(error).startswith("the targets of a document must stand together")
            refused += 1
            continue
        require_sound(
            stream,
            (content.key_start < content.key_start[targets].unsqueeze(-1))
            & (content.key_documents() == content.key_documents()[targets].unsqueeze(-1)),
        )
        assert torch.equal(stream.block_mask(1).to_dense()[0, 0].bool(), stream.dense())
        assert stream.block_mask(128).to_dense().sum() == 1
    assert 0 < refused < 20


def test_idle_queries_are_nobody(rng):
    for mask in (masks.left_to_right(5), masks.batch([masks.left_to_right(5), masks.bidirectional(5)])):
        idle = mask.with_idle_queries(3)
        assert torch.equal(idle.dense()[..., :5, :], mask.dense()) and not idle.dense()[..., 5:, :].any()
        assert (idle.own_keys[..., 5:] == NO_KEY).all() and torch.equal(idle.own_keys[..., :5], mask.own_keys)
        assert idle.structure == "mixed" and idle.key_length == 5


def test_a_saved_mask_is_made_again_of_its_fields(rng, tmp_path):
    """torch.load takes no class that it does not know, so the fields are what is saved."""
    for mask in samples(rng):
        for changed in (mask, mask.causal(), mask.windowed(2).without_self(), masks.batch([mask, masks.causal(7)])):
            torch.save(vars(changed), tmp_path / "mask.pt")
            again = AttentionMask(**torch.load(tmp_path / "mask.pt"))
            assert again == changed and again.structure == changed.structure
            assert torch.equal(again.dense(), changed.dense())


def test_masks_are_equal_where_all_that_they_say_is():
    row = masks.left_to_right(3)
    last = row.causal()
    assert row == masks.left_to_right(3) and row != row.without_self() and row != masks.left_to_right(4)
    assert row != last and last == row.causal() and last != row.causal(torch.tensor([0, 0, 2]))
    assert row.windowed(1) == row.windowed(1) and row.windowed(1) != row.windowed(2)
    assert (row == 3) is False and masks.left_to_right(1).structure == "full"
    other = AttentionMask(row.query_step, row.key_start, row.key_stop, row.document_ends)
    assert other.structure == "mixed" and other != row, "structures differ"
    by_hand = AttentionMask(row.query_step, row.key_start, row.key_stop, row.document_ends, structure="causal")
    assert by_hand == row
    own = AttentionMask(
        row.query_step, row.key_start, row.key_stop, row.document_ends, torch.tensor([0, 1, 2]), structure="causal"
    )
    assert own == row and own != AttentionMask(
        row.query_step, row.key_start, row.key_stop, row.document_ends, torch.tensor([1, 0, 2]), structure="causal"
    )
    assert repr(row.windowed(2)) == "AttentionMask(queries=(3,), keys=(3,), 'mixed', window=2)"


def test_masks_of_int32_and_int64_are_equal_where_their_values_are():
    narrow, wide = (
        AttentionMask(*torch.zeros(2, 1, dtype=kind), torch.full((1,), 5, dtype=kind))
        for kind in (torch.int32, torch.int64)
    )
    later = AttentionMask(wide.query_step, torch.full((1,), 2**32), wide.key_stop)
    assert narrow == wide and wide == narrow
    assert narrow != later and later != narrow, "2**32 is 0 in int32"


@pytest.mark.parametrize("never", [NOWHERE, 2**40, torch.iinfo(torch.int64).max])
def test_padding_sees_nothing_however_late_keys_disappear(never):
    step = torch.tensor([0, 1, NOWHERE])
    mask = AttentionMask(step, torch.tensor([0, 1, 1]), torch.full((3,), never))
    seen = torch.tensor([[1, 0, 0], [1, 1, 1], [0, 0, 0]]).bool()
    assert torch.equal(mask.dense(), seen) and mask.fully_masked().tolist() == [False, False, True]
    assert torch.equal(masks.batch([mask]).dense()[0], seen)
    idle = mask.with_idle_queries(1)
    assert torch.equal(idle.dense(), torch.cat([seen, torch.zeros(1, 3).bool()]))
    assert torch.equal(idle.block_mask(1).to_dense()[0, 0].bool(), idle.dense())
    vectors = dict(query_step=step, key_start=torch.zeros(3).long(), key_stop=torch.full((3,), never))
    with pytest.raises(ValueError, match="structure is given as 'full', but the steps say otherwise"):
        AttentionMask(**vectors, structure="full")


def test_a_mask_made_causal_again_keeps_what_it_hid():
    mask = masks.bidirectional(3).causal(torch.tensor([0, 0, 2]))
    assert mask.causal().dense().int().tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 1]]
    assert mask.causal(torch.tensor([2, 2, 1])).dense().int().tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0]]


@pytest.mark.parametrize("make", [lambda: masks.bidirectional(4), lambda: masks.permutation([2, 1, 0, 3])])
def test_keys_of_several_rows_make_a_batch_of_a_single_row(make):
    indices = torch.tensor([[0, 1, 2, 3], [3, 0, 2, 1]])
    one, batch = make().causal(indices), masks.batch([make()] * 2).causal(indices)
    assert one.batched and torch.equal(one.dense(), batch.dense())
    with pytest.raises(ValueError, match="key_indices must be int64 of the shape of query_step"):
        masks.batch([make()] * 3).causal(indices)
