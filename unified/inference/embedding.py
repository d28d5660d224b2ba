"""Vectors of texts: states of a model, averaged or of its first symbol, as sentence encoders are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.nn import functional

from unified.arguments import by_length, require_integer, require_texts
from unified.data.collate import collate
from unified.data.targets import TASK
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import UnifiedModel
from unified.tasks.heads import Codec
from unified.tasks.heads.sequences import sequence
from unified.tokenization import Tokenizer

POOLINGS = ("mean", "cls")


class Embedding:
    """Methods of :class:`unified.inference.language_model.UnifiedLM` for any model."""

    model: UnifiedModel
    vocabulary: Vocabulary
    tokenizer: Tokenizer
    encode: Callable[[str], list[int]]
    _require_one_model: Callable[[str], None]

    @torch.no_grad()
    def embed(
        self,
        texts: Sequence[str],
        pooling: str = "mean",
        *,
        normalize: bool = False,
        max_tokens: int = 0,
        batch_size: int = 32,
    ) -> torch.Tensor:
        """A vector of each text, from the last states of its sequence.

        The sequence is ``CLS text SEP``, or ``text SEP CLS`` for models with relative positions (XLNet). It is read in
        both directions, or under the mask that the model was trained with.

        Args:
            pooling: "mean" averages the states of all tokens of the sequence, special symbols included, as sentence
                encoders such as MiniLM do; "cls" takes the state of CLS, or of the last SEP where
                a left-to-right mask hides the text from CLS.
            normalize: give each vector length 1, as many sentence encoders want before vectors are compared.
            max_tokens: read only so many first tokens of each text, special symbols not counted; 0 reads all.
            batch_size: texts that are read together.

        Returns:
            float32 (N, D) on the CPU, in the order of the texts.

        Raises:
            UnifiedError: ``texts`` is not a list of texts, one is longer than the position table, or an option is
                unknown.
        """
        self._require_one_model("embed")
        texts = require_texts("texts", texts)
        if pooling not in POOLINGS:
            raise UnifiedError(f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
        require_integer("max_tokens", max_tokens, 0)
        rows = [np.array(self.encode(text)[: max_tokens or None], dtype=np.int64) for text in texts]
        self._require_room(rows)
        weight = self.model.transformer.embeddings.tokens.weight
        vectors = torch.zeros(len(rows), weight.size(1))
        for numbers in by_length(rows, batch_size):
            vectors[numbers] = self._pooled([rows[i] for i in numbers], pooling, weight.device)
        return functional.normalize(vectors, dim=-1) if normalize else vectors

    def _pooled(self, rows: list[np.ndarray], pooling: str, device: torch.device) -> torch.Tensor:
        """float32 (N, D) on the CPU, of the ids of N texts."""
        config, special = self.model.config, self.vocabulary.special
        codec = Codec.for_model(config, self.tokenizer, self.vocabulary, config.position_limit)
        read = [np.arange(len(row) + 2) if pooling == "mean" else None for row in rows]
        examples = [sequence((row,), codec, places) for row, places in zip(rows, read, strict=True)]
        batch = collate([[example] for example in examples], None, ("task",), special.pad).to(device)
        states = self.model.hidden(batch, places=batch.targets[TASK].places)
        each = [len(example.targets[TASK]) for example in examples]
        return torch.stack([own.mean(0) for own in states.float().split(each)]).cpu()

    def _require_room(self, rows: list[np.ndarray]) -> None:
        room = self.model.config.position_limit - 2
        for number, row in enumerate(rows):
            if len(row) > room:
                raise UnifiedError(
                    f"texts[{number}] has {len(row)} tokens, the model reads {room} beside its special symbols; "
                    f"max_tokens={room} reads the first ones of such texts"
                )
