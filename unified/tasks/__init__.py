"""Fine-tuning for understanding: what an item of a task is, what a head learns from it, and what it answers."""

from unified.tasks.base import Codec, Encoded, Understanding
from unified.tasks.choice import Choice
from unified.tasks.classification import Classification, Regression
from unified.tasks.coreference import Coreference
from unified.tasks.heads import HEADS, HeadEntry, parse_head, parse_heads
from unified.tasks.relation import Relation
from unified.tasks.tagging import Tagging

__all__ = [
    "HEADS",
    "Choice",
    "Classification",
    "Codec",
    "Coreference",
    "Encoded",
    "HeadEntry",
    "Regression",
    "Relation",
    "Tagging",
    "Understanding",
    "parse_head",
    "parse_heads",
]
