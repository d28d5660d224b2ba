"""What an example asks other heads than that of tokens, as plain numbers and rows."""

from __future__ import annotations

import numpy as np

from unified.data.example import Example
from unified.data.targets import BOUNDARY, EXTRACTIVE, NEXT_SENTENCE


def is_next(example: Example) -> int:
    """The label of the head ``next_sentence``, -1 where it is not asked."""
    asked = NEXT_SENTENCE in example.targets and len(example.targets[NEXT_SENTENCE].labels)
    return int(example.targets[NEXT_SENTENCE].labels[0]) if asked else -1


def boundaries(example: Example) -> np.ndarray:
    """int64 (M, 4): index before a span, index behind it, distance from its first token, and the token."""
    if BOUNDARY not in example.targets:
        return np.empty((0, 4), dtype=np.int64)
    own = example.targets[BOUNDARY]
    return np.column_stack([own.output_indices, own.inputs["distances"], own.labels])


def sentences(example: Example) -> np.ndarray:
    """int64 (K, 2): indices of first tokens of sentences, and 1 where a summary takes the sentence."""
    if EXTRACTIVE not in example.targets:
        return np.empty((0, 2), dtype=np.int64)
    own = example.targets[EXTRACTIVE]
    return np.column_stack([own.output_indices, own.labels])
