"""The exported classes for transformers: initial weights, what forward reads and gives, losses and refusals."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput

from unified.conversions.modeling import modeling_unified
from unified.conversions.modeling.configuration_unified import UnifiedConfig
from unified.conversions.modeling.modeling_unified import (
    UnifiedForMaskedLM,
    UnifiedForMultipleChoice,
    UnifiedModel,
)

SHAPE = {
    "vocabulary_size": 13, "layers": 2, "width": 8, "heads": 2, "feed_forward": 12, "max_positions": 24,
    "initializer_range": 0.5, "dropout": 0.25, "attention_dropout": 0.125, "inner_dropout": 0.375,
}  # fmt: skip
IDS = torch.tensor([[5, 6, 7, 8, 9], [10, 11, 12, 5, 6]])
REAL = torch.tensor([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 0], [0, 0, 0, 1, 1]])


def config(**changes) -> UnifiedConfig:
    return UnifiedConfig(**{**SHAPE, **changes})


def made(kind=UnifiedModel, **changes):
    torch.manual_seed(6)
    return kind(config(**changes)).eval()


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


# Initial weights


@pytest.mark.parametrize(
    "changes",
    [
        {"sublayers": "neighbor,relative_key,relative_value,entity,feed_forward"}, {"positions": "relative"},
        {"positions": "rotary", "norm_type": "rms"}, {"linear_without_bias": True, "norm_type": "layer_without_bias"},
    ],
)  # fmt: skip
@torch.no_grad()
def test_initial_weights_are_normal_biases_zero_and_norms_one(changes):
    heads = ["token", "next_sentence", "boundary", "extractive"]
    wide = {"width": 64, "feed_forward": 64, "vocabulary_size": 300, "boundary_offsets": 9, "max_positions": 300}
    model = made(UnifiedForMaskedLM, **{**wide, "prediction_heads": heads, "norm": "pre", **changes})
    scored = [module for module in model.modules() if "scored" in dict(module.named_buffers(recurse=False))]
    for module in model.modules():
        for parameter in [*module.parameters(recurse=False)]:
            parameter.data.fill_(7.0)
    scored[0].scored.fill_(7.0)
    for module in model.modules():
        model._init_weights(module)
    assert len(scored) == 1 and scored[0].scored.tolist() == [1.0] * 300
    norms = {name for name, module in model.named_modules() if isinstance(module, nn.LayerNorm | nn.RMSNorm)}
    drawn = []
    for name, value in model.named_parameters():
        module, _, kind = name.rpartition(".")
        if module in norms and kind == "weight":
            assert (value == 1).all(), name
        elif kind == "bias":
            assert (value == 0).all(), name
        else:
            assert value.std() == pytest.approx(0.5, rel=6 / math.sqrt(2 * value.numel())), name
            assert abs(value.mean()) < 6 * 0.5 / math.sqrt(value.numel()), name
            drawn.append(kind)
    own = {"content_bias", "distance_bias", "segment_bias", "segments"} if "relative" in changes.values() else set()
    own |= {"query"} if "positions" in changes else set()
    assert set(drawn) == {"weight"} | own


@pytest.mark.parametrize("kind", [UnifiedModel, UnifiedForMaskedLM, UnifiedForMultipleChoice])
@torch.no_grad()
def test_a_new_model_has_such_weights_at_once(kind):
    model = made(kind, width=64, task_head="mine")
    weight = model.get_input_embeddings().weight
    assert weight.std() == pytest.approx(0.5, rel=0.1) and weight.shape == (13, 64)
    for linear in (module for module in model.modules() if isinstance(module, nn.Linear)):
        rel = 6 / math.sqrt(2 * linear.weight.numel())
        assert linear.weight.std() == pytest.approx(0.5, rel=rel) and not linear.bias.any()


def test_the_vocabulary_is_not_changed_here():
    with pytest.raises(NotImplementedError) as raised:
        made().resize_token_embeddings(20)
    assert str(raised.value) == "the vocabulary is changed by `unified convert --vocabulary DATA MODEL OUT`"


def test_what_transformers_asks_of_a_class():
    assert UnifiedForMaskedLM.config_class is UnifiedConfig and UnifiedForMaskedLM.main_input_name == "input_ids"
    model = made(UnifiedForMaskedLM)
    assert model.base_model is model.transformer and model.transformer.embeddings.tokens is model.get_input_embeddings()
    assert set(modeling_unified.__all__) == {"Hypothesis", "Reader", "Search", "UnifiedForMaskedLM", "UnifiedModel"}


@pytest.mark.parametrize(("positions", "behind"), [("learned", 0.0), ("rotary", 0.0), ("relative", 0.25)])
@torch.no_grad()
def test_the_last_states_are_normalized_and_dropped_where_that_is_usual(positions, behind):
    post, pre = made(positions=positions), made(positions=positions, norm="pre")
    assert isinstance(post.norm, nn.Identity) and isinstance(pre.norm, nn.LayerNorm)
    assert post.dropout.p == behind
    pre.norm.bias.data.fill_(3.0)
    assert pre(IDS).last_hidden_state.mean() == pytest.approx(3.0, abs=1e-5)
    assert len(post.layers) == 2
    post.dropout.p = 1.0
    post.dropout.train()
    assert not post(IDS).last_hidden_state.any()


def test_the_transformer_alone_reads_a_folder_with_heads_without_a_report(tmp_path):
    made(UnifiedForMaskedLM, prediction_heads=["token", "next_sentence"]).save_pretrained(tmp_path)
    _, report = UnifiedModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["unexpected_keys"] and not report["missing_keys"]


# What is read


@pytest.mark.parametrize("mask", ["bidirectional", "left_to_right", "right_to_left", "seq2seq"])
@pytest.mark.parametrize("positions", ["learned", "relative"])
@torch.no_grad()
def test_padding_on_either_side_changes_nothing(mask, positions):
    model = made(mask=mask, positions=positions)
    states = model(IDS, REAL, SEGMENTS).last_hidden_state
    for row, own in enumerate(REAL.bool()):
        alone = model(IDS[row, own][None], None, SEGMENTS[row, own][None]).last_hidden_state
        close(states[row, own], alone[0])


@torch.no_grad()
def test_a_text_has_the_mask_positions_and_types_of_training_and_a_given_mask_those_that_are_given():
    model = made(mask="seq2seq")
    by_itself = model(IDS[:1], None, SEGMENTS[:1]).last_hidden_state
    visible = torch.tensor([[[1, 1, 0, 0, 1], [1, 1, 0, 0, 1], [1, 1, 1, 0, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]])
    visible[0, :, 4] = torch.tensor([0, 0, 0, 0, 1])  # the second text begins in front of it
    asked = {"attention_mask": visible, "token_type_ids": SEGMENTS[:1] + 4, "position_ids": torch.arange(5)[None]}
    close(model(IDS[:1], **asked).last_hidden_state, by_itself)
    assert not torch.allclose(model(IDS[:1], visible).last_hidden_state, by_itself, atol=1e-3)
    steps = {"query_step": torch.tensor([1, 1, 2, 3, 4]), "key_start": torch.tensor([1, 1, 2, 3, 4]),
             "key_stop": torch.full((5,), 9)}  # fmt: skip
    more = {"token_type_ids": SEGMENTS[:1] + 4, "position_ids": torch.arange(5)}
    close(model(IDS[:1], **steps, **more).last_hidden_state, by_itself)
    both = {name: value.expand(2, -1) for name, value in (more | steps).items()}
    given = model(IDS, REAL, **both).last_hidden_state
    dense = (visible.bool() & REAL.bool().unsqueeze(1)).expand(2, -1, -1)
    close(given, model(IDS, dense, both["token_type_ids"], both["position_ids"]).last_hidden_state)


@torch.no_grad()
def test_without_positions_tokens_are_counted_and_types_are_the_first():
    model, visible = made(sublayers="neighbor,self,feed_forward"), torch.ones(1, 5, 5)
    wanted = model(IDS[:1], visible, torch.zeros(1, 5).long(), torch.arange(5)[None]).last_hidden_state
    close(model(IDS[:1], visible).last_hidden_state, wanted)
    close(model(IDS[:1]).last_hidden_state, wanted)
    gap = torch.tensor([[1, 0, 1, 1, 1]])
    counted = model(IDS[:1], gap).last_hidden_state
    seen = gap.bool().unsqueeze(1) & gap.bool().unsqueeze(2)
    close(counted, model(IDS[:1], seen, None, torch.tensor([[0, 0, 1, 2, 3]])).last_hidden_state)


@pytest.mark.parametrize("changes", [{"sublayers": "neighbor,self,feed_forward"}, {"positions": "rotary"}])
def test_everything_is_made_where_the_model_is(changes):
    model = made(**changes).to("meta")
    assert model(IDS.to("meta"), REAL.to("meta")).last_hidden_state.device == torch.device("meta")


@torch.no_grad()
def test_one_way_hides_what_follows_whatever_the_mask():
    model, eye = made(positions="relative", attn_type="uni"), torch.ones(2, 5, 5).bool()
    other = made(positions="relative")
    other.load_state_dict(model.state_dict())
    close(model(IDS, eye).last_hidden_state, other(IDS, eye.tril()).last_hidden_state)
    positions = torch.tensor([[0, 1, 2, 3, 4, 1, 3]] * 2)
    seen = torch.cat([eye.tril(), eye.tril()[:, [1, 3]]], dim=1)
    wanted = other(IDS, seen, None, positions).last_hidden_state
    close(model(IDS, torch.ones(2, 7, 5).bool(), None, positions).last_hidden_state, wanted)


@torch.no_grad()
def test_a_query_stream_reads_tokens_and_changes_none_where_no_token_sees_itself():
    model, everything = made(positions="rotary", sublayers="neighbor,feed_forward"), torch.ones(2, 7, 5).bool()
    positions = torch.tensor([[0, 1, 2, 3, 4, 1, 3]] * 2)
    states = model(IDS, everything, None, positions).last_hidden_state
    assert states.shape[:2] == (2, 7)
    close(states[:, :5], model(IDS, everything[:, :5]).last_hidden_state)


def test_masks_that_are_none_are_refused():
    model, steps = made(), {"query_step": torch.ones(5), "key_start": torch.ones(5), "key_stop": torch.ones(5)}
    said = "^a mask is query_step, key_start and key_stop, or a boolean attention_mask .B, Q, T.$"
    for names in (("query_step",), ("query_step", "key_stop"), ("key_start",)):
        with pytest.raises(ValueError, match=said):
            model(IDS, **{name: steps[name] for name in names})
    with pytest.raises(ValueError, match=said):
        model(IDS, torch.ones(2, 5, 5), **steps)
    with pytest.raises(ValueError, match=r"^the mask must be .rows, queries, tokens. \(2, 5, 5\), got \(1, 5, 5\)$"):
        model(IDS, torch.ones(1, 5, 5))


@torch.no_grad()
def test_states_are_given_layer_by_layer_where_they_are_asked_for():
    model = made()
    plain, more = model(IDS), model(IDS, output_hidden_states=True)
    assert isinstance(plain, BaseModelOutput) and plain.hidden_states is None
    first = model.embeddings(IDS, torch.arange(5).expand(2, -1), torch.zeros(2, 5).long())
    assert len(more.hidden_states) == 3 and torch.equal(more.hidden_states[0], first)
    assert torch.equal(more.hidden_states[-1], plain.last_hidden_state)
    pair = model(IDS, output_hidden_states=True, return_dict=False)
    assert type(pair) is tuple and torch.equal(pair[0], plain.last_hidden_state) and len(pair[1]) == 3
    assert len(model(IDS, return_dict=False)) == 1


@torch.no_grad()
def test_a_language_model_scores_symbols_and_has_the_loss_of_its_labels():
    model = made(UnifiedForMaskedLM)
    labels = torch.tensor([[1, -100, 12, 3, -100], [0, 4, -100, -100, -100]])
    found, plain = model(IDS, labels=labels, output_hidden_states=True), model(IDS)
    states = model.transformer(IDS).last_hidden_state
    close(plain.logits, model.heads["token"](states, model.transformer.embeddings.tokens))
    assert isinstance(plain, MaskedLMOutput) and plain.loss is None and plain.hidden_states is None
    log_probs = plain.logits.log_softmax(-1)
    asked = [log_probs[b, i, one] for b, row in enumerate(labels) for i, one in enumerate(row) if one != -100]
    close(found.loss, -sum(asked) / 5)
    assert len(found.hidden_states) == 3 and torch.equal(found.logits, plain.logits)
    loss, logits = model(IDS, labels=labels, return_dict=False)
    assert torch.equal(loss, found.loss) and torch.equal(logits, found.logits)
