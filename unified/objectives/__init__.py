"""Objectives turn a text into a training example; see ``docs/reference/objectives.md``."""

from unified.objectives.catalogue import DEFAULT_FINETUNING, DEFAULT_PRETRAINING, OBJECTIVES
from unified.objectives.contract import BatchedObjective, Objective, Supply
from unified.objectives.mixture import Mixture
from unified.objectives.parse import parse_objectives

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
