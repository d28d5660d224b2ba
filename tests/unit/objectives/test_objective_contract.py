"""The contract of objectives: what a class must declare, and what is refused before anything is trained."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from docs.examples.suffix_objective import Suffix
from tests.support.token_files import SPECIAL, Reads
from unified.data.annotations import KINDS
from unified.data.randomness import Draws
from unified.data.targets import PREDICTION_HEADS
from unified.data.texts import Text, Texts
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.evaluation.scorings import SCORINGS
from unified.generation import SCHEMES
from unified.objectives import OBJECTIVES, Mixture, Objective, Supply, parse_objectives
from unified.objectives.bert import Bert
from unified.objectives.contract import DECODING, loss_names


@dataclass(frozen=True)
class Silent(Objective):
    """Declares its name alone."""

    name: ClassVar[str] = "silent"


@dataclass(frozen=True, kw_only=True)
class Bare(Reads):
    """An objective whose setting hides a declaration that has a default, and gives none."""

    boundary_offsets: int


class Undecorated(Objective):
    """Is no dataclass, as its decorator was forgotten."""

    name: ClassVar[str] = "undecorated"


NOT_DECLARED = "__call__, heads, paired, segments, special_tokens, token_types, writes"


def test_what_a_class_leaves_out_is_named():
    with pytest.raises(
        UnifiedError, match=f"{__name__}:Silent does not declare {NOT_DECLARED}; unified.*Objective says"
    ):
        Silent()
    with pytest.raises(UnifiedError, match=f"Silent does not declare {NOT_DECLARED}"):
        parse_objectives(f"{__name__}:Silent")
    with pytest.raises(UnifiedError, match=f"{__name__}:Undecorated is not a dataclass; its settings are fields"):
        Undecorated()
    with pytest.raises(UnifiedError, match="Bare does not declare boundary_offsets"):
        Bare(boundary_offsets=3)
    with pytest.raises(UnifiedError, match="Bare does not declare boundary_offsets"):
        parse_objectives(f"{__name__}:Bare")


@dataclass(frozen=True)
class Free(Reads):
    """Declares whatever a test wants."""

    token_types: int = 1
    writes: str = "nothing"
    heads: tuple = ("token",)
    special_tokens: int = 2
    boundary_offsets: int = 0
    annotations: tuple = ()
    mask: str = "bidirectional"
    scorings: tuple = ()


def free(own_heads=None, **declared) -> Free:
    """With heads of its own, which are no field."""
    return (Free if own_heads is None else type("Free", (Free,), {"own_heads": own_heads}))(**declared)


@pytest.mark.parametrize(
    "declared, message",
    [
        ({"segments": 3}, "segments must be 1 or 2, got 3"),
        ({"token_types": 0}, "token_types must be a whole number of at least 1, got 0"),
        ({"special_tokens": -1}, "special_tokens must be a whole number of at least 0, got -1"),
        ({"writes": "cloz"}, "writes must be one of cloze, next, left_to_right, permutation, nothing, got 'cloz'"),
        ({"mask": "diagonal"}, "mask must be one of .*bidirectional.*, got 'diagonal'"),
        ({"heads": ("tokens",)}, r"heads must be a tuple of some of token, next_sentence, .* got \('tokens',\)"),
        ({"heads": "token"}, "heads must be a tuple of some of"),
        ({"heads": ()}, "heads must be at least one head"),
        ({"heads": ("token", "boundary")}, "boundary_offsets must be above 0 if and only if 'boundary' is one of its"),
        ({"boundary_offsets": 2}, "boundary_offsets must be above 0 if and only if"),
        (
            {"scorings": ("upside_down",)},
            r"scorings must be a tuple of some of left_to_right, .* got \('upside_down',\)",
        ),
        ({"scorings": "left_to_right"}, "scorings must be a tuple of some of"),
        ({"own_heads": ("mine",)}, "own_heads must be a mapping whose keys are names of heads, got"),
        ({"own_heads": {1: print}}, "own_heads must be a mapping whose keys are names of heads, got"),
        ({"own_heads": {"token": print}}, "own_heads must be of other names than token, next_sentence, .* got"),
        ({"own_heads": {"mine": "MineHead"}}, "own_heads must be a mapping whose values are classes of heads, .* got"),
        ({"own_heads": {"mine": print}}, "own_heads must be of names that heads lists too, got"),
        ({"annotations": ("verbs",)}, r"annotations must be a tuple of some of noun_phrases, .* got \('verbs',\)"),
    ],
)
def test_declarations_that_contradict_each_other_are_refused(declared, message):
    with pytest.raises(UnifiedError, match=f"objective reads: {message}"):
        Mixture((free(**declared),), (1.0,))


#: What holds of an objective that declares only what it must.
DEFAULTS = {
    "paper": "", "own_heads": {}, "wants_random_second": False, "both_directions": False, "planner": None,
    "annotations": (), "mark_entities": False, "query_stream": False, "reads_streams": False, "reuse": None,
    "shows_labels": False, "boundary_offsets": 0, "mask": "bidirectional", "scorings": (),
}  # fmt: skip


@dataclass(frozen=True)
class Least(Objective):
    """Declares only what it must."""

    name: ClassVar[str] = "least"
    paired: ClassVar[bool] = False
    segments: ClassVar[int] = 1
    special_tokens: ClassVar[int] = 2
    token_types: ClassVar[int] = 1
    writes: ClassVar[str] = "nothing"
    heads: ClassVar[tuple[str, ...]] = ("token",)

    def __call__(self, text, rng):
        raise NotImplementedError


@pytest.mark.parametrize("name", [None, 3, "my objective: a,b", "my.objective", ""])
def test_a_name_is_one_of_the_notation(name):
    named = type("Named", (Least,), {"name": name})
    with pytest.raises(UnifiedError, match=f"^objective .*: name must be a text of letters, .*, got {name!r}$"):
        Mixture((named(),), (1.0,))


@pytest.mark.parametrize(
    "flag",
    [
        "paired", "wants_random_second", "both_directions", "mark_entities", "query_stream", "reads_streams",
        "shows_labels",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [1, "no"])
def test_flags_are_true_or_false(flag, value):
    flagged = type("Flagged", (Least,), {flag: value})
    with pytest.raises(UnifiedError, match=f"^objective least: {flag} must be True or False, got {value!r}$"):
        Mixture((flagged(),), (1.0,))


def test_defaults_of_what_a_class_declares():
    least = Least()
    assert {name: getattr(least, name) for name in DEFAULTS} == DEFAULTS
    assert {type(getattr(least, name)) for name, value in DEFAULTS.items() if value is False} == {bool}
    assert least.lengths(np.array([0, 7])).tolist() == [2, 9] and least.target_sentinels(5) == 0
    assert least.unmet(Supply(Vocabulary([]).special, False, 10)) is None
    Mixture((Free(special_tokens=0), Free(name="boundary", heads=("boundary",), boundary_offsets=1)), (1.0, 1.0))


@dataclass(frozen=True)
class Drawn(Suffix):
    """A suffix whose token types are drawn."""

    def __call__(self, text, rng):
        made = super().__call__(text, rng)
        return replace(made, token_types=rng.integers(1000, size=len(made.tokens)))


def test_an_objective_of_one_text_draws_from_the_stream_of_examples():
    """Another stream would change every training with such an objective."""
    texts = Texts.of([Text(np.array([5, 6, 7]), SPECIAL), Text(np.array([8, 9]), SPECIAL)])
    made = Drawn().examples(texts, Draws(np.array([3, 4], dtype=np.uint64)))
    assert made.token_types.tolist() == [915, 37, 414, 258, 17, 114, 37]


def test_as_many_sentinels_as_the_dictionary_has_are_enough():
    supply = Supply(replace(SPECIAL, sentinel_count=3), word_starts=False, longest=10)
    assert supply.lacks_sentinels(3) is None
    assert supply.lacks_sentinels(4) == (
        "a text of 10 tokens may take 4 sentinels, but the dictionary has 3; shorten the rows"
    )


def test_declarations_that_agree_are_taken():
    """All heads, all annotations, and all ways of scoring that the evaluation has."""
    heads, scorings = (*PREDICTION_HEADS, "mine"), tuple(SCORINGS)
    everything = free(
        heads=heads, own_heads={"mine": print}, boundary_offsets=1, scorings=scorings, annotations=tuple(KINDS)
    )
    assert Mixture((everything,), (1.0,)).objectives == (everything,)


def test_the_ways_of_decoding_are_those_of_the_decoder():
    assert (*SCHEMES, "nothing") == DECODING


def test_a_language_model_that_saw_no_mask_symbol_does_not_generate_by_one():
    assert Bert(next_sentence=False, left_to_right=True).writes == "nothing" and Bert().writes == "left_to_right"


def test_losses_are_named_by_heads():
    assert loss_names(Free()) == ("reads",)
    assert loss_names(Free(heads=tuple(PREDICTION_HEADS), boundary_offsets=1)) == (
        "reads",
        "reads_next_sentence",
        "reads_boundary",
        "reads_extractive",
    )
    assert parse_objectives("bert,spanbert").loss_names == (
        "bert",
        "bert_next_sentence",
        "spanbert",
        "spanbert_boundary",
    )


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_of_the_library_says_where_it_comes_from(name):
    assert OBJECTIVES[name]().paper


IN_ANY_ORDER = "left_to_right right_to_left pseudo_likelihood permutation"
#: segments, special tokens and token types of an example; how such a model writes; its heads; how it scores texts.
DECLARED = {
    "bidirectional": (2, 3, 2, "left_to_right", "token next_sentence", "pseudo_likelihood"),
    "bidirectional(next_sentence=False)": (1, 2, 2, "left_to_right", "token", "pseudo_likelihood"),
    "left_to_right": (1, 2, 6, "left_to_right", "token", "left_to_right"),
    "right_to_left": (1, 2, 6, "left_to_right", "token", "right_to_left"),
    "seq2seq": (2, 3, 6, "left_to_right", "token", ""),
    "target_cloze": (2, 3, 6, "cloze", "token", ""),
    "target_next": (2, 3, 6, "next", "token", ""),
    "bert": (2, 3, 2, "left_to_right", "token next_sentence", "pseudo_likelihood"),
    "bert(next_sentence=False)": (1, 2, 2, "left_to_right", "token", "pseudo_likelihood"),
    "bert(next_sentence=False, left_to_right=True)": (1, 2, 2, "nothing", "token", "left_to_right"),
    "spanbert": (1, 2, 2, "left_to_right", "token boundary", "pseudo_likelihood"),
    "spanbert(next_sentence=True)": (2, 3, 2, "left_to_right", "token next_sentence boundary", "pseudo_likelihood"),
    "xlnet": (2, 3, 3, "permutation", "token", IN_ANY_ORDER),
    "xlnet(next_sentence=True)": (2, 3, 3, "permutation", "token next_sentence", IN_ANY_ORDER),
    "xlnet(denoising=True)": (2, 3, 3, "left_to_right", "token", ""),
    "anna": (1, 2, 1, "left_to_right", "token", "pseudo_likelihood"),
    "prefix_lm": (1, 3, 6, "next", "token", "left_to_right"),
    "bert_style": (1, 3, 6, "next", "token", ""),
    "deshuffling": (1, 3, 6, "next", "token", ""),
    "mass_style": (1, 3, 6, "next", "token", ""),
    "replace_spans": (1, 3, 6, "next", "token", "infilling"),
    "drop_tokens": (1, 3, 6, "next", "token", ""),
    "random_spans": (1, 3, 6, "next", "token", "infilling"),
}


@pytest.mark.parametrize("text", DECLARED)
def test_what_objectives_declare(text):
    """CLS and SEP of one segment or two, or BOS, SEP and a target; token types of BERT, XLNet, and the six of UniLM."""
    (objective,) = parse_objectives(text).objectives
    sizes = objective.segments, objective.special_tokens, objective.token_types
    assert (*sizes, objective.writes, " ".join(objective.heads), " ".join(objective.scorings)) == DECLARED[text]
    assert {text.partition("(")[0] for text in DECLARED} == set(OBJECTIVES)
    assert objective.paired == text.startswith("target_")
    one_sided = {"bert(next_sentence=False, left_to_right=True)": "left_to_right"}
    one_sided |= {name: name for name in ("left_to_right", "right_to_left")}
    assert objective.mask == one_sided.get(text, "bidirectional")


# ---------------------------------------------------------------- in training
