"""Clean-up of generated summaries before they are scored, as published with UniLM (its ``eval.py`` per data set).

Those programs take the words of BERT's tokenizer, punctuation apart, back to the form of the references. Here the text
may be plain too: what BERT's tokenizer would part is parted first, but for words in the references' form already.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tokenizers.pre_tokenizers import BertPreTokenizer

_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "[UNK]": "UNK", "<unk>": "UNK"}
_UNKNOWN = re.compile(r"(\[UNK\]|<unk>)")
_IN_FORM = re.compile(r"-[lr][rsc]b-|``|''|n't|'(?:s|d|ll)|--|\.\.\.|&(?:amp|lt|gt);", re.IGNORECASE)


@dataclass(frozen=True)
class PostProcessing:
    """The rules of one data set.

    Attributes:
        name: of the data set.
        words: by what single words are replaced.
        quotes: whether ``"`` becomes two backquotes and two apostrophes in turn, ``'`` a backquote and an apostrophe.
        dashes: whether ``-`` joins the words on both sides.
        digits: whether digits become ``#``.
        fewest: words that a sentence needs; shorter ones are dropped.
        overlap: a sentence is dropped where more than this share of its different words, in lower case, stood in the
            sentences before it; those that were dropped for this count too.
        max_words: words of a summary, the rest is cut off; 0 keeps all.
    """

    name: str
    words: Mapping[str, str] = field(default_factory=dict)
    quotes: bool = True
    dashes: bool = True
    digits: bool = False
    fewest: int = 0
    overlap: float = 1.0
    max_words: int = 0

    def __str__(self) -> str:
        return f"{self.name}|max_words:{self.max_words or 'any'}"

    def __call__(self, text: str, separator: str | None = None) -> str:
        """A generated summary with all rules applied; ``separator`` stands between its sentences."""
        sentences = [list(_pieces(sentence)) for sentence in _split(text, separator)]
        sentences[-1] = _without_trail(sentences[-1])
        sentences = [self._rewritten(sentence) for sentence in sentences]
        sentences = self._new([sentence for sentence in sentences if len(sentence) >= self.fewest])
        return _joined(self._cut(sentences), separator)

    def in_form(self, text: str, separator: str | None = None) -> str:
        """Plain text, such as a reference, in the form that generated summaries are given; nothing is dropped."""
        return _joined([self._rewritten(list(_pieces(part))) for part in _split(text, separator)], separator)

    def _rewritten(self, pieces: list[str]) -> list[str]:
        words = _Rewriting(pieces, self).words()
        # The corpus has # for digits. The published program puts it for 1 alone, which its training text has for any #.
        return [re.sub(r"\d", "#", word) for word in words] if self.digits else words

    def _new(self, sentences: list[list[str]]) -> list[list[str]]:
        """The sentences that do not repeat an earlier one."""
        kept: list[list[str]] = []
        seen: set[str] = set()
        for sentence in sentences:
            words = {word.lower() for word in sentence}
            if not words or len(words & seen) / len(words) <= self.overlap:
                kept.append(sentence)
            seen |= words
        return kept

    def _cut(self, sentences: list[list[str]]) -> list[list[str]]:
        if not self.max_words:
            return sentences
        before = 0
        kept = []
        for sentence in sentences:
            kept.append(sentence[: max(self.max_words - before, 0)])
            before += len(sentence)
        return kept


class _Rewriting:
    """Pieces of BERT's tokenizer to words as the Penn Treebank writes them."""

    def __init__(self, pieces: list[str], rules: PostProcessing):
        self._pieces, self._rules = pieces, rules
        self._words: list[str] = []
        self._opened: set[str] = set()

    def words(self) -> list[str]:
        number, joins = 0, False
        while number < len(self._pieces):
            piece, rest = self._pieces[number], self._pieces[number + 1 :]
            used = self._replaced(piece) or self._clitic(piece, rest) or self._quoted(piece)
            used = used or self._number(piece, rest) or self._stops(piece, rest)
            was_joining, joins = joins, False
            if not used and self._rules.dashes and piece == "-":
                used, joins = self._dash(rest)
            elif not used and was_joining and piece[0] not in string.punctuation:
                self._words[-1] += piece
                used = 1
            elif not used:
                self._words.append(piece)
                used = 1
            number += used
        return [word for word in self._words if word]  # of "n ' t" nothing is left before n't

    # Each rule returns how many pieces it took, none where it does not apply.

    def _replaced(self, piece: str) -> int:
        if piece not in self._rules.words:
            return 0
        self._words.append(self._rules.words[piece])
        return 1

    def _clitic(self, piece: str, rest: list[str]) -> int:
        """``don ' t`` -> ``do n't``; ``it ' s`` -> ``it 's``."""
        if piece != "'" or not rest:
            return 0
        if rest[0] == "t" and self._words and self._words[-1].endswith("n"):
            self._words[-1:] = [self._words[-1][:-1], "n't"]
        elif rest[0] in ("s", "d", "ll"):
            self._words.append(f"'{rest[0]}")
        else:
            return 0
        return 2

    def _quoted(self, piece: str) -> int:
        if not self._rules.quotes or piece not in ('"', "'"):
            return 0
        opening, closing = ("``", "''") if piece == '"' else ("`", "'")
        self._words.append(closing if piece in self._opened else opening)
        self._opened ^= {piece}
        return 1

    def _number(self, piece: str, rest: list[str]) -> int:
        """``3 , 000`` -> ``3,000``; ``3 . 03`` -> ``3.03``."""
        if not rest or not self._words:
            return 0
        before, after = self._words[-1], rest[0]
        thousands = piece == "," and all(c.isdigit() or c == "," for c in before + after)
        if not thousands and not (piece == "." and before.isdigit() and after.isdigit()):
            return 0
        self._words[-1] += piece + after
        return 2

    def _stops(self, piece: str, rest: list[str]) -> int:
        """``. . .`` -> ``...``; ``U . N .`` -> ``U.N.``, for which the published program has ``U.N. .``."""
        if piece != ".":
            return 0
        if rest[:2] == [".", "."]:
            self._words.append("...")
            return 3
        if not self._words or not _is_initial(self._words[-1]):
            return 0
        used = 1
        while len(rest) > used and _is_initial(rest[used - 1]) and rest[used] == ".":
            used += 2
        if used == 1:
            return 0
        self._words[-1] += "." + "".join(rest[: used - 1])
        return used

    def _dash(self, rest: list[str]) -> tuple[int, bool]:
        """``- -`` -> ``--``; ``well - known`` -> ``well-known``. Pieces taken, and whether the next word joins."""
        if rest[:1] == ["-"]:
            self._words.append("--")
            return 2, False
        joins = bool(rest and self._words) and self._words[-1] not in string.punctuation
        if not joins or rest[0][0] in string.punctuation:
            self._words.append("-")
            return 1, False
        self._words[-1] += "-"
        return 1, True


#: Post-processing by the name that ``unified score generation --post-process`` takes.
POST_PROCESSING = {
    "cnndm": PostProcessing("cnndm", words=_BRACKETS, fewest=5, overlap=0.7, max_words=70),
    "gigaword": PostProcessing("gigaword", words={k: v.lower() for k, v in _BRACKETS.items()} | _ENTITIES, digits=True),
    "xsum": PostProcessing("xsum", words={mark: _BRACKETS[mark] for mark in "()"}, quotes=False, dashes=False),
}


#: Rules of UniLM's program for generated questions; it drops nothing, so only :meth:`in_form` is meant.
QUESTIONS = PostProcessing("squad_qg", words={k: v.lower() for k, v in _BRACKETS.items()} | _ENTITIES)


def _pieces(text: str) -> Iterator[str]:
    """Words separated as BERT's tokenizer does; unknown words and words in the references' form stay as they are."""
    for word in text.split():
        for part in _UNKNOWN.split(word):
            if _UNKNOWN.fullmatch(part) or _IN_FORM.fullmatch(part):
                yield part
            else:
                yield from (piece for piece, _ in BertPreTokenizer().pre_tokenize_str(part))


def _without_trail(pieces: list[str]) -> list[str]:
    """Drops three of four equal marks at the end, as often as there are four. Four pieces or fewer stay."""
    while len(pieces) > 4 and _is_mark(pieces[-1]) and len(set(pieces[-4:])) == 1:
        pieces = pieces[:-3]
    return pieces


def _is_mark(piece: str) -> bool:
    return len(piece) == 1 and unicodedata.category(piece).startswith("P")


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isupper()


def _split(text: str, separator: str | None) -> list[str]:
    return [text] if separator is None else text.split(separator)


def _joined(sentences: list[list[str]], separator: str | None) -> str:
    between = " " if separator is None else f" {separator} "
    return between.join(" ".join(sentence) for sentence in sentences if sentence)
