"""Entity-level scores of tag sequences by the rules of conlleval, the scorer of CoNLL-2000 to 2003.

Tags are ``O``, ``B-TYPE`` and ``I-TYPE``, in BIO (every entity begins with B) or IOB1 (B only after an entity of the
same type); one rule reads both: an entity begins at B, at I behind O, and wherever the type changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unified.errors import UnifiedError
from unified.tasks.metrics.classification import ratio

Tags = Sequence[Sequence[str]]


def score_tagging(gold: Tags, predicted: Tags) -> dict[str, float]:
    """``precision``, ``recall`` and ``f1`` of entities, and ``accuracy`` of tags, in percent, over all sentences.

    An entity is right if its tokens and its type are. The counts come too: ``gold``, ``predicted`` and ``correct``
    entities, and ``tokens``.

    Raises:
        UnifiedError: nothing to score, sentences of unequal number or length, or a tag of another scheme.
    """
    counts = _count(gold, predicted)
    whole = _scores(counts.gold.sum(), counts.predicted.sum(), counts.correct.sum())
    return {"accuracy": 100 * counts.right_tags / counts.tokens} | whole | {"tokens": counts.tokens}


def score_tagging_by_type(gold: Tags, predicted: Tags) -> dict[str, dict[str, float]]:
    """Type of entity to the scores and counts of :func:`score_tagging` that concern it."""
    counts = _count(gold, predicted)
    columns = zip(counts.types, counts.gold, counts.predicted, counts.correct, strict=True)
    return {name: _scores(*numbers) for name, *numbers in columns if any(numbers)}


@dataclass(frozen=True)
class _Counts:
    """``gold``, ``predicted``, ``correct``: entities of each of the ``types``."""

    types: list[str]
    gold: np.ndarray
    predicted: np.ndarray
    correct: np.ndarray
    tokens: int
    right_tags: int


def _count(gold: Tags, predicted: Tags) -> _Counts:
    _check(gold, predicted)
    # A tag O behind each sentence ends what is open there.
    flat = [[tag for sentence in side for tag in (*sentence, "O")] for side in (gold, predicted)]
    tags, codes = np.unique(np.array(flat), return_inverse=True)
    codes = codes.reshape(2, -1)
    prefixes, names = zip(*map(_divide, tags.tolist()), strict=True)
    types, type_of_tag = np.unique(names, return_inverse=True)
    entities = [_entities(np.array(prefixes)[side], type_of_tag[side]) for side in codes]
    found = {tuple(entity) for entity in entities[0].tolist()} & {tuple(entity) for entity in entities[1].tolist()}
    size = len(types)
    return _Counts(
        types=types.tolist(),
        gold=np.bincount(entities[0][:, 2], minlength=size),
        predicted=np.bincount(entities[1][:, 2], minlength=size),
        correct=np.bincount(np.array([entity_type for *_, entity_type in found], dtype=np.int64), minlength=size),
        tokens=codes.shape[1] - len(gold),
        right_tags=int((codes[0] == codes[1]).sum()) - len(gold),
    )


def _entities(prefixes: np.ndarray, types: np.ndarray) -> np.ndarray:
    """Rows (start, end, type), end exclusive, of the entities in tags whose last is O."""
    inside = prefixes != "O"
    goes_on = np.zeros(len(types), dtype=bool)
    goes_on[1:] = (prefixes[1:] == "I") & inside[:-1] & (types[1:] == types[:-1])
    starts = np.flatnonzero(inside & ~goes_on)
    stops = np.flatnonzero(~goes_on)  # where an entity that began before has ended
    ends = stops[np.searchsorted(stops, starts, side="right")]
    return np.stack([starts, ends, types[starts]], axis=1)


def is_entity_tag(tag: str) -> bool:
    """Whether it is one of BIO or IOB1."""
    return tag == "O" or tag.partition("-")[0] in ("B", "I")


def _divide(tag: str) -> tuple[str, str]:
    prefix, _, entity_type = tag.partition("-")
    if not is_entity_tag(tag):
        raise UnifiedError(f"tag {tag!r}: expected O, B-TYPE or I-TYPE (BIO or IOB1)")
    return prefix, entity_type


def _scores(gold: int, predicted: int, correct: int) -> dict[str, float]:
    return {
        "precision": 100 * float(ratio(correct, predicted)),
        "recall": 100 * float(ratio(correct, gold)),
        "f1": 100 * float(ratio(2 * correct, gold + predicted)),
        "gold": int(gold),
        "predicted": int(predicted),
        "correct": int(correct),
    }


def _check(gold: Tags, predicted: Tags) -> None:
    if len(gold) != len(predicted):
        raise UnifiedError(f"{len(predicted)} sentences predicted, but {len(gold)} are gold")
    for i, (wanted, found) in enumerate(zip(gold, predicted, strict=True)):
        if len(wanted) != len(found):
            raise UnifiedError(f"sentence {i + 1}: {len(found)} tags predicted for {len(wanted)} tokens")
    if not any(map(len, gold)):
        raise UnifiedError("nothing to score: no tags")
