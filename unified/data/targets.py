"""Predictions that heads learn: of examples (:class:`ExampleTargets`, numpy) and of a batch (:class:`Targets`, torch).

Both are found by the name of the head that predicts them, see :mod:`unified.model.heads`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import torch

#: Names of the heads that the objectives of this library ask: for tokens; whether the second segment follows the first;
#: for tokens of a span from the states around it; whether a summary takes a sentence.
TOKEN, NEXT_SENTENCE, BOUNDARY, EXTRACTIVE = "token", "next_sentence", "boundary", "extractive"
#: All of them; no other head may take one of these names.
PREDICTION_HEADS = (TOKEN, NEXT_SENTENCE, BOUNDARY, EXTRACTIVE)
#: Name of the targets of an understanding task, whose head has its labels from the task.
TASK = "task"


def loss_name(head: str, objective: str) -> str:
    """Name of a head's loss for an objective: ``<objective>`` for ``token``, ``<objective>_<head>`` for others."""
    return objective if head == TOKEN else f"{objective}_{head}"


@dataclass(frozen=True, eq=False)
class ExampleTargets:
    """N predictions of one head for one example, or for several examples one after another.

    Attributes:
        output_indices: int64 (N, k), the k tokens whose states each prediction reads, counted from its example's first
            token.
        labels: int64 (N,), what is predicted; None where only states are read.
        weights: float (N,), factors of the losses; None for 1 each.
        divisors: float (N,), what each prediction adds to the number that the summed loss of its objective is divided
            by; None for 1 each, so that the loss is the weighted sum over the number of predictions. Masked diffusion
            weights each masked token by 1 / t and divides by the number of all tokens: it gives each of the m masked
            ones of n tokens n / m.
        inputs: further arrays that the head reads, by name; their first axis is N.
    """

    output_indices: np.ndarray
    labels: np.ndarray | None
    weights: np.ndarray | None = None
    divisors: np.ndarray | None = None
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def at(cls, output_indices: np.ndarray, labels: np.ndarray | None) -> ExampleTargets:
        """Predictions from the state of one token each, int64 (N,); lists of integers become arrays."""
        return cls(np.asarray(output_indices)[:, None], None if labels is None else np.asarray(labels))

    def __len__(self) -> int:
        return len(self.output_indices)

    def __eq__(self, other: object) -> bool:
        """Whether all arrays are equal, value by value."""
        if not isinstance(other, ExampleTargets) or self.inputs.keys() != other.inputs.keys():
            return False
        own, others = (
            (t.output_indices, t.labels, t.weights, t.divisors, *map(t.inputs.get, self.inputs)) for t in (self, other)
        )
        return all(a is b if a is None or b is None else np.array_equal(a, b) for a, b in zip(own, others, strict=True))

    def __getitem__(self, rows: np.ndarray | slice) -> ExampleTargets:
        """The predictions ``rows``, in that order."""

        def chosen(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[rows]

        return ExampleTargets(
            self.output_indices[rows],
            chosen(self.labels),
            chosen(self.weights),
            chosen(self.divisors),
            {name: array[rows] for name, array in self.inputs.items()},
        )

    def split(self, counts: np.ndarray) -> list[ExampleTargets]:
        """Runs of so many predictions, int64 (n,), as views."""
        ends = np.cumsum(counts).tolist()
        return [self[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]

    @classmethod
    def concatenate(cls, several: Sequence[ExampleTargets]) -> ExampleTargets:
        """Predictions of one head one after another; weights and divisors that only some of them have are 1 elsewhere.

        Raises:
            ValueError: they read different numbers of states, or differ in their inputs or in having labels.
        """
        labelled = {one.labels is not None for one in several}
        inputs = {tuple(sorted(one.inputs)) for one in several}
        if len(labelled) > 1 or len(inputs) > 1:
            raise ValueError("targets of one head must agree in the names of their inputs and in having labels")

        def factors(name: str) -> np.ndarray | None:
            own = [getattr(one, name) for one in several]
            if all(array is None for array in own):
                return None
            return np.concatenate(
                [np.ones(len(one)) if array is None else array for one, array in zip(several, own, strict=True)]
            )

        return cls(
            np.concatenate([one.output_indices for one in several]),
            np.concatenate([one.labels for one in several]) if labelled == {True} else None,
            factors("weights"),
            factors("divisors"),
            {name: np.concatenate([one.inputs[name] for one in several]) for name in inputs.pop()},
        )


@dataclass(frozen=True)
class Targets:
    """N predictions of one head for a batch of B rows of Q states, whose losses are summed by G objectives.

    Attributes:
        output_indices: int64 (N, k), the k states that each prediction reads, as flat indices into B x Q.
        labels: int64 (N,), what is predicted; None where only states are read.
        objectives: int64 (N,), index into ``Batch.objectives``: under which name each loss is summed and logged.
        divisors: float64 (G,), by which the summed loss of each objective is divided for its mean: the number of its
            predictions, unless the examples say otherwise (:attr:`ExampleTargets.divisors`).
        weights: float64 (N,), factors of the losses; None for 1 each.
        inputs: further tensors that the head reads, by name; their first axis is N.
    """

    output_indices: torch.Tensor
    labels: torch.Tensor | None
    objectives: torch.Tensor
    divisors: torch.Tensor
    weights: torch.Tensor | None = None
    inputs: Mapping[str, torch.Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, examples: ExampleTargets, starts: np.ndarray, objectives: np.ndarray, objective_count: int) -> Targets:
        """The predictions of a batch.

        Args:
            examples: of all examples one after another.
            starts: int64 (N,), the flat index of the first token of each prediction's example.
            objectives: int64 (N,).
            objective_count: G.
        """
        divisors = np.bincount(objectives, weights=examples.divisors, minlength=objective_count).astype(np.float64)
        return cls(
            torch.from_numpy(examples.output_indices + starts[:, None]),
            None if examples.labels is None else torch.from_numpy(np.ascontiguousarray(examples.labels)),
            torch.from_numpy(objectives),
            torch.from_numpy(divisors),
            None if examples.weights is None else torch.from_numpy(examples.weights.astype(np.float64)),
            {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in examples.inputs.items()},
        )

    @classmethod
    def none(cls, states: int, inputs: Sequence[str], objective_count: int, device: torch.device) -> Targets:
        """No predictions of a head that reads so many states and inputs of these names, all of them int64."""
        nothing = torch.empty(0, dtype=torch.long, device=device)
        return cls(
            output_indices=nothing.view(0, states),
            labels=nothing,
            objectives=nothing,
            divisors=torch.zeros(objective_count, dtype=torch.float64, device=device),
            inputs=dict.fromkeys(inputs, nothing),
        )

    def __len__(self) -> int:
        return len(self.output_indices)

    def tensors(self) -> dict[str, torch.Tensor | Mapping[str, torch.Tensor] | None]:
        """The fields by name, of which :class:`Targets` can be made again."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    def to(self, device: torch.device | str) -> Targets:
        """The targets with every tensor on ``device``."""

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(device, non_blocking=True)

        return Targets(
            moved(self.output_indices),
            None if self.labels is None else moved(self.labels),
            moved(self.objectives),
            moved(self.divisors),
            None if self.weights is None else moved(self.weights),
            {name: moved(tensor) for name, tensor in self.inputs.items()},
        )
