"""What the post-processors of a tokenizer.json put between two texts, and which are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unified.errors import UnifiedError
from unified.tokenization.pair_template import PairTemplate, read_pair_template

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
ROBERTA = {
    "type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": True
}  # fmt: skip


def template(*pair: tuple[str, int]) -> dict:
    """Pieces in order; those called A and B are the texts."""
    pieces = [{"Sequence" if name in "AB" else "SpecialToken": {"id": name, "type_id": kind}} for name, kind in pair]
    special = {"cls": [5], "sep": [7], "two": [7, 8]}
    return {
        "type": "TemplateProcessing", "single": pieces[:1], "pair": pieces,
        "special_tokens": {
            name: {"id": name, "ids": ids, "tokens": [name] * len(ids)} for name, ids in special.items()
        },
    }  # fmt: skip


def read(folder: Path, processor: object) -> PairTemplate:
    (folder / "tokenizer.json").write_text(json.dumps({"post_processor": processor}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_input_names": ["token_type_ids"]}))
    return read_pair_template(folder, "TokenizersBackend")


@pytest.mark.parametrize(
    ("processor", "between", "second_type"),
    [
        (ROBERTA, (2, 2), 0),
        ({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 1]}, (3,), 1),
        (template(("cls", 0), ("A", 0), ("sep", 0), ("sep", 0), ("B", 0), ("sep", 0)), (7, 7), 0),
        (template(("cls", 0), ("A", 0), ("sep", 0), ("B", 3), ("sep", 3)), (7,), 3),
        (template(("cls", 0), ("A", 0), ("sep", 0), ("B", 1), ("sep", 0)), (7,), None),
        (template(("cls", 0), ("A", 0), ("sep", 0), ("B", 0), ("sep", 1)), (7,), None),
        (template(("cls", 0), ("A", 0), ("sep", 1), ("B", 1), ("sep", 1)), (7,), None),
        (template(("cls", 1), ("A", 1), ("sep", 1), ("B", 1), ("sep", 1)), (7,), None),
        (template(("A", 1), ("two", 0), ("B", 0), ("cls", 2)), (7, 8), None),
        (template(("cls", 0), ("A", 0), ("B", 0)), (), 0),
        (template(("cls", 0), ("B", 1), ("sep", 0), ("A", 1)), (), None),
        (template(("cls", 0), ("A", 1)), (), None),
        ({"type": "Sequence", "processors": [BYTE_LEVEL, ROBERTA]}, (2, 2), 0),
    ],
)
def test_the_symbols_between_two_texts_and_the_type_of_the_second(tmp_path, processor, between, second_type):
    assert read(tmp_path, processor) == PairTemplate(between, second_type)


@pytest.mark.parametrize(("processor", "second_type"), [(None, 1), (BYTE_LEVEL, 1), (template(("A", 0), ("B", 0)), 0)])
def test_a_tokenizer_that_adds_no_symbols_says_nothing_of_separators(tmp_path, processor, second_type):
    assert read(tmp_path, processor) == PairTemplate(None, second_type)
    (tmp_path / "tokenizer.json").write_text("{}")
    assert read(tmp_path, None) == PairTemplate(None, 1)


def test_a_folder_without_files_has_the_template_of_the_class(tmp_path):
    assert read_pair_template(tmp_path, "BertTokenizer") == PairTemplate(None, 1)
    assert read_pair_template(tmp_path, "RobertaTokenizer") == PairTemplate(None, 0)


def test_the_class_is_that_of_the_first_file_that_names_one(tmp_path):
    read(tmp_path, ROBERTA)
    (tmp_path / "config.json").write_text('{"tokenizer_class": "BertTokenizerFast"}')
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": null}')
    assert read_pair_template(tmp_path, "RobertaTokenizer") == PairTemplate(None, 1)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    assert read_pair_template(tmp_path, "BertTokenizer") == PairTemplate((2, 2), 0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tokenizer_class": 3}, "'tokenizer_class' must be a text or null"),
        ({"model_input_names": None}, "'model_input_names' must be a list"),
        ({"model_input_names": [3]}, "a member of 'model_input_names' must be a text"),
    ],
)
def test_settings_of_another_kind_are_refused(tmp_path, settings, said):
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(settings))
    with pytest.raises(UnifiedError) as refused:
        read_pair_template(tmp_path, "BertTokenizer")
    assert str(refused.value) == f"{path}: {said}"


@pytest.mark.parametrize("processor", [7, {"type": "Another"}, {"type": "TemplateProcessing"}])
def test_what_is_no_post_processor_is_refused(tmp_path, processor):
    with pytest.raises(UnifiedError) as refused:
        read(tmp_path, processor)
    said = f"{tmp_path / 'tokenizer.json'}: post_processor is not one that the library tokenizers reads ("
    assert str(refused.value).startswith(said)
