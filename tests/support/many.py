"""Many examples at once, for tests that count what is drawn: a batch takes a hundredth of the time of single ones."""

from collections.abc import Sequence

import numpy as np

from unified.data.example import Example, Examples
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts
from unified.objectives import Objective
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.planning.text_request import TextRequest


def many(objective: Objective, text: Text, count: int, rng: np.random.Generator) -> Examples:
    """The examples that ``count`` calls ``objective(text, rng)`` would make, one after another."""
    return objective.examples(Texts.of([text] * count), Draws.from_generator(rng, count))


def each(objective: Objective, texts: Sequence[Text], rng: np.random.Generator) -> list[Example]:
    """The examples that ``objective(text, rng)`` would make of these texts; all have one segment, or all two."""
    return objective.examples(Texts.of(texts), Draws.from_generator(rng, len(texts))).split()


def one_text(
    texts: DocumentTexts | PairTexts, start: int, length: int, request: TextRequest, rng: np.random.Generator
) -> Text:
    """A single text; only documents draw from ``rng``."""
    draws = Draws.from_generator(rng) if isinstance(texts, DocumentTexts) else None
    return texts.texts(np.array([start]), np.array([length]), request, draws).texts()[0]
