"""Fine-tuning for understanding: what an item of a task is, what a head learns from it, and what it answers."""

from unified.tasks.base import Codec, Encoded, Understanding
from unified.tasks.classification import Classification, Regression
from unified.tasks.coreference import Coreference
from unified.tasks.heads import HEADS, parse_head
from unified.tasks.tagging import Tagging

__all__ = [
    "HEADS",
    "Classification",
    "Codec",
    "Coreference",
    "Encoded",
    "Regression",
    "Tagging",
    "Understanding",
    "parse_head",
]
