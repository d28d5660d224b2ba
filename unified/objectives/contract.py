"""The interface of objectives: :class:`Objective` declares everything that the library reads of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any, Self

import numpy as np
from torch import nn

from unified.arguments import check_all_settings, described, shown
from unified.data.annotations import KINDS, SOURCE_KINDS, how_to_annotate
from unified.data.example import Example, Examples
from unified.data.randomness import Draws
from unified.data.targets import PREDICTION_HEADS, TASK, loss_name
from unified.data.text import Text, text_problem
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.masks import TEXT_MASKS
from unified.model.config import TransformerConfig
from unified.model.heads import PredictionHead
from unified.notation import is_name
from unified.objectives.arrays import require_example
from unified.planning.documents import DocumentTexts
from unified.planning.planners import Planner

#: Makes a head of a model from its configuration; the class of a head is one.
HeadFactory = Callable[[TransformerConfig], PredictionHead]

#: Decoding schemes by the names of :data:`unified.generation.SCHEMES`, and "nothing" where none of them serves.
DECODING = ("cloze", "next", "left_to_right", "permutation", "nothing")


#: Ways of scoring whole texts, the names of :data:`unified.evaluation.scorings.SCORINGS`.
SCORINGS = ("left_to_right", "right_to_left", "pseudo_likelihood", "shifted", "infilling", "permutation", "diffusion")

#: Declarations that are True or False.
_FLAGS = (
    "paired",
    "wants_random_second",
    "both_directions",
    "mark_entities",
    "query_stream",
    "reads_streams",
    "shows_labels",
)


class NamedSettings:
    """Base of dataclasses whose fields are hyper-parameters; what is wrong with one is told with the name in front."""

    @property
    def name(self) -> str:
        """Name in front of refusals."""
        return type(self).__name__

    def __post_init__(self) -> None:
        check_all_settings(self, lambda setting: f"{self.name}: {setting}")

    def require_shares(self, *names: str) -> None:
        """Refuse shares of one whole that add up to more than 1.

        Args:
            names: of the fields that hold the shares.

        Raises:
            UnifiedError: names the fields and their values.
        """
        shares = [getattr(self, name) for name in names]
        # The slack admits sums such as 0.9 + 0.1 that floating point rounds up.
        if sum(shares) > 1 + 1e-9:
            raise UnifiedError(
                f"{self.name}: {' + '.join(names)} must be at most 1, got {' + '.join(map(str, shares))}"
            )


class Objective(NamedSettings, ABC):
    """Makes training examples of texts; a subclass is a frozen dataclass whose fields are hyper-parameters.

    A field whose values have bounds is declared by :func:`unified.arguments.setting`. A subclass that has rules over
    several fields checks them in ``__post_init__``, after that of its base.

    What would be wrong if it were guessed is abstract: a class that does not declare it is refused when it is built.
    All else has a default here. A declaration is a class attribute (``name: ClassVar[str] = "mine"``), a field, or a
    property where it depends on fields.
    """

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        require_declared(cls)
        return super().__new__(cls)

    # What every class declares

    @property
    @abstractmethod
    def name(self) -> str:
        """Name under which it is listed and its losses are logged."""

    @property
    @abstractmethod
    def paired(self) -> bool:
        """True if it learns from given source/target pairs, False if from running text."""

    @property
    @abstractmethod
    def segments(self) -> int:
        """1 if it reads ``Text.tokens`` alone, 2 if it needs ``Text.second`` too."""

    @property
    @abstractmethod
    def special_tokens(self) -> int:
        """Tokens that an example has beyond those of its text, at most; rows are planned before examples are made."""

    @property
    @abstractmethod
    def token_types(self) -> int:
        """Rows of the token-type table that it uses: one more than its highest token type."""

    @property
    @abstractmethod
    def writes(self) -> str:
        """Decoding of a model that has learnt the objective, one of :data:`DECODING`; see ``--writes``."""

    @property
    @abstractmethod
    def heads(self) -> tuple[str, ...]:
        """The heads that it trains, of :data:`unified.data.targets.PREDICTION_HEADS` and :attr:`own_heads`."""

    @abstractmethod
    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        """Makes the example of a text; all that is random comes from ``rng``."""

    # What a class declares where the default does not hold

    @property
    def paper(self) -> str:
        """Publication that it comes from."""
        return ""

    @property
    def own_heads(self) -> Mapping[str, HeadFactory]:
        """Heads that the library lacks, by name: functions that make them from the configuration of a model.

        Training keeps them in its checkpoints. What generates from the model, or fine-tunes it, leaves them out.
        """
        return {}

    @property
    def wants_random_second(self) -> bool:
        """True if half of its second segments shall come from another document; ``Text.is_next`` says which."""
        return False

    @property
    def both_directions(self) -> bool:
        """True if half of its texts shall be read backwards; ``Text.backward`` says which."""
        return False

    @property
    def planner(self) -> Planner[DocumentTexts] | None:
        """The planner that cuts its texts from documents; None for blocks of whole sentences, and for pairs."""
        return None

    @property
    def annotations(self) -> tuple[str, ...]:
        """Kinds of annotated spans that it reads, see :mod:`unified.data.annotations`."""
        return ()

    @property
    def mark_entities(self) -> bool:
        """True if its examples say which tokens lie within named entities, for entity-aware attention."""
        return False

    @property
    def query_stream(self) -> bool:
        """True if a query stream predicts, for which a model needs relative or rotary positions."""
        return False

    @property
    def reads_streams(self) -> bool:
        """True if it reads streams of text with a memory: each row begins where the row before it ended."""
        return False

    @property
    def reuse(self) -> int | None:
        """Number of a row's tokens that enter the memory, if there is one; None for half of the row."""
        return None

    @property
    def shows_labels(self) -> bool:
        """True if given tokens include labels on purpose, as in T5's deshuffling; otherwise that is a leak."""
        return False

    @property
    def boundary_offsets(self) -> int:
        """Greatest number of tokens of a span that the head "boundary" predicts; 0 without that head."""
        return 0

    @property
    def mask(self) -> str:
        """Mask under which a model that has learnt it alone reads texts, one of :data:`unified.masks.TEXT_MASKS`."""
        return "bidirectional"

    @property
    def scorings(self) -> tuple[str, ...]:
        """Ways of scoring whole texts that it teaches, of :data:`SCORINGS`; others get a note in `unified evaluate`."""
        return ()

    def lengths(self, tokens: np.ndarray) -> np.ndarray:
        """Greatest lengths (int64) of examples, from their numbers of tokens (int64, any shape).

        Must not fall as texts grow.
        """
        return tokens + self.special_tokens

    def target_sentinels(self, tokens: int) -> int:
        """Greatest number of sentinels in the labels of a text of ``tokens`` tokens, counted from <sentinel_0>."""
        return 0

    def unmet(self, supply: Supply) -> str | None:
        """The reason why it cannot use what a folder of data offers; None if it can."""
        return supply.lacks_annotations(self.annotations)

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        """Makes the examples of many texts, here one by one; see :class:`BatchedObjective`."""
        made = map(self, texts.texts(), draws.generators("example"))
        return Examples.of([require_example(example, self.own_heads) for example in made])


class BatchedObjective(Objective):
    """An objective defined on many texts at once; called with one text, it makes a batch of one."""

    @abstractmethod
    def examples(self, texts: Texts, draws: Draws) -> Examples:
        """Makes the examples of all texts in flat arrays, random numbers from ``draws``."""

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        problem = text_problem(text)
        if problem:
            raise UnifiedError(f"{self.name}: {problem}")
        if not isinstance(rng, np.random.Generator):
            raise UnifiedError(
                f"{self.name}: rng must be a numpy.random.Generator, such as numpy.random.default_rng(1), got "
                f"{described(rng)}"
            )
        return self.examples(Texts.of([text]), Draws.from_generator(rng)).split()[0]


def require_declared(objective_class: type[Objective]) -> None:
    """Refuse a class of objectives that leaves something undeclared.

    Raises:
        UnifiedError: names the class and what is missing.
    """
    if not is_dataclass(objective_class):
        raise UnifiedError(
            f"objective class {objective_class.__module__}:{objective_class.__qualname__} is not a dataclass; its "
            "settings are fields: write @dataclass(frozen=True)"
        )
    # A field without a default takes the property of the base class for its default.
    declared: tuple[Field[object], ...] = fields(objective_class)
    bare = [field.name for field in declared if isinstance(field.default, property)]
    missing = sorted({*objective_class.__abstractmethods__, *bare})
    if missing:
        raise UnifiedError(
            f"objective class {objective_class.__module__}:{objective_class.__qualname__} does not declare "
            f"{', '.join(missing)}; "
            "unified.objectives.Objective says what each means"
        )


def require_consistent(objective: Objective, called: str | None = None) -> None:
    """Refuse declarations that have an unknown value or contradict each other.

    Args:
        called: what the objective is called in its mixture; its own name where it has no other.

    Raises:
        UnifiedError: names the objective, the declaration and its value.
    """

    def refusal(name: str, expected: str) -> UnifiedError:
        found = getattr(objective, name)
        return UnifiedError(f"objective {called or objective.name}: {name} must be {expected}, got {found!r}")

    if not is_name(objective.name):
        raise refusal("name", "a text of letters, digits and underscores")
    for name in _FLAGS:
        if not isinstance(getattr(objective, name), bool):
            raise refusal(name, "True or False")
    for name, minimum in (("special_tokens", 0), ("token_types", 1), ("boundary_offsets", 0)):
        if not isinstance(getattr(objective, name), int) or getattr(objective, name) < minimum:
            raise refusal(name, f"a whole number of at least {minimum}")
    if objective.segments not in (1, 2):
        raise refusal("segments", "1 or 2")
    for name, one_of in (("writes", DECODING), ("mask", (*TEXT_MASKS,))):
        if getattr(objective, name) not in one_of:
            raise refusal(name, f"one of {', '.join(one_of)}")
    own = objective.own_heads
    if not isinstance(own, Mapping) or not all(isinstance(head, str) and head.isidentifier() for head in own):
        raise refusal("own_heads", "a mapping whose keys are names of heads")
    if not all(map(callable, own.values())):
        raise refusal("own_heads", "a mapping whose values are classes of heads, or functions that make heads")
    if set(own) & {*PREDICTION_HEADS, TASK, *dir(nn.ModuleDict())}:
        raise refusal(
            "own_heads", f"of other names than {', '.join((*PREDICTION_HEADS, TASK))} and attributes of a ModuleDict"
        )
    for name, known in (("heads", (*PREDICTION_HEADS, *own)), ("annotations", (*KINDS, *SOURCE_KINDS))):
        value = getattr(objective, name)
        if not isinstance(value, tuple) or not set(value) <= set(known):
            raise refusal(name, f"a tuple of some of {', '.join(known)}")
    if ("boundary" in objective.heads) != (objective.boundary_offsets > 0):
        raise refusal("boundary_offsets", "above 0 if and only if 'boundary' is one of its heads")
    if not isinstance(objective.scorings, tuple) or not set(objective.scorings) <= set(SCORINGS):
        raise refusal("scorings", f"a tuple of some of {', '.join(SCORINGS)}")
    if not objective.heads:
        raise refusal("heads", "at least one head")
    if not set(own) <= set(objective.heads):
        raise refusal("own_heads", "of names that heads lists too")
    lengths = objective.lengths(np.array([1, 2, 3]))
    if np.shape(lengths) != (3,) or np.asarray(lengths).dtype.kind not in "iuf":
        raise UnifiedError(
            f"objective {called or objective.name}: lengths must return an array of one number for each of those it is "
            f"given, got {shown(lengths)}"
        )


def loss_names(objective: Objective, name: str | None = None) -> tuple[str, ...]:
    """Names under which the losses of an objective are logged, one for each of its heads.

    Args:
        name: what the objective is called in its mixture; its own name where it has no other.
    """
    return tuple(loss_name(head, name or objective.name) for head in objective.heads)


@dataclass(frozen=True)
class Supply:
    """Capabilities that a data folder offers to objectives.

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
