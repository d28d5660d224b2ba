"""The attention function for transformers against the formula, layer by layer, and the refusals in front of it."""

import math
from types import SimpleNamespace

import pytest
import torch

from unified import masks
from unified.errors import UnifiedError
from unified.huggingface import unified_attention
from unified.huggingface.attention import begin_forward, mask_was_used
from unified.huggingface.registration import require_use, unsupported

ROWS, HEADS, LENGTH, WIDTH = 2, 4, 5, 6
MODULE = SimpleNamespace(is_causal=False, training=False)
TREE = masks.tree([-1, 0, 0, 1, 1])
CACHED = "a cache holds keys beside these: call the model with use_cache=False, without past_key_values"
REFUSED = "unified_mask: this model changes attention's scores by {}, which is not served"


def inputs(groups: int = HEADS, keys: int = LENGTH, rows: int = ROWS):
    generator = torch.Generator().manual_seed(0)
    shapes = (rows, HEADS, LENGTH, WIDTH), (rows, groups, keys, WIDTH), (rows, groups, keys, WIDTH)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def by_formula(query, key, value, seen, scaling):
    """softmax(scaling Q K^T) V over the keys that are seen; head h reads group h // (H / G)."""
    groups = [head // (HEADS // key.size(1)) for head in range(HEADS)]
    scores = (query @ key[:, groups].transpose(2, 3) * scaling).masked_fill(~seen, -math.inf)
    weights = scores.softmax(-1)
    return (weights @ value[:, groups]).transpose(1, 2), weights


@pytest.mark.parametrize("scaling", [None, 1 / math.sqrt(WIDTH), 0.7, 1.0])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_unified_mask_alone_decides_which_keys_are_seen(groups, scaling):
    query, key, value = inputs(groups)
    hidden = torch.full((1, 1, LENGTH, LENGTH), -1e9)  # the mask that the model makes would hide everything
    wanted = by_formula(query, key, value, TREE.dense(), scaling or 1 / math.sqrt(WIDTH))
    found = unified_attention(MODULE, query, key, value, hidden, scaling=scaling, unified_mask=TREE)
    assert found[1] is None and found[0].is_contiguous() and found[0].shape == (ROWS, LENGTH, HEADS, WIDTH)
    torch.testing.assert_close(found[0], wanted[0])
    more = {"scaling": scaling, "unified_mask": TREE, "output_attentions": True}
    for one, other in zip(unified_attention(MODULE, query, key, value, hidden, **more), wanted, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("scaling", [None, 0.7])
def test_without_unified_mask_the_result_is_that_of_sdpa(scaling):
    query, key, value = inputs(2)
    module = SimpleNamespace(is_causal=False, training=True, num_key_value_groups=2)
    seen = TREE.dense().expand(ROWS, 1, -1, -1)
    wanted = by_formula(query, key, value, seen, scaling or 1 / math.sqrt(WIDTH))
    found = unified_attention(module, query, key, value, seen, scaling=scaling)
    torch.testing.assert_close(found[0], wanted[0])
    dropped = unified_attention(module, query, key, value, seen, 0.5, scaling)
    assert not torch.equal(dropped[0], found[0])


def test_a_query_and_key_of_higher_precision_are_rounded_to_that_of_values():
    query, key, value = inputs()
    half = value.bfloat16()
    found, _ = unified_attention(MODULE, query, key, half, None, unified_mask=TREE)
    wanted, _ = unified_attention(MODULE, query.bfloat16(), key.bfloat16(), half, None, unified_mask=TREE)
    assert found.dtype == torch.bfloat16 and torch.equal(found, wanted)


@pytest.mark.parametrize("name", ["position_bias", "s_aux", "softcap"])
def test_a_model_that_changes_the_scores_is_refused(name):
    query, key, value = inputs()
    plain, _ = unified_attention(MODULE, query, key, value, None, unified_mask=TREE, **{name: None}, other=1)
    assert plain.shape == (ROWS, LENGTH, HEADS, WIDTH)
    with pytest.raises(UnifiedError) as raised:
        unified_attention(MODULE, query, key, value, None, unified_mask=TREE, **{name: 0.0})
    assert str(raised.value) == REFUSED.format(name)


@pytest.mark.parametrize(
    ("mask", "keys", "says"),
    [
        (torch.ones(5, 5), 5, "unified_mask must be an AttentionMask of unified.masks, got Tensor"),
        (masks.left_to_right(4), 5, "unified_mask is for 4 queries and 4 keys, attention got 5 and 5"),
        (masks.batch([TREE] * HEADS), 5, "unified_mask is for 4 rows, attention got 2"),
        (TREE, 7, f"unified_mask is for 5 queries and 5 keys, attention got 5 and 7; {CACHED}"),
    ],
)  # fmt: skip
def test_a_mask_of_another_kind_or_shape_is_refused(mask, keys, says):
    query, key, value = inputs(keys=keys)
    with pytest.raises(UnifiedError) as raised:
        unified_attention(MODULE, query, key, value, None, unified_mask=mask)
    assert str(raised.value) == says


@pytest.mark.parametrize(
    "chosen, says",
    [
        ("unified", "has not handed unified_mask to its attention; a newer release of transformers may"),
        (
            "sdpa",
            "has the attention 'sdpa', which does not know unified_mask; call set_attn_implementation('unified') "
            "first, also on a model that was loaded",
        ),
    ],
)
def test_a_model_whose_attention_has_not_met_the_mask_is_refused_behind_its_forward(chosen, says):
    query, key, value = inputs()
    model = Pretended()
    model.config._attn_implementation = chosen
    begin_forward()
    assert mask_was_used() is False
    with pytest.raises(UnifiedError) as raised:
        require_use(model)
    assert str(raised.value) == f"Pretended {says}"
    unified_attention(MODULE, query, key, value, None)
    assert not mask_was_used()
    unified_attention(MODULE, query, key, value, None, unified_mask=TREE)
    assert mask_was_used() is True
    require_use(model)
    begin_forward()
    assert mask_was_used() is False


class Pretended:
    """As much of a model of transformers as says whether its attention can take a mask."""

    def __init__(self, stateful=False, backend=True, sdpa=True, **settings):
        self.config = SimpleNamespace(to_dict=lambda: settings)
        self._is_stateful, self._supports_sdpa, self.is_backend_compatible = stateful, sdpa, lambda: backend


STATE = "it has layers{} that carry a state from token to token, which no attention mask governs"
CROSS = "it has cross-attention, whose keys are of another text than the mask's"


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Pretended(), None),
        (Pretended(layer_types=None, is_encoder_decoder=False, add_cross_attention=False), None),
        (Pretended(layer_types=["full_attention", "sliding_attention", "chunked_attention"]), None),
        (Pretended(stateful=True, layer_types=["full_attention"]), STATE.format("")),
        (Pretended(layer_types=["mamba", "full_attention", "conv"]), STATE.format(" (conv, mamba)")),
        (Pretended(is_encoder_decoder=True), CROSS),
        (Pretended(add_cross_attention=True), CROSS),
        (Pretended(backend=False), "its attention does not go through the AttentionInterface of transformers"),
        (Pretended(sdpa=False), "its attention changes the scores in a way that the attention 'sdpa' does not know"),
    ],
)  # fmt: skip
def test_why_a_model_cannot_take_a_mask(model, reason):
    assert unsupported(model) == reason
