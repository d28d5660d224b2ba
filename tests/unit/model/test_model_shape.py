"""Sizes, initial weights and dropout of models, and shapes that are refused."""

import math
from pathlib import Path

import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.tiny_models import model
from unified import masks
from unified.errors import UnifiedError
from unified.model import PRESETS, Transformer, TransformerConfig, UnifiedModel


@pytest.mark.slow
def test_presets_have_the_published_sizes():
    def count(name: str, vocabulary: int) -> int:
        with torch.device("meta"):
            built = UnifiedModel.for_language(PRESETS[name](vocabulary_size=vocabulary))
        return sum(parameter.numel() for parameter in built.parameters())

    def formula(layers: int, width: int, vocabulary: int, token_types: int) -> int:
        layer = 4 * width * (width + 1) + width * 4 * width * 2 + 5 * width + 4 * width
        embeddings = (vocabulary + 512 + token_types) * width + 2 * width
        heads = width * (width + 1) + 2 * width + vocabulary + width * (width + 1) + 2 * (width + 1)
        return layers * layer + embeddings + heads

    unilm = {"tiny": (2, 128, 2), "mini": (4, 256, 4), "small": (6, 384, 12)}
    published = {"base": (12, 768, 12), "large": (24, 1024, 16)}
    bert = {"3x768": (3, 768, 12), "6x768_3": (6, 768, 3), "6x768_12": (6, 768, 12), "12x1024": (12, 1024, 16)}
    expected = {f"unified_lm_{size}": (shape, 6) for size, shape in (unilm | published).items()}
    tiny = {"tiny": (2, 128, 2)}
    expected |= {f"bert_{size}": (shape, 2) for size, shape in (tiny | published | bert).items()}
    expected |= {f"spanbert_{size}": (shape, 2) for size, shape in (tiny | published).items()}
    expected |= {f"anna_{size}": (shape, 2) for size, shape in (tiny | published).items()}
    for size, (layers, width, heads) in (tiny | published).items():
        layer = 5 * width * width + 5 * width + 8 * width * width + 5 * width + 4 * width
        heads_of = 30522 + width * (width + 1) + 2 * (width + 1)
        assert count(f"xlnet_{size}", 30522) == layers * layer + (30522 + 1) * width + heads_of
        assert PRESETS[f"xlnet_{size}"]().heads == heads
    modern = {"tiny": (2, 128, 192), "mini": (7, 256, 384), "small": (10, 384, 576), "base": (22, 768, 1152)}
    modern["large"] = (28, 1024, 2624)
    for size, (layers, width, inner) in modern.items():
        layer = 4 * width * width + 3 * width * inner + 2 * width
        token_head = width * width + width + 50368
        found = 50368 * width + width + layers * layer - width + width + token_head  # what ModernBERT has
        own = width + width * (width + 1) + 2 * (width + 1)  # query stream, next sentences
        assert count(f"modern_{size}", 50368) == found + own, size
        assert round(found / 1e6) == {"base": 150, "large": 396}.get(size, round(found / 1e6))
    names = {f"xlnet_{size}" for size in tiny | published} | {f"modern_{size}" for size in modern}
    assert set(expected) | names == set(PRESETS)
    for name, ((layers, width, heads), token_types) in expected.items():
        neighbor = layers * (4 * width * (width + 1) + 2 * width) * name.startswith("anna")
        assert count(name, 30522) == formula(layers, width, 30522, token_types) + neighbor, name
        assert PRESETS[name]().heads == heads
    # BERT-base's published 110M; UniLM's ~340M with its cased vocabulary.
    assert round(count("unified_lm_base", 30522) / 1e6) == 110
    assert 330e6 < count("unified_lm_large", 28996) < 345e6


@pytest.mark.slow
def test_parameters_of_anna_are_those_that_the_documentation_gives():
    """With the paper's vocabulary of 127,490, part by part; docs/background/decisions.md quotes each number."""
    page = (Path(__file__).parents[3] / "docs" / "background" / "decisions.md").read_text(encoding="utf-8")
    quoted = page[page.index("**ANNA's sizes") :].partition("\n\n**")[0]

    def counts(name: str, **changes) -> tuple[int, ...]:
        with torch.device("meta"):
            built = UnifiedModel.for_language(PRESETS[name](vocabulary_size=127_490, **changes))
        table, layers = built.transformer.embeddings.tokens, built.transformer.layers
        heads = built.heads["token"], built.heads["next_sentence"]
        parts = [sum(p.numel() for p in part.parameters()) for part in (built, table, layers, *heads)]
        return *parts, parts[0] - sum(parts[1:])

    base, large = counts("anna_base"), counts("anna_large")
    one_attention = [counts(f"anna_{size}", sublayers="self,feed_forward") for size in ("base", "large")]
    assert base == (213_041_668, 97_912_320, 113_421_312, 719_618, 592_130, 396_288)
    assert large[0] == 536_429_060 and one_attention[0][0] == 184_674_820 and one_attention[1][0] == 435_618_308
    neighbor = base[2] - one_attention[0][2]
    assert neighbor == 12 * (4 * 768 * 769 + 2 * 768)
    for number in (*base, large[0], neighbor, *(parts[0] for parts in one_attention)):
        assert f"{number:,}" in quoted, number


def test_weights_start_as_berts_do():
    built = UnifiedModel.for_language(TransformerConfig(vocabulary_size=500, layers=2, width=128, heads=4))
    for name, parameter in built.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            n = parameter.numel()
            assert parameter.std().item() == pytest.approx(0.02, rel=5 / math.sqrt(n)), name
            assert parameter.mean().item() == pytest.approx(0, abs=5 * 0.02 / math.sqrt(n)), name


def test_dropout_is_where_the_configuration_says():
    tokens, indices = torch.randint(4, 16, (1, 9)), torch.arange(9)[None]
    mask = masks.batch([masks.bidirectional(9)])

    def varies(**dropouts) -> bool:
        core = model(**dropouts).train()
        first, second = (core.transformer(tokens, indices, torch.zeros_like(tokens), mask) for _ in range(2))
        core.eval()
        third, fourth = (core.transformer(tokens, indices, torch.zeros_like(tokens), mask) for _ in range(2))
        assert torch.equal(third, fourth)
        return not torch.equal(first, second)

    assert varies(dropout=0.1, attention_dropout=0.0) and varies(dropout=0.0, attention_dropout=0.1)
    assert not varies(dropout=0.0, attention_dropout=0.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 100, "heads": 12}, "width must be a multiple of heads, got width 100 and heads 12"),
        ({"layers": 0}, "layers must be from 1 to 1,000, got 0"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, got 1.0"),
        ({"attention_dropout": -0.1}, r"attention_dropout must be at least 0 and below 1, got -0.1"),
        ({"norm": "sandwich"}, r"norm must be one of post, pre, got 'sandwich'"),
        ({"norm_type": "none"}, r"norm_type must be one of layer, layer_without_bias, rms, got 'none'"),
        ({"embedding_norm": True}, "embedding_norm needs norm 'pre', got 'post', which has one anyway"),
        (
            {"attention_windows": "0,-4"},
            "attention_windows must be a list of integers of at least 0, such as '0,64,64'",
        ),
        ({"attention_windows": "0,1000000000"}, "attention_windows must be below 1,000,000,000, got '0,1000000000'"),
        ({"attention_windows": ""}, "attention_windows must be a list of integers of at least 0, such as '0,64,64'"),
        ({"attention_windows": 64}, "attention_windows must be a text, got 64"),
        ({"rotary_theta": 500.0}, "rotary_theta 500.0 needs positions 'rotary', got 'learned'"),
        ({"local_rotary_theta": 1.0, "positions": "relative"}, "local_rotary_theta 1.0 needs positions 'rotary'"),
        ({"rotary_theta": 0.0, "positions": "rotary"}, "rotary_theta must be above 0, got 0.0"),
        (
            {"width": 36, "positions": "rotary"},
            "rotary positions need an even size of heads, got width 36 and heads 12",
        ),
        ({"token_types": 0}, r"token_types 0 \(no table\) needs positions 'rotary', got 'learned'"),
        ({"sublayers": "entity,feed_forward", "positions": "rotary"}, "sublayers of entity need positions 'learned'"),
    ],
)
def test_shapes_that_cannot_be_are_refused(fields, message):
    with pytest.raises(UnifiedError, match=message):
        TransformerConfig(**fields)


def test_a_model_needs_a_vocabulary():
    with pytest.raises(UnifiedError, match="vocabulary_size must be at least 1, got 0"):
        Transformer(TransformerConfig(layers=1, width=8, heads=1))
    assert TransformerConfig(width=12, heads=3).feed_forward == 48
    assert TransformerConfig().with_vocabulary(7).vocabulary_size == 7
