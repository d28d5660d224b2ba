"""Configurations of the published sizes by name: what ``--arch`` of ``fairseq-train`` names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from unified.model.config import TransformerConfig


def unified_lm_tiny(**changes: Any) -> TransformerConfig:
    """2 x 128, 2 heads: tests and teaching."""
    return TransformerConfig(**{"layers": 2, "width": 128, "heads": 2, **changes})


def unified_lm_mini(**changes: Any) -> TransformerConfig:
    """4 x 256, 4 heads."""
    return TransformerConfig(**{"layers": 4, "width": 256, "heads": 4, **changes})


def unified_lm_small(**changes: Any) -> TransformerConfig:
    """6 x 384, 12 heads."""
    return TransformerConfig(**{"layers": 6, "width": 384, "heads": 12, **changes})


def unified_lm_base(**changes: Any) -> TransformerConfig:
    """12 x 768, 12 heads: BERT-base's size."""
    return TransformerConfig(**{"layers": 12, "width": 768, "heads": 12, **changes})


def unified_lm_large(**changes: Any) -> TransformerConfig:
    """24 x 1024, 16 heads: BERT-large's size, the one UniLM was published in [UniLM, sec. 2.4]."""
    return TransformerConfig(**{"layers": 24, "width": 1024, "heads": 16, **changes})


def _sizes(
    system: str, sizes: dict[str, tuple[int, int, int]], **settings: Any
) -> dict[str, Callable[..., TransformerConfig]]:
    """Architecture name -> function, for layers, width and heads by size."""
    return {
        f"{system}_{size}": partial(TransformerConfig, layers=layers, width=width, heads=heads, **settings)
        for size, (layers, width, heads) in sizes.items()
    }


_TINY_BASE_LARGE = {"tiny": (2, 128, 2), "base": (12, 768, 12), "large": (24, 1024, 16)}
#: The other sizes of BERT's ablation [BERT, table 6]: layers x width, and the heads where two share them.
_BERT_ABLATION = {"3x768": (3, 768, 12), "6x768_3": (6, 768, 3), "6x768_12": (6, 768, 12), "12x1024": (12, 1024, 16)}

#: Architecture name -> function that returns its configuration.
PRESETS: dict[str, Callable[..., TransformerConfig]] = {
    preset.__name__: preset
    for preset in (unified_lm_tiny, unified_lm_mini, unified_lm_small, unified_lm_base, unified_lm_large)
}
PRESETS |= _sizes("bert", _TINY_BASE_LARGE | _BERT_ABLATION, token_types=2)
PRESETS |= _sizes("anna", _TINY_BASE_LARGE, token_types=2, sublayers="self,neighbor,feed_forward")
PRESETS |= _sizes("spanbert", _TINY_BASE_LARGE, token_types=2)
#: ModernBERT's two sizes, two of Ettin's (17M, 32M) and one for tests: layers, width, heads, inner size.
_MODERN = {
    "tiny": (2, 128, 2, 192),
    "mini": (7, 256, 4, 384),
    "small": (10, 384, 6, 576),
    "base": (22, 768, 12, 1152),
    "large": (28, 1024, 16, 2624),
}
PRESETS |= {
    f"modern_{size}": partial(
        TransformerConfig,
        layers=layers,
        width=width,
        heads=heads,
        feed_forward=inner,
        gated=True,
        positions="rotary",
        rotary_theta=160000.0,
        local_rotary_theta=10000.0,
        attention_windows="0,64,64",
        token_types=0,
        linear_without_bias=True,
        norm="pre",
        norm_type="layer_without_bias",
        norm_epsilon=1e-5,
        embedding_norm=True,
        dropout=0.0,
        attention_dropout=0.0,
    )
    for size, (layers, width, heads, inner) in _MODERN.items()
}
PRESETS |= _sizes("xlnet", _TINY_BASE_LARGE, positions="relative", token_head="plain", inner_dropout=0.1)
