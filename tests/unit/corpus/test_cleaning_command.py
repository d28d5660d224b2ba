"""Cleaning within `unified prepare`: what is written, what is reported, and what is refused."""

import itertools
import json
import random
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import zstandard

from tests.support.corpora import expected_items, items, json_lines, random_lines, raw_text, run, tree, write
from unified.corpus.cleaning import Cleaning
from unified.corpus.readers import DocumentCorpus, TextChunk
from unified.data.sampling import uniform
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer


def cleaned_by(rules, documents):
    return [sentences for _, sentences in Cleaning.parse(rules).clean(list(enumerate(documents)))[0]]


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_a_cleaned_folder_is_that_of_the_cleaned_text(tmp_path, as_json):
    rng = np.random.default_rng(4)
    lines = iter(random_lines(2000, seed=5))
    documents = [[*itertools.islice(lines, rng.integers(1, 9))] for _ in range(250)]
    rules = "urls,paths,noise,short_sentences=4,short_documents=12,chunks=15"
    text = json_lines(documents) if as_json else raw_text(documents)
    path = write(tmp_path / ("a.jsonl" if as_json else "a.txt"), text)
    for workers in (1, 3):
        options = ["--clean", rules, "--valid-share", "0.2", "--workers", workers, "--chunk-bytes", 900]
        assert run(path, *options, "--output", tmp_path / str(workers)) == 0
    assert tree(tmp_path / "1") == tree(tmp_path / "3")
    data = tmp_path / "1"
    tokenizer, vocabulary = load_tokenizer(data), Vocabulary.load(data / "dict.txt")
    is_valid = uniform(1, np.arange(250)) < 0.2  # by document of the text, so that its chunks stay together
    cleaned, report = Cleaning.parse(rules).clean(list(enumerate(documents)))
    assert 200 < len(cleaned)
    for part, side in (("train", False), ("valid", True)):
        chosen = [sentences for number, sentences in cleaned if is_valid[number] == side]
        assert items(data / part) == expected_items(chosen, tokenizer, vocabulary)
    manifest = json.loads((data / "manifest.json").read_text())
    assert manifest["cleaning"] == {"train": asdict(report)}
    assert manifest["settings"]["cleaning"] == asdict(Cleaning.parse(rules))
    assert sum(split["documents"] for split in manifest["splits"].values()) == report.chunks


def test_every_text_is_cleaned_and_the_summary_says_how_much_went(tmp_path, capsys):
    train, valid = (
        write(tmp_path / "a.txt", "Short.\nOne two three http://x.y four.\n"),
        write(tmp_path / "b.txt", "a b\n"),
    )
    options = ["--valid", valid, "--clean", "urls,short_sentences=2", "--output", tmp_path / "data"]
    assert run(train, *options) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:8] == [
        "cleaning of train: 1 document, 2 sentences, 6 words, 32 characters",
        "  urls removed 0 documents, 0 sentences, 1 word, 10 characters",
        "  short_sentences removed 0 documents, 1 sentence, 1 word, 6 characters",
        "  kept 1 document, 1 sentence, 4 words, 16 characters",
        "cleaning of valid: 1 document, 1 sentence, 2 words, 2 characters",
        "  urls removed 0 documents, 0 sentences, 0 words, 0 characters",
        "  short_sentences removed 0 documents, 0 sentences, 0 words, 0 characters",
        "  kept 1 document, 1 sentence, 2 words, 2 characters",
    ]


def test_the_tokenizer_is_trained_on_cleaned_text(tmp_path):
    path = write(tmp_path / "a.txt", "plain words here\nQ\n\nsee http://Z.org too\n")
    assert run(path, "--clean", "urls,short_sentences=2", "--output", tmp_path / "data") == 0
    symbols = load_tokenizer(tmp_path / "data").native_symbols()
    assert "p" in symbols and "t" in symbols and "Z" not in symbols and "Q" not in symbols


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            "short",
            "--clean: no rule 'short'; the rules are urls, paths, noise, sentences, short_sentences, ",
        ),
        ("", "--clean: no rule ''"),
        ("urls,anna", "no rule 'anna'; the rules are urls, .* or anna by itself"),
        ("urls,chunks=3,urls", "--clean: urls is given twice"),
        ("urls=1", "--clean: urls takes no value, got '1'"),
        ("chunks", "--clean: chunks needs a value: chunks=N"),
        ("language=", "--clean: language needs a value: language=en"),
        ("chunks=9,overlap=9", "--clean: overlap=9 needs chunks of more words, got chunks=9"),
        ("overlap=9", "--clean: overlap=9 needs chunks of more words, got chunks=None"),
        ("chunks=9,overlap=0", "--clean: overlap is a whole number of at least 1, got 0"),
        ("chunks=0", "--clean: chunks is a whole number of at least 1, got 0"),
        ("short_documents=-5", "--clean: short_documents is a whole number of at least 1, got '-5'"),
        ("short_sentences=1.5", "--clean: short_sentences is a whole number"),
        ("language=english", "--clean language=english: no such language; known are .* en "),
        ("short_documents=100", "a.txt: no text that --clean leaves"),
    ],
)
def test_refusals(tmp_path, capsys, rules, message, workers):
    path = write(tmp_path / "a.txt", "a few words\n")
    assert run(path, "--clean", rules, "--workers", workers, "--output", tmp_path / "data") == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert len(errors) == 1 and not (tmp_path / "data").exists()
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(errors[0])


def test_pairs_wrong_numbers_and_a_missing_library_are_refused(tmp_path, capsys, monkeypatch):
    path = write(tmp_path / "a.txt", "a\n")
    assert run(path, "--target", path, "--clean", "urls", "--output", tmp_path / "data") == 2
    assert "--clean is for documents; pairs are taken as they are" in capsys.readouterr().err
    with pytest.raises(UnifiedError, match="--clean: chunks is a whole number of at least 1, got 0"):
        Cleaning(chunks=0)
    monkeypatch.setitem(sys.modules, "py3langid", None)
    assert run(path, "--clean", "anna", "--output", tmp_path / "data") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "needs the library py3langid; install it with: pip install '.[clean]'" in line


# Chunks of whole documents


def test_whole_documents_are_the_documents_wherever_chunks_are_cut(tmp_path):
    for trial in range(40):
        rng = np.random.default_rng(trial)
        lines = [rng.choice(["", "  ", "a", "bb é"], p=[0.2, 0.1, 0.4, 0.3]) for _ in range(rng.integers(1, 40))]
        text = "\n".join(lines) + rng.choice(["", "\n", "\n\n"])
        paths = (write(tmp_path / "a.txt", text), write(tmp_path / "b.jsonl", '{"text": "x\\ny"}\n\n{"text": "z"}\n'))
        corpus = DocumentCorpus((*paths, paths[0]))
        expected = [document for chunk in corpus.chunks() for document in chunk.documents()]
        for size in (1, 3, 17, 1 << 20):
            chunks = list(replace(corpus, chunk_bytes=size).chunks(whole_documents=True))
            assert [document for chunk in chunks for document in chunk.documents()] == expected
            assert sum(chunk.size for chunk in chunks) == sum(Path(path).stat().st_size for path in corpus.paths)
            raw = [chunk.raw for chunk in chunks if isinstance(chunk, TextChunk) and chunk.raw.path == paths[0]]
            assert [line for chunk in raw for line in chunk.lines] == text.removesuffix("\n").split("\n") * 2


@pytest.mark.slow
def test_an_endless_document_is_refused_where_it_has_to_be_whole(tmp_path, capsys):
    lines = "".join(f"{random.Random(i).randbytes(1 << 19).hex()}\n" for i in range(18)).encode()
    path = write(tmp_path / "a.txt.zst", zstandard.compress(b"short\n\n" + lines))
    assert run(path, "--clean", "urls", "--output", tmp_path / "data") == 2
    expected = "a.txt.zst: the document at line 3 is longer than 16 MiB; here documents are read whole"
    assert expected in capsys.readouterr().err
    with pytest.raises(UnifiedError, match="line 3"):
        list(DocumentCorpus((path,)).chunks(whole_documents=True))
