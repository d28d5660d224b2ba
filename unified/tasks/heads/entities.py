"""Sentences with two entities as sequences: entities between markers, or a symbol for role and type in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unified.data.example import Example
from unified.data.markers import marker_ids
from unified.errors import UnifiedError, first_few
from unified.inference.sequences import Codec, first_index, sequence

#: Markers around two entities, a pair for each.
MARKERS = 4
_ROLES = ("SUBJ", "OBJ")


@dataclass(frozen=True)
class Entity:
    """Words ``start`` to ``stop`` (exclusive), and the type of the entity; None where it is unknown."""

    start: int
    stop: int
    type: str | None = None


Pair = tuple[Entity, Entity]


def role_types(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Roles with types, such as ``SUBJ=PERSON``, in the order in which they occur first.

    Raises:
        UnifiedError: an entity has no type.
    """
    if any(entity.type is None for pair in pairs for entity in pair):
        raise UnifiedError("relation(design='types') needs the types of all entities; use design='markers'")
    named = (f"{role}={entity.type}" for pair in pairs for role, entity in zip(_ROLES, pair, strict=True))
    return tuple(dict.fromkeys(named))


def marked(
    sentences: Sequence[Sequence[str]], pairs: Sequence[Pair], codec: Codec
) -> tuple[list[Example], list[int], list[np.ndarray]]:
    """CLS sentence SEP with a marker before and behind each entity, read at the two that stand before.

    Under a left-to-right mask those see nothing of their entities, and the two that stand behind are read.

    Returns:
        The examples; tokens cut of each; and whether its second entity comes first, int64 (1,).

    Raises:
        UnifiedError: the dictionary has too few markers.
    """
    symbols = marker_ids(codec.vocabulary, MARKERS, "the markers of two entities")
    examples, lost, turned = [], [], []
    for words, pair in zip(codec.encode_words(sentences), pairs, strict=True):
        pieces: list[np.ndarray] = []
        begins, ends = {}, {}
        for i in range(len(words) + 1):
            # If two entities begin at one word, the first one opens first; if they end at one, it closes last.
            for number in (1, 0):
                if pair[number].stop == i:
                    ends[number] = len(pieces)
                    pieces.append(symbols[[2 * number + 1]])
            for number in (0, 1):
                if pair[number].start == i:
                    begins[number] = len(pieces)
                    pieces.append(symbols[[2 * number]])
            pieces += words[i : i + 1]
        tokens, kept = _nearest(pieces, symbols, codec.room(2, least=MARKERS + 1))
        lost.append(len(kept) - len(tokens))
        offsets = np.cumsum([0, *map(len, pieces)])
        read = ends if codec.mask == "left_to_right" else begins
        indices = np.cumsum(kept)[offsets[[read[0], read[1]]]] - 1 + first_index(codec)
        turned.append(np.array([int(indices[1] < indices[0])]))
        examples.append(sequence((tokens,), codec, np.sort(indices)))
    return examples, lost, turned


def masked(
    sentences: Sequence[Sequence[str]], pairs: Sequence[Pair], types: Sequence[str], codec: Codec
) -> tuple[list[Example], list[int]]:
    """CLS sentence SEP with one symbol for role and type in the place of each entity, read at CLS; tokens cut of each.

    Raises:
        UnifiedError: the dictionary has too few markers, or an entity has a type that is not among ``types``.
    """
    symbols = marker_ids(codec.vocabulary, len(types), "the types of entities")
    number = {name: i for i, name in enumerate(types)}
    unknown = [name for name in role_types(pairs) if name not in number]
    if unknown:
        raise UnifiedError(f"entities of types that the training items lack: {first_few(unknown)}")
    examples, lost = [], []
    for words, pair in zip(codec.encode_words(sentences), pairs, strict=True):
        pieces = []
        for i, word in enumerate(words):
            for role, entity in zip(_ROLES, pair, strict=True):
                if entity.start == i:
                    pieces.append(symbols[[number[f"{role}={entity.type}"]]])
            if not any(entity.start <= i < entity.stop for entity in pair):
                pieces.append(word)
        tokens, kept = _nearest(pieces, symbols, codec.room(2, least=2))
        lost.append(len(kept) - len(tokens))
        examples.append(sequence((tokens,), codec))
    return examples, lost


def _nearest(pieces: list[np.ndarray], symbols: np.ndarray, max_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Keeps ``max_tokens`` tokens, ``symbols`` and those nearest to one; returns them, and bool (tokens,) of which."""
    tokens = np.concatenate(pieces)
    if len(tokens) <= max_tokens:
        return tokens, np.ones(len(tokens), dtype=bool)
    indices = np.flatnonzero(np.isin(tokens, symbols))
    distances = np.abs(np.arange(len(tokens))[:, None] - indices).min(axis=1)
    kept = np.zeros(len(tokens), dtype=bool)
    kept[np.argsort(distances, kind="stable")[:max_tokens]] = True
    return tokens[kept], kept
