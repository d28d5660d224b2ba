"""What the call of an objective may return is refused in one line where it is no example, before anything is joined."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from torch._utils import ExceptionWrapper

from docs.examples.suffix_objective import Suffix
from docs.examples.word_lengths import WordLengthHead, WordLengths
from unified import masks
from unified.data.targets import TOKEN, ExampleTargets
from unified.errors import UnifiedError
from unified.model import PRESETS
from unified.model.heads import LANGUAGE_HEADS, language_heads
from unified.objectives.arrays import ObjectiveFailed, WrongExample, naming_objective, require_example
from unified.objectives.mixture import Mixture
from unified.testing import check_objective, sample_texts


@dataclass(frozen=True)
class Returns(Suffix):
    """The example of the documentation, made into something else."""

    what: str = ""

    def __call__(self, text, rng):
        return FAULTS[self.what][0](super().__call__(text, rng))


def retarget(example, **changes):
    return replace(example, targets={TOKEN: replace(example.targets[TOKEN], **changes)})


def in_columns(example, columns):
    """The indices of the predicted tokens in several columns."""
    return example.targets[TOKEN].output_indices.repeat(columns, axis=1)


FAULTS = {
    "nothing": (lambda example: None, "objective suffix returns NoneType when called; expected an Example"),
    "a tuple": (
        lambda example: (example.tokens, example.mask),
        "objective suffix returns tuple when called; expected an Example",
    ),
    "a matrix": (
        lambda example: replace(example, mask=example.mask.dense()),
        "objective suffix makes examples whose mask is Tensor; expected an AttentionMask",
    ),
    "a batch of masks": (
        lambda example: replace(example, mask=masks.batch([example.mask])),
        "the mask of an example of 'suffix' must be of one row, got a batch",
    ),
    "a list of targets": (
        lambda example: replace(example, targets=[*example.targets.values()]),
        "objective suffix makes examples whose targets are list; expected a dictionary by head",
    ),
    "labels as targets": (
        lambda example: replace(example, targets={TOKEN: example.targets[TOKEN].labels}),
        "objective suffix has ndarray as targets of the head 'token'; expected an ExampleTargets",
    ),
    "rows of tokens": (
        lambda example: replace(example, tokens=example.tokens[None]),
        "objective suffix makes examples whose tokens have shape (1, 2); expected (T,)",
    ),
    "one position": (
        lambda example: replace(example, positions=0),
        "objective suffix makes examples whose positions have shape (); expected (T,)",
    ),
    "columns of labels": (
        lambda example: retarget(example, labels=example.targets[TOKEN].labels[:, None]),
        "objective suffix made labels of shape (1, 1) and dtype int64 for the head 'token'; expected numbers (N,)",
    ),
    "columns of weights": (
        lambda example: retarget(example, weights=np.ones((len(example.targets[TOKEN]), 2))),
        "objective suffix made weights of shape (1, 2) and dtype float64 for the head 'token'; expected numbers (N,)",
    ),
    "words as divisors": (
        lambda example: retarget(example, divisors=np.full(len(example.targets[TOKEN]), "1")),
        "objective suffix made divisors of shape (1,) and dtype <U1 for the head 'token'; expected numbers (N,)",
    ),
    "entities of another length": (
        lambda example: replace(example, entities=np.zeros(3, dtype=bool)),
        "objective suffix made entities of shape (3,) and dtype bool; expected bool (2,)",
    ),
    "entities by number": (
        lambda example: replace(example, entities=np.full(len(example.tokens), 7)),
        "objective suffix made entities of shape (2,) and dtype int64; expected bool (2,)",
    ),
    "fewer positions": (
        lambda example: replace(example, positions=example.positions[:-1]),
        "objective suffix made 1 positions for 2 tokens",
    ),
    "two states": (
        lambda example: retarget(example, output_indices=in_columns(example, 2)),
        "objective suffix made output_indices of 2 columns for the head 'token', which reads 1",
    ),
    "two states of some": (
        lambda example: retarget(example, output_indices=in_columns(example, 1 + len(example.tokens) % 2)),
        "objective suffix made output_indices of 2 columns for the head 'token', which reads 1",
    ),
    "an input that is not read": (
        lambda example: retarget(example, inputs={"x": np.zeros(len(example.targets[TOKEN]))}),
        "objective suffix gives the head 'token' the inputs x; it reads none",
    ),
    "a number as input": (
        lambda example: retarget(example, inputs={"x": 3}),
        "objective suffix made x of shape () and dtype int64 for the head 'token'; expected numbers (N, ...)",
    ),
    "words as input": (
        lambda example: retarget(example, inputs={"x": np.full(len(example.targets[TOKEN]), "a")}),
        "objective suffix made x of shape (1,) and dtype <U1 for the head 'token'; expected numbers (N, ...)",
    ),
    "fewer numbers as input": (
        lambda example: retarget(example, inputs={"x": np.zeros(0)}),
        "objective suffix made 0 x for 1 prediction of the head 'token'",
    ),
    "an index behind the example": (
        lambda example: retarget(example, output_indices=in_columns(example, 1) + len(example.tokens)),
        "objective suffix has 2 among the indices of the head 'token' in an example of 2 tokens",
    ),
    "a list of inputs": (
        lambda example: retarget(example, inputs=[3]),
        "objective suffix has list as inputs of the head 'token'; expected a dictionary by name",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_what_is_no_example_is_named(what):
    with pytest.raises(UnifiedError) as refusal:
        check_objective(Returns(what=what))
    assert str(refusal.value) == FAULTS[what][1]


@dataclass(frozen=True)
class Fails(Suffix):
    """The example of the documentation, which fails itself, or within the library."""

    deeply: bool = False

    def __call__(self, text, rng):
        if self.deeply:
            return masks.left_to_right(text)  # that is no length
        return {}["missing"]


def test_an_own_objective_that_fails_is_named_with_its_line():
    for deeply, says in ((False, "KeyError: 'missing'"), (True, "ValueError: length must be an integer")):
        with pytest.raises(ObjectiveFailed) as failure:
            check_objective(Fails(deeply=deeply))
        line = Fails.__call__.__code__.co_firstlineno + (2 if deeply else 3)
        assert str(failure.value).startswith(f"objective suffix fails in line {line} of {__name__}: {says}")
        assert f"{type(failure.value.__cause__).__name__}: " == says[: says.index(" ") + 1]


@dataclass(frozen=True)
class FailsElsewhere(Suffix):
    """The example of the documentation, in whose method of some name is a bug."""

    method: str = ""

    def lengths(self, tokens):
        return {}["missing"] if self.method == "lengths" else super().lengths(tokens)

    def unmet(self, supply):
        return {}["missing"] if self.method == "unmet" else super().unmet(supply)

    @property
    def scorings(self):
        return {}["missing"] if self.method == "scorings" else super().scorings


@pytest.mark.parametrize("method", ["lengths", "unmet", "scorings"])
def test_what_fails_in_another_method_is_named_as_well(method):
    says = f"fails in line [0-9]+ of {__name__}: KeyError: 'missing'$"
    with pytest.raises(ObjectiveFailed, match=f"^objective suffix {says}"):
        check_objective(FailsElsewhere(method=method))
    if method != "unmet":
        with pytest.raises(ObjectiveFailed, match=f"^objective mine {says}"):
            Mixture((FailsElsewhere(method=method),), (1,), ("mine",))


def test_what_is_no_failure_of_an_own_objective_stays_what_it_was():
    for code, raised in (
        ("unified.objectives.unilm", KeyError("x")),  # a bug of the library keeps its traceback
        ("mine", OSError(2, "No such file", "data")),
        ("mine", UnifiedError("a refusal")),
        ("mine", KeyboardInterrupt()),
    ):
        with pytest.raises(type(raised)) as kept, naming_objective("mine", code):
            raise raised
        assert kept.value is raised
    with (
        pytest.raises(UnifiedError, match="^objective one fails: KeyError: 'x'$"),
        naming_objective("one", "unifiedly"),
    ):
        raise KeyError("x")


def test_the_failure_of_an_own_objective_keeps_its_traceback_when_it_leaves_a_worker():
    """torch builds an exception of a worker anew, without its traceback, where that takes a message alone."""
    try:
        check_objective(Fails())
    except ObjectiveFailed:
        wrapped = ExceptionWrapper()
    with pytest.raises(RuntimeError, match=r'\n    return \{\}\["missing"\]\n'):
        wrapped.reraise()
    failure = ObjectiveFailed("one", "fails")
    assert str(pickle.loads(pickle.dumps(failure))) == str(failure) == "objective one fails"


def test_every_example_predicts_from_its_own_tokens():
    """Also behind the first ones: an index behind an example would read another one of its row."""
    text = next(sample_texts(Suffix())).texts()
    made = [Suffix()(one, np.random.default_rng(1)) for one in text]
    with pytest.raises(WrongExample, match="^has -1 among the indices of the head 'token' in an example of 2 tokens"):
        require_example(retarget(made[0], output_indices=in_columns(made[0], 1) - 1), {})


def test_lists_of_integers_may_be_predicted():
    class Lists(Suffix):
        def __call__(self, text, rng):
            made = super().__call__(text, rng)
            own = made.targets[TOKEN]
            return replace(
                made, targets={TOKEN: ExampleTargets.at(own.output_indices[:, 0].tolist(), own.labels.tolist())}
            )

    check_objective(Lists())


class Several(WordLengthHead):
    """A head that reads two states and an input of each prediction."""

    states_read = 2
    inputs = ("distances",)


def test_targets_are_those_that_an_own_head_reads():
    class Lengths(WordLengths):
        own_heads = {"word_length": Several}

    with pytest.raises(UnifiedError) as refusal:
        check_objective(Lengths())
    says = "objective word_lengths made output_indices of 1 column for the head 'word_length', which reads 2"
    assert str(refusal.value) == says

    class Factory(WordLengths):
        own_heads = {"word_length": lambda config: Several(config)}

    check_objective(Factory())  # what the head of a function reads is known when a model is made


def test_the_head_of_boundaries_is_given_distances():
    class Boundaries(Suffix):
        heads, boundary_offsets = ("token", "boundary"), 3

        def __call__(self, text, rng):
            made = super().__call__(text, rng)
            own = ExampleTargets(np.zeros((1, 2), dtype=np.int64), made.targets[TOKEN].labels[:1])
            return replace(made, targets={**made.targets, "boundary": own})

    with pytest.raises(UnifiedError, match="^objective suffix gives the head 'boundary' the inputs none; it reads dis"):
        check_objective(Boundaries())


def test_the_classes_of_heads_are_those_of_a_model():
    heads = language_heads(PRESETS["unified_lm_tiny"](vocabulary_size=9, boundary_offsets=2, sentence_head=True), {})
    assert {name: type(head) for name, head in heads.items()} == LANGUAGE_HEADS
