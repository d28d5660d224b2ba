"""Entity-level scores of tag sequences by the rules of conlleval, the scorer of CoNLL-2000 to 2003.

Tags are ``O``, ``B-TYPE`` and ``I-TYPE``, in BIO (every entity begins with B) or IOB1 (B only after an entity of the
same type); one rule reads both: an entity begins at B, at I behind O, and wherever the type changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import summed
from unified.tasks.metrics.classification import ratio

Tags = Sequence[Sequence[str]]
_MEASURES = ("precision", "recall", "f1")


def score_tagging(gold: Tags, predicted: Tags) -> dict[str, float]:
    """``precision``, ``recall`` and ``f1`` of entities, and ``accuracy`` of tags, in percent, over all sentences.

    An entity is right if its tokens and its type are. The counts come too: ``gold``, ``predicted`` and ``correct``
    entities, and ``tokens``.

    Raises:
        UnifiedError: nothing to score, sentences of unequal number or length, or a tag of another scheme.
    """
    return TaggedSentences(gold, predicted).scores()


def score_tagging_by_type(gold: Tags, predicted: Tags) -> dict[str, dict[str, float]]:
    """Type of entity to the scores and counts of :func:`score_tagging` that concern it."""
    return TaggedSentences(gold, predicted, by_type=True).scores()["types"]


class TaggedSentences:
    """Sentences that are scored as :func:`score_tagging` says.

    Args:
        by_type: whether scores and measures have ``types``, too, those of :func:`score_tagging_by_type`.
    """

    def __init__(self, gold: Tags, predicted: Tags, by_type: bool = False):
        _check(gold, predicted)
        # A tag O behind each sentence ends what is open there.
        flat = [[tag for sentence in side for tag in (*sentence, "O")] for side in (gold, predicted)]
        tags, codes = np.unique(np.array(flat), return_inverse=True)
        codes = codes.reshape(2, -1)
        prefixes, names = zip(*map(_divide, tags.tolist()), strict=True)
        types, type_of_tag = np.unique(names, return_inverse=True)
        found = [_entities(np.array(prefixes)[side], type_of_tag[side]) for side in codes]
        both = {tuple(entity) for entity in found[0].tolist()} & {tuple(entity) for entity in found[1].tolist()}
        entities = [*found, np.array(sorted(both), dtype=np.int64).reshape(-1, 3)]
        lengths = np.array([len(sentence) + 1 for sentence in gold])
        sentence_of = np.repeat(np.arange(len(gold)), lengths)
        cells = len(gold) * len(types)
        by_sentence = [
            np.bincount(sentence_of[own[:, 0]] * len(types) + own[:, 2], minlength=cells).reshape(len(gold), -1)
            for own in entities
        ]
        right = np.bincount(sentence_of[codes[0] == codes[1]]) - 1  # each sentence has the O behind it
        self.size = len(gold)
        self._gold = gold
        self._by_type = by_type
        self._types = types.tolist()
        #: Counts in each sentence: right tags, tags, then gold, predicted and right entities of each type.
        self._counts = np.column_stack([right, lengths - 1, *by_sentence]).astype(np.float64)

    def references(self) -> list[tuple[str, ...]]:
        """The gold tags of each sentence."""
        return [tuple(sentence) for sentence in self._gold]

    def scores(self) -> dict[str, Any]:
        """The measures and the counts."""
        whole, types = self._summed(None)
        return whole | ({"types": types} if self._by_type else {})

    def measures(self, counts: np.ndarray | None = None) -> dict[str, Any]:
        """Measures that are defined in a sample (:class:`unified.tasks.metrics.bootstrap.Examples`).

        Recall is defined where there are gold entities, precision and F1 where there are gold or predicted ones.
        """
        whole, types = self._summed(counts)
        found: dict[str, Any] = {"accuracy": whole["accuracy"]} if whole["tokens"] else {}
        found |= _defined(whole)
        if self._by_type:
            found["types"] = {name: _defined(own) for name, own in types.items()}
        return found

    def _summed(self, counts: np.ndarray | None) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
        """Scores of a sample, and of each type that it has."""
        right, tokens, *numbers = summed(self._counts, counts)
        of_types = np.array(numbers).reshape(3, -1)
        accuracy = 100 * float(right / tokens) if tokens else 0.0
        whole = {"accuracy": accuracy} | _scores(*of_types.sum(axis=1)) | {"tokens": int(tokens)}
        return whole, {name: _scores(*own) for name, own in zip(self._types, of_types.T, strict=True) if own.any()}


class TagAccuracy:
    """Sentences whose tags are labels of single words, in any scheme: the share of right ones is scored.

    Args:
        gold, predicted: tags of each sentence, as many on both sides.

    Raises:
        UnifiedError: nothing to score, or sentences of unequal number or length.
    """

    def __init__(self, gold: Tags, predicted: Tags):
        _check(gold, predicted)
        self.size = len(gold)
        self._gold = gold
        #: Right tags and tags of each sentence, (N, 2).
        self._counts = np.array(
            [
                (sum(one == other for one, other in zip(tags, found, strict=True)), len(tags))
                for tags, found in zip(gold, predicted, strict=True)
            ]
        )

    def references(self) -> list[tuple[str, ...]]:
        """The gold tags of each sentence."""
        return [tuple(sentence) for sentence in self._gold]

    def scores(self) -> dict[str, float]:
        """The measure and ``tokens``."""
        return self.measures() | {"tokens": int(self._counts[:, 1].sum())}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """``accuracy`` of a sample in percent (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        right, tokens = summed(self._counts, counts)
        return {"accuracy": 100 * float(right / tokens)} if tokens else {}


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


def _scores(gold: float, predicted: float, correct: float) -> dict[str, float]:
    return {
        "precision": 100 * float(ratio(correct, predicted)),
        "recall": 100 * float(ratio(correct, gold)),
        "f1": 100 * float(ratio(2 * correct, gold + predicted)),
        "gold": int(gold),
        "predicted": int(predicted),
        "correct": int(correct),
    }


def _defined(scores: Mapping[str, float]) -> dict[str, float]:
    """The measures among scores of :func:`_scores` that are about an entity."""
    names = _MEASURES if scores["gold"] else ("precision", "f1") if scores["predicted"] else ()
    return {name: scores[name] for name in names}


def _check(gold: Tags, predicted: Tags) -> None:
    if len(gold) != len(predicted):
        raise UnifiedError(f"{counted(len(predicted), 'sentence')} predicted, but {len(gold)} are gold")
    for i, (wanted, found) in enumerate(zip(gold, predicted, strict=True)):
        if len(wanted) != len(found):
            raise UnifiedError(
                f"sentence {i + 1}: {counted(len(found), 'tag')} predicted for {counted(len(wanted), 'token')}"
            )
    if not any(map(len, gold)):
        raise UnifiedError("nothing to score: no tags")
