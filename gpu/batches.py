"""Random packed batches of a mixture of objectives, and a model that learns them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from tests.support.token_files import write
from unified.data.collate import collate
from unified.data.example import Batch
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.training.row_dataset import RowDataset

VOCABULARY = Vocabulary([f"w{i}" for i in range(1000)])
#: Six objectives whose masks differ.
MIXTURE = "bidirectional,left_to_right,right_to_left,seq2seq,prefix_lm,random_spans"
#: Tokens of the corpus for each token of a row.
_CORPUS = 400


def random_batches(folder: Path, length: int, rows: int, objectives: str = MIXTURE, seed: int = 1) -> Iterator[Batch]:
    """Batches of ``rows`` packed rows of ``length`` tokens without an end; ``folder`` takes their corpus."""
    rng, special = np.random.default_rng(seed), VOCABULARY.special
    items: list[list[int]] = []
    while sum(map(len, items)) < _CORPUS * length:
        for size in rng.integers(5, 40, rng.integers(4, 30)):
            words = rng.integers(special.ordinary_start, special.ordinary_stop, size)
            items.append([*words.tolist(), special.separator])
        items.append([special.separator])
    texts = DocumentTexts(write(folder / "train", items), special)
    data = RowDataset(texts, parse_objectives(objectives), length, seed)
    for epoch in itertools.count(1):
        data.set_epoch(epoch)
        for first in range(0, len(data) - rows + 1, rows):
            examples = [data[row] for row in range(first, first + rows)]
            yield collate(examples, length, data.objective_names, special.pad)


def small_model(
    length: int, backend: str = "auto", layers: int = 4, width: int = 256, dropout: float = 0.0, **changes: object
) -> UnifiedModel:
    """A language model for rows of ``length``, in training mode, with the same weights in each call."""
    torch.manual_seed(0)
    config = TransformerConfig(
        len(VOCABULARY), layers=layers, width=width, heads=max(2, width // 64), max_positions=length, dropout=dropout,
        attention_dropout=0.0, attention_backend=backend, **changes,
    )  # fmt: skip
    return UnifiedModel.for_language(config).train()
