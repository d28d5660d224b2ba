"""Data sets of summaries in the forms in which they are distributed, each form a function to :class:`SummaryPair`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from unified.arguments import has_lone_surrogate
from unified.corpus.cleaning.sentences import split_sentences
from unified.errors import UnifiedError, require_fields
from unified.files.shapes import kind_of

# What may end a line of a story as it is (abisee/cnn-dailymail, make_datafiles.py).
_LINE_ENDS = (".", "!", "?", "'", "`", '"', "\u2019", "\u201d", ")")


@dataclass(frozen=True)
class SummaryPair:
    """A text and its summary, both divided into sentences.

    Attributes:
        source: sentences of the text, every run of white space in them one space, none empty.
        target: sentences of the summary, likewise.
        others: further summaries of the same text, one string each, for scoring.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """The forms of one data set; None for one that it does not have.

    Attributes:
        row: makes a pair of a row of a file, such as an object of JSON lines.
        lines: makes a pair of the same line of two text files.
        file: makes a pair of the text of a file, in a folder with one file a pair.
        suffix: end of the names of such files.
        stem: makes the rest of such a name of an entry of a ``--list``.
    """

    row: Callable[[dict[str, Any]], SummaryPair] | None = None
    lines: Callable[[str, str], SummaryPair] | None = None
    file: Callable[[str], SummaryPair] | None = None
    suffix: str = ""
    stem: Callable[[str], str] = str.strip

    @property
    def known(self) -> str:
        """The forms in words."""
        forms = {
            "rows (JSON lines, CSV, Parquet, ...)": self.row,
            "two text files (sources, summaries)": self.lines,
            f"folders of *{self.suffix} files": self.file,
        }
        return " or ".join(words for words, form in forms.items() if form)


def _cnn_dailymail_row(row: dict[str, Any]) -> SummaryPair:
    """Hugging Face's ``cnn_dailymail``: a line of the highlights is a sentence of the summary."""
    return SummaryPair(_sentences(_text(row, "article").split("\n")), _cleaned(_text(row, "highlights").split("\n")))


def cnn_dailymail_story(text: str) -> SummaryPair:
    """A ``.story`` file: lines of the article, then blocks of ``@highlight`` and a sentence of the summary.

    A line without a mark at its end, such as the caption of a picture, gets a full stop, as in abisee's
    make_datafiles.py. Case is kept, which that program does not; its full stop stands apart because its text is
    tokenized, and so does the one here where the story's own do.
    """
    lines = [line.strip() for line in text.split("\n")]
    stop = " ." if any(line.endswith(" .") for line in lines) else "."
    article: list[str] = []
    highlights: list[str] = []
    chosen = article
    for line in lines:
        if line.startswith("@highlight"):
            chosen = highlights
        elif line:
            chosen.append(line if line.endswith(_LINE_ENDS) else line + stop)
    return SummaryPair(_sentences(article), _cleaned(highlights))


def _story_name(entry: str) -> str:
    """A story is named by the SHA-1 of its address."""
    entry = entry.strip()
    return hashlib.sha1(entry.encode("utf-8")).hexdigest() if "://" in entry else entry


def _document_row(row: dict[str, Any]) -> SummaryPair:
    """Hugging Face's ``gigaword`` and ``xsum``."""
    return _headline(_text(row, "document"), _text(row, "summary"))


def xsum_file(text: str) -> SummaryPair:
    """A ``.summary`` file of XSum: parts behind ``[SN]NAME[SN]``, of which RESTBODY is summed up by FIRST-SENTENCE."""
    marks = text.split("[SN]")
    parts = dict(zip(marks[1::2], marks[2::2], strict=False))
    for name in ("FIRST-SENTENCE", "RESTBODY"):
        if name not in parts:
            raise UnifiedError(f"no part [SN]{name}[SN]")
    return _headline(parts["RESTBODY"], parts["FIRST-SENTENCE"])


def _reuters_row(row: dict[str, Any]) -> SummaryPair:
    """Reuters-21578 as objects with ``title`` and ``body``."""
    return _headline(_text(row, "body"), _text(row, "title"))


def _scitldr_row(row: dict[str, Any]) -> SummaryPair:
    """SciTLDR (Cachola et al. 2020): ``source`` lists sentences, ``target`` one or more summaries of them."""
    summaries = _cleaned(_texts(row, "target"))
    return SummaryPair(_cleaned(_texts(row, "source")), summaries[:1], summaries[1:])


def _aeslc_row(row: dict[str, Any]) -> SummaryPair:
    """AESLC (Zhang and Tetreault 2019): ``body`` and ``subject``; ``annotations`` lists others' subjects."""
    pair = _headline(_text(row, "body"), _text(row, "subject"))
    return replace(pair, others=_cleaned(_texts(row, "annotations")) if "annotations" in row else ())


def _headline(text: str, headline: str) -> SummaryPair:
    """A summary of one sentence, whatever marks it holds."""
    return SummaryPair(_sentences(text.split("\n")), _cleaned([headline]))


#: Formats of summaries by the name that ``unified pairs`` takes.
FORMATS: dict[str, Format] = {
    "cnn_dailymail": Format(row=_cnn_dailymail_row, file=cnn_dailymail_story, suffix=".story", stem=_story_name),
    "gigaword": Format(row=_document_row, lines=_headline),
    "xsum": Format(row=_document_row, file=xsum_file, suffix=".summary"),
    "reuters": Format(row=_reuters_row),
    "scitldr": Format(row=_scitldr_row),
    "aeslc": Format(row=_aeslc_row),
}


def _sentences(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(sentence for line in lines for sentence in split_sentences(line))


def _cleaned(texts: Iterable[str]) -> tuple[str, ...]:
    spaced = (" ".join(text.split()) for text in texts)
    return tuple(text for text in spaced if text)


def _text(row: dict[str, Any], name: str) -> str:
    require_fields(row, name)
    return _string(row[name], name)


def _texts(row: dict[str, Any], name: str) -> list[str]:
    require_fields(row, name)
    values = row[name]
    if not isinstance(values, list):
        raise UnifiedError(f"field {name!r} is {kind_of(values)}, not a list of texts")
    return [_string(value, name) for value in values]


def _string(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise UnifiedError(f"field {name!r} holds {kind_of(value)}, not a text")
    if has_lone_surrogate(value):
        raise UnifiedError(f"field {name!r} holds half of a surrogate pair")
    return value
