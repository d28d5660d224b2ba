"""Spans from a spaCy pipeline, with a stand-in for the library."""

import hashlib
import pickle
import sys
import types
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.support.refusals import refused
from unified.corpus.spacy_pipeline import SpacyAnnotator, noun_phrases
from unified.data.annotations import KINDS, TAGS

ADVICE = "take a trained pipeline that has one, such as en_core_web_sm"


@dataclass
class Word:
    """A word of a document: its first character, text, part of speech and index."""

    idx: int
    text: str
    pos_: str
    i: int

    def __len__(self):
        return len(self.text)

    @property
    def is_space(self):
        return self.text.isspace()


@dataclass
class Span:
    start: int
    end: int
    start_char: int
    end_char: int
    label_: str = ""


@dataclass
class Document:
    """Words between blanks: "the" and the word behind it are a noun chunk, words with a capital entities.

    Words that begin with n or N are nouns, "?" has a tag that is no part of speech, and all others are verbs.
    """

    text: str
    annotated: tuple = ("ENT_IOB", "POS")
    chunks_fail: type | None = None
    lang_: str = "xx"
    words: list = field(default_factory=list)

    def __post_init__(self):
        at = 0
        for text in self.text.split(" ") if self.text else ():
            pos = "NOUN" if text[:1] in "nN" else "PROPN" if text[:1].isupper() else "X" if text.isspace() else "VERB"
            self.words.append(Word(at, text, "X?" if text == "?" else pos, len(self.words)))
            at += len(text) + 1

    def __iter__(self):
        return iter(self.words)

    def has_annotation(self, name):
        return name in self.annotated

    @property
    def noun_chunks(self):
        if self.chunks_fail is not None:
            raise self.chunks_fail
        for one, other in zip(self.words, self.words[1:], strict=False):
            if one.text == "the":
                yield Span(one.i, other.i + 1, one.idx, other.idx + len(other))

    @property
    def ents(self):
        return [Span(w.i, w.i + 1, w.idx, w.idx + len(w), w.pos_) for w in self.words if w.text[:1].isupper()]


class Language:
    meta = {"lang": "en", "name": "small", "version": "3.1"}
    pipe_names = ("tagger", "parser")

    """A loaded pipeline; ``piped`` are the texts that it was last given, ``document`` what its documents lack."""

    def __init__(self, path=None, **document):
        self.path, self.document, self.piped = path, document, []

    def __call__(self, text):
        return Document(text, **self.document)

    def pipe(self, texts, batch_size):
        self.piped = list(texts)
        return map(self, self.piped)


@pytest.fixture
def spacy(monkeypatch):
    """A function that makes spaCy load the given language, or raise the given error; it returns the names loaded."""
    loaded = []

    def pretend(language):
        def load(name):
            loaded.append(name)
            if isinstance(language, Exception):
                raise language
            return language

        monkeypatch.setitem(sys.modules, "spacy", types.SimpleNamespace(load=load, __version__="3.8"))
        return loaded

    return pretend


# ---------------------------------------------------------------- spans


def test_spans_are_characters_of_their_texts(spacy):
    spacy(Language())
    texts = ["the Old n1 sees Rome ?", "", "nobody"]
    found = SpacyAnnotator(KINDS, "en")(texts)
    assert list(found) == list(KINDS) and all(spans.dtype == np.int64 for spans in found.values())
    assert found["entities"].tolist() == [[0, 4, 7], [0, 16, 20]]
    # The chunk "the Old"; of nouns and names outside of it each by itself, in the order of the text.
    assert found["noun_phrases"].tolist() == [[0, 0, 7], [0, 8, 10], [0, 16, 20], [2, 0, 6]]
    verb, noun, name = (TAGS.index(tag) for tag in ("VERB", "NOUN", "PROPN"))
    assert found["parts_of_speech"].tolist() == [
        [0, 0, 3, verb], [0, 4, 7, name], [0, 8, 10, noun], [0, 11, 15, verb], [0, 16, 20, name], [2, 0, 6, noun],
    ]  # fmt: skip
    none = SpacyAnnotator(("entities", "parts_of_speech"), "en")([])
    assert [(spans.shape, spans.dtype) for spans in none.values()] == [((0, 3), np.int64), ((0, 4), np.int64)]


def test_white_space_that_is_a_word_has_no_tag(spacy):
    spacy(Language())
    found = SpacyAnnotator(("parts_of_speech",), "en")(["a \t b"])["parts_of_speech"]
    assert found[:, :3].tolist() == [[0, 0, 1], [0, 4, 5]]


def test_noun_phrases_are_in_the_order_of_the_text():
    assert noun_phrases(Document("n the b n the c Rome")) == [(0, 1), (2, 7), (8, 9), (10, 15), (16, 20)]


def test_a_long_text_is_annotated_in_pieces_with_the_characters_of_the_whole(spacy):
    language = Language()
    spacy(language)
    annotator = SpacyAnnotator(("entities",), "en", longest=6)
    assert annotator(["b", "aaa Bbb Cc", "D"])["entities"].tolist() == [[1, 4, 7], [1, 8, 10], [2, 0, 1]]
    assert language.piped == ["b", "aaa", " Bbb", " Cc", "D"]


def test_texts_above_10000_characters_are_annotated_in_pieces_by_default(spacy):
    language = Language()
    spacy(language)
    SpacyAnnotator(("entities",), "en")(["x" * 10_000, "y" * 10_001])
    assert language.piped == ["x" * 10_000, "y" * 10_000, "y"]


def test_entities_have_their_types(spacy):
    spacy(Language())
    found = SpacyAnnotator(("entities",), "en").typed_entities(["a Rome No", "b"])
    assert found == [[(2, 6, "PROPN"), (7, 9, "NOUN")], []]


# ---------------------------------------------------------------- loading and descriptions


def test_a_pipeline_is_described_by_its_files_and_its_code(spacy, tmp_path, monkeypatch):
    folder = tmp_path / "pipe"
    (folder / "deep").mkdir(parents=True)
    contents = {"b": b"1", "deep/a": b"2"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (tmp_path / "own_code.py").write_text("made = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    loaded = spacy(Language(folder))
    annotator = SpacyAnnotator(("entities",), "en_small", "own_code")
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\n".encode() + hashlib.sha256(content).digest())
    assert annotator.description == {
        "kinds": ["entities"],
        "spacy": "3.8",
        "pipeline": "en_small",
        "version": "3.1",
        "components": ["tagger", "parser"],
        "sha256": digest.hexdigest(),
        "code": {"module": "own_code", "sha256": hashlib.sha256(b"made = 1\n").hexdigest()},
    }
    assert loaded == ["en_small"] and "own_code" in sys.modules


def test_a_pipeline_is_loaded_once_in_each_process(spacy):
    loaded = spacy(Language())
    annotator = SpacyAnnotator(("entities",), "en_small")
    assert annotator.language is annotator.language and loaded == ["en_small"]
    copy = pickle.loads(pickle.dumps(annotator))  # as a worker process gets it
    assert copy.description == annotator.description and loaded == ["en_small"]
    for _ in range(2):
        assert copy(["Rome"])["entities"].tolist() == [[0, 0, 4]] and loaded == ["en_small"] * 2


def test_without_files_or_code_the_description_has_no_hash_of_them(spacy):
    spacy(Language())
    description = SpacyAnnotator(("entities",), "en").description
    assert description["sha256"] is None and description["code"] is None


@pytest.mark.parametrize(
    ("kinds", "document", "lacks"),
    [
        (("entities",), {"annotated": ("POS",)}, "gives no entities, it lacks an entity recognizer"),
        (
            ("parts_of_speech",),
            {"annotated": ("ENT_IOB",)},
            "gives no parts_of_speech, it lacks a part-of-speech tagger",
        ),
        (("noun_phrases",), {"annotated": ()}, "gives no noun_phrases, it lacks a part-of-speech tagger"),
        (
            ("entities", "noun_phrases"),
            {"chunks_fail": ValueError},
            "gives no noun_phrases, it lacks a dependency parser",
        ),
        (
            ("noun_phrases",),
            {"chunks_fail": NotImplementedError},
            "gives no noun_phrases, it lacks rules for noun chunks, which spaCy does not have for the language 'xx'",
        ),
    ],
)
def test_a_pipeline_that_lacks_a_component_is_refused(spacy, kinds, document, lacks):
    language = Language(**document)
    spacy(language)
    assert refused(SpacyAnnotator, kinds, "en") == f"--spacy en: {lacks} (its components: tagger, parser); {ADVICE}"
    language.pipe_names = ()
    assert "(its components: none); " in refused(SpacyAnnotator, kinds, "en")


def test_pipelines_and_modules_that_cannot_be_loaded_are_refused(spacy, monkeypatch):
    spacy(OSError("no file"))
    assert refused(SpacyAnnotator, KINDS, "en") == (
        "--spacy en: no such pipeline; give the folder of one, or install one, for example with: python -m spacy "
        "download en_core_web_sm"
    )
    for error in (ValueError("why"), ImportError("why")):
        spacy(error)
        says = "--spacy en: cannot be loaded (why); components of its own need --spacy-code MODULE"
        assert refused(SpacyAnnotator, KINDS, "en") == says
    spacy(Language())
    assert refused(SpacyAnnotator, KINDS, "en", "no_such_code") == (
        "--spacy-code no_such_code: cannot be imported (No module named 'no_such_code')"
    )
    monkeypatch.setitem(sys.modules, "spacy", None)
    assert refused(SpacyAnnotator, KINDS, "en") == (
        "--spacy needs the library spaCy, which is not installed: pip install '.[spacy]' in the library's folder"
    )
