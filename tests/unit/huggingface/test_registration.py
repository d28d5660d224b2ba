"""The attention is known to transformers, and a model that has chosen it looks whether its layers have met the mask."""

from __future__ import annotations

import pytest
import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask

from unified import masks
from unified.errors import UnifiedError
from unified.huggingface import NAME, unified_attention

#: Named here, as transformers imports a class where it is first named.
MODEL, CONFIG = transformers.BertForMaskedLM, transformers.BertConfig
SHAPE = {
    "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
    "max_position_embeddings": 10, "initializer_range": 0.5,
}  # fmt: skip
IDS, MASK = torch.tensor([[5, 6, 7, 8]]), masks.left_to_right(4)
CROSS = "{} cannot take the attention 'unified': it has cross-attention, whose keys are of another text than the mask's"
OTHER = (
    "{} has the attention 'sdpa', which does not know unified_mask; call set_attn_implementation('unified') first, "
    "also on a model that was loaded"
)


def bert(**changes):
    torch.manual_seed(0)
    return MODEL(CONFIG(**SHAPE, **changes)).eval()


def test_the_import_of_the_package_registers_the_attention():
    assert NAME == "unified"
    assert AttentionInterface()[NAME] is unified_attention and AttentionMaskInterface()[NAME] is sdpa_mask


def test_both_ways_to_choose_an_attention_are_checked():
    for method in ("set_attn_implementation", "get_correct_attn_implementation"):
        wrapped = vars(PreTrainedModel)[method]
        assert wrapped.__name__ == method and wrapped.__wrapped__.__name__ == method


@pytest.mark.parametrize("how", ["set", "set by name", "from the configuration"])
@torch.no_grad()
def test_a_model_that_has_chosen_it_attends_under_the_mask(how):
    model = bert() if how != "from the configuration" else None
    if how == "set":
        model.set_attn_implementation(NAME)
    elif how == "set by name":
        model.set_attn_implementation(attn_implementation=NAME)
    else:
        torch.manual_seed(0)
        model = MODEL._from_config(CONFIG(**SHAPE), attn_implementation=NAME).eval()
    assert model.config._attn_implementation == NAME
    plain = bert()
    wanted = plain(IDS, attention_mask=MASK.dense().view(1, 1, 4, 4)).logits
    torch.testing.assert_close(model(IDS, unified_mask=MASK).logits, wanted, atol=1e-5, rtol=1e-5)
    padding = torch.tensor([[1, 1, 1, 0]])
    torch.testing.assert_close(model(IDS, padding).logits, plain(IDS, padding).logits, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_model_whose_layers_have_not_met_the_mask_is_refused_also_behind_one_that_has():
    model = bert()
    model.set_attn_implementation(NAME)
    model(IDS, unified_mask=MASK)
    model.set_attn_implementation("sdpa")
    for call in (model, model.bert):
        with pytest.raises(UnifiedError) as raised:
            call(IDS, unified_mask=MASK)
        assert str(raised.value) == OTHER.format("BertModel")
    model(IDS)


def test_a_model_that_cannot_take_the_mask_is_refused_both_ways():
    more = {"is_decoder": True, "add_cross_attention": True}
    model = bert(**more)
    for call in (
        lambda: model.set_attn_implementation(NAME), lambda: model.set_attn_implementation(attn_implementation=NAME),
        lambda: model.set_attn_implementation({"": NAME}),
        lambda: model.set_attn_implementation({"x": NAME, "": "eager"}),
        lambda: MODEL._from_config(CONFIG(**SHAPE, **more), attn_implementation=NAME),
    ):  # fmt: skip
        with pytest.raises(UnifiedError) as raised:
            call()
        assert str(raised.value) == CROSS.format("BertForMaskedLM")
    assert model.config._attn_implementation == "sdpa"
    model.set_attn_implementation("eager")
    with pytest.raises(UnifiedError, match="^BertModel cannot take unified_mask: it has cross-attention"):
        model(IDS, unified_mask=MASK)  # no advice to choose what would be refused


def test_what_a_method_gives_is_given():
    model = bert()
    assert model.get_correct_attn_implementation("eager", is_init_check=True) == "eager"
    assert model.get_correct_attn_implementation(requested_attention=NAME) == NAME
