"""Tokenizers of this library as files that ``transformers`` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.checkpoints.vocabularies import SCORED
from unified.conversions.export import Source
from unified.data.vocabulary import BEGIN, MASK, PAD, SENTINELS, SEPARATOR, UNKNOWN
from unified.tokenization.json_tokenizer import JsonTokenizer, added_token, write_special
from unified.tokenization.sentencepiece_json import sentencepiece_json
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer
from unified.tokenization.wordpiece_files import JSON_NAME, SETTINGS_NAME


@dataclass(frozen=True)
class TokenizerFiles:
    """A tokenizer as ``transformers`` has it.

    Attributes:
        symbols: of the rows of the exported tables, in order, under our names.
        save: writes the files into a folder.
    """

    symbols: list[str]
    save: Callable[[Path], None]


def bert_tokenizer_files(source: Source) -> TokenizerFiles:
    """The tokenizer of a model that is exported as a BERT.

    WordPiece is written as ``vocab.txt``, any other as ``tokenizer.json``.

    Raises:
        UnifiedError: ``transformers`` has no such tokenizer.
    """
    tokenizer, most = source.tokenizer, source.trained.longest or source.config.max_positions
    if isinstance(tokenizer, WordPieceTokenizer):
        more = _beyond(source, tokenizer.native_symbols())
        wordpiece = tokenizer.with_entries(more)

        def save(folder: Path) -> None:
            wordpiece.save(folder)
            path = folder / SETTINGS_NAME
            content = json.loads(path.read_text(encoding="utf-8")) | {"model_max_length": most}
            path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

        return TokenizerFiles(wordpiece.native_symbols(), save)
    if isinstance(tokenizer, JsonTokenizer):
        symbols, entries, content = tokenizer.native_symbols(), tokenizer.entries, tokenizer.content
    elif type(tokenizer) is SentencePieceTokenizer:
        symbols, content = tokenizer.native_symbols(), sentencepiece_json(tokenizer)
        entries = [tokenizer.processor.id_to_piece(i) for i in range(len(symbols))]
    else:
        raise source.without_tokenizer("WordPiece (vocab.txt), sentencepiece (tokenizer.model) or tokenizer.json")
    special = [symbol for symbol in (BEGIN, PAD, SEPARATOR, UNKNOWN, MASK) if symbol not in symbols]
    more = [*special, *_beyond(source, [*symbols, *special])]
    symbols, entries = [*symbols, *more], [*entries, *more]
    named = {symbol: entries[symbols.index(symbol)] for symbol in (BEGIN, PAD, SEPARATOR, UNKNOWN, MASK)}
    content = _with_special(content, named, entries, more)

    def save_json(folder: Path) -> None:
        text = json.dumps(content, ensure_ascii=False)
        (folder / JSON_NAME).write_text(text + "\n", encoding="utf-8")
        write_special(folder / SETTINGS_NAME, named, model_max_length=most)

    return TokenizerFiles(symbols, save_json)


def _beyond(source: Source, symbols: Sequence[str]) -> list[str]:
    """Symbols of the model that its tokenizer lacks: sentinels that it has learnt, and markers."""
    scored = source.trained.parameters.get(SCORED)
    index = source.trained.vocabulary.index
    sentinels = [one for one in SENTINELS if one not in symbols and (scored is None or scored[index(one)] > 0.5)]
    return [*sentinels, *source.markers_beyond(symbols)]


def _with_special(
    content: Mapping[str, Any], named: Mapping[str, str], entries: Sequence[str], more: Sequence[str]
) -> dict[str, Any]:
    """A ``tokenizer.json`` whose special symbols are found in texts, and which puts CLS and SEP around texts.

    Args:
        named: the entry of each of our special symbols.
        entries: all of them, in the order of their ids.
        more: entries that the tokenizer's model lacks.
    """
    ids = {entry: i for i, entry in enumerate(entries)}
    before = content.get("added_tokens") or []
    known = {one["content"] for one in before}
    new = [added_token(ids[entry], entry) for entry in dict.fromkeys([*named.values(), *more]) if entry not in known]
    return {
        **content,
        "added_tokens": sorted([*before, *new], key=lambda one: one["id"]),
        "post_processor": _template(named[BEGIN], named[SEPARATOR], ids),
        "truncation": None,
        "padding": None,
    }


def _template(first: str, separator: str, ids: Mapping[str, int]) -> dict[str, Any]:
    """CLS A SEP, and CLS A SEP B SEP with token type 1 from B on."""

    def symbol(entry: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": entry, "type_id": segment}}

    single = [symbol(first, 0), {"Sequence": {"id": "A", "type_id": 0}}, symbol(separator, 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}, symbol(separator, 1)],
        "special_tokens": {
            entry: {"id": entry, "ids": [ids[entry]], "tokens": [entry]} for entry in (first, separator)
        },
    }
