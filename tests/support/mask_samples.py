"""Random masks and the brute-force definition, shared by the tests of masks."""

import numpy as np
import torch

from unified import masks
from unified.masks import NO_KEY, NOWHERE, AttentionMask


def visible_by_definition(mask: AttentionMask) -> torch.Tensor:
    """The rule of design and docs, one pair at a time, for one row."""
    visible = torch.zeros(mask.query_length, mask.key_length, dtype=torch.bool)
    own = mask.own_keys.tolist()
    for i in range(mask.query_length):
        for j in range(mask.key_length):
            visible[i, j] = int(mask.key_start[j]) <= int(mask.query_step[i]) < int(mask.key_stop[j])
            if mask.exclude_self and own[i] == j:
                visible[i, j] = False
            if mask.last_key is not None and j > mask.last_key[i]:
                visible[i, j] = False
            if mask.window is not None and abs(int(mask.query_position[i]) - int(mask.key_position[j])) > mask.window:
                visible[i, j] = False
    return visible


def random_document(rng: np.random.Generator, length: int, *, lasting: bool | None = None) -> AttentionMask:
    """``length`` tokens, query and key at once, with any steps; those of ``lasting`` ones never disappear and nest."""
    end = int(rng.integers(1, 8))
    step = rng.integers(0, end, length)
    if rng.random() < 0.3:
        step.sort()
    start, stop = step, np.full(length, end)
    if lasting is False or (lasting is None and rng.random() < 0.6):
        start = step + rng.integers(-2, 3, length)
        stop = start + rng.integers(0, end + 1, length)
    elif rng.random() < 0.3:
        step = np.maximum(step - rng.integers(0, 3, length), 0)
    dtype = np.int32 if rng.random() < 0.5 else np.int64
    return AttentionMask(
        query_step=torch.from_numpy(step.astype(dtype)),
        key_start=torch.from_numpy(start.astype(dtype)),
        key_stop=torch.from_numpy(stop.astype(dtype)),
        document_ends=torch.tensor([end], dtype=torch.from_numpy(np.zeros(1, dtype)).dtype),
    )


def random_row(
    rng: np.random.Generator, length: int, *, exclude_self: bool = False, lasting: bool | None = None
) -> AttentionMask:
    """A row of ``length`` tokens, query and key at once: documents, often padding behind them."""
    left = length - (int(rng.integers(0, length + 1)) if rng.random() < 0.4 else 0)
    documents = []
    while left > 0 and len(documents) < 4:
        size = int(rng.integers(0, left + 1))
        documents.append(random_document(rng, size, lasting=lasting))
        left -= size
    row = masks.pack(documents, length)
    return row.without_self() if exclude_self else row


def random_queries(
    rng: np.random.Generator, queries: int, keys: int, *, exclude_self: bool = False, lasting: bool | None = None
) -> AttentionMask:
    """Any queries over any keys: some queries have a key of their own, some look nowhere."""
    row = random_row(rng, keys, lasting=lasting)
    order = np.sort(rng.integers(0, row.steps, queries)) if row.steps else np.full(queries, NOWHERE)
    step = np.where(rng.random(queries) < 0.1, NOWHERE, order)
    own = np.full(queries, NO_KEY)
    indices = rng.permutation(keys)[:queries]
    chosen = rng.permutation(queries)[: int(rng.integers(0, len(indices) + 1))]
    own[chosen] = indices[: len(chosen)]
    return AttentionMask(
        query_step=torch.from_numpy(step.astype(np.int32)),
        key_start=row.key_start,
        key_stop=row.key_stop,
        document_ends=row.document_ends,
        query_key=torch.from_numpy(own),
        exclude_self=exclude_self,
    )


def triangle(length: int) -> AttentionMask:
    """A builder of somebody else's."""
    step = torch.arange(length)
    return AttentionMask(step, step, torch.full((length,), length), structure="causal")


def drawn(picture: str) -> torch.Tensor:
    """ "x.. xx. xxx" as a bool matrix."""
    return torch.tensor([[cell == "x" for cell in row] for row in picture.split()])


def leaks(visible: torch.Tensor) -> bool:
    """Whether two layers show a query something that one layer does not."""
    twice = (visible.float() @ visible.float()) > 0
    return bool((twice & ~visible).any())


def structures_of(dense: torch.Tensor) -> set[str]:
    """What may be said of a matrix; a single token is both."""
    said = {"mixed"}
    if bool(dense.all()):
        said.add("full")
    if dense.shape[-2] == dense.shape[-1] and torch.equal(dense, torch.ones_like(dense).tril()):
        said.add("causal")
    return said
