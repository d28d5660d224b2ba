"""The contract of objectives: what a class must declare, and what is refused before anything is trained."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from tests.support import fairseq_runs as fairseq
from tests.support.token_files import Reads, numbered_documents, write_documents
from unified.checkpoints import load_checkpoint
from unified.data.targets import PREDICTION_HEADS
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES
from unified.objectives import OBJECTIVES, Mixture, Objective, parse_objectives
from unified.objectives.bert import Bert
from unified.objectives.contract import DECODING, loss_names


@dataclass(frozen=True)
class Silent(Objective):
    """Declares its name alone."""

    name: ClassVar[str] = "silent"


@dataclass(frozen=True, kw_only=True)
class Bare(Reads):
    """Its setting hides a declaration that has a default, and gives none."""

    boundary_offsets: int


NOT_DECLARED = "__call__, heads, paired, segments, special_tokens, token_types, writes"


def test_what_a_class_leaves_out_is_named():
    with pytest.raises(
        UnifiedError, match=f"{__name__}:Silent does not declare {NOT_DECLARED}; unified.*Objective says"
    ):
        Silent()
    with pytest.raises(UnifiedError, match=f"Silent does not declare {NOT_DECLARED}"):
        parse_objectives(f"{__name__}:Silent")
    with pytest.raises(UnifiedError, match="Bare does not declare boundary_offsets"):
        Bare(boundary_offsets=3)


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
        ({"annotations": ("verbs",)}, r"annotations must be a tuple of some of noun_phrases, .* got \('verbs',\)"),
    ],
)
def test_declarations_that_contradict_each_other_are_refused(declared, message):
    with pytest.raises(UnifiedError, match=f"objective reads: {message}"):
        Mixture((Free(**declared),), (1.0,))


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


# ---------------------------------------------------------------- in training


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    Vocabulary([f"w{i}" for i in range(400)]).save(folder / "dict.txt")
    for split in ("train", "valid"):
        write_documents(folder / split, numbered_documents([[9] * 8, [5] * 12] * 2))
    return folder


SUFFIX = ("--objectives", "docs.examples.suffix_objective:Suffix", "--max-update", 1, "--batch-size", 4)


@pytest.mark.slow
def test_the_example_of_the_documentation_needs_its_token_types(data, tmp_path):
    result = fairseq.train(data, tmp_path, "--arch", "bert_tiny", *SUFFIX, check=False)
    fairseq.assert_refused(result, "objective suffix takes 6 token types, the model has 2; pass --token-types 6")


@pytest.mark.slow
def test_a_model_trained_with_it_does_not_generate_by_a_scheme_that_it_never_saw(data, tmp_path):
    """Losses are logged under the names of a mixture, of two objectives of one kind too."""
    objectives = f"x={SUFFIX[1]}:1,a=random_spans:1,b=random_spans(noise_density=0.5):1"
    result = fairseq.train(data, tmp_path, *SUFFIX, "--objectives", objectives)
    assert {f"valid_{name}_loss" for name in "xab"} <= set(fairseq.logged(result.stdout, "valid")[-1])
    assert load_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]["model"]["writes"] == "nothing"
