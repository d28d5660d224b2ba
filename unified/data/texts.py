"""The texts of a batch in flat arrays, one :class:`unified.data.text.Text` after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unified.data.annotations import Spans
from unified.data.extents import Extents, ranges
from unified.data.randomness import Draws
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
        spans: by kind of annotation, the spans of the texts, each text's counted over its segments.
    """

    tokens: np.ndarray
    special: SpecialTokens
    lengths: np.ndarray
    is_next: np.ndarray
    word_starts: np.ndarray | None
    backward: np.ndarray
    sampler: Callable[[np.ndarray, Draws], np.ndarray] | None = None
    spans: Mapping[str, Spans] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Sequence[Text]) -> Texts:
        """Joins a list of texts, which all have one segment, or all two, and come from one source."""
        segments = [part for text in texts for part in (text.tokens, text.second) if part is not None]
        lengths = np.array([len(segment) for segment in segments]).reshape(len(texts), -1).T
        starts = [text.word_starts for text in texts if text.word_starts is not None]
        return cls(
            np.concatenate(segments),
            texts[0].special,
            lengths,
            np.array([UNASKED if text.is_next is None else int(text.is_next) for text in texts]),
            np.concatenate(starts) if len(starts) == len(texts) else None,
            np.array([text.backward for text in texts]),
            texts[0].sampler,
            {kind: Spans.of([text.spans[kind] for text in texts]) for kind in texts[0].spans},
        )

    def __len__(self) -> int:
        return self.lengths.shape[1]

    def first_segments(self) -> Texts:
        """The texts without their second segments."""
        if len(self.lengths) == 1:
            return self
        kept = ranges(Extents(self.lengths.sum(0)).starts, self.lengths[0])
        starts = None if self.word_starts is None else self.word_starts[kept]
        spans = {kind: some.kept(some.bounds[:, 0] < self.lengths[0][some.owners]) for kind, some in self.spans.items()}
        return replace(self, tokens=self.tokens[kept], lengths=self.lengths[:1], word_starts=starts, spans=spans)

    def repeated(self, times: int) -> Texts:
        """All texts again and again, one round after another."""
        return replace(
            self,
            tokens=np.tile(self.tokens, times),
            lengths=np.tile(self.lengths, times),
            is_next=np.tile(self.is_next, times),
            word_starts=None if self.word_starts is None else np.tile(self.word_starts, times),
            backward=np.tile(self.backward, times),
            spans={kind: spans.repeated(times) for kind, spans in self.spans.items()},
        )

    def random_tokens(self, counts: np.ndarray, draws: Draws) -> np.ndarray:
        """``counts[i]`` (int64 (n,)) tokens from random indices of the corpus for each text, int64 (sum,).

        Where there is no corpus, they come from the text itself.
        """
        if self.sampler is not None:
            return self.sampler(counts, draws)
        own = Extents(self.lengths.sum(0))
        within = draws.integers("own tokens", own.lengths.repeat(counts), counts)
        return self.tokens[own.starts.repeat(counts) + within]

    def texts(self) -> list[Text]:
        """One after another, as views."""
        extents = Extents(self.lengths.sum(0))
        stops, firsts = extents.offsets.tolist(), self.lengths[0].tolist()
        two = len(self.lengths) == 2
        spans_of_each = {kind: spans.split() for kind, spans in self.spans.items()}
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
                    {kind: spans[i] for kind, spans in spans_of_each.items()},
                )
            )
        return made
