"""CLS a SEP, or CLS a SEP b SEP: what most objectives read, and the token types that name its parts."""

from __future__ import annotations

import numpy as np

from unified.data.annotations import ORACLE, SENTENCES, SOURCE_KINDS, how_to_annotate
from unified.data.example import NO_PAIR_LABEL, NO_SENTENCES
from unified.data.text import Text
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.objectives.base import Supply

#: UniLM's segment ids. ``FIRST`` and ``SECOND`` are the two parts of a bidirectional sequence.
FIRST, SECOND, LEFT_TO_RIGHT, RIGHT_TO_LEFT, SOURCE, TARGET = range(6)


class MayPredictNext:
    """For objectives with a field ``next_sentence``: two segments and a prediction from CLS, or one and none."""

    name: str
    next_sentence: bool

    @property
    def segments(self) -> int:
        return 2 if self.next_sentence else 1

    @property
    def wants_random_second(self) -> bool:
        return self.next_sentence

    @property
    def special_tokens(self) -> int:
        return 1 + self.segments

    def pair_label(self, text: Text) -> int:
        """:attr:`Example.is_next` of an example of ``text``.

        Raises:
            UnifiedError: the text does not say whether its second segment follows.
        """
        if not self.next_sentence:
            return NO_PAIR_LABEL
        if text.is_next is None:
            raise UnifiedError(f"{self.name}: next-sentence prediction needs Text.is_next; set next_sentence=False")
        return int(text.is_next)


class MayExtract:
    """For objectives on pairs with a field ``extractive``: sentences of the source are classified beside it.

    The state of a sentence's first token says whether the greedy oracle takes the sentence (UniLM, section 3.1).
    Sentences whose first token is cut off drop out; the first ``extractive`` of the others count.
    """

    name: str
    extractive: int

    @property
    def annotations(self) -> tuple[str, ...]:
        return SOURCE_KINDS if self.extractive else ()

    def unmet(self, supply: Supply) -> str | None:
        """See :class:`unified.objectives.Objective`."""
        return supply.lacks_annotations(self.annotations)

    def sentences(self, text: Text, lengths: list[int]) -> np.ndarray:
        """:attr:`Example.sentences` of an example of ``text``.

        Raises:
            UnifiedError: the text does not say where its sentences are.
        """
        if not self.extractive:
            return NO_SENTENCES
        starts, taken = (sequence_spans(text, kind, lengths, self.name)[:, 0] for kind in (SENTENCES, ORACLE))
        starts = starts[: self.extractive]
        return np.stack([starts, np.isin(starts, taken)], axis=1)


def both_segments(text: Text, name: str) -> tuple[np.ndarray, np.ndarray]:
    if text.second is None:
        raise UnifiedError(f"{name}: needs two segments, but the text has one (Text.second is None)")
    return text.tokens, text.second


def joined(segments: tuple[np.ndarray, ...], special: SpecialTokens) -> tuple[np.ndarray, list[int]]:
    """CLS and the segments, each followed by SEP; and the lengths of the blocks, CLS counted with the first."""
    lengths = [len(segment) + 1 for segment in segments]
    lengths[0] += 1
    tokens = np.full(sum(lengths), special.separator)
    tokens[0] = special.begin
    tokens[1 : lengths[0] - 1] = segments[0]
    if len(segments) == 2:
        tokens[lengths[0] : -1] = segments[1]
    return tokens, lengths


def sequence_spans(text: Text, kind: str, lengths: list[int], name: str) -> np.ndarray:
    """Annotated spans of ``text`` along the sequence, int64 (k, 2), starts and stops.

    Raises:
        UnifiedError: the text has no annotation of this kind.
    """
    if kind not in text.spans:
        raise UnifiedError(
            f"{name}: needs the annotation {kind}, but this text has none (Text.spans); prepare the data with "
            f"{how_to_annotate([kind])}"
        )
    spans, first = text.spans[kind], len(text.tokens)
    in_first = spans[:, 0] < first
    if len(lengths) == 1:
        return spans[in_first] + 1
    return spans + np.where(in_first, 1, lengths[0] - first)[:, None]


def sequence_word_starts(text: Text, lengths: list[int], name: str) -> np.ndarray:
    """``Text.word_starts`` along the sequence, bool (T,); special symbols are words by themselves."""
    if text.word_starts is None:
        raise UnifiedError(
            f"{name}: whole words are wanted, but this text does not say where words begin (Text.word_starts is None); "
            "prepare the data with a tokenizer"
        )
    starts = np.ones(sum(lengths), dtype=bool)
    first = lengths[0] - 2
    starts[1 : 1 + first] = text.word_starts[:first]
    if len(lengths) == 2:
        starts[lengths[0] : -1] = text.word_starts[first:]
    return starts
