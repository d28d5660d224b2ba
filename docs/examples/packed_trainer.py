"""Packs texts into rows under the Trainer of transformers; no text sees another, so each is learnt as if alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

import unified.huggingface  # noqa: F401, registers the attention "unified"
from unified import masks


@dataclass
class PackingCollator:
    """Makes rows of ``length`` tokens of the texts of a batch, for a decoder: ``Trainer(data_collator=...)``.

    Positions begin anew with each text, and no text's first token is predicted from the text before it.
    """

    length: int

    def __call__(self, features: Sequence[dict]) -> dict:
        """Fills rows with texts, the longest first, each into the first row that has room."""
        rows: list[list[list[int]]] = []
        for text in sorted((list(feature["input_ids"])[: self.length] for feature in features), key=len, reverse=True):
            fits = (row for row in rows if sum(map(len, row)) + len(text) <= self.length)
            row = next(fits, None)
            if row is None:
                rows.append(row := [])
            row.append(text)
        ids, positions = torch.zeros(2, len(rows), self.length, dtype=torch.long)
        labels = torch.full_like(ids, -100)
        for index, row in enumerate(rows):
            start = 0
            for text in row:
                here = slice(start, start := start + len(text))
                ids[index, here], positions[index, here] = torch.tensor(text), torch.arange(len(text))
                labels[index, here] = torch.tensor([-100, *text[1:]])
        mask = masks.pack_rows([[masks.left_to_right(len(text)) for text in row] for row in rows], self.length)
        return {"input_ids": ids, "position_ids": positions, "labels": labels, "unified_mask": mask}
