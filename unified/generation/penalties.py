"""Length penalties: divisors of a hypothesis' summed log-probability, by which hypotheses are compared.

``length`` counts the end symbol, in both.
"""

from __future__ import annotations

import math

from unified.arguments import counted
from unified.errors import UnifiedError


def fairseq_penalty(length: int, exponent: float) -> float:
    """``length ** exponent``, fairseq's ``--lenpen``; exponent 1 compares means per token."""
    return float(length) ** exponent


def unilm_penalty(length: int, exponent: float) -> float:
    """``((5 + length) / 6) ** exponent``, of Google's translation system [Wu et al. 2016, sec. 7] and UniLM."""
    return ((5 + length) / 6) ** exponent


#: Length penalties by the name that ``GenerationConfig.length_penalty`` and the command line take.
PENALTIES = {"fairseq": fairseq_penalty, "unilm": unilm_penalty}


def require_exponent(name: str, penalty: str, exponent: float, longest: int) -> None:
    """Refuse an exponent that is not finite, or by which the penalty of a text of so many tokens is no float above 0.

    Args:
        name: what messages call the exponent.
        penalty: one of :data:`PENALTIES`.
        longest: most tokens of a text, its end symbol counted.

    Raises:
        UnifiedError: says so.
    """
    try:
        divisor = PENALTIES[penalty](longest, exponent)
    except OverflowError:
        divisor = math.inf
    if not (math.isfinite(exponent) and 0 < divisor < math.inf):
        raise UnifiedError(f"{name} {exponent:g}: a text of {counted(longest, 'token')} has no such length penalty")
