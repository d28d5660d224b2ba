"""No input under 10 MB takes more than 1 GB of memory or a minute of a processor in any reader.

Each bomb is small, and would be large, or take long, in a reader that believes it: compressed zeros, headers that
announce billions of values, deep nesting, huge integers, millions of columns. It is read in a process of its own, whose
memory is measured beside that of the modules; a refusal must be one line, as those of the campaign `fuzz`.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import lzma
import os
import random
import resource
import struct
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import torch
import zstandard
from pyarrow import parquet

from trust.cases import Case, require
from trust.fuzz import check_refusal, limit_memory
from trust.fuzzing.model_files import READERS as MODEL_READERS
from trust.fuzzing.reader import sample_file
from trust.fuzzing.row_files import row_content
from trust.fuzzing.settings_files import READERS as SETTINGS_READERS
from unified.corpus.readers import DocumentCorpus
from unified.errors import UnifiedError
from unified.files.json_files import read_json
from unified.files.yaml_text import read_yaml_object
from unified.objectives.parse import parse_objectives
from unified.tasks.heads.registry import parse_heads

#: Bytes that a bomb may have, bytes of memory that reading it may take, and seconds of a processor.
SMALL, MEMORY, SECONDS = 10_000_000, 1 << 30, 60
_READERS = {reader.name: reader for reader in (*MODEL_READERS, *SETTINGS_READERS)}


@dataclass(frozen=True)
class Bomb:
    """An input that is small, and how it is read.

    Attributes:
        name: in the names of cases.
        file: the bomb's file in the current folder.
        make: writes it, and what has to be beside it.
        read: reads it.
    """

    name: str
    file: str
    make: Callable[[], None]
    read: Callable[[], object]


def cases(full: bool, seed: int) -> list[Case]:
    """Every bomb, or ten of them by the seed."""
    chosen = BOMBS if full else random.Random(seed).sample(BOMBS, 10)
    return [Case(bomb.name, partial(explode, bomb)) for bomb in chosen]


def explode(bomb: Bomb, folder: Path) -> dict[str, int]:
    """Reads a bomb in a process of its own; counts it, and the megabytes that it took."""
    notes = folder / "notes.txt"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with contextlib.chdir(folder):
                status = _explode(bomb, notes)
        except BaseException:  # it must not go on in two processes
            notes.write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    said = notes.read_text(encoding="utf-8") if notes.exists() else ""
    require(ended == 0, f"ended with {ended}: {said[-1500:]}")
    result = json.loads(said)
    require(result["bytes"] <= SMALL, f"the bomb has {result['bytes']:,} bytes")
    require(result["memory"] <= MEMORY, f"it takes {result['memory']:,} bytes of memory ({result['outcome']})")
    require(result["seconds"] <= SECONDS, f"it takes {result['seconds']:.0f} seconds ({result['outcome']})")
    return {"bombs": 1, "megabytes": result["memory"] >> 20}


def _explode(bomb: Bomb, notes: Path) -> int:
    bomb.make()
    limit_memory(4 * MEMORY)  # so that a broken promise does not take the whole machine
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 10, SECONDS + 10))
    _forget_peak()
    before, began, outcome = _peak(), time.process_time(), "read"
    try:
        bomb.read()
    except (UnifiedError, OSError) as refusal:
        outcome = str(refusal)
        check_refusal(outcome, "")
    seconds = time.process_time() - began
    size = sum(path.stat().st_size for path in Path(bomb.file).parent.glob(Path(bomb.file).name))
    result = {"bytes": size, "memory": _peak() - before, "seconds": seconds, "outcome": outcome}
    notes.write_text(json.dumps(result), encoding="utf-8")
    return 0


def _forget_peak() -> None:
    """Resets the kernel's note of the most memory that this process has had."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> int:
    """The most memory that this process has had, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


# Bombs


def _rows(name: str, content: Callable[[], bytes]) -> Bomb:
    def make() -> None:
        Path(name).write_bytes(content())

    return Bomb(f"rows: {content.__doc__ or name}", name, make, partial(row_content, name))


def _attack(reader: str, what: str, content: Callable[[bytes], bytes]) -> Bomb:
    """A bomb in place of the file of a reader of the campaign `fuzz`."""
    own = _READERS[reader]

    def make() -> None:
        own.make()
        path = Path(own.attacked)
        path.write_bytes(content(path.read_bytes()))

    return Bomb(f"{reader}: {what}", own.attacked, make, own.read)


_ZEROS = bytes(1 << 24)


def _repeated(pack: Callable[[bytes], bytes], times: int) -> bytes:
    return pack(_ZEROS) * times


def _gzip_zeros() -> bytes:
    """3 GB of zeros, gzip"""
    return _repeated(gzip.compress, 192)


def _xz_zeros() -> bytes:
    """16 GB of zeros, xz"""
    return _repeated(lzma.compress, 1000)


def _zst_zeros() -> bytes:
    """64 GB of zeros, Zstandard"""
    return _repeated(zstandard.ZstdCompressor().compress, 4000)


def _gzip_lines() -> bytes:
    """half a billion empty lines, gzip"""
    return gzip.compress(b"\n" * (1 << 24)) * 32


def _xz_dictionary() -> bytes:
    """a dictionary of 3 GB, xz"""
    packed = lzma.compress(b'{"a": 1}\n', format=lzma.FORMAT_XZ, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}])
    # A compressor would take the memory itself. The header of the first block is the 12 bytes behind that of the file:
    # its size, its flags, a filter, the size of the filter's settings, these, padding, and a checksum.
    block = bytearray(packed[12:20])
    block[4] = 39
    return packed[:12] + bytes(block) + struct.pack("<I", zlib.crc32(bytes(block))) + packed[24:]


def _columns() -> bytes:
    """1.2 million columns"""
    return b",".join(b"%x" % number for number in range(1_200_000)) + b"\n" + b"," * 1_199_999 + b"\n"


def _equal_columns() -> bytes:
    """4 million empty names of columns"""
    return b"," * 4_000_000 + b"\n"


def _wide_tabs() -> bytes:
    """9 million tabs"""
    return b"\t" * 9_000_000 + b"\n"


def _json_columns() -> bytes:
    """a JSON object of 700,000 fields"""
    return b"{" + b",".join(b'"%x":1' % number for number in range(700_000)) + b"}\n"


def _json_deep() -> bytes:
    """9 million brackets"""
    return b"[" * 9_000_000


def _json_objects_deep() -> bytes:
    """1.8 million objects within each other"""
    return b'{"a":' * 1_800_000


def _json_lists() -> bytes:
    """3 million empty lists"""
    return b'{"a":[' + b",".join([b"[]"] * 3_000_000) + b"]}\n"


def _gzip_lists() -> bytes:
    """70 million empty lists behind a text that cannot be compressed, gzip"""
    text = base64.b64encode(random.Random(0).randbytes(8_600_000))
    return gzip.compress(b'[{"a": "' + text + b'", "b": [' + b"[]," * 70_000_000 + b"[]]}]", compresslevel=1)


def _json_integer() -> bytes:
    """an integer of 9 million digits"""
    return b'{"a": ' + b"9" * 9_000_000 + b"}\n"


def _json_float() -> bytes:
    """a number with 9 million digits behind its point"""
    return b'{"a": 0.' + b"9" * 9_000_000 + b"}\n"


def _json_string() -> bytes:
    """9 million escaped characters that are not closed"""
    return b'{"a": "' + b"\\u0041" * 1_500_000


def _array_backslashes() -> bytes:
    """an array whose text never ends"""
    return b'[{"a": "' + b"\\\\" * 4_500_000


def _quoted() -> bytes:
    """a quoted cell that never ends"""
    return b'a,b\n"' + b"x\n" * 4_500_000


def _parquet(table: pyarrow.Table, **options: object) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(table, stream, **options)
    return stream.getvalue()


def _parquet_text() -> bytes:
    """a text of 1.5 GB, Parquet"""
    table = pyarrow.table({"text": pyarrow.array(["x" * (1 << 20)] * 1500).dictionary_encode()})
    return _parquet(table, compression="zstd")


def _parquet_rows() -> bytes:
    """300 million equal rows, Parquet"""
    return _parquet(pyarrow.table({"text": pyarrow.nulls(300_000_000)}), compression="zstd")


def _parquet_columns() -> bytes:
    """25,000 columns, Parquet"""
    return _parquet(pyarrow.table({f"{number:x}": [1] for number in range(25_000)}), compression="zstd")


def _zip_of(name: str, size: int, beginning: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        member.write(beginning)
        for _ in range(size // len(_ZEROS)):
            member.write(_ZEROS)
    return stream.getvalue()


def _npz(sample: bytes) -> bytes:
    spans = 3 << 25
    return _zip_of("entities.npy", 3 * 8 * spans, _array_header(spans))


def _array_header(spans: int) -> bytes:
    """Beginning of an array of numpy."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (spans, 3)})
    return stream.getvalue()


def _npz_header(sample: bytes) -> bytes:
    """Says that it holds 10**12 spans."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("entities.npy", _array_header(10**12))
    return stream.getvalue()


def _tensor_views(sample: bytes) -> bytes:
    """Parameters of terabytes that all share one number."""
    content = torch.load(io.BytesIO(sample), weights_only=True)
    model = content["model"]
    for name in model:
        if model[name].dim() == 2:
            model[name] = torch.zeros(1).expand(1 << 20, 1 << 20)
    return _saved(content)


def _settings(**changes: object) -> Callable[[bytes], bytes]:
    def change(sample: bytes) -> bytes:
        content = torch.load(io.BytesIO(sample), weights_only=True)
        content["cfg"]["model"].update(changes)
        return _saved(content)

    return change


def _saved(content: object) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def _pickle_lists(sample: bytes) -> bytes:
    """1.5 million empty lists in the settings."""
    content = torch.load(io.BytesIO(sample), weights_only=True)
    content["more"] = [[] for _ in range(1_500_000)]
    return _saved(content)


def _safetensors(shape: list[int], stop: int) -> Callable[[bytes], bytes]:
    def change(sample: bytes) -> bytes:
        header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, stop]}}).encode()
        return struct.pack("<Q", len(header)) + header + bytes(64)

    return change


def _safetensors_names(sample: bytes) -> bytes:
    entries = {f"{i:x}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(130_000)}
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header


def _yaml_aliases() -> bytes:
    """A billion laughs: names of lists of names of lists."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    return "\n".join(lines).encode()


def _huge_lines(sample: bytes) -> bytes:
    return b"x" * 9_900_000


BOMBS = [
    *(_rows(f"bomb.jsonl.{ending}", content) for ending, content in (
        ("gz", _gzip_zeros), ("xz", _xz_zeros), ("zst", _zst_zeros), ("gz", _gzip_lines), ("xz", _xz_dictionary))),
    *(_rows("bomb.csv", content) for content in (_columns, _equal_columns, _quoted)),
    _rows("bomb.tsv", _wide_tabs),
    *(_rows("bomb.jsonl", content) for content in (
        _json_columns, _json_deep, _json_objects_deep, _json_lists, _json_integer, _json_float, _json_string)),
    _rows("bomb.json", _array_backslashes),
    _rows("bomb.json.gz", _gzip_lists),
    Bomb("one JSON value: 70 million empty lists, gzip", "bomb.json.gz",
         lambda: sample_file("bomb.json.gz", _gzip_lists())(), lambda: read_json("bomb.json.gz")),
    *(_rows("bomb.parquet", content) for content in (_parquet_text, _parquet_rows, _parquet_columns)),
    Bomb("one JSON value: 9 million brackets", "bomb.json", lambda: sample_file("bomb.json", _json_deep())(),
         lambda: read_json("bomb.json")),
    Bomb("documents: 3 GB of zeros", "bomb.txt.gz", lambda: sample_file("bomb.txt.gz", _gzip_zeros())(),
         lambda: [list(chunk.documents()) for chunk in DocumentCorpus(("bomb.txt.gz",)).chunks(True)]),
    _attack("kept annotations", "2 GB of zeros in an npz", _npz),
    _attack("kept annotations", "10**12 spans in a header", _npz_header),
    _attack("language model", "2 GB of zeros in a zip", lambda sample: _zip_of("archive/data.pkl", 2 << 30)),
    _attack("language model", "parameters of terabytes with one number", _tensor_views),
    _attack("language model", "settings of a billion positions", _settings(max_positions=10**8)),
    _attack("language model", "settings of 1,000 wide layers", _settings(layers=1000, width=1 << 17, heads=1 << 10)),
    _attack("language model", "settings of a wide inner layer", _settings(feed_forward=1 << 19, layers=900)),
    _attack("language model", "a long list of windows", _settings(attention_windows="0," * 4_000_000 + "0")),
    _attack("language model", "1.5 million lists", _pickle_lists),
    _attack("part of safetensors", "a header of 2**63 bytes", lambda sample: struct.pack("<Q", 2**63 - 1) + sample[8:]),
    _attack("part of safetensors", "a tensor of terabytes", _safetensors([1 << 20, 1 << 20], 1 << 42)),
    _attack("part of safetensors", "130,000 tensors", _safetensors_names),
    _attack("index of TensorFlow", "numbers without end", lambda sample: b"\xff" * 5_000_000 + sample),
    _attack("sentencepiece unigram", "a length of 2**60", lambda sample: b"\x0a" + b"\xff" * 8 + b"\x0f" + sample),
    _attack("index of tokens", "2**60 items", lambda sample: sample[:18] + struct.pack("<Q", 2**60) + sample[26:]),
    _attack("dict.txt", "one line of 10 MB", _huge_lines),
    _attack("vocab.txt", "one line of 10 MB", _huge_lines),
    _attack("tokenizer.json, BPE", "9 million brackets", lambda sample: _json_deep()),
    _attack("results.json", "9 million digits", lambda sample: _json_integer()),
    Bomb("run.yaml: a billion laughs", "run.yaml", lambda: sample_file("run.yaml", _yaml_aliases())(),
         _READERS["run.yaml of finetune"].read),
    Bomb("run.yaml: 100,000 brackets", "run.yaml", lambda: sample_file("run.yaml", b"a: " + b"[" * 100_000)(),
         lambda: read_yaml_object("run.yaml")),
    Bomb("--head: 3 million brackets", "option.txt", sample_file("option.txt", b""),
         lambda: parse_heads("tagging(" * 1_000_000, own_classes=False)),
    Bomb("--objectives: a million entries", "option.txt", sample_file("option.txt", b""),
         lambda: parse_objectives(",".join(["bert:1"] * 1_000_000), own_classes=False)),
]  # fmt: skip
