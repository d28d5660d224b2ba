"""Amount of text that each rule of cleaning removed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Counts:
    """Amount of text: documents, sentences (items), words between white space, characters other than white space."""

    documents: int = 0
    sentences: int = 0
    words: int = 0
    characters: int = 0

    @classmethod
    def of(cls, documents: list[tuple[int, list[str]]]) -> Counts:
        """Counts ``documents``, (number, sentences) of each; words are separated by single spaces."""
        sentences = [sentence for _, sentences in documents for sentence in sentences]
        spaces = sum(sentence.count(" ") for sentence in sentences)
        return cls(len(documents), len(sentences), spaces + len(sentences), sum(map(len, sentences)) - spaces)

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(self._numbers, other._numbers, strict=True)))

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(a - b for a, b in zip(self._numbers, other._numbers, strict=True)))

    @property
    def _numbers(self) -> tuple[int, ...]:
        return self.documents, self.sentences, self.words, self.characters


@dataclass(frozen=True)
class Report:
    """Counts of a text as it was, of what each rule removed, in the order of the rules, and of what was kept.

    ``input`` is ``kept`` and all that was ``removed``. ``chunks`` documents were made of those kept; None where they
    stay as they are.
    """

    input: Counts = Counts()
    removed: dict[str, Counts] = field(default_factory=dict)
    kept: Counts = Counts()
    chunks: int | None = None

    def __add__(self, other: Report) -> Report:
        removed = {name: self.removed.get(name, Counts()) + counts for name, counts in other.removed.items()}
        chunks = None if other.chunks is None else (self.chunks or 0) + other.chunks
        return Report(self.input + other.input, removed, self.kept + other.kept, chunks)
