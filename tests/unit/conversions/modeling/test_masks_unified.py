"""Masks of the exported code, pair by pair, against their definitions; and the token that stands for a whole text."""

from __future__ import annotations

import itertools

import pytest
import torch

from unified.conversions.modeling.configuration_unified import UnifiedConfig
from unified.conversions.modeling.masks_unified import (
    class_index,
    types_of_texts,
    visible_by_steps,
    visible_in_texts,
    without_following,
)

MASKS = ("bidirectional", "left_to_right", "right_to_left", "seq2seq")
#: Two texts of 2 and 3 tokens, one text, and padding in front, behind and between.
REAL = torch.tensor([[1, 1, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1], [1, 1, 0, 1, 1, 0]]).bool()
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 1, 2]])
#: Where the second text begins; behind the last token where there is none.
BEGINS = (2, 6, 1)


def test_a_query_sees_the_keys_whose_steps_hold_its_own():
    rng = torch.Generator().manual_seed(0)
    step = torch.randint(0, 6, (3, 4), generator=rng)
    start, stop = torch.randint(0, 4, (3, 5), generator=rng), torch.randint(3, 7, (3, 5), generator=rng)
    found = visible_by_steps(step, start, stop)
    assert found.shape == (3, 4, 5) and found.dtype == torch.bool
    for b, q, s in itertools.product(range(3), range(4), range(5)):
        assert found[b, q, s] == (start[b, s] <= step[b, q] < stop[b, s])
    edges = visible_by_steps(torch.tensor([[1, 2, 3]]), torch.tensor([[2]]), torch.tensor([[3]]))
    assert edges.flatten().tolist() == [False, True, False]


@pytest.mark.parametrize("mask", MASKS)
def test_a_text_or_a_pair_is_seen_in_the_order_of_the_mask_and_padding_is_not(mask):
    found = visible_in_texts(mask, REAL, SEGMENTS)
    assert found.shape == (3, 6, 6)
    for b, q, s in itertools.product(range(3), range(6), range(6)):
        seen = {
            "bidirectional": True,
            "left_to_right": s <= q,
            "right_to_left": s >= q,
            "seq2seq": s <= q or s < BEGINS[b],
        }[mask]
        assert found[b, q, s] == (seen and REAL[b, q] and REAL[b, s]), (b, q, s)


@pytest.mark.parametrize("positions", ["learned", "rotary", "relative"])
@pytest.mark.parametrize("mask", MASKS)
def test_a_text_is_read_by_its_first_token_where_that_sees_everything_and_else_by_its_last(mask, positions):
    config = UnifiedConfig(positions=positions)
    visible = visible_in_texts(mask, REAL, SEGMENTS)
    found = class_index(config, visible, REAL)
    first, last = [0, 2, 0], [4, 5, 4]
    sees_all = {"bidirectional": [True] * 3, "right_to_left": [True] * 3, "left_to_right": [False] * 3,
                "seq2seq": [False, True, False]}[mask]  # fmt: skip
    assert found.tolist() == [
        first[i] if sees_all[i] and positions != "relative" else last[i] for i in range(3)
    ]  # fmt: skip


def test_a_first_token_that_misses_one_token_does_not_stand_for_the_text():
    config, real = UnifiedConfig(), torch.ones(3, 4).bool()
    visible = torch.ones(3, 4, 4).bool()
    visible[1, 0, 2] = False
    visible[2, 1:, 2] = False
    assert class_index(config, visible, real).tolist() == [0, 3, 0]


def test_token_types_name_the_mask_where_there_are_unilms_six():
    named = {"bidirectional": [[0, 1]], "left_to_right": [[2, 2]], "right_to_left": [[3, 3]], "seq2seq": [[4, 5]]}
    segments = torch.tensor([[0, 1]])
    for mask, types in named.items():
        for token_types, positions, wanted in (
            (6, "learned", types), (7, "rotary", types), (5, "learned", [[0, 1]]), (0, "rotary", [[0, 1]]),
            (6, "relative", [[0, 1]]), (5, "relative", [[0, 1]]),
        ):  # fmt: skip
            config = UnifiedConfig(mask=mask, token_types=token_types, positions=positions)
            assert types_of_texts(config, segments).tolist() == wanted


def test_no_query_sees_behind_its_own_place_and_one_of_a_stream_stands_at_its_position():
    positions = torch.tensor([[0, 1, 2, 3, 2, 0], [7, 5, 9, 6, 9, 7]])
    visible = torch.rand(2, 6, 4, generator=torch.Generator().manual_seed(1)) < 0.7
    places = [[0, 1, 2, 3, 2, 0], [0, 1, 2, 3, 2, 0]]
    found = without_following(visible, positions, 4)
    for b, q, s in itertools.product(range(2), range(6), range(4)):
        assert found[b, q, s] == (bool(visible[b, q, s]) and s <= places[b][q])
    alone = without_following(torch.ones(2, 4, 4).bool(), torch.zeros(2, 4).long(), 4)
    assert torch.equal(alone, torch.ones(4, 4).bool().tril().expand(2, -1, -1))


@pytest.mark.parametrize("stream", [[4], [1], [0, 1], [2, 9]])
def test_a_query_of_a_stream_without_a_place_of_its_own_is_refused(stream):
    positions = torch.tensor([[0, 1, 1, 2, *stream]])
    with pytest.raises(ValueError, match=r"^attn_type 'uni': each query of a query stream needs one token of its posi"):
        without_following(torch.ones(1, 4 + len(stream), 4).bool(), positions, 4)


def test_masks_are_made_where_the_texts_are():
    real, segments = REAL.to("meta"), SEGMENTS.to("meta")
    for mask in MASKS:
        visible = visible_in_texts(mask, real, segments)
        assert visible.device == class_index(UnifiedConfig(), visible, real).device == torch.device("meta")
        assert types_of_texts(UnifiedConfig(mask=mask), segments).device == torch.device("meta")


def test_a_default_device_of_torch_changes_nothing():
    positions = torch.tensor([[0, 1, 2, 3, 4, 5]]).expand(3, -1)

    def made(mask: str) -> list[torch.Tensor]:
        visible = visible_in_texts(mask, REAL, SEGMENTS)
        return [visible, class_index(UnifiedConfig(), visible, REAL), without_following(visible, positions, 6)]

    for mask in MASKS:
        wanted = made(mask)
        with torch.device("meta"):
            found = made(mask)
        assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
