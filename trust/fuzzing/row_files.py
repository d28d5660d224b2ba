"""Files of rows and of raw text, in every format and compression."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow
import zstandard
from pyarrow import parquet

from trust.cases import require
from trust.fuzzing import row_references as references
from trust.fuzzing.mutators import BYTES, JSON, JSON_LINES, TEXT
from trust.fuzzing.reader import Mutator, Reader, sample_file
from unified.corpus.readers import DocumentCorpus, ParallelCorpus, RowPairCorpus
from unified.errors import UnifiedError
from unified.evaluation.pair_files import read_paradigms
from unified.files.json_files import read_json
from unified.files.rows import read_rows

_ROWS = [
    {"id": 1, "text": "A plain text, with a comma.", "label": "yes", "list": ["a", "b"]},
    {"id": 2, "text": 'She said "no"; then\tleft.', "label": "no", "list": []},
    {"id": 3, "text": "Größe 12²  — é\u0301", "label": "yes", "list": [None, 1.5]},
    {"id": 4, "text": "line one\nline two", "label": "no", "list": [{"deep": {"er": [1]}}]},
]
_JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _ROWS).encode()
_ARRAY = json.dumps(_ROWS, indent=1, ensure_ascii=False).encode()
_CSV = b'id,text,label\n1,"A plain text, with a comma.",yes\n2,"She said ""no""",no\n3,"two\nlines",yes\n4,plain,no\n'
_TSV = b'id\ttext\tlabel\n1\tA 12" screen\tyes\n2\tplain\tno\n3\t"quoted\tcell"\tyes\n'
_CONLL = b"-DOCSTART- O\n\nAnna B-PER\nBerg I-PER\nslept O\n\nShe O\nleft O\n"
_TEXT = b"A first paragraph of a text.\nA second one, with a comma; and more.\n\nAnother document (two lines).\nEnd!\n"
_PLAIN = [{"id": 1, "text": "one", "label": None}, {"id": 2, "text": "two", "label": "no"}] * 5


def row_content(name: str) -> list[object]:
    """The fields of each row of a file; `references.REFUSED_ROW` where it is refused by itself."""
    found: list[object] = []
    for row in read_rows(name):
        if isinstance(row.content, UnifiedError):
            require(len(str(row.content)) <= 300, f"a row's refusal of many characters | {str(row.content)[:400]}")
            require("\n" not in str(row.content), f"a row's refusal of several lines | {row.content}")
            found.append(references.REFUSED_ROW)
        else:
            found.append(row.content)
    return found


def _parquet() -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(_PLAIN), stream)
    return stream.getvalue()


def _zstandard(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def _packed(pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]) -> tuple[Mutator, ...]:
    """Damage inside of compressed data: unpacked, damaged and packed again."""

    def inside(data: bytes, rng: random.Random) -> bytes:
        try:
            plain = unpack(data)
        except references.Refused:
            return rng.choice(BYTES)(data, rng)
        return pack(rng.choice(JSON_LINES)(plain, rng))

    return (inside, *BYTES)


def _reader(name: str, content: bytes, mutators: tuple[Mutator, ...], reference: Callable[[bytes], object]) -> Reader:
    return Reader(
        f"rows of {name.partition('.')[2]}", name, sample_file(name, content), partial(row_content, name), mutators,
        reference,
    )  # fmt: skip


def _compressed(ending: str, pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]) -> Reader:
    return _reader(
        f"rows.jsonl.{ending}", pack(_JSONL), _packed(pack, unpack), lambda data: references.json_lines(unpack(data))
    )


def _documents(name: str) -> object:
    return [documents for chunk in DocumentCorpus((name,)).chunks(True) for documents in chunk.documents()]


def _pairs() -> object:
    corpus = ParallelCorpus(("source.txt",), ("target.txt",))
    return [pair for chunk in corpus.chunks() for pair in chunk.pairs()]


def _make_parallel() -> None:
    sample_file("source.txt", _TEXT)()
    sample_file("target.txt", _TEXT)()


_PAIRS = "".join(
    json.dumps({"source": "one two. three four.", "target": "two", "sentences": [0, 9], "oracle": [1]}) + "\n"
    for _ in range(3)
).encode()
_BLIMP = "".join(
    json.dumps({"sentence_good": f"Good {i}.", "sentence_bad": f"Bad {i}.", "UID": "one", "field": "syntax"}) + "\n"
    for i in range(4)
).encode()


def _row_pairs() -> object:
    corpus = RowPairCorpus(("pairs.jsonl",), "source", "target")
    return [pair for chunk in corpus.chunks() for pair in chunk.pairs_with_spans()]


READERS = (
    _reader("rows.jsonl", _JSONL, JSON_LINES, references.json_lines),
    _reader("rows.json", _ARRAY, JSON, references.json_array),
    _reader("rows.csv", _CSV, TEXT, references.csv_rows),
    _reader("rows.tsv", _TSV, TEXT, references.tsv_rows),
    _reader("rows.parquet", _parquet(), BYTES, references.parquet_rows),
    _reader("rows.txt", _TEXT, TEXT, references.plain_lines),
    _compressed("gz", gzip.compress, references.unzipped),
    _compressed("xz", lzma.compress, references.unxzipped),
    _compressed("zst", _zstandard, references.unzstandard),
    Reader("rows of conll", "rows.conll", sample_file("rows.conll", _CONLL), partial(row_content, "rows.conll"), TEXT),
    Reader("one JSON value", "value.json", sample_file("value.json", _ARRAY), lambda: read_json("value.json"), JSON,
           lambda data: references.strict_json(references.text_of(data))),
    Reader("raw text", "raw.txt", sample_file("raw.txt", _TEXT), partial(_documents, "raw.txt"), TEXT),
    Reader("documents of jsonl", "rows.jsonl", sample_file("rows.jsonl", _JSONL), partial(_documents, "rows.jsonl"),
           JSON_LINES),
    Reader("parallel text", "target.txt", _make_parallel, _pairs, TEXT),
    Reader("pairs with an oracle", "pairs.jsonl", sample_file("pairs.jsonl", _PAIRS), _row_pairs, JSON_LINES),
    Reader("minimal pairs", "blimp.jsonl", sample_file("blimp.jsonl", _BLIMP),
           lambda: read_paradigms(Path("blimp.jsonl")), JSON_LINES),
)  # fmt: skip
