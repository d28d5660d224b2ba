"""The interface of tokenizers, and the table of word starts made from it."""

from __future__ import annotations

import itertools
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from unified.data.vocabulary import APPENDED, BEGIN, PAD, SEPARATOR, UNKNOWN, Vocabulary
from unified.errors import UnifiedError

SPECIAL_SYMBOLS = frozenset((BEGIN, PAD, SEPARATOR, UNKNOWN, *APPENDED))
_WORD = re.compile(r"\S+")


class Tokenizer(Protocol):
    """Text to pieces and back. Every run of Unicode whitespace in a text counts as one space.

    One at the beginning says that a word begins; none at the end counts. Tokenizers that mark the first word of every
    text as they mark words behind a space give the same with and without it.

    A *native id* is the tokenizer's own number of a piece; ids of a vocabulary come from
    ``vocabulary.encode(tokenizer.native_symbols())[native_id]``.
    """

    @property
    def bert_words(self) -> bool:
        """Whether it divides texts into the words of BERT's tokenizer, each mark by itself.

        Where spaces stood beside marks is then lost: :meth:`decode` gives texts :func:`.usual_spelling`.
        """

    def encode(self, text: str) -> list[str]:
        """Pieces of ``text``: the :meth:`native_symbols` of its ids."""

    def encode_ids(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Native ids of many texts, one after another, int32 (sum of sizes,), and the sizes, int64 (texts,)."""

    def encode_offsets(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids and sizes of :meth:`encode_ids`, and each token's characters in ``single_spaced(text)``, int64 (sum, 2).

        First character and the one behind the last; never empty, and neither column decreases within a text. Tokens
        that stand for one character together, as its bytes do, all have that character. Accents that the tokenizer
        takes off go with the token that they stand behind.
        """

    def decode(self, pieces: list[str]) -> str:
        """The text that pieces stand for, up to whitespace and the tokenizer's Unicode normalisation."""

    def native_symbols(self) -> list[str]:
        """Symbol of each native id; special ones under the vocabulary's names (``<s> <pad> </s> <unk> <mask>``)."""

    def word_start(self, symbol: str) -> bool | None:
        """True where ``symbol`` can only stand at the beginning of a word; None where no symbol of it tells."""

    def save(self, folder: str | Path) -> None:
        """Write the files from which ``load_tokenizer(folder)`` makes this tokenizer again."""


class ListedSymbols(ABC):
    """Base of tokenizers with a list of the symbols of their native ids, ``_symbols``."""

    _symbols: list[str]

    @abstractmethod
    def encode_ids(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Native ids of many texts and their numbers, see :meth:`Tokenizer.encode_ids`."""

    def encode(self, text: str) -> list[str]:
        """Pieces of ``text``, see :meth:`Tokenizer.encode`."""
        return [self._symbols[i] for i in self.encode_ids([text])[0].tolist()]

    def native_symbols(self) -> list[str]:
        """The symbol of each native id, special ones under the names of the vocabulary."""
        return list(self._symbols)


def ordinary_symbols(tokenizer: Tokenizer) -> list[str]:
    """Symbols without special ones, in the order of their ids, as ``Vocabulary(...)`` takes them.

    Raises:
        UnifiedError: a symbol is empty or holds whitespace, which ``dict.txt`` cannot say.
    """
    symbols = [symbol for symbol in tokenizer.native_symbols() if symbol not in SPECIAL_SYMBOLS]
    for symbol in symbols:
        if symbol.split() != [symbol]:
            raise UnifiedError(
                f"the tokenizer's piece {symbol!r} is empty or holds whitespace; dict.txt cannot hold it"
            )
    return symbols


def word_starts(tokenizer: Tokenizer, vocabulary: Vocabulary) -> np.ndarray | None:
    """bool (V,): True where the symbol of an id begins a word; so do special symbols, except perhaps ``<unk>``.

    None where the tokenizer's pieces do not tell where words begin.
    """
    alone = SPECIAL_SYMBOLS - {UNKNOWN}
    starts = [symbol in alone or tokenizer.word_start(symbol) for symbol in vocabulary.symbols]
    return None if None in starts else np.array(starts, dtype=bool)


def parts_of(source: str | Sequence[str]) -> list[str]:
    """The parts of a source: a text is one, a list of texts several, between which the separator stands."""
    return [source] if isinstance(source, str) else list(source)


def single_spaced(text: str) -> str:
    """``text`` with every run of Unicode whitespace as one space, none at the ends."""
    # No white space is printable but the space; most texts need no more than this look, which is much faster.
    if text.isprintable() and "  " not in text and not text.startswith(" ") and not text.endswith(" "):
        return text
    return " ".join(text.split())


def original_offsets(text: str, offsets: np.ndarray) -> np.ndarray:
    """Characters of ``text`` for those of ``single_spaced(text)``.

    Args:
        offsets: int64 (n, 2), the first character of each token and the one behind its last, none empty.

    Returns:
        The same of ``text``; a token that held a space holds the first character of the white space there.
    """
    words = np.array([match.span() for match in _WORD.finditer(text)]).reshape(-1, 2)
    if not len(words):
        return offsets
    sizes = words[:, 1] - words[:, 0] + 1  # with the space behind
    firsts = np.cumsum(sizes) - sizes
    characters = offsets - (0, 1)
    word = np.searchsorted(firsts, characters, side="right") - 1
    return characters + (words[:, 0] - firsts)[word] + (0, 1)


def with_accents(texts: Sequence[str], sizes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Characters of tokens with the combining marks behind them that no token has.

    Tokenizers that strip accents leave them out of their offsets: an answer that ends in one would lose it, in Hindi or
    Thai a vowel.

    Args:
        texts: single-spaced.
        sizes: int64 (texts,), tokens of each.
        offsets: int64 (sum of sizes, 2), neither column decreasing within a text.

    Returns:
        int64 (sum of sizes, 2).
    """
    found = offsets.copy()
    stops = np.cumsum(sizes)
    for text, start, stop in zip(texts, (stops - sizes).tolist(), stops.tolist(), strict=True):
        if text.isascii():
            continue
        ends = found[start:stop, 1]
        behind = np.append(found[start + 1 : stop, 0], len(text))[: len(ends)]
        for last in np.flatnonzero(ends < behind).tolist():
            before = end = int(ends[last])
            while end < behind[last] and unicodedata.category(text[end]) == "Mn":
                end += 1
            if end > before:  # several tokens may stand for the character that has the mark
                ends[np.searchsorted(ends[: last + 1], before) : last + 1] = end
    return found


def concatenated(ids: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Lists one after another, int32 (sum of sizes,), and their sizes, int64."""
    sizes = np.fromiter(map(len, ids), dtype=np.int64)
    return np.fromiter(itertools.chain.from_iterable(ids), dtype=np.int32), sizes


def pairs_of_integers(lists: list[list[tuple[int, int]]]) -> np.ndarray:
    """Lists of pairs one after another, int64 (n, 2)."""
    pairs = itertools.chain.from_iterable(lists)
    return np.fromiter(itertools.chain.from_iterable(pairs), dtype=np.int64).reshape(-1, 2)
