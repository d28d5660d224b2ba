"""A mask is prepared once for all layers of a forward, for each case and thread, and is forgotten when it is gone."""

from __future__ import annotations

import gc
import math
import threading
import weakref
from types import SimpleNamespace

import pytest
import torch

from unified import masks
from unified.attention import prepare
from unified.errors import UnifiedError
from unified.huggingface import attention, unified_attention

ROWS, HEADS, LENGTH, WIDTH = 2, 2, 4, 6
MODULE = SimpleNamespace(is_causal=False, training=False)


def inputs(dtype: torch.dtype = torch.float32, groups: int = HEADS) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (ROWS, HEADS, LENGTH, WIDTH), (ROWS, groups, LENGTH, WIDTH), (ROWS, groups, LENGTH, WIDTH)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def attended(mask, dtype: torch.dtype = torch.float32, **settings):
    return unified_attention(MODULE, *inputs(dtype), None, unified_mask=mask, **settings)


def by_formula(seen: torch.Tensor, scaling: float = 1 / math.sqrt(WIDTH)) -> torch.Tensor:
    query, key, value = inputs()
    scores = (query @ key.mT * scaling).masked_fill(~seen, -math.inf)
    return (scores.softmax(-1) @ value).transpose(1, 2)


@pytest.fixture
def made(monkeypatch) -> list[dict]:
    """What is prepared: mask, dtype, device, dropout and settings of each call."""
    calls: list[dict] = []

    def noted(mask, dtype, device, dropout, **settings):
        calls.append({"mask": mask, "case": (dtype, device, dropout), **settings})
        return prepare(mask, dtype, device, dropout, **settings)

    monkeypatch.setattr(attention, "prepare", noted)
    return calls


def test_all_layers_of_a_forward_share_one_preparation(made):
    mask = masks.left_to_right(LENGTH)
    for _ in range(3):
        attended(mask)
    (call,) = made
    assert torch.equal(call["mask"].dense(), mask.dense()) and call["case"] == (torch.float32, torch.device("cpu"), 0.0)
    assert call["needs"] is None and call["automatic"] == ("flex", "fused", "sdpa", "dense")


def test_each_mask_is_prepared_by_itself(made):
    first, second = masks.left_to_right(LENGTH), masks.bidirectional(LENGTH)
    for mask in (first, second, first, second):
        torch.testing.assert_close(attended(mask)[0], by_formula(mask.dense()))
    assert [int(call["mask"].dense().sum()) for call in made] == [10, 16, 10, 16]


def test_each_case_of_a_mask_is_prepared_by_itself(made):
    mask = masks.left_to_right(LENGTH)
    cases = [{}, {"dropout": 0.5}, {"output_attentions": True}, {"dtype": torch.bfloat16}]
    for _ in range(2):
        for case in cases:
            attended(mask, **case)
        with torch.inference_mode():
            attended(mask)
    assert len(made) == 5
    assert [call["case"][2] for call in made] == [0.0, 0.5, 0.0, 0.0, 0.0]
    assert [call["needs"] for call in made] == [None, None, "weights", None, None]
    assert [call["case"][0] for call in made] == [torch.float32] * 3 + [torch.bfloat16, torch.float32]


def test_what_was_prepared_ends_with_the_mask(made, monkeypatch):
    kept = []
    monkeypatch.setattr(
        attention, "prepare", lambda *given, **more: kept.append(weakref.ref(own := prepare(*given, **more))) or own
    )
    mask = masks.left_to_right(LENGTH)
    attended(mask)
    assert kept[0]() is not None
    del mask
    gc.collect()
    assert kept[0]() is None


def test_each_thread_has_its_own_and_a_new_one_has_used_nothing(made):
    attended(masks.left_to_right(LENGTH))
    found = []
    thread = threading.Thread(target=lambda: found.append(attention.mask_was_used()))
    thread.start()
    thread.join()
    assert attention.mask_was_used() is True and found == [False]
    attention.begin_forward()
    assert attention.mask_was_used() is False


@pytest.mark.parametrize("groups", [1, 2])
def test_keys_are_copied_for_the_heads_of_a_group_alone(monkeypatch, groups):
    given, (query, key, value) = [], inputs(groups=groups)
    monkeypatch.setattr(attention, "attend", lambda *own: given.append(own) or own[0])
    unified_attention(MODULE, query, key, value, None, unified_mask=masks.left_to_right(LENGTH))
    ((_, keys, values, _, dropout),) = given
    assert keys.shape == values.shape == (ROWS, HEADS, LENGTH, WIDTH) and dropout == 0.0
    assert (keys.data_ptr() == key.data_ptr()) is (values.data_ptr() == value.data_ptr()) is (groups == HEADS)


@pytest.mark.parametrize("scaling", [2 / math.sqrt(WIDTH), 1.0000001 / math.sqrt(WIDTH), 0.0])
def test_any_factor_of_the_scores_is_taken(scaling):
    mask = masks.left_to_right(LENGTH)
    torch.testing.assert_close(attended(mask, scaling=scaling)[0], by_formula(mask.dense(), scaling))


@pytest.mark.parametrize("dropped", [0.5, 1.0])
def test_weights_are_dropped_at_the_rate_of_the_model(dropped):
    mask = masks.bidirectional(LENGTH)
    torch.manual_seed(0)
    weights, whole = (
        attended(mask, dropout=dropped, output_attentions=True)[1],
        attended(mask, output_attentions=True)[1],
    )
    kept = weights != 0
    torch.testing.assert_close(weights[kept], whole[kept] / (1 - dropped))
    assert kept.any().item() is (dropped < 1) and not kept.all()
    assert not torch.equal(attended(mask, dropout=0.5)[0], attended(mask)[0])


def test_a_mask_of_other_rows_than_the_batch_is_refused():
    own = masks.left_to_right(LENGTH)
    for rows in (1, 3):
        with pytest.raises(UnifiedError) as raised:
            attended(masks.batch([own] * rows))
        assert str(raised.value) == f"unified_mask is for {rows} rows, attention got {ROWS}"
    whole = masks.batch([own, masks.bidirectional(LENGTH)])
    torch.testing.assert_close(attended(whole)[0], by_formula(whole.dense().unsqueeze(1)))
