"""Stand-ins for a spaCy pipeline: spans by regular expressions, and annotators that break off."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unified.corpus.annotate import AnnotationSource
from unified.data.annotations import TAGS, columns

PATTERNS = {
    "noun_phrases": r"\b[aeiouÜ]\w*(?: \w+)?",
    "entities": r"\b[nrst]\w*(?: [nrst]\w*)*",
    "parts_of_speech": r"\w+",
}


class Patterns:
    """An annotator that finds :data:`PATTERNS`; writes a line to ``log`` per call, breaks off after ``calls``.

    The part of speech of a word is the one whose number is the word's length.
    """

    def __init__(self, kinds, log=None, calls=None):
        self.kinds, self.log, self.calls = kinds, log, calls
        self.description = {"kinds": list(kinds), "pipeline": "patterns"}

    def __call__(self, texts):
        if self.log is not None:
            if self.calls is not None and calls_in(self.log) >= self.calls:
                raise KeyboardInterrupt
            with open(self.log, "a") as stream:
                stream.write(f"{len(texts)}\n")
        return {kind: self.spans(kind, texts) for kind in self.kinds}

    @staticmethod
    def spans(kind, texts):
        width = columns(kind)
        found = [
            (i, *m.span(), *([len(m[0]) % len(TAGS)] if width == 3 else []))
            for i, text in enumerate(texts)
            for m in re.finditer(PATTERNS[kind], text)
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 1 + width)


@dataclass(frozen=True)
class PatternSource(AnnotationSource):
    log: str | None = None
    calls: int | None = None

    def load(self):
        return Patterns(self.kinds, self.log, self.calls)


def calls_in(log):
    return len(Path(log).read_text().splitlines()) if Path(log).exists() else 0


def tokens_of_spans(spans, offsets):
    """The definition, a span and a token at a time, for one text: tokens that share a character with the span.

    A tag behind a span comes along.
    """
    found = []
    for start, stop, *tag in spans:
        inside = [i for i, (first, last) in enumerate(offsets) if set(range(first, last)) & set(range(start, stop))]
        if inside:
            assert inside == list(range(inside[0], inside[-1] + 1))
            found.append((inside[0], inside[-1] + 1, *tag))
    return found
