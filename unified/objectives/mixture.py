"""Several objectives at once, in given proportions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from unified.arguments import counted, described, finite, shown
from unified.data.targets import PREDICTION_HEADS, loss_name
from unified.errors import UnifiedError
from unified.notation import is_name, require_distinct
from unified.objectives.arrays import naming_objective
from unified.objectives.contract import Objective, loss_names, require_consistent

if TYPE_CHECKING:
    from unified.objectives.contract import HeadFactory


def spelled(objective: Objective) -> str:
    """``objective`` as ``parse_objectives`` reads it: its name and the settings that differ from the defaults.

    An objective that is not one of this library's is spelled ``module:Class``.
    """
    assert is_dataclass(objective), f"{type(objective).__qualname__} is an objective, but no dataclass"
    name = type_of(objective)
    values = ((f, getattr(objective, f.name)) for f in fields(objective) if f.init)
    changed = ", ".join(f"{f.name}={_literal(value)!r}" for f, value in values if value != f.default)
    return f"{name}({changed})" if changed else name


def type_of(objective: Objective) -> str:
    """The type of an objective in ``--objectives``: its name, or ``module:Class`` where it is not the library's."""
    own_class = type(objective)
    if own_class.__module__.startswith("unified.objectives."):
        return objective.name
    return f"{own_class.__module__}:{own_class.__qualname__}"


def _literal(value: Any) -> Any:
    """A value whose ``repr`` is a Python literal: of NumPy's numbers and of fractions, the number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


@dataclass(frozen=True)
class Mixture:
    """Several objectives, one of which is drawn for each example in proportion to its ratio.

    Objectives of ratio 0 are removed entirely: they draw no example, need no head and log nothing.

    Attributes:
        objectives: those that remain, in the order given.
        ratios: their ratios as given, such as 2, 2, 1, 1.
        names: what each is called in logs, and the name under which its losses are summed; left out, each is called
            by its own name. Two objectives of one type need different ones.

    Raises:
        UnifiedError: nothing remains, a ratio is negative or not finite, a name is missing or is no name in
            ``--objectives``, two objectives share one, or some learn from source/target pairs and others from running
            text.
    """

    objectives: tuple[Objective, ...]
    ratios: tuple[float, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("objectives", "ratios", "names"):
            if not isinstance(getattr(self, field), tuple | list):
                raise UnifiedError(f"{field} must be a tuple, got {described(getattr(self, field))}")
        for objective in self.objectives:
            if not isinstance(objective, Objective):
                raise UnifiedError(
                    f"an objective must be an instance of a subclass of unified.objectives.Objective, got "
                    f"{described(objective)}; parse_objectives reads names"
                )
        if len(self.objectives) != len(self.ratios):
            raise UnifiedError(
                f"{counted(len(self.objectives), 'objective')} but {counted(len(self.ratios), 'weight')}; "
                "give one weight each"
            )
        names = self.names or tuple(objective.name for objective in self.objectives)
        if len(names) != len(self.objectives):
            raise UnifiedError(
                f"{counted(len(self.objectives), 'objective')} but {counted(len(names), 'name')}; give one name each"
            )
        for objective, name in zip(self.objectives, names, strict=True):
            if self.names and not is_name(name):
                raise UnifiedError(f"the name of an objective must be of letters, digits and underscores, got {name!r}")
            with naming_objective(name, type(objective).__module__):
                require_consistent(objective, name)
        require_distinct("objective", names, [type_of(objective) for objective in self.objectives])
        for name, ratio in zip(names, self.ratios, strict=True):
            if isinstance(ratio, str) or finite(ratio) is None or ratio < 0:
                raise UnifiedError(f"{name}: a weight must be a finite number of at least 0, got {shown(ratio)}")
        if not math.isfinite(sum(map(float, self.ratios))):
            raise UnifiedError(
                f"the weights of {', '.join(names)} are too large to be added; divide them all by a number"
            )
        kept = [entry for entry in zip(self.objectives, map(float, self.ratios), names, strict=True) if entry[1] > 0]
        if not kept:
            problem = "every objective has weight 0" if names else "no objective is listed"
            raise UnifiedError(f"{problem}; at least one must have a positive weight")
        for field, values in zip(("objectives", "ratios", "names"), zip(*kept, strict=True), strict=True):
            object.__setattr__(self, field, values)
        self._require_one_kind_of_data()
        self._require_one_head_of_a_name()
        self._require_one_loss_of_a_name()

    def _require_one_loss_of_a_name(self) -> None:
        # A model has a loss for every head and objective, whether the objective asks the head or not.
        losses = [loss_name(head, name) for head in (*PREDICTION_HEADS, *self.own_heads) for name in self.names]
        for loss in losses:
            if losses.count(loss) > 1:
                raise UnifiedError(f"two losses are called {loss}; give the objectives other names: name=type")

    def _require_one_head_of_a_name(self) -> None:
        heads: dict[str, tuple[str, object]] = {}
        for name, objective in self:
            for head, factory in objective.own_heads.items():
                first, other = heads.setdefault(head, (name, factory))
                if other != factory:
                    raise UnifiedError(f"{first} and {name} have different heads of the name {head!r} (own_heads)")

    @property
    def own_heads(self) -> dict[str, HeadFactory]:
        """Heads of all objectives that the library does not have, by name; see :attr:`Objective.own_heads`."""
        return {head: make for objective in self.objectives for head, make in objective.own_heads.items()}

    def _require_one_kind_of_data(self) -> None:
        pairs, running = ([name for name, o in self if o.paired is paired] for paired in (True, False))
        if pairs and running:
            raise UnifiedError(
                f"{', '.join(pairs)} learn from source/target pairs, {', '.join(running)} from running text; "
                "one mixture holds only one of the two"
            )

    @property
    def weights(self) -> tuple[float, ...]:
        """Probability of each objective; they sum to 1."""
        total = math.fsum(self.ratios)
        return tuple(ratio / total for ratio in self.ratios)

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Names under which losses are logged: one for each head of each objective."""
        return tuple(loss for name, objective in self for loss in loss_names(objective, name))

    def __iter__(self) -> Iterator[tuple[str, Objective]]:
        """Each objective behind its name."""
        return zip(self.names, self.objectives, strict=True)

    @property
    def mask(self) -> str:
        """The mask under which a model that has learnt these objectives reads texts: theirs if they agree."""
        masks = {objective.mask for objective in self.objectives}
        return masks.pop() if len(masks) == 1 else "bidirectional"

    @property
    def paired(self) -> bool:
        """True if the objectives learn from source/target pairs, False if from running text."""
        return self.objectives[0].paired

    def choose(self, uniforms: np.ndarray) -> np.ndarray:
        """Objectives for given uniform numbers.

        Args:
            uniforms: float (n,), each from 0 to 1 (exclusive).

        Returns:
            int64 (n,), indices into :attr:`objectives`.
        """
        edges = np.cumsum(self.weights)[:-1]
        return np.searchsorted(edges, uniforms, side="right")

    def lengths(self, tokens: np.ndarray) -> np.ndarray:
        """Greatest lengths of each objective's examples, see :meth:`Objective.lengths`.

        Args:
            tokens: int64, any shape.

        Returns:
            int64 (K, ...) of K objectives.

        Raises:
            ObjectiveFailed: an objective of the user's own raises an exception.
        """
        found = []
        for name, objective in self:
            with naming_objective(name, type(objective).__module__):
                found.append(objective.lengths(tokens))
        return np.stack(found)

    def __str__(self) -> str:
        """The list as ``parse_objectives`` reads it; equal mixtures give equal strings."""
        named = ("" if name == objective.name else f"{name}=" for name, objective in self)
        entries = zip(named, map(spelled, self.objectives), self.ratios, strict=True)
        return ",".join(f"{name}{spelling}:{repr(ratio).removesuffix('.0')}" for name, spelling, ratio in entries)
