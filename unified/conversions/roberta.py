"""RoBERTa of ``transformers`` (Liu et al. 2019) becomes a folder of this library.

It is BERT with other names, without next-sentence prediction, with positions that begin behind padding's id, and with
one token type: a second one, which RobertaConfig has by default, is given to no text by RoBERTa's tokenizer. Two
separators stand between two texts. XLM-RoBERTa and CamemBERT are the same with other tokenizers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from unified.arguments import counted, shown
from unified.checkpoints.conversion import Conversion, Imported
from unified.checkpoints.sources import read_config, read_parameters, reading_config
from unified.conversions.bert import of_parameters
from unified.data.vocabulary import PAD
from unified.errors import UnifiedError
from unified.files.model_folders import CONFIG
from unified.tokenization import load_tokenizer
from unified.tokenization.wordpiece_files import JSON_NAME

MODEL_TYPES = ("roberta", "xlm-roberta", "camembert")
#: Beginnings of RoBERTa's names, and what BERT has for them, the first that fits.
_NAMES = {
    "roberta.": "bert.",
    "lm_head.dense.": "cls.predictions.transform.dense.",
    "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
    "lm_head.": "cls.predictions.",
    "classifier.dense.": "bert.pooler.dense.",
    "classifier.out_proj.": "classifier.",
}
_POSITIONS = "bert.embeddings.position_embeddings.weight"
_TOKEN_TYPES = "bert.embeddings.token_type_embeddings.weight"
_HEADS = ("classifier.", "qa_outputs.", "lm_head.")


def read_transformers_roberta(source: Path, writes: str | None = None) -> Imported:
    """Read a folder of ``transformers`` with ``config.json``, ``tokenizer.json`` and parameters.

    Args:
        source: the folder.
        writes: as of :func:`unified.conversions.bert.read_bert`.

    Raises:
        UnifiedError: a file is missing or is not what it should be.
    """
    source = Path(source)
    settings = read_config(source / CONFIG)
    if settings.get("model_type") not in MODEL_TYPES:
        raise UnifiedError(
            f"config.json: model_type {settings.get('model_type')!r}; --from roberta reads {', '.join(MODEL_TYPES)}"
        )
    if not (source / JSON_NAME).is_file():
        raise UnifiedError(
            f"{source}: holds no {JSON_NAME}, which `AutoTokenizer.from_pretrained(...).save_pretrained(...)` writes"
        )
    tokenizer = load_tokenizer(source)
    _check_padding(settings.get("pad_token_id", 1), tokenizer.native_symbols())
    parameters, unused = as_bert(read_parameters(source), settings)
    read = of_parameters(source, settings_for_bert(settings), parameters, [], tokenizer, writes, "RobertaTokenizer")
    told = read.told
    new = tuple(name for name in told.new if not name.startswith("heads.next_sentence."))
    left_out = (*told.left_out, f"{counted(unused, 'row')} of positions that no token has")
    return Imported(read.trained, read.tokenizer, Conversion(new, left_out, told.remarks))


def _check_padding(pad: int | None, symbols: list[str]) -> None:
    """Refuses an id of padding that is another symbol's: ``transformers`` counts no position for such tokens."""
    if pad is None or pad < 0:
        raise UnifiedError(f"config.json: pad_token_id {pad}; positions begin behind it, so it must be at least 0")
    if pad < len(symbols) and symbols[pad] != PAD:
        raise UnifiedError(
            f"config.json: pad_token_id {pad} is {shown(symbols[pad])} in {JSON_NAME}; `transformers` would count no "
            "position for it"
        )


def as_bert(state: dict[str, torch.Tensor], settings: dict[str, Any]) -> tuple[dict[str, torch.Tensor], int]:
    """RoBERTa's parameters as BERT has them, and how many rows of positions are left out.

    Args:
        state: RoBERTa's parameters.
        settings: of ``config.json``.

    Raises:
        UnifiedError: there are no positions.
    """
    found: dict[str, torch.Tensor] = {}
    bare = not any(name.startswith("roberta.") for name in state)
    for name, value in state.items():
        if bare and not name.startswith(_HEADS):
            name = f"roberta.{name}"
        start = next((start for start in _NAMES if name.startswith(start)), "")
        found[_NAMES.get(start, "") + name.removeprefix(start)] = value
    found.pop("bert.embeddings.position_ids", None)
    if _POSITIONS not in found or _TOKEN_TYPES not in found:
        raise UnifiedError("not the parameters of a RoBERTa: it has no position or token-type embeddings")
    unused = settings.get("pad_token_id", 1) + 1
    found[_POSITIONS] = found[_POSITIONS][unused:]
    return found, unused


def settings_for_bert(settings: dict[str, Any]) -> dict[str, Any]:
    """``config.json`` in BERT's words."""
    with reading_config("a RoBERTa's"):
        positions = settings["max_position_embeddings"] - settings.get("pad_token_id", 1) - 1
        types = settings["type_vocab_size"]
    return settings | {"model_type": "bert", "max_position_embeddings": positions, "type_vocab_size": types}
