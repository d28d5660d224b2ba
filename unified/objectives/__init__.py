"""Objectives turn a text into a training example; see ``docs/reference/objectives.md``."""

from unified.objectives.contract import BatchedObjective, Objective, Supply
from unified.objectives.mixture import Mixture
from unified.objectives.parse import DEFAULT_FINETUNING, DEFAULT_PRETRAINING, OBJECTIVES, parse_objectives

__all__ = [
    "DEFAULT_FINETUNING",
    "DEFAULT_PRETRAINING",
    "OBJECTIVES",
    "BatchedObjective",
    "Mixture",
    "Objective",
    "Supply",
    "parse_objectives",
]
