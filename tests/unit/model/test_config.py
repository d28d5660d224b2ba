"""The configuration of a Transformer: defaults, bounds, what is refused in which words, and what follows from it."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import FrozenInstanceError, fields

import pytest

from unified.errors import UnifiedError
from unified.model import TransformerConfig

#: Field -> default, lowest and highest value; None where there is no such bound. "below" in front of an open bound.
FIELDS = {
    "vocabulary_size": (0, 0, 134_217_728),
    "layers": (12, 1, 1000),
    "width": (768, 1, 131_072),
    "heads": (12, 1, 131_072),
    "feed_forward": (3072, 0, 524_288),
    "gated": (False, None, None),
    "sublayers": ("self,feed_forward", None, None),
    "positions": ("learned", None, None),
    "attn_type": ("bi", None, None),
    "mask": ("bidirectional", None, None),
    "pair_separators": (1, 1, 2),
    "lstm": (0, 0, 1000),
    "rotary_theta": (10000.0, None, None),
    "local_rotary_theta": (0.0, 0, None),
    "attention_windows": ("0", None, None),
    "clamp_len": (0, 0, None),
    "clip_distance": (16, 1, 134_217_728),
    "max_positions": (512, 1, 134_217_728),
    "token_types": (6, 0, 134_217_728),
    "boundary_offsets": (0, 0, 134_217_728),
    "sentence_head": (False, None, None),
    "activation": ("gelu", None, None),
    "linear_without_bias": (False, None, None),
    "token_head": ("transform", None, None),
    "dropout": (0.1, 0, ("below", 1)),
    "inner_dropout": (0.0, 0, ("below", 1)),
    "attention_dropout": (0.1, 0, ("below", 1)),
    "norm": ("post", None, None),
    "norm_type": ("layer", None, None),
    "embedding_norm": (False, None, None),
    "norm_epsilon": (1e-12, 0, None),
    "initializer_range": (0.02, 0, None),
    "attention_backend": ("auto", None, None),
}
#: What else a bound of some fields needs.
BESIDE = {
    "width": {"heads": 1},
    "heads": {"width": 131_072},
    "local_rotary_theta": {"positions": "rotary"},
    "clamp_len": {"positions": "relative"},
    "token_types": {"positions": "rotary"},
}


def test_defaults_are_unilms_base_size():
    config = TransformerConfig()
    assert {one.name: getattr(config, one.name) for one in fields(config)} == {
        name: default for name, (default, _, _) in FIELDS.items()
    }
    with pytest.raises(FrozenInstanceError):
        config.layers = 3


def in_words(name):
    """The range of a field, for messages."""
    _, least, most = FIELDS[name]
    if isinstance(most, tuple):
        return f"at least {least} and below {most[1]}"
    return f"at least {least}" if most is None else f"from {least} to {most:,}"


@pytest.mark.parametrize("name", [name for name, (_, least, _) in FIELDS.items() if least is not None])
def test_the_lowest_value_is_taken_and_none_below(name):
    least, beside = FIELDS[name][1], BESIDE.get(name, {})
    taken = TransformerConfig(**beside, **{name: least})
    assert getattr(taken, name) == (3072 if name == "feed_forward" else least)
    below = least - (1 if isinstance(FIELDS[name][0], int) else 1e-9)
    with pytest.raises(UnifiedError) as raised:
        TransformerConfig(**beside, **{name: below})
    assert str(raised.value) == f"{name} must be {in_words(name)}, got {below!r}"


@pytest.mark.parametrize("name", [name for name, (_, _, most) in FIELDS.items() if most is not None])
def test_the_highest_value_is_taken_and_none_above(name):
    most, beside = FIELDS[name][2], BESIDE.get(name, {})
    if isinstance(most, tuple):
        highest, above = math.nextafter(most[1], 0), float(most[1])
    else:
        highest, above = most, most + 1
    assert getattr(TransformerConfig(**beside, **{name: highest}), name) == highest
    with pytest.raises(UnifiedError) as raised:
        TransformerConfig(**beside, **{name: above})
    assert str(raised.value) == f"{name} must be {in_words(name)}, got {above}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": "12"}, "layers must be an integer, got '12'"),
        ({"layers": 2.0}, "layers must be an integer, got 2.0"),
        ({"heads": True}, "heads must be an integer, got True"),
        ({"width": None}, "width must be an integer, got None"),
        ({"dropout": "0.1"}, "dropout must be a number, got '0.1'"),
        ({"dropout": math.nan}, "dropout must be a number, got nan"),
        ({"sublayers": ["self"]}, "sublayers must be a text, got ['self']"),
        ({"sentence_head": "yes"}, "sentence_head must be True or False, got 'yes'"),
    ],
)
def test_settings_have_their_types(settings, message):
    with pytest.raises(UnifiedError) as raised:
        TransformerConfig(**settings)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"token_types": 0}, "token_types 0 (no table) needs positions 'rotary', got 'learned'"),
        (
            {"token_types": 0, "positions": "relative"},
            "token_types 0 (no table) needs positions 'rotary', got 'relative'",
        ),
        ({"width": 50, "heads": 4}, "width must be a multiple of heads, got width 50 and heads 4"),
        ({"norm": "between"}, "norm must be one of post, pre, got 'between'"),
        (
            {"norm_type": "batchnormalization"},
            "norm_type must be one of layer, layer_without_bias, rms, got 'batchnormalization'",
        ),
        ({"positions": "sines"}, "positions must be one of learned, relative, rotary, got 'sines'"),
        ({"activation": "tanh"}, "activation must be one of gelu, gelu_tanh, silu, got 'tanh'"),
        ({"token_head": "deep"}, "token_head must be one of transform, plain, none, got 'deep'"),
        ({"attn_type": "backwards"}, "attn_type must be one of bi, uni, got 'backwards'"),
        ({"norm": "pos"}, "norm must be one of post, pre, got 'pos' (did you mean 'post'?)"),
        ({"attn_type": "uni"}, "attn_type 'uni' needs positions 'relative', got 'learned'"),
        ({"attn_type": "uni", "positions": "rotary"}, "attn_type 'uni' needs positions 'relative', got 'rotary'"),
        ({"clamp_len": 1}, "clamp_len 1 needs positions 'relative', got 'learned'"),
        (
            {"pair_separators": 2, "positions": "relative"},
            "pair_separators 2 needs positions 'learned' or 'rotary', got 'relative'",
        ),
        ({"rotary_theta": 0.0, "positions": "rotary"}, "rotary_theta must be above 0, got 0.0"),
        ({"rotary_theta": -1.0, "positions": "rotary"}, "rotary_theta must be above 0, got -1.0"),
        ({"rotary_theta": 10001.0}, "rotary_theta 10001.0 needs positions 'rotary', got 'learned'"),
        (
            {"local_rotary_theta": 0.5, "positions": "relative"},
            "local_rotary_theta 0.5 needs positions 'rotary', got 'relative'",
        ),
        (
            {"width": 15, "heads": 5, "positions": "rotary"},
            "rotary positions need an even size of heads, got width 15 and heads 5",
        ),
        ({"embedding_norm": True}, "embedding_norm needs norm 'pre', got 'post', which has one anyway"),
        (
            {"attention_windows": "0,x"},
            "attention_windows must be a list of integers of at least 0, such as '0,64,64', got '0,x'",
        ),
        (
            {"attention_windows": "0,٣"},
            "attention_windows must be a list of integers of at least 0, such as '0,64,64', got '0,٣'",
        ),
        ({"width": 15, "heads": 3, "positions": "relative"}, "relative positions need an even width, got 15"),
        ({"width": 15, "heads": 3, "lstm": 1}, "an LSTM of two directions needs an even width, got 15"),
        (
            {"sublayers": "self,relative_value,entity,relative_key", "positions": "rotary"},
            "sublayers of entity, relative_key, relative_value need positions 'learned', got 'rotary'",
        ),
        (
            {"sublayers": "self,neighbor", "positions": "relative"},
            "sublayers of neighbor need positions 'learned' or 'rotary', got 'relative'",
        ),
        (
            {"sublayers": "self,neighbor,entity", "positions": "relative"},
            "sublayers of entity, neighbor need positions 'learned', got 'relative'",
        ),
        (
            {"sublayers": "self,other"},
            "sublayers must be a list of self, neighbor, relative_key, relative_value, entity, feed_forward with an "
            "attention in it, got 'self,other'",
        ),
        (
            {"sublayers": "feed_forward"},
            "sublayers must be a list of self, neighbor, relative_key, relative_value, entity, feed_forward with an "
            "attention in it, got 'feed_forward'",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(settings, message):
    with pytest.raises(UnifiedError) as raised:
        TransformerConfig(**settings)
    assert str(raised.value) == message


def test_a_mask_that_no_task_has_is_refused():
    with pytest.raises(UnifiedError, match=r"^mask must be one of bidirectional, .*, got 'sideways'$"):
        TransformerConfig(mask="sideways")


@pytest.mark.parametrize(
    "settings",
    [
        {"token_types": 1},
        {"token_types": 0, "positions": "rotary"},
        {"token_types": 1, "positions": "rotary"},
        {"width": 15, "heads": 5},
        {"width": 15, "heads": 3},
        {"width": 10, "heads": 5, "positions": "rotary"},
        {"width": 30, "heads": 5, "positions": "rotary", "rotary_theta": 0.5},
        {"width": 10, "heads": 5, "positions": "relative", "attn_type": "uni", "clamp_len": 1},
        {"width": 10, "heads": 5, "lstm": 1},
        {"positions": "rotary", "rotary_theta": 500.0, "local_rotary_theta": 1e-3},
        {"norm": "pre", "embedding_norm": True},
        {"norm": "pre"},
        {"positions": "rotary", "sublayers": "neighbor, self"},
        {"sublayers": "self"},
        {"sublayers": "self,neighbor,relative_key,relative_value,entity,feed_forward"},
        {"attention_windows": " 3 , 0 "},
    ],
)
def test_what_fits_together_is_taken(settings):
    config = TransformerConfig(**settings)
    assert all(getattr(config, name) == value for name, value in settings.items())


@pytest.mark.parametrize("positions", ["learned", "relative", "rotary"])
def test_what_follows_from_the_kind_of_positions(positions):
    config = TransformerConfig(positions=positions, max_positions=77)
    assert config.relative is (positions == "relative")
    assert config.positions_in_attention is (positions != "learned")
    assert config.position_limit == (77 if positions == "learned" else sys.maxsize)


@pytest.mark.parametrize(("activation", "expected"), [("gelu", "none"), ("gelu_tanh", "tanh"), ("silu", "none")])
def test_gelu_is_approximated_where_the_configuration_says(activation, expected):
    assert TransformerConfig(activation=activation).gelu_approximation == expected


def test_lists_are_read_one_by_one():
    config = TransformerConfig(sublayers="self, neighbor,feed_forward", attention_windows="0, 64,7", layers=5)
    assert config.sublayer_types == ("self", "neighbor", "feed_forward")
    assert config.windows == (0, 64, 7, 0, 64)
    assert config.reads_entities is False
    assert TransformerConfig(sublayers="entity,feed_forward").reads_entities is True


def test_layers_with_a_window_have_a_theta_of_their_own_where_one_is_given():
    both = TransformerConfig(positions="rotary", rotary_theta=500.0, local_rotary_theta=7.0)
    assert (both.rotary_theta_of(0), both.rotary_theta_of(1)) == (500.0, 7.0)
    one = TransformerConfig(positions="rotary", rotary_theta=500.0)
    assert (one.rotary_theta_of(0), one.rotary_theta_of(1)) == (500.0, 500.0)


def test_copies_have_the_sizes_that_are_asked_for():
    config = TransformerConfig(token_types=2, layers=3)
    assert config.with_vocabulary(7) == TransformerConfig(7, layers=3, token_types=2)
    assert config.with_token_types(2) is config
    assert config.with_token_types(3) == TransformerConfig(layers=3, token_types=3)
    bare = TransformerConfig(positions="rotary", token_types=0)
    for head in ("transform", "plain"):
        own = TransformerConfig(token_head=head, positions="relative")
        assert own.with_token_head() is own
    for positions, head in (("relative", "plain"), ("learned", "transform"), ("rotary", "transform")):
        config = TransformerConfig(positions=positions, token_head="none", layers=3)
        assert config.with_token_head() == TransformerConfig(positions=positions, token_head=head, layers=3)
    assert bare.has_token_types(5) is True and bare.with_token_types(5) is bare


def test_every_option_says_what_it_is():
    for one in fields(TransformerConfig):
        assert re.fullmatch(r"\S.{10,}\S", one.metadata["help"]), one.name
