"""Tiny random models of ``transformers`` whose bodies are today's, and the settings of ours that stand for them."""

from __future__ import annotations

import torch

from unified.model import TransformerConfig

LAYERS, WIDTH, HEADS, INNER, VOCABULARY = 4, 32, 4, 24, 40
_SHAPE = {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "feed_forward": INNER, "vocabulary_size": VOCABULARY}
_BODY = {
    "positions": "rotary",
    "gated": True,
    "linear_without_bias": True,
    "norm": "pre",
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "token_types": 0,
}
#: ModernBERT with every third layer global and two neighbours on each side in the others.
MODERN_BERT = TransformerConfig(
    **_SHAPE,
    **_BODY,
    norm_type="layer_without_bias",
    norm_epsilon=1e-5,
    embedding_norm=True,
    rotary_theta=160000.0,
    local_rotary_theta=10000.0,
    attention_windows="0,2,2",
)
LLAMA = TransformerConfig(
    **_SHAPE, **_BODY, norm_type="rms", norm_epsilon=1e-6, activation="silu", token_head="plain", mask="left_to_right"
)


def modern_bert(**changes):
    """``ModernBertForMaskedLM`` with wide random weights, so that a wrong term shows."""
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    settings = dict(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, local_attention=4, global_attn_every_n_layers=3, max_position_embeddings=64,
        pad_token_id=1, bos_token_id=0, cls_token_id=0, eos_token_id=2, sep_token_id=2,
    )  # fmt: skip
    return _drawn(ModernBertForMaskedLM(ModernBertConfig(**{**settings, **changes})))


def llama():
    """``LlamaForCausalLM`` without grouped queries, its embeddings tied."""
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = dict(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=64, tie_word_embeddings=True, rms_norm_eps=1e-6,
        pad_token_id=1, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    return _drawn(LlamaForCausalLM(LlamaConfig(**settings)))


def _drawn(model):
    torch.manual_seed(0)
    for parameter in model.parameters():
        parameter.data.normal_(std=0.3).add_(1.0 if parameter.dim() == 1 else 0.0)
    return model.eval()


def of_modern_bert(model) -> dict[str, torch.nn.Parameter]:
    """Our name -> the parameter of ``ModernBertForMaskedLM`` that it stands for."""
    named = dict(model.named_parameters())
    pairs = {
        "transformer.embeddings.tokens.weight": "model.embeddings.tok_embeddings.weight",
        "transformer.embeddings.norm.weight": "model.embeddings.norm.weight",
        "transformer.norm.weight": "model.final_norm.weight",
        "heads.token.dense.weight": "head.dense.weight",
        "heads.token.norm.weight": "head.norm.weight",
        "heads.token.bias": "decoder.bias",
    }
    for layer in range(model.config.num_hidden_layers):
        own, their = f"transformer.layers.{layer}", f"model.layers.{layer}"
        pairs |= {
            f"{own}.attention.norm.weight": f"{their}.attn_norm.weight",
            f"{own}.attention.sublayer.query_key_value.weight": f"{their}.attn.Wqkv.weight",
            f"{own}.attention.sublayer.output.weight": f"{their}.attn.Wo.weight",
            f"{own}.feed_forward.norm.weight": f"{their}.mlp_norm.weight",
            f"{own}.feed_forward.sublayer.inner.weight": f"{their}.mlp.Wi.weight",
            f"{own}.feed_forward.sublayer.outer.weight": f"{their}.mlp.Wo.weight",
        }
    pairs.pop("transformer.layers.0.attention.norm.weight")
    assert set(pairs.values()) == set(named)
    return {mine: named[their] for mine, their in pairs.items()}


def of_llama(model) -> dict[str, tuple[torch.nn.Parameter, ...]]:
    """Our name -> the parameters of ``LlamaForCausalLM`` that stand one above the other in it."""
    named = dict(model.named_parameters())
    pairs: dict[str, tuple[str, ...]] = {
        "transformer.embeddings.tokens.weight": ("model.embed_tokens.weight",),
        "transformer.norm.weight": ("model.norm.weight",),
    }
    for layer in range(model.config.num_hidden_layers):
        own, their = f"transformer.layers.{layer}", f"model.layers.{layer}"
        pairs |= {
            f"{own}.attention.norm.weight": (f"{their}.input_layernorm.weight",),
            f"{own}.attention.sublayer.query_key_value.weight": tuple(
                f"{their}.self_attn.{one}_proj.weight" for one in "qkv"
            ),
            f"{own}.attention.sublayer.output.weight": (f"{their}.self_attn.o_proj.weight",),
            f"{own}.feed_forward.norm.weight": (f"{their}.post_attention_layernorm.weight",),
            f"{own}.feed_forward.sublayer.inner.weight": (
                f"{their}.mlp.gate_proj.weight", f"{their}.mlp.up_proj.weight",
            ),
            f"{own}.feed_forward.sublayer.outer.weight": (f"{their}.mlp.down_proj.weight",),
        }  # fmt: skip
    assert {name for names in pairs.values() for name in names} == set(named)
    return {mine: tuple(named[name] for name in names) for mine, names in pairs.items()}
