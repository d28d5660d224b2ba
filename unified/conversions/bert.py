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
    activation_of,
    decoding,
    fitting,
    require_model_type,
    with_heads_of,
)
from unified.checkpoints.sources import counted, read_parameters, read_settings
from unified.checkpoints.tensorflow import find_tensorflow, load_tensorflow
from unified.checkpoints.trained import Trained, write
from unified.checkpoints.vocabularies import over_symbols
from unified.conversions.bert_names import from_bert, from_tensorflow, to_bert
from unified.conversions.export import Source, write_folder
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.destination import new_folder
from unified.generation.schemes import SCHEMES
from unified.model import TransformerConfig
from unified.tokenization import ordinary_symbols
from unified.tokenization.wordpiece import WordPieceTokenizer
from unified.tokenization.wordpiece_files import JSON_NAME, SETTINGS_NAME, VOCABULARY_NAME
from unified.tokenization.wordpiece_files import read_settings as read_tokenizer_settings


def import_bert(source: Path, destination: Path, writes: str | None = None) -> Conversion:
    """Make a folder with dictionary, tokenizer and ``checkpoint_last.pt`` from one of ``transformers`` or TensorFlow.

    Args:
        source: holds ``config.json``, ``tokenizer.json`` or ``vocab.txt``, and ``model.safetensors``,
            ``pytorch_model.bin`` or another single ``*.bin``; or ``bert_config.json``, ``vocab.txt`` and a TensorFlow
            checkpoint.
        destination: must not exist, or be empty.
        writes: name of the decoding scheme by which it shall write, or "nothing"; None for "left_to_right" where it has
            UniLM's six token types, and "nothing" where it has not.

    Where neither ``tokenizer_config.json`` nor ``tokenizer.json`` says whether the model is cased, capital letters in
    ``vocab.txt`` do.

    Raises:
        UnifiedError: a file is missing or is not what it should be; nothing is written.
    """
    source = Path(source)
    tokenizer = _tokenizer(source)
    settings, parameters, left_out = _read(source)
    config = bert_config(settings)
    found, new = from_bert(parameters, config.layers)
    config, new, remarks = with_heads_of(found, new, config)
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    if config.vocabulary_size < len(tokenizer.entries):
        raise UnifiedError(
            f"{source}: {len(tokenizer.entries)} entries in its vocabulary, {config.vocabulary_size} in config.json"
        )
    found = fitting(source, found, config)
    if config.vocabulary_size > len(tokenizer.entries):
        left_out.append(f"{config.vocabulary_size - len(tokenizer.entries)} rows that no entry of the vocabulary has")
    config = config.with_vocabulary(len(vocabulary))
    symbols, deviation = tokenizer.native_symbols(), config.initializer_range
    found = over_symbols(found, symbols, vocabulary.symbols, deviation)
    usual = "left_to_right" if config.token_types >= SCHEMES["cloze"].token_types else "nothing"
    scheme, said = decoding(config, writes, usual)
    with new_folder(destination, overwrite=False) as folder:
        tokenizer.save(folder)
        write(Trained(config, scheme, found, vocabulary), folder, destination)
    return Conversion(new=tuple(new), left_out=tuple(left_out), remarks=(*remarks, *said))


def export_bert(source: Path, destination: Path) -> Conversion:
    """Make a folder for ``transformers`` from a checkpoint with a WordPiece tokenizer.

    It loads there as BertForPreTraining, as BertForMaskedLM where the checkpoint has no next-sentence head, or as
    BertModel where it has no token head.

    Args:
        source: a checkpoint file or its folder.
        destination: must not exist, or be empty.

    Raises:
        UnifiedError: the model is not BERT's kind, or has another tokenizer; nothing is written.
    """
    trained = Source.read(source)
    config = trained.config
    plain = config.positions == "learned" and config.token_head in ("transform", "none")
    if config.sublayers != "self,feed_forward" or config.norm != "post" or not plain:
        raise UnifiedError(
            f"{trained.path}: BERT's layers are self-attention and feed-forward, post-norm, with learned positions and "
            "a transform before the softmax; this model's are not"
        )
    tokenizer = WordPieceTokenizer.load(trained.tokenizer_file(VOCABULARY_NAME, "a WordPiece tokenizer"))
    tokenizer = tokenizer.with_entries(trained.markers_beyond(tokenizer))
    architecture, found, left_out = to_bert(trained.by_rows_of(tokenizer.native_symbols()), config.layers)
    settings = {
        "architectures": [architecture], "model_type": "bert", "vocab_size": len(tokenizer.native_symbols()),
        "hidden_size": config.width, "num_hidden_layers": config.layers, "num_attention_heads": config.heads,
        "intermediate_size": config.feed_forward, "hidden_act": ACTIVATIONS[config.activation],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout, "max_position_embeddings": config.max_positions,
        "type_vocab_size": config.token_types, "initializer_range": config.initializer_range,
        "layer_norm_eps": config.norm_epsilon, "pad_token_id": tokenizer.entries.index("[PAD]"),
    }  # fmt: skip
    write_folder(destination, settings, found, tokenizer.save)
    return Conversion(left_out=(*left_out, *trained.left_out))


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
    try:
        return TransformerConfig(
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
    except KeyError as error:
        raise UnifiedError(f"config.json: no {error.args[0]}; is it a BERT's?") from None


def _tokenizer(folder: Path) -> WordPieceTokenizer:
    """The tokenizer of a folder, from ``tokenizer.json`` where there is one, as ``transformers`` reads it."""
    if (folder / JSON_NAME).is_file():
        return WordPieceTokenizer.load(folder / JSON_NAME)
    if not (folder / VOCABULARY_NAME).is_file():
        raise UnifiedError(
            f"{folder}: holds neither {JSON_NAME} nor {VOCABULARY_NAME}, one of which BERT's folders have"
        )
    tokenizer = WordPieceTokenizer.load(folder / VOCABULARY_NAME)
    if "lowercase" in read_tokenizer_settings(folder / SETTINGS_NAME) or tokenizer.has_capitals():
        return tokenizer
    return WordPieceTokenizer.load(folder / VOCABULARY_NAME, lowercase=True)


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor], list[str]]:
    """Configuration, parameters under the names of ``transformers``, and what of the file is left out."""
    files = [folder / "model.safetensors", *sorted(folder.glob("*.bin"))]
    prefix = find_tensorflow(folder)
    if prefix is not None and not any(file.is_file() for file in files):
        variables, optimizer = load_tensorflow(prefix)
        parameters, heads = from_tensorflow(variables)
        settings = read_settings(folder / "bert_config.json")
        if settings.get("hidden_act", "gelu") == "gelu":
            settings["hidden_act"] = "gelu_new"  # the published code approximates by tanh
        return settings, parameters, [*counted(optimizer), *heads]
    return read_settings(folder / "config.json"), read_parameters(folder), []
