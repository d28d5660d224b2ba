"""What a batch holds: tokens, positions, who sees whom, and what is predicted."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from unified.data.example import Batch
from unified.data.targets import BOUNDARY, EXTRACTIVE, NEXT_SENTENCE, TOKEN
from unified.masks import NO_DOCUMENT

_NONE = torch.empty(0, dtype=torch.long)


def hashes(batch: Batch) -> dict[str, str]:
    """A hash of each part of a batch; of the mask at real queries and keys alone: what padding sees is free."""
    mask = batch.mask
    queries, keys = mask.query_documents() != NO_DOCUMENT, mask.key_documents() != NO_DOCUMENT
    visible = mask.dense()
    tokens, pairs, boundaries = (batch.targets.get(name) for name in (TOKEN, NEXT_SENTENCE, BOUNDARY))
    real = [visible[row][queries[row]][:, keys[row]] for row in range(len(batch.tokens))]
    parts = {
        "tokens": _hash([batch.tokens[keys]]),
        "places": _hash([batch.positions[queries], batch.token_types[queries]]),
        "mask": _hash(real),
        "predictions": _hash([tokens.output_indices[:, 0], tokens.labels, tokens.objectives]),
        "pairs": _hash([_NONE] * 3 if pairs is None else [pairs.output_indices[:, 0], pairs.labels, pairs.objectives]),
        "boundaries": _hash(
            [_NONE.view(0, 2), _NONE, _NONE]
            if boundaries is None
            else [boundaries.output_indices, boundaries.inputs["distances"], boundaries.labels]
        ),
    }
    if EXTRACTIVE in batch.targets:
        sentences = batch.targets[EXTRACTIVE]
        parts["sentences"] = _hash([sentences.output_indices, sentences.labels])
    return parts


def _hash(tensors: list[torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)}".encode() + tensor.numpy().astype(np.int64).tobytes())
    return digest.hexdigest()[:16]
