"""True second segments of all blocks of a plan, which serve each other as random ones.

Blocks are cut at any of their inner sentence ends, each equally likely. So a place of the text begins a second segment
the less often the more sentences its block has. Random segments from places that are all equally likely would come too
often from lists and headings, and the number of their sentences would tell the label. So a random one is what is cut
off a block of another document by the same rule: whatever a model may find in it, it finds as often in true ones.
"""

from __future__ import annotations

import numpy as np

from unified.data import randomness
from unified.data.randomness import Draws
from unified.planning.second_shapes import Shapes
from unified.planning.segments import BlocksToCut
from unified.planning.sentences import Sentences

#: A small plan has several cuts of each block in its pools: so many in all, at most so many of a block.
_CUTS, _OF_A_BLOCK = 2**16, 16
#: Cuts that are made at once.
_AT_ONCE = 2**16


class SecondPools:
    """The pools of an epoch, one for each direction of reading, which are made when first wanted.

    They depend on the plan, the seed and the epoch alone. A million blocks take 8 MB and about half a second.

    Args:
        starts, lengths: int64 (N,), the blocks of the plan.
        seed, epoch: whole numbers from 0.
    """

    def __init__(self, starts: np.ndarray, lengths: np.ndarray, seed: int, epoch: int):
        self.starts, self.lengths, self.seed, self.epoch = starts, lengths, seed, epoch
        self._pools: dict[bool, _Pool] = {}

    def find(self, texts: Sentences, shapes: Shapes, draws: Draws) -> np.ndarray:
        """Begins of random second segments of these shapes in other documents, int64 (n,), -1 where the plan has none.

        Args:
            texts: whose blocks the plan has.
        """
        found = np.full(len(draws), -1)
        for backward in (False, True):
            own = np.flatnonzero(shapes.backward == backward)
            if own.size:
                found[own] = self._pool(texts, backward).find(texts, shapes.take(own), draws.take(own))
        return found

    def _pool(self, texts: Sentences, backward: bool) -> _Pool:
        if backward not in self._pools:
            draws = Draws.of(self.seed, self.epoch, randomness.SECONDS, np.arange(len(self.starts)))
            self._pools[backward] = _Pool(texts, self.starts, self.lengths, backward, draws)
        return self._pools[backward]


class _Pool:
    """Second segments that are read in one direction; arguments as of :class:`SecondPools`.

    Attributes:
        codes: int64 (C,), increasing; the number of a segment's shape, times ``span``, and the index where it begins.
        span: above every index of the text.
    """

    def __init__(self, texts: Sentences, starts: np.ndarray, lengths: np.ndarray, backward: bool, draws: Draws):
        self.span = int(texts.bounds[-1]) + 1
        times = int(np.clip(_CUTS // len(starts), 1, _OF_A_BLOCK))
        parts = np.array_split(np.arange(len(starts)), -(-len(starts) * times // _AT_ONCE))
        codes = []
        for part in parts:
            some, sizes = starts[part].repeat(times), lengths[part].repeat(times)
            blocks = BlocksToCut.of(texts, some, sizes, np.full(len(some), backward))
            segments = blocks.divided(blocks.cuts(draws.take(part).pieces(times)))
            codes.append(self._first(Shapes.of(texts, blocks, segments.lengths[1])) + segments.starts[1])
        self.codes = np.sort(np.concatenate(codes))

    def _first(self, shapes: Shapes) -> np.ndarray:
        """The code of a segment of each shape that begins with the text, int64 (n,)."""
        return ((shapes.lengths * 3 + shapes.joins) * 3 + shapes.ends) * self.span

    def find(self, texts: Sentences, shapes: Shapes, draws: Draws) -> np.ndarray:
        """Begins of random segments of these shapes, see :meth:`SecondPools.find`."""
        first = self._first(shapes)
        own = texts.document_starts[shapes.documents(texts) + np.array([[0], [1]])]  # and where the next one begins
        limits = np.concatenate([[first], first + texts.bounds[own], [first + self.span]])
        begin, own_begin, own_end, end = self.codes.searchsorted(limits)
        # Segments of the document itself lie side by side in the pool, and are passed over.
        before, others = own_begin - begin, end - begin - (own_end - own_begin)
        drawn = draws.integers("pool", others)
        chosen = np.where(drawn < before, begin, begin + own_end - own_begin) + drawn
        return np.where(others > 0, self.codes.take(chosen, mode="clip") - first, -1)
