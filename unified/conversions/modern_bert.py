"""ModernBERT of ``transformers`` becomes a folder of this library, and a folder of ours ModernBERT [ModernBERT].

Ettin's encoders are ModernBERTs of other sizes and are read in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unified.arguments import counted, require_integer, shown
from unified.checkpoints.conversion import (
    ACTIVATIONS,
    Conversion,
    Imported,
    activation_of,
    decoding,
    lengths_of,
    over_tokenizer,
    require_model_type,
    with_heads_of,
)
from unified.checkpoints.sources import read_config, read_parameters, reading_config
from unified.checkpoints.trained import Trained
from unified.conversions.bert import read_tokenizer
from unified.conversions.export import OWN_SETTINGS, Source, write_folder
from unified.conversions.modern_bert_names import QUERY, from_modern_bert, to_modern_bert
from unified.conversions.tokenizers import json_tokenizer_files, no_bert_tokenizer
from unified.data.vocabulary import BEGIN, MASK, PAD, SEPARATOR
from unified.errors import UnifiedError
from unified.files.model_folders import CONFIG
from unified.model import TransformerConfig

MODEL_TYPE = "modernbert"
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
#: Classes whose parameters are read; those of tasks have heads that this library has not.
_CLASSES = ("ModernBertModel", "ModernBertForMaskedLM")


def read_modern_bert(source: Path, writes: str | None = None) -> Imported:
    """Read a folder of ``transformers``, of a masked language model or of an encoder without heads.

    The vector that a query stream starts from, which ModernBERT has not, becomes the embedding of [MASK].

    Args:
        source: holds ``config.json``, ``tokenizer.json`` and ``model.safetensors``, ``pytorch_model.bin`` or another
            single ``*.bin``.
        writes: name of the decoding scheme by which it shall write, or "nothing"; None for what an export of this
            library noted, else "nothing".

    Raises:
        UnifiedError: a file is missing or is not what it should be, or the model has the head of a task.
    """
    source = Path(source)
    settings, tokenizer = read_config(source / CONFIG), read_tokenizer(source)
    (architecture, *_) = settings.get("architectures") or _CLASSES
    if architecture not in _CLASSES:
        raise UnifiedError(
            f"{source}: architectures {architecture!r} in config.json; {' and '.join(_CLASSES)} are read, whose heads "
            "this library has"
        )
    config = modern_bert_config(settings)
    found, new = from_modern_bert(read_parameters(source), config)
    config, new, remarks = with_heads_of(found, new, config)
    config, found, vocabulary, left_out = over_tokenizer(source, config, found, tokenizer, "TokenizersBackend")
    found[QUERY] = found["transformer.embeddings.tokens.weight"][vocabulary.index(MASK)].clone()
    own = settings.get(OWN_SETTINGS) or {}
    scheme, said = decoding(config, writes or own.get("writes"), "nothing")
    told = Conversion(new=tuple(new), left_out=tuple(left_out), remarks=(*remarks, *said))
    return Imported(Trained(config, scheme, found, vocabulary, lengths=lengths_of(own)), tokenizer, told)


def export_modern_bert(source: Source, destination: Path) -> Conversion:
    """Make a folder for ``transformers`` from a model with ModernBERT's layers.

    It loads there as ModernBertForMaskedLM, or as ModernBertModel where it has no token head.

    Args:
        source: the model.
        destination: must not exist, or be empty.

    Raises:
        UnifiedError: the model is not ModernBERT's kind, or its tokenizer cannot be written; nothing is written.
    """
    config, reason = source.config, no_modern_bert(source)
    if reason is not None:
        raise UnifiedError(f"{source.name}: {reason}")
    files = json_tokenizer_files(source)
    architecture, found, left_out = to_modern_bert(source.by_rows_of(files.symbols), config)
    ids = {symbol: files.symbols.index(symbol) for symbol in (BEGIN, SEPARATOR, PAD)}
    activation, has_bias = ACTIVATIONS[config.activation], not config.linear_without_bias
    settings = {
        "architectures": [architecture], "model_type": MODEL_TYPE, "vocab_size": len(files.symbols),
        "hidden_size": config.width, "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers, "num_attention_heads": config.heads,
        "hidden_activation": activation, "classifier_activation": activation,
        "max_position_embeddings": config.max_positions, "initializer_range": config.initializer_range,
        "norm_eps": config.norm_epsilon, "norm_bias": config.norm_type == "layer",
        "attention_bias": has_bias, "mlp_bias": has_bias, "classifier_bias": has_bias, "decoder_bias": True,
        "embedding_dropout": config.dropout, "attention_dropout": config.attention_dropout,
        "mlp_dropout": config.inner_dropout, "local_attention": 2 * (max(config.windows) or 64),
        "layer_types": [_LOCAL if window else _GLOBAL for window in config.windows],
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": config.rotary_theta_of(window)}
            for kind, window in ((_GLOBAL, 0), (_LOCAL, 1))
        },
        "tie_word_embeddings": True, "bos_token_id": ids[BEGIN], "cls_token_id": ids[BEGIN],
        "eos_token_id": ids[SEPARATOR], "sep_token_id": ids[SEPARATOR], "pad_token_id": ids[PAD],
        OWN_SETTINGS: {"writes": source.trained.writes, **source.trained.lengths.state()},
    }  # fmt: skip
    write_folder(destination, settings, found, files.save, source.dtype)
    return Conversion(left_out=tuple(left_out), remarks=files.remarks)


def no_modern_bert(source: Source) -> str | None:
    """Why a model cannot be one of ModernBERT's class; None where it can."""
    config = source.config
    wanted = replace(
        config,
        sublayers="self,feed_forward",
        positions="rotary",
        gated=True,
        norm="pre",
        embedding_norm=True,
        token_types=0,
        norm_type="layer" if config.norm_type == "layer" else "layer_without_bias",
        token_head="none" if config.token_head == "none" else "transform",
    )
    if config != wanted:
        return (
            "ModernBERT's layers are self-attention with rotary positions and a gated feed-forward, pre-norm with "
            "normalized embeddings and LayerNorm, without token types, with a transform before the softmax; this "
            "model's are not"
        )
    if len(set(config.windows) - {0}) > 1:
        return (
            f"ModernBERT has one window for all layers that have one; attention_windows is {config.attention_windows}"
        )
    if source.trained.heads:
        return "the heads of ModernBERT's classes for tasks are others than this library's"
    return source.other_mask or no_bert_tokenizer(source)


def modern_bert_config(settings: Mapping[str, Any]) -> TransformerConfig:
    """Our configuration from the fields of a ``config.json``, in the form of ``transformers`` 5 or in that before.

    Raises:
        UnifiedError: a field is missing, or asks for what this Transformer does not do.
    """
    require_model_type(settings, MODEL_TYPE)
    activation = activation_of(settings.get("hidden_activation", "gelu"), "hidden_activation")
    if activation_of(settings.get("classifier_activation", "gelu"), "classifier_activation") != activation:
        raise UnifiedError(
            f"config.json: classifier_activation {settings['classifier_activation']!r} differs from hidden_activation; "
            "one activation for layers and token head is built"
        )
    biases = {name: bool(settings.get(name, False)) for name in ("attention_bias", "mlp_bias", "classifier_bias")}
    if len(set(biases.values())) > 1:
        raise UnifiedError(f"config.json: {biases}; biases of all linear maps or of none are built")
    if not settings.get("decoder_bias", True) or not settings.get("tie_word_embeddings", True):
        raise UnifiedError(
            "config.json: decoder_bias and tie_word_embeddings must be true; other softmaxes are not built"
        )
    theta, local_theta = _thetas(settings)
    with reading_config("a ModernBERT's"):
        layers = require_integer("num_hidden_layers", settings["num_hidden_layers"], 1)
        return TransformerConfig(
            vocabulary_size=settings["vocab_size"],
            layers=layers,
            width=settings["hidden_size"],
            heads=settings["num_attention_heads"],
            feed_forward=settings["intermediate_size"],
            gated=True,
            positions="rotary",
            rotary_theta=theta,
            local_rotary_theta=0.0 if local_theta == theta else local_theta,
            attention_windows=_windows(settings, layers),
            max_positions=settings.get("max_position_embeddings", 8192),
            token_types=0,
            activation=activation,
            linear_without_bias=not biases["mlp_bias"],
            dropout=settings.get("embedding_dropout", 0.0),
            inner_dropout=settings.get("mlp_dropout", 0.0),
            attention_dropout=settings.get("attention_dropout", 0.0),
            norm="pre",
            norm_type="layer" if settings.get("norm_bias", False) else "layer_without_bias",
            norm_epsilon=settings.get("norm_eps", 1e-5),
            embedding_norm=True,
            initializer_range=settings.get("initializer_range", 0.02),
        )


def _thetas(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Bases of the wavelengths of global layers and of those with a window.

    As in ``transformers``, the field ``rope_scaling`` of older folders counts for global and local attention alike.
    """
    named, scaling = settings.get("rope_parameters") or {}, settings.get("rope_scaling") or {}
    beside = next((name for name in named if name not in (_GLOBAL, _LOCAL)), None)
    if beside is not None:
        raise UnifiedError(
            f"config.json: rope_parameters has {shown(beside)}; a ModernBERT's are two objects, {_GLOBAL} and "
            f"{_LOCAL}, each with a rope_theta"
        )
    found = []
    for kind, old, usual in ((_GLOBAL, "global_rope_theta", 160000.0), (_LOCAL, "local_rope_theta", 10000.0)):
        own = {**(named.get(kind) or {}), **scaling}
        for field in ("rope_type", "type"):
            if own.get(field, "default") != "default":
                raise UnifiedError(f"config.json: {field} {own[field]!r} of {kind}; only 'default' is built")
        found.append(own.get("rope_theta", settings.get(old, usual)))
    theta, local_theta = found
    if theta is None:
        name = f"rope_theta of {_GLOBAL}" if "rope_theta" in (named.get(_GLOBAL) or {}) else "global_rope_theta"
        raise UnifiedError(f"config.json: {name} must be a number, got null")
    return float(theta), float(theta if local_theta is None else local_theta)


def _windows(settings: Mapping[str, Any], layers: int) -> str:
    """Windows of all layers, as :attr:`TransformerConfig.attention_windows` lists them, without repetitions."""
    kinds = settings.get("layer_types")
    if not kinds:
        every = require_integer("global_attn_every_n_layers", settings.get("global_attn_every_n_layers", 3), 1)
        kinds = [_LOCAL if layer % every else _GLOBAL for layer in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers or any(one not in (_GLOBAL, _LOCAL) for one in kinds):
        raise UnifiedError(
            f"config.json: layer_types must name {_GLOBAL} or {_LOCAL} for {counted(layers, 'layer')}, got {kinds}"
        )
    window = require_integer("local_attention", settings.get("local_attention", 128), 0) // 2
    if window < 1 and _LOCAL in kinds:
        raise UnifiedError(f"config.json: local_attention must be at least 2, got {settings['local_attention']}")
    return _shortest([window if kind == _LOCAL else 0 for kind in kinds])


def _shortest(windows: Sequence[int]) -> str:
    """The shortest list that gives these windows when it is repeated."""
    period = next(n for n in range(1, len(windows) + 1) if all(one == windows[i % n] for i, one in enumerate(windows)))
    return ",".join(map(str, windows[:period]))
