"""The data folder's own tokenizer in the form of fairseq's --bpe."""

from __future__ import annotations

from pathlib import Path

from unified.tokenization import Tokenizer, load_tokenizer, tokenizer_files


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
