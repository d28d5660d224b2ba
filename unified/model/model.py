"""The one model: the Transformer and a dictionary of heads, for language modelling and for understanding tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from unified.arguments import counted
from unified.data.example import Batch
from unified.data.targets import BOUNDARY, EXTRACTIVE, TASK, TOKEN, Targets, loss_name
from unified.errors import UnifiedError
from unified.model.config import TransformerConfig
from unified.model.embeddings import SymbolTable
from unified.model.head_checks import check_heads, check_losses
from unified.model.heads import (
    LanguageModelHead,
    LossSum,
    PredictionHead,
    SymbolScoring,
    TaskHead,
    language_heads,
    summed,
)
from unified.model.inputs import require_config
from unified.model.recurrent import SequenceLSTM
from unified.model.relative import Memory
from unified.model.transformer import Transformer

#: Why a model without a token head is refused where tokens are wanted.
NO_TOKEN_HEAD = (
    "the model has no token head (token_head 'none'), so it predicts no tokens; it gives features (embed) and can be "
    "fine-tuned"
)
_LACKING = {
    TOKEN: NO_TOKEN_HEAD,
    BOUNDARY: "the model has no span-boundary head (boundary_offsets is 0)",
    EXTRACTIVE: "the model has no sentence head (sentence_head is False)",
}


class UnifiedModel(nn.Module):
    """The model: from a batch to the losses of its predictions, or to the scores of a task's head.

    Prediction heads find what they predict in ``batch.targets`` under their names. Whatever a batch holds, all of them
    run (on no predictions, if need be), so that all parameters receive a gradient and distributed training needs no
    search for unused ones. Heads of tasks give scores, of which the task makes the loss.

    Args:
        transformer: gives the states.
        heads: by name.
        lstm: a bidirectional one on the last layer's states, which the heads of tasks then read; prediction heads read
            the states themselves.

    Raises:
        UnifiedError: something among the heads is none; or beside a head with ``layers`` there is something else to
            learn.
    """

    #: Tokens that tasks read at once where no gradient is wanted, so that long items take little more memory than their
    #: states.
    tokens_at_once: int = 8192

    def __init__(
        self,
        transformer: Transformer,
        heads: Mapping[str, PredictionHead | TaskHead],
        lstm: SequenceLSTM | None = None,
    ):
        super().__init__()
        check_heads(heads)
        self.config = transformer.config
        self.transformer = transformer
        self.heads = nn.ModuleDict(heads)
        self.lstm = lstm
        #: Whether a head reads the features of a model that is not trained.
        self.fixed = any(head.layers is not None for head in self.task_heads.values())
        if self.fixed and lstm is not None:
            raise UnifiedError("a head on the features of a fixed model has an LSTM of its own; leave lstm out")
        if self.fixed and len(heads) > 1:
            raise UnifiedError("a head on the features of a fixed model must be the only thing that is learnt")
        if self.fixed:
            self.transformer.requires_grad_(False)

    @classmethod
    def for_language(
        cls,
        config: TransformerConfig,
        own_heads: Mapping[str, Callable[[TransformerConfig], PredictionHead]] = MappingProxyType({}),
    ) -> UnifiedModel:
        """A model with the heads of language modelling that ``config`` names, for pre-training and generation.

        Args:
            own_heads: what makes heads of your own from ``config``, by name; training asks them as it asks the others.

        Raises:
            UnifiedError: ``config`` is no configuration, or has an LSTM, which is for tasks.
        """
        require_config(config)
        if config.lstm:
            raise UnifiedError(f"lstm {config.lstm}: the LSTM is for understanding tasks; a language model has none")
        return cls(Transformer(config), language_heads(config, own_heads))

    @classmethod
    def for_tasks(
        cls, config: TransformerConfig, heads: Mapping[str, TaskHead], predicts_tokens: bool = False
    ) -> UnifiedModel:
        """A model with the heads of understanding tasks, see :class:`unified.tasks.heads.base.Understanding`.

        Args:
            heads: by name.
            predicts_tokens: whether it has a token head too, for masked language modelling beside the tasks.

        Raises:
            UnifiedError: see the class; or tokens are to be predicted, and ``config`` has no token head.
        """
        if predicts_tokens and config.token_head == "none":
            raise UnifiedError("masked language modelling beside tasks needs a model with a token head (token_head)")
        transformer = Transformer(config)
        every: dict[str, PredictionHead | TaskHead] = {**heads}
        if predicts_tokens:
            every[TOKEN] = LanguageModelHead(config)
        return cls(transformer, every, SequenceLSTM(config) if config.lstm else None)

    # Heads

    @property
    def symbols(self) -> SymbolTable:
        """The embeddings of all symbols, the output matrix of every softmax over them."""
        return self.transformer.embeddings.tokens

    @property
    def prediction_heads(self) -> dict[str, PredictionHead]:
        """The heads that predict labels, by the names under which they find their targets in a batch."""
        return {name: head for name, head in self.heads.items() if isinstance(head, PredictionHead)}

    @property
    def task_heads(self) -> dict[str, TaskHead]:
        """The heads of understanding tasks, by name."""
        return {name: head for name, head in self.heads.items() if isinstance(head, TaskHead)}

    def head(self, name: str) -> nn.Module:
        """The head of that name.

        Raises:
            UnifiedError: the model has none.
        """
        if name not in self.heads:
            raise UnifiedError(_LACKING.get(name, f"the model has no head {name!r}"))
        return self.heads[name]

    def task_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters that only tasks need: those of their heads and of the LSTM."""
        for module in (*self.task_heads.values(), *([] if self.lstm is None else [self.lstm])):
            yield from module.parameters()

    def train(self, mode: bool = True) -> UnifiedModel:
        super().train(mode)
        if self.fixed:
            self.transformer.eval()
        return self

    # States

    def hidden(
        self, batch: Batch, memory: Memory | None = None, output_indices: torch.Tensor | None = None
    ) -> torch.Tensor:
        """(B, Q, D), the query stream's states behind those of the tokens; or (N, D) of ``output_indices`` (N,)."""
        return self.transformer(
            batch.tokens,
            batch.positions,
            batch.token_types,
            batch.mask,
            memory,
            output_indices=output_indices,
            entities=batch.entities,
        )

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Vocabulary scores (N, V) of the states (N, D) of predicted tokens.

        Raises:
            UnifiedError: the model has no token head.
        """
        return self.head(TOKEN)(states, self.symbols)

    # Predictions

    def forward(
        self, batch: Batch, smoothing: float = 0.0, pad: int | None = None, memory: Memory | None = None
    ) -> dict[str, LossSum]:
        """Losses by name, see :func:`unified.data.targets.loss_name`.

        The names depend on ``batch.objectives`` and the model alone, so that every process logs the same ones.
        ``memory`` is read and goes on by this batch.

        Raises:
            UnifiedError: the batch has targets of a head that the model lacks, or that do not fit the head; or it has a
                query stream, or comes with a memory, and the model's positions are learned; or a head of your own
                returns no losses of its predictions.
        """
        heads = self.prediction_heads
        asked = _targets(batch, heads)
        read = [targets.output_indices.flatten() for targets in asked.values()]
        found = self.hidden(batch, memory, torch.cat(read)).split([len(index) for index in read])
        symbols = SymbolScoring(self.symbols, smoothing, self._unsmoothed(pad) if smoothing else None)
        losses: dict[str, LossSum] = {}
        for (name, targets), states in zip(asked.items(), found, strict=True):
            states = states.unflatten(0, targets.output_indices.shape)  # (N x k, D) -> (N, k, D)
            found_losses = heads[name].losses(states, targets, symbols)
            check_losses(name, found_losses, len(targets))
            sums = summed(found_losses, targets)
            losses |= {loss_name(name, objective): one for objective, one in zip(batch.objectives, sums, strict=True)}
        return losses

    def divisors(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Divisors of each loss of :meth:`forward` for its mean, float64 scalars, 0 where there is none."""
        return {
            loss_name(name, objective): divisor
            for name, targets in _targets(batch, self.prediction_heads).items()
            for objective, divisor in zip(batch.objectives, targets.divisors.unbind(), strict=True)
        }

    def _unsmoothed(self, pad: int | None) -> torch.Tensor:
        """bool (V,), symbols that label smoothing gives nothing: padding, and those that the softmax leaves out."""
        left_out = self.symbols.left_out
        if pad is not None:
            left_out[pad] = True
        return left_out

    # Tasks

    def scores(self, batch: Batch, reading: Mapping[str, torch.Tensor], head: str) -> Any:
        """Scores that a task's head computes from the states (N, D) at ``output_indices`` of the targets ``task``.

        Args:
            reading: what the head reads beside the states, see :meth:`unified.tasks.heads.base.Encoded.reading`.
            head: its name.
        """
        module, output_indices = self.task_heads[head], batch.targets[TASK].output_indices[:, 0]
        if module.layers is not None:
            return module(self._features(batch, output_indices, module.layers), reading)
        return module(_in_portions(batch, output_indices, self._task_states, self.tokens_at_once), reading)

    def idle(self, head: str) -> torch.Tensor:
        """0, with a gradient of 0 for the heads of all tasks but ``head``.

        The heads of tasks cannot run on no predictions, and distributed training wants a gradient of every parameter.
        """
        others = (p for name, module in self.task_heads.items() if name != head for p in module.parameters())
        return sum((p.sum() * 0.0 for p in others), self.symbols.weight.new_zeros(()))

    def _task_states(self, batch: Batch, output_indices: torch.Tensor) -> torch.Tensor:
        """(N, D) states that the heads of tasks read at N indices: the last layer's, or the LSTM's."""
        if self.lstm is None:
            return self.hidden(batch, output_indices=output_indices)
        return self.lstm(self.hidden(batch), batch.mask.key_documents(), output_indices)

    @torch.no_grad()
    def _features(self, batch: Batch, output_indices: torch.Tensor, layers: Sequence[int]) -> torch.Tensor:
        """(K, N, D), the states of the K layers that are read."""
        every: list[torch.Tensor] = []
        last = self.transformer(
            batch.tokens, batch.positions, batch.token_types, batch.mask, hidden_states=every, entities=batch.entities
        )
        every.append(last)
        return torch.stack([every[layer].flatten(0, 1).index_select(0, output_indices) for layer in layers])


def _targets(batch: Batch, heads: Mapping[str, PredictionHead]) -> dict[str, Targets]:
    """Targets of each head; a head without predictions in the batch has none."""
    for name, targets in batch.targets.items():
        if name not in heads and len(targets):
            raise UnifiedError(_LACKING.get(name, f"the model has no head {name!r}, which the batch asks"))
        if name in heads:
            _check_fit(name, heads[name], targets)
    device = batch.tokens.device
    return {
        name: batch.targets[name]
        if name in batch.targets
        else Targets.none(head.states_read, head.inputs, len(batch.objectives), device)
        for name, head in heads.items()
    }


def _check_fit(name: str, head: PredictionHead, targets: Targets) -> None:
    """Refuse targets that have other numbers of states than the head reads, or not all of its inputs."""
    states = targets.output_indices.size(1)
    if states != head.states_read:
        raise UnifiedError(
            f"targets of the head {name!r} have output_indices of {counted(states, 'column')}; the head reads "
            f"{head.states_read}"
        )
    missing = [wanted for wanted in head.inputs if wanted not in targets.inputs]
    if missing:
        raise UnifiedError(f"targets of the head {name!r} lack the inputs {', '.join(missing)}")


def _in_portions(
    batch: Batch,
    output_indices: torch.Tensor,
    states: Callable[[Batch, torch.Tensor], torch.Tensor],
    tokens_at_once: int,
) -> torch.Tensor:
    """(N, D) ``states`` of a batch at N indices; where no gradient is wanted, of some rows at a time."""
    rows = len(batch.tokens) if torch.is_grad_enabled() else max(1, tokens_at_once // batch.tokens.size(1))
    return torch.cat([states(part, own) for part, own in _portions(batch, output_indices, rows)])


def _portions(batch: Batch, output_indices: torch.Tensor, rows: int) -> Iterator[tuple[Batch, torch.Tensor]]:
    """Portions of ``rows`` rows of a batch, each with the indices of its states that are read."""
    if rows >= len(batch.tokens):
        yield batch, output_indices
        return
    queries = batch.positions.size(1)
    for i in range(0, len(batch.tokens), rows):
        inside = output_indices - i * queries
        inside = inside[(inside >= 0) & (inside < rows * queries)]
        yield batch.rows(slice(i, i + rows)), inside
