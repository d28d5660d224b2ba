"""Any tokenizer of the library ``tokenizers`` from its ``tokenizer.json``: BPE, byte-level BPE, Unigram.

BERT's WordPiece has a class of its own, :class:`unified.tokenization.wordpiece.WordPieceTokenizer`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from unified.arguments import counted
from unified.data.vocabulary import BEGIN, MASK, PAD, SEPARATOR, UNKNOWN
from unified.errors import UnifiedError
from unified.files.json_text import read_object
from unified.files.shapes import Maybe, misfit
from unified.files.whole import write_whole_text
from unified.tokenization.base import concatenated, pairs_of_integers, single_spaced, with_accents
from unified.tokenization.spelling import usual_spelling
from unified.tokenization.wordpiece_files import JSON_NAME, SETTINGS_NAME, named_entries

#: Fields of ``tokenizer_config.json`` that name the entry of one of our special symbols, the first that is there.
SPECIAL_FIELDS = {
    BEGIN: ("cls_token", "bos_token"),
    PAD: ("pad_token",),
    SEPARATOR: ("sep_token", "eos_token"),
    UNKNOWN: ("unk_token",),
    MASK: ("mask_token",),
}
#: Entries that are special symbols where no file says so.
_USUAL = {
    "<s>": BEGIN, "[CLS]": BEGIN, "<cls>": BEGIN, "<pad>": PAD, "[PAD]": PAD, "</s>": SEPARATOR, "[SEP]": SEPARATOR,
    "<sep>": SEPARATOR, "<unk>": UNKNOWN, "[UNK]": UNKNOWN, "<mask>": MASK, "[MASK]": MASK,
}  # fmt: skip
#: Values of ``tokenizer_class`` whose setting ``add_prefix_space`` counts in place of that in ``tokenizer.json``.
_PREFIX_CLASSES = ("RobertaTokenizer", "RobertaTokenizerFast", "GPT2Tokenizer", "GPT2TokenizerFast")
_LONGEST_ENTRY = 4096  # characters
#: Characters that begin a word in the pieces of a byte-level tokenizer, and of one with sentencepiece's rules.
_BYTE_LEVEL_SPACE, _METASPACE = "\u0120", "\u2581"
#: Stands for a space in the names of symbols, as ``dict.txt`` divides its lines at spaces.
_SPACE = "\u2423"


class JsonTokenizer:
    """A tokenizer that ``tokenizer.json`` describes, see :class:`unified.tokenization.Tokenizer`.

    Special symbols that are written in a text are text; other tokens that the file adds are found in it. What the file
    puts around texts is passed over. In the names of symbols, :data:`_SPACE` stands for a space.

    Args:
        content: what ``tokenizer.json`` holds.
        special: our special symbols by the entries that stand for them.
        name: where it came from, for messages.

    Raises:
        UnifiedError: the content is no tokenizer.
    """

    def __init__(self, content: dict[str, Any], special: Mapping[str, str], name: str = JSON_NAME):
        self._content, self._name = content, name
        self.entries = _entries(name, content)
        self.special = {entry: symbol for entry, symbol in special.items() if entry in set(self.entries)}
        self._symbols = [entry_symbol(entry, self.special).replace(" ", _SPACE) for entry in self.entries]
        self._entry_of = {
            symbol: entry for symbol, entry in zip(self._symbols, self.entries, strict=True) if " " in entry
        }
        plain = _plain(content, set(self.special))
        with refusals(f"{name}: not a tokenizer that the library tokenizers reads"):
            self._tokenizer = Tokenizer.from_str(json.dumps(plain))
        self._numbers = self._native_ids([one["content"] for one in plain["added_tokens"]])
        self._starts = _word_starts(content)
        self.bert_words = "BertPreTokenizer" in _step_fields(content, "type")

    @classmethod
    def load(cls, path: str | Path) -> JsonTokenizer:
        """Read ``tokenizer.json``, and the names of special symbols in ``tokenizer_config.json`` beside it."""
        path = Path(path)
        content, settings_file = read_object(path), path.with_name(SETTINGS_NAME)
        settings = read_object(settings_file) if settings_file.is_file() else {}
        content = _with_prefix_setting(content, settings)
        return cls(content, _special(settings, _entries(str(path), content)), str(path))

    @property
    def content(self) -> dict[str, Any]:
        """Content of ``tokenizer.json``."""
        return self._content

    def save(self, folder: str | Path) -> None:
        """Write the files from which :func:`unified.tokenization.load_tokenizer` makes this tokenizer again."""
        text = json.dumps(self._content, ensure_ascii=False)
        write_whole_text(Path(folder) / JSON_NAME, text + "\n")
        named = {symbol: entry for entry, symbol in self.special.items()}
        write_special(Path(folder) / SETTINGS_NAME, named)

    def encode(self, text: str) -> list[str]:
        """Pieces of ``text``, see :meth:`unified.tokenization.Tokenizer.encode`.

        White space at its beginning says that a word begins, as it does within a text.
        """
        with self._dividing():
            found = self._tokenizer.encode(self._read(text)).ids
        return [self._symbols[self._numbers[i]] for i in found]

    def encode_ids(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Native ids of many texts and their numbers, see :meth:`unified.tokenization.Tokenizer.encode_ids`."""
        with self._dividing():
            encoded = self._tokenizer.encode_batch_fast(list(map(self._read, texts)))
        ids, sizes = concatenated([encoding.ids for encoding in encoded])
        return self._numbers[ids], sizes

    def encode_offsets(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, sizes and characters of tokens, see :meth:`unified.tokenization.Tokenizer.encode_offsets`."""
        read = list(map(self._read, texts))
        with self._dividing():
            encoded = self._tokenizer.encode_batch(read)
        offsets = pairs_of_integers([encoding.offsets for encoding in encoded])
        ids, sizes = concatenated([encoding.ids for encoding in encoded])
        before = np.repeat([text.startswith(" ") for text in read], sizes)
        offsets = np.maximum(offsets - before[:, None], 0)
        # Pieces of one character, and the space before a text, may have no extent.
        offsets[:, 1] = np.maximum(offsets[:, 1], offsets[:, 0] + 1)
        return self._numbers[ids], sizes, with_accents([text.removeprefix(" ") for text in read], sizes, offsets)

    def _read(self, text: str) -> str:
        """``single_spaced(text)``, behind a space where white space begins it and the tokenizer marks no word there.

        Tokenizers that put a mark before every text do not tell whether a space stands there.
        """
        spaced = single_spaced(text)
        return f" {spaced}" if spaced and text[0].isspace() and self._begins_bare else spaced

    @cached_property
    def _begins_bare(self) -> bool:
        """Whether the first word of a text lacks the mark that words behind a space have."""
        if self._starts is None:
            return False
        normalizer, divider = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
        text = "a" if normalizer is None else normalizer.normalize_str("a")
        words = [text] if divider is None else [word for word, _ in divider.pre_tokenize_str(text)]
        return not any(word.startswith(self._starts) for word in words[:1])

    def _dividing(self) -> AbstractContextManager[None]:
        """Refuses what the tokenizer cannot divide, such as an unknown character where it has no unknown symbol."""
        return refusals(f"{self._name}: cannot divide a text into tokens")

    def decode(self, pieces: list[str]) -> str:
        """The text that ``pieces`` stand for."""
        decoder = self._tokenizer.decoder
        pieces = [self._entry_of.get(piece, piece) for piece in pieces]
        text = (" ".join(pieces) if decoder is None else decoder.decode(pieces)).strip()
        return usual_spelling(text) if self.bert_words else text

    def native_symbols(self) -> list[str]:
        """The symbol of each native id, special ones under the names of the vocabulary."""
        return list(self._symbols)

    def word_start(self, symbol: str) -> bool | None:
        """Whether ``symbol`` can only stand at the beginning of a word; None where pieces do not tell."""
        return None if self._starts is None else symbol.startswith(self._starts)

    def _native_ids(self, added: list[str]) -> np.ndarray:
        """int32, the number of an entry by the id that the library tokenizers gives it.

        Ids of ``added`` entries differ: it numbers them anew, as special symbols are not among them.
        """
        number_of = {entry: number for number, entry in enumerate(self.entries)}
        numbers = np.arange(len(self.entries) + len(added), dtype=np.int32)
        for entry in added:
            found = self._tokenizer.token_to_id(entry)
            if found is not None:  # it passes over an empty entry
                numbers[found] = number_of[entry]
        return numbers


def entry_symbol(entry: str, special: Mapping[str, str]) -> str:
    """Our name of an entry, given our special symbols by their entries."""
    if entry in special:
        return special[entry]
    # XLNet's <s>, for one, is not the first symbol of a sequence; the name is taken.
    return f"[{entry.strip('<>')}]" if entry in SPECIAL_FIELDS else entry


def added_token(number: int, entry: str) -> dict[str, Any]:
    """A special symbol among the ``added_tokens`` of a ``tokenizer.json``."""
    usual = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": entry, **usual}


def write_special(path: Path, entries: Mapping[str, str], **more: object) -> None:
    """Write a ``tokenizer_config.json`` for a folder with ``tokenizer.json``.

    Args:
        entries: the entry of each of our special symbols.
        more: further fields.
    """
    named = {SPECIAL_FIELDS[symbol][0]: entry for symbol, entry in entries.items()}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    content = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs, **named, **more}
    write_whole_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _with_prefix_setting(content: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The content with the classes' own setting of whether a space stands before a text, which counts there."""
    step, name = content.get("pre_tokenizer"), settings.get("tokenizer_class")
    if not isinstance(step, dict) or step.get("type") != "ByteLevel" or name not in _PREFIX_CLASSES:
        return content
    return {**content, "pre_tokenizer": {**step, "add_prefix_space": bool(settings.get("add_prefix_space", False))}}


def _special(settings: Mapping[str, Any], entries: list[str]) -> dict[str, str]:
    """Our special symbols by their entries: as the settings name them, else as they are usually called."""
    found, named = dict[str, str](), named_entries(settings)
    for symbol, fields in SPECIAL_FIELDS.items():
        names = [named[field] for field in fields if field in named]
        entry = next((name for name in names if name in entries and name not in found), None)
        if entry is None:
            entry = next((one for one in entries if _USUAL.get(one) == symbol and one not in found), None)
        if entry is not None:
            found[entry] = symbol
    return found


@contextmanager
def refusals(problem: str) -> Iterator[None]:
    """A ``with`` block in which the library tokenizers may refuse something.

    It raises Exception itself, no subclass; where its own code fails, an exception that is none of Python's Exceptions.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UnifiedError(f"{problem} ({error})") from None


def _entries(name: str, content: Mapping[str, Any]) -> list[str]:
    """Entries of the vocabulary and added tokens in the order of their ids."""
    model, added = content.get("model"), content.get("added_tokens") or []
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, list):  # of Unigram: entries with their scores
        entries = [entry[0] for entry in vocabulary if isinstance(entry, list) and len(entry) == 2]
        whole = len(entries) == len(vocabulary) and all(isinstance(entry, str) for entry in entries)
        vocabulary = {entry: i for i, entry in enumerate(entries)} if whole else None
    if not isinstance(vocabulary, dict) or misfit(added, [{"content": str, "id": Maybe(int)}], "added_tokens"):
        raise UnifiedError(f"{name}: has no vocabulary, or its added_tokens are not objects with a content")
    ids = {**vocabulary, **{one["content"]: one.get("id") for one in added}}
    too_long = [len(entry) for entry in ids if len(entry) > _LONGEST_ENTRY]
    if too_long:  # the library tokenizers would end the process
        raise UnifiedError(f"{name}: an entry of {max(too_long):,} characters; the longest may have {_LONGEST_ENTRY:,}")
    numbers = list(ids.values())
    if not all(type(number) is int for number in numbers) or sorted(numbers) != list(range(len(ids))):
        raise UnifiedError(
            f"{name}: the ids of its {counted(len(ids), 'entry', 'entries')} are not 0 to {len(ids) - 1}"
        )
    return sorted(ids, key=ids.__getitem__)


def _plain(content: Mapping[str, Any], special: set[str]) -> dict[str, Any]:
    """The tokenizer that reads special symbols in a text as text, and puts nothing around texts."""
    model, added = dict(content["model"]), content.get("added_tokens") or []
    special = special | {one["content"] for one in added if one.get("special")}
    added = [one for one in added if one["content"] not in special]
    # A model would find its own special pieces in a text. No word has a space at its ends.
    if isinstance(model["vocab"], list):
        model["vocab"] = [[f" {entry} " if entry in special else entry, score] for entry, score in model["vocab"]]
    else:
        unknown = model.get("unk_token")  # the model needs it, and a text that has its name is no known word either
        found = {entry for entry in special if entry != unknown}
        model["vocab"] = {f" {entry} " if entry in found else entry: i for entry, i in model["vocab"].items()}
        if isinstance(model.get("merges"), list):
            model["merges"] = [pair for pair in model["merges"] if found.isdisjoint(_merged(pair))]
    return {
        **content, "model": model, "added_tokens": added, "post_processor": None, "truncation": None, "padding": None
    }  # fmt: skip


def _merged(pair: object) -> list[str]:
    """Both entries of a merge of BPE, which older files have in one text, and the entry that it makes."""
    parts = list(map(str, pair)) if isinstance(pair, list) else str(pair).split(" ")
    return [*parts, "".join(parts)]


def _word_starts(content: Mapping[str, Any]) -> str | None:
    """Characters that only pieces at the beginning of a word begin with; None where pieces do not tell."""
    types = _step_fields(content, "type")
    if "ByteLevel" in types:
        return _BYTE_LEVEL_SPACE
    return _METASPACE if "Metaspace" in types or _METASPACE in _step_fields(content, "content") else None


def _step_fields(content: Mapping[str, Any], name: str) -> set[str]:
    """Values of a field in all steps that texts go through before the model."""
    steps, found = [content.get("pre_tokenizer"), content.get("normalizer")], set()
    while steps:
        step = steps.pop()
        if isinstance(step, dict):
            found.add(str(step.get(name)))
            inner = (step.get(several) for several in ("pretokenizers", "normalizers"))
            steps += [one for several in inner if isinstance(several, list) for one in several]
    return found
