"""Weights with which the heads of tasks start."""

import math

import pytest

from tests.golden.data import MARKS
from tests.golden.data import task as golden_task
from tests.golden.plan import HEADS
from unified.model import TransformerConfig
from unified.tasks.heads import parse_head


@pytest.mark.parametrize("head", HEADS)
def test_heads_start_as_berts_body_does(head, tmp_path):
    """Normal weights of the configured deviation, biases of 0, norms of 1 [BERT, modeling.py]."""
    entry = parse_head(head)
    items = entry.head_class.read(golden_task(tmp_path, entry.head_class.name) / "valid.jsonl")
    config = TransformerConfig(vocabulary_size=50 + len(MARKS), layers=1, width=64, heads=2, initializer_range=0.3)
    for name, parameter in entry.for_items(items).head(config).named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            mean_square = parameter.square().mean().sqrt().item()
            assert mean_square == pytest.approx(0.3, rel=4 / math.sqrt(2 * parameter.numel())), name
