"""Reading the files of CoNLL's shared tasks: coreference chains (2012) and columns of tags (2000, 2003)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import SHOWN, Problems, SeveralProblems, UnifiedError
from unified.files.text_files import numbered_lines
from unified.files.word_columns import conll_entries

Mention = tuple[int, int]

_BEGIN = re.compile(r"#\s*begin document (.*)")
_NAME = re.compile(r"\(?(.*?)\)?(?:; part (\d+))?")
_END = re.compile(r"#\s*end document")
_CELL = re.compile(r"(?:\(\d+\)|\(\d+|\d+\)|\|)+")
#: Columns from the left: the word, and in files with all columns of CoNLL-2012 its speaker.
_WORD, _SPEAKER, _ALL_COLUMNS = 3, 9, 12
_NOTHING = ("-", "_")
#: OntoNotes' words for marks at the ends of sentences, and the marks, as SpanBERT's coreference code reads them.
_MARKS = {"/.": ".", "/?": "?"}
_ONE_TOKEN, _OPENED, _CLOSED = re.compile(r"\((\d+)\)"), re.compile(r"\((\d+)"), re.compile(r"(\d+)\)")


@dataclass(frozen=True)
class CoreferenceDocument:
    """A document, or a part of one, in the format of CoNLL-2012.

    Attributes:
        chains: of mentions (first token, last token), tokens counted from 0 in the document.
        tokens: how many it has.
        sentences: the words of each sentence, where they were asked for.
        speakers: of each word in the same shape, None where none is named.
    """

    chains: Sequence[Sequence[Mention]]
    tokens: int
    sentences: Sequence[Sequence[str]] = ()
    speakers: Sequence[Sequence[str | None]] = ()


def read_coreference(path: str | Path, words: bool = False) -> dict[str, CoreferenceDocument]:
    """Documents of a CoNLL-2012 file by name (the rest of the line ``#begin document``), plain or compressed.

    The last column of a line holds ``(4`` where a mention of chain 4 begins, ``4)`` where one ends, ``(4)`` for one of
    a single token, several of them next to each other or with ``|`` between, and ``-`` or ``_`` for none. Of several
    open mentions of one chain the one begun last ends first. Columns are separated by tabs, or by spaces.

    Args:
        words: read words (the fourth column; OntoNotes' ``/.`` and ``/?`` are ``.`` and ``?``) and speakers (the tenth
            of twelve or more) too; blank lines end sentences.

    Raises:
        UnifiedError: there is no such file, it has no documents, or lines cannot be understood; the first ten are
            named with file and line.
    """
    documents: dict[str, CoreferenceDocument] = {}
    problems: list[str] = []
    reader: _DocumentReader | None = None
    name = where = ""
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        begin = _BEGIN.match(line)
        if begin:
            if reader is not None:
                problems.append(f"{where}: document {name!r} has no '#end document' line")
            reader, name = _DocumentReader(problems, words), begin[1].strip()
            if name in documents:
                problems.append(f"{where}: document {name!r} was in this file before")
        elif reader is not None and _END.match(line):
            documents[name] = reader.document()
            reader = None
        elif reader is not None:
            reader.add(line, where)
    if reader is not None:
        problems.append(f"{where}: document {name!r} has no '#end document' line")
    if problems:
        raise SeveralProblems("", [(problem, 1) for problem in problems[:SHOWN]], max(0, len(problems) - SHOWN))
    if not documents:
        raise UnifiedError(f"{path}: no '#begin document' line; expected a file in the format of CoNLL-2012")
    return documents


def coreference_text(documents: Mapping[str, CoreferenceDocument]) -> str:
    """File for :func:`read_coreference` and the official scorer, in the twelve columns of CoNLL-2012.

    Args:
        documents: by name, with their sentences.

    Raises:
        UnifiedError: two mentions of a chain cross, which the format cannot say.
    """
    lines = []
    for name, document in documents.items():
        lines.append(f"#begin document {name}")
        cells = iter(_cells(document, f"document {name!r}"))
        match = _NAME.fullmatch(name)
        if match is None:
            raise UnifiedError(f"document {name!r}: a name is one line")
        title, part = match.groups()
        speakers = document.speakers or [[None] * len(words) for words in document.sentences]
        for words, said_by in zip(document.sentences, speakers, strict=True):
            for i, (word, speaker) in enumerate(zip(words, said_by, strict=True)):
                columns = (title, part or "0", str(i), word, *"-----", speaker or "-", "*", next(cells))
                lines.append("\t".join(re.sub(r"\s", "_", column) for column in columns))
            lines.append("")
        lines.append("#end document")
    return "".join(line + "\n" for line in lines)


def _cells(document: CoreferenceDocument, where: str) -> list[str]:
    """The last column of each word of a document."""
    opened: list[list[tuple[int, str]]] = [[] for _ in range(document.tokens)]
    closed: list[list[tuple[int, str]]] = [[] for _ in range(document.tokens)]
    for chain, mentions in enumerate(document.chains):
        begun: list[int] = []
        for start, end in sorted(mentions, key=lambda mention: (mention[0], -mention[1])):
            while begun and begun[-1] < start:
                begun.pop()
            if begun and begun[-1] < end:
                raise UnifiedError(f"{where}: two mentions of one chain cross at token {start}")
            begun.append(end)
            # The longest mention at a token opens first and closes last.
            opened[start].append((start - end, f"({chain})" if start == end else f"({chain}"))
            if start < end:
                closed[end].append((end - start, f"{chain})"))
    marks = (sorted(begin) + sorted(end) for begin, end in zip(opened, closed, strict=True))
    return ["|".join(mark for _, mark in marked) or "-" for marked in marks]


def pair_documents(
    key: dict[str, CoreferenceDocument], response: dict[str, CoreferenceDocument], key_path: object, path: object
) -> tuple[list[Sequence[Sequence[Mention]]], list[Sequence[Sequence[Mention]]]]:
    """Chains of the key and of the response, document by document, for :func:`unified.tasks.metrics.score_coreference`.

    Raises:
        UnifiedError: a document is in one of the files alone, or has another number of tokens there.
    """
    for one, other, other_path in ((key, response, path), (response, key, key_path)):
        missing = [name for name in one if name not in other]
        if missing:
            own = next((name for name in other if name not in one), None)
            added = "" if own is None else f"; it has {own!r} instead"
            raise UnifiedError(
                f"{other_path}: {counted(len(missing), 'document')} missing, the first is {missing[0]!r}{added}"
            )
    for name, document in key.items():
        if document.tokens != response[name].tokens:
            raise UnifiedError(
                f"{path}: document {name!r} has {counted(response[name].tokens, 'token')}, in {key_path} "
                f"{document.tokens}"
            )
    return [document.chains for document in key.values()], [response[name].chains for name in key]


class _DocumentReader:
    """Reads the lines of a document; adds problems with them to ``problems``."""

    def __init__(self, problems: list[str], words: bool) -> None:
        self._problems, self._words = problems, words
        self._chains: dict[str, list[Mention]] = {}  # in the order in which chains are first seen
        self._open: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._token = 0
        self._sentences: list[list[tuple[str, str | None]]] = [[]]

    def add(self, line: str, where: str) -> None:
        if not line.strip():
            if self._sentences[-1]:
                self._sentences.append([])
            return
        columns = line.rstrip().split("\t" if "\t" in line else None)
        if self._words:
            self._sentences[-1].append(self._word(columns, where))
        cell = columns[-1].strip()
        if cell not in _NOTHING:
            if _CELL.fullmatch(cell):
                self._mentions(cell, where)
            else:
                expected = "expected a last column such as '(4|(7)', '4)' or '-'"
                self._problems.append(f"{where}: {expected}, got {cell[:60]!r}")
        self._token += 1

    def _word(self, columns: list[str], where: str) -> tuple[str, str | None]:
        if len(columns) <= _WORD + 1 or not columns[_WORD].strip():
            self._problems.append(f"{where}: expected a word in the fourth column, before that of the chains")
            return "", None
        word, speaker = columns[_WORD].strip(), columns[_SPEAKER] if len(columns) >= _ALL_COLUMNS else "-"
        return _MARKS.get(word, word), None if speaker in _NOTHING else speaker

    def _mentions(self, cell: str, where: str) -> None:
        token = self._token
        for chain in _ONE_TOKEN.findall(cell):
            self._chains.setdefault(chain, []).append((token, token))
        cell = _ONE_TOKEN.sub("|", cell)
        for chain in _OPENED.findall(cell):
            self._chains.setdefault(chain, [])
            self._open[chain].append((token, where))
        for chain in _CLOSED.findall(_OPENED.sub("|", cell)):
            if not self._open[chain]:
                self._problems.append(f"{where}: a mention of chain {chain} ends that has not begun")
                continue
            start, _ = self._open[chain].pop()
            self._chains[chain].append((start, token))

    def document(self) -> CoreferenceDocument:
        for chain, begun in self._open.items():
            for _, where in begun:
                self._problems.append(f"{where}: the mention of chain {chain} that begins here does not end")
        sentences = [sentence for sentence in self._sentences if sentence]
        words = [[word for word, _ in sentence] for sentence in sentences]
        speakers = [[speaker for _, speaker in sentence] for sentence in sentences]
        return CoreferenceDocument(list(self._chains.values()), self._token, words, speakers)


def read_tags(path: str | Path) -> list[list[str]]:
    """Last column of each line by sentence, as :func:`unified.files.word_columns.conll_entries` reads columns.

    Raises:
        UnifiedError: there is no such file, it has no tags, or lines have different numbers of columns.
    """
    sentences: list[Any] = []
    problems = Problems()
    for place, fields in conll_entries(str(path)):
        if isinstance(fields, UnifiedError):
            problems.add(f"{path}, {place}", fields)
        else:
            sentences.append(fields["tags"] if "tags" in fields else fields["words"])
    problems.check()
    if not sentences:
        raise UnifiedError(f"{path}: no tags; expected columns, one token a line")
    return sentences
