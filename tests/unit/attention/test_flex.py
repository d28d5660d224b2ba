"""FlexAttention without a card: when it pays, what it asks torch to compile, and which kernels it can have."""

import pytest
import torch
from torch.nn.attention import flex_attention as of_torch

from unified import masks
from unified.attention import BACKENDS
from unified.attention.flex import compiled_flex_attention

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
GIVEN = torch.randn(3, 2, 2, 6, 16)


def packed():
    return masks.batch([masks.pack([masks.bidirectional(2), masks.left_to_right(3)], 6)] * 2)


def test_it_pays_on_a_card_where_tiles_can_be_skipped():
    flex, full = BACKENDS["flex"], masks.batch([masks.bidirectional(6)])
    given = torch.bfloat16, 0.0, None
    assert flex.pays(packed(), CUDA, *given)
    assert not flex.pays(packed(), CPU, *given)
    assert not flex.pays(full, CUDA, *given) and not flex.pays(full, CPU, *given)


def test_it_is_compiled_once_for_shapes_that_do_not_change(monkeypatch):
    calls = []
    monkeypatch.setattr(torch, "compile", lambda function, **options: calls.append((function, options)) or "compiled")
    compiled_flex_attention.cache_clear()
    try:
        assert compiled_flex_attention() == compiled_flex_attention() == "compiled"
    finally:
        compiled_flex_attention.cache_clear()
    assert calls == [(of_torch.flex_attention, {"dynamic": False})]


@pytest.mark.parametrize(("name", "options"), [("flex", {}), ("flex_flash", {"BACKEND": "FLASH"})])
def test_within_compiled_layers_it_is_compiled_with_them(monkeypatch, name, options):
    asked = []
    inner = of_torch.flex_attention

    def flex(query, key, value, block_mask, kernel_options):
        asked.append(kernel_options)
        return inner(query, key, value, block_mask=block_mask)

    monkeypatch.setattr("torch.compiler.is_compiling", lambda: True)
    monkeypatch.setattr(of_torch, "flex_attention", flex)
    monkeypatch.setattr("unified.attention.flex.compiled_flex_attention", None)
    found = BACKENDS[name](packed(), torch.float32)(*GIVEN)
    monkeypatch.undo()
    assert asked == [options]
    torch.testing.assert_close(found, BACKENDS["dense"](packed(), torch.float32)(*GIVEN), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("missing", ["flash_attn", "flash_attn.cute", None])
def test_its_fast_kernels_need_two_packages_and_whatever_it_needs_itself(monkeypatch, missing):
    known = {"flash_attn", "flash_attn.cute"} - {missing}
    monkeypatch.setattr("unified.attention.flex.find_spec", lambda name: name if name in known else None)
    flash = BACKENDS["flex_flash"]
    if missing:
        for device in (CPU, CUDA):
            assert flash.unsupported(packed(), device, 0.0, None) == (
                "FlexAttention's FLASH kernels need the package flash_attn.cute; install it or use 'flex'"
            )
    else:
        assert flash.unsupported(packed(), CUDA, 0.0, None) is None
        assert flash.unsupported(packed(), CPU, 0.0, None) == "FlexAttention has no backward on cpu; use 'sdpa'"
