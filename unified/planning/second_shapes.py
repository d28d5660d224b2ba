"""Shapes of second segments: what is known of them without reading them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unified.planning.segments import BlocksToCut
from unified.planning.sentences import Sentences

#: Kinds of borders at an index of the text: inside a sentence, between two sentences of a document, or between two
#: documents.
INSIDE, BETWEEN, OUTSIDE = range(3)


@dataclass(frozen=True)
class Shapes:
    """Properties of n second segments that are known without reading them.

    Attributes:
        lengths: int64 (n,), tokens, at least one.
        joins: int64 (n,), what there is where each meets its first segment, :data:`INSIDE` or :data:`BETWEEN`.
        ends: int64 (n,), what there is at its other side.
        backward: bool (n,), whether it is read backwards, so that it stands before the first segment in the text.
        inside: int64 (n,), an index inside of its document.
    """

    lengths: np.ndarray
    joins: np.ndarray
    ends: np.ndarray
    backward: np.ndarray
    inside: np.ndarray

    @classmethod
    def of(cls, texts: Sentences, blocks: BlocksToCut, lengths: np.ndarray) -> Shapes:
        """Shapes of the last ``lengths`` (int64 (n,)) tokens of ``blocks``, in the direction in which they are read."""
        far = np.where(blocks.backward, blocks.starts, blocks.starts + blocks.lengths)
        joins = np.where(blocks.inner.lengths > 0, BETWEEN, INSIDE)
        border = texts.bounds.searchsorted(far)
        ends = (texts.bounds[border] == far) * texts.borders[border]
        return cls(lengths, joins, ends, blocks.backward, blocks.starts)

    def documents(self, texts: Sentences) -> np.ndarray:
        """The document of each, int64 (n,)."""
        sentences = texts.bounds.searchsorted(self.inside, side="right") - 1
        return texts.document_starts.searchsorted(sentences, side="right") - 1

    def take(self, members: np.ndarray) -> Shapes:
        """The shapes of some of the texts; ``members`` are their numbers, int64 (n,)."""
        one = self.lengths[members], self.joins[members], self.ends[members]
        return Shapes(*one, self.backward[members], self.inside[members])
