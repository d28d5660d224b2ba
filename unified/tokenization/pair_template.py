"""Template by which a ``tokenizer.json`` joins two texts that a model reads together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from unified.files.json_text import read_object
from unified.tokenization.json_tokenizer import refusals

#: A tokenizer of one symbol, which a text of it becomes.
_ONE_SYMBOL = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}


@dataclass(frozen=True)
class PairTemplate:
    """Template by which the post-processor of a ``tokenizer.json`` joins two texts.

    Attributes:
        between: ids of the symbols between the two texts; none where the second does not follow the first.
        second_type: token type of the second text.
    """

    between: tuple[int, ...]
    second_type: int


def read_pair_template(path: Path) -> PairTemplate | None:
    """The template of a ``tokenizer.json``; None where it puts no symbols around texts.

    Raises:
        UnifiedError: the library tokenizers does not read its post-processor.
    """
    processor = read_object(path).get("post_processor")
    with refusals(f"{path}: post_processor is not one that the library tokenizers reads"):
        found = Tokenizer.from_str(json.dumps({**_ONE_SYMBOL, "post_processor": processor})).encode("a", "a")
    owners = found.sequence_ids  # the number of the text that a symbol is of, None for those around texts
    if None not in owners:
        return None
    if [owner for owner in owners if owner is not None] != [0, 1]:
        return PairTemplate((), 0)
    first, second = owners.index(0), owners.index(1)
    return PairTemplate(tuple(found.ids[first + 1 : second]), found.type_ids[second])
