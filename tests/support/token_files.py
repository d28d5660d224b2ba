"""Small corpora as token files, and the simplest objectives that read them."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from unified import masks
from unified.data.annotations import TAGS, Annotations, columns, span_prefix
from unified.data.example import Example
from unified.data.targets import NEXT_SENTENCE, TOKEN, ExampleTargets
from unified.data.text import Text
from unified.data.token_files import TokenFile, TokenFileWriter
from unified.data.vocabulary import Vocabulary
from unified.objectives import Objective

SPECIAL = Vocabulary([f"w{i}" for i in range(20000)]).special
SEPARATOR = SPECIAL.separator


def write(prefix, items) -> TokenFile:
    """One item per entry of ``items``, written as it is."""
    with TokenFileWriter(prefix, np.int32) as writer:
        for item in items:
            writer.add(np.asarray(item, dtype=np.int64))
    return TokenFile(prefix)


def write_documents(prefix, documents) -> TokenFile:
    """Documents, lists of sentences, lists of tokens: each sentence gets its ``</s>``, each document its empty line."""
    items = []
    for sentences in documents:
        items += [[*sentence, SEPARATOR] for sentence in sentences] + [[SEPARATOR]]
    return write(prefix, items)


def write_spans(file, kinds, rng) -> Annotations:
    """Beside ``file``, every other stretch of each item between random indices; with random tags where kinds have."""
    for kind in kinds:
        bounds = [np.flatnonzero(rng.random(size) < 0.4) for size in file.sizes.tolist()]
        spans = [own[: len(own) // 2 * 2].reshape(-1, 2) for own in bounds]
        if columns(kind) == 3:
            spans = [np.column_stack([own, rng.integers(len(TAGS), size=len(own))]) for own in spans]
        write(span_prefix(file.prefix, kind), [own.ravel() for own in spans])
    return Annotations(file)


def numbered_documents(sizes) -> list[list[list[int]]]:
    """Documents of sentences of the given ``sizes``; the tokens 10, 11, 12, … tell every index of the corpus."""
    tokens = iter(range(10, 20000))
    return [[[next(tokens) for _ in range(size)] for size in sentences] for sentences in sizes]


def random_sizes(rng, documents, sentences, mean):
    """Sizes of log-normal sentences in documents of 1 to ``2 * sentences`` sentences."""
    draw = rng.integers(1, 2 * sentences + 1, documents)
    return [np.maximum(1, rng.lognormal(np.log(mean) - 0.18, 0.6, n)).astype(int).tolist() for n in draw]


@dataclass(frozen=True)
class Reads(Objective):
    """Wants texts as its fields say, and returns them as CLS a SEP (b SEP) with one predicted index at random."""

    segments: int = 1
    wants_random_second: bool = False
    paired: bool = False
    name: str = "reads"
    token_types: ClassVar[int] = 1
    writes: ClassVar[str] = "nothing"
    heads: ClassVar[tuple[str, ...]] = ("token", "next_sentence")
    shows_labels: ClassVar[bool] = True  # an index predicts its own token

    @property
    def special_tokens(self) -> int:
        return 1 + self.segments

    def __call__(self, text, rng) -> Example:
        parts = [[SPECIAL.begin], text.tokens, [SEPARATOR]]
        if self.segments == 2:
            parts += [text.second, [SEPARATOR]]
        tokens = np.concatenate(parts).astype(np.int64)
        index = rng.integers(len(tokens), size=1)
        mask = (masks.left_to_right if self.segments == 1 else masks.bidirectional)(len(tokens))
        targets = {TOKEN: ExampleTargets.at(index, tokens[index])}
        if text.is_next is not None:
            targets[NEXT_SENTENCE] = ExampleTargets.at(np.zeros(1, dtype=int), np.array([int(text.is_next)]))
        return Example(self.name, tokens, np.arange(len(tokens)), np.zeros_like(tokens), mask, targets)


@dataclass(frozen=True)
class Greedy(Reads):
    """Breaks its promise: makes more tokens than ``special_tokens`` allows."""

    special_tokens: ClassVar[int] = 1


def equal(one: Example, other: Example) -> bool:
    """True where two examples agree in every field; a head without predictions is as good as none."""
    asked = [
        {head: own for head, own in example.targets.items() if len(own.output_indices)} for example in (one, other)
    ]
    names = [field.name for field in fields(Example) if field.name != "targets"]
    return asked[0] == asked[1] and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def same(rows, others) -> bool:
    """True where two sequences of rows hold equal examples in the same order."""
    rows, others = list(rows), list(others)
    return len(rows) == len(others) and all(
        len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(rows, others, strict=True)
    )


def random_texts(count, two, seed=0) -> list[Text]:
    """Texts of one segment, or of two, with word starts and named entities."""
    rng, texts = np.random.default_rng(seed), []
    for _ in range(count):
        first, second = (rng.integers(10, 900, rng.integers(1, 30)) for _ in range(2))
        starts = rng.random(len(first) + len(second) * two) < 0.5
        bounds = np.flatnonzero(rng.random(len(starts)) < 0.3)
        spans = {"entities": bounds[: len(bounds) // 2 * 2].reshape(-1, 2)}
        texts.append(Text(first, SPECIAL, second if two else None, bool(rng.random() < 0.5), starts, spans=spans))
    return texts
