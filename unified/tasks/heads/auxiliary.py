"""Masked language modelling beside a task, against forgetting [UniLM, app. A]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unified.data import randomness
from unified.data.example import Example
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.targets import TOKEN, ExampleTargets
from unified.data.vocabulary import SpecialTokens
from unified.objectives.corruption import Cloze, maskable, prediction_count

#: Share of tokens that are predicted, as in pre-training.
MASK_SHARE = 0.15
_CLOZE = Cloze()


def masked(example: Example, special: SpecialTokens, rng: np.random.Generator) -> Example:
    """The example with 15 % of its tokens hidden as UniLM hides them, which are predicted; special symbols are not."""
    ordinary, draws = maskable(example.tokens, special), Draws.from_generator(rng)
    count = prediction_count(MASK_SHARE, ordinary.sum(keepdims=True))
    indices = _CLOZE.hide(ordinary, Extents(np.array([len(ordinary)])), count, draws)
    tokens = _CLOZE.replace(example.tokens, indices, np.array([len(indices)]), special, draws)
    return replace(example, tokens=tokens, targets={TOKEN: ExampleTargets.at(indices, example.tokens[indices])})


def masked_all(
    examples: Sequence[Example], members: np.ndarray, special: SpecialTokens, seed: int, epoch: int
) -> list[Example]:
    """The chosen examples with some tokens masked, which depend on seed, epoch and an example's number alone."""
    return [
        masked(examples[member], special, randomness.generator(seed, epoch, randomness.AUXILIARY, int(member)))
        for member in members
    ]
