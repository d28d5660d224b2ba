"""Compressed files in bounded pieces, against the libraries' own readers of whole files."""

import gzip
import io
import lzma
import random

import pytest
import zstandard

from unified.files.decompression import Damaged, Decompressed, TooDense, TooMuchMemory

PACK = {
    "gz": lambda data: gzip.compress(data, 6),
    "xz": lambda data: lzma.compress(data, preset=1),
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


def read(data, suffix):
    return Decompressed(io.BytesIO(data), suffix).readall()


@pytest.mark.parametrize("suffix", PACK)
def test_frames_one_after_another(suffix):
    rng = random.Random(1)
    parts = [b"", rng.randbytes(100_000), b"a\n" * 5000, b"x"]
    packed = [PACK[suffix](part) for part in parts]
    assert read(b"".join(packed), suffix) == b"".join(parts)
    assert read(packed[0], suffix) == b""
    with pytest.raises(EOFError, match="^the file is empty$"):  # a download that failed, such as one of many shards
        read(b"", suffix)
    padding = bytes(8)  # allowed behind members of gzip and streams of xz
    assert read(packed[1] + padding + packed[2] + padding, suffix) == parts[1] + parts[2]


@pytest.mark.parametrize("suffix", PACK)
def test_no_cut_and_no_flipped_bit_goes_unseen(suffix):
    data = random.Random(2).randbytes(3000)
    packed = PACK[suffix](data)
    if suffix == "zst":  # its checksum is an option of the writer
        packed = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    for cut in range(1, len(packed), 97):
        with pytest.raises((EOFError, Damaged)):
            read(packed[:cut], suffix)
    with pytest.raises(Damaged):
        read(packed + b"plain text", suffix)
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 4
    with pytest.raises((EOFError, Damaged)):
        read(bytes(flipped), suffix)


@pytest.mark.parametrize("suffix", PACK)
def test_a_piece_becomes_little_and_all_is_bounded(suffix):
    packed = PACK[suffix](bytes(18 << 20))
    stream = Decompressed(io.BytesIO(packed), suffix)
    given = 0
    with pytest.raises(TooDense, match="unpack it first"):
        while given <= 18 << 20:
            given += len(stream.read(1 << 20))
    assert given <= 18 << 20


def test_a_decoder_that_asks_for_much_memory_is_refused():
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    packer = lzma.LZMACompressor(lzma.FORMAT_XZ, filters=filters)
    with pytest.raises(TooMuchMemory, match="needs more than 128 MiB to unpack; unpack it first"):
        read(packer.compress(b"text") + packer.flush(), "xz")
