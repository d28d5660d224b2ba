"""Helps to test your own objectives: the check that every run makes of its first examples, on texts made here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass

import numpy as np

from unified.arguments import counted
from unified.data import randomness
from unified.data.annotations import SENTENCES, SOURCE_KINDS, TAGS, columns
from unified.data.example import Examples
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives.arrays import naming_objective, require_example
from unified.objectives.check import check_examples, check_first_examples
from unified.objectives.contract import Objective, Supply, require_consistent

__all__ = ["check_objective", "sample_texts"]

#: Tokens of the first and of the second segment of the texts.
_SIZES = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 17), (60, 1), (40, 50), (100, 120))
_SPECIAL = Vocabulary([f"w{i}" for i in range(2000)]).special


def check_objective(objective: Objective, seed: int = 1) -> None:
    """Compare an objective's examples of made-up texts with what it declares.

    The texts have several lengths, from one token up, and what the objective asks for: second segments, random ones
    among them, annotated spans, reversed texts; where words begin is left out of half of them if it can do without.

    Raises:
        UnifiedError: names the objective and what is wrong: a declaration, the shape or dtype of an array, an id
            outside of its table, a prediction for a head that is not declared, an example longer than declared, a leak
            of what is predicted; or the same random numbers give another example, or the text is changed.
    """
    with naming_objective(objective.name, type(objective).__module__):
        _check(objective, seed)


def _check(objective: Objective, seed: int) -> None:
    require_consistent(objective)
    if not is_dataclass(objective) or not type(objective).__dataclass_params__.frozen:
        raise UnifiedError(f"objective {objective.name} is not a frozen dataclass")
    _check_lengths_grow(objective)
    longest = max(map(sum, _SIZES))
    for word_starts in (True, False):
        supply = Supply(_SPECIAL, word_starts, longest, objective.annotations)
        problem = objective.unmet(supply)
        if problem and word_starts:
            raise UnifiedError(f"objective {objective.name}: {problem}")
        if not problem:
            for texts in sample_texts(objective, word_starts, seed):
                _check_batch(objective, texts, seed, longest)


def _check_lengths_grow(objective: Objective) -> None:
    lengths = objective.lengths(np.arange(1, 1000))
    if (np.diff(lengths) < 0).any():
        raise UnifiedError(f"objective {objective.name}: lengths falls as texts grow; it must not")


def _check_batch(objective: Objective, texts: Texts, seed: int, longest: int) -> None:
    positions = int(objective.lengths(np.array(longest)))
    check_first_examples(objective, texts, _draws(texts, seed), positions)
    examples = objective.examples(texts, _draws(texts, seed))
    if not any(map(len, examples.targets.values())):
        raise UnifiedError(f"objective {objective.name} predicts nothing in {counted(len(texts), 'text')}")
    for text in texts.texts():
        one = objective(text, np.random.default_rng(seed))
        made = Examples.of([require_example(one, objective.own_heads)])
        check_examples(objective, Texts.of([text]), made, positions)


def sample_texts(objective: Objective, word_starts: bool = True, seed: int = 1) -> Iterator[Texts]:
    """Texts such as the objective asks for: some of two segments, and of one where that is enough.

    Args:
        word_starts: whether they say where words begin.
    """
    rng = np.random.default_rng(seed)
    yield Texts.of([_text(objective, *size, word_starts, n, rng) for n, size in enumerate(_SIZES)])
    if objective.segments == 1:
        yield Texts.of([_text(objective, size[0], None, word_starts, n, rng) for n, size in enumerate(_SIZES)])


def _text(
    objective: Objective, first: int, second: int | None, word_starts: bool, number: int, rng: np.random.Generator
) -> Text:
    """A text without repeated tokens, so that a label can be told from all others."""
    total = first + (second or 0)
    tokens = rng.permutation(np.arange(_SPECIAL.ordinary_start, _SPECIAL.ordinary_stop))[:total]
    return Text(
        tokens=tokens[:first],
        special=_SPECIAL,
        second=None if second is None else tokens[first:],
        is_next=number % 2 == 0 if objective.wants_random_second else None,
        word_starts=rng.random(total) < 0.6 if word_starts else None,
        backward=objective.both_directions and number % 4 < 2,
        spans={kind: _spans(kind, first, second or 0, rng) for kind in objective.annotations},
    )


def _spans(kind: str, first: int, second: int, rng: np.random.Generator) -> np.ndarray:
    """Spans of one kind: sentences of the first segment, every other of them, or every other stretch of the text."""
    if kind in SOURCE_KINDS:
        bounds = np.append(np.arange(0, first, 5), first)
        spans = np.stack([bounds[:-1], bounds[1:]], axis=1)
        return spans if kind == SENTENCES else spans[::2]
    bounds = np.union1d(np.flatnonzero(rng.random(first + second) < 0.3), [0, first, first + second])
    spans = np.stack([bounds[:-1], bounds[1:]], axis=1)[::2]
    return np.column_stack([spans, rng.integers(len(TAGS), size=len(spans))]) if columns(kind) == 3 else spans


def _draws(texts: Texts, seed: int) -> Draws:
    return Draws.of(seed, 1, randomness.EXAMPLE, np.arange(len(texts)))
