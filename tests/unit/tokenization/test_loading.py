"""Which file of a folder is its tokenizer, what reads it, and what cannot be read."""

import json
from itertools import combinations

import pytest

from unified.errors import UnifiedError
from unified.tokenization import FILES, load_tokenizer, tokenizer_files
from unified.tokenization.anna import AnnaTokenizer
from unified.tokenization.json_tokenizer import JsonTokenizer
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer
from unified.tokenization.xlnet import XLNetTokenizer

NAMES = ("tokenizer.model", "vocab.txt", "anna.json", "xlnet.model", "tokenizer.json")
READERS = {
    "tokenizer.model": SentencePieceTokenizer,
    "other.model": SentencePieceTokenizer,
    "xlnet.model": XLNetTokenizer,
    "vocab.txt": WordPieceTokenizer,
    "words.txt": WordPieceTokenizer,
    "anna.json": AnnaTokenizer,
    "other.json": AnnaTokenizer,
    "tokenizer.json": JsonTokenizer,
}


@pytest.fixture
def read(monkeypatch):
    """What is asked to read which file."""
    asked = []
    for reader in set(READERS.values()):
        monkeypatch.setattr(reader, "load", lambda *given, reader=reader: asked.append((reader, *given)))
    return asked


def refused(path, **options):
    with pytest.raises(UnifiedError) as raised:
        load_tokenizer(path, **options)
    return raised.value.details


def test_a_folder_has_one_tokenizer_and_perhaps_the_same_again_as_json(tmp_path, read):
    assert FILES == NAMES and tokenizer_files(tmp_path) == []
    assert refused(tmp_path) == f"{tmp_path}: holds no tokenizer; one of {', '.join(NAMES)} is needed"
    for count in range(1, 6):
        for number, names in enumerate(combinations(NAMES, count)):
            folder = tmp_path / f"{count}-{number}"
            folder.mkdir()
            for name in names:
                (folder / name).write_text("{}")
            others = [name for name in names if name != "tokenizer.json"]
            expected = others or ["tokenizer.json"]
            assert tokenizer_files(folder) == tokenizer_files(str(folder)) == expected
            if len(expected) > 1:
                assert refused(folder) == f"{folder}: holds {' and '.join(expected)}; only one may be there"
            else:
                read.clear()
                load_tokenizer(str(folder))
                ((reader, path, *_),) = read
                assert reader is READERS[expected[0]] and path == folder / expected[0]
    (tmp_path / "vocab.txt").mkdir()  # a folder of that name is none
    assert tokenizer_files(tmp_path) == []


@pytest.mark.parametrize("name", READERS)
def test_a_file_is_read_by_its_name(tmp_path, read, name):
    path = tmp_path / name
    assert refused(path) == f"{path}: no such tokenizer file"
    path.write_text("{}")
    load_tokenizer(path)
    wordpiece = READERS[name] is WordPieceTokenizer
    assert read == [(READERS[name], path, *([None] if wordpiece else []))]
    for lowercase in (False, True):
        read.clear()
        if wordpiece:
            load_tokenizer(path, lowercase=lowercase)
            assert read == [(WordPieceTokenizer, path, lowercase)]
        else:
            says = f"{path}: this tokenizer has its own rules for case; leave --lowercase out"
            assert refused(path, lowercase=lowercase) == says and read == []


def test_a_tokenizer_json_of_wordpiece_is_read_as_such_and_only_under_its_name(tmp_path, read):
    content = json.dumps({"model": {"type": "WordPiece", "vocab": {"[UNK]": 0}}})
    for name, reader in (("tokenizer.json", WordPieceTokenizer), ("other.json", AnnaTokenizer)):
        (tmp_path / name).write_text(content)
        read.clear()
        load_tokenizer(tmp_path / name)
        assert read[0][0] is reader
