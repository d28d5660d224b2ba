"""BERT's WordPiece tokenizer, run and trained by the library ``tokenizers``."""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from unified.arguments import counted, shown
from unified.data.vocabulary import BEGIN, MASK, PAD, SEPARATOR, UNKNOWN
from unified.errors import UnifiedError
from unified.files.json_text import read_object
from unified.files.whole import write_whole_text
from unified.tokenization.base import ListedSymbols, concatenated, pairs_of_integers, single_spaced, with_accents
from unified.tokenization.json_tokenizer import SPECIAL_FIELDS, entry_symbol
from unified.tokenization.spelling import usual_spelling
from unified.tokenization.wordpiece_files import (
    CONTINUATION,
    JSON_NAME,
    LONGEST_WORD,
    SETTINGS_NAME,
    VOCABULARY_NAME,
    named_entries,
    read_added,
    read_entries,
    read_json,
    read_settings,
    require_berts,
    write_settings,
)

#: Symbols of the special entries that BERT's vocabularies hold, where no file names others.
SPECIAL_ENTRIES = {"[PAD]": PAD, "[UNK]": UNKNOWN, "[CLS]": BEGIN, "[SEP]": SEPARATOR, "[MASK]": MASK}
_DEFAULT_SIZE = 32000


class WordPieceTokenizer(ListedSymbols):
    """Words and punctuation marks, each divided into the longest known pieces from the left (Devlin et al. 2019).

    Args:
        entries: the vocabulary in the order of ``vocab.txt``; ``[UNK]`` must be there.
        lowercase: lower-case the text first, as the published uncased models want.
        name: where the entries came from, for messages.
        strip_accents: take accents off letters first; None does so where the text is lower-cased, as BERT does.
        split_chinese: make each Chinese character a word of its own, as BERT does.
        special: our special symbols by the entries that stand for them; None for those that are called as usual.

    Raises:
        UnifiedError: ``[UNK]`` is missing or an entry is listed twice.
    """

    bert_words = True

    def __init__(
        self,
        entries: list[str],
        lowercase: bool = False,
        name: str = "the WordPiece vocabulary",
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        special: Mapping[str, str] | None = None,
    ):
        self.entries, self.special = entries, dict(special or _special(entries, {}))
        self._symbols = [entry_symbol(entry, self.special) for entry in entries]
        self.lowercase, self.strip_accents, self.split_chinese = lowercase, strip_accents, split_chinese
        if len(set(entries)) < len(entries):
            twice = next(entry for entry, count in Counter(entries).items() if count > 1)
            raise UnifiedError(f"{name}: lists {twice!r} twice; each entry may appear once")
        if "[UNK]" not in entries:
            raise UnifiedError(
                f"{name}: no [UNK] among its {counted(len(entries), 'entry', 'entries')}; is it a WordPiece vocabulary?"
            )
        # "[MASK]" in a text is a bracketed word, never the symbol. An entry that is called like a word is no word of a
        # text by the spaces around it, which no word has; the model needs the one of unknown words as it is.
        hidden = {entry for entry, symbol in self.special.items() if symbol != UNKNOWN}
        vocabulary = {f" {entry} " if entry in hidden else entry: i for i, entry in enumerate(entries)}
        model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD)
        self._tokenizer = Tokenizer(model)
        self._tokenizer.normalizer = _normalizer(lowercase, strip_accents, split_chinese)
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    @classmethod
    def load(cls, path: str | Path, lowercase: bool | None = None) -> WordPieceTokenizer:
        """Read ``vocab.txt``, or the ``tokenizer.json`` of ``transformers`` 5.

        Settings are those in ``tokenizer_config.json`` beside it, else those in ``tokenizer.json``, else the defaults.

        Args:
            lowercase: what ``lowercase`` must be, where one of the files states it, and is where none does; None there
                takes a vocabulary without capital letters for an uncased one.

        Raises:
            UnifiedError: a file is not what it should be, adds tokens that texts may contain, is of another
                tokenizer than BERT's, or states another ``lowercase`` than was asked for.
        """
        path = Path(path)
        require_berts(path)
        if path.name == JSON_NAME:
            entries, settings = read_json(path)
        else:
            entries, settings = read_entries(path), {}
            entries += read_added(path.parent, entries)
        settings |= read_settings(path.with_name(SETTINGS_NAME))
        special = _special(entries, _named(path.with_name(SETTINGS_NAME)))
        stated = settings.setdefault("lowercase", not _has_capitals(entries) if lowercase is None else lowercase)
        if lowercase not in (None, stated):
            raise UnifiedError(f"{path}: lower case was asked to be {lowercase}, the tokenizer's files say {stated}")
        return cls(entries, name=os.fspath(path), special=special, **settings)

    def save(self, folder: str | Path) -> None:
        """Write the files from which :func:`unified.tokenization.load_tokenizer` makes this tokenizer again."""
        text = "".join(f"{entry}\n" for entry in self.entries)
        write_whole_text(Path(folder) / VOCABULARY_NAME, text)
        named = {
            SPECIAL_FIELDS[symbol][0]: entry
            for entry, symbol in self.special.items()
            if SPECIAL_ENTRIES.get(entry) != symbol
        }
        write_settings(Path(folder) / SETTINGS_NAME, self._settings, named)

    @property
    def content(self) -> dict[str, Any]:
        """Content of its ``tokenizer.json``, without special symbols, which no text contains."""
        content = json.loads(self._tokenizer.to_str())
        content["model"]["vocab"] = {entry: i for i, entry in enumerate(self.entries)}
        return content

    def with_entries(self, more: list[str]) -> WordPieceTokenizer:
        """A copy of the tokenizer with ``more`` entries behind its own."""
        return WordPieceTokenizer(
            [*self.entries, *more],
            lowercase=self.lowercase,
            strip_accents=self.strip_accents,
            split_chinese=self.split_chinese,
            special=self.special,
        )

    @property
    def _settings(self) -> dict[str, bool | None]:
        return {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_chinese": self.split_chinese,
        }

    def encode_ids(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Native ids of many texts in one array, and how many each has.

        See :meth:`unified.tokenization.Tokenizer.encode_ids`.
        """
        encoded = self._tokenizer.encode_batch_fast([single_spaced(text) for text in texts])
        return concatenated([encoding.ids for encoding in encoded])

    def encode_offsets(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, sizes and characters of tokens, see :meth:`unified.tokenization.Tokenizer.encode_offsets`."""
        texts = [single_spaced(text) for text in texts]
        encoded = self._tokenizer.encode_batch(texts)
        offsets = pairs_of_integers([encoding.offsets for encoding in encoded])
        ids, sizes = concatenated([encoding.ids for encoding in encoded])
        return ids, sizes, with_accents(texts, sizes, offsets)

    def decode(self, pieces: list[str]) -> str:
        """The text that ``pieces`` stand for, in :func:`.usual_spelling`."""
        return usual_spelling(" ".join(pieces).replace(" " + CONTINUATION, ""))

    def word_start(self, symbol: str) -> bool:
        """Whether ``symbol`` can only stand at the beginning of a word."""
        return not symbol.startswith(CONTINUATION)


def train_wordpiece(
    lines: Iterable[str],
    vocabulary_size: int | None = None,
    character_coverage: float = 0.9995,
    lowercase: bool = False,
) -> WordPieceTokenizer:
    """Train a WordPiece vocabulary; the same lines give the same entries in every run.

    Args:
        lines: the text.
        vocabulary_size: number of entries with the five special ones; None takes 32,000, or as many as the text gives.
        character_coverage: share of the text's characters that get an entry of their own.
        lowercase: as in :class:`WordPieceTokenizer`.

    Raises:
        UnifiedError: there is no text, its characters alone exceed the size, or it gives fewer entries than asked for.
    """
    normalize = _normalizer(lowercase).normalize_str
    normalized = [normalize(single_spaced(line)) for line in lines]
    alphabet, dropped = _alphabet(normalized, character_coverage)
    if not alphabet:
        raise UnifiedError("the WordPiece tokenizer cannot be trained: there is no text")
    without = str.maketrans(dropped, " " * len(dropped))
    normalized = [line.translate(without) for line in normalized]
    # The trainer numbers "##x" in the order of a hash table, which differs between runs and decides its ties; listed as
    # special symbols they have their numbers beforehand.
    beginning = [*SPECIAL_ENTRIES, *alphabet, *_continuations(normalized)]
    if vocabulary_size is not None and vocabulary_size < len(beginning):
        raise UnifiedError(
            f"the WordPiece tokenizer cannot be trained: {vocabulary_size} entries do not hold the {len(beginning)} "
            "characters and special symbols; ask for more entries or less --character-coverage"
        )
    tokenizer = Tokenizer(models.WordPiece())
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size or _DEFAULT_SIZE, min_frequency=2, special_tokens=beginning, show_progress=False
    )
    tokenizer.train_from_iterator(normalized, trainer)
    entries = [entry for entry, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    if vocabulary_size is not None and len(entries) < vocabulary_size:
        raise UnifiedError(
            f"the WordPiece tokenizer cannot be trained: the text gives {counted(len(entries), 'entry', 'entries')}, "
            f"fewer than --vocabulary-size {vocabulary_size}"
        )
    return WordPieceTokenizer(entries, lowercase)


def _has_capitals(entries: list[str]) -> bool:
    """Whether any entry but ``[CLS]`` and the like has a capital letter: those of uncased models have none."""
    words = [entry for entry in entries if not (entry.startswith("[") and entry.endswith("]"))]
    return any(word != word.lower() for word in words)


def _named(path: Path) -> dict[str, str]:
    """Entries of special symbols by their fields, as a ``tokenizer_config.json`` names them.

    Raises:
        UnifiedError: it names another entry than ``[UNK]`` for unknown words.
    """
    named = named_entries(read_object(path)) if path.is_file() else {}
    unknown = named.get("unk_token", "[UNK]")
    if unknown != "[UNK]":
        raise UnifiedError(f"{path}: unk_token {shown(unknown)}, not '[UNK]'; no other is built for WordPiece")
    return named


def _special(entries: list[str], named: Mapping[str, str]) -> dict[str, str]:
    """Our special symbols by their entries: those that are named, else BERT's, else those that are called like them."""
    known, found = set(entries), dict[str, str]()
    for usual, symbol in SPECIAL_ENTRIES.items():
        entry = next((one for one in (named.get(SPECIAL_FIELDS[symbol][0]), usual, symbol) if one in known), usual)
        found[entry] = symbol
    return found


def _normalizer(
    lowercase: bool, strip_accents: bool | None = None, split_chinese: bool = True
) -> normalizers.Normalizer:
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=split_chinese,
        strip_accents=lowercase if strip_accents is None else strip_accents,
        lowercase=lowercase,
    )


def _alphabet(lines: list[str], coverage: float) -> tuple[list[str], str]:
    """The most frequent characters that make up ``coverage`` of the text, sorted, and all others."""
    counts = Counter(itertools.chain.from_iterable(lines))
    for space in [character for character in counts if character.isspace()]:
        del counts[space]
    by_count = sorted(counts, key=lambda character: (-counts[character], character))
    reached = np.cumsum([counts[character] for character in by_count])
    kept = int(np.searchsorted(reached, coverage * counts.total())) + 1
    return sorted(by_count[:kept]), "".join(by_count[kept:])


def _continuations(lines: list[str]) -> list[str]:
    """``##x`` for every character x that occurs inside a word, sorted."""
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    words = {word for line in lines for word, _ in split(line)}
    return sorted({CONTINUATION + character for word in words for character in word[1:]})
