"""Generators of random numbers: each seed, epoch, purpose and index has its own, at both ends of their range."""

import warnings

import numpy as np
import pytest

from unified.data import randomness
from unified.data.randomness import generator

GREATEST = 2**64 - 1


def drawn(seed=1, epoch=1, purpose=randomness.PLAN, index=0) -> tuple[int, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return tuple(generator(seed, epoch, purpose, index).integers(2**63, size=4).tolist())


@pytest.mark.parametrize("name", ["seed", "epoch", "index"])
def test_neighbours_have_other_numbers_over_all_64_bits(name):
    values = [0, 1, 2, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, GREATEST - 1, GREATEST]
    assert len({drawn(**{name: value}) for value in values}) == len(values)


def test_each_purpose_and_each_argument_has_numbers_of_its_own():
    assert len({drawn(purpose=purpose) for purpose in range(9)}) == 9
    assert len({drawn(seed=2), drawn(epoch=2), drawn(index=2), drawn(), drawn(seed=2, epoch=2)}) == 5
    assert drawn() == drawn()


def test_the_numbers_are_those_of_philox():
    """Salmon et al. 2011: key (seed, epoch), counter (numbers drawn, index, purpose, 0), as NumPy counts them."""
    bits = np.random.Philox(
        key=np.array([GREATEST, 5], dtype=np.uint64), counter=np.array([0, 7, 3, 0], dtype=np.uint64)
    )
    assert generator(GREATEST, 5, 3, 7).bit_generator.random_raw(9).tolist() == bits.random_raw(9).tolist()
