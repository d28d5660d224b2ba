"""Limits of decompression: density, memory of decoders, bytes that are read at once, and data of another format."""

import gzip
import io
import lzma
import random
import struct
import zlib

import pytest

from unified.errors import UnifiedError
from unified.files.decompression import DENSEST, Damaged, Decompressed, TooDense, TooMuchMemory
from unified.files.text_files import LineReader


def read(data, suffix):
    """Number of bytes that compressed data hold, read a mebibyte at a time."""
    stream = Decompressed(io.BytesIO(data), suffix)
    return sum(iter(lambda: len(stream.read(1 << 20)), 0))


def test_density_counts_from_more_than_16_mebibytes_on():
    assert read(gzip.compress(bytes(16 << 20), 1), "gz") == 16 << 20
    with pytest.raises(TooDense) as raised:
        read(gzip.compress(bytes((16 << 20) + 1), 1), "gz")
    assert str(raised.value) == (
        "holds more than 25 times as many bytes as the compressed file, as no text does; unpack it first if this is "
        "what it should be"
    )


@pytest.mark.parametrize(("density", "refused"), [(24.9, False), (25.5, True)])
def test_text_becomes_at_most_25_times_smaller(density, refused):
    noise = random.Random(1).randbytes(700_000)
    zeros = int(density * 720_000) - len(noise)
    for _ in range(3):  # zeros take some bytes, so that their number is found step by step
        packed = gzip.compress(noise + bytes(zeros), 6)
        zeros = int(density * len(packed)) - len(noise)
    assert DENSEST == 25 and len(noise) + zeros > 16 << 20
    if refused:
        with pytest.raises(TooDense):
            read(packed, "gz")
    else:
        assert read(packed, "gz") > 24.8 * len(packed)


def with_dictionary(size):
    """A stream of the older format of xz, whose header has the size of the dictionary behind its first byte."""
    packed = lzma.compress(b"text", lzma.FORMAT_ALONE, preset=0)
    return packed[:1] + struct.pack("<I", size) + packed[5:]


def with_window(logarithm):
    """A frame of Zstandard: its magic number, no options, the window, and one last block of raw bytes."""
    block = (4 << 3 | 1).to_bytes(3, "little") + b"text"
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(logarithm - 10) << 3]) + block


def test_a_decoder_may_take_128_mebibytes():
    assert read(with_dictionary(1 << 26), "xz") == read(with_window(27), "zst") == 4
    for data, suffix in ((with_dictionary(1 << 27), "xz"), (with_window(28), "zst")):
        with pytest.raises(TooMuchMemory):
            read(data, suffix)


@pytest.mark.parametrize(
    ("suffix", "data"), [("xz", with_dictionary(1 << 27)), ("zst", with_window(28))], ids=["xz", "zst"]
)
def test_a_whole_file_that_takes_more_is_not_called_damaged(tmp_path, suffix, data):
    path = tmp_path / f"a.txt.{suffix}"
    path.write_bytes(data)
    with pytest.raises(UnifiedError) as raised:
        list(LineReader(str(path)).chunks())
    assert str(raised.value) == f"{path}: needs more than 128 MiB to unpack; unpack it first"


def test_a_format_is_read_under_its_own_name_alone():
    packed = {"gz": gzip.compress(b"text"), "xz": lzma.compress(b"text"), "zst": with_window(20)}
    for name, data in packed.items():
        for suffix in packed:
            if suffix == name:
                assert read(data, suffix) == 4
            else:
                with pytest.raises(Damaged):
                    read(data, suffix)
    with pytest.raises(Damaged):
        read(zlib.compress(b"text"), "gz")  # the same packing without gzip's header
    with pytest.raises(KeyError):
        Decompressed(io.BytesIO(b""), "bz2")


class Asked(io.BytesIO):
    """Notes how many bytes are asked for."""

    def __init__(self, data):
        super().__init__(data)
        self.sizes = []

    def read(self, size):
        self.sizes.append(size)
        return super().read(size)


def test_at_most_two_kibibytes_are_read_at_once_and_none_before_they_are_needed():
    """A block of Zstandard takes four bytes and gives up to 128 KiB: two KiB become 64 MiB at most."""
    data = random.Random(2).randbytes(10_000)
    source = Asked(gzip.compress(data))
    stream = Decompressed(source, "gz")
    assert stream.readable() and source.sizes == []
    first = stream.read(10)
    assert first == data[:10] and max(source.sizes) <= 1 << 11 and sum(source.sizes) <= 1 << 12
    asked = len(source.sizes)
    assert stream.read(100) == data[10:110] and len(source.sizes) == asked  # the rest of the first piece
    assert first + data[10:110] + stream.readall() == data and stream.read(1) == b""
    buffer = bytearray(b"....")
    assert stream.readinto(buffer) == 0 and buffer == b"...."


def test_a_frame_that_is_cut_off_is_refused_and_padding_is_skipped():
    packed = gzip.compress(b"text")
    with pytest.raises(EOFError) as raised:
        read(packed[:-1], "gz")
    assert str(raised.value) == "the file ends inside a compressed frame"
    assert read(packed + bytes(5000) + packed + bytes(3), "gz") == 8 and read(bytes(5000), "gz") == 0


def test_the_file_is_closed_with_its_reader():
    source = io.BytesIO(gzip.compress(b"text"))
    stream = Decompressed(source, "gz")
    stream.close()
    assert source.closed and stream.closed
