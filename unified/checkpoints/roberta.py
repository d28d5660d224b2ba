"""Folders of this library from fairseq's RoBERTa (Liu et al. 2019; fairseq 0.12, ``models/roberta/model.py``).

RoBERTa is BERT without token types and next-sentence prediction. Its positions begin behind padding's id, so the first
rows of its table stand for nothing. Two separators stand between two texts, as fairseq's RobertaHubInterface joins
them. Its text is GPT-2's byte-level BPE, whose numbers are the symbols in ``dict.txt``; that tokenizer is no part of a
checkpoint and does not come along.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import torch

from unified.arguments import counted
from unified.checkpoints.conversion import Conversion, Imported, decoding, fitting, gather, with_heads_of
from unified.checkpoints.files import load_checkpoint
from unified.checkpoints.trained import Trained
from unified.checkpoints.vocabularies import over_symbols
from unified.data.vocabulary import MASK, Vocabulary
from unified.errors import UnifiedError
from unified.model import TransformerConfig

_ENCODER, _HEAD = "encoder.sentence_encoder", "encoder.lm_head"
_MODULES = {
    "transformer.embeddings.norm": f"{_ENCODER}.layernorm_embedding",
    "heads.token.dense": f"{_HEAD}.dense",
    "heads.token.norm": f"{_HEAD}.layer_norm",
}
_LAYER_MODULES = {
    "attention.sublayer.output": "self_attn.out_proj",
    "attention.norm": "self_attn_layer_norm",
    "feed_forward.sublayer.inner": "fc1",
    "feed_forward.sublayer.outer": "fc2",
    "feed_forward.norm": "final_layer_norm",
}
_TOKEN_TYPES = "transformer.embeddings.token_types.weight"
_UNUSED_POSITIONS = 2  # padding's id, 1, and those before it
#: Settings of fairseq that ask for another Transformer than ours when they are not so.
_REQUIRED = {
    "activation_fn": "gelu", "encoder_normalize_before": False, "layernorm_embedding": True,
    "untie_weights_roberta": False, "no_token_positional_embeddings": False, "encoder_learned_pos": True,
}  # fmt: skip


def read_roberta(source: Path, writes: str | None = None) -> Imported:
    """Read fairseq's ``model.pt``.

    Token types are two rows of zeros, which change nothing until they are trained.

    Args:
        source: holds ``dict.txt`` and ``model.pt`` or another single ``*.pt``.
        writes: name of the decoding scheme by which it shall write; two token types serve none but "nothing".

    Raises:
        UnifiedError: a file is missing or is not what it should be.
    """
    source = Path(source)
    path = _checkpoint_file(source)
    content = load_checkpoint(path, older=True)
    state = content.get("model")
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise UnifiedError(f"{path}: not a checkpoint of fairseq, it has no 'model' with named parameters")
    vocabulary = Vocabulary.load(source / "dict.txt")
    config = _config(path, content)
    heads = [name for name in state if name.startswith("classification_heads.")]
    state = {_modern(name): value for name, value in state.items() if name not in heads}
    found, new = _from_roberta(state, config)
    config, new, remarks = with_heads_of(found, new, config)
    symbols = _symbols(path, vocabulary, len(found["transformer.embeddings.tokens.weight"]))
    found = fitting(path, found, config.with_vocabulary(len(symbols)))
    found = over_symbols(found, symbols, vocabulary.symbols, config.initializer_range)
    scheme, said = decoding(config, writes, "nothing")
    trained = Trained(config.with_vocabulary(len(vocabulary)), scheme, found, vocabulary)
    return Imported(trained, None, Conversion(new=tuple(new), left_out=tuple(heads), remarks=(*remarks, *said)))


def _checkpoint_file(folder: Path) -> Path:
    found = sorted(folder.glob("*.pt"))
    return found[0] if len(found) == 1 else folder / "model.pt"


def _config(path: Path, content: dict[str, Any]) -> TransformerConfig:
    cfg = content.get("cfg")
    settings = content.get("args") or (cfg.get("model") if isinstance(cfg, dict) else None)
    settings = vars(settings) if isinstance(settings, argparse.Namespace) else settings
    if not isinstance(settings, dict):
        raise UnifiedError(f"{path}: not a checkpoint of fairseq, it has no settings of a model")
    for name, wanted in _REQUIRED.items():
        if settings.get(name, wanted) != wanted:
            raise UnifiedError(f"{path}: {name} {settings[name]!r}; only RoBERTa's {wanted!r} is built")
    try:
        return TransformerConfig(
            layers=settings["encoder_layers"],
            width=settings["encoder_embed_dim"],
            heads=settings["encoder_attention_heads"],
            feed_forward=settings["encoder_ffn_embed_dim"],
            max_positions=settings["max_positions"],
            token_types=2,
            pair_separators=2,
            dropout=settings.get("dropout", 0.1),
            attention_dropout=settings.get("attention_dropout", 0.1),
            norm_epsilon=1e-5,
        )
    except KeyError as error:
        raise UnifiedError(f"{path}: no {error.args[0]} among its settings; is it a RoBERTa?") from None


def _from_roberta(
    state: dict[str, torch.Tensor], config: TransformerConfig
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Our parameters in RoBERTa's order of symbols, and names of ours that the file lacks."""
    pairs: dict[str, tuple[str, ...]] = {
        "transformer.embeddings.tokens.weight": (f"{_ENCODER}.embed_tokens.weight",),
        "transformer.embeddings.positions.weight": (f"{_ENCODER}.embed_positions.weight",),
        "heads.token.bias": (f"{_HEAD}.bias",),
    }
    modules = dict(_MODULES)
    for i in range(config.layers):
        ours, theirs = f"transformer.layers.{i}", f"{_ENCODER}.layers.{i}"
        modules |= {f"{ours}.{mine}": f"{theirs}.{other}" for mine, other in _LAYER_MODULES.items()}
        for parameter in ("weight", "bias"):
            joint = f"{ours}.attention.sublayer.query_key_value.{parameter}"
            pairs[joint] = tuple(f"{theirs}.self_attn.{letter}_proj.{parameter}" for letter in "qkv")
    for mine, other in modules.items():
        pairs |= {f"{mine}.{parameter}": (f"{other}.{parameter}",) for parameter in ("weight", "bias")}
    copies = {f"{_HEAD}.weight": f"{_ENCODER}.embed_tokens.weight"}
    what = f"a RoBERTa of {counted(config.layers, 'layer')}"
    found, new = gather(_split(state), pairs, copies, [f"{_ENCODER}.version"], what)
    found["transformer.embeddings.positions.weight"] = found["transformer.embeddings.positions.weight"][
        _UNUSED_POSITIONS:
    ]
    found[_TOKEN_TYPES] = torch.zeros(2, config.width)
    of_pairs = ("pooler", "classifier")
    return found, [
        *new,
        *(f"heads.next_sentence.{module}.{parameter}" for module in of_pairs for parameter in ("weight", "bias")),
    ]


def _modern(name: str) -> str:
    """Names that fairseq itself renames when it loads the published files."""
    name = re.sub(r"^decoder\.", "encoder.", name)
    return name.replace(".emb_layer_norm.", ".layernorm_embedding.")


def _split(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The joint ``in_proj`` of older files as query, key and value."""
    split: dict[str, torch.Tensor] = {}
    for name, value in state.items():
        if "in_proj_" in name and isinstance(value, torch.Tensor) and value.dim():
            stem, _, parameter = name.partition("in_proj_")
            parts = zip("qkv", value.tensor_split(3), strict=True)
            split |= {f"{stem}{letter}_proj.{parameter}": part for letter, part in parts}
        else:
            split[name] = value
    return split


def _symbols(path: Path, vocabulary: Vocabulary, rows: int) -> list[str]:
    """The symbols of the rows: the dictionary, and behind it the mask that fairseq's task adds."""
    symbols = vocabulary.symbols[: max(vocabulary.listed, vocabulary.index(MASK) + 1)]
    if rows != len(symbols):
        raise UnifiedError(f"{path}: {rows} rows of symbols, but dict.txt and {MASK} make {len(symbols)}")
    return symbols
