"""What an objective is: everything that the library reads of one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from unified.data.annotations import how_to_annotate
from unified.data.example import Example, Examples
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens


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
