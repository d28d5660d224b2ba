"""Decoding in tensors of fixed shapes, whose steps a graphics card replays as CUDA graphs.

Letters as in :mod:`unified.generation.decoder`; L steps have room, T = beam x q queries of a sentence, C columns.

All that a sentence's queries may read is one list of keys. Its first C columns are the source, padding, and a place for
the key of each [MASK]; behind them every step has a column for each row of the beam. Nothing is moved when rows change
places: ``ancestors`` says which row's column each of them reads at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from unified.attention import ScoreBias
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.generation.cache import SourceCache
from unified.generation.graphs import GraphPool, Replayed
from unified.generation.schemes import DecodingScheme
from unified.model import UnifiedModel

#: Columns of sources and steps are multiples, so that sources of like length share graphs and masks are aligned.
_COLUMNS, _STEPS = 32, 16
#: A block of so few steps is not divided further.
_BLOCK = 64
#: Share of a card's memory that keys and values may take, whose room is that of the longest texts from the start.
_MEMORY_SHARE = 0.25


def serves(model: UnifiedModel, scheme: DecodingScheme, source: SourceCache, beam: int, most: int) -> bool:
    """Whether a search for texts of ``most`` tokens goes by fixed shapes.

    Only on a card, where Python would keep its kernels waiting; where attention is a product of queries and keys alone;
    where the room for the longest texts fits into a quarter of the card's memory; and not under autocast.
    """
    keys = source.keys[0]
    if keys.device.type != "cuda" or torch.is_autocast_enabled("cuda"):
        return False
    if model.transformer.relates or scheme.query_stream:
        return False
    columns = rounded(keys.size(2) + beam, _COLUMNS) + beam * rounded(most + 1, _STEPS)
    needed = source.bytes * columns / keys.size(2)
    return needed <= _MEMORY_SHARE * torch.cuda.get_device_properties(keys.device).total_memory


def rounded(count: int, multiple: int) -> int:
    """The least multiple that is not below ``count``."""
    return -(-count // multiple) * multiple


def halves(most: int, least: int, multiple: int) -> list[int]:
    """``most``, its half and so on down to ``least``, each rounded up to a multiple; ascending."""
    sizes = [rounded(most, multiple)]
    while sizes[-1] > least:
        sizes.append(rounded((sizes[-1] + 1) // 2, multiple))
    return sizes[::-1]


@dataclass(frozen=True)
class Kept:
    """The sentences that are still written, int64 (N,): their indices in the tensors of a workspace."""

    indices: torch.Tensor

    def select(self, keep: torch.Tensor) -> Kept:
        """The sentences that ``keep`` names, int64 indices or bool (N,), in their order."""
        return Kept(self.indices[keep])


class FixedAttention:
    """Writes the keys and values of a step into their columns, and attends to all columns under a mask.

    Args:
        keys, values: (N, H, C + L x beam, K), of which the columns below ``added.size(-1)`` are read.
        slots: int64 (T,), columns of the queries' own keys.
        added: (N, 1, T, columns read), 0 where a query sees a column, a low number elsewhere.
    """

    fully_masked: torch.Tensor | None = None
    shape: tuple[int, int, int] | None = None

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, slots: torch.Tensor, added: torch.Tensor):
        self.keys, self.values, self.slots, self.added = keys, values, slots, added

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        self.keys.index_copy_(2, self.slots, key)
        self.values.index_copy_(2, self.slots, value)
        read = self.added.size(-1)
        return functional.scaled_dot_product_attention(
            query, self.keys[:, :, :read], self.values[:, :, :read], attn_mask=self.added
        )

    def with_weights(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Refuses: no weights are kept.

        Raises:
            UnifiedError: always.
        """
        raise UnifiedError("decoding in fixed shapes gives no attention weights")


class Workspace:
    """The tensors of searches of one shape, and their graphs.

    A batch of fewer sentences, and what is left of one, uses the first rows; a step reads the columns of one of a few
    numbers of steps. Each pair of these numbers has a graph.

    Args:
        source: gives sentences, columns, dtype and device.
        most: tokens that are written at most.
    """

    def __init__(
        self,
        model: UnifiedModel,
        special: SpecialTokens,
        scheme: DecodingScheme,
        source: SourceCache,
        beam: int,
        most: int,
    ):
        self.model, self.special, self.scheme, self.beam = model, special, scheme, beam
        like = source.keys[0]
        sentences, heads, length, size = like.shape
        self.batches = halves(sentences, 1, 1)
        self.blocks = halves(most + 1, _BLOCK, _STEPS)
        self.columns = rounded(length + beam, _COLUMNS)
        self._parameters = _places(model)
        self._pool = GraphPool(like.device)
        self.steps: dict[tuple[int, int], Replayed] = {}
        room = self.blocks[-1]
        # Not as tensors of inference mode, in which nothing could be written outside it.
        with torch.inference_mode(False):
            shape = (sentences, heads, self.columns + room * beam, size)
            self.keys, self.values = ([like.new_zeros(shape) for _ in side] for side in (source.keys, source.values))
            whole = partial(torch.zeros, dtype=torch.long, device=like.device)
            self.visible = whole(sentences, self.columns).bool()
            self.positions = whole(sentences, self.columns)
            self.next_position = whole(sentences)
            self.ancestors = whole(sentences, beam, room)
            self.last = whole(sentences, beam)
            self.step = whole(1)
            self._fix(sentences, room, partial(torch.arange, device=like.device), like.device)

    def _fix(self, sentences: int, room: int, count: partial[torch.Tensor], device: torch.device) -> None:
        """Sets what no step changes: positions of the queries relative to the step, their columns, which are asked."""
        beams = count(self.beam)
        of_token, of_mask = self.columns + beams, self.columns - self.beam + beams
        if self.scheme.mask_query:  # the last token, and a [MASK] behind it
            self.lags = torch.tensor([-1, 0], device=device)
            self.first_slots = torch.stack([of_token, of_mask], dim=1)
            self.slot_steps = torch.tensor([self.beam, 0], device=device)
        else:
            self.lags = torch.tensor([0], device=device)
            self.first_slots, self.slot_steps = of_token.unsqueeze(1), torch.tensor([self.beam], device=device)
        queries = len(self.lags)
        self.beams, self.slots_of_all = beams, count(self.columns + room * self.beam)
        self.offsets = count(room).repeat_interleave(self.beam) + self.lags[0]
        self.asked = count(sentences * self.beam) * queries + queries - 1

    def suits(self, source: SourceCache, beam: int, most: int) -> bool:
        """Whether it holds a search of that shape, and the model's parameters are where they were."""
        like, own = source.keys[0], self.keys[0]
        return (
            len(like) <= len(own)
            and rounded(like.size(2) + beam, _COLUMNS) == self.columns
            and beam == self.beam
            and most < self.blocks[-1]
            and (like.dtype, like.device) == (own.dtype, own.device)
            and _places(self.model) == self._parameters
        )

    @torch.no_grad()
    def begin(self, source: SourceCache) -> FixedState:
        """The state of rows that have written nothing yet; a search that began before cannot go on."""
        self.search = object()
        count, length = source.visible.shape
        for own, given in zip([*self.keys, *self.values], [*source.keys, *source.values], strict=True):
            own.zero_()  # what a weight of zero is multiplied with is a number
            own[:count, :, :length] = given
        for cleared in (self.visible, self.positions, self.next_position):
            cleared.zero_()
        self.visible[:count, :length] = source.visible
        self.positions[:count, :length] = source.positions
        self.next_position[:count] = source.next_position
        self.ancestors.fill_(-1)
        # In front of a first [MASK] it is a token that nobody sees.
        self.last.fill_(self.special.begin)
        return FixedState(self, torch.arange(count, device=self.last.device))

    def batch_of(self, sentences: int) -> int:
        """Rows of sentences that a step computes for so many."""
        return next(size for size in self.batches if size >= sentences)

    def logits(self, sentences: int, step: int) -> torch.Tensor:
        """Scores (sentences x beam, V) of the next tokens of the first ``sentences``, until the next call.

        Args:
            sentences: one of :attr:`batches`.
            step: number of calls before, of this search.

        Raises:
            UnifiedError: there is no room for another token.
        """
        block = next((size for size in self.blocks if size > step), None)
        if block is None:
            raise UnifiedError(f"there is room for {self.blocks[-1]} steps, and another is asked for")
        self.step.fill_(step)
        shape = sentences, block
        if shape not in self.steps:
            self.steps[shape] = Replayed(self._pool)
        return self.steps[shape](partial(self._logits, sentences, block))

    def compact(self, kept: torch.Tensor) -> None:
        """Moves the sentences ``kept``, int64 (N,), to the front."""
        moved = [*self.keys, *self.values, self.visible, self.positions, self.next_position, self.ancestors, self.last]
        for tensor in moved:
            tensor[: len(kept)] = tensor.index_select(0, kept)

    def _logits(self, sentences: int, block: int) -> torch.Tensor:
        """Scores (sentences x beam, V) of a step; all that changes from step to step is in this object's tensors."""
        beam, queries = self.beam, len(self.lags)
        # The token in front of a first [MASK] is not part of the text.
        own = self.beams.masked_fill(self.step + self.lags[0] < 0, -1)
        self.ancestors[:sentences].index_copy_(2, self.step, own.expand(sentences, -1).unsqueeze(-1))
        slots = self.first_slots + self.step * self.slot_steps
        parts = [self.last[:sentences]]
        if self.scheme.mask_query:
            parts.append(torch.full_like(parts[0], self.special.mask))
        tokens = torch.stack(parts, dim=2).flatten(1)
        positions = (self.next_position[:sentences, None] + self.step + self.lags).clamp(min=0)
        transformer = self.model.transformer
        kinds = tuple(zip(transformer.hides_self, transformer.windows, strict=True))
        seen = {kind: self._added(positions, slots, block, *kind) for kind in dict.fromkeys(kinds)}
        attentions = [
            FixedAttention(keys[:sentences], values[:sentences], slots.flatten(), seen[kind])
            for keys, values, kind in zip(self.keys, self.values, kinds, strict=True)
        ]
        states = transformer.run(
            tokens,
            positions.unsqueeze(1).expand(-1, beam, queries).flatten(1),
            torch.full_like(tokens, self.scheme.target_type),
            attentions,
            output_indices=self.asked[: sentences * beam],
        )
        return self.model.logits(states)

    def _added(
        self, positions: torch.Tensor, slots: torch.Tensor, block: int, hides_self: bool, window: int
    ) -> torch.Tensor:
        """Mask (N, 1, T, C + block x beam) to add to scores.

        Args:
            positions: int64 (N, q), of the queries.
            slots: int64 (beam, q), columns of their own keys.
            block: steps whose columns are read.
            hides_self: whether a query does not see its own key.
            window: positions on each side that a query sees of source and text; 0 for all.
        """
        sentences, queries = positions.shape
        of_source = self.visible[:sentences, None, None].expand(-1, self.beam, queries, -1)
        written = self.ancestors[:sentences, :, :block].unsqueeze(-1) == self.beams
        written = written.flatten(2).unsqueeze(2).expand(-1, -1, queries, -1)
        seen = torch.cat([of_source, written], dim=-1)
        if window:
            of_text = self.next_position[:sentences, None] + self.offsets[: block * self.beam]
            keys = torch.cat([self.positions[:sentences], of_text], dim=1)
            seen &= ((positions.unsqueeze(-1) - keys.unsqueeze(-2)).abs() <= window).unsqueeze(1)
        own = slots.unsqueeze(-1) == self.slots_of_all[: seen.size(-1)]
        seen = seen & ~own if hides_self else seen | own
        dtype = self.keys[0].dtype
        added = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        # A quarter, so that no kernel that scales its scores makes it infinite.
        added.masked_fill_(~seen, torch.finfo(dtype).min / 4)
        return added.flatten(1, 2).unsqueeze(1)


class FixedState:
    """The state of R = N x beam rows in a workspace; search uses it as it uses a :class:`DecodingState`.

    Sentences that leave are computed all the same until half of them have left; then the others move together.

    Args:
        kept: int64 (N,), the sentences, in the first rows of the workspace.
    """

    def __init__(self, workspace: Workspace, kept: torch.Tensor):
        self.workspace, self._kept, self.search = workspace, kept, workspace.search
        self.sentences = workspace.batch_of(len(kept))
        self.length = 0

    @property
    def source(self) -> Kept:
        """The sentences that are still written."""
        return Kept(self._kept)

    @source.setter
    def source(self, source: Kept) -> None:
        """The sentences that are still written."""
        self._kept = source.indices
        sentences = self.workspace.batch_of(len(self._kept))
        if sentences < self.sentences:
            self.workspace.compact(self._kept)
            self._kept = torch.arange(len(self._kept), device=self._kept.device)
            self.sentences = sentences

    def reorder(self, rows: torch.Tensor) -> None:
        """Row i continues the row ``rows[i]`` (int64 (R,)) of the same sentence, as they were before any left."""
        parents = (rows % self.workspace.beam).view(-1, self.workspace.beam)
        ancestors = self.workspace.ancestors
        own = self._of_kept(ancestors)
        self._put(ancestors, own.gather(1, parents.unsqueeze(-1).expand_as(own)))

    @torch.no_grad()
    def step(self, last_tokens: torch.Tensor | None) -> torch.Tensor:
        """Logits (R, V) of the next token, which the next step overwrites; ``last_tokens`` int64 (R,), None at first.

        Raises:
            UnifiedError: another search has begun in the workspace, or there is no room for another token.
        """
        if self.search is not self.workspace.search:
            raise UnifiedError("another search of the same decoder has begun; searches that alternate need one each")
        if last_tokens is not None:
            self._put(self.workspace.last, last_tokens.view(-1, self.workspace.beam))
        logits = self.workspace.logits(self.sentences, self.length)
        self.length += 1
        return self._of_kept(logits.unflatten(0, (-1, self.workspace.beam))).flatten(0, 1)

    @property
    def _all(self) -> bool:
        return len(self._kept) == self.sentences

    def _of_kept(self, tensor: torch.Tensor) -> torch.Tensor:
        """The rows of a tensor of the workspace that belong to the sentences."""
        return tensor[: self.sentences] if self._all else tensor.index_select(0, self._kept)

    def _put(self, tensor: torch.Tensor, rows: torch.Tensor) -> None:
        """Writes these rows."""
        if self._all:
            tensor[: self.sentences] = rows
        else:
            tensor.index_copy_(0, self._kept, rows)


def _places(model: UnifiedModel) -> Sequence[int]:
    """Addresses of a model's parameters and buffers, which a graph reads."""
    return [tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())]
