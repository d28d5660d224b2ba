"""What an objective is, how its hyper-parameters are checked, and how several are mixed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from unified.data.annotations import how_to_annotate
from unified.data.example import Example, Examples
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError


@runtime_checkable
class Objective(Protocol):
    """A frozen dataclass whose fields are hyper-parameters; calling it makes one training example.

    Attributes:
        name: under which it is listed, its loss summed and logged.
        segments: 1 if it reads ``Text.tokens`` alone, 2 if it needs ``Text.second`` too.
        wants_random_second: True if half of its second segments shall come from another document.
        paired: True if it learns from given source/target pairs (fine-tuning) instead of running text.
        special_tokens: how many special symbols it adds, at most; rows are planned before examples are made.

    Optional, with what is assumed where an objective has none of it:
        lengths(tokens): places (int64) that examples of so many tokens (int64, any shape) take, at most; must not fall
            as texts grow. ``tokens + special_tokens``.
        unmet(supply): why it cannot work with what a :class:`Supply` offers, or None. It can.
        next_sentence: whether it predicts if its second segment follows. Where it wants random ones.
        query_stream: whether a query stream predicts, for which a model needs relative positions. False.
        examples(texts, draws): :class:`unified.data.example.Examples` of a batch of :class:`unified.data.texts.Texts`,
            random numbers from :class:`unified.data.randomness.Draws`; see :class:`Batched`. A call for each.
        reuse: how many places of a row enter the memory of a stream, None for half; only those with it read streams.
        both_directions: whether half of its texts shall be read backwards. False.
        planner: how its texts are cut from documents, a :class:`unified.data.planning.Planner`. Blocks of whole
            sentences, :class:`unified.data.planning.Blocks`; objectives on pairs have no other.
        token_types: rows of the token-type table that it uses. 1.
        annotations: kinds of annotated spans that it reads, see :mod:`unified.data.annotations`. None.
        mark_entities: whether its examples say which tokens lie within named entities, for entity-aware attention.
            False.
        boundary_offsets: how far into a span it predicts from the span's boundaries, in tokens. 0, it does not.
        extractive: whether it predicts of source sentences if a summary takes them. False.
        target_sentinels(tokens): how many sentinels the targets of a text of so many tokens hold at most, counted from
            <sentinel_0>. 0, its targets are tokens of the text and separators alone.
        mask: name of the mask under which a model that learns it alone reads texts, one of
            :data:`unified.masks.TEXT_MASKS`. "bidirectional".
        writes: how a model that learns it alone generates, see ``--writes``. "left_to_right", "cloze" on pairs.
        paper: where it comes from.
    """

    name: ClassVar[str]
    paired: ClassVar[bool]

    @property
    def segments(self) -> int: ...

    @property
    def wants_random_second(self) -> bool: ...

    @property
    def special_tokens(self) -> int: ...

    def __call__(self, text: Text, rng: np.random.Generator) -> Example: ...


class Batched:
    """For objectives defined on many texts at once by ``examples``; called with one, it is a batch of one."""

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        """See :class:`Objective`."""
        raise NotImplementedError

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        return self.examples(Texts.of([text]), Draws.from_generator(rng)).split()[0]


@dataclass(frozen=True)
class Supply:
    """What a data folder offers to objectives.

    Attributes:
        special: ids of the special symbols.
        word_starts: whether it is known where words begin.
        longest: tokens of the longest text an objective may be given.
        annotations: kinds of spans that are annotated.
    """

    special: SpecialTokens
    word_starts: bool
    longest: int
    annotations: Collection[str] = ()

    def lacks_sentinels(self, count: int) -> str | None:
        """A complaint where the dictionary has fewer than ``count`` sentinels."""
        there = self.special.sentinel_count
        if count <= there:
            return None
        return (
            f"a text of {self.longest} tokens may take {count} sentinels, but the dictionary has {there}; "
            "shorten the rows"
        )

    def lacks_annotations(self, kinds: Collection[str]) -> str | None:
        """A complaint where one of ``kinds`` is not annotated."""
        missing = [kind for kind in kinds if kind not in self.annotations]
        if not missing:
            return None
        there = ", ".join(sorted(self.annotations)) or "none"
        return (
            f"needs the annotation {', '.join(missing)}, which the data do not have (they have {there}); prepare them "
            f"with {how_to_annotate(missing)}"
        )


def loss_names(objective: Objective) -> tuple[str, ...]:
    """Names under which its losses are logged."""
    names = [objective.name]
    if getattr(objective, "next_sentence", objective.wants_random_second):
        names.append(f"{objective.name}_next_sentence")
    if boundary_offsets_of(objective):
        names.append(f"{objective.name}_boundary")
    if extractive_of(objective):
        names.append(f"{objective.name}_extractive")
    return tuple(names)


def examples_of(objective: Objective, texts: Texts, draws: Draws) -> Examples:
    """The examples of all texts: at once where the objective can, else one by one."""
    at_once = getattr(objective, "examples", None)
    if at_once is not None:
        return at_once(texts, draws)
    return Examples.of(list(map(objective, texts.texts(), draws.generators("example"))))


def boundary_offsets_of(objective: Objective) -> int:
    return getattr(objective, "boundary_offsets", 0)


def mask_of(objectives: Sequence[Objective]) -> str:
    """The mask under which a model that has learnt these objectives reads texts: theirs if they agree."""
    masks = {getattr(objective, "mask", "bidirectional") for objective in objectives}
    return masks.pop() if len(masks) == 1 else "bidirectional"


def extractive_of(objective: Objective) -> bool:
    return getattr(objective, "extractive", False)


def marks_entities(objective: Objective) -> bool:
    return getattr(objective, "mark_entities", False)


def target_sentinels_of(objective: Objective, tokens: int) -> int:
    """How many sentinels the targets of a text of so many tokens hold, at most."""
    own = getattr(objective, "target_sentinels", None)
    return 0 if own is None else own(tokens)


def annotations_of(objective: Objective) -> tuple[str, ...]:
    return getattr(objective, "annotations", ())


def lengths_of(objective: Objective, tokens: np.ndarray) -> np.ndarray:
    """Places (int64) that examples of so many tokens take, at most."""
    own = getattr(objective, "lengths", None)
    return tokens + objective.special_tokens if own is None else own(tokens)


def require_share(objective: Objective, *names: str, zero: bool = True) -> None:
    """Refuse fields that are not numbers from 0 to 1; with ``zero=False`` 0 itself is refused too.

    Raises:
        UnifiedError: names the objective, the field and the value.
    """
    for name in names:
        value = getattr(objective, name)
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1 or (value == 0 and not zero):
            lowest = "from 0" if zero else "above 0 and at most"
            raise UnifiedError(f"{objective.name}: {name} must be a number {lowest} {'to ' * zero}1, got {value!r}")


def require_integer(objective: Objective, name: str, minimum: int) -> None:
    """Refuse a field that is not a whole number of at least ``minimum``.

    Raises:
        UnifiedError: names the objective, the field and the value.
    """
    value = getattr(objective, name)
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise UnifiedError(f"{objective.name}: {name} must be a whole number of at least {minimum}, got {value!r}")


def require_flag(objective: Objective, *names: str) -> None:
    """Refuse fields that are not True or False.

    Raises:
        UnifiedError: names the objective, the field and the value.
    """
    for name in names:
        value = getattr(objective, name)
        if not isinstance(value, bool):
            raise UnifiedError(f"{objective.name}: {name} must be True or False, got {value!r}")


def require_replacements(objective: Objective) -> None:
    """Refuse shares of [MASK] and of random tokens that are no shares or add up to more than 1.

    Raises:
        UnifiedError: names the objective, the fields and the values.
    """
    require_share(objective, "mask_replace_share", "random_replace_share")
    # The slack admits sums such as 0.9 + 0.1 that floating point rounds up.
    if objective.mask_replace_share + objective.random_replace_share > 1 + 1e-9:
        raise UnifiedError(
            f"{objective.name}: mask_replace_share + random_replace_share must be at most 1, "
            f"got {objective.mask_replace_share} + {objective.random_replace_share}"
        )


def spelled(objective: Any) -> str:
    """``objective`` as ``parse_objectives`` reads it: its name and the settings that differ from the defaults.

    An objective that is not one of this library's is spelled ``module:Class``.
    """
    kind = type(objective)
    own = kind.__module__.startswith("unified.objectives.")
    name = objective.name if own else f"{kind.__module__}:{kind.__qualname__}"
    values = ((f, getattr(objective, f.name)) for f in fields(objective) if f.init)
    changed = ", ".join(f"{f.name}={value!r}" for f, value in values if value != f.default)
    return f"{name}({changed})" if changed else name


@dataclass(frozen=True)
class Mixture:
    """Several objectives, one of which is drawn for each example in proportion to its ratio.

    Objectives of ratio 0 are removed entirely: they draw no example, need no head and log nothing.

    Attributes:
        objectives: those that remain, in the order given.
        ratios: their ratios as given, such as 2, 2, 1, 1.

    Raises:
        UnifiedError: nothing remains, a ratio is negative or not finite, two objectives share a name, or some learn
            from source/target pairs and others from running text.
    """

    objectives: tuple[Objective, ...]
    ratios: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.objectives) != len(self.ratios):
            raise UnifiedError(
                f"{len(self.objectives)} objectives but {len(self.ratios)} weights; give one weight each"
            )
        names = [objective.name for objective in self.objectives]
        for name, ratio in zip(names, self.ratios, strict=True):
            if names.count(name) > 1:
                raise UnifiedError(f"objective {name} is listed twice; list each objective once")
            if not math.isfinite(ratio) or ratio < 0:
                raise UnifiedError(f"{name}: a weight must be a finite number of at least 0, got {ratio}")
        kept = [(o, float(r)) for o, r in zip(self.objectives, self.ratios, strict=True) if r > 0]
        if not kept:
            problem = "every objective has weight 0" if names else "no objective is listed"
            raise UnifiedError(f"{problem}; at least one must have a positive weight")
        object.__setattr__(self, "objectives", tuple(o for o, _ in kept))
        object.__setattr__(self, "ratios", tuple(r for _, r in kept))
        self._require_one_kind_of_data()

    def _require_one_kind_of_data(self) -> None:
        pairs = [o.name for o in self.objectives if o.paired]
        running = [o.name for o in self.objectives if not o.paired]
        if pairs and running:
            raise UnifiedError(
                f"{', '.join(pairs)} learn from source/target pairs, {', '.join(running)} from running text; "
                "one mixture holds only one of the two kinds"
            )

    @property
    def weights(self) -> tuple[float, ...]:
        """Probability of each objective; they sum to 1."""
        total = math.fsum(self.ratios)
        return tuple(ratio / total for ratio in self.ratios)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the objectives, the groups under which losses are logged."""
        return tuple(objective.name for objective in self.objectives)

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

    def __str__(self) -> str:
        """The list as ``parse_objectives`` reads it; equal mixtures give equal strings."""
        pairs = zip(self.objectives, self.ratios, strict=True)
        return ",".join(f"{spelled(objective)}:{repr(ratio).removesuffix('.0')}" for objective, ratio in pairs)
