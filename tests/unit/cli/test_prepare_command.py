"""`unified prepare`: the settings that its options become, options that do not go together, and what it reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.task_folders import tokenizer
from unified.cli import main
from unified.corpus.annotate import AnnotationSource
from unified.corpus.cleaning import Cleaning
from unified.corpus.prepare import Settings
from unified.corpus.readers import DocumentCorpus, ParallelCorpus, RowPairCorpus
from unified.corpus.tokenizer_source import TokenizerSource
from unified.errors import UnifiedError
from unified.files.text_files import CHUNK_BYTES

COUNTS = {"documents": 1234, "skipped": 0, "sentences": 5678, "tokens": 4000, "unknown": 5}
MANIFEST = {"content": "documents", "splits": {"train": COUNTS}, "reserved": 0, "symbols": 32000}


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Runs a command that prepares nothing; returns the settings, the output folder and the rest that it passes on."""
    given: list[tuple] = []
    monkeypatch.chdir(tmp_path)
    tokenizer().save(tmp_path)

    def prepare(settings, output, **more):
        given.append((settings, output, more))
        return MANIFEST

    monkeypatch.setattr("unified.corpus.prepare.prepare", prepare)
    monkeypatch.setattr("unified.runtime.parallel.available_cores", lambda: 77)

    def run(line: str) -> tuple:
        assert main(["prepare", "--output", "out", *line.split()]) == 0
        return given.pop()

    return run


def test_defaults_reach_the_library(asked):
    settings, output, more = asked("a.txt b.txt")
    assert (output, more) == ("out", {"workers": 77, "overwrite": False})
    assert settings == Settings(
        train=DocumentCorpus(("a.txt", "b.txt"), "text", CHUNK_BYTES), valid=None, test=None, valid_share=0.0,
        tokenizer=TokenizerSource(name="unigram", sample_megabytes=20), cleaning=None, annotation=None,
        skip_empty=False, oracle=False, reserve=0, seed=1,
    )  # fmt: skip


def test_every_option_of_documents_reaches_the_library(asked):
    settings, _, more = asked(
        "a.csv --valid b.csv c.csv --test d.csv --text-field body --skip-empty --overwrite --clean urls --tokenizer "
        "anna --vocabulary-size 900 --word-share 0.5 --spacy pipe --spacy-code mod --annotate "
        "noun_phrases,entities --reserve 3 --sample-megabytes 4 --workers 2 --chunk-bytes 99 --seed 5"
    )
    assert more == {"workers": 2, "overwrite": True}
    assert settings == Settings(
        train=DocumentCorpus(("a.csv",), "body", 99), valid=DocumentCorpus(("b.csv", "c.csv"), "body", 99),
        test=DocumentCorpus(("d.csv",), "body", 99), valid_share=0.0,
        tokenizer=TokenizerSource(
            name="anna", vocabulary_size=900, word_share=0.5, spacy="pipe", spacy_code="mod",
            sample_megabytes=4,
        ),
        cleaning=Cleaning.parse("urls"),
        annotation=AnnotationSource(("noun_phrases", "entities"), "pipe", "mod"), skip_empty=True, reserve=3, seed=5,
    )  # fmt: skip


@pytest.mark.parametrize("line", ["a.txt b.csv", "a.txt --valid b.csv", "a.txt --test b.csv"])
def test_options_of_rows_reach_them_beside_raw_text(asked, line):
    settings, _, _ = asked(f"{line} --text-field body --skip-empty")
    assert settings.train.text_field == "body" and settings.skip_empty


def test_a_tokenizer_is_trained_as_the_options_say_or_taken_from_a_folder(asked, tmp_path):
    settings, _, _ = asked(
        "a.txt --valid-share 0.25 --tokenizer bpe --character-coverage 0.5 --normalization nfkc --lowercase "
        "--byte-fallback"
    )
    assert settings.valid_share == 0.25 and settings.tokenizer == TokenizerSource(
        name="bpe", character_coverage=0.5, normalization="nfkc", lowercase=True, byte_fallback=True
    )
    for name in ("char", "wordpiece"):
        assert asked(f"a.txt --tokenizer {name}")[0].tokenizer.name == name
    assert asked("a.txt --tokenizer vocab.txt")[0].tokenizer == TokenizerSource(name="vocab.txt")


def test_a_pipeline_is_that_of_annotations_or_of_the_words_of_anna(asked):
    alone = asked("a.txt --tokenizer anna --spacy pipe --spacy-code mod")[0]
    assert alone.annotation is None and (alone.tokenizer.spacy, alone.tokenizer.spacy_code) == ("pipe", "mod")
    other = asked("a.txt --annotate entities --spacy pipe")[0]
    assert other.annotation == AnnotationSource(("entities",), "pipe", None)
    assert (other.tokenizer.spacy, other.tokenizer.spacy_code) == (None, None)


def test_pairs_are_two_fields_of_rows_or_two_files(asked):
    fields = "--source-field s --target-field t"
    settings, _, _ = asked(f"a.csv {fields} --valid b.jsonl --test c.tsv --oracle --chunk-bytes 9")
    assert (settings.train, settings.oracle) == (RowPairCorpus(("a.csv",), "s", "t", 9), True)
    assert settings.valid == RowPairCorpus(("b.jsonl",), "s", "t", 9)
    assert settings.test == RowPairCorpus(("c.tsv",), "s", "t", 9)
    settings, _, _ = asked(
        "a b --target c d --valid e --valid-target f --test g --test-target h --chunk-bytes 9 --skip-empty"
    )
    assert settings.train == ParallelCorpus(("a", "b"), ("c", "d"), 9) and settings.skip_empty
    assert (settings.valid, settings.test) == (ParallelCorpus(("e",), ("f",), 9), ParallelCorpus(("g",), ("h",), 9))
    assert asked("a --target b")[0].valid is None


TWO_WAYS = "are two ways to say what the pairs are; use one"
OF_PAIRS = "is for documents; fields of pairs are named by --source-field, --target-field"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a --valid-target b", "--valid-target: there are no sources to these targets"),
        ("a --test-target b", "--test-target: there are no sources to these targets"),
        ("a --valid b --valid-target c", "--valid-target needs --target: the training text has no targets"),
        ("a --test b --test-target c", "--test-target needs --target: the training text has no targets"),
        ("a.csv --source-field s", "--source-field and --target-field go together"),
        ("a.csv --target-field t", "--source-field and --target-field go together"),
        ("a.csv --source-field s --target-field t --valid b.csv --valid-target c",
         f"--valid-target and --source-field {TWO_WAYS}"),
        ("a.csv --source-field s --target b", f"--target and --source-field {TWO_WAYS}"),
        ("a.csv --target-field t --target b", f"--target and --source-field {TWO_WAYS}"),
        ("a.csv --source-field s --target-field s",
         "--source-field s and --target-field s: one field is named twice; each needs its own"),
        ("a b --target c", "--target: 1 file for 2 files of sources"),
        ("a --target b c", "--target: 2 files for 1 file of sources"),
        ("a --target b --valid c", "--valid-target: 0 files for 1 file of sources"),
        ("a --target b --test c d --test-target e", "--test-target: 1 file for 2 files of sources"),
        ("a.csv --target b",
         "a.csv: its name says that it holds fields; --source-field and --target-field name those of a pair"),
        ("a --target b.jsonl",
         "b.jsonl: its name says that it holds fields; --source-field and --target-field name those of a pair"),
        ("a --spacy p", "--spacy and --spacy-code need --annotate, which says what to annotate, or --tokenizer anna"),
        ("a --spacy-code c",
         "--spacy and --spacy-code need --annotate, which says what to annotate, or --tokenizer anna"),
        ("a --tokenizer anna --spacy-code c", "--spacy-code c belongs to a pipeline; give --spacy PIPELINE too"),
        ("a --annotate entities", "--annotate needs --spacy PIPELINE, which finds the spans"),
        ("a --text-field text", "--text-field text is for rows, and no file has any, by its name: a"),
        ("a.txt b --valid c --test d --skip-empty",
         "--skip-empty is for rows, and no file has any, by its name: a.txt; b; c; d"),
        ("a.csv --source-field s --target-field t --text-field text", f"--text-field text {OF_PAIRS}"),
        ("a --target b --text-field text", f"--text-field text {OF_PAIRS}"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(capsys, line, says):
    assert main(["prepare", "--output", "nowhere/out", *line.split()]) == 2
    assert capsys.readouterr().err == f"unified prepare: error: {says}\n"


@pytest.mark.parametrize(
    ("more", "then"),
    [("", "begins anew"), (" --annotate entities --spacy p", "goes on behind the annotations that were found")],
)
def test_an_interruption_is_noted(asked, monkeypatch, capsys, more, then):
    def prepare(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("unified.corpus.prepare.prepare", prepare)
    assert main(["prepare", "a.txt", "--output", "out", *more.split()]) == 130
    says = f"interrupted; nothing is written to out, and the same command {then}\n"
    assert capsys.readouterr() == ("", says)


def test_files_of_raw_text_have_no_fields(capsys):
    line = "a.csv b.txt --source-field s --target-field t"
    assert main(["prepare", "--output", "nowhere/out", *line.split()]) == 2
    told = capsys.readouterr().err
    assert told.startswith("unified prepare: error: b.txt: --source-field needs one file of rows (CSV, TSV, ")
    assert told.endswith("), or --target a file of targets\n")


def test_a_tokenizer_that_nobody_knows_is_refused_with_the_reason(capsys, monkeypatch):
    def unknown(name):
        raise UnifiedError(f"no {name} there")

    monkeypatch.setattr("unified.conversions.named_tokenizers.tokenizer_named", unknown)
    assert main(["prepare", "a", "--output", "nowhere/out", "--tokenizer", "some/model"]) == 2
    assert capsys.readouterr().err == (
        "unified prepare: error: --tokenizer some/model: none of unigram, bpe, char, wordpiece, anna, nor a model; no "
        "some/model there\n"
    )
    assert main(["prepare", "a", "--output", "nowhere/out", "--tokenizer", "wordpeice"]) == 2
    assert capsys.readouterr().err == (
        "unified prepare: error: --tokenizer wordpeice: none of unigram, bpe, char, wordpiece, anna (did you mean "
        "'wordpiece'?)\n"
    )


def report(monkeypatch, capsys, manifest: dict, *more: str) -> str:
    """What the command prints of a folder with this manifest."""
    monkeypatch.setattr("unified.corpus.prepare.prepare", lambda *_, **__: manifest)
    assert main(["prepare", "a.txt", "--output", "out", *more]) == 0
    return capsys.readouterr().out


def test_counts_of_documents_are_reported(monkeypatch, capsys):
    valid = COUNTS | {"skipped": 1000, "spans": {"entities": 1500, "noun_phrases": 0}}
    manifest = MANIFEST | {"splits": {"train": COUNTS, "valid": valid}, "reserved": 1024}
    counts = "1,234 documents{}, 5,678 sentences, 4,000 tokens, 5 of them unknown (0.125 %)"
    assert report(monkeypatch, capsys, manifest).splitlines() == [
        f"train: {counts.format('')}",
        f"valid: {counts.format(' (1,000 skipped)')}",
        "valid: 1,500 entities",
        "valid: 0 noun_phrases",
        "vocabulary: 32,000 symbols, 1,024 of them reserved",
        "wrote out",
    ]
    assert report(monkeypatch, capsys, MANIFEST).splitlines()[-2] == "vocabulary: 32,000 symbols"


def test_counts_of_pairs_are_reported(monkeypatch, capsys):
    sides = {"source": {"tokens": 3000, "unknown": 0}, "target": {"tokens": 8, "unknown": 2}}
    plain = {"pairs": 1000, "skipped": 0, **sides}
    marked = {"pairs": 1, "skipped": 1, **sides, "spans": {"sentences": 5000, "oracle": 1200}}
    manifest = MANIFEST | {"content": "pairs", "splits": {"train": plain, "test": marked}}
    tokens = "source 3,000 tokens, 0 of them unknown (0.000 %); target 8 tokens, 2 of them unknown (25.000 %)"
    assert report(monkeypatch, capsys, manifest).splitlines() == [
        f"train: 1,000 pairs; {tokens}",
        f"test: 1 pair (1 skipped); {tokens}",
        "test: 5,000 sentences, of which the oracle takes 1,200",
        "vocabulary: 32,000 symbols",
        "wrote out",
    ]


def test_what_was_cleaned_is_reported_first(monkeypatch, capsys):
    cleaned = {
        "input": {"documents": 9000, "words": 12}, "removed": {"urls": {"words": 3}, "noise": {"lines": 1, "words": 4}},
        "kept": {"documents": 8000, "words": 5}, "chunks": None,
    }  # fmt: skip
    manifest = MANIFEST | {"cleaning": {"train": cleaned, "valid": cleaned | {"chunks": 1300}}}
    lines = report(monkeypatch, capsys, manifest).splitlines()
    shared = [
        "  urls removed 3 words",
        "  noise removed 1 line, 4 words",
    ]
    assert lines[:8] == [
        "cleaning of train: 9,000 documents, 12 words", *shared, "  kept 8,000 documents, 5 words",
        "cleaning of valid: 9,000 documents, 12 words", *shared, "  kept 8,000 documents, 5 words, now 1,300 documents",
    ]  # fmt: skip
    assert lines[8].startswith("train: 1,234 documents")


def test_the_manifest_is_printed_for_programs(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert json.loads(report(monkeypatch, capsys, MANIFEST, "--json")) == {"output": "out", **MANIFEST}
    assert not Path("out").exists()
