"""Text to pieces and back: sentencepiece models, WordPiece and ANNA vocabularies behind one protocol."""

from __future__ import annotations

from pathlib import Path

from unified.errors import UnifiedError
from unified.tokenization.base import (
    Tokenizer,
    ordinary_symbols,
    original_offsets,
    parts_of,
    single_spaced,
    word_starts,
)
from unified.tokenization.wordpiece_files import JSON_NAME, is_wordpiece

__all__ = [
    "FILES",
    "Tokenizer",
    "load_tokenizer",
    "ordinary_symbols",
    "original_offsets",
    "parts_of",
    "single_spaced",
    "tokenizer_files",
    "word_starts",
]

#: Files of which a prepared folder holds one: its tokenizer. Beside another, ``tokenizer.json`` says the same again.
FILES = ("tokenizer.model", "vocab.txt", "anna.json", "xlnet.model", JSON_NAME)


def tokenizer_files(folder: str | Path) -> list[str]:
    """Names of the files in ``folder`` that are tokenizers; a folder of plain ``fairseq-preprocess`` has none."""
    found = [name for name in FILES if (Path(folder) / name).is_file()]
    return found[:-1] if len(found) > 1 and found[-1] == JSON_NAME else found


def load_tokenizer(path: str | Path, lowercase: bool | None = None) -> Tokenizer:
    """The tokenizer of a prepared folder, a sentencepiece model, a WordPiece ``vocab.txt`` or an ``anna.json``.

    Args:
        path: the file (``*.txt`` is a WordPiece vocabulary, ``tokenizer.json`` any tokenizer as ``transformers`` 5
            writes it, any other ``*.json`` ANNA's), or a folder with one of :data:`FILES`.
        lowercase: for a WordPiece vocabulary whose folder does not say whether it is uncased.

    Raises:
        UnifiedError: there is no such file, or it is not a tokenizer.
    """
    # Each library is imported only where its files are met.
    from unified.tokenization import anna, json_tokenizer, sentencepiece_tokenizer, wordpiece, xlnet

    path = Path(path)
    if path.is_dir():
        found = tokenizer_files(path)
        if not found:
            raise UnifiedError(f"{path}: holds no tokenizer; one of {', '.join(FILES)} is needed")
        if len(found) > 1:
            raise UnifiedError(f"{path}: holds {' and '.join(found)}; only one may be there")
        path = path / found[0]
    if not path.is_file():
        raise UnifiedError(f"{path}: no such tokenizer file")
    if path.suffix == ".txt" or (path.name == JSON_NAME and is_wordpiece(path)):
        return wordpiece.WordPieceTokenizer.load(path, lowercase)
    if lowercase is not None:
        raise UnifiedError(f"{path}: this tokenizer has its own rules for case; leave --lowercase out")
    if path.name == JSON_NAME:
        return json_tokenizer.JsonTokenizer.load(path)
    if path.suffix == ".json":
        return anna.AnnaTokenizer.load(path)
    if path.name == xlnet.FILE_NAME:
        return xlnet.XLNetTokenizer.load(path)
    return sentencepiece_tokenizer.SentencePieceTokenizer.load(path)
