"""ANNA's tokenizer: frequent words of the text stay whole, punctuation and all; WordPiece divides the others.

Jun et al. 2022: 70 % of the vocabulary are words of noun phrases in their surface form, 30 % WordPieces. A
chunk between white space that is in the vocabulary stays whole (COVID-19, U.S., Ph.D., l'amour, C++, Sant'Egidio); any
other is divided at punctuation and then into WordPieces, as BERT does.

What the paper leaves open, as it is here:

- Words and WordPieces are one vocabulary, so a word may also be the first piece of a longer one.
- Marks of a sentence around a chunk that is not in the vocabulary come off as far as they must: of what is left by
  taking :data:`MARKS` from either end, the longest that is a word of the vocabulary stays whole ("C++," and "(U.S.)?").
- The words are the most frequent ones that occur twice or more and are no WordPieces already.
- Candidates are the words that noun phrases of a spaCy pipeline touch, or all words where no pipeline is given; in both
  cases without the marks around them (:func:`surface_form`).
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from pathlib import Path
from typing import Protocol

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.files.json_text import read_object
from unified.files.whole import write_whole_text
from unified.tokenization.base import SPECIAL_SYMBOLS, ListedSymbols, pairs_of_integers
from unified.tokenization.wordpiece import SPECIAL_ENTRIES, WordPieceTokenizer, train_wordpiece
from unified.tokenization.wordpiece_files import CONTINUATION

FILE_NAME = "anna.json"
#: Share of words in the vocabulary (Jun et al. 2022).
WORD_SHARE = 0.7
#: Marks that belong to a sentence, not to the word they stand beside.
MARKS = ".,;:!?…\"'()[]{}<>“”„‘’‚«»‹›¿¡–—"
#: The divisions of so many characters of chunks are remembered.
REMEMBERED_CHARACTERS = 1 << 22
#: BERT takes a longer word for unknown, so it could not come back from its own text.
_LONGEST_WORD = 100
#: A full stop that ends such a word is its own, not the sentence's.
_ABBREVIATION = re.compile(r"[^\W\d_]{1,3}(\.[^\W\d_]{1,3})+")
ALL_WORDS = "all words of the text (no --spacy)"
_FIELDS = ("candidates", "pieces", "words")


class WordFinder(Protocol):
    """Finds the words that may stay whole.

    Attributes:
        description: what it finds, for people to read.
    """

    description: str

    def words(self, lines: list[str]) -> Iterator[str]:
        """Words of lines, as often as they occur."""
        ...


class AnnaTokenizer(ListedSymbols):
    """Words that stay whole, and WordPieces for the rest.

    Args:
        pieces: WordPieces in the order of their ids; ``[UNK]`` must be there.
        words: words that stay whole, in the order of their ids, which follow those of the pieces.
        candidates: which words of the text could become ``words``, for people to read.
        name: where they came from, for messages.

    Raises:
        UnifiedError: ``[UNK]`` is missing, an entry is listed twice, or a word looks like the inside of one ("##s") or
            like a special symbol, has white space, no letter or digit, or more than 100 characters.
    """

    bert_words = True

    def __init__(self, pieces: list[str], words: list[str], candidates: str, name: str = "the ANNA vocabulary"):
        self.pieces, self.words, self.candidates = pieces, words, candidates
        wrong = next((word for word in words if not can_be_word(word)), None)
        if wrong is not None:
            raise UnifiedError(f"{name}: {wrong!r} cannot be a word of the vocabulary")
        self._wordpiece = WordPieceTokenizer([*pieces, *words], name=name)
        self._symbols = self._wordpiece.native_symbols()
        self._ids = {word: len(pieces) + i for i, word in enumerate(words)}
        # BERT makes each mark one piece; a word without the marks at its ends leads to what it may be, longest first.
        self._mark_ids = dict(zip(MARKS, self._wordpiece.encode_ids(list(MARKS))[0].tolist(), strict=True))
        self._words_around: dict[str, list[str]] = {}
        for word in sorted(words, key=len, reverse=True):
            self._words_around.setdefault(word.strip(MARKS), []).append(word)
        self._remembered: dict[str, list[int]] = {}
        self._remembered_characters = 0
        self.most_remembered = REMEMBERED_CHARACTERS

    @classmethod
    def load(cls, path: str | Path) -> AnnaTokenizer:
        """Read ``anna.json``.

        Raises:
            UnifiedError: it is not what :meth:`save` writes.
        """
        content = read_object(Path(path))
        if sorted(content) != sorted(_FIELDS):
            raise UnifiedError(f"{path}: not an object with {', '.join(_FIELDS)}; is it the anna.json of a folder?")
        for field in ("pieces", "words"):
            if not isinstance(content[field], list) or not all(isinstance(entry, str) for entry in content[field]):
                raise UnifiedError(f"{path}: {field} is not a list of strings")
        return cls(content["pieces"], content["words"], content["candidates"], name=os.fspath(path))

    def save(self, folder: str | Path) -> None:
        """Write the files from which :func:`unified.tokenization.load_tokenizer` makes this tokenizer again."""
        content = {field: getattr(self, field) for field in _FIELDS}
        text = json.dumps(content, ensure_ascii=False, indent=0)
        write_whole_text(Path(folder) / FILE_NAME, text + "\n")

    def encode_ids(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Native ids of many texts and their numbers, see :meth:`unified.tokenization.Tokenizer.encode_ids`."""
        chunks_of = [text.split() for text in texts]
        chunks = list(itertools.chain.from_iterable(chunks_of))
        self._remember(chunks)
        divided = list(map(self._remembered.__getitem__, chunks))
        ends = _ends(divided)
        ids = np.fromiter(itertools.chain.from_iterable(divided), dtype=np.int32)
        return ids, np.diff(ends[_ends(chunks_of)])

    def encode_offsets(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, sizes and characters of tokens, see :meth:`unified.tokenization.Tokenizer.encode_offsets`."""
        chunks_of = [text.split() for text in texts]
        chunks = list(itertools.chain.from_iterable(chunks_of))
        within = self._offsets_within(set(chunks))
        ends = _ends(chunks)
        starts = ends[:-1] + np.arange(len(chunks))  # in the chunks of all texts with a space between any two
        firsts = np.repeat(_ends(chunks_of)[:-1], list(map(len, chunks_of)))
        starts = starts - starts[firsts]
        counts = [len(within[chunk]) for chunk in chunks]
        offsets = pairs_of_integers([within[chunk] for chunk in chunks]) + np.repeat(starts, counts)[:, None]
        return *self.encode_ids(texts), offsets

    @property
    def statistics(self) -> dict[str, int | str]:
        """Numbers of words and of WordPieces in the vocabulary, and the source of the words."""
        return {"pieces": len(self.pieces), "words": len(self.words), "word_candidates": self.candidates}

    def known_word(self, chunk: str) -> tuple[int, int] | None:
        """Begin and end of the word in ``chunk`` (text without white space) that stays whole; None without one."""
        if chunk in self._ids:
            return 0, len(chunk)
        core = chunk.strip(MARKS)
        start = len(chunk) - len(chunk.lstrip(MARKS))
        stop = start + len(core)
        for word in self._words_around.get(core, ()):
            before, _, after = word.partition(core)
            if chunk.endswith(before, 0, start) and chunk.startswith(after, stop):
                return start - len(before), stop + len(after)
        return None

    def decode(self, pieces: list[str]) -> str:
        """The text that ``pieces`` stand for."""
        return self._wordpiece.decode(pieces)

    def word_start(self, symbol: str) -> bool:
        """Whether ``symbol`` can only stand at the beginning of a word."""
        return self._wordpiece.word_start(symbol)

    def _offsets_within(self, chunks: set[str]) -> dict[str, list[tuple[int, int]]]:
        """The characters of each token of each chunk."""
        spans = {chunk: span for chunk in chunks if (span := self.known_word(chunk))}
        within = {
            chunk: [*_single(0, start), (start, stop), *_single(stop, len(chunk))]
            for chunk, (start, stop) in spans.items()
        }
        others = list(chunks.difference(spans))
        _, sizes, offsets = self._wordpiece.encode_offsets(others)
        pairs = [(first, behind) for first, behind in offsets.tolist()]
        ends = np.cumsum(sizes).tolist()
        for chunk, begin, end in zip(others, [0, *ends], ends, strict=False):
            within[chunk] = pairs[begin:end]
        return within

    @property
    def remembered(self) -> int:
        """Number of chunks whose division is cached: those of about the last ``most_remembered`` characters."""
        return len(self._remembered)

    def _remember(self, chunks: list[str]) -> None:
        """Divide the chunks that were not seen before; in running text they are few, which makes encoding fast."""
        if self._remembered_characters > self.most_remembered:
            self._remembered, self._remembered_characters = {}, 0
        new = set(chunks).difference(self._remembered)
        spans = {chunk: span for chunk in new if (span := self.known_word(chunk))}
        for chunk, (start, stop) in spans.items():
            before, after = ([self._mark_ids[mark] for mark in side] for side in (chunk[:start], chunk[stop:]))
            self._remembered[chunk] = [*before, self._ids[chunk[start:stop]], *after]
        others = list(new.difference(spans))
        ids, sizes = self._wordpiece.encode_ids(others)
        flat, ends = ids.tolist(), np.cumsum(sizes).tolist()
        for chunk, begin, end in zip(others, [0, *ends], ends, strict=False):
            self._remembered[chunk] = flat[begin:end]
        self._remembered_characters += sum(map(len, new))


def train_anna(
    lines: list[str],
    vocabulary_size: int | None = None,
    character_coverage: float = 0.9995,
    word_share: float = WORD_SHARE,
    noun_phrases: WordFinder | None = None,
) -> AnnaTokenizer:
    """Train WordPieces and choose words; the same lines give the same vocabulary in every run.

    Args:
        lines: the text.
        vocabulary_size: number of entries: ``round(word_share * vocabulary_size)`` words, and WordPieces with the five
            special ones. None takes 32,000 WordPieces and words in proportion, or as many of either as the text gives.
        character_coverage: as in :func:`unified.tokenization.wordpiece.train_wordpiece`.
        word_share: share of the words.
        noun_phrases: finds the candidates; None takes all words of the text.

    Raises:
        UnifiedError: ``word_share`` is not at least 0 and below 1, there is no text, or it does not give so many
            WordPieces or words.
    """
    if not 0 <= word_share < 1:
        raise UnifiedError(f"word_share must be at least 0 and below 1, got {word_share}")
    word_count = piece_count = None
    if vocabulary_size is not None:
        word_count = round(word_share * vocabulary_size)
        piece_count = vocabulary_size - word_count
    try:
        pieces = train_wordpiece(lines, piece_count, character_coverage).entries
    except UnifiedError as error:
        share = "" if piece_count is None else f" ({piece_count} of {vocabulary_size} entries)"
        raise UnifiedError(f"the WordPieces of the anna tokenizer{share}: {error}") from None
    chunks = itertools.chain.from_iterable(map(str.split, lines)) if noun_phrases is None else noun_phrases.words(lines)
    words = _frequent_words(Counter(chunks), set(pieces))
    if word_count is not None and len(words) < word_count:
        raise UnifiedError(
            f"the anna tokenizer cannot be trained: the text gives {counted(len(words), 'word')}, fewer than the "
            f"{word_count} of --vocabulary-size {vocabulary_size}; ask for fewer entries, less --word-share or more "
            "--sample-megabytes"
        )
    if word_count is None:
        word_count = round(len(pieces) * word_share / (1 - word_share))
    return AnnaTokenizer(pieces, words[:word_count], ALL_WORDS if noun_phrases is None else noun_phrases.description)


def surface_form(chunk: str) -> str:
    """The word that a chunk of running text shows: without marks around it, but with the full stop of U.S. or Ph.D."""
    word = chunk.strip(MARKS)
    stop = chunk.find(word) + len(word)
    return f"{word}." if _ABBREVIATION.fullmatch(word) and chunk.startswith(".", stop) else word


def _frequent_words(chunks: Counter[str], pieces: set[str]) -> list[str]:
    """Candidates for words, the most frequent first."""
    counts: Counter[str] = Counter()
    for chunk, count in chunks.items():
        counts[surface_form(chunk)] += count
    words = [word for word, count in counts.items() if count > 1 and word not in pieces and can_be_word(word)]
    return sorted(words, key=lambda word: (-counts[word], word))


def can_be_word(word: str) -> bool:
    """Whether a word can become an entry of the vocabulary of its own."""
    is_text = word.isprintable() and " " not in word and any(map(str.isalnum, word))
    is_special = word in SPECIAL_SYMBOLS or word in SPECIAL_ENTRIES or word.startswith(CONTINUATION)
    return is_text and not is_special and len(word) <= _LONGEST_WORD


def _single(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Each character from ``start`` to ``stop`` by itself."""
    return zip(range(start, stop), range(start + 1, stop + 1), strict=True)


def _ends(lists: Sequence[Sized]) -> np.ndarray:
    """int64 (n + 1,): 0 and the index where each of ``lists`` would end if they followed one another."""
    ends = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, lists), dtype=np.int64), out=ends[1:])
    return ends
