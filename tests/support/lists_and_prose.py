"""A corpus whose sentences are of two kinds, and what a second segment shows of them."""

import numpy as np

from unified.data.text import Text

LIST, PROSE = (2, 7), (12, 40)
#: Tokens of sentences are of eight kinds: the first one of each counts from here, the others from there.
FIRST, OTHER = 100, 200
FEATURES = ("borders", "first sentence", "first token")


def of_lists_and_prose(rng, documents) -> list[list[int]]:
    """Sizes of sentences: those of some documents are short, those of some long, and some have a list within."""
    sizes = []
    for number in range(documents):
        prose = rng.integers(*PROSE, rng.integers(3, 9)).tolist()
        items = rng.integers(*LIST, rng.integers(10, 40)).tolist()
        sizes.append([prose, items, prose[:3] + items + prose[3:]][number % 3])
    return sizes


def words(rng, size) -> np.ndarray:
    """A sentence; those of lists have other words than those of prose."""
    kinds = rng.binomial(7, 0.4 if size < LIST[1] else 0.6, size)
    return kinds + np.where(np.arange(size), OTHER, FIRST)


def features(text: Text) -> dict[str, int]:
    """How many sentences begin in a second segment, how long its first one is, and with which token it begins."""
    begins = text.second < OTHER  # of sentences, or a </s>; in reverse order their last tokens, as they are read
    ends = np.flatnonzero(begins[:-1] if text.backward else begins[1:])
    opening = int(ends[0]) + 1 if len(ends) else len(begins)
    return dict(zip(FEATURES, (len(ends), opening, int(text.second[0])), strict=True))
