"""From a matrix back to ranks: possible exactly for nested rows, safe exactly without leaks."""

from __future__ import annotations

import numpy as np
import torch

from unified.masks.constants import GIVEN, NO_KEY
from unified.masks.mask import AttentionMask, structure_of


def is_nested(dense: torch.Tensor | np.ndarray) -> bool:
    """Whether of any two rows of a bool (T, S) matrix one sees all the other sees, so that ranks can say it."""
    return _first_unnested(_matrix(dense)) is None


def from_dense(dense: torch.Tensor | np.ndarray) -> AttentionMask:
    """The mask of a bool (T, S) matrix, as one document.

    The rows of a square matrix are tokens that are query and key at once; any other matrix has queries without a key of
    their own, as in a query stream. What every query sees is GIVEN; the distinct rows, from small to large, are the
    steps.

    Raises:
        ValueError: the rows are not nested, or a token passes on what its readers must not see; the rows are named.
    """
    dense = _matrix(dense)
    rows = _first_unnested(dense)
    if rows is not None:
        a, b = rows
        only_a, only_b = int(np.argmax(dense[a] & ~dense[b])), int(np.argmax(dense[b] & ~dense[a]))
        raise ValueError(
            f"rows {a} and {b} are not nested: row {a} sees key {only_a}, which row {b} does not, "
            f"and row {b} sees key {only_b}, which row {a} does not"
        )
    queries, keys = dense.shape
    seen, level = np.unique(dense.sum(axis=1), return_inverse=True)
    query_rank = level.reshape(-1).astype(np.int64) + GIVEN
    never = len(seen) + GIVEN
    key_rank = np.where(dense, query_rank[:, None], never).min(axis=0, initial=never).astype(np.int64)
    if queries == keys:
        _require_no_leak(dense, query_rank, key_rank)
        own = np.arange(keys)
        structure = structure_of(key_rank, query_rank, np.zeros_like(key_rank))
    else:
        own, structure = np.full(queries, NO_KEY), "mixed"
    ranks = {"query_rank": query_rank, "key_rank": key_rank, "query_key": own}
    return AttentionMask.unchecked(
        **{name: torch.from_numpy(values) for name, values in ranks.items()},
        query_document=torch.zeros(queries, dtype=torch.int64),
        key_document=torch.zeros(keys, dtype=torch.int64),
        structure=structure,
    )


def _matrix(dense: torch.Tensor | np.ndarray) -> np.ndarray:
    """bool (T, S) on the CPU."""
    array = dense.detach().cpu().numpy() if isinstance(dense, torch.Tensor) else np.asarray(dense)
    if array.ndim != 2 or array.dtype != np.bool_:
        raise ValueError(f"dense must be a boolean matrix (queries, keys), got {array.dtype} {array.shape}")
    return array


def _first_unnested(dense: np.ndarray) -> tuple[int, int] | None:
    """Two rows of which neither sees all the other sees, or None.

    Rows ordered by how much they see are nested as soon as every neighbouring pair is.
    """
    order = np.argsort(dense.sum(axis=1), kind="stable")
    ordered = dense[order]
    broken = (ordered[:-1] & ~ordered[1:]).any(axis=1)
    if not broken.any():
        return None
    place = int(np.argmax(broken))
    return tuple(sorted((int(order[place]), int(order[place + 1]))))


def _require_no_leak(dense: np.ndarray, query_rank: np.ndarray, key_rank: np.ndarray) -> None:
    """Whoever sees a token sees all that the token sees."""
    leaking = np.flatnonzero(query_rank > key_rank)
    if leaking.size == 0:
        return
    token = int(leaking[0])
    reader = int(np.argmax(dense[:, token] & (query_rank == key_rank[token])))
    hidden = int(np.argmax(dense[token] & ~dense[reader]))
    raise ValueError(
        f"row {token} leaks to row {reader}: row {reader} sees token {token}, which sees key {hidden}, "
        f"which row {reader} must not see"
    )
