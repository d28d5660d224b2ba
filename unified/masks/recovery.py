"""Finds the steps of a matrix, which exist exactly if some order makes the readers of every key consecutive."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from unified.masks import intervals
from unified.masks.builders import of_steps
from unified.masks.checks import as_array, shown
from unified.masks.mask import AttentionMask
from unified.masks.steps import Steps


def is_interval(dense: torch.Tensor | npt.NDArray[np.bool_]) -> bool:
    """Whether steps can say a bool (T, S) matrix: some order of the queries makes the readers of every key consecutive.

    Raises:
        ValueError: ``dense`` is no boolean matrix.
    """
    return intervals.is_interval(_array(dense))


def from_dense(dense: torch.Tensor | npt.NDArray[np.bool_]) -> AttentionMask:
    """The mask of a bool (T, S) matrix, as one document.

    The rows of a square matrix are tokens that are query and key at once; any other matrix has queries without a key of
    their own, as in a query stream. Equal rows share a step; :func:`unified.masks.intervals.steps_of_matrix` says which
    of several orders is taken. Steps count from 0, so what the first step shows counts as given, and has no query
    stream.

    Raises:
        ValueError: ``dense`` is no boolean matrix; or steps cannot say it, and the message names keys and queries that
            forbid it.
    """
    step, start, stop = intervals.steps_of_matrix(_array(dense))
    ends = np.array([1 + int(step.max(initial=-1))])
    return of_steps(Steps(step, start, stop, ends))


def _array(dense: torch.Tensor | npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    try:
        array = as_array(dense)
    except ValueError:  # lists of different lengths
        array = np.empty((), dtype=object)
    if array.dtype == object:  # a mask, None
        raise ValueError(f"dense must be a boolean matrix (queries, keys), got {shown(dense)}")
    return array
