"""Spans from a pipeline of the library ``spacy``; the only module that imports it."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unified.data.annotations import PARTS_OF_SPEECH, TAGS, columns
from unified.errors import UnifiedError
from unified.files.hashes import file_hash

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

_NOUNS = frozenset(("NOUN", "PROPN"))
#: A longer paragraph is annotated in pieces: a parser's memory grows with its text.
LONGEST = 10_000
_TEXTS_AT_ONCE = 32
_TAG_NUMBERS = {tag: number for number, tag in enumerate(TAGS)}
_PROBE = "A dog sleeps in the house."


class SpacyAnnotator:
    """The spans that a spaCy pipeline finds; an :class:`unified.corpus.annotate.Annotator`.

    Pickling keeps the name of the pipeline alone: a process that gets a copy loads it itself.

    Args:
        kinds: kinds of :data:`unified.data.annotations.KINDS`.
        pipeline: name of an installed pipeline, or its folder.
        code: module to import before it is loaded, which registers the pipeline's own components.

    Raises:
        UnifiedError: spaCy is not installed, the pipeline cannot be loaded, or it does not annotate a kind.
    """

    def __init__(self, kinds: tuple[str, ...], pipeline: str, code: str | None = None, longest: int = LONGEST):
        self._kinds, self._pipeline, self._code, self.longest = kinds, pipeline, code, longest
        self.description = self._described()
        probe = self.language(_PROBE)
        for kind in kinds:
            lacks = _LACKS[kind](probe)
            if lacks:
                raise UnifiedError(
                    f"--spacy {pipeline}: gives no {kind}, it lacks {lacks} (its components: "
                    f"{', '.join(self.language.pipe_names) or 'none'}); take a trained pipeline that has one, such as "
                    "en_core_web_sm"
                )

    def _described(self) -> dict[str, Any]:
        meta = self.language.meta
        code = sys.modules[self._code].__file__ if self._code else None
        return {
            "kinds": list(self._kinds),
            "spacy": sys.modules["spacy"].__version__,
            "pipeline": f"{meta['lang']}_{meta['name']}",
            "version": meta["version"],
            "components": list(self.language.pipe_names),
            "sha256": _hash_of_files(self.language.path),
            "code": {"module": self._code, "sha256": file_hash(code)} if code else None,
        }

    @cached_property
    def language(self) -> Language:
        """The loaded pipeline; each process loads it at its first use."""
        try:
            import spacy
        except ImportError:
            raise UnifiedError(
                "--spacy needs the library spaCy, which is not installed: pip install '.[spacy]' in the "
                "library's folder"
            ) from None
        if self._code is not None:
            try:
                importlib.import_module(self._code)
            except ImportError as error:
                raise UnifiedError(f"--spacy-code {self._code}: cannot be imported ({error})") from None
        try:
            language = spacy.load(self._pipeline)
        except OSError:
            raise UnifiedError(
                f"--spacy {self._pipeline}: no such pipeline; give the folder of one, or install one, for example "
                "with: python -m spacy download en_core_web_sm"
            ) from None
        except (ValueError, ImportError) as error:
            raise UnifiedError(
                f"--spacy {self._pipeline}: cannot be loaded ({error}); components of its own need --spacy-code MODULE"
            ) from None
        return language

    def __call__(self, texts: list[str]) -> dict[str, np.ndarray]:
        pieces = [
            (number, start, text[start:stop])
            for number, text in enumerate(texts)
            for start, stop in within_limit(text, self.longest)
        ]
        found: dict[str, list[tuple[int, ...]]] = {kind: [] for kind in self._kinds}
        documents = self.language.pipe((piece for _, _, piece in pieces), batch_size=_TEXTS_AT_ONCE)
        for (number, start, _), document in zip(pieces, documents, strict=True):
            for kind, spans in found.items():
                own = _SPANS[kind](document)
                spans.extend((number, start + first, start + stop, *tag) for first, stop, *tag in own)
        return {kind: np.array(rows, dtype=np.int64).reshape(-1, 1 + columns(kind)) for kind, rows in found.items()}

    def typed_entities(self, texts: Sequence[str]) -> list[list[tuple[int, int, str]]]:
        """First character, the one behind the last, and type of the entities of each text."""
        documents = self.language.pipe(texts, batch_size=_TEXTS_AT_ONCE)
        return [[(one.start_char, one.end_char, one.label_) for one in document.ents] for document in documents]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "language"}


def within_limit(text: str, limit: int) -> Iterator[tuple[int, int]]:
    """Starts and stops of pieces of at most ``limit`` characters, cut at spaces where there are some."""
    start = 0
    while len(text) - start > limit:
        space = text.rfind(" ", start + 1, start + limit)
        stop = start + limit if space < 0 else space
        yield start, stop
        start = stop
    yield start, len(text)


def noun_phrases(document: Doc) -> list[tuple[int, int]]:
    """Characters of the noun chunks, and of nouns outside of them, in order."""
    chunks = list(document.noun_chunks)
    inside = {index for chunk in chunks for index in range(chunk.start, chunk.end)}
    nouns = [word for word in document if word.pos_ in _NOUNS and word.i not in inside]
    return sorted([(chunk.start_char, chunk.end_char) for chunk in chunks] + [_characters(word) for word in nouns])


def _entities(document: Doc) -> list[tuple[int, int]]:
    return [(entity.start_char, entity.end_char) for entity in document.ents]


def _parts_of_speech(document: Doc) -> list[tuple[int, int, int]]:
    """Characters and number of the tag of every word; white space, which spaCy counts as words, is none."""
    words = (word for word in document if not word.is_space and word.pos_ in _TAG_NUMBERS)
    return [(*_characters(word), _TAG_NUMBERS[word.pos_]) for word in words]


def _characters(word: Token) -> tuple[int, int]:
    return word.idx, word.idx + len(word)


_SPANS: dict[str, Callable[[Doc], Sequence[tuple[int, ...]]]] = {
    "noun_phrases": noun_phrases,
    "entities": _entities,
    PARTS_OF_SPEECH: _parts_of_speech,
}


def _lacks_noun_chunks(document: Doc) -> str | None:
    # Without parts of speech spaCy finds no noun chunk, and says nothing.
    try:
        list(document.noun_chunks)
    except NotImplementedError:
        return f"rules for noun chunks, which spaCy does not have for the language {document.lang_!r}"
    except ValueError:
        return "a dependency parser"
    return _lacks_parts_of_speech(document)


def _lacks_entities(document: Doc) -> str | None:
    return None if document.has_annotation("ENT_IOB") else "an entity recognizer"


def _lacks_parts_of_speech(document: Doc) -> str | None:
    return None if document.has_annotation("POS") else "a part-of-speech tagger"


_LACKS: dict[str, Callable[[Doc], str | None]] = {
    "noun_phrases": _lacks_noun_chunks,
    "entities": _lacks_entities,
    PARTS_OF_SPEECH: _lacks_parts_of_speech,
}


def _hash_of_files(folder: Path | None) -> str | None:
    """SHA-256 of a pipeline's files and their names: versions do not tell one training run from the next."""
    if folder is None:
        return None
    digest = hashlib.sha256()
    for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        digest.update(bytes.fromhex(file_hash(path)))
    return digest.hexdigest()
