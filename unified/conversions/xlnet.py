"""XLNet of ``transformers`` or TensorFlow becomes a folder of this library, and a folder ``transformers``' XLNet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from unified.checkpoints.conversion import (
    ACTIVATIONS,
    Conversion,
    Imported,
    activation_of,
    decoding,
    fitting,
    lengths_of,
    require_model_type,
    with_heads_of,
)
from unified.checkpoints.sources import counted, read_config, read_parameters, reading_config, required
from unified.checkpoints.tensorflow import find_tensorflow, load_tensorflow
from unified.checkpoints.trained import Trained
from unified.checkpoints.vocabularies import over_symbols
from unified.conversions.export import OWN_SETTINGS, Source, has_plain_layers, with_own_fields, write_folder
from unified.conversions.task_heads import XLNET, fine_tuned, take_head
from unified.conversions.tokenizers import no_xlnet_tokenizer, xlnet_tokenizer_files
from unified.conversions.xlnet_names import from_tensorflow, from_xlnet, to_xlnet
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.model_folders import CONFIG
from unified.model import TransformerConfig
from unified.tokenization import load_tokenizer, ordinary_symbols
from unified.tokenization.wordpiece_files import JSON_NAME, read_added
from unified.tokenization.xlnet import PIECES_NAME, XLNetTokenizer

#: Fields of our configuration for which XLNet's class has none, or one for several.
_OWN_FIELDS = ("attention_dropout", "inner_dropout", "max_positions", "token_types")


def read_xlnet(source: Path, writes: str | None = None) -> Imported:
    """Read a folder of ``transformers`` or TensorFlow.

    Args:
        source: holds ``config.json``, ``spiece.model`` or ``tokenizer.json``, and ``model.safetensors``,
            ``pytorch_model.bin`` or another single ``*.bin``; or ``xlnet_config.json``, ``spiece.model`` and a
            TensorFlow checkpoint.
        writes: name of the decoding scheme by which it shall write, "permutation" or "nothing"; None for what an
            export of this library noted, else the first.

    Raises:
        UnifiedError: a file is missing or is not what it should be.
    """
    source = Path(source)
    if not (source / JSON_NAME).is_file():
        required(source / PIECES_NAME)
    tokenizer = load_tokenizer(source)
    # No text contains what is added, so the tokenizer stays as it is.
    added = read_added(source, tokenizer.entries) if isinstance(tokenizer, XLNetTokenizer) else []
    settings, parameters, left_out = _read(source)
    own = settings.get(OWN_SETTINGS) or {}
    head, parameters, _ = take_head(XLNET, settings, parameters, own.get("head") or {})
    config = xlnet_config(settings)
    found, new = from_xlnet(parameters, config.layers)
    config, new, remarks = with_heads_of(found, new, config)
    symbols = [*tokenizer.native_symbols(), *added]
    if config.vocabulary_size != len(symbols):
        raise UnifiedError(
            f"{source}: {len(symbols)} pieces in its tokenizer, {config.vocabulary_size} in its settings"
        )
    found = fitting(source, found, config)
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    if added:
        vocabulary = Vocabulary([*vocabulary.symbols[4:], *added])
    found = over_symbols(found, symbols, vocabulary.symbols, config.initializer_range)
    config = config.with_vocabulary(len(vocabulary))
    if head is not None:
        heads = found | dict(head.parameters)
        trained = Trained(config, "nothing", heads, vocabulary, head.record, own.get("longest") or config.max_positions)
        return Imported(trained, tokenizer, Conversion())
    scheme, said = decoding(config, writes or own.get("writes"), "permutation")
    told = Conversion(new=tuple(new), left_out=tuple(left_out), remarks=(*remarks, *said))
    return Imported(Trained(config, scheme, found, vocabulary, lengths=lengths_of(own)), tokenizer, told)


def export_xlnet(source: Source, destination: Path) -> Conversion:
    """Make a folder for ``transformers`` from a model with XLNet's tokenizer.

    A model that was fine-tuned for one task loads there as XLNetForSequenceClassification or the like, see
    :mod:`unified.conversions.task_heads`. Any other loads as XLNetLMHeadModel, or as XLNetModel where it has no token
    head.

    Args:
        source: the model.
        destination: must not exist, or be empty.

    Raises:
        UnifiedError: the model is not XLNet's kind, or has another tokenizer; nothing is written.
    """
    config, reason = source.config, no_xlnet(source)
    if reason is not None:
        raise UnifiedError(f"{source.name}: {reason}")
    files = xlnet_tokenizer_files(source)
    parameters, head = source.by_rows_of(files.symbols), source.exported_head(XLNET)
    own: dict[str, Any] = {"writes": source.trained.writes, **source.trained.lengths.state()}
    others = {name: getattr(config, name) for name in _OWN_FIELDS}
    if head is None:
        parameters = {name: value for name, value in parameters.items() if name not in source.left_out}
        architecture, found, left_out = to_xlnet(parameters, config.layers)
        fields: dict[str, Any] = {"architectures": [architecture]}
        left_out = [*left_out, *source.left_out]
    else:
        name, record = head
        encoder = {mine: value for mine, value in parameters.items() if mine.startswith("transformer.")}
        below = {f"transformer.{theirs}": value for theirs, value in to_xlnet(encoder, config.layers)[1].items()}
        fields, found, left_out = fine_tuned(XLNET, name, record, parameters, below)
        if not any(one.startswith(f"heads.{name}.") for one in left_out):
            own = {"head": dict(record), "longest": source.trained.longest}
    settings = {
        **fields, "model_type": "xlnet", "vocab_size": len(files.symbols),
        "d_model": config.width, "n_layer": config.layers, "n_head": config.heads,
        "d_head": config.width // config.heads,
        "d_inner": config.feed_forward, "ff_activation": ACTIVATIONS[config.activation], "dropout": config.dropout,
        "initializer_range": config.initializer_range, "layer_norm_eps": config.norm_epsilon, "untie_r": True,
        "attn_type": config.attn_type, "bi_data": False, "clamp_len": config.clamp_len or -1, "same_length": False,
        OWN_SETTINGS: {**own, **others},
    }  # fmt: skip
    write_folder(destination, settings, found, files.save, source.dtype)
    return Conversion(left_out=tuple(left_out))


def no_xlnet(source: Source) -> str | None:
    """Why a model cannot be one of XLNet's class; None where it can."""
    config = source.config
    plain = config.relative and config.token_head in ("plain", "none") and config.norm == "post"
    if not plain or config.sublayers != "self,feed_forward" or not has_plain_layers(config):
        return (
            "XLNet has relative positions, attention and feed-forward in each layer, post-norm, and nothing before "
            "the softmax; this model has not"
        )
    return source.other_mask or no_xlnet_tokenizer(source)


def xlnet_config(settings: dict[str, Any]) -> TransformerConfig:
    """Our configuration from the fields of a ``config.json``, or of the published code's ``xlnet_config.json``.

    Raises:
        UnifiedError: a field is missing, or asks for what this Transformer does not do.
    """
    require_model_type(settings, "xlnet")
    if settings.get("same_length", False):
        raise UnifiedError("config.json: same_length True; only False is built")
    with reading_config("an XLNet's"):
        heads, width = settings["n_head"], settings["d_model"]
        size = settings.get("d_head")
        if size is not None and size * heads != width:
            raise UnifiedError(f"config.json: {heads} heads of {size} do not make d_model {width}")
        dropout = settings.get("dropout", 0.1)
        config = TransformerConfig(
            vocabulary_size=settings["vocab_size"] if "vocab_size" in settings else settings["n_token"],
            layers=settings["n_layer"],
            width=width,
            heads=heads,
            feed_forward=settings["d_inner"],
            positions="relative",
            attn_type=settings.get("attn_type", "bi"),
            clamp_len=max(settings.get("clamp_len", -1), 0),
            token_head="plain",
            activation=activation_of(settings.get("ff_activation", "gelu"), "ff_activation"),
            dropout=dropout,
            attention_dropout=dropout,
            inner_dropout=dropout,
            norm_epsilon=settings.get("layer_norm_eps", 1e-12),
            initializer_range=settings.get("initializer_range", 0.02),
        )
        return with_own_fields(config, settings, _OWN_FIELDS)


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor], list[str]]:
    """Settings, parameters under the names of ``transformers``, and names of parameters that are left out."""
    prefix = find_tensorflow(folder)
    if prefix is None or (folder / "model.safetensors").is_file() or any(folder.glob("*.bin")):
        return read_config(folder / CONFIG), read_parameters(folder), []
    settings = read_config(folder / "xlnet_config.json")
    if settings.get("ff_activation", "gelu") == "gelu":
        settings["ff_activation"] = "gelu_new"  # the published code approximates by tanh
    variables, optimizer = load_tensorflow(prefix)
    parameters, heads = from_tensorflow(variables, xlnet_config(settings).layers)
    return settings, parameters, [*counted(optimizer), *heads]
