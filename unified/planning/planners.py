"""Planners: how the texts of an epoch are cut from documents, and which documents each planner gets.

Most objectives read :class:`Blocks`. An objective that wants its texts cut in another way says so by its attribute
``planner``; objectives with equal planners share documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.planning.lanes import cut_stretches
from unified.planning.rows import DealtDocuments, RowLimits
from unified.planning.second_pools import SecondPools
from unified.planning.sources import TextSource
from unified.planning.text_request import TextRequest

#: A document of more than so many rows, or so large a part of all text, is dealt in parts.
_ROWS_PER_PART, _PARTS = 64, 32


class TextPlan(Protocol):
    """N texts of one epoch."""

    @property
    def lengths(self) -> np.ndarray:
        """int64 (N,), tokens of each, special symbols not counted."""
        ...

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The texts of row after row, int64 (N,), and where each row begins, (R + 1,), the end included.

        None where rows shall be packed when the examples' lengths are known.
        """
        ...

    def texts(self, indices: np.ndarray, objective: TextRequest, draws: Draws, epoch: int) -> Texts:
        """Texts ``indices`` (int64 (n,)) as ``objective`` wants them.

        ``draws`` are of each text; what all texts of an epoch share is drawn by the number of the ``epoch``.
        """
        ...


Source = TypeVar("Source", contravariant=True)


class Planner(Protocol[Source]):
    """Decides how texts are cut from one type of source: a frozen dataclass, so that planners can be compared."""

    @property
    def each_epoch(self) -> bool:
        """True where every epoch has other texts; False where only the objectives' changes to them differ."""
        ...

    @property
    def shortest(self) -> int:
        """Number of tokens that rows need at least, so that there is anything to plan."""
        ...

    def plan(self, texts: Source, limits: RowLimits, seed: int, epoch: int, dealt: DealtDocuments | None) -> TextPlan:
        """The texts of ``epoch``, from the documents that are ``dealt`` to it, or from all of them."""
        ...


@dataclass(frozen=True)
class Blocks:
    """Blocks of whole sentences, which the source cuts and packs by :meth:`TextSource.blocks`; or its pairs."""

    each_epoch: ClassVar[bool] = False
    shortest: ClassVar[int] = 1

    def plan(
        self, texts: TextSource, limits: RowLimits, seed: int, epoch: int, dealt: DealtDocuments | None
    ) -> TextPlan:
        """Blocks in rows; where texts of one length make examples of different ones, blocks that are not packed yet."""
        if limits.overhead is None:
            alone = replace(limits, row_length=limits.longest, overhead=0, packed=False)
            plan = texts.blocks(alone, seed, epoch, dealt)
            return PlannedBlocks(texts, plan.starts, plan.lengths, None, seed)
        plan = texts.blocks(limits, seed, epoch, dealt)
        return PlannedBlocks(texts, plan.starts, plan.lengths, (plan.members, plan.offsets), seed)


class PlannedBlocks:
    """A :class:`TextPlan`; ``starts`` and ``lengths`` (N,) as in :class:`unified.planning.rows.RowPlan`.

    Random second segments of an epoch depend on ``seed``, too.
    """

    def __init__(
        self,
        source: TextSource,
        starts: np.ndarray,
        lengths: np.ndarray,
        rows: tuple[np.ndarray, np.ndarray] | None,
        seed: int,
    ):
        self.source, self.starts, self.lengths, self.rows, self.seed = source, starts, lengths, rows, seed
        self._pools: SecondPools | None = None  # of the last epoch

    def texts(self, indices: np.ndarray, objective: TextRequest, draws: Draws, epoch: int) -> Texts:
        """The texts of some of these blocks, see :meth:`unified.planning.documents.DocumentTexts.texts`."""
        if self._pools is None or self._pools.epoch != epoch:
            self._pools = SecondPools(self.starts, self.lengths, self.seed, epoch)
        return self.source.texts(self.starts[indices], self.lengths[indices], objective, draws, self._pools)


#: The planning of objectives that name no planner.
BLOCKS = Blocks()


def deal(
    bounds: np.ndarray,
    document_starts: np.ndarray,
    weights: tuple[float, ...],
    row_length: int,
    rng: np.random.Generator,
) -> list[DealtDocuments]:
    """Deal documents to planners, in proportion to their weights.

    The documents stand in a random order on a circle, each as long as it has tokens, and the planners divide the circle
    by their weights from a random point on; the document's middle decides. So each planner gets each document with the
    probability of its weight, and of all tokens that fraction up to about one document. A few long documents still
    serve every planner: a document of more than 64 rows is dealt in pieces of 64 to 128 rows; where there is little
    text, a document of more than a 32nd of it in pieces of about that size, but not below a row.

    Args:
        bounds, document_starts: int64 (S + 1,) and (D + 1,), see :class:`unified.planning.documents.DocumentTexts`.
        weights: one per planner, adding up to 1.

    Returns:
        Those of each planner; where documents are few, some may be without any.
    """
    limit = int(np.clip(bounds[-1] // _PARTS, row_length, _ROWS_PER_PART * row_length))
    firsts, _ = cut_stretches(bounds, document_starts[:-1], document_starts[1:], limit)
    starts = np.append(firsts, document_starts[-1])
    sizes = np.diff(bounds[starts])
    order = rng.permutation(len(sizes))
    middles = np.empty(len(sizes))
    middles[order] = np.cumsum(sizes[order]) - sizes[order] / 2
    turned = (middles / sizes.sum() + rng.random()) % 1.0
    planner = np.searchsorted(np.cumsum(weights)[:-1], turned, side="right")
    return [DealtDocuments(starts, planner == number) for number in range(len(weights))]
