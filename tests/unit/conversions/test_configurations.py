"""Settings of BERT, XLNet, ModernBERT and RoBERTa as configurations of ours: fields, defaults, and refusals."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError

from unified.conversions.bert import bert_config
from unified.conversions.modern_bert import modern_bert_config
from unified.conversions.roberta import as_bert
from unified.conversions.roberta import settings_for_bert as roberta_settings
from unified.conversions.xlnet import xlnet_config
from unified.errors import UnifiedError
from unified.model import TransformerConfig

BERT = {
    "vocab_size": 50, "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12,
    "max_position_embeddings": 20, "type_vocab_size": 3,
}  # fmt: skip
XLNET = {"vocab_size": 50, "n_layer": 2, "d_model": 8, "n_head": 2, "d_inner": 12}
MODERN = {name: BERT[name] for name in ("vocab_size", "num_hidden_layers", "hidden_size", "num_attention_heads",
                                        "intermediate_size")}  # fmt: skip


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


# BERT


def test_the_fields_of_bert_are_read_and_its_defaults_are_those_of_transformers():
    usual = transformers.BertConfig()
    assert bert_config(BERT) == TransformerConfig(
        vocabulary_size=50, layers=2, width=8, heads=2, feed_forward=12, max_positions=20, token_types=3,
        activation=usual.hidden_act, dropout=usual.hidden_dropout_prob,
        attention_dropout=usual.attention_probs_dropout_prob, norm_epsilon=usual.layer_norm_eps,
        initializer_range=usual.initializer_range, mask="bidirectional",
    )  # fmt: skip
    more = {
        "model_type": "bert", "hidden_act": "gelu_new", "hidden_dropout_prob": 0.3, "layer_norm_eps": 1e-5,
        "attention_probs_dropout_prob": 0.2, "initializer_range": 0.5, "is_decoder": True,
        "position_embedding_type": "absolute",
    }  # fmt: skip
    assert bert_config(BERT | more) == replace(
        bert_config(BERT), activation="gelu_tanh", dropout=0.3, attention_dropout=0.2, norm_epsilon=1e-5,
        initializer_range=0.5, mask="left_to_right",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2'; --from bert reads models of type 'bert'"),
        ({"hidden_act": "relu"}, "hidden_act 'relu'; 'gelu', its approximation 'gelu_new' and 'silu' are built"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key', not 'absolute'"),
        ({"hidden_size": 9}, "width must be a multiple of heads, got width 9 and heads 2"),
    ],
)
def test_what_is_no_bert_of_ours_is_refused(change, said):
    assert refusal(bert_config, BERT | change).startswith(f"config.json: {said}")


@pytest.mark.parametrize("name", BERT)
def test_a_field_that_bert_lacks_is_named(name):
    settings = {other: value for other, value in BERT.items() if other != name}
    assert refusal(bert_config, settings) == f"config.json: no {name}; is it a BERT's?"


# XLNet


def test_the_fields_of_xlnet_are_read_and_its_defaults_are_those_of_transformers():
    usual = transformers.XLNetConfig()
    assert xlnet_config(XLNET) == TransformerConfig(
        vocabulary_size=50, layers=2, width=8, heads=2, feed_forward=12, positions="relative", token_head="plain",
        attn_type=usual.attn_type, clamp_len=0, activation=usual.ff_activation, dropout=usual.dropout,
        attention_dropout=usual.dropout, inner_dropout=usual.dropout, norm_epsilon=usual.layer_norm_eps,
        initializer_range=usual.initializer_range,
    )  # fmt: skip
    assert usual.clamp_len == -1
    more = {
        "attn_type": "uni", "clamp_len": 5, "ff_activation": "gelu_new", "dropout": 0.3, "layer_norm_eps": 1e-5,
        "initializer_range": 0.5, "d_head": 4, "same_length": False, "model_type": "xlnet", "n_token": 7,
    }  # fmt: skip
    assert xlnet_config(XLNET | more) == replace(
        xlnet_config(XLNET), attn_type="uni", clamp_len=5, activation="gelu_tanh", dropout=0.3, attention_dropout=0.3,
        inner_dropout=0.3, norm_epsilon=1e-5, initializer_range=0.5,
    )  # fmt: skip
    published = {name: value for name, value in XLNET.items() if name != "vocab_size"} | {"n_token": 50}
    assert xlnet_config(published) == xlnet_config(XLNET)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "bert"}, "config.json: model_type 'bert'; --from xlnet reads models of type 'xlnet'"),
        ({"same_length": True}, "config.json: same_length True; only False is built"),
        ({"d_head": 3}, "config.json: 2 heads of 3 do not make d_model 8"),
        ({"ff_activation": "relu"}, "config.json: ff_activation 'relu'; 'gelu', its approximation 'gelu_new' and "
         "'silu' are built"),
    ],
)  # fmt: skip
def test_what_is_no_xlnet_of_ours_is_refused(change, said):
    assert refusal(xlnet_config, XLNET | change) == said


@pytest.mark.parametrize("name", XLNET)
def test_a_field_that_xlnet_lacks_is_named(name):
    settings = {other: value for other, value in XLNET.items() if other != name}
    named = "n_token" if name == "vocab_size" else name
    assert refusal(xlnet_config, settings) == f"config.json: no {named}; is it an XLNet's?"


def test_a_size_of_heads_may_be_left_open():
    assert xlnet_config(XLNET | {"d_head": None}) == xlnet_config(XLNET) == xlnet_config(XLNET | {"d_head": 4})
    said = "config.json: 2 heads of 0 do not make d_model 8"
    assert refusal(xlnet_config, XLNET | {"d_head": 0}) == said


# ModernBERT


def test_the_fields_of_modern_bert_are_read_and_its_defaults_are_those_of_transformers():
    usual = transformers.ModernBertConfig()
    rope = usual.rope_parameters
    assert modern_bert_config(MODERN) == TransformerConfig(
        vocabulary_size=50, layers=2, width=8, heads=2, feed_forward=12, gated=True, positions="rotary",
        rotary_theta=rope["full_attention"]["rope_theta"], local_rotary_theta=rope["sliding_attention"]["rope_theta"],
        attention_windows=f"0,{usual.local_attention // 2}", max_positions=usual.max_position_embeddings,
        token_types=0, activation=usual.hidden_activation, linear_without_bias=not usual.mlp_bias,
        dropout=usual.embedding_dropout, inner_dropout=usual.mlp_dropout, attention_dropout=usual.attention_dropout,
        norm="pre", norm_type="layer_without_bias", norm_epsilon=usual.norm_eps, embedding_norm=True,
        initializer_range=usual.initializer_range,
    )  # fmt: skip
    more = {
        "model_type": "modernbert", "hidden_activation": "silu", "classifier_activation": "silu", "norm_bias": True,
        "attention_bias": True, "mlp_bias": True, "classifier_bias": True, "embedding_dropout": 0.3,
        "mlp_dropout": 0.2, "attention_dropout": 0.4, "norm_eps": 1e-6, "initializer_range": 0.5,
        "max_position_embeddings": 77, "decoder_bias": True, "tie_word_embeddings": True, "local_attention": 7,
        "layer_types": ["sliding_attention"] * 2, "rope_parameters": {"full_attention": {"rope_theta": 5}},
        "local_rope_theta": 9,
    }  # fmt: skip
    assert modern_bert_config(MODERN | more) == replace(
        modern_bert_config(MODERN), activation="silu", norm_type="layer", linear_without_bias=False, dropout=0.3,
        inner_dropout=0.2, attention_dropout=0.4, norm_epsilon=1e-6, initializer_range=0.5, max_positions=77,
        attention_windows="3", rotary_theta=5.0, local_rotary_theta=9.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "thetas"),
    [
        ({"global_rope_theta": 7, "local_rope_theta": 3}, (7.0, 3.0)),
        ({"global_rope_theta": 7, "local_rope_theta": None}, (7.0, 0.0)),
        ({"global_rope_theta": 7, "local_rope_theta": 7}, (7.0, 0.0)),
        ({"rope_parameters": {"sliding_attention": {"rope_theta": 2}}, "local_rope_theta": 3}, (160000.0, 2.0)),
        ({"rope_parameters": {"full_attention": None, "sliding_attention": {}}}, (160000.0, 10000.0)),
        ({"rope_parameters": None}, (160000.0, 10000.0)),
        ({"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 4}}}, (4.0, 10000.0)),
    ],
)
def test_wavelengths_are_read_in_the_form_of_either_version(settings, thetas):
    config = modern_bert_config(MODERN | settings)
    assert (config.rotary_theta, config.local_rotary_theta) == thetas


@pytest.mark.parametrize(
    "fields",
    [
        {"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}},
        {"rope_parameters": {"rope_theta": 500.0}, "global_rope_theta": 7.0},
        {"rope_parameters": {"full_attention": {"rope_theta": 5.0}, "rope_theta": 4.0}},
        {"rope_parameters": {}, "global_rope_theta": 7.0},
        {"rope_parameters": {"full_attention": {"rope_theta": 5.0}}, "local_rope_theta": 7.0},
        {"rope_scaling": {"rope_theta": 5.0}},
        {"rope_scaling": {"rope_type": "default"}, "global_rope_theta": 7.0},
        {"rope_scaling": None},
        {"rope_theta": 5.0},
    ],
    ids=str,
)
def test_wavelengths_are_those_of_transformers_which_refuses_what_is_refused_here(fields):
    try:
        theirs = transformers.ModernBertConfig(**copy.deepcopy(fields)).rope_parameters
    except StrictDataclassError:
        said = "config.json: rope_parameters has 'rope_theta'; a ModernBERT's are two objects, full_attention and "
        assert refusal(modern_bert_config, MODERN | fields) == said + "sliding_attention, each with a rope_theta"
        return
    config = modern_bert_config(MODERN | fields)
    found = config.rotary_theta, config.local_rotary_theta or config.rotary_theta
    assert found == tuple(theirs[kind]["rope_theta"] for kind in ("full_attention", "sliding_attention"))


def test_scaled_wavelengths_are_refused():
    for fields, name in (({"rope_scaling": {"type": "linear", "factor": 2.0}}, "type"),
                         ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "rope_type")):  # fmt: skip
        said = f"config.json: {name} 'linear' of full_attention; only 'default' is built"
        assert refusal(modern_bert_config, MODERN | fields) == said


@pytest.mark.parametrize(
    ("settings", "windows"),
    [
        ({"num_hidden_layers": 1}, "0"),
        ({"num_hidden_layers": 7}, "0,64,64"),
        ({"num_hidden_layers": 7, "global_attn_every_n_layers": 2, "local_attention": 2}, "0,1"),
        ({"num_hidden_layers": 4, "global_attn_every_n_layers": 1, "local_attention": 0}, "0"),
        ({"num_hidden_layers": 3, "layer_types": ["full_attention", "full_attention", "sliding_attention"]}, "0,0,64"),
        ({"num_hidden_layers": 2, "layer_types": None, "local_attention": 9}, "0,4"),
    ],
)
def test_windows_are_listed_without_repetitions(settings, windows):
    assert modern_bert_config(MODERN | settings).attention_windows == windows


TYPES = "config.json: layer_types must name full_attention or sliding_attention for 2 layers, got "


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "bert"}, "config.json: model_type 'bert'; --from modernbert reads models of type 'modernbert'"),
        ({"classifier_activation": "silu"}, "config.json: classifier_activation 'silu' differs from "
         "hidden_activation; one activation for layers and token head is built"),
        ({"classifier_activation": "relu"}, "config.json: classifier_activation 'relu'; 'gelu', its approximation "
         "'gelu_new' and 'silu' are built"),
        ({"mlp_bias": True}, "config.json: {'attention_bias': False, 'mlp_bias': True, 'classifier_bias': False}; "
         "biases of all linear maps or of none are built"),
        ({"decoder_bias": False}, "config.json: decoder_bias and tie_word_embeddings must be true; other softmaxes "
         "are not built"),
        ({"tie_word_embeddings": False}, "config.json: decoder_bias and tie_word_embeddings must be true; other "
         "softmaxes are not built"),
        ({"layer_types": ["full_attention"]}, f"{TYPES}['full_attention']"),
        ({"layer_types": ["full_attention", "x"]}, f"{TYPES}['full_attention', 'x']"),
        ({"layer_types": 3}, f"{TYPES}3"),
        ({"layer_types": [["full_attention"], []]}, f"{TYPES}[['full_attention'], []]"),
        ({"num_hidden_layers": 0}, "config.json: num_hidden_layers must be an integer of at least 1, got 0"),
        ({"num_hidden_layers": "2"}, "config.json: num_hidden_layers must be an integer of at least 1, got '2'"),
        ({"global_attn_every_n_layers": 0}, "config.json: global_attn_every_n_layers must be an integer of at least 1, "
         "got 0"),
        ({"local_attention": None}, "config.json: local_attention must be an integer of at least 0, got None"),
        ({"local_attention": -1}, "config.json: local_attention must be an integer of at least 0, got -1"),
        ({"local_attention": 1}, "config.json: local_attention must be at least 2, got 1"),
        ({"rope_parameters": {"sliding_attention": {"rope_type": "yarn"}}}, "config.json: rope_type 'yarn' of "
         "sliding_attention; only 'default' is built"),
        ({"rope_parameters": {"full_attention": {"rope_theta": None}}}, "config.json: rope_theta of full_attention "
         "must be a number, got null"),
        ({"global_rope_theta": None}, "config.json: global_rope_theta must be a number, got null"),
        ({"hidden_activation": "relu"}, "config.json: hidden_activation 'relu'; 'gelu', its approximation 'gelu_new' "
         "and 'silu' are built"),
    ],
)  # fmt: skip
def test_what_is_no_modern_bert_of_ours_is_refused(change, said):
    assert refusal(modern_bert_config, MODERN | change) == said


@pytest.mark.parametrize("name", MODERN)
def test_a_field_that_modern_bert_lacks_is_named(name):
    settings = {other: value for other, value in MODERN.items() if other != name}
    assert refusal(modern_bert_config, settings) == f"config.json: no {name}; is it a ModernBERT's?"


# RoBERTa

ROBERTA = transformers.RobertaConfig(
    vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
    max_position_embeddings=12, type_vocab_size=1,
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "bert"),
    [
        ("RobertaForMaskedLM", "BertForMaskedLM"),
        ("RobertaForSequenceClassification", "BertForSequenceClassification"),
        ("RobertaForTokenClassification", "BertForTokenClassification"),
        ("RobertaForQuestionAnswering", "BertForQuestionAnswering"),
        ("RobertaModel", None),
    ],
)
def test_robertas_parameters_have_berts_names_without_the_positions_of_padding(name, bert):
    with torch.device("meta"):
        theirs = getattr(transformers, name)(ROBERTA).state_dict()
        settings = ROBERTA.to_dict() | {"max_position_embeddings": 10}
        config = transformers.BertConfig(**{k: v for k, v in settings.items() if k != "model_type"})
        wanted = getattr(transformers, bert or "BertForMaskedLM")(config).state_dict()
    found, unused = as_bert({**theirs, "roberta.embeddings.position_ids": torch.ones(1)} if bert else theirs, {})
    assert unused == 2
    if bert is None:
        wanted = {one: value for one, value in wanted.items() if not one.startswith("cls.")}
        found = {one: value for one, value in found.items() if ".pooler." not in one}
    assert {one: value.shape for one, value in found.items() if "bert.pooler" not in one} == {
        one: value.shape for one, value in wanted.items() if "bert.pooler" not in one
    }
    pooled = name == "RobertaForSequenceClassification"
    assert sum(one.startswith("bert.pooler.dense.") for one in found) == 2 * pooled


def test_robertas_positions_begin_behind_padding():
    positions, types = torch.arange(12.0).view(6, 2), torch.ones(1, 2)
    state = {"embeddings.position_embeddings.weight": positions, "embeddings.token_type_embeddings.weight": types}
    for settings, unused in (({}, 2), ({"pad_token_id": 0}, 1), ({"pad_token_id": 3}, 4)):
        found, left_out = as_bert(state, settings)
        assert left_out == unused
        assert torch.equal(found["bert.embeddings.position_embeddings.weight"], positions[unused:])
        assert torch.equal(found["bert.embeddings.token_type_embeddings.weight"], types)
    for name in state:
        said = "not the parameters of a RoBERTa: it has no position or token-type embeddings"
        assert refusal(as_bert, {other: value for other, value in state.items() if other != name}, {}) == said


def test_robertas_settings_in_berts_words():
    settings = {"max_position_embeddings": 12, "type_vocab_size": 1, "x": 5}
    wanted = {"max_position_embeddings": 10, "type_vocab_size": 1, "x": 5, "model_type": "bert"}
    assert roberta_settings(settings) == wanted
    assert roberta_settings(settings | {"pad_token_id": 0, "type_vocab_size": 4}) == wanted | {
        "max_position_embeddings": 11, "type_vocab_size": 4, "pad_token_id": 0,
    }  # fmt: skip
    said = "config.json: no type_vocab_size; is it a RoBERTa's?"
    assert refusal(roberta_settings, {"max_position_embeddings": 12}) == said
