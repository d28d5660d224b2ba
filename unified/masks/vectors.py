"""The vectors of a mask, and what can be read of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch.nn import functional

from unified.masks.constants import GIVEN, NO_DOCUMENT, NO_KEY, NOWHERE


@dataclass(frozen=True, eq=False, repr=False)
class MaskVectors:
    """The fields of a :class:`unified.masks.AttentionMask`, which says what each means."""

    query_step: torch.Tensor
    key_start: torch.Tensor
    key_stop: torch.Tensor
    document_ends: torch.Tensor | None = None
    query_key: torch.Tensor | None = None
    exclude_self: bool = False
    structure: str = "mixed"
    last_key: torch.Tensor | None = None
    window: int | None = None
    query_position: torch.Tensor | None = None
    key_position: torch.Tensor | None = None

    @classmethod
    def unchecked(
        cls,
        *,
        query_step: torch.Tensor,
        key_start: torch.Tensor,
        key_stop: torch.Tensor,
        document_ends: torch.Tensor | None = None,
        query_key: torch.Tensor | None = None,
        exclude_self: bool = False,
        structure: str = "mixed",
        last_key: torch.Tensor | None = None,
        window: int | None = None,
        query_position: torch.Tensor | None = None,
        key_position: torch.Tensor | None = None,
    ) -> Self:
        """Makes a mask of steps that are right by construction: looks at no value, so nothing waits for a GPU."""
        mask = object.__new__(cls)
        vars(mask).update(
            query_step=query_step,
            key_start=key_start,
            key_stop=key_stop,
            document_ends=document_ends,
            query_key=query_key,
            exclude_self=exclude_self,
            structure="mixed" if exclude_self else structure,
            last_key=last_key,
            window=window,
            query_position=query_position,
            key_position=key_position,
        )
        return mask

    @property
    def only_steps(self) -> bool:
        """True if steps and intervals alone decide who sees whom: no ``exclude_self``, ``last_key`` or ``window``."""
        return not self.exclude_self and self.last_key is None and self.window is None

    @property
    def window_positions(self) -> tuple[torch.Tensor, torch.Tensor]:
        """``query_position`` and ``key_position`` of a mask with a window."""
        assert self.query_position is not None  # a window comes with both
        assert self.key_position is not None
        return self.query_position, self.key_position

    @property
    def batched(self) -> bool:
        """True for (B, T), False for one row (T,)."""
        return self.query_step.dim() == 2

    @property
    def query_length(self) -> int:
        """Number of queries of a row, T."""
        return self.query_step.shape[-1]

    @property
    def key_length(self) -> int:
        """Number of keys of a row, S."""
        return self.key_start.shape[-1]

    @property
    def device(self) -> torch.device:
        """Device of the vectors."""
        return self.key_start.device

    @property
    def own_keys(self) -> torch.Tensor:
        """The key that each query is itself, int64 (T,) or (B, T): ``query_key``, or its default where that is None."""
        if self.query_key is not None:
            return self.query_key
        if self.query_length == self.key_length:
            return torch.arange(self.query_length, device=self.device).expand(self.query_step.shape)
        return torch.full(self.query_step.shape, NO_KEY, device=self.device)

    def dense(self) -> torch.Tensor:
        """The definition: bool (T, S), or (B, T, S); True where query t may attend to key s."""
        step = self.query_step.unsqueeze(-1)
        visible = (self.key_start.unsqueeze(-2) <= step) & (step < self.key_stop.unsqueeze(-2))
        indices = torch.arange(self.key_length, device=self.device)
        if self.exclude_self:
            visible &= indices != self.own_keys.unsqueeze(-1)
        if self.last_key is not None:
            visible &= indices <= self.last_key.unsqueeze(-1)
        if self.window is not None:
            of_queries, of_keys = self.window_positions
            visible &= (of_queries.unsqueeze(-1) - of_keys.unsqueeze(-2)).abs_() <= self.window
        return visible

    def query_documents(self) -> torch.Tensor:
        """int64 (T,) or (B, T), the number of each query's document, NO_DOCUMENT (-1) for padding."""
        return self._documents_at(self.query_step)

    @property
    def hidden_keys(self) -> torch.Tensor:
        """bool (S,) or (B, S), keys that are visible at no step: intervals that are empty or end before step 0."""
        return (self.key_start >= self.key_stop) | (self.key_stop <= GIVEN)

    def key_documents(self) -> torch.Tensor:
        """int64 (S,) or (B, S), the number of each key's document, NO_DOCUMENT (-1) for :attr:`hidden_keys`."""
        return self._documents_at(self.key_start.clamp(min=GIVEN), self.hidden_keys)

    def given_keys(self) -> torch.Tensor:
        """bool (S,) or (B, S), the keys that are visible from the first step of their document on."""
        if self.document_ends is None:
            return (self.key_start <= GIVEN) & ~self.hidden_keys
        starts = functional.pad(self.document_ends[..., :-1], (1, 0), value=GIVEN)
        first = starts.gather(-1, self.key_documents().clamp(min=0))
        return (self.key_start <= first) & ~self.hidden_keys

    @property
    def document_count(self) -> int:
        """D, the most documents that a row may have."""
        return 1 if self.document_ends is None else self.document_ends.shape[-1]

    def tensors(self) -> dict[str, torch.Tensor]:
        """The fields that are tensors, by name; those that are None are left out."""
        return {field: value for field, value in vars(self).items() if isinstance(value, torch.Tensor)}

    @property
    def steps(self) -> int:
        """The length of one row's time axis: its queries look at steps 0 to ``steps - 1``. Reads values.

        Raises:
            ValueError: the mask is a batch, whose rows have axes of their own.
        """
        if self.batched:
            raise ValueError(f"steps are those of one row, got a batch of {self.query_step.shape[0]}")
        if self.document_ends is not None:
            return int(self.document_ends[-1])
        steps = self.query_step[self.query_step != NOWHERE]
        return 1 + int(steps.max()) if steps.numel() else 0

    def _documents_at(self, at: torch.Tensor, hidden: torch.Tensor | None = None) -> torch.Tensor:
        """The document of each step, at least 0; NO_DOCUMENT for what is hidden or lies behind all documents."""
        if self.document_ends is None:
            number, none = torch.zeros(at.shape, dtype=torch.int64, device=at.device), at == NOWHERE
        else:
            number = torch.searchsorted(self.document_ends.contiguous(), at.contiguous(), right=True)
            none = number == self.document_count
        return number.masked_fill_(none if hidden is None else none | hidden, NO_DOCUMENT)


def require_mask(function: str, mask: object) -> None:
    """Refuse a matrix, or anything else, where a function takes a mask.

    Raises:
        ValueError: says what it is.
    """
    if not isinstance(mask, MaskVectors):
        raise ValueError(f"{function} takes a mask, got {type(mask).__name__}; from_dense() makes one of a matrix")
