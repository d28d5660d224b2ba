"""What the call of an objective may return is refused in one line where it is no example, before anything is joined."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from docs.examples.suffix_objective import Suffix
from unified import masks
from unified.data.targets import TOKEN
from unified.errors import UnifiedError
from unified.testing import check_objective


@dataclass(frozen=True)
class Returns(Suffix):
    """The example of the documentation, made into something else."""

    what: str = ""

    def __call__(self, text, rng):
        return FAULTS[self.what][0](super().__call__(text, rng))


def retarget(example, **changes):
    return replace(example, targets={TOKEN: replace(example.targets[TOKEN], **changes)})


FAULTS = {
    "nothing": (lambda example: None, "objective suffix returns NoneType when called; expected an Example"),
    "a tuple": (
        lambda example: (example.tokens, example.mask),
        "objective suffix returns tuple when called; expected an Example",
    ),
    "a matrix": (
        lambda example: replace(example, mask=example.mask.dense()),
        "objective suffix makes examples whose mask is Tensor; expected an AttentionMask",
    ),
    "a batch of masks": (
        lambda example: replace(example, mask=masks.batch([example.mask])),
        "the mask of an example of 'suffix' must be of one row, got a batch",
    ),
    "a list of targets": (
        lambda example: replace(example, targets=[*example.targets.values()]),
        "objective suffix makes examples whose targets are list; expected a dictionary by head",
    ),
    "labels as targets": (
        lambda example: replace(example, targets={TOKEN: example.targets[TOKEN].labels}),
        "objective suffix has ndarray as targets of the head 'token'; expected an ExampleTargets",
    ),
    "rows of tokens": (
        lambda example: replace(example, tokens=example.tokens[None]),
        "objective suffix makes examples whose tokens have shape (1, 2); expected (T,)",
    ),
    "one position": (
        lambda example: replace(example, positions=0),
        "objective suffix makes examples whose positions have shape (); expected (T,)",
    ),
    "columns of labels": (
        lambda example: retarget(example, labels=example.targets[TOKEN].labels[:, None]),
        "objective suffix made labels of shape (106, 1) and dtype int64 for the head 'token'; expected numbers (N,)",
    ),
    "columns of weights": (
        lambda example: retarget(example, weights=np.ones((len(example.targets[TOKEN]), 2))),
        "objective suffix made weights of shape (106, 2) and dtype float64 for the head 'token'; expected numbers (N,)",
    ),
    "words as divisors": (
        lambda example: retarget(example, divisors=np.full(len(example.targets[TOKEN]), "1")),
        "objective suffix made divisors of shape (106,) and dtype <U1 for the head 'token'; expected numbers (N,)",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_what_is_no_example_is_named(what):
    with pytest.raises(UnifiedError) as refusal:
        check_objective(Returns(what=what))
    assert str(refusal.value) == FAULTS[what][1]
