"""Vectors of texts: states of a model, averaged or of its first symbol, as sentence encoders are used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from unified.arguments import by_length, require_integer
from unified.data.collate import collate
from unified.data.targets import TASK
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError, nearest
from unified.inference.sequences import Codec, sequence
from unified.model import UnifiedModel
from unified.tokenization import Tokenizer

POOLINGS = ("mean", "cls")


def embedded(
    model: UnifiedModel,
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    ids: Sequence[Sequence[int]],
    pooling: str,
    normalize: bool,
    max_tokens: int,
    batch_size: int,
) -> torch.Tensor:
    """Vectors of texts, float32 (N, D) on the CPU, from their ids; see :meth:`.TrainedModel.embed`."""
    if pooling not in POOLINGS:
        raise UnifiedError(
            f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}{nearest(str(pooling), POOLINGS)}"
        )
    require_integer("max_tokens", max_tokens, 0)
    rows = [np.array(row[: max_tokens or None], dtype=np.int64) for row in ids]
    _require_short(rows, model.config.position_limit - 2)
    codec = Codec.for_model(model.config, tokenizer, vocabulary, model.config.position_limit)
    vectors = torch.zeros(len(rows), model.transformer.embeddings.tokens.weight.size(1))
    for numbers in by_length(rows, batch_size):
        vectors[numbers] = _pooled(model, codec, [rows[i] for i in numbers], pooling)
    return functional.normalize(vectors) if normalize else vectors


def _pooled(model: UnifiedModel, codec: Codec, rows: list[np.ndarray], pooling: str) -> torch.Tensor:
    """float32 (N, D) on the CPU, of the ids of N texts."""
    read = [np.arange(len(row) + 2) if pooling == "mean" else None for row in rows]
    examples = [sequence((row,), codec, output_indices) for row, output_indices in zip(rows, read, strict=True)]
    batch = collate([[example] for example in examples], None, ("task",), codec.vocabulary.special.pad)
    batch = batch.to(model.transformer.embeddings.tokens.weight.device)
    states = model.hidden(batch, output_indices=batch.targets[TASK].output_indices[:, 0])
    each = [len(example.targets[TASK]) for example in examples]
    return torch.stack([own.mean(0) for own in states.float().split(each)]).cpu()


def _require_short(rows: list[np.ndarray], most: int) -> None:
    for number, row in enumerate(rows):
        if len(row) > most:
            raise UnifiedError(
                f"texts[{number}] has {len(row)} tokens, the model reads {most} beside its special symbols; "
                f"max_tokens={most} reads the first ones of such texts"
            )
