"""XLNet's tokenizer as the content of a ``tokenizer.json``, for models that read texts in another order than XLNet."""

from __future__ import annotations

from typing import Any

from unified.tokenization.sentencepiece_json import sentencepiece_json
from unified.tokenization.xlnet import XLNetTokenizer, comma_behind_digit

#: Penalty of a piece that is a number with a comma behind it (``XLNetConverter`` of ``transformers``).
_COMMA_PENALTY = 100.0
_BEFORE = [
    {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
    {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
    {"type": "NFKD"},
    {"type": "StripAccents"},
]


def xlnet_json(tokenizer: XLNetTokenizer) -> dict[str, Any]:
    """The content of a ``tokenizer.json`` that divides texts like ``tokenizer``; nothing is put around them.

    A number before a comma may be divided into other pieces than those that the published code makes of it, and control
    pieces such as ``<eod>`` are found where a text has their names, as in ``transformers``.

    Raises:
        UnifiedError: as :func:`unified.tokenization.sentencepiece_json.sentencepiece_json`.
    """
    content = sentencepiece_json(tokenizer)
    (space, *others), model = content["normalizer"]["normalizers"], content["model"]
    if model["type"] == "Unigram":
        entries = [[piece, score - _COMMA_PENALTY * comma_behind_digit(piece)] for piece, score in model["vocab"]]
        model = {**model, "vocab": entries}
    else:
        model = {**model, "merges": [pair for pair in model["merges"] if not comma_behind_digit("".join(pair))]}
    return {**content, "normalizer": {"type": "Sequence", "normalizers": [space, *_BEFORE, *others]}, "model": model}
