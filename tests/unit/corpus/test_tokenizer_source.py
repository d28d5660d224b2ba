"""Options about tokenizers: their limits, which of them go together, what is trained and what is loaded."""

import inspect
from dataclasses import FrozenInstanceError, asdict

import pytest

from tests.support.corpora import wordpiece_file, write
from tests.support.refusals import refused
from unified.corpus import tokenizer_source
from unified.corpus.tokenizer_source import TRAINED, TokenizerSource

TYPES = ("unigram", "bpe", "char", "wordpiece", "anna")
SETTINGS = {
    "--vocabulary-size": {"vocabulary_size": 7},
    "--character-coverage": {"character_coverage": 0.5},
    "--normalization": {"normalization": "nfkc"},
    "--byte-fallback": {"byte_fallback": True},
    "--lowercase": {"lowercase": True},
    "--word-share": {"word_share": 0.5},
    "--spacy": {"spacy": "en"},
}
#: The tokenizers that each option goes with; vocab.txt stands for a ready-made one.
GOES_WITH = {
    "--vocabulary-size": TYPES,
    "--character-coverage": TYPES,
    "--normalization": ("unigram", "bpe", "char"),
    "--byte-fallback": ("unigram", "bpe"),
    "--lowercase": ("unigram", "bpe", "char", "wordpiece", "vocab.txt"),
    "--word-share": ("anna",),
    "--spacy": ("anna",),
}


@pytest.mark.parametrize("name", [*TYPES, "vocab.txt"])
@pytest.mark.parametrize("option", SETTINGS)
def test_an_option_is_refused_with_tokenizers_that_do_not_have_it(name, option):
    if name in GOES_WITH[option]:
        TokenizerSource(name, **SETTINGS[option])
    else:
        message = f"{option} means nothing with --tokenizer {name}; leave it out"
        assert refused(TokenizerSource, name, **SETTINGS[option]) == message


def test_tokenizers_named_by_their_type_are_trained():
    assert TRAINED == TYPES and all(TokenizerSource(name).is_trained for name in TYPES)
    assert not TokenizerSource("vocab.txt").is_trained


@pytest.mark.parametrize("name", ["anna", "bpe"])
def test_code_of_a_pipeline_needs_the_pipeline(name):
    message = "--spacy-code own.code belongs to a pipeline; give --spacy PIPELINE too"
    assert refused(TokenizerSource, name, spacy_code="own.code") == message


@pytest.mark.parametrize(
    ("setting", "accepted", "refused_values", "message"),
    [
        ("vocabulary_size", [1], [0, -1], "--vocabulary-size must be at least 1"),
        ("character_coverage", [1e-9, 1], [0, 1.001, float("nan")], "--character-coverage is above 0 and at most 1"),
        ("word_share", [0, 0.999], [-0.001, 1, 2], "--word-share is at least 0 and below 1"),
        ("sample_megabytes", [1], [0], "--sample-megabytes must be at least 1"),
    ],
)
def test_numbers_have_limits(setting, accepted, refused_values, message):
    for value in accepted:
        assert asdict(TokenizerSource("anna", **{setting: value}))[setting] == value
    for value in refused_values:
        assert refused(TokenizerSource, "anna", **{setting: value}) == f"{message}, got {value}"


def test_the_default_is_a_unigram_model_trained_on_at_most_twenty_million_characters():
    source = TokenizerSource()
    given = {name: value for name, value in asdict(source).items() if value is not None}
    assert given == {"name": "unigram", "lowercase": False, "byte_fallback": False, "sample_megabytes": 20}
    with pytest.raises(FrozenInstanceError):
        source.name = "bpe"


# ---------------------------------------------------------------- training


@pytest.fixture
def trained(monkeypatch):
    """Trains with stand-ins for the training functions: gives the name of the one called and its arguments.

    Arguments have the names of the real function's parameters, its defaults included.
    """

    def recording(function):
        signature = inspect.signature(function)

        def record(*positional, **named):
            call = signature.bind(*positional, **named)
            call.apply_defaults()
            return function.__name__, call.arguments

        return record

    for name in ("train_wordpiece", "train_anna", "train_sentencepiece", "NounPhrases"):
        monkeypatch.setattr(tokenizer_source, name, recording(getattr(tokenizer_source, name)))
    return lambda name, **settings: TokenizerSource(name, **settings).train(["a line"])


SHARED = {"vocabulary_size": 9, "character_coverage": 0.5}
DEFAULTS = {"lines": ["a line"], "vocabulary_size": None, "character_coverage": 0.9995}


def test_wordpiece_is_trained_with_its_options(trained):
    given = {**SHARED, "lowercase": True}
    assert trained("wordpiece", **given) == ("train_wordpiece", {**DEFAULTS, **given})
    assert trained("wordpiece") == ("train_wordpiece", {**DEFAULTS, "lowercase": False})


def test_the_tokenizer_of_anna_is_trained_with_its_options(trained):
    phrases = ("NounPhrases", {"pipeline": "en", "code": "own.code"})
    given = {**SHARED, "word_share": 0.25}
    assert trained("anna", **given, spacy="en", spacy_code="own.code") == (
        "train_anna", {**DEFAULTS, **given, "noun_phrases": phrases},
    )  # fmt: skip
    assert trained("anna") == ("train_anna", {**DEFAULTS, "word_share": 0.7, "noun_phrases": None})
    assert trained("anna", word_share=0)[1]["word_share"] == 0


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_models_of_sentencepiece_are_trained_with_their_options(trained, kind):
    given = {**SHARED, "normalization": "identity", "lowercase": True, "byte_fallback": True}
    assert trained(kind, **given) == ("train_sentencepiece", {**DEFAULTS, "model_type": kind, **given})


def test_a_model_of_characters_is_trained_with_the_defaults_of_sentencepiece(trained):
    left_out = {"normalization": None, "lowercase": False, "byte_fallback": False}
    assert trained("char") == ("train_sentencepiece", {**DEFAULTS, "model_type": "char", **left_out})


# ---------------------------------------------------------------- ready-made tokenizers


def test_a_tokenizer_without_a_dictionary_brings_its_own_symbols(tmp_path):
    file = wordpiece_file(tmp_path, ["B", "b", "c"])
    for name in (file, str(tmp_path)):
        tokenizer, vocabulary, dictionary = TokenizerSource(name).load()
        assert vocabulary.symbols[4:7] == ["B", "b", "c"] and dictionary is None
        assert tokenizer.encode("B b") == ["B", "b"]
        uncased, *_ = TokenizerSource(name, lowercase=True).load()
        assert uncased.encode("B b") == ["b", "b"]


@pytest.mark.parametrize("name", ["dict.txt", "dict.source.txt"])
def test_the_dictionary_of_a_folder_is_loaded_with_its_bytes(tmp_path, name):
    file = wordpiece_file(tmp_path, "abc")
    content = b"a 5\nb 3\nc 2\n"
    write(tmp_path / name, content)
    _, vocabulary, dictionary = TokenizerSource(str(tmp_path)).load()
    assert dictionary == content and vocabulary.counts[4:7] == [5, 3, 2]
    assert TokenizerSource(file).load()[2] is None, "a file by itself has no dictionary"


@pytest.mark.parametrize(
    ("listed", "difference"),
    [
        ("abd", "symbol 3 is 'd' here and 'c' there"),
        ("bac", "symbol 1 is 'b' here and 'a' there"),
        ("ab", "symbol 3 is nothing here and 'c' there"),
        ("abcd", "symbol 4 is 'd' here and nothing there"),
        ("", "symbol 1 is nothing here and 'a' there"),
    ],
)
def test_a_dictionary_of_other_symbols_is_refused_with_the_first_difference(tmp_path, listed, difference):
    wordpiece_file(tmp_path, "abc")
    write(tmp_path / "dict.txt", "".join(f"{symbol} 1\n" for symbol in listed))
    assert refused(TokenizerSource(str(tmp_path)).load) == (
        f"{tmp_path}/dict.txt: does not match the tokenizer beside it: {difference}"
    )


@pytest.mark.parametrize(("name", "hint"), [("wordpeice", " (did you mean 'wordpiece'?)"), ("none", "")])
def test_a_name_that_is_neither_a_type_nor_a_path_is_refused(tmp_path, monkeypatch, name, hint):
    monkeypatch.chdir(tmp_path)
    assert refused(TokenizerSource(name).load) == (
        f"--tokenizer {name}: neither one of unigram, bpe, char, wordpiece, anna nor an existing file or folder{hint}"
    )
