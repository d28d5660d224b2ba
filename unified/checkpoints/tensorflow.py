"""TensorFlow's checkpoints, read without TensorFlow.

``PREFIX.index`` is a sorted table in LevelDB's format: blocks of entries, each key given by what it shares with the one
before, then a block that lists the blocks, and a footer that points to that (``tensorflow/core/lib/io/format.cc``). Its
values are protocol buffers (``tensorflow/core/protobuf/tensor_bundle.proto``): a header under the empty key, and under
every variable's name its type, its shape and where its bytes stand in ``PREFIX.data-SSSSS-of-NNNNN``.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from unified.errors import UnifiedError
from unified.files.protobuf import message_fields, variable_integer

#: Names that are no parameters: Adam's moments, its decay powers and the step counter.
_OPTIMIZER = re.compile(r"(.*/)?(adam_[mv]|Adam(_1)?|beta[12]_power|global_step)")
_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
#: DataType -> numpy's type (``tensorflow/core/framework/types.proto``); bfloat16 is its upper half of a float32.
_BFLOAT16 = 14
_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", _BFLOAT16: "<u2", 19: "<f2"}


@dataclass(frozen=True)
class _Entry:
    """Location of a variable."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    in_slices: bool


def find_tensorflow(folder: str | os.PathLike[str]) -> Path | None:
    """The prefix of the TensorFlow checkpoint in ``folder``, None if there is none.

    Raises:
        UnifiedError: there are several.
    """
    found = sorted(Path(folder).glob("*.index"))
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UnifiedError(f"{folder}: holds several TensorFlow checkpoints ({names}); leave one of them there")
    return found[0].with_suffix("") if found else None


def load_tensorflow(prefix: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Parameters by name, and the names of the optimizer's variables, whose values are not read.

    Numbers keep their type, except that bfloat16 comes as float32.

    Args:
        prefix: path of the checkpoint without ``.index``, such as ``uncased_L-12_H-768_A-12/bert_model.ckpt``.

    Raises:
        UnifiedError: a file is missing, truncated or damaged (checksums are compared), is compressed or big-endian, or
            a variable is divided into slices or holds no numbers; the message names the file and the variable.
    """
    prefix = Path(prefix)
    entries, shards = _read_index(prefix.with_name(f"{prefix.name}.index"))
    skipped = [name for name in entries if _OPTIMIZER.fullmatch(name)]
    return {
        name: _read_variable(prefix, name, entry, shards) for name, entry in entries.items() if name not in skipped
    }, skipped


def _read_index(path: Path) -> tuple[dict[str, _Entry], int]:
    """Entries by name, and the number of data files."""
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file; a TensorFlow checkpoint has an .index and .data-* beside it")
    data = path.read_bytes()
    try:
        if len(data) < _FOOTER or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
            raise UnifiedError(f"{path}: not the index of a TensorFlow checkpoint, or a truncated one")
        at = len(data) - _FOOTER
        for _ in range(2):  # the block of blocks about blocks, which is empty, and its offset and size come first
            _, at = variable_integer(data, at)
        values = {
            key: value
            for _, location in _block(data, *_location(data, at), path)
            for key, value in _block(data, *_location(location, 0), path)
        }
        header = _fields(values.pop(b"", b""))
        if header.get(2, 0):
            raise UnifiedError(f"{path}: a big-endian checkpoint; only little-endian ones are read")
        # A key that begins with a zero byte is that of a slice; the variable it belongs to is listed too.
        named = {key.decode("utf-8"): value for key, value in values.items() if not key.startswith(b"\0")}
        return {name: _entry(value) for name, value in named.items()}, _number(header, 1, default=1)
    except (IndexError, KeyError, struct.error, UnicodeDecodeError, TypeError, OverflowError) as error:
        raise UnifiedError(f"{path}: damaged, its content cannot be read ({type(error).__name__})") from None


def _read_variable(prefix: Path, name: str, entry: _Entry, shards: int) -> np.ndarray:
    path = prefix.with_name(f"{prefix.name}.data-{entry.shard:05d}-of-{shards:05d}")
    if entry.in_slices:
        raise UnifiedError(f"{prefix}: {name} is divided into slices, which are not read; save it whole")
    if entry.dtype not in _TYPES:
        raise UnifiedError(
            f"{prefix}: {name} is of TensorFlow's type {entry.dtype}, no plain number; only checkpoints of TensorFlow "
            "1's Saver are read, whose names are those of the graph"
        )
    dtype = np.dtype(_TYPES[entry.dtype])
    if entry.size != math.prod(entry.shape) * dtype.itemsize:
        raise UnifiedError(f"{prefix}.index: damaged, {name} has {entry.size} bytes for shape {entry.shape}")
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file; {name} is in it")
    data = np.fromfile(path, dtype=np.uint8, count=entry.size, offset=entry.offset)
    if len(data) < entry.size:
        raise UnifiedError(f"{path}: truncated within {name}")
    if _checksum(data.tobytes()) != entry.checksum:
        raise UnifiedError(f"{path}: damaged, the checksum of {name} does not fit")
    value = data.view(dtype).reshape(entry.shape)
    return (value.astype("<u4") << 16).view("<f4") if entry.dtype == _BFLOAT16 else value


def _checksum(data: bytes) -> int:
    """CRC-32C as TensorFlow stores it: rotated, with a constant added."""
    checksum = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _block(data: bytes, offset: int, size: int, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values; behind the block stand how it is compressed (one byte) and the checksum of both (four)."""
    compression, checksum = struct.unpack_from("<BI", data, offset + size)
    if _checksum(data[offset : offset + size + 1]) != checksum:
        raise UnifiedError(f"{path}: damaged, a checksum inside it does not fit")
    if compression:
        raise UnifiedError(f"{path}: compressed; TensorFlow's Saver writes its index uncompressed")
    block = data[offset : offset + size]
    (restarts,) = struct.unpack_from("<I", block, size - 4)
    key, at, end = b"", 0, size - 4 - 4 * restarts
    while at != end:
        shared, at = variable_integer(block, at)
        added, at = variable_integer(block, at)
        length, at = variable_integer(block, at)
        key = key[:shared] + block[at : at + added]
        at += added + length
        yield key, block[at - length : at]


def _location(data: bytes, at: int) -> tuple[int, int]:
    offset, at = variable_integer(data, at)
    return offset, variable_integer(data, at)[0]


def _entry(message: bytes) -> _Entry:
    fields = _fields(message)
    dimensions = _fields(fields.get(2, b""), repeated=2).get(2, [])
    return _Entry(
        dtype=_number(fields, 1),
        shape=tuple(_number(_fields(dimension), 1) for dimension in dimensions),
        shard=_number(fields, 3),
        offset=_number(fields, 4),
        size=_number(fields, 5),
        checksum=_number(fields, 6),
        in_slices=7 in fields,
    )


def _number(fields: dict[int, Any], number: int, default: int = 0) -> int:
    value = fields.get(number, default)
    if not isinstance(value, int):
        raise TypeError(f"field {number} is no number")
    return value


def _fields(message: bytes, repeated: int | None = None) -> dict[int, Any]:
    """Field number -> value of a message, int or bytes; the field ``repeated`` comes as a list."""
    fields: dict[int, Any] = {}
    for number, value in message_fields(message):
        if number == repeated:
            fields.setdefault(number, []).append(value)
        else:
            fields[number] = value
    return fields
