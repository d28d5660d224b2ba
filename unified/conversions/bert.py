"""Folders of this library from folders of ``transformers``' or TensorFlow's BERT, and the reverse to ``transformers``.

The rows of the embedding tables follow each side's dictionary: fairseq's begins with ``<s> <pad> </s> <unk>`` and ends
with ``<mask>`` and the sentinels, BERT's is ``vocab.txt``.
"""

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
    lengths_of,
    over_tokenizer,
    require_model_type,
    with_heads_of,
)
from unified.checkpoints.sources import counted, read_config, read_parameters, reading_config
from unified.checkpoints.tensorflow import find_tensorflow, load_tensorflow
from unified.checkpoints.trained import Trained
from unified.conversions.bert_names import from_bert, from_tensorflow, to_bert
from unified.conversions.export import OWN_SETTINGS, Source, has_plain_layers, with_own_fields, write_folder
from unified.conversions.task_heads import BERT, fine_tuned, take_head
from unified.conversions.tokenizers import bert_tokenizer_files, no_bert_tokenizer
from unified.data.vocabulary import BEGIN, PAD, SEPARATOR
from unified.errors import UnifiedError
from unified.files.model_folders import CONFIG
from unified.generation.schemes import SCHEMES
from unified.model import TransformerConfig
from unified.tokenization import Tokenizer, load_tokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer
from unified.tokenization.wordpiece_files import JSON_NAME, SETTINGS_NAME, VOCABULARY_NAME

#: Fields of our configuration for which BERT's class has none.
_OWN_FIELDS = ("inner_dropout",)


def read_bert(source: Path, writes: str | None = None) -> Imported:
    """Read a folder of ``transformers`` or TensorFlow, of a language model, an encoder, or a fine-tuned model.

    Args:
        source: holds ``config.json``, ``tokenizer.json`` or ``vocab.txt``, and ``model.safetensors``,
            ``pytorch_model.bin`` or another single ``*.bin``; or ``bert_config.json``, ``vocab.txt`` and a TensorFlow
            checkpoint.
        writes: name of the decoding scheme by which it shall write, or "nothing"; None for what an export of this
            library noted, else "left_to_right" where it has UniLM's six token types, and "nothing" where it has not.

    Where neither ``tokenizer_config.json`` nor ``tokenizer.json`` says whether the model is cased, capital letters in
    ``vocab.txt`` do.

    Raises:
        UnifiedError: a file is missing or is not what it should be.
    """
    source = Path(source)
    tokenizer = read_tokenizer(source)
    return of_parameters(source, *_read(source), tokenizer, writes, "BertTokenizer")


def of_parameters(
    source: Path,
    settings: dict[str, Any],
    parameters: dict[str, torch.Tensor],
    left_out: list[str],
    tokenizer: Tokenizer,
    writes: str | None,
    usual_class: str,
) -> Imported:
    """The model of parameters under BERT's names.

    Args:
        source: where they came from, for messages.
        settings: fields of ``config.json``, in BERT's words.
        left_out: what of the file is not among them.
        usual_class: of the tokenizer, where no file names one.

    Raises:
        UnifiedError: as :func:`read_bert`.
    """
    own = settings.get(OWN_SETTINGS) or {}
    head, parameters, unread = take_head(BERT, settings, parameters, own.get("head") or {})
    config = bert_config(settings)
    found, new = from_bert(parameters, config.layers)
    config, new, remarks = with_heads_of(found, new, config)
    config, found, vocabulary, beyond = over_tokenizer(source, config, found, tokenizer, usual_class)
    left_out = [*left_out, *beyond]
    if head is not None:
        found = {name: value for name, value in found.items() if not name.startswith("heads.next_sentence.")}
        trained = Trained(
            config,
            "nothing",
            found | dict(head.parameters),
            vocabulary,
            head.record,
            own.get("longest") or config.max_positions,
        )
        return Imported(trained, tokenizer, Conversion(left_out=(*left_out, *unread)))
    usual = "left_to_right" if config.token_types >= SCHEMES["cloze"].token_types else "nothing"
    scheme, said = decoding(config, writes or own.get("writes"), usual)
    told = Conversion(new=tuple(new), left_out=tuple(left_out), remarks=(*remarks, *said))
    lengths = lengths_of(own)
    return Imported(Trained(config, scheme, found, vocabulary, lengths=lengths), tokenizer, told)


def export_bert(source: Source, destination: Path) -> Conversion:
    """Make a folder for ``transformers`` from a model of BERT's kind.

    A model that was fine-tuned for one task loads there as BertForSequenceClassification or the like, see
    :mod:`unified.conversions.task_heads`. Any other loads as BertForPreTraining, as BertForMaskedLM where it has no
    next-sentence head, or as BertModel where it has no token head.

    Args:
        source: the model.
        destination: must not exist, or be empty.

    Raises:
        UnifiedError: the model is not BERT's kind, or its tokenizer cannot be written; nothing is written.
    """
    config, reason = source.config, no_bert(source)
    if reason is not None:
        raise UnifiedError(f"{source.name}: {reason}")
    files = bert_tokenizer_files(source)
    parameters = source.by_rows_of(files.symbols)
    own: dict[str, Any] = {"writes": source.trained.writes, **source.trained.lengths.state()}
    others = {name: getattr(config, name) for name in _OWN_FIELDS}
    head = source.exported_head(BERT)
    if head is None:
        parameters = {name: value for name, value in parameters.items() if name not in source.left_out}
        architecture, found, left_out = to_bert(parameters, config.layers)
        fields: dict[str, Any] = {"architectures": [architecture]}
        left_out = [*left_out, *source.left_out]
    else:
        name, record = head
        encoder = {mine: value for mine, value in parameters.items() if mine.startswith("transformer.")}
        below = {f"bert.{theirs}": value for theirs, value in to_bert(encoder, config.layers)[1].items()}
        fields, found, left_out = fine_tuned(BERT, name, record, parameters, below)
        if not any(one.startswith(f"heads.{name}.") for one in left_out):
            own = {"head": dict(record), "longest": source.trained.longest}
    settings = {
        **fields, "model_type": "bert", "vocab_size": len(files.symbols),
        "hidden_size": config.width, "num_hidden_layers": config.layers, "num_attention_heads": config.heads,
        "intermediate_size": config.feed_forward, "hidden_act": ACTIVATIONS[config.activation],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout, "max_position_embeddings": config.max_positions,
        "type_vocab_size": config.token_types, "initializer_range": config.initializer_range,
        "layer_norm_eps": config.norm_epsilon, "pad_token_id": files.symbols.index(PAD),
        OWN_SETTINGS: {**own, **others},
    }  # fmt: skip
    write_folder(destination, settings, found, files.save, source.dtype)
    return Conversion(left_out=tuple(left_out), remarks=files.remarks)


def no_bert(source: Source) -> str | None:
    """Why a model cannot be one of BERT's class; None where it can."""
    config = source.config
    plain = config.positions == "learned" and config.token_head in ("transform", "none")
    if config.sublayers != "self,feed_forward" or config.norm != "post" or not plain or not has_plain_layers(config):
        return (
            "BERT's layers are self-attention and feed-forward, post-norm, with learned positions and a transform "
            "before the softmax; this model's are not"
        )
    return source.other_mask or no_bert_tokenizer(source)


def bert_config(settings: dict[str, Any]) -> TransformerConfig:
    """Our configuration from the fields of a ``config.json``.

    Raises:
        UnifiedError: a field is missing, or asks for what this Transformer does not do.
    """
    require_model_type(settings, "bert")
    activation = activation_of(settings.get("hidden_act", "gelu"), "hidden_act")
    if settings.get("position_embedding_type", "absolute") != "absolute":
        raise UnifiedError(
            f"config.json: position_embedding_type {settings['position_embedding_type']!r}, not 'absolute'"
        )
    with reading_config("a BERT's"):
        config = TransformerConfig(
            vocabulary_size=settings["vocab_size"],
            layers=settings["num_hidden_layers"],
            width=settings["hidden_size"],
            heads=settings["num_attention_heads"],
            feed_forward=settings["intermediate_size"],
            max_positions=settings["max_position_embeddings"],
            token_types=settings["type_vocab_size"],
            activation=activation,
            dropout=settings.get("hidden_dropout_prob", 0.1),
            attention_dropout=settings.get("attention_probs_dropout_prob", 0.1),
            norm_epsilon=settings.get("layer_norm_eps", 1e-12),
            initializer_range=settings.get("initializer_range", 0.02),
            mask="left_to_right" if settings.get("is_decoder") else "bidirectional",
        )
        return with_own_fields(config, settings, _OWN_FIELDS)


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder, as :func:`unified.tokenization.load_tokenizer` reads it.

    Raises:
        UnifiedError: there is none, or it is WordPiece without an entry for CLS or SEP.
    """
    if not any((folder / name).is_file() for name in (JSON_NAME, VOCABULARY_NAME)):
        raise UnifiedError(
            f"{folder}: holds neither {JSON_NAME} nor {VOCABULARY_NAME}, one of which BERT's folders have"
        )
    tokenizer = load_tokenizer(folder)
    if isinstance(tokenizer, WordPieceTokenizer) and not {BEGIN, SEPARATOR} <= set(tokenizer.native_symbols()):
        raise UnifiedError(
            f"{folder}: its vocabulary has no [CLS] or no [SEP], and {SETTINGS_NAME} names no entry of it as cls_token "
            "or sep_token"
        )
    return tokenizer


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor], list[str]]:
    """Configuration, parameters under the names of ``transformers``, and names of parameters that are left out."""
    files = [folder / "model.safetensors", *sorted(folder.glob("*.bin"))]
    prefix = find_tensorflow(folder)
    if prefix is not None and not any(file.is_file() for file in files):
        variables, optimizer = load_tensorflow(prefix)
        parameters, heads = from_tensorflow(variables)
        settings = read_config(folder / "bert_config.json")
        if settings.get("hidden_act", "gelu") == "gelu":
            settings["hidden_act"] = "gelu_new"  # the published code approximates by tanh
        return settings, parameters, [*counted(optimizer), *heads]
    return read_config(folder / CONFIG), read_parameters(folder), []
