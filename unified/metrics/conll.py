"""Reading what CoNLL's shared tasks score: coreference chains (2012) and columns of tags (2000, 2003)."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from unified.data.streams import numbered_lines
from unified.errors import UnifiedError

Mention = tuple[int, int]

_BEGIN = re.compile(r"#\s*begin document (.*)")
_END = re.compile(r"#\s*end document")
_CELL = re.compile(r"(?:\(\d+\)|\(\d+|\d+\)|\|)+")
_ONE_TOKEN, _OPENED, _CLOSED = re.compile(r"\((\d+)\)"), re.compile(r"\((\d+)"), re.compile(r"(\d+)\)")


@dataclass(frozen=True)
class CoreferenceDocument:
    """``chains`` of mentions (first token, last token), tokens counted from 0 in the document; ``tokens`` of it."""

    chains: list[list[Mention]]
    tokens: int


def read_coreference(path: str | Path) -> dict[str, CoreferenceDocument]:
    """Documents of a CoNLL-2012 file by name (what stands behind ``#begin document``), plain or compressed.

    The last column of a line holds ``(4`` where a mention of chain 4 begins, ``4)`` where one ends, ``(4)`` for one of
    a single token, several of them next to each other or with ``|`` between, and ``-`` or ``_`` for none. Of several
    open mentions of one chain the one begun last ends first. Columns are separated by tabs, or by spaces.

    Raises:
        UnifiedError: there is no such file, it has no documents, or a line cannot be understood; file and line named.
    """
    documents: dict[str, CoreferenceDocument] = {}
    reader: _ChainReader | None = None
    name = where = ""
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        begin = _BEGIN.match(line)
        if begin:
            if reader is not None:
                raise UnifiedError(f"{where}: document {name!r} has no '#end document' line")
            reader, name = _ChainReader(), begin[1].strip()
            if name in documents:
                raise UnifiedError(f"{where}: document {name!r} was in this file before")
        elif reader is None or not line.strip():
            continue
        elif _END.match(line):
            documents[name] = reader.document(where)
            reader = None
        else:
            reader.add(line, where)
    if reader is not None:
        raise UnifiedError(f"{where}: document {name!r} has no '#end document' line")
    if not documents:
        raise UnifiedError(f"{path}: no '#begin document' line; expected a file in the format of CoNLL-2012")
    return documents


def pair_documents(
    key: dict[str, CoreferenceDocument], response: dict[str, CoreferenceDocument], key_path: object, path: object
) -> tuple[list[list[list[Mention]]], list[list[list[Mention]]]]:
    """Chains of the key and of the response, document by document, for :func:`unified.metrics.score_coreference`.

    Raises:
        UnifiedError: a document is in one of the files alone, or has another number of tokens there.
    """
    for one, other, other_path in ((key, response, path), (response, key, key_path)):
        missing = [name for name in one if name not in other]
        if missing:
            raise UnifiedError(f"{other_path}: {len(missing)} documents missing, the first is {missing[0]!r}")
    for name, document in key.items():
        if document.tokens != response[name].tokens:
            raise UnifiedError(
                f"{path}: document {name!r} has {response[name].tokens} tokens, in {key_path} {document.tokens}"
            )
    return [document.chains for document in key.values()], [response[name].chains for name in key]


class _ChainReader:
    def __init__(self) -> None:
        self._chains: dict[str, list[Mention]] = {}  # in the order in which chains are first seen
        self._open: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._token = 0

    def add(self, line: str, where: str) -> None:
        cell = re.split(r"\t" if "\t" in line else r"\s+", line.rstrip())[-1]
        if cell not in ("-", "_"):
            if not _CELL.fullmatch(cell):
                raise UnifiedError(f"{where}: expected a last column such as '(4|(7)', '4)' or '-', got {cell[:60]!r}")
            self._mentions(cell, where)
        self._token += 1

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
                raise UnifiedError(f"{where}: a mention of chain {chain} ends that has not begun")
            start, _ = self._open[chain].pop()
            self._chains[chain].append((start, token))

    def document(self, where: str) -> CoreferenceDocument:
        for chain, begun in self._open.items():
            if begun:
                raise UnifiedError(f"{begun[0][1]}: the mention of chain {chain} that begins here does not end")
        return CoreferenceDocument(list(self._chains.values()), self._token)


def read_tags(path: str | Path) -> list[list[str]]:
    """Last column of each line by sentence; blank lines end sentences. Plain or compressed.

    Raises:
        UnifiedError: there is no such file, or it has no tags.
    """
    sentences: list[list[str]] = [[]]
    for _, line in numbered_lines(path):
        columns = line.split()
        if columns:
            sentences[-1].append(columns[-1])
        elif sentences[-1]:
            sentences.append([])
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        raise UnifiedError(f"{path}: no tags; expected columns, one token a line")
    return sentences
