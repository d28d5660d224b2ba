"""Heads of understanding tasks: their items, how they learn from them, and how they answer."""

from unified.tasks.heads.base import ClassUnderstanding, Encoded, EnsembleUnderstanding, Understanding
from unified.tasks.heads.choice import Choice
from unified.tasks.heads.classification import Classification, Regression
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.registry import TASK_HEADS, HeadEntry, parse_head, parse_heads, register
from unified.tasks.heads.relation import Relation
from unified.tasks.heads.tagging import Tagging

__all__ = [
    "TASK_HEADS",
    "Choice",
    "ClassUnderstanding",
    "Classification",
    "Coreference",
    "Encoded",
    "EnsembleUnderstanding",
    "HeadEntry",
    "Regression",
    "Relation",
    "Tagging",
    "Understanding",
    "parse_head",
    "parse_heads",
    "register",
]
