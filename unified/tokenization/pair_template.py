"""Template by which the tokenizer of a folder of ``transformers`` joins two texts that a model reads together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from unified.errors import UnifiedError
from unified.files.json_text import read_object
from unified.files.model_folders import CONFIG
from unified.files.shapes import Maybe, misfit
from unified.tokenization.json_tokenizer import refusals
from unified.tokenization.wordpiece_files import JSON_NAME, SETTINGS_NAME

#: A tokenizer of one symbol, which a text of it becomes.
_ONE_SYMBOL = {"version": "1.0", "model": {"vocab": {"a": 0}, "unk_token": "a"}}
#: Classes of ``transformers`` 5 that join texts in BERT's way, whatever ``tokenizer.json`` says, and whether they give
#: token types where ``model_input_names`` does not say.
_BERTS = {
    f"{name}Tokenizer": name not in ("DPRReader", "DistilBert")
    for name in (
        "Bert", "ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "DistilBert", "Electra",
        "LayoutLM", "Lxmert", "MobileBert", "SqueezeBert",
    )
}  # fmt: skip
_FIELDS = {"tokenizer_class": Maybe((str, None)), "model_input_names": Maybe([str])}


@dataclass(frozen=True)
class PairTemplate:
    """Template by which a tokenizer joins two texts.

    Attributes:
        between: ids of the symbols between the two texts; none where the second does not follow the first, None where
            the template is BERT's or there are no symbols around texts.
        second_type: token type of the second text and what stands behind it, where all before it has type 0; else None.
    """

    between: tuple[int, ...] | None
    second_type: int | None


def read_pair_template(folder: Path, usual_class: str) -> PairTemplate:
    """The template of a folder's tokenizer, as ``transformers`` 5 reads it.

    BERT's classes have a template of their own; for others that of ``tokenizer.json`` counts. All token types are 0
    where the tokenizer gives none: ``model_input_names`` of ``tokenizer_config.json`` says so, or else the class.

    Args:
        folder: may hold ``tokenizer.json`` and ``tokenizer_config.json``.
        usual_class: of the tokenizer, where no file names one.

    Raises:
        UnifiedError: the library tokenizers does not read the post-processor, or a setting is no text or list of them.
    """
    stated = [_settings(folder / name) for name in (SETTINGS_NAME, CONFIG)]
    named = next((found for one in stated if (found := one.get("tokenizer_class"))), usual_class)
    name = named.removesuffix("Fast")
    found = PairTemplate(None, 1) if name in _BERTS else _of_json(folder / JSON_NAME)
    names = stated[0].get("model_input_names", ["token_type_ids"] if _BERTS.get(name) else [])
    return found if "token_type_ids" in names else PairTemplate(found.between, 0)


def _settings(path: Path) -> dict[str, Any]:
    settings = read_object(path) if path.is_file() else {}
    wrong = misfit(settings, _FIELDS, "")
    if wrong is not None:
        raise UnifiedError(f"{path}: {wrong}")
    return settings


def _of_json(path: Path) -> PairTemplate:
    """The template of a ``tokenizer.json``; without one that of the library tokenizers, which adds no symbols."""
    processor = read_object(path).get("post_processor") if path.is_file() else None
    with refusals(f"{path}: post_processor is not one that the library tokenizers reads"):
        found = Tokenizer.from_str(json.dumps({**_ONE_SYMBOL, "post_processor": processor})).encode("a", "a")
    owners = found.sequence_ids  # the number of the text that a symbol is of, None for those around texts
    if [owner for owner in owners if owner is not None] != [0, 1]:
        return PairTemplate((), None)
    first, second = owners.index(0), owners.index(1)
    before, behind = set(found.type_ids[:second]), set(found.type_ids[second:])
    second_type = behind.pop() if before == {0} and len(behind) == 1 else None
    return PairTemplate(tuple(found.ids[first + 1 : second]) if None in owners else None, second_type)
