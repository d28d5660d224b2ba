"""Random masks and the brute-force definition, shared by the tests of masks."""

import numpy as np
import torch

from unified.masks import GIVEN, NO_KEY, PADDING, AttentionMask


def visible_by_definition(mask: AttentionMask) -> torch.Tensor:
    """The rule of design and docs, one pair at a time, for one row."""
    visible = torch.zeros(mask.query_length, mask.key_length, dtype=torch.bool)
    for i in range(mask.query_length):
        for j in range(mask.key_length):
            same_document = mask.query_document[i] == mask.key_document[j]
            visible[i, j] = bool(same_document and mask.key_rank[j] <= mask.query_rank[i])
            if mask.exclude_self and mask.query_key[i] == j:
                visible[i, j] = False
            if mask.last_key is not None and j > mask.last_key[i]:
                visible[i, j] = False
    return visible


def random_row(
    rng: np.random.Generator, length: int, *, sorted_documents: bool = True, exclude_self: bool = False
) -> AttentionMask:
    """A row of ``length`` tokens, query and key at once: any ranks with query_rank <= key_rank, documents, padding."""
    steps = int(rng.integers(1, 8))
    key_rank = rng.integers(GIVEN, steps, length)
    if rng.random() < 0.3:
        key_rank.sort()
    lag = rng.integers(0, 3, length) if rng.random() < 0.3 else np.zeros(length, dtype=np.int64)
    documents = rng.integers(PADDING if rng.random() < 0.5 else 0, int(rng.integers(1, 4)), length)
    if sorted_documents:
        documents.sort()
    return AttentionMask(
        query_rank=torch.from_numpy(np.maximum(key_rank - lag, GIVEN)),
        key_rank=torch.from_numpy(key_rank),
        query_document=torch.from_numpy(documents),
        key_document=torch.from_numpy(documents.copy()),
        query_key=torch.arange(length),
        exclude_self=exclude_self,
    )


def random_queries(rng: np.random.Generator, queries: int, keys: int, *, exclude_self: bool = False) -> AttentionMask:
    """Any queries over any keys: some queries have a key of their own, the others are a query stream's."""
    row = random_row(rng, keys, sorted_documents=rng.random() < 0.5)
    own = np.where(rng.random(queries) < 0.5, NO_KEY, 0)
    places = rng.permutation(keys)[:queries]
    own[own != NO_KEY] = NO_KEY
    chosen = rng.permutation(queries)[: min(len(places), int(rng.integers(0, queries + 1)))]
    own[chosen] = places[: len(chosen)]
    rank = rng.integers(GIVEN, 8, queries)
    document = rng.integers(PADDING, 3, queries)
    has = own != NO_KEY
    rank[has] = row.query_rank.numpy()[own[has]]
    document[has] = row.key_document.numpy()[own[has]]
    return AttentionMask(
        query_rank=torch.from_numpy(rank),
        key_rank=row.key_rank,
        query_document=torch.from_numpy(document),
        key_document=row.key_document,
        query_key=torch.from_numpy(own),
        exclude_self=exclude_self,
    )


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
