"""Names of parameters of BERT, XLNet and ModernBERT against the classes of transformers themselves."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from unified.conversions import bert_names, modern_bert_names, xlnet_names
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel

#: Named here, as transformers imports a class where it is first named.
CLASSES = {
    name: getattr(transformers, name)
    for name in (
        "BertForPreTraining", "BertForMaskedLM", "BertModel", "XLNetLMHeadModel", "XLNetModel",
        "ModernBertForMaskedLM", "ModernBertModel",
    )
}  # fmt: skip
LAYERS, WIDTH = 2, 8
BERT = transformers.BertConfig(
    vocab_size=11, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=2, intermediate_size=12,
    max_position_embeddings=10,
)  # fmt: skip
XLNET = transformers.XLNetConfig(vocab_size=11, d_model=WIDTH, n_layer=LAYERS, n_head=2, d_inner=12)
MODERN = transformers.ModernBertConfig(
    vocab_size=11, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=2, intermediate_size=12,
    pad_token_id=1, bos_token_id=0, cls_token_id=0, eos_token_id=2, sep_token_id=2,
)  # fmt: skip
OURS = TransformerConfig(
    11, layers=LAYERS, width=WIDTH, heads=2, feed_forward=12, max_positions=10, token_types=2, boundary_offsets=3
)
ROTARY = TransformerConfig(
    11, layers=LAYERS, width=WIDTH, heads=2, feed_forward=12, positions="rotary", gated=True, norm="pre",
    norm_type="layer_without_bias", embedding_norm=True, linear_without_bias=True, token_types=0,
)  # fmt: skip
RELATIVE = TransformerConfig(
    11, layers=LAYERS, width=WIDTH, heads=2, feed_forward=12, positions="relative", token_head="plain"
)


def state_of(name: str, config) -> dict[str, torch.Tensor]:
    """Names and shapes of a class of transformers, every parameter at random, copies of the embeddings as they are."""
    torch.manual_seed(0)
    model = CLASSES[name](config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def ours(config: TransformerConfig, *heads: str) -> dict[str, torch.Tensor]:
    """Random parameters of a model of ours, of the Transformer and of some of its heads."""
    torch.manual_seed(1)
    state = UnifiedModel.for_language(config).state_dict()
    wanted = ("transformer.", *(f"heads.{head}." for head in heads))
    return {n: torch.randn(v.shape) for n, v in state.items() if n.startswith(wanted) and not n.endswith(".scored")}


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


# BERT


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("BertForPreTraining", ("token", "next_sentence")),
        ("BertForMaskedLM", ("token",)),
        ("BertModel", ("next_sentence.pooler",)),
    ],
)
def test_berts_classes_have_the_names_that_are_written_and_read(name, heads):
    theirs = state_of(name, BERT)
    found, new = bert_names.from_bert(theirs, LAYERS)
    wanted = ours(OURS, "token", "next_sentence")
    assert found.keys() == wanted.keys() - set(new) == ours(OURS, *heads).keys()
    assert all(found[one].shape == wanted[one].shape for one in found)
    architecture, back, left_out = bert_names.to_bert(found, LAYERS)
    assert architecture == name and left_out == [] and same(back, theirs)
    assert all(value.is_contiguous() for value in back.values())


def test_queries_keys_and_values_are_joint_and_classes_the_other_way_round():
    theirs = state_of("BertForPreTraining", BERT)
    found, _ = bert_names.from_bert(theirs, LAYERS)
    for part in ("weight", "bias"):
        own = "bert.encoder.layer.1.attention.self."
        joint = torch.cat([theirs[f"{own}{one}.{part}"] for one in ("query", "key", "value")])
        assert torch.equal(found[f"transformer.layers.1.attention.sublayer.query_key_value.{part}"], joint)
        turned = theirs[f"cls.seq_relationship.{part}"][[1, 0]]
        assert torch.equal(found[f"heads.next_sentence.classifier.{part}"], turned)


def test_parameters_that_bert_has_not_are_left_out_by_name():
    state = ours(OURS, "token", "next_sentence", "boundary")
    architecture, found, left_out = bert_names.to_bert(state, LAYERS)
    assert architecture == "BertForPreTraining"
    assert left_out == [name for name in state if name.startswith("heads.boundary.")] and len(left_out) == 10
    assert found.keys() == state_of("BertForPreTraining", BERT).keys()
    pooler = {name: value for name, value in state.items() if "classifier" not in name and "boundary" not in name}
    architecture, found, left_out = bert_names.to_bert(pooler, LAYERS)
    assert architecture == "BertForMaskedLM" and found.keys() == state_of("BertForMaskedLM", BERT).keys()
    assert left_out == ["heads.next_sentence.pooler.weight", "heads.next_sentence.pooler.bias"]
    encoder = {name: value for name, value in state.items() if not name.startswith(("heads.token", "heads.boundary"))}
    architecture, found, left_out = bert_names.to_bert(encoder, LAYERS)
    assert architecture == "BertModel" and found.keys() == state_of("BertModel", BERT).keys()
    assert left_out == ["heads.next_sentence.classifier.weight", "heads.next_sentence.classifier.bias"]


def test_older_spellings_of_layer_norm_and_a_missing_prefix_are_read():
    theirs = state_of("BertForPreTraining", BERT)
    older = {
        re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", name)): value
        for name, value in theirs.items()
    }
    older = {name.removeprefix("bert."): value for name, value in older.items()}
    older["embeddings.position_ids"] = torch.arange(10)[None]
    assert sum(name.endswith(("gamma", "beta")) for name in older) == 2 * (2 + 2 * LAYERS)
    assert same(bert_names.from_bert(older, LAYERS)[0], bert_names.from_bert(theirs, LAYERS)[0])


@pytest.mark.parametrize(
    "copy", ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"],
)  # fmt: skip
def test_the_softmax_must_be_tied_to_the_embeddings(copy):
    theirs = state_of("BertForPreTraining", BERT)
    theirs[copy] = theirs[copy] + 1
    assert "the softmax must be tied to the embeddings" in refusal(bert_names.from_bert, theirs, LAYERS)


def test_spanberts_boundary_head_is_read_and_its_copy_compared():
    state = ours(OURS, "token", "next_sentence", "boundary")
    pairs = bert_names.names(LAYERS, boundary=True)
    theirs = bert_names.to_bert(state, LAYERS)[1]
    head = {theirs_: state[mine] for mine, (theirs_, *_) in pairs.items() if mine.startswith("heads.boundary.")}
    prefix = "cls.pair_target_predictions."
    assert head.keys() == {
        f"{prefix}{name}"
        for name in ("position_embeddings.weight", "bias", *(
            f"mlp_layer_norm.{module}{i}.{part}" for module in ("linear", "layer_norm") for i in (1, 2)
            for part in ("weight", "bias")
        ))
    }  # fmt: skip
    theirs |= head | {f"{prefix}decoder.weight": theirs["bert.embeddings.word_embeddings.weight"]}
    named = {f"decoder.{name}": value for name, value in theirs.items()}
    found, new = bert_names.from_bert(named, LAYERS)
    assert new == [] and same(found, state)
    named[f"decoder.{prefix}decoder.weight"] = torch.zeros(11, WIDTH)
    assert "differs from bert.embeddings.word_embeddings.weight" in refusal(bert_names.from_bert, named, LAYERS)


def test_unilms_joint_projections_are_read_and_keys_get_no_bias():
    theirs = state_of("BertForMaskedLM", BERT)
    joint = dict(theirs)
    for i in range(LAYERS):
        own = f"bert.encoder.layer.{i}.attention.self."
        joint[f"{own}qkv_linear.weight"] = torch.cat(
            [joint.pop(f"{own}{one}.weight") for one in ("query", "key", "value")]
        )
        for one in ("query", "value"):
            joint[f"{own}{one[0]}_bias"] = joint.pop(f"{own}{one}.bias")[None, None]
        joint.pop(f"{own}key.bias")
        theirs[f"{own}key.bias"] = torch.zeros(WIDTH)
    assert same(bert_names.from_bert(joint, LAYERS)[0], bert_names.from_bert(theirs, LAYERS)[0])
    del joint["bert.encoder.layer.0.attention.self.v_bias"]
    wanted = "not the parameters of a BERT of 2 layers: missing: bert.encoder.layer.0.attention.self.value.bias"
    assert refusal(bert_names.from_bert, joint, LAYERS) == wanted


def test_tensorflows_variables_get_the_names_of_pytorch():
    value = np.arange(6, dtype="<f8").reshape(2, 3)
    variables = {
        "bert/embeddings/word_embeddings": value,
        "bert/encoder/layer_11/attention/self/query/kernel": value,
        "bert/encoder/layer_0/output/LayerNorm/gamma": value,
        "cls/predictions/output_bias": value[0],
        "cls/seq_relationship/output_weights": value,
        "cls/squad/output_weights": value,
        "cls/squad/output_bias": value,
        "output_weights": value,
        "output_bias": value,
        "x/output_weights": value,
        "embeddings_x/kernel_y": value,
    }
    found, heads = bert_names.from_tensorflow(variables)
    assert heads == ["cls/squad/output_weights", "cls/squad/output_bias", "output_weights", "output_bias"]
    assert {name: tuple(one.shape) for name, one in found.items()} == {
        "bert.embeddings.word_embeddings.weight": (2, 3),
        "bert.encoder.layer.11.attention.self.query.weight": (3, 2),
        "bert.encoder.layer.0.output.LayerNorm.gamma": (2, 3),
        "cls.predictions.bias": (3,),
        "cls.seq_relationship.weight": (2, 3),
        "x.weight": (2, 3),
        "embeddings_x.kernel_y": (2, 3),
    }
    assert {one.dtype for one in found.values()} == {torch.float32}
    assert found["bert.encoder.layer.11.attention.self.query.weight"].tolist() == value.T.tolist()


# XLNet


@pytest.mark.parametrize("name", ["XLNetLMHeadModel", "XLNetModel"])
def test_xlnets_classes_have_the_names_that_are_written_and_read(name):
    theirs = state_of(name, XLNET)
    found, new = xlnet_names.from_xlnet(theirs, LAYERS)
    wanted = ours(RELATIVE, "token")
    assert new == ([] if name == "XLNetLMHeadModel" else ["heads.token.bias"])
    assert found.keys() == wanted.keys() - set(new)
    assert all(found[one].shape == wanted[one].shape for one in found)
    architecture, back, left_out = xlnet_names.to_xlnet({**found, "heads.other.x": torch.ones(1)}, LAYERS)
    assert architecture == name and left_out == ["heads.other.x"] and same(back, theirs)
    assert all(value.is_contiguous() for value in back.values())


def test_xlnets_projections_are_applied_as_it_applies_them():
    theirs = state_of("XLNetLMHeadModel", XLNET)
    found, _ = xlnet_names.from_xlnet(theirs, LAYERS)
    x, own = torch.randn(5, WIDTH), "transformer.layer.1.rel_attn."
    sublayer = "transformer.layers.1.attention.sublayer."
    for letter, weight in zip("qkv", found[f"{sublayer}query_key_value.weight"].chunk(3), strict=True):
        product = torch.einsum("ih,hnd->ind", x, theirs[own + letter])
        torch.testing.assert_close((x @ weight.T).view(5, 2, 4), product)
    distances = torch.einsum("ih,hnd->ind", x, theirs[f"{own}r"]).flatten(1)
    torch.testing.assert_close(x @ found[f"{sublayer}distances.weight"].T, distances)
    output = torch.einsum("ind,hnd->ih", x.view(5, 2, 4), theirs[f"{own}o"])
    torch.testing.assert_close(x @ found[f"{sublayer}output.weight"].T, output)
    for mine, other in (("content_bias", "r_w_bias"), ("distance_bias", "r_r_bias"), ("segment_bias", "r_s_bias"),
                        ("segments", "seg_embed")):  # fmt: skip
        assert torch.equal(found[sublayer + mine], theirs[own + other])


def test_xlnets_problems_are_listed():
    theirs = state_of("XLNetLMHeadModel", XLNET)
    state = {**theirs, "x": torch.ones(1)}
    del state["transformer.layer.1.ff.layer_1.bias"], state["lm_loss.bias"]
    wanted = "not the parameters of an XLNet of 2 layers: unknown: x; missing: transformer.layer.1.ff.layer_1.bias"
    assert refusal(xlnet_names.from_xlnet, state, LAYERS) == wanted
    beginning, unknown, missing = re.split("(?=unknown)|; (?=missing)", wanted)
    assert refusal(xlnet_names.from_xlnet, {**theirs, "x": torch.ones(1)}, LAYERS) == beginning + unknown
    del state["x"]
    assert refusal(xlnet_names.from_xlnet, state, LAYERS) == beginning + missing
    state = {**theirs, "lm_loss.weight": torch.zeros(11, WIDTH)}
    wanted = "lm_loss.weight differs from transformer.word_embedding.weight; the softmax must be tied to the embeddings"
    assert refusal(xlnet_names.from_xlnet, state, LAYERS) == wanted


@pytest.mark.parametrize("tied", [True, False])
def test_tensorflows_xlnet_has_vectors_of_all_layers_in_one_variable(tied):
    theirs = state_of("XLNetLMHeadModel", XLNET)
    vectors = ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed")
    if tied:
        for name in vectors:
            theirs[f"transformer.layer.1.rel_attn.{name}"] = theirs[f"transformer.layer.0.rel_attn.{name}"]
    variables = {
        "model/transformer/word_embedding/lookup_table": theirs["transformer.word_embedding.weight"],
        "model/transformer/mask_emb/mask_emb": theirs["transformer.mask_emb"],
        "model/lm_loss/bias": theirs["lm_loss.bias"],
    }
    for name in vectors:
        own = [theirs[f"transformer.layer.{i}.rel_attn.{name}"] for i in range(LAYERS)]
        variables[f"model/transformer/{name}"] = own[0] if tied else torch.stack(own)
    for i in range(LAYERS):
        layer, own = f"model/transformer/layer_{i}/", f"transformer.layer.{i}."
        variables |= {f"{layer}rel_attn/{one}/kernel": theirs[f"{own}rel_attn.{one}"] for one in "qkvro"}
        for module, other in (("rel_attn", "rel_attn.layer_norm"), ("ff", "ff.layer_norm")):
            variables[f"{layer}{module}/LayerNorm/gamma"] = theirs[f"{own}{other}.weight"]
            variables[f"{layer}{module}/LayerNorm/beta"] = theirs[f"{own}{other}.bias"]
        for module in ("layer_1", "layer_2"):
            variables[f"{layer}ff/{module}/kernel"] = theirs[f"{own}ff.{module}.weight"].T
            variables[f"{layer}ff/{module}/bias"] = theirs[f"{own}ff.{module}.bias"]
    heads = ["end_logits/x", "model/classification_a/b", "model/regression_a/b", "model/sequnece_summary/x",
             "start_logits/x"]  # fmt: skip
    arrays = {name: value.numpy() for name, value in variables.items()}
    arrays |= {name: np.ones(1) for name in reversed(heads)}
    found, left_out = xlnet_names.from_tensorflow(arrays, LAYERS)
    assert left_out == heads
    assert same(found, {name: value for name, value in theirs.items() if name != "lm_loss.weight"})
    arrays |= {"z": np.ones(1), "model/transformer/layer_0/y": np.ones(1)}
    wanted = "not the variables of an XLNet: unknown: model/transformer/layer_0/y; z"
    assert refusal(xlnet_names.from_tensorflow, arrays, LAYERS) == wanted


# ModernBERT


@pytest.mark.parametrize("name", ["ModernBertForMaskedLM", "ModernBertModel"])
@pytest.mark.parametrize("biases", [False, True])
def test_modern_berts_classes_have_the_names_that_are_written_and_read(name, biases):
    changes = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), biases)
    theirs = state_of(name, transformers.ModernBertConfig(**{**MODERN.to_dict(), **changes}))
    config = replace(ROTARY, norm_type="layer", linear_without_bias=False) if biases else ROTARY
    found, new = modern_bert_names.from_modern_bert(theirs, config)
    wanted = ours(config, "token")
    assert found.keys() == wanted.keys() - {modern_bert_names.QUERY} - set(new)
    assert all(found[one].shape == wanted[one].shape for one in found)
    tokens = {one for one in wanted if one.startswith("heads.token.")}
    assert set(new) == (set() if name == "ModernBertForMaskedLM" else tokens)
    architecture, back, left_out = modern_bert_names.to_modern_bert({**found, "x": torch.ones(1)}, config)
    assert architecture == name and left_out == ["x"]
    assert same(back, {one: value for one, value in theirs.items() if one != "decoder.weight"})


def test_modern_berts_softmax_must_be_tied_and_its_parameters_known():
    theirs = state_of("ModernBertForMaskedLM", MODERN)
    state = theirs | {"decoder.weight": torch.zeros(11, WIDTH)}
    said = (
        "decoder.weight differs from model.embeddings.tok_embeddings.weight; the softmax must be tied to the embeddings"
    )
    assert refusal(modern_bert_names.from_modern_bert, state, ROTARY) == said
    said = "not the parameters of a ModernBERT of 2 layers: unknown: x"
    assert refusal(modern_bert_names.from_modern_bert, theirs | {"x": torch.ones(1)}, ROTARY) == said
