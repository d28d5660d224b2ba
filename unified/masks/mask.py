"""Masks of three integers per token, and what can be made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from unified.masks import pictures, steps, tiles
from unified.masks.checks import (
    check_indices,
    check_integers,
    check_length,
    check_mask,
    check_structure,
    check_tensor,
    check_together,
    shown,
)
from unified.masks.constants import GIVEN, HIDDEN_START, HIDDEN_STOP, NO_KEY, NOWHERE
from unified.masks.tiles import MaskMod
from unified.masks.vectors import MaskVectors

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


@dataclass(frozen=True, eq=False, repr=False)
class AttentionMask(MaskVectors):
    """The mask of one row, or of B rows of equal length: a key is visible from one step until another.

    Query ``i`` may attend to key ``j`` when ``key_start[j] <= query_step[i] < key_stop[j]``. Only the order of the
    numbers counts. A key whose interval is empty is hidden from all.

    Constructing one by hand checks shapes and values; every check reads values, so on a GPU it waits.
    :meth:`unchecked` is for steps that are right by construction. Tensors may be shared between masks: do not write
    into them.

    Attributes:
        query_step: (T,) or (B, T), int32 or int64, at least 0: the step at which each query looks. NOWHERE (2**31 - 1)
            is a step at which nothing is visible.
        key_start, key_stop: (S,) or (B, S), of the dtype of ``query_step``: the steps from which on and until which
            each key is visible, the latter exclusive like that of Python's ``range``. A ``key_stop`` beyond NOWHERE
            becomes NOWHERE.
        document_ends: (D,) or (B, D), of the same dtype: where each document's part of the time axis ends, in the order
            of the documents; the first one's begins at 0. No key is visible to queries of another document than its
            own. A row with fewer documents than D repeats its last end. None means one document.
        query_key: int64 (T,) or (B, T): index of each query's own key, NO_KEY (-1) if it has none, distinct otherwise.
            None means that query i is key i where there are as many queries as keys, and else that no query is a key.
        exclude_self: no query attends to its own key (ANNA's neighbor-aware attention).
        structure: "full" (everything sees everything), "causal" (exactly lower-triangular) or "mixed" (anything);
            what a backend may rely on to pick a faster kernel.
        last_key: int64 (T,) or (B, T), index of the last key that each query may attend to, whatever its step; None for
            no such limit. See :meth:`causal`.
        window: how many positions a key may lie away from a query, on either side; None for no such limit. See
            :meth:`windowed`.
        query_position, key_position: int64 of the shapes of ``query_step`` and ``key_start``: positions in the text,
            for the window alone; None without one.

    Raises:
        ValueError: shapes, dtypes or values do not make a mask.
    """

    __hash__ = None  # type: ignore[assignment]  # masks are equal by value, and tensors can be written to

    def __post_init__(self) -> None:
        check_mask(self)
        # Else a query at NOWHERE would see keys that do not disappear before.
        object.__setattr__(self, "key_stop", self.key_stop.clamp(max=NOWHERE))
        check_structure(self)

    def to(self, device: torch.device | str) -> AttentionMask:
        """Moves the mask to ``device``; returns a new mask.

        Raises:
            ValueError: ``device`` is no device, such as a dtype: steps stay integers.
        """
        try:
            if isinstance(device, bool):
                raise TypeError
            device = torch.device(device)
        except (RuntimeError, TypeError):
            raise ValueError(f"device must be a torch.device or the name of one, got {shown(device)}") from None
        return self._replace(**{name: value.to(device, non_blocking=True) for name, value in self.tensors().items()})

    def rows(self, which: slice) -> AttentionMask:
        """Some rows of a batch, as views.

        Raises:
            ValueError: the mask is one row without a batch.
        """
        if not self.batched:
            raise ValueError("rows takes a batch, got one row")
        return self._replace(**{name: value[which] for name, value in self.tensors().items()})

    def for_sdpa(self) -> torch.Tensor:
        """:meth:`dense` with an axis for heads: bool (B, 1, T, S), or (1, 1, T, S) of one row.

        It is what ``torch.nn.functional.scaled_dot_product_attention`` takes as ``attn_mask``. What that returns for
        queries that see nothing depends on the kernel: zeros or NaN.
        """
        dense = self.dense()
        return dense.unsqueeze(1) if self.batched else dense[None, None]

    def additive(self, dtype: torch.dtype = torch.float32, finite: bool = True) -> torch.Tensor:
        """:meth:`for_sdpa` as a bias to add to scores: 0 where a query may attend, (B, 1, T, S).

        Args:
            dtype: a floating-point type.
            finite: elsewhere it is the lowest number of ``dtype``, so that a query that sees nothing attends evenly to
                all keys instead of becoming NaN; else -inf.

        Raises:
            ValueError: ``dtype`` is not a floating-point type.
        """
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise ValueError(f"dtype must be a floating-point type of torch, got {shown(dtype)}")
        visible = self.for_sdpa()
        hidden = torch.finfo(dtype).min if finite else float("-inf")
        return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, hidden)

    @property
    def mask_mod(self) -> MaskMod:
        """The rule as FlexAttention wants it, a function of (batch, head, query, key) indices."""
        return tiles.mask_mod(self)

    def block_mask(self, block_size: int = 128) -> BlockMask:
        """FlexAttention's BlockMask for :attr:`mask_mod`, without a look at token pairs.

        Made from extremes of the steps per tile and document; see :mod:`unified.masks.tiles`.
        """
        return tiles.block_mask(self, block_size)

    def without_self(self) -> AttentionMask:
        """No query attends to its own key (ANNA). A row that saw itself alone sees nothing now."""
        return self._replace(exclude_self=True)

    def without_keys(self, hidden: torch.Tensor) -> AttentionMask:
        """The mask without keys that nobody may see, such as padding.

        Args:
            hidden: bool (S,), or (B, S), which makes a batch of a single row.

        Raises:
            ValueError: ``hidden`` is no boolean tensor of one of these shapes.
        """
        of_rows = not self.batched and isinstance(hidden, torch.Tensor) and hidden.dim() == 2
        shape = (len(hidden), self.key_length) if of_rows else self.key_start.shape
        check_tensor("hidden", hidden, torch.bool, shape, "the keys")
        mask = self._repeated(len(hidden)) if of_rows else self
        return mask._replace(
            key_start=mask.key_start.masked_fill(hidden, HIDDEN_START),
            key_stop=mask.key_stop.masked_fill(hidden, HIDDEN_STOP),
            structure="mixed",
        )

    def with_sinks(self, count: int) -> AttentionMask:
        """The first ``count`` keys do not disappear: behind a window they stay visible (attention sinks).

        That is a window of steps, as :func:`unified.masks.sliding_window` makes it; :meth:`windowed`, which goes by
        distances, knows no sinks. Keys of a memory stand in front of all: add it behind the sinks. Hidden keys, whose
        intervals are empty or end before step 0, stay hidden.

        Raises:
            ValueError: the mask is a batch, a row of several documents, or :meth:`windowed`.
        """
        self._require_one_document("with_sinks")
        if self.window is not None:
            raise ValueError("with_sinks takes a mask that is not windowed(); sliding_window() makes a window of steps")
        is_sink = torch.arange(self.key_length, device=self.device) < check_length("count", count)
        stop = self.key_stop.masked_fill(is_sink & ~self.hidden_keys, self.steps)
        return self._replace(key_stop=stop, structure="mixed")

    def causal(self, key_indices: torch.Tensor | None = None) -> AttentionMask:
        """The mask without the keys that stand behind a query in its row (XLNet's ``attn_type`` "uni").

        Steps stay: such a mask may combine an order of prediction with the order of the text, which one interval cannot
        say. FlexAttention does not serve it.

        Args:
            key_indices: int64 (T,), or (B, T), which makes a batch of a single row: the key that each query stands at;
                None takes its own key, which every query must have then.

        Raises:
            ValueError: a query has no key of its own, and ``key_indices`` does not say where it stands; or they are of
                another shape or dtype.
        """
        if key_indices is None:
            key_indices = self.own_keys
            if bool((key_indices == NO_KEY).any()):
                raise ValueError("causal needs key_indices: this mask has queries without a key of their own")
        more_rows = not self.batched and isinstance(key_indices, torch.Tensor) and key_indices.dim() == 2
        mask = self._repeated(len(key_indices)) if more_rows else self
        check_indices("key_indices", key_indices, mask.query_step)
        if mask.last_key is not None:
            key_indices = torch.minimum(key_indices, mask.last_key)
        return mask._replace(last_key=key_indices, structure="mixed")

    def windowed(
        self,
        window: int,
        query_positions: torch.Tensor | None = None,
        key_positions: torch.Tensor | None = None,
    ) -> AttentionMask:
        """The mask without the keys that lie more than ``window`` positions away from a query, on either side.

        This is the window of a layer, on top of what the mask of the text says; steps stay. :func:`sliding_window` is
        another thing, a mask of steps.

        Args:
            window: keys on each side, at least 0.
            query_positions, key_positions: int64 (T,) and (S,), or (B, T) and (B, S), which make a batch of a single
                row: where queries and keys stand in their text. None takes the index of each query's own key, which
                every query must have then, and the index of each key.

        Raises:
            ValueError: ``window`` is negative, a query has no key of its own and its position is not given, positions
                do not fit the mask, or the mask has a window already.
        """
        window = check_length("window", window)
        if self.window is not None:
            raise ValueError(f"windowed takes a mask without a window, got one of {self.window}")
        if query_positions is None:
            query_positions = self.own_keys
            if bool((query_positions == NO_KEY).any()):
                raise ValueError("windowed needs query_positions: this mask has queries without a key of their own")
        if key_positions is None:
            key_positions = torch.arange(self.key_length, device=self.device).expand(self.key_start.shape)
        more_rows = not self.batched and isinstance(query_positions, torch.Tensor) and query_positions.dim() == 2
        mask = self._repeated(len(query_positions)) if more_rows else self
        check_indices("query_positions", query_positions, mask.query_step, "query_step")
        check_indices("key_positions", key_positions, mask.key_start, "key_start")
        return mask._replace(
            window=window, query_position=query_positions, key_position=key_positions, structure="mixed"
        )

    def fully_masked(self) -> torch.Tensor:
        """bool (T,) or (B, T), True for queries that see no key.

        At each step the keys are counted that have appeared, less those that have disappeared: one sort, no pairs; but
        for a mask with ``last_key`` or a window.
        """
        if self.last_key is not None or self.window is not None:
            return ~self.dense().any(-1)
        hidden = self.hidden_keys
        never = torch.iinfo(self.key_start.dtype).max
        seen = _count_until(self.key_start.masked_fill(hidden, never), self.query_step)
        seen -= _count_until(self.key_stop.masked_fill(hidden, never), self.query_step)
        if self.exclude_self and self.key_length:
            own = self.own_keys
            start, stop = (side.gather(-1, own.clamp(min=0)) for side in (self.key_start, self.key_stop))
            seen -= ((own != NO_KEY) & (start <= self.query_step) & (self.query_step < stop)).long()
        return seen == 0

    def with_memory(self, length: int, filled: int | None = None) -> AttentionMask:
        """``length`` keys in front that every query of the first document sees (Transformer-XL, XLNet).

        Args:
            length: memory slots.
            filled: how many of them hold something, the last ones (default: all); the others are hidden.

        Raises:
            ValueError: the mask has a window; ``filled`` is more than ``length``.
        """
        length = check_length("length", length)
        if self.window is not None:
            raise ValueError("with_memory takes a mask without a window; call windowed() on the result")
        filled = length if filled is None else check_length("filled", filled)
        if filled > length:
            raise ValueError(f"filled must be at most length = {length}, got {filled}")
        shape = (*self.key_start.shape[:-1], length)
        start, stop = self.key_start.new_full(shape, HIDDEN_START), self.key_stop.new_full(shape, HIDDEN_STOP)
        start[..., length - filled :] = GIVEN
        stop[..., length - filled :] = NOWHERE if self.document_ends is None else self.document_ends[..., :1]
        own = self.own_keys
        return self._replace(
            key_start=torch.cat([start, self.key_start], dim=-1),
            key_stop=torch.cat([stop, self.key_stop], dim=-1),
            query_key=torch.where(own == NO_KEY, NO_KEY, own + length),
            structure="full" if self.structure == "full" and filled == length else "mixed",
            last_key=None if self.last_key is None else self.last_key + length,
        )

    def query_stream(self, targets: Sequence[int] | np.ndarray | torch.Tensor) -> AttentionMask:
        """Queries that predict the targets and do not see them; the keys stay those of this mask [XLNet, sec. 2.3].

        It is for masks whose keys stay visible once they have appeared, such as :func:`permutation`: a query sees what
        its target sees, less what appears with the target.

        Args:
            targets: indices of queries of this mask, those of a document together and else in any order; each becomes
                one query at the step before the one at which its token appears.

        Raises:
            ValueError: a target lies beyond the row, is given from the start, so that there is nothing to predict, or
                is hidden, so that it has no step; its query might see a key that the target itself does not see, such
                as one that disappears as the target appears; or the targets' documents alternate.
        """
        self._require_one_row("query_stream")
        indices = check_integers("targets", targets)
        beyond = indices[(indices < 0) | (indices >= self.query_length)]
        if beyond.size:
            raise ValueError(f"targets must lie within the row of {self.query_length} tokens, got {beyond[0]}")
        index = torch.from_numpy(indices).to(self.device)
        own_key = self.own_keys[index]
        if bool((own_key == NO_KEY).any()):
            raise ValueError("query_stream needs a content stream, got a mask whose queries have no key of their own")
        hidden = indices[self.hidden_keys[own_key].cpu().numpy()]
        if hidden.size:
            raise ValueError(f"targets must appear at some step, but token {hidden[0]} is a key that no query may see")
        starts = self.key_start[own_key]
        given = indices[self.given_keys()[own_key].cpu().numpy()]
        if given.size:
            raise ValueError(
                f"targets must appear at a step of at least 1, but token {given[0]} is given from the start"
            )
        before = torch.from_numpy(steps.before(starts.cpu().numpy())).to(self.device)
        changed = indices[self._changes_between(before, self.query_step[index]).cpu().numpy()]
        if changed.size:
            raise ValueError(
                f"targets must see all that is visible at the step before they appear, but token {changed[0]} does "
                "not; query_stream takes masks whose keys do not disappear"
            )
        check_together("targets", self.key_documents()[own_key], self.document_count)
        return self._replace(
            query_step=before,
            query_key=torch.full_like(index, NO_KEY),
            structure="mixed",
            last_key=None if self.last_key is None else self.last_key[index],
            query_position=None if self.query_position is None else self.query_position[index],
        )

    def with_idle_queries(self, count: int) -> AttentionMask:
        """``count`` queries behind the others that see nothing and are no keys, as those that pad a query stream."""
        more = (0, check_length("count", count))
        own = self.own_keys
        position = self.query_position
        return self._replace(
            query_step=functional.pad(self.query_step, more, value=NOWHERE),
            query_key=functional.pad(own, more, value=NO_KEY),
            structure="mixed",
            last_key=None if self.last_key is None else functional.pad(self.last_key, more),
            query_position=None if position is None else functional.pad(position, more),
        )

    def __eq__(self, other: object) -> bool:
        """Whether all fields hold equal values; who sees whom may be the same in other numbers, see :meth:`dense`."""
        if not isinstance(other, AttentionMask):
            return NotImplemented
        mine, theirs = self.tensors() | {"query_key": self.own_keys}, other.tensors() | {"query_key": other.own_keys}
        alike = (self.exclude_self, self.structure, self.window) == (other.exclude_self, other.structure, other.window)
        return alike and mine.keys() == theirs.keys() and all(_equal(mine[name], theirs[name]) for name in mine)

    def __str__(self) -> str:
        return pictures.text(self)

    def __repr__(self) -> str:
        shape = tuple(self.query_step.shape)
        extra = ", exclude_self=True" if self.exclude_self else ""
        extra += "" if self.window is None else f", window={self.window}"
        return f"AttentionMask(queries={shape}, keys={tuple(self.key_start.shape)}, {self.structure!r}{extra})"

    def _repr_svg_(self) -> str | None:
        """The picture that notebooks show; None of a large mask, of which they show the ``repr``."""
        rows = len(self.query_step) if self.batched else 1
        cells = rows * self.query_length * self.key_length
        large = rows > pictures.NOTEBOOK_ROWS or cells > pictures.NOTEBOOK_CELLS
        return None if large else pictures.svg(self)

    def _changes_between(self, before: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """bool (N,): whether keys disappear from steps ``before`` to ``step`` (N,), or appear on the way back."""
        shown, both = ~self.hidden_keys, torch.stack([before, step])
        appeared, disappeared = (
            _count_until(side[shown], both).diff(dim=0)[0] for side in (self.key_start, self.key_stop)
        )
        return (disappeared > 0) | (appeared < 0)

    def _replace(self, **changes: torch.Tensor | bool | int | str | None) -> AttentionMask:
        return AttentionMask.unchecked(**(vars(self) | changes))

    def _repeated(self, rows: int) -> AttentionMask:
        return self._replace(**{name: value.expand(rows, *value.shape) for name, value in self.tensors().items()})

    def _require_one_row(self, verb: str) -> None:
        if self.batched:
            raise ValueError(f"{verb} takes one row, got a batch of {self.query_step.shape[0]}; batch afterwards")

    def _require_one_document(self, verb: str) -> None:
        self._require_one_row(verb)
        if self.document_count > 1:
            raise ValueError(f"{verb} takes a row of one document, got one of {self.document_count}; pack afterwards")


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of integers hold equal values, of whatever dtypes."""
    wider = torch.promote_types(one.dtype, other.dtype)
    return torch.equal(one.to(wider), other.to(wider))


def _count_until(values: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Number of a row's values that are at most each step, int64."""
    return torch.searchsorted(values.sort(dim=-1).values, steps.contiguous(), right=True)


def structure_of(query_step: np.ndarray, key_start: np.ndarray, key_stop: np.ndarray) -> str:
    """Structure of rows: "full", "causal" or "mixed".

    Args:
        query_step, key_start, key_stop: (T,) or (B, T), (S,) or (B, S), numpy arrays.
    """
    if query_step.size == 0 or key_start.size == 0:
        return "full"
    if (key_start.max(-1) <= query_step.min(-1)).all() and (query_step.max(-1) < key_stop.min(-1)).all():
        return "full"
    if query_step.shape != key_start.shape:
        return "mixed"
    # Each query sees its own key and not the next one, so steps increase along the row; and no key disappears on it.
    ascending = (key_start <= query_step).all() and (query_step[..., :-1] < key_start[..., 1:]).all()
    return "causal" if ascending and (query_step[..., -1:] < key_stop).all() else "mixed"
