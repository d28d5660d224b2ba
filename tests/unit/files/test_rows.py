"""One reader for all formats: equal rows are equal in each, and what is wrong is named with its place."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import random
import sys
import types

import numpy as np
import pytest
import zstandard

from tests.support.corpora import csv_text, parquet, run, tree, write
from tests.support.refusals import refused
from unified.corpus.readers import DocumentCorpus, RowPairCorpus
from unified.errors import UnifiedError
from unified.files.json_array import array_entries
from unified.files.rows import has_fields, is_name_of_data, read_rows, row_chunks, stream_rows

PIECES = ["a", "Ärger", " ", ",", ";", "\t", '"', '""', "\n", "'", "\\", "中文", "\u2028", "{", "[", "1", "x y", "\x0c"]
COMPRESSED = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.compress}


def random_rows(seed, count=30):
    """Rows of two texts with everything that a format could stumble over."""
    rng = random.Random(seed)

    def text():
        return "x" + "".join(rng.choices(PIECES, k=rng.randint(0, 12))) + "."

    return [{"text": text(), "the label": text()} for _ in range(count)]


WRITTEN = {
    "csv": csv_text,
    "tsv": lambda rows: csv_text(rows, "\t"),
    "jsonl": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "json": lambda rows: json.dumps(rows, ensure_ascii=False, indent=1),
}


def every_file(folder, rows):
    """Yields files that hold equal rows: one of each format, and text formats compressed in each way too."""
    folder.mkdir(exist_ok=True)
    for ending, content in WRITTEN.items():
        data = content(rows).encode()
        yield write(folder / f"rows.{ending}", data)
        yield write(folder / f"marked.{ending}", b"\xef\xbb\xbf" + data)
        for kind, compress in COMPRESSED.items():
            yield write(folder / f"rows.{ending}.{kind}", compress(data))
    yield write(folder / "one_line.json", json.dumps(rows).encode())
    yield write(folder / "semicolons.csv", csv_text(rows, ";"))


@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_are_equal_in_every_format(tmp_path, seed):
    rows = random_rows(seed)
    for path in every_file(tmp_path, rows):
        found = list(read_rows(path))
        assert [row.fields for row in found] == rows, path
        assert [row.number for row in found] == list(range(1, len(rows) + 1))
        for size in (1, 100):  # chunks cut anywhere
            chunks = list(row_chunks(path, size))
            assert [row.fields for chunk in chunks for row in chunk.rows()] == rows
            assert [chunk.first for chunk in chunks] == [
                1 + sum(c.count for c in chunks[:i]) for i in range(len(chunks))
            ]


def test_parquet_has_the_same_rows(tmp_path):
    rows = random_rows(7, 2500)  # several batches
    path = parquet(tmp_path / "rows.parquet", rows)
    assert [row.fields for row in read_rows(path)] == rows
    values = [{"text": "a", "n": 3, "yes": True, "list": ["x", "y"], "none": None}, {"text": "b", "n": 4, "yes": False}]
    path = parquet(tmp_path / "values.pq", values)
    assert [row.fields["list"] for row in read_rows(path)] == [["x", "y"], None]
    assert [(row.fields["n"], row.fields["yes"]) for row in read_rows(path)] == [(3, True), (4, False)]
    with pytest.raises(UnifiedError, match="not a Parquet file, or a damaged one, behind row 0"):
        list(read_rows(write(tmp_path / "bad.parquet", b"PAR1 and nothing")))
    with pytest.raises(UnifiedError, match="compressed in itself; unpack"):
        list(read_rows(write(tmp_path / "rows.parquet.gz", b"")))


def test_texts_of_parquet_that_are_no_utf8_are_refused(tmp_path):
    """pyarrow reads them; Python cannot."""
    import pyarrow  # here: importing it starts threads
    import pyarrow.parquet

    ends, content = (pyarrow.py_buffer(data) for data in (np.array([0, 2, 4], np.int32), b"ok\xef\x80"))
    table = pyarrow.table({"text": pyarrow.StringArray.from_buffers(2, ends, content)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(UnifiedError, match=r"a\.parquet: not a Parquet file, or a damaged one, .*'utf-8'"):
        list(read_rows(tmp_path / "a.parquet"))


@pytest.mark.parametrize("name", ["parquet", "hub"])
def test_a_missing_library_is_one_line(tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "pyarrow" if name == "parquet" else "datasets", None)
    path = write(tmp_path / "a.parquet", b"PAR1") if name == "parquet" else "hub:owner/films"
    with pytest.raises(UnifiedError, match=rf"install it with: pip install '\.\[{name}\]'"):
        list(read_rows(path))


@pytest.mark.slow
def test_data_sets_of_the_hub(tmp_path):
    """The library datasets reads a folder of Parquet files as it does a data set of the hub."""
    parts = {
        "train": [{"text": f"w{i}", "label": i % 2} for i in range(5)],
        "validation": [{"text": "", "label": None}],
    }
    (tmp_path / "films" / "data").mkdir(parents=True)
    for split, rows in parts.items():
        parquet(tmp_path / "films" / "data" / f"{split}-00000-of-00001.parquet", rows)
    hub = f"hub:{tmp_path / 'films'}"
    assert [row.fields for row in read_rows(hub)] == parts["train"]
    assert [(row.location, row.fields) for row in read_rows(f"{hub}@validation")] == [("row 1", parts["validation"][0])]
    assert [row.fields for row in read_rows(f"{hub}@train[1:3]")] == parts["train"][1:3]
    with pytest.raises(UnifiedError, match=r"films@test: the hub does not give it \(Unknown split .test.\. Should be"):
        list(read_rows(f"{hub}@test"))
    with pytest.raises(UnifiedError, match="^hub:owner/none: the hub does not give it .*; download the files and name"):
        list(read_rows("hub:owner/none"))  # tests are offline


def test_how_the_name_of_a_data_set_of_the_hub_is_divided(monkeypatch):
    asked = []

    def load_dataset(name, configuration, split):
        asked.append((name, configuration, split))
        return [{"text": "a"}, {"text": "b"}]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    assert [row.fields["text"] for row in read_rows("hub:owner/films")] == ["a", "b"]
    assert [row.location for row in read_rows("hub:owner/films:small@test")] == ["row 1", "row 2"]
    assert asked == [("owner/films", None, "train"), ("owner/films", "small", "test")]


def test_large_arrays_are_read_in_pieces(tmp_path):
    """An array on one line is never held whole; entries may lie across any number of pieces."""
    rows = [{"text": "é\\" * length, "n": -1.5e3, "list": [{"a": None}, [], "]"]} for length in (0, 1, 50, 3, 400)]
    for content in (json.dumps(rows), json.dumps(rows, indent=2, ensure_ascii=False), " [ ] ", "[]"):
        path = write(tmp_path / "a.json", content)
        for size in (1, 2, 7, 1 << 20):
            assert [fields for _, fields in array_entries(str(path), piece_bytes=size)] == json.loads(content)
    path = write(tmp_path / "a.json", json.dumps([{"text": "x" * 90}] * 200))
    assert len(list(array_entries(str(path), 100, longest=1000))) == 200
    path = write(tmp_path / "a.json", json.dumps([{"text": "x" * 2000}], indent=0))
    with pytest.raises(UnifiedError, match="a.json, line 2: an entry is longer than"):
        list(array_entries(str(path), 100, longest=1000))


BROKEN = {
    "a.csv": {
        'text,label\na,1\n"b,2\nc,3\n': "a.csv, line 3: a quotation mark opens a cell here, and none closes it",
        'text,label\n"b" and c,2\n': "a.csv, line 2: text stands behind the closing quotation mark of a cell",
        "text,text\na,b\n": "a.csv: two columns are called 'text'",
        "text,label\na,b\rc,d\n": "a.csv, line 2: a cell without quotation marks holds a carriage return",
    },
    "a.json": {
        '[\n{"a": 1},\n{"a": }\n]': "a.json, line 3: not a JSON array of objects: Expecting value",
        '[\n{"a": 1}\n{"a": 2}]': "a.json, line 3: not a JSON array of objects: expected , or ], got {",
        '[{"a": 1}': "a.json, line 1: not a JSON array of objects: expected , or ], got the end of the file",
        '[{"a": "1}': "a.json, line 1: not a JSON array of objects: Unterminated string",
        "[]\n3": "a.json, line 2: not a JSON array of objects: something stands behind its end",
        "[" * 100_000: "not a JSON array of objects: nested too deeply",
    },
    "b.json": {'[{"a": "\xff"}]'.encode("latin-1"): r"b.json: not UTF-8 \(byte 0xff behind line 1\)"},
}


@pytest.mark.parametrize(
    ("name", "content", "message"), [(name, *case) for name, cases in BROKEN.items() for case in cases.items()]
)
def test_a_file_that_cannot_be_read_on_is_refused(tmp_path, name, content, message):
    with pytest.raises(UnifiedError, match=message):
        list(read_rows(write(tmp_path / name, content)))


def test_single_bad_rows_are_kept_with_their_places(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\n\n"one\ntwo",1\nthree\n\nfour,2,3\nfive,4\n')
    rows = list(read_rows(path))
    assert [row.location for row in rows] == ["line 3", "line 5", "line 7", "line 8"]
    assert rows[0].fields == {"text": "one\ntwo", "label": "1"} and rows[3].fields["label"] == "4"
    with pytest.raises(UnifiedError, match="^1 cell, but the first line names 2 columns$"):
        assert rows[1].fields
    rows = list(read_rows(write(tmp_path / "a.json", '[\n{"a": 1}, 3,\n"x",\n[]]')))
    assert [row.location for row in rows] == ["line 2", "line 2", "line 3", "line 4"]
    for row, kind in zip(rows[1:], ("an integer", "a text", "a list"), strict=True):
        with pytest.raises(UnifiedError, match=f"^not a JSON object but {kind}$"):
            assert row.fields


def test_quotation_marks_of_tables_that_do_not_quote(tmp_path):
    content = 'text\tlabel\n"Faust" was written by whom?\twho\nHe said "no\tno\n"\t""\n'
    rows = [row.fields for row in read_rows(write(tmp_path / "a.tsv", content))]
    assert rows[0]["text"] == '"Faust" was written by whom?' and rows[2] == {"text": '"', "label": '""'}
    path = write(tmp_path / "b.tsv", content + "one cell\n")  # no way of reading it is whole: cells are quoted
    with pytest.raises(UnifiedError, match="b.tsv, line 2: text stands behind"):
        list(read_rows(path))


@pytest.mark.parametrize("separator", ["\t", " ", "  "])
def test_columns_of_words(tmp_path, separator):
    """Sentences between empty lines, whatever columns stand between words and tags, compressed too."""
    rng = random.Random(3)
    rows, lines, document = [], [], 0
    for _ in range(200):
        if rng.random() < 0.1:
            document += 1
            lines += [separator.join(["-DOCSTART-", "-X-", "O"]), ""]
        words = [rng.choice(["Anna", "#1", "ä", '"', "中文"]) for _ in range(rng.randint(1, 5))]
        tags = [rng.choice(["O", "B-PER", "I-PER"]) for _ in words]
        lines += [
            *(separator.join([word, "NN", tag]) for word, tag in zip(words, tags, strict=True)),
            *[""] * rng.randint(1, 2),
        ]
        rows.append((len(lines), {"words": words, "tags": tags, **({"document": str(document)} if document else {})}))
    data = "\n".join(lines).rstrip().encode()
    for path in (write(tmp_path / "a.conll", data), write(tmp_path / "a.conll.xz", lzma.compress(data + b"\r\n\n"))):
        found = list(read_rows(path))
        assert [row.fields for row in found] == [fields for _, fields in rows]
        for row, fields in zip(found, rows, strict=True):
            line = int(row.location.removeprefix("line "))
            assert lines[line - 1].split()[0] == fields[1]["words"][0] and line <= fields[0]
        assert [row.fields for chunk in row_chunks(path, 100) for row in chunk.rows()] == [row.fields for row in found]
    rows = list(read_rows(write(tmp_path / "b.conll", "Anna\nBerg\n\nsleeps\n")))
    assert [row.fields for row in rows] == [{"words": ["Anna", "Berg"]}, {"words": ["sleeps"]}]
    rows = list(read_rows(write(tmp_path / "c.conll", "Anna\tO\n\nBerg\tO\nsleeps\n\n\tO\n\na\t\n")))
    for row, message in zip(
        rows[1:], ("1 column, but line 1 has 2", "the word is empty", "the tag is empty"), strict=True
    ):
        with pytest.raises(UnifiedError, match=f"^{message}"):
            assert row.fields


def test_long_cells_and_other_names(tmp_path):
    long = "word " * 60_000  # csv's own limit is 131,072 characters
    assert next(read_rows(write(tmp_path / "a.csv", f"text\n{long}\n"))).fields == {"text": long}
    path = write(tmp_path / "items", '\n{"text": "a"}\n')
    assert [(row.number, row.fields) for row in read_rows(path)] == [(2, {"text": "a"})]
    path = write(tmp_path / "films.txt", "A film.\n\n Another.\r\n")
    assert [(row.number, row.fields["text"]) for row in read_rows(path)] == [
        (1, "A film."),
        (3, "Another."),
    ]
    with pytest.raises(UnifiedError, match="a table, not raw text"):
        list(read_rows(write(tmp_path / "table.txt", "text,label\n" + "good,1\n" * 20)))
    assert has_fields("a.CSV.gz") and has_fields("hub:x") and not has_fields("a.txt") and not has_fields("csv")


# ---------------------------------------------------------------- unified prepare


def test_chunks_of_a_table_end_where_their_values_reach_the_size(tmp_path):
    """A row counts its characters and one more; a chunk says which rows it has and how large they are."""
    table = write(tmp_path / "a.csv", "text\n" + "".join(f"{value}\n" for value in ("aa", "bb", "cc", "dd", "ee")))
    chunks = list(row_chunks(table, chunk_bytes=6))
    assert [(chunk.first, chunk.count, chunk.size) for chunk in chunks] == [(1, 2, 6), (3, 2, 6), (5, 1, 3)]
    assert [[row.fields["text"] for row in chunk.rows()] for chunk in chunks] == [["aa", "bb"], ["cc", "dd"], ["ee"]]


def test_characters_within_lists_and_objects_count_for_a_chunk(tmp_path):
    """Each member one more, so that numbers count, too; chunks of lists are no larger."""
    sizes = {"ab": 2, 7: 0, None: 0, ("ab", "cde"): 7, (1, 2, 3): 3, (("ab",), ("c", "d")): 9}
    values = [*map(json.loads, map(json.dumps, sizes)), {"a": "bcd", "e": ["fg"]}]
    rows = [{"value": value} for value in values]
    (chunk,) = row_chunks(write(tmp_path / "a.json", json.dumps(rows)))
    assert chunk.count == 7 and chunk.size == 7 + sum(sizes.values()) + 8
    parts = write(tmp_path / "b.json", json.dumps([{"source": ["abc", "de"], "target": "f"}] * 4))
    assert [(chunk.count, chunk.size) for chunk in row_chunks(parts, chunk_bytes=18)] == [(2, 18), (2, 18)]


def test_a_row_that_cannot_be_read_counts_as_one_character(tmp_path):
    table = write(tmp_path / "a.csv", "text,label\n" + "alone\n" * 5)
    assert [(chunk.count, chunk.size) for chunk in row_chunks(table, chunk_bytes=3)] == [(3, 3), (2, 2)]


@pytest.mark.parametrize(
    ("endings", "content"),
    [
        (("jsonl", "ndjson", "json"), '{"text": "a"}\n'),
        (("csv", "tsv", "tab"), "text\na\n"),
        (("json",), '[{"text": "a"}]'),
    ],
)
def test_formats_are_known_by_the_endings_of_names(tmp_path, endings, content):
    for name in [f"a.{ending}" for ending in endings]:
        for packed, pack in {name: str.encode, f"{name}.gz": lambda text: gzip.compress(text.encode())}.items():
            assert [row.fields for row in read_rows(write(tmp_path / packed, pack(content)))] == [{"text": "a"}]
            assert has_fields(packed) and is_name_of_data(packed)


@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_a_compressed_file_is_one_of_data_whatever_it_holds(ending):
    assert is_name_of_data(f"a.{ending}") and is_name_of_data(f"a.md.{ending}") and not has_fields(f"a.{ending}")


def test_prepared_folders_are_equal_in_every_format(tmp_path, capsys):
    """Documents and pairs, with the same ones in the validation split."""
    rows = [{"text": f"w{i} w{i + 1}\nw2", "summary": f"w{i}"} for i in range(40)]
    files = list(every_file(tmp_path / "files", rows))
    documents = [list(chunk.documents()) for chunk in DocumentCorpus((files[0],)).chunks()]
    for path in files[1:]:
        assert [list(chunk.documents()) for chunk in DocumentCorpus((path,)).chunks()] == documents, path
        pairs = [pair for chunk in RowPairCorpus((path,), "text", "summary", 50).chunks() for pair in chunk.pairs()]
        assert pairs == [(i, row["text"], row["summary"]) for i, row in enumerate(rows)]
    options = ("--tokenizer", "char", "--valid-share", "0.3", "--chunk-bytes", "60", "--workers", "1")
    made = []
    for path in (tmp_path / "files" / name for name in ("rows.jsonl", "rows.csv", "rows.json.gz")):
        folder = tmp_path / "made" / path.name
        assert run(path, "--output", folder, *options) == 0
        made.append({name: data for name, data in tree(folder).items() if name != "manifest.json"})
    assert made[0] == made[1] == made[2] and "valid.bin" in made[0]


def test_rows_without_text_are_refused_or_counted(tmp_path, capsys):
    """An empty cell, one of blanks, and one of a space of no width, of which the tokenizer makes nothing."""
    rows = [{"text": text} for text in ("a b", "", "c\n\nd", " \n ", "\u200b", "e f")]
    path = write(tmp_path / "rows.csv", csv_text(rows))
    words = ("--tokenizer", "unigram", "--chunk-bytes", "8", "--output", tmp_path / "data")
    assert run(path, *words, "--chunk-bytes", "999") == 2
    says = "rows.csv, 2 lines (3, 7): the field 'text' is empty; --skip-empty leaves such rows out"
    assert says in capsys.readouterr().err and not (tmp_path / "data").exists()
    for more, skipped in (("--workers", "1"), 3), (("--workers", "2"), 3), (("--clean", "sentences"), 2):
        assert run(path, *words, "--skip-empty", "--overwrite", *more) == 0
        assert f"train: 3 documents ({skipped} skipped), " in capsys.readouterr().out


def test_a_table_is_never_read_as_raw_text(tmp_path, capsys):
    path = write(tmp_path / "films.csv", csv_text([{"sentence": "a film", "label": 1}] * 20))
    assert run(path, "--output", tmp_path / "data") == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert "films.csv, 20 lines (2, 3, 4, ...): no field 'text'; its fields: 'sentence', 'label'" in message
    assert "--text-field names the one to read" in message and not (tmp_path / "data").exists()
    assert run(path, "--text-field", "sentence", "--output", tmp_path / "data", "--tokenizer", "char") == 0
    assert run(path, "--source-field", "sentence", "--target-field", "x", "--output", tmp_path / "pairs") == 2
    assert "no field 'x'; its fields: 'sentence', 'label'; --target-field names" in capsys.readouterr().err
    path = write(tmp_path / "empty.csv", csv_text([{"s": "a", "t": "b"}, {"s": "a", "t": ""}]))
    assert run(path, "--source-field", "s", "--target-field", "t", "--output", tmp_path / "pairs") == 2
    assert "empty.csv, line 3, field 't': the target of a pair is empty" in capsys.readouterr().err


def test_rows_of_a_stream_come_before_it_ends():
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as writer:
        rows = stream_rows(stream, "it")
        writer.write('\ufeff{"a": "é"}\n \n[1]\r\n'.encode())
        first, second = next(rows), next(rows)
        assert (first.number, first.fields, second.number) == (1, {"a": "é"}, 3)
        assert refused(lambda: second.fields) == "not a JSON object but a list"
        writer.write(b'{"a": "\xe9"}\n')
        assert refused(next, rows).startswith("it, line 4: not UTF-8 (byte 0xe9 at byte 8 of the line)")
