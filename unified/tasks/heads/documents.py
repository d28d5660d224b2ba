"""Documents with chains of mentions: items of a data folder, and the files of CoNLL-2012 as such items and back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError, WrongField, require_fields
from unified.files.ids import item_id
from unified.files.shapes import is_integer_pair
from unified.tasks.heads.items import are_texts
from unified.tasks.metrics.conll import CoreferenceDocument, Mention, coreference_text, read_coreference

#: OntoNotes' documents begin with two letters and a slash, GUM's with GUM_ and the genre.
_GENRE = re.compile(r"\(?(?:([a-z]{2})/|GUM_([a-z]+)_)")


@dataclass(frozen=True)
class DocumentItem:
    """A document, and who is who in it.

    Attributes:
        id: what predictions are named by; of CoNLL-2012 what stands behind ``#begin document``.
        sentences: the words of each, at least one.
        speakers: of each word in the same shape, None where nobody is named; None where nobody ever is.
        genre: None where it is not known.
        chains: of mentions (first word, last word) of one thing, words counted from 0 in the document; None where they
            are to be predicted.
    """

    id: str
    sentences: tuple[tuple[str, ...], ...]
    speakers: tuple[tuple[str | None, ...], ...] | None = None
    genre: str | None = None
    chains: tuple[tuple[Mention, ...], ...] | None = None

    @property
    def words(self) -> list[str]:
        """The words of all sentences, one after another."""
        return list(chain.from_iterable(self.sentences))


def read_conll(path: str | Path) -> list[DocumentItem]:
    """Items of a file in the format of CoNLL-2012; a part is a document, as there.

    Raises:
        UnifiedError: see :func:`unified.tasks.metrics.conll.read_coreference`; or documents have no words.
    """
    documents = read_coreference(path, words=True)
    empty = [name for name, document in documents.items() if not document.tokens]
    if empty:
        raise UnifiedError(f"{path}: no words in {counted(len(empty), 'document')}, the first is {empty[0]!r}")
    return [_of_conll(name, document) for name, document in documents.items()]


def response_text(items: Sequence[DocumentItem], predictions: Sequence[Mapping[str, Any]]) -> str:
    """Predicted chains as a file that ``unified score coref`` compares with the key the items came from.

    Args:
        items: with different ids.
        predictions: one for each item.
    """
    documents = {}
    for item, prediction in zip(items, predictions, strict=True):
        chains = [[(start, end) for start, end in mentions] for mentions in prediction["chains"]]
        documents[item.id] = CoreferenceDocument(chains, len(item.words), item.sentences, item.speakers or ())
    return coreference_text(documents)


def _of_conll(name: str, document: CoreferenceDocument) -> DocumentItem:
    speakers = tuple(map(tuple, document.speakers))
    genre = _GENRE.match(name)
    return DocumentItem(
        name,
        tuple(map(tuple, document.sentences)),
        speakers if any(map(any, speakers)) else None,
        (genre[1] or genre[2]) if genre else None,
        tuple(map(tuple, document.chains)),
    )


def document_item(fields: dict[str, Any], number: int, labelled: bool) -> DocumentItem:
    """Reads ``sentences``, and if present ``speakers``, ``genre``, ``chains`` and ``id`` (else the line's number).

    Args:
        labelled: the chains are read and must be there.

    Raises:
        UnifiedError: says which field is wrong.
    """
    require_fields(fields, "sentences", *(["chains"] if labelled else []))
    sentences, speakers, genre, chains = (fields.get(name) for name in ("sentences", "speakers", "genre", "chains"))
    if not isinstance(sentences, list) or not sentences or not all(are_texts(words) and words for words in sentences):
        raise WrongField("sentences", "must be lists of words that are not empty")
    if speakers is not None and not _fit(speakers, sentences):
        raise WrongField("speakers", "must have a name or null for each word, sentence by sentence")
    if genre is not None and not isinstance(genre, str):
        raise WrongField("genre", f"must be a name in quotes, got {genre!r}")
    if labelled and not _are_chains(chains, sum(map(len, sentences))):
        raise WrongField("chains", "must be lists of mentions [first word, last word] within the document")
    return DocumentItem(
        item_id(fields, number),
        tuple(map(tuple, sentences)),
        None if speakers is None else tuple(map(tuple, speakers)),
        genre,
        tuple(tuple((start, end) for start, end in mentions) for mentions in chains or ()) if labelled else None,
    )


def _fit(speakers: Any, sentences: list[list[str]]) -> bool:
    if not isinstance(speakers, list) or len(speakers) != len(sentences):
        return False
    return all(
        isinstance(said_by, list)
        and len(said_by) == len(words)
        and all(name is None or isinstance(name, str) for name in said_by)
        for said_by, words in zip(speakers, sentences, strict=True)
    )


def _are_chains(chains: Any, words: int) -> bool:
    return isinstance(chains, list) and all(
        isinstance(mentions, list) and all(_is_mention(mention, words) for mention in mentions) for mentions in chains
    )


def _is_mention(mention: Any, words: int) -> bool:
    return is_integer_pair(mention) and 0 <= mention[0] <= mention[1] < words
