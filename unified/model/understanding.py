"""The Transformer with the head of a task, or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import nn

from unified.data.example import Batch
from unified.data.targets import TASK, TOKEN
from unified.errors import UnifiedError
from unified.model.config import TransformerConfig
from unified.model.heads import LanguageModelHead, LossSum, TaskHead, class_loss
from unified.model.recurrent import SequenceLSTM
from unified.model.transformer import Transformer

#: Places that are read at the same time where no gradient is wanted, so that long items take little more memory than
#: their states.
_PLACES = 8192


class UnderstandingModel(nn.Module):
    """Hidden states -> what a head makes of those at the places that are read.

    Args:
        config: of the Transformer.
        heads: modules from states and a reading, see :class:`unified.tasks.base.Understanding`, by name.
        predicts_tokens: whether it has a language model's head too, for masked language modelling beside the tasks.

    With ``config.lstm`` the heads of tasks read what a bidirectional LSTM makes of the last layer's states; the head
    that predicts tokens reads the states themselves.

    Raises:
        UnifiedError: beside a head with ``layers`` there is something else to learn.
    """

    def __init__(self, config: TransformerConfig, heads: Mapping[str, TaskHead], predicts_tokens: bool = False):
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        self.heads = nn.ModuleDict(heads)
        if predicts_tokens and config.token_head == "none":
            raise UnifiedError("masked language modelling beside tasks needs a model with a token head (token_head)")
        self.token_head = LanguageModelHead(config) if predicts_tokens else None
        self.fixed = any(module.layers is not None for module in self.heads.values())
        if self.fixed and config.lstm:
            raise UnifiedError("a head on the features of a fixed model has an LSTM of its own; leave lstm out")
        self.lstm = SequenceLSTM(config) if config.lstm else None
        if self.fixed and (len(heads) > 1 or predicts_tokens):
            raise UnifiedError("a head on the features of a fixed model must be the only thing that is learnt")
        if self.fixed:
            self.transformer.requires_grad_(False)

    def forward(self, batch: Batch, reading: Mapping[str, torch.Tensor], head: str) -> object:
        """What ``head`` makes of the states (N, D) of the N places of the targets ``task``."""
        module, places = self.heads[head], batch.targets[TASK].places
        if module.layers is not None:
            return module(self._features(batch, places, module.layers), reading)
        read = self._states if self.lstm is None else self._recurrent_states
        return module(_in_portions(batch, places, read), reading)

    def train(self, mode: bool = True) -> UnderstandingModel:
        super().train(mode)
        if self.fixed:
            self.transformer.eval()
        return self

    def token_loss(self, batch: Batch) -> LossSum:
        """Of the targets ``token``, in nats."""
        targets = batch.targets[TOKEN]
        states = _in_portions(batch, targets.places, self._states)
        return class_loss(self.token_head(states, self.transformer.embeddings.tokens), targets.labels)

    def idle(self, head: str) -> torch.Tensor:
        """0, with a gradient of 0 for all heads but ``head``: distributed training wants one for every parameter."""
        others = (p for name, module in self.heads.items() if name != head for p in module.parameters())
        return sum((p.sum() * 0.0 for p in others), self.transformer.embeddings.tokens.weight.new_zeros(()))

    def task_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters that only the tasks need: those of their heads and of the LSTM."""
        for module in (self.heads, self.lstm):
            yield from () if module is None else module.parameters()

    def _states(self, batch: Batch, places: torch.Tensor | None) -> torch.Tensor:
        """(N, D), the last layer's at N places; None gives (B, T, D)."""
        return self.transformer(
            batch.tokens, batch.positions, batch.token_types, batch.mask, places=places, entities=batch.entities
        )

    def _recurrent_states(self, batch: Batch, places: torch.Tensor) -> torch.Tensor:
        """(N, D), the LSTM's."""
        return self.lstm(self._states(batch, None), batch.mask.key_documents(), places)

    @torch.no_grad()
    def _features(self, batch: Batch, places: torch.Tensor, layers: Sequence[int]) -> torch.Tensor:
        """(K, N, D), the states of the K layers at the places that are read."""
        every: list[torch.Tensor] = []
        last = self.transformer(
            batch.tokens, batch.positions, batch.token_types, batch.mask, entering=every, entities=batch.entities
        )
        every.append(last)
        return torch.stack([every[layer].flatten(0, 1).index_select(0, places) for layer in layers])

    @property
    def head_parts(self) -> tuple[str, ...]:
        """What the names of parameters of each head, and of each module in it, begin with."""
        heads = tuple(f"heads.{name}." for name in self.heads)
        parts = (f"heads.{name}.{part}." for name, head in self.heads.items() for part, _ in head.named_children())
        return heads + tuple(parts)


def _in_portions(
    batch: Batch, places: torch.Tensor, states: Callable[[Batch, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """(N, D) ``states`` of a batch at N places; where no gradient is wanted, of some rows at a time."""
    rows = len(batch.tokens) if torch.is_grad_enabled() else max(1, _PLACES // batch.tokens.size(1))
    return torch.cat([states(part, own) for part, own in _portions(batch, places, rows)])


def _portions(batch: Batch, places: torch.Tensor, rows: int) -> Iterator[tuple[Batch, torch.Tensor]]:
    """What the Transformer reads of a batch, and the places that are read, so many rows at a time."""
    if rows >= len(batch.tokens):
        yield batch, places
        return
    queries = batch.positions.size(1)
    for i in range(0, len(batch.tokens), rows):
        inside = places - i * queries
        inside = inside[(inside >= 0) & (inside < rows * queries)]
        yield batch.rows(slice(i, i + rows)), inside


def with_pooler(parameters: Mapping[str, torch.Tensor], model: UnderstandingModel) -> dict[str, torch.Tensor]:
    """Parameters of a language model with the pooler of its next-sentence head as that of each head with a pooler."""
    old = "next_sentence_head.pooler."
    if not any(name.startswith(old) for name in parameters):
        return dict(parameters)
    kept = {name: value for name, value in parameters.items() if not name.startswith(old)}
    for head in (name for name, module in model.heads.items() if module.takes_pooler):
        for part in ("weight", "bias"):
            kept[f"heads.{head}.pooler.{part}"] = parameters[old + part]
    return kept


def without_other_sizes(
    parameters: Mapping[str, torch.Tensor], model: UnderstandingModel
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Parameters without the parts of heads that have another size in ``model``, such as a projection to more labels.

    Returns:
        What is left, and the names of what is not.
    """
    own = model.state_dict()
    differ = [name for name, value in parameters.items() if name in own and value.shape != own[name].shape]
    parts = {max(filter(name.startswith, model.head_parts), key=len, default=None) for name in differ} - {None}
    left_out = [name for name in parameters if name.startswith(tuple(parts))]
    return {name: value for name, value in parameters.items() if name not in left_out}, left_out
