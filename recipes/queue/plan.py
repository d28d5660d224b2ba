"""The plan: all runs in the order in which they are wanted, the shortest and most wanted first."""

from __future__ import annotations

import objectives
import parity
import questions

ENTRIES = [
    *objectives.data(),
    *parity.entries(1),
    *objectives.entries(1),
    *questions.entries(),
    *parity.entries(2),
    *objectives.entries(2),
    *parity.entries(3),
    *objectives.entries(3),
]
