"""Spans from real spaCy pipelines, small ones built here; the tests are skipped where spaCy is not installed."""

import builtins
import hashlib
import json
import lzma
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

spacy = pytest.importorskip("spacy", reason="spaCy is not installed (pip install '.[spacy]')")

from tests.support import spacy_pipelines  # noqa: E402
from tests.support.annotators import tokens_of_spans  # noqa: E402
from tests.support.corpora import random_documents, raw_text, run, tree, write  # noqa: E402
from tests.support.prepared_python import interpreter  # noqa: E402
from unified.corpus import spacy_pipeline  # noqa: E402
from unified.corpus.cleaning import Cleaning  # noqa: E402
from unified.corpus.spacy_pipeline import SpacyAnnotator  # noqa: E402
from unified.data.annotations import KINDS, TAGS, columns, span_prefix  # noqa: E402
from unified.data.token_files import TokenFile  # noqa: E402
from unified.errors import UnifiedError  # noqa: E402
from unified.tokenization import load_tokenizer, single_spaced  # noqa: E402

CODE = "tests.support.spacy_pipelines"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    return spacy_pipelines.save(tmp_path_factory.mktemp("spacy") / "full", "letter_grammar", "entity_ruler")


def cut(texts, spans):
    """The characters of spans, text by text."""
    rows = spans[:, :3].tolist()
    return [[texts[i][start:stop] for i, start, stop in rows if i == number] for number in range(len(texts))]


def test_kinds_are_what_they_are_called(pipeline):
    texts = ["This tiny royal house sees a river.", "In New York, silly people; Paris", "is 42 %", "is runs the"]
    found = SpacyAnnotator(KINDS, pipeline, CODE)(texts)
    assert all(spans.dtype == np.int64 and spans.shape[1] == 1 + columns(kind) for kind, spans in found.items())
    assert cut(texts, found["entities"]) == [[], ["New York", "Paris"], [], []]
    assert cut(texts, found["noun_phrases"]) == [
        ["This tiny royal house", "a river"],
        ["York", "silly people", "Paris"],
        [],
        [],
    ]
    tagged = found["parts_of_speech"]
    assert cut(texts, tagged) == [
        ["This", "tiny", "royal", "house", "sees", "a", "river", "."],
        ["In", "New", "York", ",", "silly", "people", ";", "Paris"],
        ["is", "42", "%"],
        ["is", "runs", "the"],
    ]
    assert [" ".join(TAGS[tag] for number, _, _, tag in tagged.tolist() if number == i) for i in range(4)] == [
        "DET ADJ ADJ NOUN VERB DET NOUN PUNCT", "ADP ADP NOUN PUNCT ADJ NOUN PUNCT NOUN", "VERB PUNCT PUNCT",
        "VERB VERB DET",
    ]  # fmt: skip


def test_tags_are_those_of_universal_dependencies_and_white_space_has_none(pipeline):
    from spacy.parts_of_speech import IDS

    assert {name for name in IDS if name} - {"CONJ", "EOL", "SPACE"} == set(TAGS) and list(TAGS) == sorted(TAGS)
    found = SpacyAnnotator(("parts_of_speech",), pipeline, CODE)(["The  tiny\nhouse"])["parts_of_speech"]
    document = SpacyAnnotator(("parts_of_speech",), pipeline, CODE).language("The  tiny\nhouse")
    kept = [start for _, start, _, _ in found.tolist()]
    assert kept == [word.idx for word in document if not word.is_space] and len(kept) == len(document) - 2


def test_nouns_outside_of_noun_chunks_are_noun_phrases_too(pipeline, monkeypatch):
    texts = ["house sees the tiny river"]
    annotator = SpacyAnnotator(("noun_phrases",), pipeline, CODE)
    document = annotator.language(texts[0])
    document[0].dep_ = "dep"  # spaCy's rules for English leave it out
    assert [chunk.text for chunk in document.noun_chunks] == ["the tiny river"]
    assert spacy_pipeline.noun_phrases(document) == [(0, 5), (11, 25)]


def test_long_paragraphs_are_annotated_in_parts(pipeline):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["Paris", "runs", "the", "tiny", "house", ","], size=n)) for n in (3, 40, 200)]
    texts += ["x" * 180, "Paris"]
    annotator = SpacyAnnotator(("entities", "parts_of_speech"), pipeline, CODE, longest=50)
    parts = [list(spacy_pipeline.within_limit(text, 50)) for text in texts]
    for text, own in zip(texts, parts, strict=True):
        assert "".join(text[start:stop] for start, stop in own) == text
        assert all(stop - start <= 50 for start, stop in own)
    found = annotator(texts)
    for text, words in zip(texts, cut(texts, found["entities"]), strict=True):
        assert len(words) == text.split().count("Paris") and set(words) <= {"Paris"}
    for text, words in zip(texts[:3], cut(texts, found["parts_of_speech"]), strict=False):
        assert words == text.split()


def test_a_copy_loads_the_pipeline_itself_and_the_files_name_it(pipeline, tmp_path):
    annotator = SpacyAnnotator(KINDS, pipeline, CODE)
    texts = ["The tiny house is in New York."]
    copy = pickle.loads(pickle.dumps(annotator))
    assert copy.description == annotator.description and len(pickle.dumps(annotator)) < 2000
    code = hashlib.sha256(Path(spacy_pipelines.__file__).read_bytes()).hexdigest()
    assert annotator.description["code"] == {"module": CODE, "sha256": code}
    assert all(np.array_equal(spans, annotator(texts)[kind]) for kind, spans in copy(texts).items())
    again = spacy_pipelines.save(tmp_path / "again", "letter_grammar", "entity_ruler")
    assert SpacyAnnotator(KINDS, again, CODE).description == annotator.description
    other = spacy_pipelines.save(tmp_path / "other", "letter_grammar", "entity_ruler", entities=("York",))
    assert SpacyAnnotator(KINDS, other, CODE).description != annotator.description


@pytest.mark.parametrize(
    "components, language, kinds, message",
    [
        ((), "en", KINDS, "gives no noun_phrases, it lacks a dependency parser .its components: none.; take a trained"),
        ((), "en", KINDS[1:], "gives no entities, it lacks an entity recognizer"),
        (
            ("entity_ruler",),
            "en",
            KINDS[1:],
            "gives no parts_of_speech, it lacks a part-of-speech tagger .*_ruler",
        ),
        (("heads_only",), "en", KINDS, "gives no noun_phrases, it lacks a part-of-speech tagger"),
        (("entity_ruler",), "ru", KINDS, "gives no noun_phrases, it lacks rules for noun chunks, .* language 'ru'"),
    ],
)
def test_pipelines_that_do_not_annotate_are_refused(tmp_path, components, language, kinds, message):
    path = spacy_pipelines.save(tmp_path / "p", *components, language=language)
    with pytest.raises(UnifiedError, match=message):
        SpacyAnnotator(kinds, path)


def test_what_cannot_be_loaded_is_refused(tmp_path, pipeline, monkeypatch):
    with pytest.raises(UnifiedError, match="--spacy en_nothing: no such pipeline; give the folder of one, or install"):
        SpacyAnnotator(KINDS, "en_nothing")
    with pytest.raises(UnifiedError, match=f"--spacy {tmp_path}: no such pipeline"):
        SpacyAnnotator(KINDS, str(tmp_path))
    with pytest.raises(UnifiedError, match="--spacy-code no.such.module: cannot be imported"):
        SpacyAnnotator(KINDS, pipeline, "no.such.module")
    really_import = builtins.__import__

    def without_spacy(name, *arguments):
        if name == "spacy":
            raise ImportError
        return really_import(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_spacy)
    with pytest.raises(UnifiedError, match="--spacy needs the library spaCy, which is not installed: pip install"):
        SpacyAnnotator(KINDS, pipeline)


def test_own_components_need_their_module(pipeline, tmp_path):
    """In a process that has not imported it: one line, and with --spacy-code a folder."""
    text = write(tmp_path / "a.txt", "The tiny house is in Paris.\n" * 5)
    words = [interpreter(), "-m", "unified.cli", "prepare", text, "--tokenizer", "char", "--annotate", "noun_phrases"]
    words += ["--spacy", pipeline, "--output", str(tmp_path / "data"), "--workers", "2"]
    root = Path(__file__).parents[3]
    refused = subprocess.run(words, cwd=root, capture_output=True, text=True)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert "cannot be loaded (" in refused.stderr and "components of its own need --spacy-code" in refused.stderr
    assert not (tmp_path / "data").exists()
    made = subprocess.run([*words, "--spacy-code", CODE], cwd=root, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert "train: 10 noun_phrases" in made.stdout


def test_spacy_is_imported_only_when_asked_for(tmp_path):
    text = write(tmp_path / "a.txt", "a b\n")
    code = "import sys; from unified.cli import main; status = main(sys.argv[1:]); assert 'spacy' not in sys.modules"
    words = ["prepare", text, "--tokenizer", "char", "--workers", "1", "--output", str(tmp_path / "data")]
    subprocess.run([sys.executable, "-c", code, *words], cwd=Path(__file__).parents[3], check=True)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--annotate", "entities"], "--annotate needs --spacy PIPELINE"),
        (["--spacy", "en_core_web_sm"], "--spacy and --spacy-code need --annotate"),
        (["--annotate", "nouns", "--spacy", "en_core_web_sm"], "--annotate takes some of noun_phrases,entities"),
    ],
)
def test_options_are_checked(tmp_path, capsys, options, message):
    text = write(tmp_path / "a.txt", "a b\n")
    assert run(text, "--output", tmp_path / "data", *options) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "data").exists()


@pytest.mark.parametrize("tokenizer", ["unigram", "wordpiece"])
def test_prepared_folder_holds_the_pipelines_spans(tmp_path, pipeline, tokenizer, capsys):
    documents = random_documents(120)
    text = write(tmp_path / "a.txt", raw_text(documents))
    options = ["--annotate", ",".join(KINDS), "--spacy", pipeline, "--spacy-code", CODE, "--chunk-bytes", 3000]
    options += ["--tokenizer", tokenizer, "--vocabulary-size", 90]
    for workers in (1, 2):
        assert run(text, *options, "--workers", workers, "--output", tmp_path / f"{workers}") == 0
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
    manifest = json.loads((tmp_path / "1" / "manifest.json").read_text())
    assert manifest["annotations"] == SpacyAnnotator(KINDS, pipeline, CODE).description
    assert f"train: {manifest['splits']['train']['spans']['entities']:,} entities" in capsys.readouterr().out
    assert_folder_holds(tmp_path / "1", [line for document in documents for line in document], pipeline)


def test_cleaned_folders_with_words_from_noun_phrases_hold_the_pipelines_spans_too(tmp_path, pipeline):
    documents = list(enumerate(random_documents(120)))
    text = write(tmp_path / "a.txt", raw_text([document for _, document in documents]))
    options = ["--spacy", pipeline, "--spacy-code", CODE, "--tokenizer", "anna", "--vocabulary-size", 90]
    options += ["--chunk-bytes", 3000, "--word-share", "0.1", "--clean", "short_sentences=3,chunks=15"]
    for workers in (1, 2):
        own = ["--annotate", ",".join(KINDS), "--workers", workers, "--output", tmp_path / f"{workers}"]
        assert run(text, *options, *own) == 0
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
    chunks, _ = Cleaning.parse("short_sentences=3,chunks=15").clean(documents)
    assert_folder_holds(tmp_path / "1", [sentence for _, chunk in chunks for sentence in chunk], pipeline)
    assert run(text, *options, "--output", tmp_path / "plain") == 0  # --spacy serves the tokenizer alone
    manifest = json.loads((tmp_path / "plain" / "manifest.json").read_text())
    assert manifest["annotations"] is None and manifest["splits"]["train"]["documents"] == len(chunks)
    assert manifest["tokenizer"]["word_candidates"] == f"words of noun phrases ({pipeline})"
    assert tree(tmp_path / "plain")["train.bin"] == tree(tmp_path / "1")["train.bin"]


def test_a_trained_pipeline_finds_the_same_in_any_number_of_processes(tmp_path):
    rng = np.random.default_rng(1)
    words = ["Paris", "Rome", "Oslo", "house", "runs", "in", "the", "old", "river", "sees"]
    documents = [[" ".join(rng.choice(words, size=rng.integers(3, 15))) for _ in range(4)] for _ in range(60)]
    pipeline = spacy_pipelines.trained(tmp_path / "trained", [line for document in documents[:5] for line in document])
    text = write(tmp_path / "a.txt", raw_text(documents))
    options = ["--annotate", "entities", "--spacy", pipeline, "--chunk-bytes", 3000]
    for workers in (1, 2):
        assert run(text, *options, "--workers", workers, "--output", tmp_path / f"{workers}") == 0
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
    assert TokenFile(span_prefix(tmp_path / "1" / "train", "entities")).token_count > 20


def assert_folder_holds(folder, lines, pipeline):
    nlp, tokenizer = spacy.load(pipeline), load_tokenizer(folder)
    sentences = np.flatnonzero(TokenFile(folder / "train").sizes > 1)
    assert len(sentences) == len(lines)
    for kind in KINDS:
        file = TokenFile(span_prefix(folder / "train", kind))
        assert file.token_count > 0 or kind == "entities"
        for item, line in zip(sentences.tolist(), lines, strict=True):
            document, nouns = nlp(single_spaced(line)), []
            if kind == "noun_phrases":
                chunks = list(document.noun_chunks)
                nouns = [w for w in document if w.pos_ == "NOUN" and not any(w in chunk for chunk in chunks)]
            spans = {
                "noun_phrases": lambda d: [*d.noun_chunks],
                "entities": lambda d: d.ents,
                "parts_of_speech": lambda d: [d[w.i : w.i + 1] for w in d if not w.is_space],
            }[kind](document)
            tags = [(TAGS.index(span[0].pos_),) if kind == "parts_of_speech" else () for span in spans]
            characters = [(span.start_char, span.end_char, *tag) for span, tag in zip(spans, tags, strict=True)]
            characters = sorted(characters + [(word.idx, word.idx + len(word)) for word in nouns])
            offsets = tokenizer.encode_offsets([line])[2].tolist()
            expected = tokens_of_spans(characters, offsets)
            assert file[item].reshape(-1, columns(kind)).tolist() == [list(span) for span in expected], line


def test_real_text(tmp_path, unified_data, pipeline):
    with lzma.open(unified_data / "pretrain_wiki" / "valid.jsonl.xz", "rt", encoding="utf-8") as stream:
        lines = [line for _ in range(8) for line in json.loads(next(stream))["text"].split("\n") if line.strip()]
    lines = [line[:600] for line in lines[:80]]
    text = write(tmp_path / "a.txt", "\n".join(lines) + "\n")
    options = ["--annotate", ",".join(KINDS), "--spacy", pipeline, "--spacy-code", CODE, "--tokenizer", "unigram"]
    assert run(text, *options, "--vocabulary-size", 1000, "--output", tmp_path / "data") == 0
    assert_folder_holds(tmp_path / "data", lines, pipeline)
