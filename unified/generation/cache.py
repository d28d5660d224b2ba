"""Keys and values of sources and of generated tokens, and the attention that reads them.

Letters as in :mod:`unified.generation.decoder`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from unified.attention import Attention, ScoreBias
from unified.model.key_relations import DistanceTable


@dataclass(frozen=True)
class SourceCache:
    """The state of N sources that decoding needs, held once per sentence whatever the beam.

    Attributes:
        keys, values: per attention of the model (N, H, S, K).
        visible: bool (N, S), False at padding.
        positions: int64 (N, S).
        next_position: int64 (N,), position of the first generated token: the number of real tokens before it.
        longest: the greatest of ``next_position``, on the host.
    """

    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    visible: torch.Tensor
    positions: torch.Tensor
    next_position: torch.Tensor
    longest: int

    @property
    def bytes(self) -> int:
        """Size of the keys and values."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.keys + self.values)

    def select(self, keep: torch.Tensor) -> SourceCache:
        """The sentences ``keep`` (int64 indices or bool (N,)), in that order; used when sentences leave the batch."""
        next_position = self.next_position[keep]
        return SourceCache(
            keys=[key[keep] for key in self.keys],
            values=[value[keep] for value in self.values],
            visible=self.visible[keep],
            positions=self.positions[keep],
            next_position=next_position,
            longest=int(next_position.max()) if len(next_position) else 0,
        )


@dataclass
class DecodingState:
    """Sources, and the tokens that R = N x beam rows have written so far.

    Attributes:
        source: cache of the N sentences; replace it by :meth:`SourceCache.select` when some leave.
        beam: rows per sentence.
        keys, values: per attention of the model (R, H, t, K).
        table: distances as relative attentions read them, made when they are first needed.
    """

    source: SourceCache
    beam: int
    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    table: DistanceTable | None = None

    @property
    def length(self) -> int:
        """t, the number of tokens in the target cache."""
        return self.keys[0].size(2)

    def reorder(self, rows: torch.Tensor) -> None:
        """Row i continues the old row ``rows[i]`` (int64 (R',)); the source cache is not touched."""
        self.keys = [key.index_select(0, rows) for key in self.keys]
        self.values = [value.index_select(0, rows) for value in self.values]


class RecordingAttention:
    """An attention that remembers the keys and values it was given.

    Attributes:
        inner: what attends.
        read: False where nobody reads what it gives, and anything of that shape will do. Weights are given all the
            same.
    """

    def __init__(self, inner: Attention):
        self.inner, self.fully_masked, self.shape, self.read = inner, inner.fully_masked, inner.shape, True
        self.key = self.value = torch.empty(0)  # until it is called

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        self.key, self.value = key, value
        return self.inner(query, key, value, dropout, bias) if self.read else value

    def with_weights(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend with weights, (B, H, T, S), and keep keys and values for later."""
        self.key, self.value = key, value
        return self.inner.with_weights(query, key, value, dropout)


class CachedAttention:
    """Queries of R rows over their sentence's source, what the row has written, and the queries themselves.

    The source is read once per sentence: the rows of a sentence are put side by side as queries (N, H, beam x q, K).
    Both score matrices meet in one softmax, with the bias (R, H, q, S + t + q) where positions are relative.
    Behind an empty prompt a query stream sees nothing and reads zero, and so does a first token that does not see
    itself; other queries see themselves or the source.

    Args:
        hides_self: whether queries do not see their own token; then the attention names those that see nothing, as the
            masks of training do.
    """

    shape: tuple[int, int, int] | None = None

    def __init__(self, state: DecodingState, layer: int, seen: Seen, hides_self: bool):
        self.state, self.layer, self.seen = state, layer, seen
        self.fully_masked = seen.fully_masked if hides_self else None
        self.key = self.value = torch.empty(0)  # until it is called

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        return self._attend(query, key, value, bias)[1]

    def with_weights(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend to the cache with weights, one row for each beam of a sentence."""
        weights, read = self._attend(query, key, value, None)
        return split_beams(weights, self.state.beam), read

    def _attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: ScoreBias | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights (N, H, beam x q, S + t + q), and what is read (R, H, q, K)."""
        source, layer, beam = self.state.source, self.layer, self.state.beam
        self.key = torch.cat([self.state.keys[layer], key], dim=2)
        self.value = torch.cat([self.state.values[layer], value], dim=2)
        query = query / math.sqrt(query.size(-1))
        of_source = join_beams(query, beam) @ source.keys[layer].mT
        scores = torch.cat([of_source, join_beams(query @ self.key.mT, beam)], dim=-1)
        scores = scores if bias is None else scores + join_beams(bias.dense(), beam)
        weights = self.seen.softmax(scores)
        from_source, from_target = weights.split([of_source.size(-1), self.key.size(2)], dim=-1)
        read = split_beams(from_source @ source.values[layer], beam)
        return weights, read + split_beams(from_target, beam) @ self.value


@dataclass(frozen=True)
class Window:
    """The window of a layer while a text is written.

    Attributes:
        size: how many positions on each side a query reads.
        queries, keys: int64 (q,) and (t + q,), positions of the step's queries and of the written and new tokens,
            counted from the first written one.
    """

    size: int
    queries: torch.Tensor
    keys: torch.Tensor

    def in_text(self) -> torch.Tensor:
        """bool (q, t + q), which written and new tokens lie within the window."""
        return (self.queries.unsqueeze(1) - self.keys).abs() <= self.size

    def in_source(self, source: SourceCache) -> torch.Tensor:
        """bool (N, q, S), which tokens of the sources do."""
        positions = source.next_position.unsqueeze(1) + self.queries
        return (positions.unsqueeze(-1) - source.positions.unsqueeze(-2)).abs() <= self.size


class Seen:
    """Tokens of source, text and queries that each query of a step sees; shared by all layers of a kind.

    Args:
        visible: bool (q, t + q), which written and new tokens each query sees.
        nothing: whether a query may see no token at all.
        dtype: of the scores.
        window: of the layers, which hides more; None for none.

    Attributes:
        fully_masked: bool (N x beam, q), queries that see no token; None where every query sees one.
    """

    def __init__(
        self,
        source: SourceCache,
        visible: torch.Tensor,
        beam: int,
        nothing: bool,
        dtype: torch.dtype,
        window: Window | None = None,
    ):
        written = (visible if window is None else visible & window.in_text()).repeat(beam, 1)
        shape = (len(source.visible), 1, len(written))
        in_source = source.visible[:, None, None].expand(*shape, -1)
        if window is not None:
            in_source = in_source & window.in_source(source).repeat(1, beam, 1).unsqueeze(1)
        hidden = ~torch.cat([in_source, written.expand(*shape, -1)], dim=-1)
        self._added = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
        self._added.masked_fill_(hidden, torch.finfo(dtype).min)
        self.fully_masked = hidden.all(-1).view(len(source.visible) * beam, len(visible)) if nothing else None

    def softmax(self, scores: torch.Tensor) -> torch.Tensor:
        """Softmax over the visible tokens, zeros where there are none; overwrites (N, H, beam x q, S + t + q)."""
        weights = torch.softmax(scores.add_(self._added), dim=-1)
        if self.fully_masked is None:
            return weights
        return weights.masked_fill(self.fully_masked.view(len(weights), 1, weights.size(2), 1), 0.0)


def join_beams(rows: torch.Tensor, beam: int) -> torch.Tensor:
    """(N x beam, H, q, X) -> (N, H, beam x q, X)."""
    return rows.unflatten(0, (-1, beam)).transpose(1, 2).flatten(2, 3)


def split_beams(joined: torch.Tensor, beam: int) -> torch.Tensor:
    """(N, H, beam x q, X) -> (N x beam, H, q, X); undoes :func:`join_beams`."""
    return joined.unflatten(2, (beam, -1)).transpose(1, 2).flatten(0, 1)
