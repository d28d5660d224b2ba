"""Settings of every preset, written out: the published sizes, and what differs from UniLM's base size besides."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from unified.errors import UnifiedError
from unified.model import PRESETS, TransformerConfig

#: Size -> layers, width, heads; the inner size is four times the width.
THREE = {"tiny": (2, 128, 2), "base": (12, 768, 12), "large": (24, 1024, 16)}
SIZES = {
    "unified_lm": THREE | {"mini": (4, 256, 4), "small": (6, 384, 12)},
    "bert": THREE
    | {"3x768": (3, 768, 12), "6x768_3": (6, 768, 3), "6x768_12": (6, 768, 12), "12x1024": (12, 1024, 16)},
    "anna": THREE,
    "spanbert": THREE,
    "xlnet": THREE,
    "modern": {
        "tiny": (2, 128, 2),
        "mini": (7, 256, 4),
        "small": (10, 384, 6),
        "base": (22, 768, 12),
        "large": (28, 1024, 16),
    },
}
OTHERWISE = {
    "unified_lm": {},
    "bert": {"token_types": 2},
    "anna": {"token_types": 2, "sublayers": "self,neighbor,feed_forward"},
    "spanbert": {"token_types": 2},
    "xlnet": {"positions": "relative", "token_head": "plain", "inner_dropout": 0.1},
    "modern": {
        "gated": True,
        "positions": "rotary",
        "rotary_theta": 160000.0,
        "local_rotary_theta": 10000.0,
        "attention_windows": "0,64,64",
        "token_types": 0,
        "linear_without_bias": True,
        "norm": "pre",
        "norm_type": "layer_without_bias",
        "norm_epsilon": 1e-5,
        "embedding_norm": True,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    },
}
INNER_OF_MODERN = {"tiny": 192, "mini": 384, "small": 576, "base": 1152, "large": 2624}


def test_presets_are_those_of_the_table():
    assert set(PRESETS) == {f"{system}_{size}" for system, sizes in SIZES.items() for size in sizes}
    for system, sizes in SIZES.items():
        for size, (layers, width, heads) in sizes.items():
            inner = INNER_OF_MODERN[size] if system == "modern" else 4 * width
            shape = {"layers": layers, "width": width, "heads": heads, "feed_forward": inner}
            expected = {**asdict(TransformerConfig()), **shape, **OTHERWISE[system]}
            assert asdict(PRESETS[f"{system}_{size}"]()) == expected, f"{system}_{size}"


@pytest.mark.parametrize("name", PRESETS)
def test_what_is_given_takes_the_place_of_a_presets_own(name):
    changed = PRESETS[name](layers=3, width=64, heads=4, vocabulary_size=9, dropout=0.3)
    assert (changed.layers, changed.width, changed.heads, changed.vocabulary_size) == (3, 64, 4, 9)
    assert changed.dropout == 0.3
    with pytest.raises(UnifiedError, match="^layers must be from 1 to 1,000, got 0$"):
        PRESETS[name](layers=0)


def test_modern_base_is_the_published_modern_bert():
    """Against the defaults of ``transformers``; a window there counts the tokens of both sides."""
    from transformers import ModernBertConfig

    theirs, ours = ModernBertConfig(), PRESETS["modern_base"]()
    assert (ours.layers, ours.width, ours.heads) == (22, theirs.hidden_size, theirs.num_attention_heads)
    assert (ours.feed_forward, ours.norm_epsilon) == (theirs.intermediate_size, theirs.norm_eps)
    assert not (theirs.attention_bias or theirs.mlp_bias or theirs.norm_bias)
    half = theirs.local_attention // 2
    assert ours.windows == tuple(0 if one == "full_attention" else half for one in theirs.layer_types)
