"""Unigram, BPE and character tokenizers of the library ``sentencepiece`` (Kudo and Richardson 2018)."""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import sentencepiece

from unified.data.vocabulary import BEGIN, PAD, SEPARATOR, UNKNOWN
from unified.errors import UnifiedError
from unified.files.whole import write_whole_bytes, write_whole_text
from unified.tokenization.base import ListedSymbols, concatenated, pairs_of_integers, single_spaced

FILE_NAME = "tokenizer.model"
MODEL_TYPES = ("unigram", "bpe", "char")
NORMALIZATIONS = ("nmt_nfkc", "nfkc", "identity")
_SPACE = "\u2581"
# Sums of unigram training depend on how sentences are dealt to threads: the number must not depend on the machine.
_TRAINING_THREADS = 8
_DEFAULT_SIZE = 32000
#: Options of sentencepiece that its messages advise -> those of `unified prepare`.
_OPTIONS = {"vocab_size": "--vocabulary-size", "character_coverage": "--character-coverage"}


class SentencePieceTokenizer(ListedSymbols):
    """A sentencepiece model.

    Args:
        model: the serialized model.
        name: where it came from, for messages.

    Raises:
        UnifiedError: it is not a sentencepiece model.
    """

    bert_words = False

    def __init__(self, model: bytes, name: str = "the sentencepiece model"):
        self._model = model
        try:
            self.processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise UnifiedError(f"{name}: not a sentencepiece model, or a truncated one") from None
        if len(self.processor) == 0:
            raise UnifiedError(f"{name}: an empty sentencepiece model")
        try:
            #: The piece of each native id, as the model has it.
            self.entries: list[str] = self.processor.id_to_piece(list(range(len(self.processor))))
        except UnicodeDecodeError:
            raise UnifiedError(f"{name}: a damaged sentencepiece model, one of its pieces is not UTF-8") from None
        self._symbols = self._named()

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read ``*.model``."""
        return cls(Path(path).read_bytes(), name=os.fspath(path))

    def save(self, folder: str | Path) -> None:
        """Write the files from which :func:`unified.tokenization.load_tokenizer` makes this tokenizer again."""
        write_whole_bytes(Path(folder) / FILE_NAME, self._model)

    def _named(self) -> list[str]:
        """The pieces, special ones under the names of the vocabulary."""
        processor = self.processor
        names = {processor.bos_id(): BEGIN, processor.pad_id(): PAD, processor.eos_id(): SEPARATOR}
        names[processor.unk_id()] = UNKNOWN
        # A control piece of another library's model ("<cls>") never comes out of a text.
        names = {i: UNKNOWN for i in range(len(processor)) if processor.is_control(i)} | names
        return [names.get(i, piece) for i, piece in enumerate(self.entries)]

    @property
    def model(self) -> bytes:
        """The serialized model."""
        return self._model

    def encode_ids(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Native ids of many texts and their numbers, see :meth:`unified.tokenization.Tokenizer.encode_ids`."""
        encoded = self.processor.encode(_single_spaced(texts), return_type="numpy", num_threads=1)
        sizes = np.fromiter(map(len, encoded), dtype=np.int64)
        return np.concatenate([np.zeros(0, dtype=np.int32), *encoded]), sizes

    def encode_offsets(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Native ids, sizes and the characters of each token, see :class:`unified.tokenization.Tokenizer`."""
        encoded = self.processor.encode(_single_spaced(texts), out_type="offset_mapping", num_threads=1)
        flat, sizes = concatenated([text["ids"] for text in encoded])
        offsets = pairs_of_integers([text["offsets"] for text in encoded])
        # Where one character has several pieces, all but the last have no extent; nor has the space put before a text.
        offsets[:, 1] = np.maximum(offsets[:, 1], offsets[:, 0] + 1)
        return flat, sizes, offsets

    def decode(self, pieces: list[str]) -> str:
        """The text that ``pieces`` stand for."""
        return self.processor.decode(pieces)

    def word_start(self, symbol: str) -> bool:
        """Whether ``symbol`` can only stand at the beginning of a word."""
        return symbol.startswith(_SPACE)


def train_sentencepiece(
    lines: Iterable[str],
    model_type: str,
    vocabulary_size: int | None = None,
    character_coverage: float = 0.9995,
    normalization: str | None = None,
    lowercase: bool = False,
    byte_fallback: bool = False,
) -> SentencePieceTokenizer:
    """Train a tokenizer; the same lines give the same model on every machine.

    Args:
        lines: the text, no line above a few thousand characters.
        model_type: one of :data:`MODEL_TYPES`.
        vocabulary_size: number of pieces with the four special ones; None takes 32,000, or as many as the text gives.
            For "char" it is the largest number, and fewer characters are no error.
        character_coverage: share of the text's characters that get a piece of their own.
        normalization: one of :data:`NORMALIZATIONS`; None is "identity" for characters, else "nmt_nfkc".
        lowercase: fold case inside the model, so that every user of the file does.
        byte_fallback: characters without a piece become bytes instead of ``<unk>`` (256 more pieces).

    Raises:
        UnifiedError: sentencepiece cannot make such a model from this text; the message says why.
    """
    normalization = normalization or ("identity" if model_type == "char" else "nmt_nfkc")
    model = io.BytesIO()
    settings: dict[str, Any] = dict(
        model_type=model_type,
        vocab_size=vocabulary_size or _DEFAULT_SIZE,
        hard_vocab_limit=vocabulary_size is not None,
        character_coverage=character_coverage,
        byte_fallback=byte_fallback,
        # Ids and names as in fairseq, so that an id of the model is an id of the dictionary.
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        bos_piece=BEGIN,
        pad_piece=PAD,
        eos_piece=SEPARATOR,
        unk_piece=UNKNOWN,
        num_threads=_TRAINING_THREADS,
        max_sentence_length=1 << 20,
        minloglevel=3,
    )
    with tempfile.TemporaryDirectory() as folder:
        if lowercase and normalization == "identity":
            settings["normalization_rule_tsv"] = _lowercase_rules(folder)
        else:
            settings["normalization_rule_name"] = normalization + ("_cf" if lowercase else "")
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=map(single_spaced, lines), model_writer=model, **settings
            )
        except RuntimeError as error:
            raise UnifiedError(f"the {model_type} tokenizer cannot be trained: {_reason(error)}") from None
    found = model.getvalue()
    return SentencePieceTokenizer(_without_rules_file(found) if "normalization_rule_tsv" in settings else found)


def _single_spaced(texts: list[str]) -> list[str]:
    return [single_spaced(text) for text in texts]


def _lowercase_rules(folder: str) -> str:
    """A file of sentencepiece rules that lower every cased character and change nothing else."""
    path = Path(folder, "lowercase.tsv")
    cased = (character for character in map(chr, range(sys.maxunicode + 1)) if character.lower() != character)
    lines = (f"{ord(character):X}\t{' '.join(f'{ord(c):X}' for c in character.lower())}\n" for character in cased)
    write_whole_text(path, "".join(lines))
    return str(path)


def _without_rules_file(model: bytes) -> bytes:
    """The model without the path of its file of rules, which differs from run to run; it holds the rules themselves."""
    # Messages of Protocol Buffers one behind another are merged, the last value of a field counts: here an empty
    # normalization_rule_tsv (field 6) of the normalizer_spec (field 3).
    merged = model + bytes([3 << 3 | 2, 2, 6 << 3 | 2, 0])
    return sentencepiece.SentencePieceProcessor(model_proto=merged).serialized_model_proto()


def _reason(error: RuntimeError) -> str:
    """sentencepiece's sentence without its source file and condition, and with this library's names of its options."""
    said = str(error).rpartition("] ")[2].strip().rstrip(".") or "too little text"
    return re.sub("(?:--)?(vocab_size|character_coverage)", lambda name: _OPTIONS[name[1]], said)
