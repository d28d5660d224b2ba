"""Sequences after an objective (:class:`Example`, :class:`Examples`, numpy) and packed rows (:class:`Batch`, torch)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from unified.data.extents import Extents, ranges
from unified.data.targets import NEXT_SENTENCE, TOKEN, ExampleTargets, Targets
from unified.errors import UnifiedError
from unified.masks import AttentionMask
from unified.masks.builders import of_steps
from unified.masks.packing import steps_of
from unified.masks.steps import Steps


@dataclass(frozen=True)
class Example:
    """One sequence of T tokens as an objective leaves it; all arrays int64.

    Attributes:
        objective: name of the objective that made it, under which its loss is summed and logged.
        tokens: (T,) input ids, special symbols and corruption included.
        positions: (T,) position ids.
        token_types: (T,) token-type ids (UniLM's also name the objective).
        mask: who sees whom, a row of T tokens that are query and key at once, see :mod:`unified.masks`; query i is
            token i.
        targets: what is predicted, by the name of the head that predicts it. The library's objectives ask ``token``
            (the token at each index), ``next_sentence`` (1 where the second segment follows the first, 0 where it is
            random), ``boundary`` (tokens from the states before and behind their span, with the input ``distances``,
            0, 1, ..., from the first of it), ``extractive`` (1 where a summary takes the sentence that begins there).
        query_stream: tokens are not predicted by themselves but by a query stream: one query for each of
            them that knows where it is and sees what they see, less themselves (XLNet); what the mask must be for that,
            :meth:`unified.masks.AttentionMask.query_stream` says.
        entities: bool (T,), tokens within named entities; None where nobody says.
    """

    objective: str
    tokens: np.ndarray
    positions: np.ndarray
    token_types: np.ndarray
    mask: AttentionMask
    targets: Mapping[str, ExampleTargets]
    query_stream: bool = False
    entities: np.ndarray | None = None


@dataclass(frozen=True)
class Examples:
    """n examples one after another; see :class:`Example` for what each of the fields holds of one.

    All arrays are int64 where nothing else is said.

    Attributes:
        objectives: n names.
        lengths: (n,) tokens of each.
        tokens, positions, token_types: (all tokens,).
        steps: who sees whom, of n sequences.
        targets: by head, the predictions of one example after another.
        target_counts: by head, (n,) predictions of each example.
        query_stream: (n,) 1 or 0.
        entities: bool (all tokens,); None where some example does not say.
    """

    objectives: list[str]
    lengths: np.ndarray
    tokens: np.ndarray
    positions: np.ndarray
    token_types: np.ndarray
    steps: Steps
    targets: Mapping[str, ExampleTargets]
    target_counts: Mapping[str, np.ndarray]
    query_stream: np.ndarray
    entities: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Examples:
        """The examples of a list, joined in new arrays.

        Raises:
            UnifiedError: a mask is not of an example's tokens.
        """
        for example in examples:
            _check_mask(example)

        def each(values: Iterable[int]) -> np.ndarray:
            return np.fromiter(values, dtype=np.int64, count=len(examples))

        def joined(name: str) -> np.ndarray:
            return np.concatenate([_EMPTY, *(getattr(example, name) for example in examples)])

        heads = dict.fromkeys(name for example in examples for name in example.targets)
        of_head = {name: [example.targets.get(name) for example in examples] for name in heads}
        return cls(
            objectives=[example.objective for example in examples],
            lengths=each(len(example.tokens) for example in examples),
            **{name: joined(name) for name in _PER_TOKEN},
            steps=steps_of([example.mask for example in examples]),
            targets={name: _concatenated(own) for name, own in of_head.items()},
            target_counts={name: each(len(one or ()) for one in own) for name, own in of_head.items()},
            query_stream=each(example.query_stream for example in examples),
            entities=_all_or_none([example.entities for example in examples]),
        )

    @classmethod
    def of_one_objective(
        cls,
        objective: str,
        extents: Extents,
        *,
        tokens: np.ndarray,
        token_types: np.ndarray,
        steps: Steps,
        output_indices: np.ndarray,
        labels: np.ndarray,
        is_next: np.ndarray | None = None,
        pair_indices: np.ndarray | None = None,
        entities: np.ndarray | None = None,
    ) -> Examples:
        """Examples of one objective that predicts tokens; positions count from 0, and there is no query stream.

        Args:
            extents: the examples' tokens.
            steps: who sees whom, of n sequences.
            output_indices: (all predictions,), increasing, counted over all examples.
            is_next: (n,), labels of the head ``next_sentence``; None where nobody asks it.
            pair_indices: (n,), the index in each example from which it predicts them; None for the first.
            entities: bool (all tokens,), None where nobody says.
        """
        count = len(extents)
        counts = extents.counts(output_indices)
        targets = {TOKEN: ExampleTargets.at(output_indices - extents.starts.repeat(counts), labels)}
        target_counts = {TOKEN: counts}
        if is_next is not None:
            pair_indices = np.zeros(count, dtype=np.int64) if pair_indices is None else pair_indices
            targets[NEXT_SENTENCE] = ExampleTargets.at(pair_indices, is_next)
            target_counts[NEXT_SENTENCE] = np.ones(count, dtype=np.int64)
        return cls(
            objectives=[objective] * count,
            lengths=extents.lengths,
            tokens=tokens,
            positions=extents.within,
            token_types=token_types,
            steps=steps,
            targets=targets,
            target_counts=target_counts,
            query_stream=np.zeros(count, dtype=np.int64),
            entities=entities,
        )

    @classmethod
    def joined(cls, several: Sequence[Examples], order: np.ndarray) -> Examples:
        """Examples of several ``Examples`` together: those that ``order``, int64 (any,), numbers, in its order."""
        objectives = [objective for one in several for objective in one.objectives]
        extents = Extents(np.concatenate([one.lengths for one in several]))
        tokens = ranges(extents.starts[order], extents.lengths[order])
        entities = _all_or_none([one.entities for one in several])
        targets, target_counts = {}, {}
        for name in dict.fromkeys(name for one in several for name in one.targets):
            none = [np.zeros_like(one.lengths) for one in several]
            own = [one.target_counts.get(name, zeros) for one, zeros in zip(several, none, strict=True)]
            counts = Extents(np.concatenate(own))
            rows = ranges(counts.starts[order], counts.lengths[order])
            targets[name] = _concatenated([one.targets.get(name) for one in several])[rows]
            target_counts[name] = counts.lengths[order]
        return cls(
            objectives=[objectives[i] for i in order.tolist()],
            lengths=extents.lengths[order],
            **{name: np.concatenate([getattr(one, name) for one in several])[tokens] for name in _PER_TOKEN},
            steps=Steps.joined([one.steps for one in several]).reordered(tokens, order),
            targets=targets,
            target_counts=target_counts,
            query_stream=np.concatenate([one.query_stream for one in several])[order],
            entities=None if entities is None else entities[tokens],
        )

    def with_targets(self, name: str, targets: ExampleTargets, counts: np.ndarray) -> Examples:
        """Adds the predictions of one more head; ``counts``, int64 (n,), says how many each example has."""
        return replace(
            self, targets={**self.targets, name: targets}, target_counts={**self.target_counts, name: counts}
        )

    def split(self) -> list[Example]:
        """A list of the single examples, as views."""
        names = [name for name in (*_PER_TOKEN, "entities") if getattr(self, name) is not None]
        ends = np.cumsum(self.lengths)[:-1]
        cuts = {name: np.split(getattr(self, name), ends) for name in names}
        targets = {name: own.split(self.target_counts[name]) for name, own in self.targets.items()}
        steps = self.steps.split(self.lengths)
        return [
            Example(
                objective=objective,
                **{name: views[i] for name, views in cuts.items()},
                mask=of_steps(steps[i]),
                targets={name: views[i] for name, views in targets.items()},
                query_stream=bool(self.query_stream[i]),
            )
            for i, objective in enumerate(self.objectives)
        ]


_EMPTY = np.empty(0, dtype=np.int64)
_PER_TOKEN = ("tokens", "positions", "token_types")


def _concatenated(several: Sequence[ExampleTargets | None]) -> ExampleTargets:
    """Concatenates the targets of one head; None stands for an example without any."""
    return ExampleTargets.concatenate([one for one in several if one is not None])


@dataclass(frozen=True)
class Batch:
    """B rows of T tokens; each row holds one or more examples, which do not see each other, and padding.

    Behind its T tokens a row has those of its query stream, if any example of the batch has one: Q queries in all.

    Attributes:
        tokens: int64 (B, T).
        positions, token_types: int64 (B, Q).
        mask: of int32 steps, (B, Q) queries by (B, T) keys; each example is a document of its row.
        targets: by head, what it predicts; a head that is asked nothing may be missing.
        entities: bool (B, T), tokens within named entities; None where some example does not say.
        objectives: names of the objectives; the same tuple in every batch of a run.

    A row of ten tokens with two examples: one that sees all of itself, predicts a hidden token and says that its second
    segment follows; and one that is read left to right, every token predicting the next.

    >>> from unified import masks
    >>> from unified.data.collate import collate
    >>> def example(objective, tokens, mask, targets):
    ...     positions, types = np.arange(len(tokens)), np.zeros(len(tokens), dtype=int)
    ...     return Example(objective, np.array(tokens), positions, types, mask, targets)
    >>> def targets(indices, labels):
    ...     return ExampleTargets.at(np.array(indices), np.array(labels))
    >>> first = example("bert", [0, 11, 99, 2, 13, 2], masks.bidirectional(6),
    ...                 {"token": targets([2], [12]), "next_sentence": targets([0], [1])})
    >>> second = example("next", [21, 22, 23], masks.left_to_right(3), {"token": targets([0, 1], [22, 23])})
    >>> batch = collate([[first, second]], row_length=10, objectives=("bert", "next"), pad=1)
    >>> batch.tokens.tolist()
    [[0, 11, 99, 2, 13, 2, 21, 22, 23, 1]]
    >>> batch.positions.tolist()
    [[0, 1, 2, 3, 4, 5, 0, 1, 2, 0]]
    >>> batch.mask.dense()[0, 5:8].int()  # what the last SEP sees, and the first two tokens of the second example
    tensor([[1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 1, 1, 0, 0]], dtype=torch.int32)
    >>> token = batch.targets["token"]
    >>> token.output_indices.tolist(), token.labels.tolist(), token.objectives.tolist()
    ([[2], [6], [7]], [12, 22, 23], [0, 1, 1])
    >>> token.divisors.tolist()  # the loss of "bert" is a mean over one prediction, that of "next" over two
    [1.0, 2.0]
    >>> pairs = batch.targets["next_sentence"]
    >>> pairs.output_indices.tolist(), pairs.labels.tolist(), pairs.objectives.tolist(), pairs.divisors.tolist()
    ([[0]], [1], [0], [1.0, 0.0])
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    token_types: torch.Tensor
    mask: AttentionMask
    targets: Mapping[str, Targets]
    objectives: tuple[str, ...]
    entities: torch.Tensor | None = None

    @property
    def prediction_count(self) -> int:
        """Predictions of all heads together."""
        return sum(map(len, self.targets.values()))

    def tensors(self) -> dict[str, Any]:
        """The tensors by the names of their fields; those of the mask and of the targets in dictionaries within it."""
        found = {
            "tokens": self.tokens,
            "positions": self.positions,
            "token_types": self.token_types,
            "mask": self.mask.tensors(),
            "targets": {name: targets.tensors() for name, targets in self.targets.items()},
        }
        return found if self.entities is None else found | {"entities": self.entities}

    def known(self) -> dict[str, Any]:
        """Values that are no tensors: ``objectives``; of the mask ``structure``, ``exclude_self`` and ``window``."""
        mask = {name: getattr(self.mask, name) for name in ("structure", "exclude_self", "window")}
        return {"objectives": self.objectives, "mask": mask}

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Any], known: Mapping[str, Any]) -> Batch:
        """The batch of which :meth:`tensors` and :meth:`known` gave these, wherever the tensors have been moved."""
        mask = AttentionMask.unchecked(**tensors["mask"], **known["mask"])
        targets = {name: Targets(**own) for name, own in tensors["targets"].items()}
        return cls(**{**tensors, "mask": mask, "targets": targets}, objectives=known["objectives"])

    def to(self, device: torch.device | str) -> Batch:
        """Copies the batch to another device, its mask and targets too."""
        return replace(
            self,
            **{name: getattr(self, name).to(device, non_blocking=True) for name in _PER_TOKEN},
            mask=self.mask.to(device),
            targets={name: one.to(device) for name, one in self.targets.items()},
            entities=None if self.entities is None else self.entities.to(device, non_blocking=True),
        )

    def rows(self, which: slice) -> Batch:
        """Some of the rows, as views, with the targets of all."""
        return replace(
            self,
            **{name: getattr(self, name)[which] for name in _PER_TOKEN},
            mask=self.mask.rows(which),
            entities=None if self.entities is None else self.entities[which],
        )


def query_stream_problem(example: Example) -> str | None:
    """Says why the mask of an example has no query stream for its targets; None where it has, or none is asked for."""
    if example.query_stream and TOKEN in example.targets:
        try:
            example.mask.query_stream(example.targets[TOKEN].output_indices[:, 0])
        except ValueError as error:
            return str(error)
    return None


def _check_mask(example: Example) -> None:
    """Raise a UnifiedError unless the mask is one of the example's tokens alone."""
    mask, length = example.mask, len(example.tokens)
    if mask.batched:
        raise UnifiedError(f"the mask of an example of {example.objective!r} must be of one row, got a batch")
    if (mask.query_length, mask.key_length) != (length, length):
        raise UnifiedError(
            f"an example of {example.objective!r} has {length} tokens, but its mask has {mask.query_length} queries "
            f"and {mask.key_length} keys"
        )
    if not mask.only_steps or mask.document_count > 1:
        raise UnifiedError(
            f"the mask of an example of {example.objective!r} must be one of steps alone, of one document: "
            "without_self, causal and windowed are a model's, and packing comes later"
        )
    if mask.query_key is not None and not torch.equal(mask.query_key.cpu(), torch.arange(length)):
        raise UnifiedError(
            f"the mask of an example of {example.objective!r} must have query i for token i; its query_key says "
            "otherwise"
        )


def _all_or_none(arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Concatenates the arrays; None if one of them is None, or there are none."""
    known = [array for array in arrays if array is not None]
    return np.concatenate(known) if known and len(known) == len(arrays) else None
