"""The texts of a batch in flat arrays, one :class:`unified.data.text.Text` after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from unified.data.extents import Extents
from unified.data.text import Text
from unified.data.vocabulary import SpecialTokens

#: ``Texts.is_next`` where nobody asked.
UNASKED = -1


@dataclass(frozen=True)
class Texts:
    """n texts of one or two segments each; see :class:`unified.data.text.Text`.

    Attributes:
        tokens: int64, flat: the first segment of a text, its second, then the next text.
        special: ids of the special symbols.
        lengths: int64 (k, n), tokens of the first segment of each text, and of the second where there are two (k = 2).
        is_next: int64 (n,), 1 where the second segment follows, 0 where it is random, ``UNASKED`` where nobody asked.
        word_starts: bool, as long as ``tokens``; None when unknown.
        backward: bool (n,).
        sampler: as in a text.
        spans: by kind of annotation, the spans of each text.
    """

    tokens: np.ndarray
    special: SpecialTokens
    lengths: np.ndarray
    is_next: np.ndarray
    word_starts: np.ndarray | None
    backward: np.ndarray
    sampler: Callable[[int, np.random.Generator], np.ndarray] | None = None
    spans: Mapping[str, Sequence[np.ndarray]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: Text) -> Texts:
        """A batch of one."""
        segments = [text.tokens] if text.second is None else [text.tokens, text.second]
        return cls(
            np.concatenate(segments),
            text.special,
            np.array([[len(segment)] for segment in segments]),
            np.array([UNASKED if text.is_next is None else int(text.is_next)]),
            text.word_starts,
            np.array([text.backward]),
            text.sampler,
            {kind: [spans] for kind, spans in text.spans.items()},
        )

    def __len__(self) -> int:
        return self.lengths.shape[1]

    def texts(self) -> list[Text]:
        """One after another, as views."""
        extents = Extents(self.lengths.sum(0))
        stops, firsts = extents.offsets.tolist(), self.lengths[0].tolist()
        two = len(self.lengths) == 2
        made = []
        for i, first in enumerate(firsts):
            start, stop = stops[i : i + 2]
            made.append(
                Text(
                    self.tokens[start : start + first],
                    self.special,
                    self.tokens[start + first : stop] if two else None,
                    None if self.is_next[i] == UNASKED else bool(self.is_next[i]),
                    None if self.word_starts is None else self.word_starts[start:stop],
                    bool(self.backward[i]),
                    self.sampler,
                    {kind: spans[i] for kind, spans in self.spans.items()},
                )
            )
        return made
