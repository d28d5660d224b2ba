"""Text whose tokens are separated by white space already, as in folders of plain ``fairseq-preprocess``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unified.data.vocabulary import UNKNOWN
from unified.tokenization.base import ListedSymbols, concatenated, pairs_of_integers, single_spaced

_SYMBOL = re.compile(r"\S+")


class SymbolTokenizer(ListedSymbols):
    """Divides text at white space; each part is a symbol of the dictionary, or unknown.

    Args:
        symbols: of the dictionary, in the order of their ids.
    """

    bert_words = False

    def __init__(self, symbols: Sequence[str]):
        self._symbols = list(symbols)
        self._ids = {symbol: i for i, symbol in enumerate(self._symbols)}

    def encode_ids(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Native ids of many texts and their numbers, see :meth:`unified.tokenization.Tokenizer.encode_ids`."""
        unknown = self._ids[UNKNOWN]
        return concatenated([[self._ids.get(symbol, unknown) for symbol in text.split()] for text in texts])

    def encode_offsets(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, sizes and characters of tokens, see :meth:`unified.tokenization.Tokenizer.encode_offsets`."""
        spans = [[match.span() for match in _SYMBOL.finditer(single_spaced(text))] for text in texts]
        return *self.encode_ids(texts), pairs_of_integers(spans)

    def decode(self, pieces: list[str]) -> str:
        """The text that ``pieces`` stand for."""
        return " ".join(pieces)

    def word_start(self, symbol: str) -> bool:
        """Whether ``symbol`` can only stand at the beginning of a word."""
        return True

    def save(self, folder: str | Path) -> None:
        """Writes nothing: the dictionary is all there is to know."""
