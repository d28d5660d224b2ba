"""A model of this library as a folder for ``transformers`` that brings its own code along, and the reverse.

``transformers`` calls it remote code: ``AutoModel.from_pretrained(folder, trust_remote_code=True)`` runs the files of
:mod:`unified.conversions.modeling`, which are copied into the folder. Every model of the library can leave in this way.
Parameters keep their names and values; only the rows of the tables of symbols follow the ids of the tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import torch

from unified.checkpoints.conversion import Conversion, Imported, decoding, lengths_of, require_model_type
from unified.checkpoints.heads import OPTIONAL_HEADS
from unified.checkpoints.parameters import load_parameters
from unified.checkpoints.sources import read_config, read_parameters, reading_config
from unified.checkpoints.trained import Trained
from unified.checkpoints.vocabularies import BY_SYMBOL, over_symbols
from unified.conversions.export import OWN_SETTINGS, Source, write_folder
from unified.conversions.task_heads import OWN_CODE, head_fields, with_tuples
from unified.conversions.tokenizers import every_symbol_files
from unified.data.targets import PREDICTION_HEADS
from unified.data.vocabulary import BEGIN, MASK, PAD, SEPARATOR, UNKNOWN, Vocabulary
from unified.errors import UnifiedError
from unified.files.model_folders import CONFIG, DICTIONARY
from unified.files.whole import write_whole_bytes
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import load_tokenizer, ordinary_symbols
from unified.tokenization.anna import FILE_NAME as ANNA_NAME
from unified.tokenization.anna import AnnaTokenizer
from unified.tokenization.anna_json import no_anna_json

MODEL_TYPE = "unified"
_CODE = Path(__file__).with_name("modeling")
_CONFIG_CLASS, _CLASSES = "configuration_unified.UnifiedConfig", "modeling_unified"
#: Fields of a configuration that say nothing of the model in the folder.
_NOT_EXPORTED = ("vocabulary_size", "attention_backend", "lstm")
_SPECIAL = {
    "cls_token_id": BEGIN, "pad_token_id": PAD, "sep_token_id": SEPARATOR, "unk_token_id": UNKNOWN,
    "mask_token_id": MASK,
}  # fmt: skip


def export_with_code(source: Source, destination: Path) -> Conversion:
    """Make a folder for ``transformers`` with the code of its model.

    AutoModel loads it as UnifiedModel, AutoModelForMaskedLM as UnifiedForMaskedLM, and so does AutoModelForCausalLM
    where the model writes texts. A model that was fine-tuned for one task is a UnifiedForSequenceClassification or the
    like, see :mod:`unified.conversions.task_heads`.

    Args:
        source: the model.
        destination: must not exist, or be empty.

    Raises:
        UnifiedError: the tokenizer cannot be written; nothing is written.
    """
    files, head = every_symbol_files(source), source.exported_head(OWN_CODE)
    parameters = source.ordered(files.symbols)
    if head is None:
        fields, found = _language(source, parameters)
    else:
        fields, found = _task(source, *head, parameters)
    settings = {
        "model_type": MODEL_TYPE, "vocabulary_size": len(files.symbols), **_shape(source.config), **fields,
        **{name: files.symbols.index(symbol) for name, symbol in _SPECIAL.items()},
    }  # fmt: skip

    def save_others(folder: Path) -> None:
        files.save(folder)
        source.trained.vocabulary.save(folder / DICTIONARY)
        for path in sorted(_CODE.glob("*_unified.py")):
            write_whole_bytes(folder / path.name, path.read_bytes())

    write_folder(destination, settings, found, save_others, source.dtype)
    best = [*settings["auto_map"]][-1]  # a head, where it has one
    remarks = [f"it loads with its own code: {best}.from_pretrained({str(destination)!r}, trust_remote_code=True)"]
    remarks += files.remarks
    reason = no_anna_json(source.tokenizer) if isinstance(source.tokenizer, AnnaTokenizer) else None
    if reason is not None:
        remarks.append(f"transformers cannot read its tokenizer, {ANNA_NAME}, unified.load does: {reason}")
    return Conversion(left_out=tuple(name for name in parameters if name not in found), remarks=tuple(remarks))


def _language(source: Source, parameters: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Fields of ``config.json`` and parameters of a language model or an encoder."""
    found = {name: value for name, value in parameters.items() if name not in source.left_out}
    heads = [head for head in PREDICTION_HEADS if _has_head(head, found)]
    classes = {"AutoModel": "UnifiedModel"}
    if "token" in heads:
        classes["AutoModelForMaskedLM"] = "UnifiedForMaskedLM"
        if source.trained.writes != "nothing":
            classes["AutoModelForCausalLM"] = "UnifiedForMaskedLM"
    own = {"prediction_heads": heads, "decoding": source.trained.writes, **source.trained.lengths.state()}
    return {"architectures": [[*classes.values()][-1]], **_auto_map(classes), **own}, found


def _task(
    source: Source, name: str, head: Mapping[str, Any], parameters: dict[str, torch.Tensor]
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Fields of ``config.json`` and parameters of a model with the head of a task."""
    found = {n: value for n, value in parameters.items() if n.startswith(("transformer.", f"heads.{name}."))}
    fields = head_fields(OWN_CODE, head)
    (architecture,) = fields["architectures"]
    classes = {"AutoModel": "UnifiedModel", architecture.replace("Unified", "AutoModel"): architecture}
    own = {"token_head": "none", "prediction_heads": [], "task_head": name}
    record = {"head": dict(head), "longest": source.trained.longest}
    return {**fields, **_auto_map(classes), **own, OWN_SETTINGS: record}, found


def _auto_map(classes: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The field that names the class of the folder's code for each of ``transformers``' automatic classes."""
    return {"auto_map": {"AutoConfig": _CONFIG_CLASS, **{auto: f"{_CLASSES}.{own}" for auto, own in classes.items()}}}


def read_with_code(source: Path, writes: str | None = None) -> Imported:
    """Read a folder that :func:`export_with_code` made, or that ``transformers`` saved again; its code is not run.

    Args:
        source: the folder. Where it has no dictionary of the library, the tokenizer's symbols are the dictionary.
        writes: name of the decoding scheme by which it shall write, or "nothing"; None for what ``config.json`` says.

    Raises:
        UnifiedError: a file is missing or is not what it should be.
    """
    source = Path(source)
    settings, parameters = read_config(source / CONFIG), read_parameters(source)
    tokenizer = load_tokenizer(source)
    require_model_type(settings, MODEL_TYPE)
    own = {name: settings[name] for name in _shape(TransformerConfig()) if name in settings}
    path = source / DICTIONARY
    vocabulary = Vocabulary.load(path) if path.is_file() else Vocabulary(ordinary_symbols(tokenizer))
    native = tokenizer.native_symbols()
    symbols = [*native, *(symbol for symbol in vocabulary.symbols if symbol not in set(native))]
    rows = {len(parameters[name]) for name in BY_SYMBOL if name in parameters}
    if rows != {len(symbols)}:
        raise UnifiedError(
            f"{source}: {len(symbols)} symbols in its tokenizer and dictionary, and tables of "
            f"{', '.join(map(str, sorted(rows))) or 'no'} rows"
        )
    with reading_config("a model of this library"):
        config = TransformerConfig(vocabulary_size=len(vocabulary), **own)
    found = over_symbols(parameters, symbols, vocabulary.symbols, config.initializer_range)
    found = {name: value.float() for name, value in found.items()}
    name = settings.get("task_head") or ""
    of_task = [f"heads.{name}."] if name else []
    new, heads = load_parameters(UnifiedModel.for_language(config), found, OPTIONAL_HEADS, of_task)
    if name:
        own_settings = settings.get(OWN_SETTINGS) or {}
        if not heads or "head" not in own_settings:
            raise UnifiedError(
                f"{source}: task_head {name!r} in config.json, but its parameters or settings are missing"
            )
        record = own_settings["head"]
        head = {**record, "settings": {one: with_tuples(value) for one, value in record["settings"].items()}}
        trained = Trained(config, "nothing", found, vocabulary, {name: head}, own_settings["longest"])
        return Imported(trained, tokenizer, Conversion())
    scheme, said = decoding(config, writes, str(settings.get("decoding", "nothing")))
    lengths = lengths_of(settings)
    told = Conversion(new=tuple(new), remarks=tuple(said if writes else ()))
    return Imported(Trained(config, scheme, found, vocabulary, lengths=lengths), tokenizer, told)


def _shape(config: TransformerConfig) -> dict[str, Any]:
    """Fields of a configuration that an export has."""
    names = (field.name for field in fields_of(config))
    return {name: getattr(config, name) for name in names if name not in _NOT_EXPORTED}


def _has_head(head: str, parameters: dict[str, Any]) -> bool:
    """Whether all of a head is there; of next-sentence prediction a file may have the pooler alone."""
    parts = OPTIONAL_HEADS if head == "next_sentence" else (f"heads.{head}.",)
    return all(any(name.startswith(part) for name in parameters) for part in parts)
