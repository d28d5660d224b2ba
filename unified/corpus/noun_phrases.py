"""Words of noun phrases, from which ANNA's tokenizer takes its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unified.tokenization.base import single_spaced

_CHUNK = re.compile(r"\S+")


class NounPhrases:
    """Noun phrases of lines as ``unified prepare --annotate noun_phrases`` finds them.

    Args:
        pipeline, code: as in :class:`unified.corpus.spacy_pipeline.SpacyAnnotator`.

    Raises:
        UnifiedError: spaCy is not installed, or the pipeline cannot be loaded or finds no noun phrases.
    """

    def __init__(self, pipeline: str, code: str | None = None):
        # Imported here: spaCy is needed by nobody else.
        from unified.corpus.spacy_pipeline import SpacyAnnotator

        self._annotator = SpacyAnnotator(("noun_phrases",), pipeline, code)
        self.description = f"words of noun phrases ({pipeline})"

    def words(self, lines: list[str]) -> Iterator[str]:
        """The chunks between white space that a noun phrase touches, line by line."""
        lines = [single_spaced(line) for line in lines]
        inside = [bytearray(len(line)) for line in lines]
        for line, start, stop in self._annotator(lines)["noun_phrases"].tolist():
            inside[line][start:stop] = b"\1" * (stop - start)
        for line, marked in zip(lines, inside, strict=True):
            for chunk in _CHUNK.finditer(line):
                if marked.find(1, *chunk.span()) >= 0:
                    yield chunk[0]
