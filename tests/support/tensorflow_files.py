"""TensorFlow checkpoints written from their format's description."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

TYPES = {"<f4": 1, "<f8": 2, "<i4": 3, "<i8": 9, "|b1": 10, "<f2": 19}
MAGIC = 0xDB4775248B80FB57


def crc32c(data: bytes) -> int:
    """Bit by bit, masked as TensorFlow stores it."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    register ^= 0xFFFFFFFF
    return ((register >> 15 | register << 17) + 0xA282EAD8) % 2**32


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number % 0x80 | 0x80)
        number //= 0x80
    return bytes([*out, number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value) if value else b""


def message(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def table(rows: dict[bytes, bytes], blocks: int = 1) -> bytes:
    """A sorted table of so many blocks of data."""
    out, locations, keys = b"", {}, sorted(rows)
    size = -(-len(keys) // blocks)
    for start in range(0, len(keys), size):
        part = keys[start : start + size]
        locations[part[-1]], out = _append(out, {key: rows[key] for key in part})
    about, out = _append(out, {})
    index, out = _append(out, locations)
    return out + (about + index).ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def _append(out: bytes, rows: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """Index of the new block, and the file with it. Each key shares what it can with the one before.

    Every 16th, of which the block ends with a list, shares nothing.
    """
    block, last, restarts = b"", b"", [0]
    for at, (key, value) in enumerate(rows.items()):
        if at and at % 16 == 0:
            last = b""
            restarts.append(len(block))
        shared = next((i for i, (a, b) in enumerate(zip(key, last, strict=False)) if a != b), min(len(key), len(last)))
        block += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    block += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    location = varint(len(out)) + varint(len(block))
    return location, out + block + b"\0" + struct.pack("<I", crc32c(block + b"\0"))


def write(prefix: Path, variables: dict[str, np.ndarray], shards: int = 1) -> None:
    """``PREFIX.index`` and its data files, variables dealt out to them in turn."""
    files = [b""] * shards
    rows = {b"": number(1, shards) + message(3, number(1, 1))}
    for location, (name, value) in enumerate(variables.items()):
        shard, data = location % shards, value.tobytes()
        shape = b"".join(message(2, number(1, size)) for size in value.shape)
        row = number(1, TYPES[value.dtype.str]) + message(2, shape) + number(3, shard)
        row += number(4, len(files[shard])) + number(5, len(data))
        rows[name.encode()] = row + varint(6 << 3 | 5) + struct.pack("<I", crc32c(data))
        files[shard] += data
    prefix.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{prefix}.index").write_bytes(table(rows, blocks=3))
    for shard, data in enumerate(files):
        Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}").write_bytes(data)
