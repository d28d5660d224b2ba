"""XLNet's tokenizer: a sentencepiece model, and the changes that its published code makes to text and pieces."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Self

import numpy as np

from unified.data.vocabulary import BEGIN, MASK, PAD, SEPARATOR, UNKNOWN
from unified.errors import UnifiedError
from unified.files.whole import write_whole_bytes
from unified.tokenization.base import concatenated, pairs_of_integers, single_spaced
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer
from unified.tokenization.wordpiece_files import JSON_NAME, SETTINGS_NAME, read_settings

FILE_NAME = "xlnet.model"
#: Name of that file in folders of ``transformers`` and of the published code.
PIECES_NAME = "spiece.model"
_SPACE = "\u2581"
#: Two marks that become a quotation mark, or one character.
_CHARACTER = re.compile("``|''|.", re.DOTALL)
#: XLNet's special symbols and ours; the first and last of a sequence, which it does not use, get names that are free.
_NAMES = {
    "<cls>": BEGIN,
    "<sep>": SEPARATOR,
    "<pad>": PAD,
    "<unk>": UNKNOWN,
    "<mask>": MASK,
    "<s>": "<bos>",
    "</s>": "<eos>",
}


class XLNetTokenizer(SentencePieceTokenizer):
    """Published ``prepro_utils.py``: quotes of two marks become one, accents go, commas behind digits stand alone."""

    def __init__(self, model: bytes, name: str = "the sentencepiece model"):
        super().__init__(model, name)
        missing = [symbol for symbol in _NAMES if symbol not in self.entries]
        if missing:
            raise UnifiedError(f"{name}: not an XLNet's model: it has no piece {', '.join(missing)}")
        self._ends_in_comma = frozenset(i for i, piece in enumerate(self.entries) if comma_behind_digit(piece))

    def _named(self) -> list[str]:
        return [_NAMES.get(piece, piece) for piece in self.entries]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read ``xlnet.model`` or ``spiece.model``.

        Raises:
            UnifiedError: it is not XLNet's, or ``tokenizer_config.json`` beside it says that it lowers case.
        """
        path = Path(path)
        settings = path.with_name(SETTINGS_NAME)
        if path.name == PIECES_NAME and read_settings(settings).get("lowercase"):
            raise UnifiedError(
                f"{settings}: do_lower_case true, which is not read beside {PIECES_NAME}; put {JSON_NAME}, which "
                "`AutoTokenizer.from_pretrained(...).save_pretrained(...)` writes, in its place"
            )
        return super().load(path)

    def save(self, folder: str | Path) -> None:
        """Write the files from which :func:`unified.tokenization.load_tokenizer` makes this tokenizer again."""
        write_whole_bytes(Path(folder) / FILE_NAME, self._model)

    def encode_ids(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Native ids of many texts and their numbers, see :meth:`unified.tokenization.Tokenizer.encode_ids`."""
        return concatenated([self._ids(text) for text in texts])

    def encode_offsets(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, sizes and characters of tokens, see :meth:`unified.tokenization.Tokenizer.encode_offsets`."""
        found = [self._ids_and_spans(single_spaced(text)) for text in texts]
        return *concatenated([ids for ids, _ in found]), pairs_of_integers([spans for _, spans in found])

    def _ids(self, text: str) -> list[int]:
        ids = self.processor.encode(prepared(text), out_type=int)
        if self._ends_in_comma.isdisjoint(ids):
            return ids
        divided: list[int] = []
        for i in ids:
            divided += self._without_comma(self.entries[i]) if i in self._ends_in_comma else [i]
        return divided

    def _ids_and_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids of a single-spaced text, and the characters of it that each stands for."""
        shown, begins, ends = prepared_characters(text)
        encoded = self.processor.encode(shown, out_type="offset_mapping")
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for i, (begin, end) in zip(encoded["ids"], encoded["offsets"], strict=True):
            if i in self._ends_in_comma:
                pieces = self._without_comma(self.entries[i])
                ids += pieces
                spans += _divided(begin, end, [self.entries[piece].lstrip(_SPACE) for piece in pieces], shown)
            else:
                ids.append(i)
                # Where one character has several pieces, all but the last have no extent.
                spans.append((begin, max(end, begin + 1)))
        return ids, [(begins[begin], ends[end - 1]) for begin, end in spans]

    def _without_comma(self, piece: str) -> list[int]:
        """Ids of "9" and "," for the piece "9,"; the number keeps or lacks its space as the piece does."""
        number = self.processor.encode(piece[:-1].replace(_SPACE, ""), out_type=str)
        if not piece.startswith(_SPACE) and number[0].startswith(_SPACE):
            number = number[1:] if number[0] == _SPACE else [number[0][1:], *number[1:]]
        return [self.processor.piece_to_id(piece) for piece in [*number, ","]]


def prepared(text: str) -> str:
    """``text`` as the sentencepiece model expects it (published ``preprocess_text`` with its defaults)."""
    text = single_spaced(text).replace("``", '"').replace("''", '"')
    return "".join(mark for mark in unicodedata.normalize("NFKD", text) if not unicodedata.combining(mark))


def prepared_characters(text: str) -> tuple[str, list[int], list[int]]:
    """``prepared(text)`` of a single-spaced text, and which characters of ``text`` each of its own stands for.

    These are the first and the one behind the last, marks that go with it included.
    """
    shown: list[str] = []
    begins: list[int] = []
    ends: list[int] = []
    for match in _CHARACTER.finditer(text):
        character = '"' if len(match[0]) > 1 else match[0]
        kept = [mark for mark in unicodedata.normalize("NFKD", character) if not unicodedata.combining(mark)]
        shown += kept
        begins += [match.start()] * len(kept)
        ends += [match.end()] * len(kept)
        if not kept and ends:
            ends[-1] = match.end()
    return "".join(shown), begins, ends


def _divided(begin: int, end: int, pieces: list[str], shown: str) -> list[tuple[int, int]]:
    """Characters of the pieces of a piece, a number and the comma behind it; all of the number where they differ."""
    first = begin + (shown[begin] == " ")
    number = pieces[:-1]
    if sum(map(len, number)) != end - 1 - first:
        return [*((begin, end - 1) for _ in number), (end - 1, end)]
    spans = []
    for piece in number:
        spans.append((begin, max(first + len(piece), begin + 1)))
        begin = first = first + len(piece)
    return [*spans, (end - 1, end)]


def is_xlnet(path: Path) -> bool:
    """Whether a sentencepiece model has XLNet's special symbols; ALBERT's and T5's are called ``spiece.model``, too.

    Raises:
        UnifiedError: it is not a sentencepiece model.
    """
    return _NAMES.keys() <= set(SentencePieceTokenizer.load(path).entries)


def comma_behind_digit(piece: str) -> bool:
    """Whether a piece ends in a digit and a comma, which the published code parts."""
    return len(piece) > 1 and piece.endswith(",") and piece[-2].isdigit()
