"""The plan: all runs in the order in which they are wanted, the shortest and most wanted first."""

from __future__ import annotations

import parity
import questions

ENTRIES = [*parity.entries(), *questions.entries()]
