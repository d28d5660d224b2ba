"""The plan: all runs in the order in which they are wanted, the shortest and most wanted first."""

from __future__ import annotations

import generation
import objectives
import parity
import questions

ENTRIES = [
    *objectives.data(),
    questions.start(),
    *generation.data(),
    *generation.entries(1),
    generation.package(),
    *parity.entries(1),
    *objectives.entries(1),
    *questions.entries(),
    *generation.entries(2),
    *parity.entries(2),
    *objectives.entries(2),
    *generation.entries(3),
    *parity.entries(3),
    *parity.comparisons(),
    *objectives.entries(3),
]
