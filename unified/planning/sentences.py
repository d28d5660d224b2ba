"""Begins of sentences and documents in running text, which is all that most of planning reads of it."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Sentences(Protocol):
    """Borders of S sentences in D documents; :class:`unified.planning.documents.DocumentTexts` finds them in a file.

    Attributes:
        items: int64 (S,), the item of the token file that holds each sentence.
        bounds: int64 (S + 1,), the index where each sentence begins, and the end.
        borders: int8 (S + 1,), what there is at each of ``bounds``, see :mod:`unified.planning.second_shapes`.
        document_starts: int64 (D + 1,), the first sentence of each document, and the end.
    """

    items: np.ndarray
    bounds: np.ndarray
    borders: np.ndarray
    document_starts: np.ndarray

    @property
    def document_count(self) -> int:
        """D."""
        ...
