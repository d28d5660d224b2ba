"""ANNA's tokenizer as the content of a ``tokenizer.json``, which the library ``tokenizers`` reads.

What :class:`unified.tokenization.anna.AnnaTokenizer` does by looking chunks up, a regular expression says here: a chunk
between white space is divided around a word of the vocabulary, if only marks of a sentence stand beside that, and else
at punctuation. WordPiece then divides what is left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from unified.tokenization.anna import MARKS, AnnaTokenizer
from unified.tokenization.wordpiece_files import CONTINUATION, LONGEST_WORD

#: White space by which Python divides texts; ``tokenizers`` does not take the last four characters for it.
_WHITE_SPACE = r"[\s\x1c-\x1f]+"
#: BERT's punctuation: ASCII's, currency and other symbols among them, and the categories P of Unicode.
_PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
#: BERT's Chinese characters, which are words of their own.
_CHINESE = (
    r"[\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{20000}-\x{2a6df}\x{2a700}-\x{2b73f}\x{2b740}-\x{2b81f}"
    r"\x{2b920}-\x{2ceaf}\x{f900}-\x{faff}\x{2f800}-\x{2fa1f}]"
)
_MARKS = "[" + "".join(map(re.escape, MARKS)) + "]*"


def no_anna_json(tokenizer: AnnaTokenizer) -> str | None:
    """Why a tokenizer cannot be written as ``tokenizer.json``; None where it can."""
    wrong = next((word for word in tokenizer.words if word[0] in MARKS), None)
    if wrong is None:
        return None
    return f"tokenizer.json cannot say that the word {wrong!r}, which begins with a mark, stays whole"


def anna_json(tokenizer: AnnaTokenizer) -> dict[str, Any]:
    """The content of a ``tokenizer.json`` that divides texts like ``tokenizer``; nothing is put around them.

    It differs where characters that BERT removes, such as a soft hyphen, stand in or beside a word that stays whole,
    and at punctuation that Unicode has since its version 9, such as U+2E43, which BERT's rules here do not know.
    :func:`no_anna_json` must have no objection.
    """
    entries = {entry: i for i, entry in enumerate([*tokenizer.pieces, *tokenizer.words])}
    made = Tokenizer(models.WordPiece(entries, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_WHITE_SPACE), " "),
            normalizers.BertNormalizer(
                clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
            ),
        ]
    )
    word = rf"(?<=\A{_MARKS}){_any_of(tokenizer.words)}(?={_MARKS}\z)"
    divided = "|".join([*([word] if tokenizer.words else []), _PUNCTUATION, _CHINESE])
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(divided), "isolated")]
    )
    made.decoder = decoders.WordPiece(prefix=CONTINUATION, cleanup=False)
    return json.loads(made.to_str())


def _any_of(words: Iterable[str]) -> str:
    """A regular expression of many words, the longest that fits first; words with equal beginnings share them."""
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for character in word:
            node = node.setdefault(character, {})
        node[""] = {}
    return _expression(tree)


def _expression(node: dict[str, Any]) -> str:
    branches = [re.escape(character) + _expression(below) for character, below in node.items() if character]
    if not branches:
        return ""
    whole = branches[0] if len(branches) == 1 and "" not in node else f"(?:{'|'.join(branches)})"
    return f"{whole}?" if "" in node else whole
