"""Who may attend to whom, in two integers per token.

Query ``i`` may attend to key ``j`` when both lie in the same document and ``key_rank[j] <= query_rank[i]``. Rank
``GIVEN`` (-1) means "shown from the start"; rank ``r >= 0`` means "becomes visible at step r". True means "may attend".

    from unified import masks
    mask = masks.seq2seq(source_length=4, target_length=3)
    mask.dense()         # bool (queries, keys)
    print(mask)          # the same as a picture

The rule can say exactly the masks whose rows are nested within a document (:func:`is_nested`). Tokens that are query
and key at once obey ``query_rank <= key_rank``; visibility is then transitive, so stacked layers leak nothing.

Letters: B rows, T queries, S keys. All vectors are int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from unified.mask_checks import check_integers, check_length, check_mask

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

#: Rank of what is shown from the start.
GIVEN = -1
#: Document of what is no text: pads see each other, text and pads never do.
PADDING = -1
#: ``AttentionMask.query_key`` of a query that is no key itself, as in a query stream.
NO_KEY = -1


@dataclass(frozen=True, eq=False, repr=False)
class AttentionMask:
    """The mask of one row, or of B rows of equal length.

    Constructing one by hand checks shapes, ranges and the invariant; every check reads values, so on a GPU it waits.
    :meth:`of_rows` and :meth:`unchecked` are for ranks that are right by construction.

    Attributes:
        query_rank: (T,) or (B, T), at least GIVEN.
        key_rank: (S,) or (B, S), at least GIVEN.
        query_document, key_document: the shapes of the ranks; PADDING where there is no text.
        query_key: (T,) or (B, T), index of each query's own key, NO_KEY (-1) if it has none. Distinct otherwise.
        exclude_self: no query attends to its own key (ANNA's neighbor-aware attention).
        structure: "full" (everything sees everything), "causal" (exactly lower-triangular) or "mixed" (anything);
            what a backend may rely on to pick a faster kernel.

    Raises:
        ValueError: shapes, dtypes or values do not make a mask, or ``query_rank > key_rank`` for a token that is both
            (it would pass on what its readers must not see).
    """

    query_rank: torch.Tensor
    key_rank: torch.Tensor
    query_document: torch.Tensor
    key_document: torch.Tensor
    query_key: torch.Tensor
    exclude_self: bool = False
    structure: str = "mixed"

    #: True on what builders return: one document, equal ranks on both sides, own keys in order. Packs faster.
    _plain: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_mask(self)

    @classmethod
    def unchecked(
        cls,
        *,
        query_rank: torch.Tensor,
        key_rank: torch.Tensor,
        query_document: torch.Tensor,
        key_document: torch.Tensor,
        query_key: torch.Tensor,
        exclude_self: bool = False,
        structure: str = "mixed",
    ) -> AttentionMask:
        """The same fields without a look at their values: no host synchronisation, for ranks known to be right."""
        mask = object.__new__(cls)
        vars(mask).update(
            query_rank=query_rank,
            key_rank=key_rank,
            query_document=query_document,
            key_document=key_document,
            query_key=query_key,
            exclude_self=exclude_self,
            structure="mixed" if exclude_self else structure,
        )
        return mask

    @classmethod
    def of_rows(
        cls,
        *,
        key_rank: torch.Tensor,
        query_rank: torch.Tensor,
        documents: torch.Tensor,
        structure: str = "mixed",
        exclude_self: bool = False,
    ) -> AttentionMask:
        """Rows of tokens that are queries and keys at once, all arguments (B, T); values are not checked."""
        places = torch.arange(documents.shape[-1], device=documents.device).expand_as(documents)
        return cls.unchecked(
            query_rank=query_rank,
            key_rank=key_rank,
            query_document=documents,
            key_document=documents,
            query_key=places,
            exclude_self=exclude_self,
            structure=structure,
        )

    @property
    def batched(self) -> bool:
        """True for (B, T), False for one row (T,)."""
        return self.query_rank.dim() == 2

    @property
    def query_length(self) -> int:
        """T."""
        return self.query_rank.shape[-1]

    @property
    def key_length(self) -> int:
        """S."""
        return self.key_rank.shape[-1]

    @property
    def device(self) -> torch.device:
        return self.key_rank.device

    def to(self, device: torch.device | str) -> AttentionMask:
        """The same mask on another device."""
        moved = {name: value.to(device, non_blocking=True) for name, value in self._tensors().items()}
        return self._replace(**moved)

    def dense(self) -> torch.Tensor:
        """The definition: bool (T, S), or (B, T, S); True where query t may attend to key s."""
        visible = self.key_rank.unsqueeze(-2) <= self.query_rank.unsqueeze(-1)
        visible &= self.key_document.unsqueeze(-2) == self.query_document.unsqueeze(-1)
        if self.exclude_self:
            keys = torch.arange(self.key_length, device=self.device)
            visible &= keys != self.query_key.unsqueeze(-1)
        return visible

    def additive(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """:meth:`dense` as a floating-point bias: 0 where a query may attend, -inf elsewhere."""
        if not dtype.is_floating_point:
            raise ValueError(f"dtype must be a floating-point type, got {dtype}")
        dense = self.dense()
        return torch.zeros(dense.shape, dtype=dtype, device=dense.device).masked_fill_(~dense, float("-inf"))

    @property
    def mask_mod(self) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
        """The rule as FlexAttention wants it, a function of (batch, head, query, key) indices."""
        from unified.mask_blocks import mask_mod

        return mask_mod(self)

    def block_mask(self, block_size: int = 128) -> BlockMask:
        """FlexAttention's BlockMask, equal to ``create_block_mask(mask.mask_mod, ...)``, without a look at token pairs.

        Made from extremes of the ranks per block and document; see :mod:`unified.mask_blocks`.
        """
        from unified.mask_blocks import block_mask

        return block_mask(self, block_size)

    def without_self(self) -> AttentionMask:
        """No query attends to its own key (ANNA). A row that saw itself alone sees nothing now."""
        return self._replace(exclude_self=True)

    def with_memory(self, length: int, filled: int | None = None) -> AttentionMask:
        """``length`` keys in front that every query of the document sees (Transformer-XL, XLNet).

        Args:
            length: memory slots.
            filled: how many of them hold something, the last ones (default: all); the others are PADDING.

        Raises:
            ValueError: the mask is batched, or its row holds more than one document.
        """
        length = check_length("length", length)
        filled = length if filled is None else check_length("filled", filled)
        if filled > length:
            raise ValueError(f"filled must be at most length = {length}, got {filled}")
        self._require_one_row("with_memory")
        documents = sorted(set(self.key_document.tolist()) - {PADDING})
        if len(documents) > 1:
            raise ValueError(f"with_memory takes a row of one document, got one of {len(documents)}; pack afterwards")
        memory = torch.full((length,), PADDING, device=self.device)
        memory[length - filled :] = documents[0] if documents else 0
        return self._replace(
            key_rank=torch.cat([torch.full_like(memory, GIVEN), self.key_rank]),
            key_document=torch.cat([memory, self.key_document]),
            query_key=torch.where(self.query_key == NO_KEY, NO_KEY, self.query_key + length),
            structure="full" if self.structure == "full" and filled == length else "mixed",
        )

    def query_stream(self, targets: Sequence[int] | np.ndarray | torch.Tensor) -> AttentionMask:
        """Queries that predict the targets and do not see them; the keys stay those of this mask (XLNet, section 2.3).

        Args:
            targets: places among this mask's queries, in any order; each becomes one query of rank ``step - 1``.

        Raises:
            ValueError: a target lies beyond the row, or is GIVEN (shown from the start, so nothing to predict).
        """
        self._require_one_row("query_stream")
        places = check_integers("targets", targets)
        beyond = places[(places < 0) | (places >= self.query_length)]
        if beyond.size:
            raise ValueError(f"targets must lie within the row of {self.query_length} tokens, got {beyond[0]}")
        index = torch.from_numpy(places).to(self.device)
        own_key = self.query_key[index]
        if bool((own_key == NO_KEY).any()):
            raise ValueError("query_stream needs a content stream, got a mask whose queries have no key of their own")
        steps = self.key_rank[own_key]
        given = places[(steps == GIVEN).cpu().numpy()]
        if given.size:
            raise ValueError(f"targets must be predicted at a step, but token {given[0]} is GIVEN")
        return self._replace(
            query_rank=steps - 1,
            query_document=self.query_document[index],
            query_key=torch.full_like(index, NO_KEY),
            structure="mixed",
        )

    def __str__(self) -> str:
        from unified.mask_pictures import text

        return text(self)

    def __repr__(self) -> str:
        shape = tuple(self.query_rank.shape)
        extra = ", exclude_self=True" if self.exclude_self else ""
        return f"AttentionMask(queries={shape}, keys={tuple(self.key_rank.shape)}, {self.structure!r}{extra})"

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)[:5]}

    def _replace(self, **changes: torch.Tensor | bool | str) -> AttentionMask:
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        return AttentionMask.unchecked(**(kept | changes))

    def _require_one_row(self, verb: str) -> None:
        if self.batched:
            raise ValueError(f"{verb} takes one row, got a batch of {self.query_rank.shape[0]}; batch afterwards")


def bidirectional(length: int) -> AttentionMask:
    """Every token sees every token (BERT)."""
    return _row(np.full(check_length("length", length), GIVEN), "full")


def left_to_right(length: int) -> AttentionMask:
    """Token i sees tokens 0..i."""
    return _row(np.arange(check_length("length", length)), "causal" if length > 1 else "full")


def right_to_left(length: int) -> AttentionMask:
    """Token i sees tokens i..length-1."""
    return _row(np.arange(check_length("length", length) - 1, -1, -1), "mixed" if length > 1 else "full")


def seq2seq(source_length: int, target_length: int) -> AttentionMask:
    """The source sees itself, target token i the source and target tokens 0..i (UniLM, section 2.2; prefix LM)."""
    source, target = check_length("source_length", source_length), check_length("target_length", target_length)
    if source == 0:
        return left_to_right(target)
    # A source of one token makes a triangle too.
    structure = "full" if target == 0 else "causal" if source == 1 else "mixed"
    return _row(np.maximum(np.arange(-source, target), GIVEN), structure)


def permutation(steps: Sequence[int] | np.ndarray | torch.Tensor) -> AttentionMask:
    """The content stream of a permutation language model (XLNet, section 2.2).

    Args:
        steps: one integer per token: GIVEN, or the step at which it becomes visible (0, 1, …; steps may tie).

    A token sees itself, what is GIVEN and what has an earlier or the same step; what is GIVEN sees only that.
    :meth:`AttentionMask.query_stream` makes the stream that predicts.
    """
    ranks = check_integers("steps", steps)
    if ranks.size and ranks.min() < GIVEN:
        raise ValueError(f"steps must be GIVEN (-1) or at least 0, got {ranks.min()}")
    return _row(ranks, structure_of(ranks, ranks, np.zeros_like(ranks)))


def pack(masks: Sequence[AttentionMask], length: int, query_length: int | None = None) -> AttentionMask:
    """One row that holds all masks one after the other, each a document of its own; the tail is PADDING.

    Args:
        masks: rows, not batches; documents are numbered from 0 in their order.
        length: keys of the packed row.
        query_length: queries of the packed row; default ``length`` where every query has a key, needed otherwise
            (query streams, memory).

    Raises:
        ValueError: a mask does not fit, is a batch, or differs from the first in ``exclude_self``.
    """
    from unified.mask_packing import pack_rows

    length = check_length("length", length)
    return pack_rows(masks, length, None if query_length is None else check_length("query_length", query_length))


def batch(rows: Sequence[AttentionMask]) -> AttentionMask:
    """(B, T) of B rows of equal lengths.

    Raises:
        ValueError: no rows, a batch among them, different lengths, or different ``exclude_self``.
    """
    from unified.mask_packing import stack_rows

    return stack_rows(rows)


def is_nested(dense: torch.Tensor | np.ndarray) -> bool:
    """Whether of any two rows of a bool (T, S) matrix one sees all the other sees, so that ranks can say it."""
    from unified.mask_recovery import first_unnested, matrix

    return first_unnested(matrix(dense)) is None


def from_dense(dense: torch.Tensor | np.ndarray) -> AttentionMask:
    """The mask of a bool (T, S) matrix, as one document.

    The rows of a square matrix are tokens that are query and key at once; any other matrix has queries without a key of
    their own, as in a query stream.

    Raises:
        ValueError: the rows are not nested, or a token passes on what its readers must not see; the rows are named.
    """
    from unified.mask_recovery import matrix, recover

    return recover(matrix(dense))


def structure_of(key_rank: np.ndarray, query_rank: np.ndarray, documents: np.ndarray) -> str:
    """ "full", "causal" or "mixed" for rows whose tokens are query and key at once.

    Args:
        key_rank, query_rank, documents: (T,) or (B, T), numpy arrays or tensors on the CPU.
    """
    key_rank, query_rank, documents = (np.asarray(vector) for vector in (key_rank, query_rank, documents))
    if key_rank.size == 0:
        return "full"
    if (documents[..., 0] == PADDING).any() or (documents != documents[..., :1]).any():
        return "mixed"
    if (key_rank.max(-1) <= query_rank.min(-1)).all():
        return "full"
    if (key_rank == query_rank).all() and (np.diff(key_rank) > 0).all():
        return "causal"
    return "mixed"


def plot(mask: AttentionMask, path: str | Path, tokens: Sequence[str] | None = None) -> None:
    """Draw one row's mask to ``path``: ``.svg`` (with tokens as labels) or ``.png`` (cells only).

    Args:
        tokens: S labels of the keys; default: their places.

    Raises:
        ValueError: another ending, a batch, or a number of tokens that is not S.
    """
    from unified.mask_pictures import plot

    plot(mask, path, tokens)


def _row(ranks: np.ndarray, structure: str) -> AttentionMask:
    """One document whose tokens are query and key at once, with equal int64 ranks on both sides."""
    rank = torch.from_numpy(ranks)
    document = torch.from_numpy(np.zeros(len(ranks), dtype=np.int64))
    mask = AttentionMask.unchecked(
        query_rank=rank,
        key_rank=rank,
        query_document=document,
        key_document=document,
        query_key=torch.from_numpy(np.arange(len(ranks))),
        structure=structure,
    )
    vars(mask)["_plain"] = True
    return mask
