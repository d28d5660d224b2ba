"""Chunks of corpora: numbers of documents and pairs, whole documents, sizes in bytes, and refusals."""

import gzip
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from tests.support.corpora import jsonl, write
from tests.support.refusals import refused
from unified.corpus import readers
from unified.corpus.readers import DocumentCorpus, ParallelCorpus, RowPairCorpus
from unified.files.text_files import CHUNK_BYTES

SIZES = (1, 7, 40, 1 << 20)


def numbered(chunks):
    """(number, paragraphs) of all documents; the parts of one that chunks divide are put together."""
    found = []
    for chunk in chunks:
        for number, paragraphs in chunk.documents():
            if found and found[-1][0] == number:
                found[-1][1].extend(paragraphs)
            else:
                found.append((number, list(paragraphs)))
    return found


def random_text(rng):
    lines = [str(rng.choice(["", " ", "\u2003\t", "a", "bb é", "ccc"])) for _ in range(rng.integers(1, 25))]
    return "\n".join(lines) + str(rng.choice(["", "\n"]))


def divided(text):
    """The documents of a text, which lines of white space divide."""
    documents, inside = [], False
    for line in text.split("\n"):
        if line.strip():
            documents[-1].append(line) if inside else documents.append([line])
        inside = bool(line.strip())
    return documents


@pytest.mark.parametrize("whole", [False, True])
def test_documents_of_all_files_are_numbered_one_by_one(tmp_path, whole):
    rng, shared = np.random.default_rng(0), 0
    for trial in range(25):
        texts = [random_text(rng) for _ in range(3)]
        paths = tuple(write(tmp_path / f"{n}.txt", text) for n, text in enumerate(texts))
        expected = list(enumerate([document for text in texts for document in divided(text)]))
        for size in SIZES:
            chunks = list(DocumentCorpus(paths, chunk_bytes=size).chunks(whole_documents=whole))
            assert numbered(chunks) == expected, (trial, size)
            assert sum(chunk.size for chunk in chunks) == sum(len(text.encode()) for text in texts)
            seen = [number for chunk in chunks for number, _ in chunk.documents()]
            shared += len(seen) - len(set(seen))
            assert not whole or len(seen) == len(set(seen))
    assert whole or shared > 50


def test_documents_of_rows_have_the_numbers_of_their_lines(tmp_path):
    first = write(tmp_path / "a.jsonl", '{"text": "a\\n b"}\n\n{"text": ""}\n{"text": "c"}\n')
    second = jsonl(tmp_path / "b.jsonl", [{"text": "d"}, {"text": "e"}])
    plain = write(tmp_path / "c.txt", "f\n")
    for size in SIZES:
        corpus = DocumentCorpus((first, second, plain), chunk_bytes=size)
        chunks = list(corpus.chunks(skip_empty=True))
        expected = [(0, ["a", " b"]), (3, ["c"]), (4, ["d"]), (5, ["e"]), (6, ["f"])]
        assert numbered(chunks) == expected and len(chunks) > 2
        assert sum(chunk.size for chunk in chunks) == sum(Path(path).stat().st_size for path in corpus.paths)


def test_corpora_read_the_field_text_in_chunks_of_a_mebibyte_by_default():
    corpus = DocumentCorpus(("a.txt",))
    assert (corpus.text_field, corpus.chunk_bytes, CHUNK_BYTES) == ("text", CHUNK_BYTES, 1 << 20)
    for one in (corpus, ParallelCorpus(("a",), ("b",)), RowPairCorpus(("a",), "s", "t")):
        assert one.chunk_bytes == CHUNK_BYTES
        with pytest.raises(FrozenInstanceError):
            one.chunk_bytes = 3


def test_the_files_of_a_parallel_corpus_are_its_sources_and_then_its_targets():
    assert ParallelCorpus(("a", "b"), ("c", "d")).paths == ("a", "b", "c", "d")


def test_a_whole_document_may_have_as_many_bytes_as_a_line_may(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "longest_line", lambda path: 1 << 20)
    line = b"x" * 1023 + b"\n"
    for before, first_line, sizes in ((b"", 1, []), (b"one\n\n" + 512 * line + b"\n", 516, [1, 512])):
        for more in (b"", b"x"):
            path = write(tmp_path / "a.txt", before + 1024 * line + more)
            chunks = DocumentCorpus((path,), chunk_bytes=1 << 17).chunks(whole_documents=True)
            if not more:
                assert [len(paragraphs) for _, paragraphs in numbered(chunks)] == [*sizes, 1024]
                continue
            assert refused(list, chunks) == (
                f"{path}: the document at line {first_line} is longer than 1 MiB; here documents are read whole, "
                "and blank lines divide them"
            )


# ---------------------------------------------------------------- pairs


def test_pairs_of_all_files_are_numbered_and_found_again(tmp_path):
    rows = [{"s": f"source {n}", "t": f"target {n}", "sentences": [0], "oracle": [0] * (n % 2)} for n in range(7)]
    rowed = [jsonl(tmp_path / f"{n}.jsonl", part) for n, part in enumerate((rows[:3], rows[3:]))]
    sides = {
        side: tuple(
            write(tmp_path / f"{side}{n}", "".join(f"{row[side]}\n" for row in part))
            for n, part in enumerate((rows[:3], rows[3:]))
        )
        for side in "st"
    }
    expected = [(n, row["s"], row["t"]) for n, row in enumerate(rows)]
    for size in SIZES:
        chunks = list(RowPairCorpus(tuple(rowed), "s", "t", chunk_bytes=size).chunks())
        assert [pair for chunk in chunks for pair in chunk.pairs()] == expected
        marked = [pair for chunk in chunks for pair in chunk.pairs_with_spans()]
        spans = [{"sentences": [(0, 8)], "oracle": [(0, 8)] * (n % 2)} for n in range(7)]
        assert marked == [(*pair, own) for pair, own in zip(expected, spans, strict=True)]
        locations = [
            (n, chunk.location(n, side)) for chunk in chunks for n, *_ in chunk.pairs() for side in ("source", "target")
        ]
        lines = [(rowed[n > 2], n + 1 - 3 * (n > 2)) for n in range(7)]
        assert locations == [
            (n, f"{path}, line {line}, field '{f}'") for n, (path, line) in enumerate(lines) for f in "st"
        ]
        assert sum(chunk.size for chunk in chunks) == sum(Path(path).stat().st_size for path in rowed)

        chunks = list(ParallelCorpus(sides["s"], sides["t"], chunk_bytes=size).chunks())
        assert [pair for chunk in chunks for pair in chunk.pairs()] == expected
        locations = [
            chunk.location(n, side) for chunk in chunks for n, *_ in chunk.pairs() for side in ("source", "target")
        ]
        lines = [(n > 2, n + 1 - 3 * (n > 2)) for n in range(7)]
        assert locations == [f"{sides[side][part]}, line {line}" for part, line in lines for side in "st"]
        assert sum(chunk.size for chunk in chunks) == sum(len(f"{row['s']}\n{row['t']}\n") for row in rows)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("sources", "targets", "ends", "after"),
    [
        ("abcde", "abc", "t", 3),
        ("abcde", "", "t", 0),
        ("abc", "abcd", "s", 3),
        ("", "ab", "s", 0),
        ("a", "abc", "s", 1),
    ],
)
def test_the_file_of_a_pair_that_ends_first_is_named(tmp_path, size, sources, targets, ends, after):
    texts = {"s": sources, "t": targets}
    paths = {name: write(tmp_path / name, "".join(f"{letter}\n" for letter in text)) for name, text in texts.items()}
    before = {name: write(tmp_path / f"{name}0", "x\ny\n") for name in texts}
    corpus = ParallelCorpus((before["s"], paths["s"]), (before["t"], paths["t"]), chunk_bytes=size)
    other = paths["s" if ends == "t" else "t"]
    assert refused(list, corpus.chunks()) == (
        f"{paths[ends]}: ends after line {after}, but {other} goes on; parallel files need the same number of lines"
    )


# ---------------------------------------------------------------- rows that are refused


def documents_of(path, **options):
    return [pair for chunk in DocumentCorpus((path,), "body").chunks(**options) for pair in chunk.documents()]


def pairs_of(path, with_spans=False):
    (chunk,) = RowPairCorpus((path,), "src", "tgt").chunks()
    return list(chunk.pairs_with_spans() if with_spans else chunk.pairs())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a"}, "no field 'body'; its fields: 'text'; --text-field names the one to read"),
        ({"body": ["a"]}, "field 'body' is a list, not a text"),
        ({"body": "\ud83d"}, "field 'body' holds half of a surrogate pair"),
        ({"body": " \n"}, "the field 'body' is empty; --skip-empty leaves such rows out"),
    ],
)
def test_a_row_of_documents_is_refused_by_its_line(tmp_path, row, message):
    path = jsonl(tmp_path / "a.jsonl", [{"body": "good"}, row])
    assert refused(documents_of, path) == f"{path}, line 2: {message}"


def test_documents_without_text_are_left_out_where_that_is_asked_for(tmp_path):
    empty = [{"body": ""}, {"body": " \n\t"}, {"body": None}]
    path = jsonl(tmp_path / "a.jsonl", [{"body": "good"}, *empty, {"body": "more"}])
    assert documents_of(path, skip_empty=True) == [(0, ["good"]), (4, ["more"])]
    said = f"{path}, 3 lines (2, 3, 4): the field 'body' is empty; --skip-empty leaves such rows out"
    assert refused(documents_of, path).startswith(said)


def test_null_in_pairs_is_an_empty_side_or_part(tmp_path):
    rows = [{"src": None, "tgt": "a"}, {"src": "a", "tgt": None}, {"src": ["a", None], "tgt": "b"}]
    path = jsonl(tmp_path / "a.jsonl", rows)
    assert pairs_of(path) == [(0, "", "a"), (1, "a", ""), (2, ["a", ""], "b")]


def test_all_wrong_rows_of_a_chunk_are_named_and_the_line_where_reading_ended(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [{"body": 3}, {"body": "good"}, {"body": 4}, {"body": "good"}])
    assert refused(documents_of, path) == (
        f"{path}, 2 lines (1, 3): field 'body' is an integer, not a text; nothing behind line 4 was read"
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tgt": "a"}, "no field 'src'; its fields: 'tgt'; --source-field names the one to read"),
        ({"src": "a"}, "no field 'tgt'; its fields: 'src'; --target-field names the one to read"),
        ({"src": 3, "tgt": "a"}, "field 'src' is an integer, not a text"),
        ({"src": ["a", 3], "tgt": "a"}, "field 'src[1]' is an integer, not a text"),
        ({"src": ["\udc00"], "tgt": "a"}, "field 'src[0]' holds half of a surrogate pair"),
        ({"src": "a", "tgt": ["b"]}, "field 'tgt' is a list, not a text"),
    ],
)
def test_a_row_of_pairs_is_refused_by_its_line(tmp_path, row, message):
    path = jsonl(tmp_path / "a.jsonl", [{"src": ["a", "b"], "tgt": "c"}, row])
    assert refused(pairs_of, path) == f"{path}, line 2: {message}"


def test_a_source_may_have_parts_and_an_oracle_needs_one(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [{"src": ["a", "b"], "tgt": "c", "sentences": [0], "oracle": []}])
    assert pairs_of(path) == [(0, ["a", "b"], "c")]
    assert refused(pairs_of, path, with_spans=True) == (
        f"{path}, line 1: an extractive oracle needs a source of one part; this one has several; make it with "
        "`unified pairs --oracle`"
    )
    path = jsonl(tmp_path / "b.jsonl", [{"src": "a b", "tgt": "c"}])
    assert refused(pairs_of, path, with_spans=True) == (
        f"{path}, line 1: no field 'sentences'; its fields: 'src', 'tgt'; `unified pairs --oracle` adds it"
    )


def test_the_size_of_compressed_text_is_that_of_the_text(tmp_path):
    path = write(tmp_path / "a.txt.gz", gzip.compress(b"a\n\nb\n"))
    (chunk,) = DocumentCorpus((path,)).chunks()
    assert chunk.size == 5 and list(chunk.documents()) == [(0, ["a"]), (1, ["b"])]
