"""Objectives that do not go with data or model are refused with what helps; a model gets the heads that they need."""

from dataclasses import replace

import pytest

from unified.errors import UnifiedError
from unified.model import PRESETS, TransformerConfig
from unified.objectives import parse_objectives
from unified.training.model_checks import adapted, require_content, require_positions, require_served, scheme_of


def model(preset: str = "unified_lm_tiny", **settings) -> TransformerConfig:
    return replace(PRESETS[preset](vocabulary_size=100), **settings)


@pytest.mark.parametrize(
    ("objectives", "paired", "holds"),
    [("bert", True, "source/target pairs"), ("target_cloze", False, "documents")],
)
def test_pairs_and_documents_are_told_apart(objectives, paired, holds):
    mixture = parse_objectives(objectives)
    require_content(mixture, objectives, "folder", mixture.paired)
    with pytest.raises(UnifiedError) as raised:
        require_content(mixture, objectives, "folder", paired)
    assert str(raised.value) == f"--objectives {objectives!r} does not fit folder, which holds {holds}"
    with pytest.raises(UnifiedError, match=f"^objectives '{objectives}' does not fit folder, "):
        require_content(mixture, objectives, "folder", paired, str)


def test_rows_are_no_longer_than_a_table_of_positions():
    require_positions(model(max_positions=64), 64)
    require_positions(model("xlnet_tiny", max_positions=64), 65)
    with pytest.raises(UnifiedError, match="^--tokens-per-sample 65 exceeds --max-positions 64$"):
        require_positions(model(max_positions=64), 65)
    with pytest.raises(UnifiedError, match="^tokens_per_sample 65 exceeds max_positions 64$"):
        require_positions(model(max_positions=64), 65, str)


ENTITIES = model("unified_lm_tiny", sublayers="entity,feed_forward", token_types=2)
REFUSALS = {
    "entities that nobody marks": (
        ENTITIES,
        "anna(mark_entities=True),cloze=anna",
        "--sublayers entity,feed_forward: entity-aware attention reads which tokens lie within named entities, "
        "and objective cloze does not say; anna(mark_entities=True) does, on documents of `unified prepare --annotate "
        "entities`",
    ),
    "entities that nobody reads": (
        model(token_types=2),
        "anna,marked=anna(mark_entities=True)",
        "objective marked marks named entities, which no attention of the model reads; pass --sublayers "
        "entity,feed_forward, or leave mark_entities out",
    ),
    "a query stream": (
        model(token_types=6),
        "bert,order=xlnet",
        "objective order predicts by a query stream, which needs a model with relative or rotary positions, not "
        "'learned'; take one of the models xlnet_* or modern_*, or pass --positions relative or rotary",
    ),
    "token types": (
        model(token_types=2),
        "bert,pairs=seq2seq",
        "objective pairs takes 6 token types, the model has 2; pass --token-types 6",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_model_lacks_is_named_with_the_objective_and_the_option(name):
    config, objectives, says = REFUSALS[name]
    for check in (require_served, adapted):
        with pytest.raises(UnifiedError) as raised:
            check(config, parse_objectives(objectives))
        assert str(raised.value) == says
        with pytest.raises(UnifiedError) as raised:
            check(config, parse_objectives(objectives), str)
        in_python = says.replace("--token-types", "token_types").replace("--annotate", "ANNOTATE").replace("--", "")
        assert str(raised.value) == in_python.replace("ANNOTATE", "--annotate")


def test_what_a_model_has_is_served():
    require_served(ENTITIES, parse_objectives("anna(mark_entities=True)"))
    require_served(model("xlnet_tiny", token_types=6), parse_objectives("xlnet,bert,seq2seq"))
    require_served(model(token_types=6), parse_objectives("bert,seq2seq,spanbert"))


def test_a_model_without_a_token_head_learns_no_language():
    with pytest.raises(UnifiedError) as raised:
        adapted(model(token_head="none"), parse_objectives("bert"))
    assert str(raised.value) == (
        "--token-head none: language modelling predicts tokens; leave it out, and the head that the checkpoint lacks "
        "is new"
    )
    with pytest.raises(UnifiedError, match="^token_head none: language modelling predicts tokens; "):
        adapted(model(token_head="none"), parse_objectives("bert"), str)


def test_objectives_decide_the_mask_and_the_heads():
    bert, causal = parse_objectives("bert"), parse_objectives("left_to_right,spanbert")
    assert adapted(model(), bert) == replace(model(), mask=bert.mask)
    reach = max(one.boundary_offsets for one in causal.objectives)
    assert reach > 1 and adapted(model(), causal).boundary_offsets == reach
    assert adapted(model(boundary_offsets=reach + 5), causal).boundary_offsets == reach + 5
    extractive = adapted(model(token_types=6), parse_objectives("target_cloze,target_next(extractive=True)"))
    assert extractive.sentence_head and extractive.mask == "bidirectional"
    assert not adapted(model(), bert).sentence_head and adapted(model(sentence_head=True), bert).sentence_head


def test_a_mask_that_the_objectives_do_not_have_is_refused():
    causal = parse_objectives("left_to_right")
    assert causal.mask == "left_to_right" == adapted(model(mask="left_to_right"), causal).mask
    assert adapted(model(mask="bidirectional"), causal).mask == "left_to_right"
    with pytest.raises(UnifiedError) as raised:
        adapted(model(mask="right_to_left"), causal)
    assert str(raised.value) == (
        "--mask right_to_left: the objectives left_to_right:1 decide who sees whom; it is for tasks of understanding"
    )
    with pytest.raises(UnifiedError, match="^mask right_to_left: the objectives left_to_right:1 decide "):
        adapted(model(mask="right_to_left"), causal, str)


@pytest.mark.parametrize(
    ("objectives", "types", "scheme"),
    [
        ("target_next,target_cloze", 6, "next"),
        ("target_cloze,target_next", 6, "cloze"),
        ("target_cloze", 5, "nothing"),
        ("bidirectional", 3, "left_to_right"),
        ("bidirectional", 2, "nothing"),
        ("xlnet", 1, "permutation"),
        ("bert", 6, "left_to_right"),
        ("bert(left_to_right=True,next_sentence=False)", 6, "nothing"),
        ("bert(left_to_right=True,next_sentence=False),prefix_lm,bidirectional", 6, "next"),
        ("bert(left_to_right=True,next_sentence=False),prefix_lm,bidirectional", 3, "left_to_right"),
    ],
)
def test_a_model_writes_as_the_first_objective_that_says_how_and_has_the_token_types(objectives, types, scheme):
    assert scheme_of(model(token_types=types), parse_objectives(objectives)) == scheme


def test_a_model_of_entities_writes_nothing():
    assert scheme_of(replace(ENTITIES, token_types=6), parse_objectives("anna(mark_entities=True)")) == "nothing"
