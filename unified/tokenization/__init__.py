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
from unified.tokenization.wordpiece_files import JSON_NAME, VOCABULARY_NAME, is_wordpiece

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

#: Files of which one is the tokenizer of a prepared folder, or of a folder of ``transformers``.
FILES = ("tokenizer.model", VOCABULARY_NAME, "anna.json", "xlnet.model", "spiece.model", JSON_NAME)
#: Patterns of these files and of those that belong to them, for advice.
PATTERNS = "tokenizer*, vocab.txt, anna.json, *.model"


def tokenizer_files(folder: str | Path) -> list[str]:
    """Names of the files in ``folder`` that its tokenizer is read from; plain ``fairseq-preprocess`` makes none.

    It is one file, or several where the folder does not say which counts. Beside ``tokenizer.json`` a file of this
    library or XLNet's ``spiece.model`` counts, of which it is a copy; else ``tokenizer.json``, as in ``transformers``.
    """
    folder = Path(folder)
    found = [name for name in FILES if (folder / name).is_file()]
    if JSON_NAME not in found:
        return found
    return [name for name in found[:-1] if _counts_beside_json(folder / name)] or [JSON_NAME]


def _counts_beside_json(path: Path) -> bool:
    if path.name == "spiece.model":
        from unified.tokenization.xlnet import is_xlnet

        return is_xlnet(path)
    if path.name == "tokenizer.model":  # Llama's and others' have this name, too
        return any(path.parent.glob("dict*.txt"))
    return path.name != VOCABULARY_NAME


def load_tokenizer(path: str | Path, lowercase: bool | None = None) -> Tokenizer:
    """The tokenizer of a folder, a sentencepiece model, a WordPiece ``vocab.txt`` or an ``anna.json``.

    Args:
        path: the file (``*.txt`` is a WordPiece vocabulary, ``tokenizer.json`` any tokenizer as ``transformers`` 5
            writes it, any other ``*.json`` ANNA's), or a folder, prepared or of ``transformers``, with one of
            :data:`FILES`, see :func:`tokenizer_files`.
        lowercase: for a WordPiece vocabulary whose folder does not say whether it is uncased; None takes it for uncased
            where no entry has a capital letter.

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
    if path.name in (xlnet.FILE_NAME, xlnet.PIECES_NAME):
        return xlnet.XLNetTokenizer.load(path)
    return sentencepiece_tokenizer.SentencePieceTokenizer.load(path)
