"""Cleaning: how rules are written, their limits, reports, chunks that workers clean, and the language filter."""

import sys
from dataclasses import FrozenInstanceError, asdict, dataclass
from types import SimpleNamespace

import pytest

from tests.support.refusals import refused
from unified.corpus.cleaning import CleanedChunk, Cleaning, CleaningEncoder, Counts, Report
from unified.corpus.cleaning.language import LanguageFilter

ALL = "urls, paths, noise, sentences, short_sentences, short_documents, language, chunks, overlap"


# ---------------------------------------------------------------- rules as text


def test_nothing_is_cleaned_by_default():
    rules = Cleaning()
    assert set(asdict(rules).values()) == {False, None} and not rules.divides_sentences and rules.rules() == {}
    documents = [(3, ["  a\u2003 b ", "c. D."]), (5, ["e"])]
    cleaned, report = rules.clean(documents)
    assert cleaned == [(3, ["a b", "c. D."]), (5, ["e"])] and report.chunks is None
    with pytest.raises(FrozenInstanceError):
        rules.urls = True


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("urls", {"urls": True}),
        (" paths , noise", {"paths": True, "noise": True}),
        ("short_sentences= 1,short_documents=20", {"short_sentences": 1, "short_documents": 20}),
        ("language=de", {"language": "de"}),
        ("chunks=5,overlap=4", {"chunks": 5, "overlap": 4}),
        ("language=12", {"language": "12"}),
    ],
)
def test_rules_are_read_from_a_list(text, settings):
    assert Cleaning.parse(text) == Cleaning(**settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("url", f"no rule 'url' (did you mean 'urls'?); the rules are {ALL}, or anna by itself"),
        ("", f"no rule ''; the rules are {ALL}, or anna by itself"),
        ("urls,anna", f"no rule 'anna'; the rules are {ALL}, or anna by itself"),
        ("urls,noise,urls", "urls is given twice"),
        ("urls=1", "urls takes no value, got '1'"),
        ("urls=", "urls takes no value, got ''"),
        ("chunks", "chunks needs a value: chunks=N"),
        ("chunks= ", "chunks needs a value: chunks=N"),
        ("language", "language needs a value: language=en"),
        ("chunks=x", "chunks is a whole number of at least 1, got 'x'"),
        ("chunks=-1", "chunks is a whole number of at least 1, got '-1'"),
        ("chunks=\u0663", "chunks is a whole number of at least 1, got '\u0663'"),
        ("chunks=0", "chunks is a whole number of at least 1, got 0"),
        ("short_sentences=0", "short_sentences is a whole number of at least 1, got 0"),
        ("short_documents=1.5", "short_documents is a whole number of at least 1, got '1.5'"),
        ("chunks=3,overlap=0", "overlap is a whole number of at least 1, got 0"),
        ("overlap=3", "overlap=3 needs chunks of more words, got chunks=None"),
        ("chunks=3,overlap=3", "overlap=3 needs chunks of more words, got chunks=3"),
    ],
)
def test_lists_with_unknown_rules_or_wrong_values_are_refused(text, message):
    assert refused(Cleaning.parse, text) == f"--clean: {message}"


@pytest.mark.parametrize(
    ("rules", "divides"),
    [
        ({"sentences": True}, True), ({"short_sentences": 1}, True), ({"chunks": 1}, True),
        ({"short_documents": 1}, False),
        ({"urls": True, "paths": True, "noise": True, "language": "en"}, False),
    ],
)  # fmt: skip
def test_some_rules_divide_lines_into_sentences(rules, divides):
    assert Cleaning(**rules).divides_sentences is divides
    kept, _ = Cleaning(**rules | {"language": None}).clean([(0, ["One two. Three four."])])
    sentences = [sentence for _, document in kept for sentence in document]
    assert sentences == (["One two.", "Three four."] if divides else ["One two. Three four."])


def test_short_means_fewer_words_than_the_number():
    documents = [(0, ["a b c", "d e"]), (1, ["f"])]
    for words, kept in ((1, documents), (2, documents[:1]), (3, [(0, ["a b c"])]), (4, [])):
        assert Cleaning(short_sentences=words).clean(documents)[0] == kept
    for words, kept in ((1, documents), (2, documents[:1]), (5, documents[:1]), (6, [])):
        assert Cleaning(short_documents=words).clean(documents)[0] == kept


# ---------------------------------------------------------------- reports and chunks


def test_counts_and_reports_add_up_field_by_field():
    one, other = Counts(1, 2, 3, 4), Counts(50, 60, 70, 80)
    assert one + other == Counts(51, 62, 73, 84) and other - one == Counts(49, 58, 67, 76)
    assert Counts.of([(7, ["a bc", "d"]), (7, [])]) == Counts(2, 2, 3, 4) and Counts() == Counts(0, 0, 0, 0)
    first, second = Report(one, {"a": one}, other, 3), Report(other, {"a": other, "b": one}, one, 4)
    assert first + second == Report(one + other, {"a": one + other, "b": one}, one + other, 7)
    assert Report() + second == second and (first + Report(one, {}, one)).chunks is None
    assert Report() == Report(Counts(), {}, Counts(), None)
    for frozen, name in ((one, "documents"), (first, "chunks")):
        with pytest.raises(FrozenInstanceError):
            setattr(frozen, name, 1)


@dataclass(frozen=True)
class TwoDocuments:
    """A chunk of two documents: a sentence of three words and two of one word."""

    size = 99

    def documents(self):
        return iter([(4, ["One two three.", "Four."]), (6, ["Five."])])


def test_a_chunk_is_cleaned_when_it_is_read_or_encoded():
    chunk = CleanedChunk(TwoDocuments(), Cleaning(short_sentences=2))
    cleaned, report = chunk.clean()
    assert chunk.documents() == cleaned == [(4, ["One two three."])] and chunk.size == 99
    assert report.removed == {"short_sentences": Counts(1, 2, 2, 10)}

    encoder = SimpleNamespace(splits=lambda documents: (documents, None))
    assert CleaningEncoder(encoder)(chunk) == (99, cleaned, None, report)


# ---------------------------------------------------------------- languages


class Languages:
    """Stands in for py3langid: a text is in the language of its first letter, or of its last where that is "?"."""

    asked = []

    @staticmethod
    def rank(text):
        return [("en", -1.0), ("de", -2.0)] if text == "" else []

    @classmethod
    def classify(cls, text):
        cls.asked.append(text)
        return ({"e": "en", "d": "de"}[text[0] if text[0] != "?" else text[-1]], -3.0)


def test_the_first_2000_characters_of_a_document_tell_its_language(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", Languages)
    english = LanguageFilter("en")
    assert english("e") and not english("d") and not LanguageFilter("de")("e")
    assert english("?" * 1999 + "e" + "d") and not english("?" * 1998 + "d" + "d" + "e")
    Languages.asked.clear()
    Cleaning(language="de").clean([(0, ["d", "e f"])])
    assert Languages.asked == ["d e f"]


def test_an_unknown_language_and_a_missing_library_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", Languages)
    assert refused(Cleaning(language="xx").rules) == "--clean language=xx: no such language; known are de en"
    monkeypatch.setitem(sys.modules, "py3langid", None)
    assert refused(LanguageFilter, "en") == (
        "--clean language=… needs the library py3langid; install it with: pip install '.[clean]' in the library's "
        "folder"
    )
