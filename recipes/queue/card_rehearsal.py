"""The plan of card_plan.py at a tiny size, for a CPU; without the quickstart, which a CPU can run itself."""

from __future__ import annotations

import card_objectives

ENTRIES = [*card_objectives.data(card_objectives.REHEARSAL), *card_objectives.entries(card_objectives.REHEARSAL)]
