"""Which class an attention of the configuration has."""

import pytest

from unified.model import TransformerConfig
from unified.model.attention import SelfAttention
from unified.model.layers import attention_of
from unified.model.relative import TransformerXLAttention
from unified.model.rotary import RotaryAttention
from unified.model.variants import EntityAttention, RelativeKeyAttention, RelativeValueAttention


@pytest.mark.parametrize(
    ("kind", "positions", "expected"),
    [
        ("self", "learned", SelfAttention),
        ("self", "relative", TransformerXLAttention),
        ("self", "rotary", RotaryAttention),
        ("neighbor", "learned", SelfAttention),
        ("neighbor", "rotary", RotaryAttention),
        ("relative_key", "learned", RelativeKeyAttention),
        ("relative_value", "learned", RelativeValueAttention),
        ("entity", "learned", EntityAttention),
    ],
)
def test_positions_that_enter_in_attention_decide_first(kind, positions, expected):
    config = TransformerConfig(vocabulary_size=11, width=8, heads=2, sublayers=f"{kind},feed_forward",
                               positions=positions)  # fmt: skip
    assert attention_of(kind, config) is expected
