"""Reading of corpora: documents, pairs and compression, wherever the chunks are cut."""

import gzip
import lzma
import random
from dataclasses import replace

import numpy as np
import pytest
import zstandard

from tests.support.corpora import json_lines, random_documents, run, tree, write
from unified.corpus.readers import DocumentCorpus, ParallelCorpus, RowPairCorpus
from unified.files.text_files import CHUNK_BYTES


def read_documents(paths, chunk_bytes=CHUNK_BYTES):
    """Paragraphs by document, put together over chunks."""
    documents = {}
    for chunk in DocumentCorpus(tuple(paths), chunk_bytes=chunk_bytes).chunks(skip_empty=True):
        for number, paragraphs in chunk.documents():
            documents.setdefault(number, []).extend(paragraphs)
    return [documents[number] for number in sorted(documents)]


def test_chunks_cut_anywhere_give_the_same_documents(tmp_path):
    rng = np.random.default_rng(0)
    for trial in range(60):
        lines = [rng.choice(["", "  ", "\t", "a", "bb é", "c\u2028c", "d\x0cd"]) for _ in range(rng.integers(1, 30))]
        text = "\n".join(lines) + rng.choice(["", "\n", "\n\n"])
        expected, inside = [], False
        for line in text.split("\n"):
            if line.strip() and inside:
                expected[-1].append(line)
            elif line.strip():
                expected.append([line])
            inside = bool(line.strip())
        paths = [write(tmp_path / "a.txt", text)] * 2  # a file ends its last document
        for size in (1, 2, 5, 1 << 20):
            assert read_documents(paths, size) == expected * 2, (trial, size)


def test_lines_end_at_line_feeds_alone_and_marks_of_other_systems_do_not_show(tmp_path):
    text = b"\xef\xbb\xbfone\r\ntwo\x0btwo\x1ctwo\xc2\x85two\r\n\r\nthree"
    paths = [write(tmp_path / "a.txt", text)]
    assert read_documents(paths) == [
        ["one", "two\x0btwo\x1ctwo\x85two"],
        ["three"],
    ]


def test_json_documents_split_their_text_at_newlines(tmp_path):
    content = '{"text": "a\\r\\nb\\n\\n c\\r\\n"}\n\n{"text": ""}\n  \n{"text": "d", "other": 3}'
    assert read_documents([write(tmp_path / "a.jsonl", content)]) == [["a", "b", " c"], ["d"]]


def test_parallel_files_stay_parallel_however_chunks_are_cut(tmp_path):
    rng = np.random.default_rng(1)
    sources = ["s" * rng.integers(0, 9) + str(i) for i in range(200)]
    targets = ["é" * rng.integers(0, 30) + str(i) for i in range(200)]
    corpus = ParallelCorpus(
        (write(tmp_path / "a", "\n".join(sources)), write(tmp_path / "c", "x\ny\n")),
        (write(tmp_path / "b", "\n".join(targets) + "\n"), write(tmp_path / "d", "X\nY")),
    )
    for size in (1, 10, 1 << 20):
        pairs = [pair for chunk in replace(corpus, chunk_bytes=size).chunks() for pair in chunk.pairs()]
        expected = zip(range(202), [*sources, "x", "y"], [*targets, "X", "Y"], strict=True)
        assert pairs == list(expected)


def test_json_pairs_may_sit_beside_other_fields(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"q": "x", "a": "y"}\n\n{"a": "w", "q": "z"}\n')
    corpus = RowPairCorpus((path,), "q", "a")
    assert [pair for chunk in corpus.chunks() for pair in chunk.pairs()] == [(0, "x", "y"), (2, "z", "w")]


def compress(kind, data):
    if kind == "zst":
        half = len(data) // 2  # two frames, as parallel compressors write
        return b"".join(zstandard.ZstdCompressor().compress(part) for part in (data[:half], data[half:]))
    return gzip.compress(data) if kind == "gz" else lzma.compress(data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_compressed_files_are_the_same_text_and_damage_is_found(tmp_path, capsys, kind):
    plain = json_lines(random_documents(700, seed=5)).encode()
    packed = compress(kind, plain)
    a, b = write(tmp_path / "a.jsonl", plain), write(tmp_path / f"b.jsonl.{kind}", packed)
    assert run(a, "--output", tmp_path / "a") == run(b, "--output", tmp_path / "b") == 0
    assert tree(tmp_path / "a")["train.bin"] == tree(tmp_path / "b")["train.bin"]
    capsys.readouterr()
    for damaged in (packed[: len(packed) // 3], packed[:-3], packed[:40] + bytes(40) + packed[80:], b"plain text\n"):
        path = write(tmp_path / f"c.jsonl.{kind}", damaged)
        assert run(path, "--output", tmp_path / "c") == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert f"c.jsonl.{kind}: the compressed data are damaged or cut off" in error
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_a_line_too_long_for_the_memory_is_refused(tmp_path, capsys):
    line = random.Random(1).randbytes(9 << 20).hex()
    path = write(tmp_path / "a.txt.zst", zstandard.compress(f"a\n{line}\nb\n".encode()))
    assert run(path, "--output", tmp_path / "data") == 2
    assert "longer than 16 MiB" in capsys.readouterr().err.splitlines()[-1]
