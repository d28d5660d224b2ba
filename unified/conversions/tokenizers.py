"""Tokenizers of this library as files that ``transformers`` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unified.checkpoints.vocabularies import SCORED
from unified.conversions.export import Source
from unified.data.vocabulary import BEGIN, SENTINELS, SEPARATOR, UNKNOWN
from unified.files.whole import write_whole_text
from unified.model import TransformerConfig
from unified.objectives.xlnet import CLS_TYPE
from unified.tokenization.anna import AnnaTokenizer
from unified.tokenization.anna_json import anna_json, no_anna_json
from unified.tokenization.json_tokenizer import SPECIAL_FIELDS, JsonTokenizer, added_token, write_special
from unified.tokenization.sentencepiece_json import drops_marks, sentencepiece_json
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer
from unified.tokenization.wordpiece import SPECIAL_ENTRIES, WordPieceTokenizer
from unified.tokenization.wordpiece_files import CONTINUATION, JSON_NAME, SETTINGS_NAME, VOCABULARY_NAME
from unified.tokenization.xlnet import FILE_NAME as XLNET_NAME
from unified.tokenization.xlnet import PIECES_NAME, XLNetTokenizer
from unified.tokenization.xlnet_json import xlnet_json

#: Remark on a ``tokenizer.json`` for which :func:`drops_marks` holds.
MARKS = (
    "tokenizer.json drops combining marks behind characters that the sentencepiece model replaces, as the library "
    "tokenizers has no other rule; give it texts in the form NFC, where an accented letter is one character"
)


@dataclass(frozen=True)
class TokenizerFiles:
    """A tokenizer as ``transformers`` has it.

    Attributes:
        symbols: of the rows of the exported tables, in order, under our names.
        save: writes the files into a folder.
        remarks: how they may divide texts in another way.
    """

    symbols: list[str]
    save: Callable[[Path], None]
    remarks: tuple[str, ...] = ()

    def with_another(self, save: Callable[[Path], object]) -> TokenizerFiles:
        """A copy that writes further files, by which another library reads the tokenizer."""

        def save_both(folder: Path) -> None:
            self.save(folder)
            save(folder)

        return replace(self, save=save_both)


def no_bert_tokenizer(source: Source) -> str | None:
    """Why a model's tokenizer cannot be written beside a BERT; None where it can."""
    tokenizer, separators = source.tokenizer, source.config.pair_separators
    if isinstance(tokenizer, WordPieceTokenizer) and separators > 1:
        return f"{VOCABULARY_NAME} stands for one separator between two texts, and the model reads {separators}"
    if isinstance(tokenizer, WordPieceTokenizer | JsonTokenizer) or type(tokenizer) is SentencePieceTokenizer:
        return None
    return source.other_tokenizer("WordPiece (vocab.txt), sentencepiece (tokenizer.model) or tokenizer.json")


def no_xlnet_tokenizer(source: Source) -> str | None:
    """Why a model's tokenizer cannot be written beside an XLNet; None where it can."""
    if isinstance(source.tokenizer, JsonTokenizer | XLNetTokenizer):
        return None
    return source.other_tokenizer(f"XLNet's tokenizer ({XLNET_NAME} or {JSON_NAME})")


def bert_tokenizer_files(source: Source) -> TokenizerFiles:
    """The tokenizer of a model that is exported as a BERT; :func:`no_bert_tokenizer` must have no objection.

    WordPiece is written as ``vocab.txt``, any other as ``tokenizer.json``.
    """
    tokenizer = source.tokenizer
    if isinstance(tokenizer, WordPieceTokenizer):
        whole = _with_symbols(tokenizer, _beyond(source, tokenizer.native_symbols()))
        return TokenizerFiles(whole.native_symbols(), lambda folder: _save_wordpiece(source, whole, folder))
    if isinstance(tokenizer, JsonTokenizer):
        own = tokenizer.native_symbols(), tokenizer.entries, tokenizer.content
    else:
        assert isinstance(tokenizer, SentencePieceTokenizer)
        own = _sentencepiece(tokenizer)
    return _json_files(source, *own, _beyond(source, own[0]))


def json_tokenizer_files(source: Source) -> TokenizerFiles:
    """The tokenizer as ``tokenizer.json``, for classes that read no ``vocab.txt``.

    :func:`no_bert_tokenizer` must have no objection.
    """
    tokenizer = source.tokenizer
    if not isinstance(tokenizer, WordPieceTokenizer):
        return bert_tokenizer_files(source)
    return _json_files(source, *_wordpiece(tokenizer, _beyond(source, tokenizer.native_symbols())), ())


def xlnet_tokenizer_files(source: Source) -> TokenizerFiles:
    """The tokenizer of a model that is exported as an XLNet; :func:`no_xlnet_tokenizer` must have no objection."""
    tokenizer = source.tokenizer
    if isinstance(tokenizer, JsonTokenizer):
        pieces = tokenizer.native_symbols()
        more = [*_special_beyond(pieces), *source.markers_beyond(pieces)]
        return _json_files(source, pieces, tokenizer.entries, tokenizer.content, more, padding_side="left")
    assert isinstance(tokenizer, XLNetTokenizer)
    return _xlnet_files(tokenizer, source.markers_beyond(tokenizer.native_symbols()))


def every_symbol_files(source: Source) -> TokenizerFiles:
    """The tokenizer of a model that is exported with code of its own, where every symbol of its dictionary has a row.

    ANNA's tokenizer is written as ``tokenizer.json``, where that can express it, and as it is. So is XLNet's beside
    other positions than relative ones, where CLS stands before texts. A model without a tokenizer gets one that divides
    texts at white space, as its own library reads them.
    """
    tokenizer, known = source.tokenizer, source.trained.vocabulary.symbols
    native = known if tokenizer is None else tokenizer.native_symbols()
    more = [symbol for symbol in known if symbol not in set(native)]
    if isinstance(tokenizer, XLNetTokenizer) and source.config.relative:
        return _xlnet_files(tokenizer, more)
    if isinstance(tokenizer, WordPieceTokenizer):
        own, more = _wordpiece(tokenizer, more), []
    elif isinstance(tokenizer, JsonTokenizer):
        own = native, tokenizer.entries, tokenizer.content
    elif isinstance(tokenizer, XLNetTokenizer):  # transformers' own class puts CLS behind texts
        own = native, tokenizer.entries, xlnet_json(tokenizer)
    elif isinstance(tokenizer, SentencePieceTokenizer):
        own = _sentencepiece(tokenizer)
    elif tokenizer is None:
        model = {"type": "WordLevel", "vocab": {symbol: i for i, symbol in enumerate(known)}, "unk_token": UNKNOWN}
        own = known, known, {"version": "1.0", "model": model, "pre_tokenizer": {"type": "WhitespaceSplit"}}
    elif isinstance(tokenizer, AnnaTokenizer) and no_anna_json(tokenizer) is None:
        own = native, [*tokenizer.pieces, *tokenizer.words], anna_json(tokenizer)
    else:
        return TokenizerFiles([*native, *more], tokenizer.save)
    files = _json_files(source, *own, more, clean_up_tokenization_spaces=False)
    if isinstance(tokenizer, XLNetTokenizer):
        return files.with_another(lambda folder: _save_pieces(tokenizer, folder))
    return files.with_another(tokenizer.save) if isinstance(tokenizer, AnnaTokenizer) else files


def _longest(source: Source) -> int:
    """Most tokens of a text, for ``tokenizer_config.json``."""
    return source.trained.longest or source.config.max_positions


def _save_wordpiece(source: Source, tokenizer: WordPieceTokenizer, folder: Path) -> None:
    tokenizer.save(folder)
    path = folder / SETTINGS_NAME
    content = json.loads(path.read_text(encoding="utf-8")) | {"model_max_length": _longest(source)}
    write_whole_text(path, json.dumps(content, indent=2) + "\n")


def _wordpiece(tokenizer: WordPieceTokenizer, more: Sequence[str]) -> tuple[list[str], list[str], dict[str, Any]]:
    """Symbols and entries of a WordPiece tokenizer with ``more`` symbols, and its ``tokenizer.json``."""
    whole = _with_symbols(tokenizer, more)
    decoder = {"type": "WordPiece", "prefix": CONTINUATION, "cleanup": False}
    return whole.native_symbols(), whole.entries, {**whole.content, "decoder": decoder}


def _with_symbols(tokenizer: WordPieceTokenizer, more: Sequence[str]) -> WordPieceTokenizer:
    """A copy with ``more`` symbols behind its own, special ones by BERT's entries."""
    entries = {symbol: entry for entry, symbol in SPECIAL_ENTRIES.items()}
    return tokenizer.with_entries([entries.get(symbol, symbol) for symbol in more])


def _sentencepiece(tokenizer: SentencePieceTokenizer) -> tuple[list[str], list[str], dict[str, Any]]:
    """Symbols and entries of a sentencepiece model, and its ``tokenizer.json``."""
    symbols = tokenizer.native_symbols()
    return symbols, tokenizer.entries, sentencepiece_json(tokenizer)


def _json_files(
    source: Source,
    symbols: Sequence[str],
    entries: Sequence[str],
    content: Mapping[str, Any],
    more: Sequence[str],
    **settings: object,
) -> TokenizerFiles:
    """A tokenizer as ``tokenizer.json``.

    Args:
        symbols, entries: our names and the tokenizer's own, in the order of the ids.
        content: of its ``tokenizer.json``.
        more: symbols that it lacks, whose entries are called like them or :func:`_free_entry`.
        settings: further fields of ``tokenizer_config.json``.
    """
    new = [_free_entry(symbol, entries) for symbol in more]
    symbols, entries = [*symbols, *more], [*entries, *new]
    named = {symbol: entries[symbols.index(symbol)] for symbol in SPECIAL_FIELDS}
    whole = _with_special(content, named, entries, new, source.config)

    def save(folder: Path) -> None:
        text = json.dumps(whole, ensure_ascii=False)
        write_whole_text(folder / JSON_NAME, text + "\n")
        write_special(folder / SETTINGS_NAME, named, model_max_length=_longest(source), **settings)

    tokenizer = source.tokenizer
    drops = type(tokenizer) is SentencePieceTokenizer and drops_marks(tokenizer)
    return TokenizerFiles(symbols, save, (MARKS,) if drops else ())


def _free_entry(symbol: str, entries: Sequence[str]) -> str:
    """The entry of a symbol that a tokenizer lacks: its name, in brackets where another symbol's entry is called so.

    A tokenizer whose texts begin and end with the same ``</s>``, as OPT's, has this entry for our ``<s>`` alone.
    """
    while symbol in entries:
        symbol = f"[{symbol}]"
    return symbol


def _save_pieces(tokenizer: XLNetTokenizer, folder: Path) -> None:
    tokenizer.save(folder)
    (folder / XLNET_NAME).rename(folder / PIECES_NAME)


def _xlnet_files(tokenizer: XLNetTokenizer, more: Sequence[str]) -> TokenizerFiles:
    pieces = tokenizer.native_symbols()

    def save(folder: Path) -> None:
        _save_pieces(tokenizer, folder)
        added = {str(len(pieces) + i): {"content": symbol, "special": True} for i, symbol in enumerate(more)}
        content = {"tokenizer_class": "XLNetTokenizer", "added_tokens_decoder": added}
        if more:
            write_whole_text(folder / SETTINGS_NAME, json.dumps(content, indent=2) + "\n")

    return TokenizerFiles([*pieces, *more], save)


def _beyond(source: Source, symbols: Sequence[str]) -> list[str]:
    """Symbols of the model that its tokenizer lacks: special ones, sentinels that it has learnt, and markers."""
    scored = source.trained.parameters.get(SCORED)
    index = source.trained.vocabulary.index
    sentinels = [one for one in SENTINELS if one not in symbols and (scored is None or scored[index(one)] > 0.5)]
    return [*_special_beyond(symbols), *sentinels, *source.markers_beyond(symbols)]


def _special_beyond(symbols: Sequence[str]) -> list[str]:
    """Special symbols that a tokenizer with these lacks, and that texts are read with."""
    return [symbol for symbol in SPECIAL_FIELDS if symbol not in symbols]


def _with_special(
    content: Mapping[str, Any],
    named: Mapping[str, str],
    entries: Sequence[str],
    more: Sequence[str],
    config: TransformerConfig,
) -> dict[str, Any]:
    """A ``tokenizer.json`` whose special symbols are found in texts, and which puts CLS and SEP around texts.

    Offsets are without the space before a word where they were so.

    Args:
        named: the entry of each of our special symbols.
        entries: all of them, in the order of their ids.
        more: entries that the tokenizer's model lacks.
        config: of the model that reads the texts.
    """
    ids = {entry: i for i, entry in enumerate(entries)}
    before = content.get("added_tokens") or []
    known = {one["content"] for one in before}
    new = [added_token(ids[entry], entry) for entry in dict.fromkeys([*named.values(), *more]) if entry not in known]
    template = _template(named[BEGIN], named[SEPARATOR], ids, config)
    trimming = _trimming(content.get("post_processor"))
    return {
        **content,
        "added_tokens": sorted([*before, *new], key=lambda one: one["id"]),
        "post_processor": {"type": "Sequence", "processors": [*trimming, template]} if trimming else template,
        "truncation": None,
        "padding": None,
    }


def _trimming(processor: object) -> list[dict[str, Any]]:
    """Steps like those of a post-processor that take spaces at the ends of tokens out of offsets, as RoBERTa's does."""
    if not isinstance(processor, dict):
        return []
    inner = processor.get("processors")
    if isinstance(inner, list):
        return [step for one in inner for step in _trimming(one)]
    if processor.get("type") not in ("RobertaProcessing", "ByteLevel") or not processor.get("trim_offsets"):
        return []
    before = bool(processor.get("add_prefix_space", True))
    return [{"type": "ByteLevel", "add_prefix_space": before, "trim_offsets": True, "use_regex": True}]


def _template(cls: str, separator: str, ids: Mapping[str, int], config: TransformerConfig) -> dict[str, Any]:
    """CLS A SEP, and CLS A SEP B SEP with token type 1 from B on; or CLS behind them, with a type of its own.

    RoBERTa's has two SEP between A and B. With relative positions CLS stands behind texts, as XLNet has it.
    """

    def symbol(entry: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": entry, "type_id": segment}}

    first, last = ([], [symbol(cls, CLS_TYPE)]) if config.relative else ([symbol(cls, 0)], [])
    text = [*first, {"Sequence": {"id": "A", "type_id": 0}}]
    between = [symbol(separator, 0)] * config.pair_separators
    return {
        "type": "TemplateProcessing",
        "single": [*text, symbol(separator, 0), *last],
        "pair": [*text, *between, {"Sequence": {"id": "B", "type_id": 1}}, symbol(separator, 1), *last],
        "special_tokens": {entry: {"id": entry, "ids": [ids[entry]], "tokens": [entry]} for entry in (cls, separator)},
    }
