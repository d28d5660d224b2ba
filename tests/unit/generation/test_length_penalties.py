"""Exponents of the length penalty by which a text has none."""

from __future__ import annotations

import math

import pytest

from unified.errors import UnifiedError
from unified.generation.config import GenerationConfig
from unified.generation.penalties import PENALTIES, require_exponent


@pytest.mark.parametrize(
    ("penalty", "length", "most"),
    [("fairseq", 2, 1023), ("fairseq", 1024, 102), ("unilm", 7, 1023), ("unilm", 43, 341)],
)
def test_an_exponent_holds_where_the_penalty_is_a_float_above_0(penalty, length, most):
    """A float is below 2 ** 1024 and, if it is not 0, at least 2 ** -1074; the bases are 2, 2 ** 10, 2 and 8."""
    require_exponent("lenpen", penalty, most, length)
    require_exponent("lenpen", penalty, -most, length)
    for exponent in (most + 1, -1.1 * most):
        with pytest.raises(UnifiedError) as refused:
            require_exponent("lenpen", penalty, exponent, length)
        assert str(refused.value) == f"lenpen {exponent:g}: a text of {length:,} tokens has no such length penalty"


@pytest.mark.parametrize("exponent", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("length", [1, 9])
def test_an_exponent_is_finite_although_1_to_the_power_of_anything_is_1(exponent, length):
    for penalty in PENALTIES:
        with pytest.raises(UnifiedError, match=rf"^--x {exponent}: a text of {length} tokens? has no such "):
            require_exponent("--x", penalty, exponent, length)
        require_exponent("--x", penalty, 1e300, 1)


def test_the_longest_text_of_a_search_has_a_penalty():
    """Its end symbol is counted."""
    assert GenerationConfig(max_length=1023, lenpen=102).lenpen == 102
    assert GenerationConfig(max_length=1022, lenpen=102.4, length_penalty="unilm").max_length == 1022
    with pytest.raises(UnifiedError) as refused:
        GenerationConfig(max_length=1023, lenpen=103)
    assert str(refused.value) == "lenpen 103: a text of 1,024 tokens has no such length penalty"
    with pytest.raises(UnifiedError, match="^lenpen 99999: a text of 129 tokens has no such length penalty$"):
        GenerationConfig(lenpen=99999, length_penalty="unilm")
