"""Annotated spans beside a token file: ``PREFIX.KIND.bin`` and ``.idx``, in the format of token files.

Item i holds the spans of item i of ``PREFIX``: start and stop of each in turn, counted in tokens of the item, sorted.
Of parts of speech each span has the number of its tag in :data:`TAGS` behind its stop.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from unified.arguments import counted
from unified.data.token_files import TokenFile, exists
from unified.errors import UnifiedError

PARTS_OF_SPEECH = "parts_of_speech"
#: Annotations of documents: noun chunks and other nouns; named entities; every word with its part of speech.
KINDS = ("noun_phrases", "entities", PARTS_OF_SPEECH)
#: Parts of speech of Universal Dependencies; spans hold their numbers here.
TAGS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
#: Spans in the sources of pairs: their sentences, and those of them that an extractive summary takes.
SENTENCES, ORACLE = SOURCE_KINDS = ("sentences", "oracle")

_CHECKED_AT_ONCE = 1 << 16


def how_to_annotate(kinds: Collection[str]) -> str:
    """The option of ``unified prepare`` that makes data with these kinds."""
    if set(kinds) <= set(SOURCE_KINDS):
        return "--oracle, from the output of `unified pairs --oracle`"
    return f"--annotate {','.join(kinds)}"


def columns(kind: str) -> int:
    """Numbers that a span of this kind has: start and stop, and a tag where the kind has one."""
    return 3 if kind == PARTS_OF_SPEECH else 2


def span_prefix(prefix: str | os.PathLike[str], kind: str) -> str:
    """Path of the spans of one kind, without ``.bin`` or ``.idx``."""
    return f"{os.fspath(prefix)}.{kind}"


def source_spans(source: str | list[str], starts: Any, taken: Any) -> dict[str, list[tuple[int, int]]]:
    """Spans of characters by kind, of what a JSON line says about its source.

    Args:
        starts: where each sentence begins; it ends before the blank in front of the next.
        taken: numbers of the sentences that the oracle takes.

    Raises:
        ValueError: these are no such lists, or do not fit the source, or the source has several parts.
    """
    if not isinstance(source, str):
        raise ValueError("an extractive oracle needs a source of one part; this one has several")
    for name, values in ((SENTENCES, starts), (ORACLE, taken)):
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            raise ValueError(f"field {name!r} must be a list of whole numbers, got {values!r:.60}")
        if values != sorted(set(values)):
            raise ValueError(f"field {name!r} must hold increasing numbers, got {values!r:.60}")
    if not starts or starts[0] != 0 or starts[-1] >= len(source) or any(source[i - 1] != " " for i in starts[1:]):
        raise ValueError(f"field {SENTENCES!r} does not say where sentences of the source begin, got {starts!r:.60}")
    if source != " ".join(source.split()):
        raise ValueError("the source holds white space other than single blanks, so its sentences cannot be found")
    if taken and not 0 <= taken[0] <= taken[-1] < len(starts):
        raise ValueError(f"field {ORACLE!r} must hold numbers from 0 to {len(starts) - 1}, got {taken!r:.60}")
    sentences = list(zip(starts, [start - 1 for start in starts[1:]] + [len(source)], strict=True))
    return {SENTENCES: sentences, ORACLE: [sentences[number] for number in taken]}


class Spans(NamedTuple):
    """Spans of n things, such as items or texts, those of one after another.

    Attributes:
        bounds: int64 (k, 2), starts and stops; of kinds with a tag (k, 3), its number behind them.
        counts: int64 (n,), how many each has.
    """

    bounds: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, each: Sequence[np.ndarray]) -> Spans:
        """Concatenates the spans of n things, int64 (any, 2) or (any, 3) each."""
        return cls(np.concatenate(each), np.array([len(one) for one in each]))

    @property
    def owners(self) -> np.ndarray:
        """Index of the thing that each span belongs to, int64 (k,)."""
        return np.arange(len(self.counts)).repeat(self.counts)

    def kept(self, wanted: np.ndarray) -> Spans:
        """The spans that are ``wanted``, bool (k,)."""
        return Spans(self.bounds[wanted], np.bincount(self.owners[wanted], minlength=len(self.counts)))

    def moved(self, steps: np.ndarray) -> Spans:
        """Each span moved by its step, int64 (k,)."""
        bounds = self.bounds.copy()
        bounds[:, :2] += steps[:, None]
        return Spans(bounds, self.counts)

    def shifted(self, starts: np.ndarray) -> Spans:
        """The spans of each moved by its start, int64 (n,)."""
        return self.moved(starts[self.owners])

    def repeated(self, times: int) -> Spans:
        """The spans of all things again and again, one round after another."""
        return Spans(np.tile(self.bounds, (times, 1)), np.tile(self.counts, times))

    def split(self) -> list[np.ndarray]:
        """The spans of each text by itself, int64 (its spans, 2), as views."""
        return np.split(self.bounds, np.cumsum(self.counts)[:-1])


class Annotations:
    """The kinds of spans that lie beside a token file, read from disk as they are asked for.

    Raises:
        UnifiedError: a file is damaged, or belongs to other tokens.
    """

    def __init__(self, tokens: TokenFile):
        self._tokens = tokens
        there = [kind for kind in (*KINDS, *SOURCE_KINDS) if exists(span_prefix(tokens.prefix, kind))]
        self._files = {kind: TokenFile(span_prefix(tokens.prefix, kind)) for kind in there}
        for file in self._files.values():
            if len(file) != len(tokens):
                raise UnifiedError(
                    f"{file.prefix} annotates {counted(len(file), 'item')}, but {tokens.prefix} holds {len(tokens)}; "
                    "make the folder again with `unified prepare`"
                )

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that are there."""
        return frozenset(self._files)

    def check(self, at_once: int = _CHECKED_AT_ONCE) -> None:
        """Read the spans of all items once, those of ``at_once`` items at a time.

        Raises:
            UnifiedError: as :meth:`read`.
        """
        for kind in self._files:
            for first in range(0, len(self._tokens), at_once):
                self.read(kind, np.arange(first, min(first + at_once, len(self._tokens))))

    def read(self, kind: str, items: np.ndarray) -> Spans:
        """Spans of items, int64 (n,), each item's counted in its tokens and sorted.

        Raises:
            UnifiedError: a span is none, or reaches beyond its item.
        """
        file, width = self._files[kind], columns(kind)
        sizes = file.sizes[items].astype(np.int64)
        if (sizes % width).any():
            missing = "a start without a stop" if width == 2 else "a span without its tag"
            raise UnifiedError(f"{file.prefix}: holds {missing}; make the folder again")
        spans = Spans(file.tokens_of(items).reshape(-1, width), sizes // width)
        starts, stops, *tags = spans.bounds.T
        if tags and not ((tags[0] >= 0) & (tags[0] < len(TAGS))).all():
            raise UnifiedError(f"{file.prefix}: holds a tag that is no part of speech; make the folder again")
        wrong = (starts < 0) | (starts >= stops) | (stops >= self._tokens.sizes[items].repeat(spans.counts))
        if wrong.any():
            item = items[spans.owners[wrong.argmax()]]
            raise UnifiedError(f"{file.prefix}: item {item} has a span outside of its text; make the folder again")
        return spans
