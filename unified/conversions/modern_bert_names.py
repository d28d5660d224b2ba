"""ModernBERT's parameters under our names, and ours under ModernBERT's."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from unified.arguments import counted
from unified.checkpoints.conversion import gather
from unified.model import TransformerConfig

_EMBEDDINGS = "model.embeddings.tok_embeddings.weight"
_MODULES = {
    "transformer.embeddings.norm": "model.embeddings.norm",
    "transformer.norm": "model.final_norm",
    "heads.token.dense": "head.dense",
    "heads.token.norm": "head.norm",
}
_LAYER_MODULES = {
    "attention.norm": "attn_norm",
    "attention.sublayer.query_key_value": "attn.Wqkv",
    "attention.sublayer.output": "attn.Wo",
    "feed_forward.norm": "mlp_norm",
    "feed_forward.sublayer.inner": "mlp.Wi",
    "feed_forward.sublayer.outer": "mlp.Wo",
}
_COPIES = {"decoder.weight": _EMBEDDINGS}
#: Beginnings of names in the file of an encoder without heads, which lack the prefix ``model.``.
_OF_ENCODER = ("embeddings.", "layers.", "final_norm.")
#: The vector from which a query stream starts, which ModernBERT has not.
QUERY = "transformer.embeddings.query"


def names(config: TransformerConfig) -> dict[str, str]:
    """Our parameter -> ModernBERT's, of the model in ``transformers`` with its token head."""
    modules = dict(_MODULES)
    for i in range(config.layers):
        ours, theirs = f"transformer.layers.{i}", f"model.layers.{i}"
        modules |= {f"{ours}.{mine}": f"{theirs}.{other}" for mine, other in _LAYER_MODULES.items()}
    del modules["transformer.layers.0.attention.norm"]  # the embeddings are normalized in its place
    pairs = {"transformer.embeddings.tokens.weight": _EMBEDDINGS, "heads.token.bias": "decoder.bias"}
    for mine, other in modules.items():
        pairs[f"{mine}.weight"] = f"{other}.weight"
        has_bias = config.norm_type == "layer" if mine.endswith("norm") else not config.linear_without_bias
        if has_bias:
            pairs[f"{mine}.bias"] = f"{other}.bias"
    return pairs


def from_modern_bert(
    state: Mapping[str, torch.Tensor], config: TransformerConfig
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Our parameters from ModernBERT's, rows of tables still in its order; and names of ours that the file lacks.

    Raises:
        UnifiedError: the file holds parameters of another model, lacks some of the Transformer, or the softmax is not
            tied to the embeddings.
    """
    state = {f"model.{name}" if name.startswith(_OF_ENCODER) else name: value for name, value in state.items()}
    pairs = {mine: (other,) for mine, other in names(config).items()}
    return gather(state, pairs, _COPIES, (), f"a ModernBERT of {counted(config.layers, 'layer')}")


def to_modern_bert(
    state: Mapping[str, torch.Tensor], config: TransformerConfig
) -> tuple[str, dict[str, torch.Tensor], list[str]]:
    """The class of ``transformers`` that has the heads in ``state``, its parameters, and names of ours that it has not.

    Args:
        state: our parameters, rows in the order of the exported tokenizer.
    """
    pairs = names(config)
    found = {other: state[mine].contiguous() for mine, other in pairs.items() if mine in state}
    left_out = [name for name in state if name not in pairs]
    if "heads.token.bias" in state:
        return "ModernBertForMaskedLM", found, left_out
    return "ModernBertModel", {name.removeprefix("model."): value for name, value in found.items()}, left_out
