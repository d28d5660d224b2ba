"""The data folder's own tokenizer in the form of fairseq's --bpe."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unified.data.vocabulary import Vocabulary
from unified.tokenization import Tokenizer, load_tokenizer, tokenizer_files, word_starts


class FolderTokenizer:
    """Text to pieces joined by blanks, and back."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer

    @classmethod
    def of(cls, folder: Path) -> FolderTokenizer | None:
        """The tokenizer that `unified prepare` left in ``folder``; None for folders of plain fairseq-preprocess."""
        return cls(load_tokenizer(folder)) if tokenizer_files(folder) else None

    def encode(self, text: str) -> str:
        """Pieces of ``text``, separated by spaces."""
        return " ".join(self.tokenizer.encode(text))

    def decode(self, pieces: str) -> str:
        """The text of pieces that spaces separate."""
        return self.tokenizer.decode(pieces.split())

    def word_starts(self, vocabulary: Vocabulary) -> np.ndarray | None:
        """bool (V,), True where a symbol begins a word; None where the tokenizer's pieces do not tell."""
        return word_starts(self.tokenizer, vocabulary)
