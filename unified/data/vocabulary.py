"""Symbols and their ids, stored in fairseq's ``dict.txt`` format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from unified.arguments import require_list
from unified.errors import UnifiedError, naming
from unified.files.whole import write_whole_text

BEGIN, PAD, SEPARATOR, UNKNOWN = "<s>", "<pad>", "</s>", "<unk>"
MASK = "<mask>"
SENTINELS = tuple(f"<sentinel_{i}>" for i in range(100))
#: Symbols that stand behind the words of every vocabulary, in this order where they are added; markers may follow.
APPENDED = (MASK, *SENTINELS)
#: Unknown tokens of a reference as fairseq-generate writes them, which no hypothesis has.
ESCAPED_UNKNOWN = f"<{UNKNOWN}>"
#: Unknown tokens of a reference where it is scored: a word that no hypothesis has, whatever divides texts into words.
UNMATCHED = "unk0unk0unk"
#: Markers, see :mod:`unified.data.markers`.
MARKER = re.compile(r"\[unused(\d+)\]")
_ADVICE = "leave <mask> and <sentinel_0>, <sentinel_1>, ... out of the text and make dictionary and folder again"
#: Digits of a count: of ASCII, and of 64 bits.
_COUNT = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class SpecialTokens:
    """The ids of a vocabulary that an objective needs to know.

    ``ordinary_start`` to ``ordinary_stop`` (exclusive) are the ids that may replace a token at random:
    words and pieces, and markers listed among them, never a special symbol.
    """

    begin: int  # [CLS], fairseq's <s>
    pad: int
    separator: int  # [SEP], fairseq's </s>
    unknown: int
    mask: int
    first_sentinel: int
    sentinel_count: int
    ordinary_start: int
    ordinary_stop: int


class Vocabulary:
    """Symbols in id order. Ids 0 to 3 are ``<s> <pad> </s> <unk>``, as in fairseq.

    ``dict.txt`` holds one ``symbol count`` pair a line without those four; :data:`APPENDED` closes the list and
    is added in that order where a file (one made by plain ``fairseq-preprocess``) lacks it.

    Raises:
        UnifiedError: ``symbols`` is one text, ``counts`` are not as many, a symbol is listed twice, most other symbols
            are listed behind one of :data:`APPENDED`, or the sentinels do not follow one another.
    """

    def __init__(self, symbols: list[str], counts: list[int] | None = None):
        symbols = require_list("symbols", symbols)
        if counts is not None and len(counts) != len(symbols):
            raise UnifiedError(f"the vocabulary has {len(symbols):,} symbols and {len(counts):,} counts")
        self.symbols = [BEGIN, PAD, SEPARATOR, UNKNOWN, *symbols]
        self.counts = [1] * 4 + list(counts if counts is not None else [1] * len(symbols))
        self._index: dict[str, int] = {}
        for i, symbol in enumerate(self.symbols):
            if symbol in self._index:
                raise UnifiedError(f"the vocabulary lists {symbol!r} twice; each symbol may appear once")
            self._index[symbol] = i
        #: Number of listed symbols, with the first four; ids from here on cannot occur in data made with the list.
        self.listed = len(self.symbols)
        for symbol in APPENDED:
            if symbol not in self._index:
                self._index[symbol] = len(self.symbols)
                self.symbols.append(symbol)
                self.counts.append(1)
        self._require_order()

    def _require_order(self) -> None:
        """Refuse a list in which a special symbol stands among words, as those of a text that holds one do."""
        first = min(APPENDED, key=self._index.__getitem__)
        before, behind = self.symbols[4 : self._index[first]], self.symbols[self._index[first] :]
        if sum(symbol not in APPENDED and not MARKER.fullmatch(symbol) for symbol in behind) > len(before):
            raise UnifiedError(
                f"the vocabulary lists {first!r} before most other symbols, and random tokens are drawn from those "
                f"before it alone; {_ADVICE}"
            )
        ids = [self._index[symbol] for symbol in SENTINELS]
        for (previous, symbol), step in zip(pairwise(SENTINELS), np.diff(ids), strict=True):
            if step != 1:
                raise UnifiedError(f"the vocabulary does not list {symbol!r} directly behind {previous!r}; {_ADVICE}")

    def __len__(self) -> int:
        return len(self.symbols)

    def index(self, symbol: str) -> int:
        """Id of ``symbol``, the id of ``<unk>`` where it is not listed."""
        return self._index.get(symbol, self._index[UNKNOWN])

    @cached_property
    def special(self) -> SpecialTokens:
        appended = sorted(self._index[s] for s in APPENDED)
        return SpecialTokens(
            begin=self._index[BEGIN],
            pad=self._index[PAD],
            separator=self._index[SEPARATOR],
            unknown=self._index[UNKNOWN],
            mask=self._index[MASK],
            first_sentinel=self._index[SENTINELS[0]],
            sentinel_count=len(SENTINELS),
            ordinary_start=4,
            ordinary_stop=appended[0],
        )

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read ``dict.txt``.

        Raises:
            UnifiedError: the file is missing, is not UTF-8, or a line is not ``symbol count``.
        """
        symbols: list[str] = []
        counts: list[int] = []
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise UnifiedError(f"{path}: no such dictionary; `unified prepare` makes one") from None
        except UnicodeDecodeError as error:
            raise UnifiedError(f"{path}: not UTF-8 at byte {error.start}; a dictionary is a UTF-8 text file") from None
        # Not splitlines(): symbols may hold characters that Python takes for ends of lines, too.
        for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
            symbol, _, count = line.rstrip().removesuffix(" #fairseq:overwrite").rpartition(" ")
            if not symbol or not _COUNT.fullmatch(count):
                raise UnifiedError(f"{path}, line {number}: expected 'symbol count', got {line[:60]!r}")
            symbols.append(symbol)
            counts.append(int(count))
        with naming(path):
            return cls(symbols, counts)

    def save(self, path: str | Path) -> None:
        """Write ``dict.txt``, readable by ``fairseq.data.Dictionary.load``."""
        lines = (f"{symbol} {count}\n" for symbol, count in zip(self.symbols[4:], self.counts[4:], strict=True))
        write_whole_text(Path(path), "".join(lines))

    def encode(self, pieces: list[str]) -> np.ndarray:
        """Ids of ``pieces``, int64 (n,).

        Raises:
            UnifiedError: ``pieces`` is one text, whose characters would be looked up.
        """
        return np.fromiter((self.index(piece) for piece in require_list("pieces", pieces)), dtype=np.int64)
