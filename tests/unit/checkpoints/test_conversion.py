"""Checks that imports of every format share: names, copies, heads, decoding schemes, tables over a tokenizer."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.task_folders import WORDS, tokenizer
from tests.support.tiny_models import model
from unified.checkpoints.conversion import (
    Conversion,
    Imported,
    activation_of,
    decoding,
    fitting,
    gather,
    lengths_of,
    over_tokenizer,
    require_model_type,
    with_heads_of,
)
from unified.checkpoints.files import load_checkpoint
from unified.checkpoints.trained import Trained
from unified.checkpoints.vocabularies import BY_SYMBOL
from unified.data.vocabulary import APPENDED, Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.model import TransformerConfig, UnifiedModel

PAIRS = {
    "transformer.a": ("x.a",),
    "transformer.joint": ("x.q", "x.k"),
    "heads.token.bias": ("y.bias",),
    "heads.token.dense": ("y.dense",),
    "heads.boundary.bias": ("z.bias",),
    "heads.boundary.first": ("z.first",),
    "heads.next_sentence.pooler": ("p.weight",),
}
COPIES = {"y.copy": "x.a"}


def state(**changes) -> dict:
    """All that :data:`PAIRS` reads; ``changes`` have an underscore for the point, None takes a value out."""
    whole = {
        other: torch.arange(6.0).view(3, 2) + i for i, other in enumerate(o for own in PAIRS.values() for o in own)
    }
    whole |= {name.replace("_", ".", 1): value for name, value in changes.items()}
    return {name: value for name, value in whole.items() if value is not None}


def gathered(found: dict):
    return gather(found, PAIRS, COPIES, iter(["x.ids"]), "a thing of 2 layers")


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


# Names of parameters


def test_parameters_get_our_names_and_joint_ones_stand_one_above_the_other():
    theirs = state(x_ids=torch.tensor(3), y_copy=torch.arange(6.0).view(3, 2))
    found, new = gathered(theirs)
    assert new == [] and list(found) == list(PAIRS)
    assert torch.equal(found["transformer.joint"], torch.cat([theirs["x.q"], theirs["x.k"]]))
    assert all(torch.equal(found[mine], theirs[other]) for mine, (other, *more) in PAIRS.items() if not more)


@pytest.mark.parametrize(
    ("left_out", "new"),
    [
        (("y_bias", "y_dense"), ["heads.token.bias", "heads.token.dense"]),
        (("z_bias", "z_first"), ["heads.boundary.bias", "heads.boundary.first"]),
        (("p_weight",), ["heads.next_sentence.pooler"]),
    ],
)
def test_a_whole_head_may_be_missing(left_out, new):
    found, lacking = gathered(state(**dict.fromkeys(left_out)))
    assert lacking == new and list(found) == [name for name in PAIRS if name not in new]


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"x_other": torch.ones(1), "x_more": torch.ones(1)}, "unknown: x.more; unknown: x.other"),
        ({"x_a": None}, "missing: x.a"),
        ({"x_k": None}, "missing: x.k"),
        ({"y_bias": None}, "missing: y.bias"),
        ({"z_first": None}, "missing: z.first"),
        ({"x_a": 3}, "x.a: expected a tensor, got int"),
        ({"x_a": torch.tensor(1.0)}, "x.a: expected a tensor, got a single number"),
        ({"x_a": torch.ones(1, dtype=torch.complex64)}, "x.a: expected real numbers, one beside the other"),
        ({"y_copy": [1]}, "y.copy: expected a tensor, got list"),
        ({"x_k": torch.ones(3, 3)}, "different shapes: x.q, x.k"),
        ({"x_k": torch.tensor(1.0)}, "x.k: expected a tensor, got a single number"),
        ({"x_wrong": 1, "x_a": None}, "unknown: x.wrong; missing: x.a"),
    ],
)
def test_every_problem_is_listed(changes, problems):
    assert refusal(gathered, state(**changes)) == f"not the parameters of a thing of 2 layers: {problems}"


def test_a_copy_must_equal_its_original_where_both_are_there():
    said = "y.copy differs from x.a; the softmax must be tied to the embeddings"
    assert refusal(gathered, state(y_copy=torch.zeros(3, 2))) == said
    pairs = {name: others for name, others in PAIRS.items() if name != "transformer.a"}
    found, _ = gather(state(x_a=None, y_copy=torch.zeros(2)), pairs, COPIES, (), "x")
    assert found.keys() == pairs.keys()


# Settings


def test_activations_have_the_names_of_transformers():
    """There "gelu_new" and "gelu_pytorch_tanh" are both the approximation by tanh."""
    theirs = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "silu": "silu"}
    assert {name: activation_of(name, "hidden_act") for name in theirs} == theirs
    wanted = "config.json: ff_act 'relu'; 'gelu', its approximation 'gelu_new' and 'silu' are built"
    assert refusal(activation_of, "relu", "ff_act") == wanted
    assert "'gelu_tanh'; " in refusal(activation_of, "gelu_tanh", "hidden_act")  # our name is none of theirs


def test_a_model_of_another_type_is_refused():
    require_model_type({}, "bert")
    require_model_type({"model_type": "bert"}, "bert")
    wanted = "config.json: model_type 'gpt2'; --from bert reads models of type 'bert'"
    assert refusal(require_model_type, {"model_type": "gpt2"}, "bert") == wanted


def test_lengths_of_pairs_are_read_and_refused_by_the_files_name():
    assert lengths_of({}) == PairLengths()
    assert lengths_of(PairLengths(5, 0, 7).state()) == PairLengths(5, 0, 7)
    wanted = "config.json: pair_lengths must hold longest_target, max_source, max_target, got {'x': 1}"
    assert refusal(lengths_of, {"pair_lengths": {"x": 1}}) == wanted


def test_the_heads_of_a_file_decide_those_of_the_model():
    config = TransformerConfig(vocabulary_size=20)
    token, new = {"heads.token.bias": torch.zeros(20)}, ["heads.token.dense", "heads.next_sentence.pooler"]
    assert with_heads_of(token, new, config) == (config, new, [])
    boundary = {"heads.boundary.distances.weight": torch.zeros(7, 3)}
    assert with_heads_of(token | boundary, [], config) == (replace(config, boundary_offsets=7), [], [])
    remark = "it has no token head: the model gives features and can be fine-tuned, but predicts no tokens"
    bare = replace(config, token_head="none", boundary_offsets=7)
    assert with_heads_of(boundary, new, config) == (bare, ["heads.next_sentence.pooler"], [remark])


SIX, TWO = TransformerConfig(30, token_types=6), TransformerConfig(30, token_types=2)
RELATIVE, ROTARY = replace(TWO, positions="relative"), replace(TWO, positions="rotary", token_types=0)
CONTINUES = "it continues prompts; where it was fine-tuned on pairs, --writes cloze lets it write"


@pytest.mark.parametrize(
    ("config", "writes", "usual", "scheme", "remarks"),
    [
        (TWO, None, "nothing", "nothing", []),
        (SIX, None, "left_to_right", "left_to_right", [CONTINUES]),
        (RELATIVE, None, "permutation", "permutation", ["it writes by the scheme 'permutation'"]),
        (replace(SIX, token_head="none"), None, "left_to_right", "nothing", []),
        (replace(SIX, token_head="none"), "nothing", "left_to_right", "nothing", []),
        (SIX, "left_to_right", "nothing", "left_to_right", ["it writes by the scheme 'left_to_right'"]),
        (replace(TWO, token_types=3), "left_to_right", "nothing", "left_to_right",
         ["it writes by the scheme 'left_to_right'"]),
        (SIX, "cloze", "nothing", "cloze", ["it writes by the scheme 'cloze'"]),
        (ROTARY, "cloze", "nothing", "cloze", ["it writes by the scheme 'cloze'"]),
        (ROTARY, "permutation", "nothing", "permutation", ["it writes by the scheme 'permutation'"]),
    ],
)  # fmt: skip
def test_a_model_writes_as_asked_or_as_is_usual(config, writes, usual, scheme, remarks):
    assert decoding(config, writes, usual) == (scheme, remarks)


@pytest.mark.parametrize(
    ("config", "writes", "said"),
    [
        (SIX, "x", "no decoding scheme 'x'; there are cloze, next, left_to_right, permutation, and 'nothing'"),
        (replace(SIX, token_head="none"), "cloze", "--writes cloze: the model has no token head, so it writes nothing"),
        (SIX, "permutation", "--writes permutation: a model with learned positions cannot write so"),
        (RELATIVE, "next", "--writes next: a model with relative positions cannot write so"),
        (TWO, "next", "--writes next takes 6 token types, the model has 2; training it by `fairseq-train "
         "--token-types 6` adds them"),
        (TWO, "left_to_right", "--writes left_to_right takes 3 token types, the model has 2; training it by "
         "`fairseq-train --token-types 3` adds them"),
    ],
)  # fmt: skip
def test_what_a_model_cannot_write_is_refused(config, writes, said):
    assert refusal(decoding, config, writes, "nothing") == said


# Tables


def test_parameters_must_have_the_shapes_of_the_configuration():
    lm = model()
    half = {name: value.half() for name, value in lm.state_dict().items()}
    found = fitting(Path("here"), half, lm.config)
    assert found.keys() == half.keys() and {value.dtype for value in found.values()} == {torch.float32}
    assert all(torch.equal(found[name], half[name].float()) for name in half)
    half["heads.token.bias"] = torch.zeros(2)
    wanted = "here: the parameters do not fit the configuration: heads.token.bias: shape 2, the configuration says "
    assert refusal(fitting, Path("here"), half, lm.config) == wanted + str(lm.config.vocabulary_size)


@pytest.mark.parametrize("more", [0, 2])
def test_tables_go_from_the_order_of_the_tokenizer_to_that_of_the_dictionary(more):
    own = tokenizer()
    native = own.native_symbols()
    config = TransformerConfig(len(native) + more, layers=1, width=8, heads=2, initializer_range=0.5)
    torch.manual_seed(0)
    lm = UnifiedModel.for_language(config)
    found = {name: value for name, value in lm.state_dict().items() if not name.endswith(".scored")}
    found["heads.token.bias"] = torch.randn(len(native) + more)
    after, moved, vocabulary, left_out = over_tokenizer(Path("here"), config, found, own, "BertTokenizer")
    assert vocabulary.symbols == Vocabulary(WORDS).symbols
    assert after == replace(config, vocabulary_size=len(vocabulary))
    assert left_out == ([f"{more} rows that no entry of the vocabulary has"] if more else [])
    for name in set(BY_SYMBOL) & found.keys():
        for row, symbol in enumerate(native):
            assert torch.equal(moved[name][vocabulary.index(symbol)], found[name][row]), (name, symbol)
    new = moved["transformer.embeddings.tokens.weight"][[vocabulary.index(one) for one in APPENDED[1:]]]
    assert 0.4 < new.std() < 0.6  # the configuration's deviation


def test_tables_with_fewer_rows_than_the_tokenizer_are_refused():
    config = TransformerConfig(34, layers=1, width=8, heads=2)
    wanted = "here: 35 entries in its vocabulary, 34 in config.json"
    assert refusal(over_tokenizer, Path("here"), config, {}, tokenizer(), "BertTokenizer") == wanted


@pytest.mark.parametrize("own", [tokenizer(), None])
def test_an_imported_model_is_saved_whole_or_not_at_all(tmp_path, own):
    lm, vocabulary = model(), Vocabulary([f"w{i}" for i in range(12)])
    told = Conversion(new=("a",), left_out=("b",), remarks=("c",))
    imported = Imported(Trained(lm.config, "cloze", lm.state_dict(), vocabulary), own, told)
    assert imported.save(tmp_path / "out") is told
    files = {"checkpoint_last.pt", "dict.txt"} | ({"vocab.txt", "tokenizer_config.json"} if own else set())
    assert {path.name for path in (tmp_path / "out").iterdir()} == files
    content = load_checkpoint(tmp_path / "out" / "checkpoint_last.pt")
    assert content["cfg"]["task"]["data"] == ""
    with pytest.raises(UnifiedError, match=f"^{re.escape(str(tmp_path / 'out'))}: not empty; name a new folder$"):
        imported.save(tmp_path / "out")


def test_a_conversion_has_nothing_to_tell_by_default():
    assert (Conversion().new, Conversion().left_out, Conversion().remarks) == ((), (), ())
