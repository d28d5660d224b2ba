"""What a batch holds: tokens, places, who sees whom, and what is predicted."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from unified.data.example import Batch
from unified.masks import NO_DOCUMENT


def hashes(batch: Batch) -> dict[str, str]:
    """A hash of each part of a batch; of the mask at real queries and keys alone: what padding sees is free."""
    mask = batch.mask
    queries, keys = mask.query_documents() != NO_DOCUMENT, mask.key_documents() != NO_DOCUMENT
    visible = mask.dense()
    real = [visible[row][queries[row]][:, keys[row]] for row in range(len(batch.tokens))]
    return {
        "tokens": _hash([batch.tokens[keys]]),
        "places": _hash([batch.positions[queries], batch.token_types[queries]]),
        "mask": _hash(real),
        "predictions": _hash([batch.predicted, batch.labels, batch.label_groups]),
        "pairs": _hash([batch.pair_places, batch.pair_labels, batch.pair_groups]),
        "boundaries": _hash([batch.boundary_places, batch.boundary_offsets, batch.boundary_labels]),
    }


def _hash(tensors: list[torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)}".encode() + tensor.numpy().astype(np.int64).tobytes())
    return digest.hexdigest()[:16]
