"""The two integers of every token, and what can be made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from unified.masks.checks import check_integers, check_last_key, check_length, check_mask
from unified.masks.constants import GIVEN, NO_KEY, PADDING

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


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
        stretches: most stretches of one document along a row of queries, or of keys, where that is known without a look
            at the documents, which on a GPU waits. Documents are numbered from 0 then.
        last_key: int64 (T,) or (B, T), index of the last key that each query may attend to, whatever its rank; None for
            no such limit. See :meth:`causal`.

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
    stretches: int | None = None
    last_key: torch.Tensor | None = None

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
        stretches: int | None = None,
        last_key: torch.Tensor | None = None,
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
            stretches=stretches,
            last_key=last_key,
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
        tensors = self._tensors() | ({} if self.last_key is None else {"last_key": self.last_key})
        moved = {name: value.to(device, non_blocking=True) for name, value in tensors.items()}
        return self._replace(**moved)

    def dense(self) -> torch.Tensor:
        """The definition: bool (T, S), or (B, T, S); True where query t may attend to key s."""
        visible = self.key_rank.unsqueeze(-2) <= self.query_rank.unsqueeze(-1)
        visible &= self.key_document.unsqueeze(-2) == self.query_document.unsqueeze(-1)
        if self.exclude_self:
            visible &= self._key_index != self.query_key.unsqueeze(-1)
        if self.last_key is not None:
            visible &= self._key_index <= self.last_key.unsqueeze(-1)
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
        from unified.masks.blocks import mask_mod

        return mask_mod(self)

    def block_mask(self, block_size: int = 128) -> BlockMask:
        """FlexAttention's BlockMask, equal to ``create_block_mask(mask.mask_mod, ...)``, without a look at token pairs.

        Made from extremes of the ranks per block and document; see :mod:`unified.masks.blocks`.
        """
        from unified.masks.blocks import block_mask

        return block_mask(self, block_size)

    def without_self(self) -> AttentionMask:
        """No query attends to its own key (ANNA). A row that saw itself alone sees nothing now."""
        return self._replace(exclude_self=True)

    def causal(self, places: torch.Tensor | None = None) -> AttentionMask:
        """The mask without the keys that stand behind a query in its row (XLNet's ``attn_type`` "uni").

        Ranks stay: such a mask may combine an order of prediction with the order of the text, which one rank cannot
        say. FlexAttention does not serve it.

        Args:
            places: int64 (T,) or (B, T), index of the key at whose place each query stands; None takes its own key,
                which every query must have then.

        Raises:
            ValueError: a query has no key of its own, and ``places`` does not say where it stands; or ``places`` is of
                another shape or dtype.
        """
        if places is None:
            if bool((self.query_key == NO_KEY).any()):
                raise ValueError("causal needs places: this mask has queries without a key of their own")
            places = self.query_key
        check_last_key("places", places, self.query_rank)
        return self._replace(last_key=places, structure="mixed")

    def blind(self) -> torch.Tensor:
        """bool (T,) or (B, T), True for queries that see no key.

        Of the keys in a query's document the one that comes first is looked at, or the second where the first is its
        own: T numbers, no pairs; but for a mask with ``last_key``.
        """
        if self.last_key is not None:
            return ~self.dense().any(-1)
        ranks, documents = torch.atleast_2d(self.key_rank), torch.atleast_2d(self.key_document) - PADDING
        query_rank, of_query = torch.atleast_2d(self.query_rank), torch.atleast_2d(self.query_document) - PADDING
        own = torch.atleast_2d(self.query_key)
        never = torch.iinfo(torch.int64).max
        if self.stretches is not None:
            count = self.stretches + 1  # with PADDING's
        else:
            count = (
                int(torch.maximum(documents.amax(), of_query.amax())) + 1 if documents.numel() and own.numel() else 1
            )
        empty = ranks.new_full((len(ranks), count), never)
        first = empty.scatter_reduce(1, documents, ranks, "amin")
        earliest = first.gather(1, of_query)
        if self.exclude_self:
            length = ranks.size(1)
            places = torch.arange(length, device=ranks.device).expand_as(ranks)
            at_first = torch.where(ranks == first.gather(1, documents), places, never)
            first_place = empty.scatter_reduce(1, documents, at_first, "amin")
            others = ranks.masked_fill(places == first_place.gather(1, documents), never)
            second = empty.scatter_reduce(1, documents, others, "amin")
            earliest = torch.where(own == first_place.gather(1, of_query), second.gather(1, of_query), earliest)
        return (earliest > query_rank).view(self.query_rank.shape)

    def with_memory(self, length: int, filled: int | None = None) -> AttentionMask:
        """``length`` keys in front that every query of the document sees (Transformer-XL, XLNet).

        In a batch it is document 0 of each row that sees them.

        Args:
            length: memory slots.
            filled: how many of them hold something, the last ones (default: all); the others are PADDING.

        Raises:
            ValueError: the mask is one row with more than one document.
        """
        length = check_length("length", length)
        filled = length if filled is None else check_length("filled", filled)
        if filled > length:
            raise ValueError(f"filled must be at most length = {length}, got {filled}")
        memory = torch.full((*self.key_rank.shape[:-1], length), PADDING, device=self.device)
        memory[..., length - filled :] = 0 if self.batched else self._only_document()
        return self._replace(
            key_rank=torch.cat([torch.full_like(memory, GIVEN), self.key_rank], dim=-1),
            key_document=torch.cat([memory, self.key_document], dim=-1),
            query_key=torch.where(self.query_key == NO_KEY, NO_KEY, self.query_key + length),
            structure="full" if self.structure == "full" and filled == length else "mixed",
            stretches=None if self.stretches is None else self.stretches + 2,  # empty slots, and filled ones
            last_key=None if self.last_key is None else self.last_key + length,
        )

    @property
    def _key_index(self) -> torch.Tensor:
        return torch.arange(self.key_length, device=self.device)

    def _only_document(self) -> int:
        documents = sorted(set(self.key_document.tolist()) - {PADDING})
        if len(documents) > 1:
            raise ValueError(f"with_memory takes a row of one document, got one of {len(documents)}; pack afterwards")
        return documents[0] if documents else 0

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
            stretches=None,
            last_key=None if self.last_key is None else self.last_key[index],
        )

    def __str__(self) -> str:
        from unified.masks.pictures import text

        return text(self)

    def __repr__(self) -> str:
        shape = tuple(self.query_rank.shape)
        extra = ", exclude_self=True" if self.exclude_self else ""
        return f"AttentionMask(queries={shape}, keys={tuple(self.key_rank.shape)}, {self.structure!r}{extra})"

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)[:5]}

    def _replace(self, **changes: torch.Tensor | bool | str | int | None) -> AttentionMask:
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        return AttentionMask.unchecked(**(kept | changes))

    def _require_one_row(self, verb: str) -> None:
        if self.batched:
            raise ValueError(f"{verb} takes one row, got a batch of {self.query_rank.shape[0]}; batch afterwards")


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
