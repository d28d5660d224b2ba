"""Files that a WordPiece tokenizer is read from: ``vocab.txt`` or ``tokenizer.json``, and ``tokenizer_config.json``.

``transformers`` 4 writes the first two, version 5 the last two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unified.arguments import counted, shown
from unified.errors import UnifiedError, first_few
from unified.files.json_text import read_object
from unified.files.model_folders import CONFIG
from unified.files.shapes import Each, Maybe, misfit
from unified.files.whole import write_whole_text

VOCABULARY_NAME, JSON_NAME, SETTINGS_NAME = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
#: Ids of the entries behind those of ``vocab.txt``.
ADDED_NAME = "added_tokens.json"
#: Beginning of the pieces inside a word.
CONTINUATION = "##"
#: A longer word is unknown.
LONGEST_WORD = 100
#: Settings of our tokenizer under the names that ``tokenizer_config.json`` and ``tokenizer.json`` have for them.
_CONFIG_FIELDS = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "split_chinese": "tokenize_chinese_chars",
}
_NORMALIZER_FIELDS = {
    "lowercase": "lowercase",
    "strip_accents": "strip_accents",
    "split_chinese": "handle_chinese_chars",
}
#: Classes of ``transformers`` that divide texts by ``vocab.txt`` as BERT's does; their names may end in "Fast".
_CLASSES = frozenset(
    f"{name}Tokenizer"
    for name in (
        "Bert", "ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "DistilBert", "Electra", "LayoutLM",
        "Lxmert", "MobileBert", "PreTrained", "Realm", "RetriBert", "Splinter", "SqueezeBert",
    )
) | {"TokenizersBackend"}  # fmt: skip
#: Fields of ``tokenizer_config.json`` that Japanese BERTs have, whose words are not those between white space.
_OTHER_WORDS = ("word_tokenizer_type", "subword_tokenizer_type")
#: Field of ``tokenizer_config.json`` with the tokens that are added, by their ids.
_ADDED = {"added_tokens_decoder": Maybe(Each({"content": str, "special": Maybe(bool)}))}
#: Contents of ``tokenizer.json`` that make a tokenizer BERT's, by their section.
_REQUIRED: dict[str, dict[str, object]] = {
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": CONTINUATION,
        "max_input_chars_per_word": LONGEST_WORD,
    },
    "normalizer": {"type": "BertNormalizer", "clean_text": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}


def read_entries(path: Path) -> list[str]:
    """Entries of ``vocab.txt`` in the order of their ids.

    Raises:
        UnifiedError: it is not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UnifiedError(f"{path}: not UTF-8 at byte {error.start}; vocab.txt is a UTF-8 text file") from None
    return text.removesuffix("\n").split("\n")


def read_added(folder: Path, entries: list[str]) -> list[str]:
    """Special symbols that a folder adds to the ``entries`` of its ``vocab.txt`` or ``spiece.model``, in order.

    ``transformers`` before version 5 lists them in ``added_tokens.json``, and in ``tokenizer_config.json`` with more
    about them.

    Raises:
        UnifiedError: a file is not what it should be, or adds tokens that texts may contain.
    """
    ids, special = _added_ids(folder / ADDED_NAME), set[str]()
    path = folder / SETTINGS_NAME
    settings = read_object(path) if path.is_file() else {}
    wrong = misfit(settings, _ADDED, "")
    if wrong is not None:
        raise UnifiedError(f"{path}: {wrong}")
    for number, token in settings.get("added_tokens_decoder", {}).items():
        if not (number.isascii() and number.isdecimal()):
            raise UnifiedError(f"{path}: added_tokens_decoder must have ids as its names, got {shown(number)}")
        ids[token["content"]] = int(number)
        special |= {token["content"]} if token.get("special") else set()
    known = set(entries)
    added = sorted((entry for entry in ids if entry not in known), key=ids.__getitem__)
    if not added:
        return []
    map_path = folder / "special_tokens_map.json"
    special |= _named_special(settings) | (_named_special(read_object(map_path)) if map_path.is_file() else set())
    ordinary = [entry for entry in added if entry not in special]
    if ordinary:
        raise UnifiedError(
            f"{folder}: adds tokens that are no special symbols, which is not built: {first_few(ordinary)}"
        )
    numbers, first = [ids[entry] for entry in added], len(entries)
    if numbers != list(range(first, first + len(added))):
        raise UnifiedError(f"{folder}: the ids of its added tokens are not {first} to {first + len(added) - 1}")
    return added


def _added_ids(path: Path) -> dict[str, int]:
    if not path.is_file():
        return {}
    ids = read_object(path)
    wrong = misfit(ids, Each(int), "")
    if wrong is not None:
        raise UnifiedError(f"{path}: {wrong}")
    return ids


def _named_special(settings: dict[str, Any]) -> set[str]:
    """All that a file names as special symbols, each a text or an object with a content, alone or in lists."""
    found, left = set[str](), list(settings.values())
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif isinstance(one, str):
            found.add(one)
        elif isinstance(one, dict) and isinstance(one.get("content"), str):
            found.add(one["content"])
    return found


def require_berts(path: Path) -> None:
    """Refuses a ``vocab.txt`` or ``tokenizer.json`` with which another tokenizer than BERT's divides texts.

    The settings beside it say so: ``tokenizer_config.json``, or ``config.json`` of older folders.

    Raises:
        UnifiedError: they do, or are no JSON objects.
    """
    files = [path.with_name(name) for name in (SETTINGS_NAME, CONFIG)]
    settings = [(file, read_object(file)) for file in files if file.is_file()]
    stated = [(file, field, found[field]) for file, found in settings for field in _OTHER_WORDS if field in found]
    if path.name != JSON_NAME:
        classes = [(file, "tokenizer_class", found.get("tokenizer_class")) for file, found in settings]
        named = [one for one in classes if one[2] is not None][:1]  # the first counts
        stated += [one for one in named if str(one[2]).removesuffix("Fast") not in _CLASSES]
    for file, field, value in stated:
        raise UnifiedError(
            f"{file}: {field} {shown(value)}; {path.name} is read only as BERT's own WordPiece tokenizer divides texts"
        )


def read_settings(path: Path) -> dict[str, bool]:
    """Settings that ``tokenizer_config.json`` states, by our names; none where there is no such file.

    Raises:
        UnifiedError: it is not a JSON object, or a setting is neither true, false nor null.
    """
    return _stated(path, read_object(path), _CONFIG_FIELDS) if path.is_file() else {}


def named_entries(settings: Mapping[str, Any]) -> dict[str, str]:
    """Entries that a ``tokenizer_config.json`` names, by its fields, such as ``cls_token``, and all its other texts."""
    contents = {name: one.get("content") if isinstance(one, dict) else one for name, one in settings.items()}
    return {name: content for name, content in contents.items() if isinstance(content, str)}


def write_settings(path: Path, settings: dict[str, bool | None], special: dict[str, str]) -> None:
    """Write ``tokenizer_config.json``.

    Args:
        special: entries of special symbols that are not called as BERT's are, by the fields that name them.
    """
    named = {_CONFIG_FIELDS[name]: value for name, value in settings.items()}
    text = json.dumps({"tokenizer_class": "BertTokenizer", **named, **special}, indent=2)
    write_whole_text(path, text + "\n")


def read_json(path: Path) -> tuple[list[str], dict[str, bool]]:
    """Entries of a ``tokenizer.json`` in the order of their ids, and its settings by our names.

    What is put around texts (post-processing, truncation, padding) is passed over. Special symbols beyond the
    vocabulary become entries; as everywhere, no text contains them.

    Raises:
        UnifiedError: the tokenizer is another than BERT's, or adds tokens that texts may contain.
    """
    content = _typed(read_object(path))
    for part, wanted in _REQUIRED.items():
        stated = content.get(part)
        found: dict[str, Any] = stated if isinstance(stated, dict) else {}
        for name, value in wanted.items():
            if found.get(name) != value:
                raise UnifiedError(
                    f"{path}: {part} {name} {found.get(name)!r}, not {value!r}; only BERT's WordPiece tokenizers are "
                    "read from tokenizer.json"
                )
    return _entries(path, content), _stated(path, content["normalizer"], _NORMALIZER_FIELDS)


def is_wordpiece(path: Path) -> bool:
    """Whether a ``tokenizer.json`` describes a WordPiece tokenizer.

    Raises:
        UnifiedError: it is not a JSON object.
    """
    model = _typed(read_object(path)).get("model")
    return isinstance(model, dict) and model.get("type") == "WordPiece"


def _typed(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a ``tokenizer.json`` with the type of a WordPiece model.

    Older files, such as that of bert-base-uncased, leave it out. The library tokenizers then goes by the fields.
    """
    model = content.get("model")
    if isinstance(model, dict) and "max_input_chars_per_word" in model:
        return {**content, "model": {"type": "WordPiece", **model}}
    return content


def _entries(path: Path, content: dict[str, Any]) -> list[str]:
    ids, added = content["model"].get("vocab"), content.get("added_tokens") or []
    if not isinstance(ids, dict) or misfit(added, [{"content": str, "id": Maybe(int)}], "added_tokens"):
        raise UnifiedError(f"{path}: has no vocabulary, or its added_tokens are not objects with a content")
    ordinary = [token["content"] for token in added if not token.get("special")]
    if ordinary:
        raise UnifiedError(
            f"{path}: adds tokens that are no special symbols, which is not built: {first_few(ordinary)}"
        )
    ids = {**ids, **{token["content"]: token.get("id") for token in added}}
    numbers = list(ids.values())
    if not all(type(number) is int for number in numbers) or sorted(numbers) != list(range(len(ids))):
        raise UnifiedError(
            f"{path}: the ids of its {counted(len(ids), 'entry', 'entries')} are not 0 to {len(ids) - 1}"
        )
    return sorted(ids, key=ids.__getitem__)


def _stated(path: Path, content: dict[str, Any], fields: dict[str, str]) -> dict[str, bool]:
    """Settings that are not null."""
    stated = {}
    for ours, theirs in fields.items():
        value = content.get(theirs)
        if not isinstance(value, bool | None):
            raise UnifiedError(f"{path}: {theirs} is {value!r}, neither true nor false")
        if value is not None:
            stated[ours] = value
    return stated
