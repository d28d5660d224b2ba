"""BERT's parameters under our names, and ours under BERT's.

The classes of next-sentence prediction are the other way round: BERT's 0 means "follows", ours "drawn at random".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import torch

from unified.arguments import counted
from unified.checkpoints.conversion import gather

_EMBEDDINGS = {
    "transformer.embeddings.tokens.weight": "bert.embeddings.word_embeddings.weight",
    "transformer.embeddings.positions.weight": "bert.embeddings.position_embeddings.weight",
    "transformer.embeddings.token_types.weight": "bert.embeddings.token_type_embeddings.weight",
    "heads.token.bias": "cls.predictions.bias",
}
_MODULES = {
    "transformer.embeddings.norm": "bert.embeddings.LayerNorm",
    "heads.token.dense": "cls.predictions.transform.dense",
    "heads.token.norm": "cls.predictions.transform.LayerNorm",
    "heads.next_sentence.pooler": "bert.pooler.dense",
    "heads.next_sentence.classifier": "cls.seq_relationship",
}
_LAYER_MODULES = {
    "attention.sublayer.output": "attention.output.dense",
    "attention.norm": "attention.output.LayerNorm",
    "feed_forward.sublayer.inner": "intermediate.dense",
    "feed_forward.sublayer.outer": "output.dense",
    "feed_forward.norm": "output.LayerNorm",
}
_PROJECTIONS = ("query", "key", "value")
_BOUNDARY = "cls.pair_target_predictions"
_BOUNDARY_MODULES = {
    "heads.boundary.first": f"{_BOUNDARY}.mlp_layer_norm.linear1",
    "heads.boundary.first_norm": f"{_BOUNDARY}.mlp_layer_norm.layer_norm1",
    "heads.boundary.second": f"{_BOUNDARY}.mlp_layer_norm.linear2",
    "heads.boundary.second_norm": f"{_BOUNDARY}.mlp_layer_norm.layer_norm2",
}
#: SpanBERT's embeddings of distances; their number of rows is how far its boundary head reaches.
_DISTANCES = f"{_BOUNDARY}.position_embeddings.weight"
#: Copies of other parameters, and numbers that are no parameters.
_COPIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    f"{_BOUNDARY}.decoder.weight": "bert.embeddings.word_embeddings.weight",
}
_IGNORED = ("bert.embeddings.position_ids",)
_CLASSES = ("heads.next_sentence.classifier.weight", "heads.next_sentence.classifier.bias")
#: Heads of ``run_classifier.py`` and ``run_squad.py`` in TensorFlow's files.
_TASK_HEADS = re.compile(r"(cls/squad/)?output_(weights|bias)")


def names(layers: int, boundary: bool = False) -> dict[str, tuple[str, ...]]:
    """Our parameter -> BERT's; several of BERT's, one above the other, make our joint projection.

    With ``boundary`` those of SpanBERT's boundary head are among them.
    """
    pairs: dict[str, tuple[str, ...]] = {mine: (other,) for mine, other in _EMBEDDINGS.items()}
    modules = dict(_MODULES)
    if boundary:
        modules |= _BOUNDARY_MODULES
        pairs |= {"heads.boundary.distances.weight": (_DISTANCES,), "heads.boundary.bias": (f"{_BOUNDARY}.bias",)}
    for i in range(layers):
        ours, theirs = f"transformer.layers.{i}", f"bert.encoder.layer.{i}"
        modules |= {f"{ours}.{mine}": f"{theirs}.{other}" for mine, other in _LAYER_MODULES.items()}
        for parameter in ("weight", "bias"):
            joint = f"{ours}.attention.sublayer.query_key_value.{parameter}"
            pairs[joint] = tuple(f"{theirs}.attention.self.{name}.{parameter}" for name in _PROJECTIONS)
    for mine, other in modules.items():
        pairs |= {f"{mine}.{parameter}": (f"{other}.{parameter}",) for parameter in ("weight", "bias")}
    return pairs


def from_bert(state: dict[str, torch.Tensor], layers: int) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Our parameters from BERT's, rows of tables still in BERT's order; and names of ours that the file lacks.

    Names may lack the prefix ``bert.`` and may say ``gamma`` and ``beta`` for LayerNorm. Two more spellings are read:
    UniLM 1.2's joint projections (``qkv_linear``, without a bias of keys, which softmax does not see), and SpanBERT's
    ``decoder.`` in front of everything with its boundary head.

    Raises:
        UnifiedError: the file holds parameters of another model, lacks some of the Transformer, or copies differ.
    """
    state = _split_projections({_modern(name): value for name, value in state.items()})
    pairs = names(layers, boundary=_DISTANCES in state)
    found, new = gather(state, pairs, _COPIES, _IGNORED, f"a BERT of {counted(layers, 'layer')}")
    return _classes_turned(found), new


def to_bert(state: dict[str, torch.Tensor], layers: int) -> tuple[str, dict[str, torch.Tensor], list[str]]:
    """The class of ``transformers`` that has the heads in ``state``, its parameters, and names of ours that it has not.

    Args:
        state: our parameters, rows in BERT's order.
    """
    with_tokens, with_pairs = "heads.token.bias" in state, _CLASSES[0] in state
    pairs, turned = names(layers), _classes_turned(state)
    found: dict[str, torch.Tensor] = {}
    if not with_pairs or not with_tokens:
        part = "heads.next_sentence.classifier." if not with_tokens else "heads.next_sentence."
        pairs = {mine: others for mine, others in pairs.items() if not mine.startswith(part)}
    for mine, others in pairs.items():
        if mine in turned:
            found |= dict(zip(others, turned[mine].chunk(len(others)), strict=True))
    found = {name: value.contiguous() for name, value in found.items()}
    left_out = [name for name in state if name not in pairs]
    if not with_tokens:
        return "BertModel", {name.removeprefix("bert."): value for name, value in found.items()}, left_out
    copies = {copy: original for copy, original in _COPIES.items() if not copy.startswith(_BOUNDARY)}
    found |= {copy: found[original].clone() for copy, original in copies.items()}
    return "BertForPreTraining" if with_pairs else "BertForMaskedLM", found, left_out


def from_tensorflow(parameters: Mapping[str, np.ndarray]) -> tuple[dict[str, torch.Tensor], list[str]]:
    """BERT's parameters in float32 as PyTorch names and lays them out, and names of fine-tuned heads, left out.

    A kernel of TensorFlow is (in, out), a weight of PyTorch (out, in). Whatever else is in the file keeps its name, for
    :func:`from_bert` to refuse.
    """
    heads = [name for name in parameters if _TASK_HEADS.fullmatch(name)]
    found = {}
    for name, value in parameters.items():
        if name in heads:
            continue
        if name.endswith("/kernel"):
            value = value.T
        value = np.ascontiguousarray(value, dtype=np.float32)
        found[_dotted(name)] = torch.from_numpy(value)
    return found, heads


def _dotted(name: str) -> str:
    name = re.sub(r"/layer_(\d+)/", r"/layer/\1/", name)
    name = re.sub(r"/(kernel|output_weights)$", "/weight", name)
    name = re.sub(r"/output_bias$", "/bias", name)
    name = re.sub(r"_embeddings$", "_embeddings/weight", name)
    return name.replace("/", ".")


def _split_projections(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """UniLM 1.2's ``qkv_linear.weight``, ``q_bias`` and ``v_bias`` as BERT's query, key and value."""
    split = dict(state)
    for name in [name for name in state if name.endswith(".qkv_linear.weight")]:
        stem = name.removesuffix("qkv_linear.weight")
        for projection, weight in zip(_PROJECTIONS, split.pop(name).chunk(3), strict=True):
            split[f"{stem}{projection}.weight"] = weight
        split[f"{stem}key.bias"] = weight.new_zeros(len(weight))
        for projection in ("query", "value"):
            bias = split.pop(f"{stem}{projection[0]}_bias", None)
            if bias is not None:  # else it is listed as missing
                split[f"{stem}{projection}.bias"] = bias.flatten()
    return split


def _modern(name: str) -> str:
    if name.endswith((".gamma", ".beta")):
        stem, _, parameter = name.rpartition(".")
        name = f"{stem}.{'weight' if parameter == 'gamma' else 'bias'}"
    name = name.removeprefix("decoder.")
    return name if name.startswith(("bert.", "cls.")) else f"bert.{name}"


def _classes_turned(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value.flip(0) if name in _CLASSES else value for name, value in state.items()}
