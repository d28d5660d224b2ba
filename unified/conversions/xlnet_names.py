"""XLNet's parameters under our names, and ours under those of ``transformers``' XLNetLMHeadModel.

Projections are (D, H, K) there and linear maps here; queries, keys and values share one matrix here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import torch

from unified.arguments import counted
from unified.checkpoints.parameters import listed
from unified.errors import UnifiedError

_COPY, _ORIGINAL = "lm_loss.weight", "transformer.word_embedding.weight"
_SHARED = {
    "transformer.embeddings.tokens.weight": _ORIGINAL,
    "transformer.embeddings.query": "transformer.mask_emb",
    "heads.token.bias": "lm_loss.bias",
}
_VECTORS = {
    "attention.sublayer.content_bias": "rel_attn.r_w_bias",
    "attention.sublayer.distance_bias": "rel_attn.r_r_bias",
    "attention.sublayer.segment_bias": "rel_attn.r_s_bias",
    "attention.sublayer.segments": "rel_attn.seg_embed",
}
_MODULES = {
    "attention.norm": "rel_attn.layer_norm",
    "feed_forward.sublayer.inner": "ff.layer_1",
    "feed_forward.sublayer.outer": "ff.layer_2",
    "feed_forward.norm": "ff.layer_norm",
}
_PROJECTIONS = ("q", "k", "v")
_TENSORFLOW = {
    "model/transformer/word_embedding/lookup_table": "transformer.word_embedding.weight",
    "model/transformer/mask_emb/mask_emb": "transformer.mask_emb",
    "model/lm_loss/bias": "lm_loss.bias",
}
#: Vectors of all layers in one variable, or of all alike where ``untie_r`` was off.
_TENSORFLOW_VECTORS = ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed")
_TENSORFLOW_LAYER = {
    **{f"rel_attn/{letter}/kernel": f"rel_attn.{letter}" for letter in (*_PROJECTIONS, "r", "o")},
    "rel_attn/LayerNorm/gamma": "rel_attn.layer_norm.weight",
    "rel_attn/LayerNorm/beta": "rel_attn.layer_norm.bias",
    "ff/LayerNorm/gamma": "ff.layer_norm.weight",
    "ff/LayerNorm/beta": "ff.layer_norm.bias",
    "ff/layer_1/bias": "ff.layer_1.bias",
    "ff/layer_2/bias": "ff.layer_2.bias",
}
_TENSORFLOW_KERNELS = {"ff/layer_1/kernel": "ff.layer_1.weight", "ff/layer_2/kernel": "ff.layer_2.weight"}
#: The summary of the last token, which fine-tuning learns (the name is spelled so), and its heads.
_TENSORFLOW_HEADS = (
    "model/sequnece_summary/",
    "model/classification_",
    "model/regression_",
    "start_logits/",
    "end_logits/",
)


def from_xlnet(state: dict[str, torch.Tensor], layers: int) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Our parameters from XLNet's, rows of tables still in its order; and names of ours that the file lacks.

    Raises:
        UnifiedError: the file holds parameters of another model, lacks some of the Transformer, or copies differ.
    """
    if not any(name.startswith("transformer.") for name in state):  # XLNetModel, the Transformer by itself
        state = {f"transformer.{name}": value for name, value in state.items()}
    known = _names(layers)
    unknown = sorted(state.keys() - known - {_COPY})
    missing = sorted(name for name in known - state.keys() if name.startswith("transformer."))
    if unknown or missing:
        problems = [f"unknown: {name}" for name in unknown] + [f"missing: {name}" for name in missing]
        raise UnifiedError(f"not the parameters of an XLNet of {counted(layers, 'layer')}: {listed(problems)}")
    if _COPY in state and not torch.equal(state[_COPY], state[_ORIGINAL]):
        raise UnifiedError(f"{_COPY} differs from {_ORIGINAL}; the softmax must be tied to the embeddings")
    found = {mine: state[other] for mine, other in _SHARED.items() if other in state}
    found["transformer.embeddings.query"] = found["transformer.embeddings.query"].flatten()
    for i in range(layers):
        ours, theirs = f"transformer.layers.{i}", f"transformer.layer.{i}"
        found |= {f"{ours}.{mine}": state[f"{theirs}.{other}"] for mine, other in _VECTORS.items()}
        for mine, other in _MODULES.items():
            found |= {
                f"{ours}.{mine}.{parameter}": state[f"{theirs}.{other}.{parameter}"] for parameter in ("weight", "bias")
            }
        sublayer, attention = f"{ours}.attention.sublayer", f"{theirs}.rel_attn"
        joint = [state[f"{attention}.{letter}"].flatten(1).T for letter in _PROJECTIONS]
        found[f"{sublayer}.query_key_value.weight"] = torch.cat(joint)
        found[f"{sublayer}.distances.weight"] = state[f"{attention}.r"].flatten(1).T.contiguous()
        found[f"{sublayer}.output.weight"] = state[f"{attention}.o"].flatten(1)
    return found, [mine for mine in _SHARED if mine not in found]


def to_xlnet(state: dict[str, torch.Tensor], layers: int) -> tuple[str, dict[str, torch.Tensor], list[str]]:
    """The class of ``transformers`` for ``state``, its parameters, copy included, and names of ours that it lacks.

    Args:
        state: our parameters, rows in XLNet's order.
    """
    rest = dict(state)
    found = {other: rest.pop(mine) for mine, other in _SHARED.items() if mine in rest}
    found["transformer.mask_emb"] = found["transformer.mask_emb"].view(1, 1, -1)
    for i in range(layers):
        ours, theirs = f"transformer.layers.{i}", f"transformer.layer.{i}"
        vectors = {f"{theirs}.{other}": rest.pop(f"{ours}.{mine}") for mine, other in _VECTORS.items()}
        for mine, other in _MODULES.items():
            found |= {
                f"{theirs}.{other}.{parameter}": rest.pop(f"{ours}.{mine}.{parameter}")
                for parameter in ("weight", "bias")
            }
        heads = vectors[f"{theirs}.rel_attn.r_w_bias"].shape
        sublayer, attention = f"{ours}.attention.sublayer", f"{theirs}.rel_attn"
        projections = rest.pop(f"{sublayer}.query_key_value.weight").chunk(3)
        by_letter = dict(zip(_PROJECTIONS, projections, strict=True))
        by_letter["r"] = rest.pop(f"{sublayer}.distances.weight")
        found |= {f"{attention}.{letter}": weight.T.unflatten(1, heads) for letter, weight in by_letter.items()}
        found[f"{attention}.o"] = rest.pop(f"{sublayer}.output.weight").unflatten(1, heads)
        found |= vectors
    found = {name: value.contiguous() for name, value in found.items()}
    if "lm_loss.bias" in found:
        return "XLNetLMHeadModel", {**found, _COPY: found[_ORIGINAL].clone()}, list(rest)
    return "XLNetModel", {name.removeprefix("transformer."): value for name, value in found.items()}, list(rest)


def _names(layers: int) -> set[str]:
    """All of XLNet's but the copy."""
    of_layer = {f"rel_attn.{letter}" for letter in (*_PROJECTIONS, "r", "o")} | set(_VECTORS.values())
    of_layer |= {f"{module}.{parameter}" for module in _MODULES.values() for parameter in ("weight", "bias")}
    return set(_SHARED.values()) | {f"transformer.layer.{i}.{name}" for i in range(layers) for name in of_layer}


def from_tensorflow(variables: Mapping[str, np.ndarray], layers: int) -> tuple[dict[str, torch.Tensor], list[str]]:
    """XLNet's parameters under the names of ``transformers`` from those of the published code; and heads left out.

    Raises:
        UnifiedError: a variable is unknown; all of them are listed.
    """
    found: dict[str, torch.Tensor] = {}
    heads: list[str] = []
    unknown: list[str] = []
    for name, value in variables.items():
        tensor = torch.from_numpy(np.ascontiguousarray(value))
        found_layer = re.fullmatch(r"model/transformer/layer_(\d+)/(.+)", name)
        vector = name.removeprefix("model/transformer/")
        if name in _TENSORFLOW:
            found[_TENSORFLOW[name]] = tensor
        elif vector in _TENSORFLOW_VECTORS:
            tied = tensor.dim() == (3 if vector == "seg_embed" else 2)
            for i in range(layers):
                found[f"transformer.layer.{i}.rel_attn.{vector}"] = tensor if tied else tensor[i]
        elif found_layer and found_layer[2] in _TENSORFLOW_LAYER:
            found[f"transformer.layer.{found_layer[1]}.{_TENSORFLOW_LAYER[found_layer[2]]}"] = tensor
        elif found_layer and found_layer[2] in _TENSORFLOW_KERNELS:
            found[f"transformer.layer.{found_layer[1]}.{_TENSORFLOW_KERNELS[found_layer[2]]}"] = tensor.T.contiguous()
        else:
            (heads if name.startswith(_TENSORFLOW_HEADS) else unknown).append(name)
    if unknown:
        raise UnifiedError(f"not the variables of an XLNet: unknown: {listed(sorted(unknown))}")
    return found, sorted(heads)
