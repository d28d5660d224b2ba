"""Options about tokenizers: limits, which option goes with which tokenizer, what is trained and what is loaded."""

from dataclasses import FrozenInstanceError, asdict

import pytest

from tests.support.corpora import write
from unified.corpus import tokenizer_source
from unified.corpus.tokenizer_source import TRAINED, TokenizerSource
from unified.errors import UnifiedError

ALL = ("unigram", "bpe", "char", "wordpiece", "anna")
SETTINGS = {
    "--vocabulary-size": {"vocabulary_size": 7},
    "--character-coverage": {"character_coverage": 0.5},
    "--normalization": {"normalization": "nfkc"},
    "--byte-fallback": {"byte_fallback": True},
    "--lowercase": {"lowercase": True},
    "--word-share": {"word_share": 0.5},
    "--spacy": {"spacy": "en"},
}
#: The names of tokenizers, a ready-made one among them, that each option goes with.
GOES_WITH = {
    "--vocabulary-size": ALL,
    "--character-coverage": ALL,
    "--normalization": ("unigram", "bpe", "char"),
    "--byte-fallback": ("unigram", "bpe"),
    "--lowercase": ("unigram", "bpe", "char", "wordpiece", "vocab.txt"),
    "--word-share": ("anna",),
    "--spacy": ("anna",),
}


@pytest.mark.parametrize("name", [*ALL, "vocab.txt"])
def test_each_option_goes_with_some_tokenizers(name):
    assert TRAINED == ALL and TokenizerSource(name).is_trained is (name in ALL)
    for option, settings in SETTINGS.items():
        if name in GOES_WITH[option]:
            TokenizerSource(name, **settings)
            continue
        with pytest.raises(UnifiedError) as raised:
            TokenizerSource(name, **settings)
        assert str(raised.value) == f"{option} means nothing with --tokenizer {name}; leave it out"


@pytest.mark.parametrize(
    ("setting", "taken", "refused", "says"),
    [
        ("vocabulary_size", [1], [0, -1], "--vocabulary-size must be at least 1"),
        ("character_coverage", [1e-9, 1], [0, 1.001, float("nan")], "--character-coverage is above 0 and at most 1"),
        ("word_share", [0, 0.999], [-0.001, 1, 2], "--word-share is at least 0 and below 1"),
        ("sample_megabytes", [1], [0], "--sample-megabytes must be at least 1"),
    ],
)
def test_numbers_have_their_limits(setting, taken, refused, says):
    for value in taken:
        assert asdict(TokenizerSource("anna", **{setting: value}))[setting] == value
    for value in refused:
        with pytest.raises(UnifiedError) as raised:
            TokenizerSource("anna", **{setting: value})
        assert str(raised.value) == f"{says}, got {value}"


def test_an_unigram_model_of_twenty_million_characters_is_the_default():
    source = TokenizerSource()
    assert {name: value for name, value in asdict(source).items() if value is not None} == {
        "name": "unigram",
        "lowercase": False,
        "byte_fallback": False,
        "sample_megabytes": 20,
    }
    with pytest.raises(FrozenInstanceError):
        source.name = "bpe"


def test_every_option_reaches_the_training_of_its_tokenizer(monkeypatch):
    for name in ("wordpiece", "anna", "sentencepiece"):
        monkeypatch.setattr(tokenizer_source, f"train_{name}", lambda *given, name=name: (name, *given))
    monkeypatch.setattr(tokenizer_source, "NounPhrases", lambda *given: ("noun phrases", *given))
    lines = ["a"]
    wordpiece = TokenizerSource("wordpiece", 9, 0.5, lowercase=True)
    assert wordpiece.train(lines) == ("wordpiece", lines, 9, 0.5, True)
    assert TokenizerSource("wordpiece").train(lines) == ("wordpiece", lines, None, 0.9995, False)
    anna = TokenizerSource("anna", 9, 0.5, word_share=0.25, spacy="en", spacy_code="code")
    assert anna.train(lines) == ("anna", lines, 9, 0.5, 0.25, ("noun phrases", "en", "code"))
    assert TokenizerSource("anna").train(lines) == ("anna", lines, None, 0.9995, 0.7, None)
    assert TokenizerSource("anna", word_share=0).train(lines)[4] == 0
    for kind in ("unigram", "bpe"):
        source = TokenizerSource(kind, 9, 0.5, "identity", True, True)
        assert source.train(lines) == ("sentencepiece", lines, kind, 9, 0.5, "identity", True, True)
    assert TokenizerSource("char").train(lines) == ("sentencepiece", lines, "char", None, 0.9995, None, False, False)


# ---------------------------------------------------------------- ready-made tokenizers


def given(folder, words=("a", "b", "c")):
    folder.mkdir(exist_ok=True)
    write(folder / "vocab.txt", "".join(f"{word}\n" for word in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words)))
    return TokenizerSource(str(folder))


def test_a_tokenizer_without_a_dictionary_brings_its_own_symbols(tmp_path):
    given(tmp_path, ["B", "b", "c"])
    write(tmp_path / "vocab.txt.txt", "b 1\n")
    for name in (tmp_path, tmp_path / "vocab.txt"):
        tokenizer, vocabulary, dictionary = TokenizerSource(str(name)).load()
        assert vocabulary.symbols[4:7] == ["B", "b", "c"] and dictionary is None
        assert tokenizer.encode("B b") == ["B", "b"]
        uncased, *_ = TokenizerSource(str(name), lowercase=True).load()
        assert uncased.encode("B b") == ["b", "b"]


@pytest.mark.parametrize("name", ["dict.txt", "dict.source.txt"])
def test_a_dictionary_comes_with_its_bytes(tmp_path, name):
    source = given(tmp_path)
    content = b"a 5\nb 3\nc 2\n"
    write(tmp_path / name, content)
    _, vocabulary, dictionary = source.load()
    assert dictionary == content and vocabulary.counts[4:7] == [5, 3, 2]
    assert TokenizerSource(str(tmp_path / "vocab.txt")).load()[2] is None  # a file alone has none beside it


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ("abd", "symbol 3 is 'd' here and 'c' there"),
        ("bac", "symbol 1 is 'b' here and 'a' there"),
        ("ab", "symbol 3 is nothing here and 'c' there"),
        ("abcd", "symbol 4 is 'd' here and nothing there"),
        ("", "symbol 1 is nothing here and 'a' there"),
    ],
)
def test_the_first_symbol_that_differs_is_named(tmp_path, listed, says):
    source = given(tmp_path)
    write(tmp_path / "dict.txt", "".join(f"{symbol} 1\n" for symbol in listed))
    with pytest.raises(UnifiedError) as raised:
        source.load()
    assert raised.value.details == f"{tmp_path}/dict.txt: does not match the tokenizer beside it: {says}"


def test_a_name_that_is_neither_a_tokenizer_nor_a_path_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, hint in (("wordpeice", " (did you mean 'wordpiece'?)"), ("none", "")):
        with pytest.raises(UnifiedError) as raised:
            TokenizerSource(name).load()
        assert str(raised.value) == (
            f"--tokenizer {name}: neither one of unigram, bpe, char, wordpiece, anna nor an existing file or folder"
            f"{hint}"
        )
