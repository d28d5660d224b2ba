"""Passages of a corpus: a uniform sample of its paragraphs of some length."""

from __future__ import annotations

import hashlib
import heapq
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from unified.corpus.readers import DocumentCorpus
from unified.errors import UnifiedError


@dataclass(frozen=True, order=True)
class Passage:
    """A paragraph.

    Attributes:
        document, paragraph: its number among the corpus' documents, and among those of its document, both from 0.
        text: without white space at its ends.
    """

    document: int
    paragraph: int
    text: str

    @property
    def id(self) -> str:
        """The numbers of its document and paragraph."""
        return f"{self.document}.{self.paragraph}"


def sample_passages(
    paths: Sequence[str], text_field: str, count: int | None, words: tuple[int, int], seed: int
) -> list[Passage]:
    """``count`` paragraphs of documents, or all, in the order of the corpus; memory holds these alone.

    Each different text is as likely as any other, however often it occurs and in whatever order files are named.

    Args:
        paths: files as ``unified prepare`` takes them, see :class:`unified.corpus.readers.DocumentCorpus`.
        text_field: of JSON lines.
        words: fewest and most words between white space.

    Raises:
        UnifiedError: a file cannot be read, or no paragraph is that long.
    """
    kept: list[tuple[int, Passage]] = []  # (-key, passage): the largest key on top
    known: set[int] = set()
    shortest, longest = sys.maxsize, 0  # words of all paragraphs
    for passage in _passages(DocumentCorpus(tuple(paths), text_field)):
        length = len(passage.text.split())
        shortest, longest = min(shortest, length), max(longest, length)
        if not words[0] <= length <= words[1]:
            continue
        key = int.from_bytes(hashlib.blake2b(f"{seed}\n{passage.text}".encode(), digest_size=16).digest())
        if key in known or (len(kept) == count and key > -kept[0][0]):
            continue
        known.add(key)
        heapq.heappush(kept, (-key, passage))
        if count is not None and len(kept) > count:
            known.remove(-heapq.heappop(kept)[0])
    if not longest:
        raise UnifiedError(f"{', '.join(paths)}: no text; passages are paragraphs of a text")
    if not kept:
        raise UnifiedError(
            f"{', '.join(paths)}: no paragraph of {words[0]} to {words[1]} words; the shortest has {shortest:,}, the "
            f"longest {longest:,}; change --words"
        )
    return sorted(passage for _, passage in kept)


def _passages(corpus: DocumentCorpus) -> Iterator[Passage]:
    for document, paragraphs in groupby(_paragraphs(corpus), key=itemgetter(0)):
        for number, (_, text) in enumerate(paragraphs):
            yield Passage(document, number, text.strip())


def _paragraphs(corpus: DocumentCorpus) -> Iterable[tuple[int, str]]:
    for chunk in corpus.chunks(skip_empty=True):
        for document, paragraphs in chunk.documents():  # one document may go on in the next chunk
            for text in paragraphs:
                yield document, text
