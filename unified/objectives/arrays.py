"""Compares the arrays of an example, or of several joined ones, with each other and with the heads that read them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from unified.arguments import counted
from unified.data.example import Example, Examples
from unified.data.targets import ExampleTargets
from unified.errors import UnifiedError, one_line
from unified.masks import AttentionMask
from unified.model.config import TransformerConfig
from unified.model.heads import LANGUAGE_HEADS, PredictionHead

#: Arrays of integers that have one entry for each token.
PER_TOKEN = ("tokens", "positions", "token_types")

#: Functions or classes that make heads which the library lacks, by name; see
#: :attr:`unified.objectives.Objective.own_heads`.
OwnHeads = Mapping[str, Callable[[TransformerConfig], PredictionHead]]


class WrongExample(UnifiedError):
    """An objective makes what is no example, or contradicts its declarations; see :func:`naming_objective`."""


class ObjectiveFailed(UnifiedError):
    """An objective of the user's own raises what is no refusal.

    It takes two arguments so that its traceback leaves a worker: torch builds an exception that takes a message alone
    anew, without a traceback, and of any other makes a RuntimeError that holds the whole traceback.

    Args:
        called: what its mixture calls the objective.
        problem: what it raises, and where.
    """

    def __init__(self, called: str, problem: str):
        super().__init__(called, problem)

    def __str__(self) -> str:
        return one_line(self.details)

    @property
    def details(self) -> str:
        return "objective {} {}".format(*self.args)


@contextmanager
def naming_objective(called: str, code: str) -> Iterator[None]:
    """A ``with`` block whose refusals of examples name their objective, as its mixture calls it.

    Args:
        code: name of the module that defines the objective. What the block raises otherwise is a bug of that module,
            and is refused with its line, unless the module is one of this library.

    Raises:
        ObjectiveFailed: the user's own objective fails; its exception is the ``__cause__``.
        UnifiedError: the block raises :class:`WrongExample`.
    """
    try:
        yield
    except WrongExample as error:
        raise UnifiedError(f"objective {called} {error.details}") from None
    except (UnifiedError, OSError):
        raise
    except Exception as error:
        if code.partition(".")[0] == __name__.partition(".")[0]:
            raise
        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_globals.get("__name__") == code]
        place = f" in line {lines[-1]} of {code}" if lines else ""
        raise ObjectiveFailed(called, f"fails{place}: {type(error).__name__}: {error}") from error


def require_example(made: object, own_heads: OwnHeads) -> Example:
    """Returns what the call of an objective has made, if that is an Example whose arrays fit together.

    Args:
        own_heads: see :func:`check_arrays`.

    Raises:
        WrongExample: names the first thing that is wrong.
    """
    if not isinstance(made, Example):
        raise WrongExample(f"returns {type(made).__name__} when called; expected an Example")
    if not isinstance(made.mask, AttentionMask):
        raise WrongExample(f"makes examples whose mask is {type(made.mask).__name__}; expected an AttentionMask")
    if not isinstance(made.targets, Mapping):
        kind = type(made.targets).__name__
        raise WrongExample(f"makes examples whose targets are {kind}; expected a dictionary by head")
    for head, targets in made.targets.items():
        if not isinstance(targets, ExampleTargets):
            kind = type(targets).__name__
            raise WrongExample(f"has {kind} as targets of the head {head!r}; expected an ExampleTargets")
    for name in PER_TOKEN:
        shape = np.shape(getattr(made, name))
        if len(shape) != 1:
            raise WrongExample(f"makes examples whose {name} have shape {shape}; expected (T,)")
    check_arrays(made, own_heads)
    check_indices(made)
    return made


def check_indices(example: Example) -> None:
    """Refuse predictions that read states outside of their example, which would be those of another one of its row.

    Raises:
        WrongExample: names the index and the head.
    """
    count = len(example.tokens)
    for head, targets in example.targets.items():
        indices = np.asarray(targets.output_indices)
        outside = indices[(indices < 0) | (indices >= count)]
        if outside.size:
            what = f"of the head {head!r} in an example of {counted(count, 'token')}"
            raise WrongExample(f"has {outside[0]} among the indices {what}")


def check_arrays(made: Example | Examples, own_heads: OwnHeads) -> None:
    """Refuse arrays that do not fit together, or that the heads which read them cannot take.

    Args:
        own_heads: what makes the heads that the library lacks; those that are no classes may read anything.

    Raises:
        WrongExample: names the array.
    """
    for name in PER_TOKEN:
        count = len(getattr(made, name))
        if count != len(made.tokens):
            raise WrongExample(f"made {count} {name} for {counted(len(made.tokens), 'token')}")
    if made.entities is not None:
        entities = np.asarray(made.entities)
        if entities.shape != (len(made.tokens),) or entities.dtype != bool:
            raise WrongExample(f"made entities of {_kind(entities)}; expected bool ({len(made.tokens)},)")
    for head, targets in made.targets.items():
        _check_targets(head, targets)
        reader = own_heads.get(head, LANGUAGE_HEADS.get(head))
        if isinstance(reader, type) and issubclass(reader, PredictionHead):
            _check_reader(head, targets, reader)


def labels_of(head: str, targets: ExampleTargets) -> np.ndarray:
    """The labels of a head; targets without any are refused."""
    if targets.labels is None:
        raise WrongExample(f"made no labels for the head {head!r}")
    return targets.labels


def _check_targets(head: str, targets: ExampleTargets) -> None:
    """Refuse arrays of the targets of a head that do not fit together."""
    labels, indices = np.asarray(labels_of(head, targets)), np.asarray(targets.output_indices)
    for name, numbers in (("output_indices", indices), ("labels", labels)):
        if numbers.dtype != np.int64:
            raise WrongExample(f"made {name} of dtype {numbers.dtype} for the head {head!r}; expected int64")
    if indices.ndim != 2:
        raise WrongExample(f"made output_indices of shape {indices.shape} for the head {head!r}; expected (N, k)")
    if not isinstance(targets.inputs, Mapping):
        kind = type(targets.inputs).__name__
        raise WrongExample(f"has {kind} as inputs of the head {head!r}; expected a dictionary by name")
    numbers_of_each = {"labels": labels, "weights": targets.weights, "divisors": targets.divisors}
    each = {name: np.asarray(array) for name, array in numbers_of_each.items() if array is not None}
    inputs = {name: np.asarray(array) for name, array in targets.inputs.items()}
    for name, array in (each | inputs).items():
        if array.ndim and len(array) != len(indices):
            made = f"{len(array)} {name} for {counted(len(indices), 'prediction')}"
            raise WrongExample(f"made {made} of the head {head!r}")
    for name, array in each.items():
        if array.ndim != 1 or array.dtype.kind not in "fiu":
            raise WrongExample(f"made {name} of {_kind(array)} for the head {head!r}; expected numbers (N,)")
    for name, array in inputs.items():
        if not array.ndim or array.dtype.kind not in "biuf":
            raise WrongExample(f"made {name} of {_kind(array)} for the head {head!r}; expected numbers (N, ...)")


def _check_reader(head: str, targets: ExampleTargets, reader: type[PredictionHead]) -> None:
    """Refuse targets that have other numbers of states than the head reads, or other inputs."""
    states = np.shape(targets.output_indices)[1]
    if states != reader.states_read:
        columns = counted(states, "column")
        raise WrongExample(f"made output_indices of {columns} for the head {head!r}, which reads {reader.states_read}")
    if set(targets.inputs) != set(reader.inputs):
        given, read = (", ".join(names) or "none" for names in (targets.inputs, reader.inputs))
        raise WrongExample(f"gives the head {head!r} the inputs {given}; it reads {read}")


def _kind(array: np.ndarray) -> str:
    return f"shape {array.shape} and dtype {array.dtype}"
