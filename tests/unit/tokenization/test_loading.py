"""Which file of a folder is its tokenizer, what reads it, and what cannot be read."""

import json
from itertools import combinations

import pytest
from tokenizers import Tokenizer, models

from tests.support.published_models import xlnet_pieces
from tests.support.refusals import refused
from unified.tokenization import FILES, load_tokenizer, tokenizer_files
from unified.tokenization.anna import AnnaTokenizer
from unified.tokenization.json_tokenizer import JsonTokenizer
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from unified.tokenization.wordpiece import WordPieceTokenizer
from unified.tokenization.xlnet import XLNetTokenizer

NAMES = ("tokenizer.model", "vocab.txt", "anna.json", "xlnet.model", "spiece.model", "tokenizer.json")
READERS = {
    "tokenizer.model": SentencePieceTokenizer,
    "other.model": SentencePieceTokenizer,
    "xlnet.model": XLNetTokenizer,
    "spiece.model": XLNetTokenizer,
    "vocab.txt": WordPieceTokenizer,
    "words.txt": WordPieceTokenizer,
    "anna.json": AnnaTokenizer,
    "other.json": AnnaTokenizer,
    "tokenizer.json": JsonTokenizer,
}
CONTENTS = {
    SentencePieceTokenizer: train_sentencepiece(["a b"] * 9, "char").model,
    XLNetTokenizer: xlnet_pieces(),
    WordPieceTokenizer: b"[UNK]\na\n",
    AnnaTokenizer: json.dumps({"pieces": ["[UNK]", "a"], "words": [], "candidates": "a test"}).encode(),
    JsonTokenizer: Tokenizer(models.BPE({"<unk>": 0, "a": 1}, [], unk_token="<unk>")).to_str().encode(),
}


@pytest.mark.parametrize("is_ours", [False, True])
def test_a_folder_has_one_tokenizer_and_perhaps_the_same_again_as_json(tmp_path, is_ours):
    assert FILES == NAMES and tokenizer_files(tmp_path) == []
    assert refused(load_tokenizer, tmp_path) == f"{tmp_path}: holds no tokenizer; one of {', '.join(NAMES)} is needed"
    counts = {"anna.json", "xlnet.model", "spiece.model"} | ({"tokenizer.model"} if is_ours else set())
    for count in range(1, len(NAMES) + 1):
        for number, names in enumerate(combinations(NAMES, count)):
            folder = tmp_path / f"{count}-{number}"
            folder.mkdir()
            for name in names:
                (folder / name).write_bytes(CONTENTS[READERS[name]])
            if is_ours:
                (folder / "dict.txt").touch()
            beside = [name for name in names if name in counts] or ["tokenizer.json"]
            expected = beside if "tokenizer.json" in names else list(names)
            assert tokenizer_files(folder) == tokenizer_files(str(folder)) == expected
            if len(expected) > 1:
                says = f"{folder}: holds {' and '.join(expected)}; only one may be there"
                assert refused(load_tokenizer, folder) == says
            else:
                assert type(load_tokenizer(str(folder))) is READERS[expected[0]]
    (tmp_path / "vocab.txt").mkdir()  # a folder of that name is none
    assert tokenizer_files(tmp_path) == []


def test_a_spiece_model_without_symbols_of_xlnet_stands_behind_a_tokenizer_json(tmp_path):
    """ALBERT's and T5's folders have a file of that name."""
    (tmp_path / "spiece.model").write_bytes(CONTENTS[SentencePieceTokenizer])
    assert refused(load_tokenizer, tmp_path).startswith(f"{tmp_path / 'spiece.model'}: not an XLNet's model")
    (tmp_path / "tokenizer.json").write_bytes(CONTENTS[JsonTokenizer])
    assert type(load_tokenizer(tmp_path)) is JsonTokenizer
    (tmp_path / "spiece.model").write_bytes(b"damaged")
    says = f"{tmp_path / 'spiece.model'}: not a sentencepiece model, or a truncated one"
    assert refused(load_tokenizer, tmp_path) == says


@pytest.mark.parametrize("name", READERS)
def test_a_file_is_read_by_its_name(tmp_path, name):
    path = tmp_path / name
    assert refused(load_tokenizer, path) == f"{path}: no such tokenizer file"
    path.write_bytes(CONTENTS[READERS[name]])
    assert type(load_tokenizer(path)) is READERS[name] is type(load_tokenizer(str(path)))
    for lowercase in (False, True):
        if READERS[name] is WordPieceTokenizer:
            assert load_tokenizer(path, lowercase=lowercase).lowercase is lowercase
        else:
            says = f"{path}: this tokenizer has its own rules for case; leave --lowercase out"
            assert refused(load_tokenizer, path, lowercase=lowercase) == says


def test_a_tokenizer_json_of_wordpiece_is_read_as_such_and_only_under_its_name(tmp_path):
    content = json.dumps(WordPieceTokenizer(["[UNK]", "a"]).content)
    for name in ("tokenizer.json", "other.json"):
        (tmp_path / name).write_text(content)
    assert type(load_tokenizer(tmp_path / "tokenizer.json")) is WordPieceTokenizer
    assert refused(load_tokenizer, tmp_path / "other.json") == (
        f"{tmp_path / 'other.json'}: not an object with candidates, pieces, words; is it the anna.json of a folder?"
    )
