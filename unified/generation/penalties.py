"""Length penalties: divisors of a hypothesis' summed log-probability, by which hypotheses are compared.

``length`` counts the end symbol, in both.
"""

from __future__ import annotations


def fairseq_penalty(length: int, exponent: float) -> float:
    """``length ** exponent``, fairseq's ``--lenpen``; exponent 1 compares means per token."""
    return float(length) ** exponent


def unilm_penalty(length: int, exponent: float) -> float:
    """``((5 + length) / 6) ** exponent``, of Google's translation system [Wu et al. 2016, sec. 7] and UniLM."""
    return ((5 + length) / 6) ** exponent


#: Length penalties by the name that ``GenerationConfig.length_penalty`` and the command line take.
PENALTIES = {"fairseq": fairseq_penalty, "unilm": unilm_penalty}
