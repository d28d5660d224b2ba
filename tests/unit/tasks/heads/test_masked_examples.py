"""Masked language modelling beside a task: what is hidden, what is predicted, and what it depends on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import understanding_runs as runs
from unified.data import randomness
from unified.tasks.heads import Classification
from unified.tasks.heads.auxiliary import MASK_SHARE, masked, masked_all
from unified.tasks.heads.items import TextItem

CODEC = runs.codec(64)
SPECIAL = CODEC.vocabulary.special


def examples_of(*sizes: int):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.integers(30, size=size)) for size in sizes]
    items = [TextItem(str(i), text) for i, text in enumerate(texts)]
    return Classification(("a", "b")).encode(items, CODEC).examples


def test_the_share_is_that_of_pre_training():
    assert MASK_SHARE == 0.15


def test_of_a_text_without_tokens_nothing_is_hidden():
    (example,) = examples_of(0)
    found = masked(example, SPECIAL, np.random.default_rng(0))
    assert found.tokens.tolist() == example.tokens.tolist() and not len(found.targets["token"].output_indices)


@pytest.mark.parametrize(("size", "count"), [(1, 1), (10, 2), (20, 3), (40, 6), (60, 9)])
def test_a_share_of_the_ordinary_tokens_is_predicted(size, count):
    """15 % of them, rounded up to at least one; the targets are the tokens that stood there."""
    (example,) = examples_of(size)
    fates = np.zeros(3, dtype=np.int64)
    for seed in range(60):
        found = masked(example, SPECIAL, np.random.default_rng(seed))
        target = found.targets["token"]
        indices = target.output_indices[:, 0]
        assert abs(len(indices) - 0.15 * size) < 1 or len(indices) == count == 1
        assert len(set(indices.tolist())) == len(indices) and 1 <= indices.min() and indices.max() <= size
        assert list(found.targets) == ["token"]
        assert np.array_equal(target.labels, example.tokens[indices])
        others = np.setdiff1d(np.arange(size + 2), indices)
        assert np.array_equal(found.tokens[others], example.tokens[others])
        hidden = found.tokens[indices]
        fates += [(hidden == SPECIAL.mask).sum(), (hidden == example.tokens[indices]).sum(), len(hidden)]
        assert found.positions is example.positions and found.token_types is example.token_types
    if size == 60:
        assert 0.7 < fates[0] / fates[2] < 0.9 and 0.04 < fates[1] / fates[2] < 0.2


def test_what_is_masked_depends_on_seed_epoch_and_number_alone():
    examples = examples_of(30, 30, 30)
    found = masked_all(examples, np.array([2, 0]), SPECIAL, seed=5, epoch=3)
    for example, member in zip(found, (2, 0), strict=True):
        rng = randomness.generator(5, 3, randomness.AUXILIARY, member)
        assert np.array_equal(example.tokens, masked(examples[member], SPECIAL, rng).tokens)
    for seed, epoch in ((6, 3), (5, 4)):
        assert not np.array_equal(found[0].tokens, masked_all(examples, np.array([2]), SPECIAL, seed, epoch)[0].tokens)
