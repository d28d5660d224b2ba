"""Symbols that a training may have as targets, known before it begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unified.data.token_files import TokenFile
from unified.data.vocabulary import SpecialTokens
from unified.objectives.arrays import naming_objective
from unified.objectives.mixture import Mixture
from unified.training.row_dataset import longest_text


def target_symbols(
    symbols: np.ndarray, files: Sequence[TokenFile], mixture: Mixture, special: SpecialTokens, row_length: int
) -> np.ndarray:
    """Picks the symbols that may be targets: those in the data, separators, and sentinels that an objective writes.

    It depends on the data and the settings alone, so that all processes of a training agree.

    Args:
        symbols: int64 (n,), token ids.
        files: all texts that are trained and validated on.
        mixture: the objectives.
        special: ids of the special symbols.
        row_length: tokens of a row, which bound how long a text can be.

    Returns:
        int64 (m,), in the order of ``symbols``.
    """
    sentinels = 0
    for name, objective in mixture:
        longest = longest_text(Mixture((objective,), (1.0,), (name,)), row_length)
        with naming_objective(name, type(objective).__module__):
            sentinels = max(sentinels, objective.target_sentinels(longest))
    written = symbols == special.separator
    written |= (symbols >= special.first_sentinel) & (symbols < special.first_sentinel + sentinels)
    for file in files:
        written[~written] = file.holds(symbols[~written])
    return symbols[written]
