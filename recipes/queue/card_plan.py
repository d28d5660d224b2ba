"""The plan for a machine with a graphics card, the shortest first: `make gpu-runs`; gpu/README.md."""

from __future__ import annotations

import card_objectives

ENTRIES = [
    *card_objectives.data(card_objectives.CARD),
    *card_objectives.entries(card_objectives.CARD),
    card_objectives.quickstart(),
]
