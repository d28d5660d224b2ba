"""Spelling of single marks, such as a full stop or the separator of sentences, in a vocabulary."""

from __future__ import annotations

from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import Tokenizer

_WORD_START = "\u2581"


def symbol_pieces(tokenizer: Tokenizer, vocabulary: Vocabulary, mark: str) -> list[str]:
    """The symbols of ``mark`` behind a word and by itself, as far as they are known; in order, each once."""
    written = (tokenizer.encode(text)[-1] for text in (f"a {mark}", f"a{mark}"))
    return sorted({piece for piece in written if vocabulary.index(piece) != vocabulary.special.unknown})


def require_symbol(tokenizer: Tokenizer, vocabulary: Vocabulary, separator: str) -> None:
    """Refuse a tokenizer that cuts the separator of sentences.

    Raises:
        UnifiedError: the tokenizer does not keep the separator as one piece of its own.
    """
    known = [piece.removeprefix(_WORD_START) for piece in symbol_pieces(tokenizer, vocabulary, separator)]
    alone = [piece.removeprefix(_WORD_START) for piece in tokenizer.encode(f"a {separator} a")]
    if separator not in known or alone.count(separator) != 1:
        raise UnifiedError(f"the tokenizer has no piece for the separator {separator!r}; choose another symbol")
