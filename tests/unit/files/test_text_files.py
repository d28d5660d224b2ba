"""Text files in chunks of whole lines: numbers of lines, cuts, limits, and what is refused."""

from __future__ import annotations

import gzip
import pickle
import random
import re

import pytest

from unified.errors import UnifiedError
from unified.files import text_files
from unified.files.text_files import (
    CHUNK_BYTES,
    Chunk,
    LineReader,
    is_compressed,
    lines_of,
    longest_line,
    numbered_lines,
    require_file,
    text_pieces,
    without_compression,
)

PIECES = ["a", "é", " ", "\t", "\r", "\u2028", "\x0c", "\ufeff", "中", "\n", "\n\n"]


def written(folder, data: bytes | str, name: str = "a.txt") -> str:
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return str(folder / name)


def refusal(*call) -> str:
    function, *arguments = call
    with pytest.raises(UnifiedError) as refused:
        list(function(*arguments) or ())
    return str(refused.value)


@pytest.mark.parametrize("seed", range(5))
def test_chunks_of_any_size_are_the_lines_of_the_file(tmp_path, seed):
    """By the definition: lines end at line feeds alone, and the mark of the byte order is no text."""
    text = "".join(random.Random(seed).choices(PIECES, k=60))
    lines = [line.rstrip("\r") for line in text.removeprefix("\ufeff").removesuffix("\n").split("\n")]
    path = written(tmp_path, text)
    for size in (1, 2, 7, 50, CHUNK_BYTES):
        chunks = list(LineReader(path, size).chunks())
        assert b"".join(chunk.data for chunk in chunks) == text.encode()
        assert [line for chunk in chunks for line in chunk.lines] == lines
        assert [chunk.first_line for chunk in chunks] == [
            1 + sum(c.count for c in chunks[:i]) for i in range(len(chunks))
        ]
        assert all(chunk.data.endswith(b"\n") and chunk.size == len(chunk.data) >= size for chunk in chunks[:-1])
        assert sum(chunk.count for chunk in chunks) == len(lines) and {chunk.path for chunk in chunks} == {path}
    assert list(numbered_lines(path)) == list(enumerate(lines, 1))
    for size in (1, 2, 7, CHUNK_BYTES):
        assert "".join(text_pieces(path, size)) == text.removeprefix("\ufeff")


def test_a_chunk_that_ends_with_a_line_is_not_read_on(tmp_path):
    path = written(tmp_path, "ab\ncd\nefg\nh")
    assert [chunk.data for chunk in LineReader(path, 3).chunks()] == [b"ab\n", b"cd\n", b"efg\n", b"h"]


def test_a_chunk_can_be_divided_before_any_of_its_lines():
    for end in (b"", b"\n"):
        chunk = Chunk("a", 5, "\ufeffé\r\n\nccc\nd".encode() + end)
        assert [part.data for part in chunk.divided(4)] == [chunk.data, b""]
        for line in range(1, 4):
            before, behind = chunk.divided(line)
            assert (before.path, before.first_line, behind.path, behind.first_line) == ("a", 5, "a", 5 + line)
            assert (before.lines, behind.lines) == (chunk.lines[:line], chunk.lines[line:])
            assert before.data + behind.data == chunk.data and before.data.endswith(b"\n")


def test_lines_are_those_of_every_system_and_a_carriage_return_within_one_stays():
    assert Chunk("a", 1, b"a\r\n\r\nb\rc\r\r\nd\r").lines == ["a", "", "b\rc", "d"]
    assert lines_of("a\nb") == lines_of("a\r\nb") == lines_of("a\r\nb\r") == ["a", "b"]
    letters = [chr(code) for code in range(32, 127)]
    assert lines_of("\r\n".join(letters)) == letters


def test_only_the_beginning_of_a_file_has_a_mark_of_the_byte_order():
    data = "\ufeffa\n".encode()
    assert Chunk("a", 1, data).lines == ["a"] and Chunk("a", 2, data).lines == ["\ufeffa"]


def test_a_chunk_goes_to_other_processes_as_bytes_alone():
    chunk = Chunk("a", 2, b"x\ny\n")
    assert (chunk.lines, chunk.count, chunk.size) == (["x", "y"], 2, 4)
    assert chunk.__getstate__() == {"path": "a", "first_line": 2, "data": b"x\ny\n"}
    again = pickle.loads(pickle.dumps(chunk))
    assert again == chunk and again.lines == ["x", "y"]


def test_lines_are_taken_by_their_number(tmp_path):
    reader = LineReader(written(tmp_path, "a\nb\n\nd\ne"))
    found = [reader.take(2), reader.take(1), reader.take(9)]
    assert [(chunk.first_line, chunk.lines) for chunk in found] == [(1, ["a", "b"]), (3, [""]), (4, ["d", "e"])]
    assert reader.take(1) is None
    reader = LineReader(written(tmp_path, "a\nb\nc\n"))
    reader.take(1)
    assert [(chunk.first_line, chunk.lines) for chunk in reader.chunks()] == [(2, ["b", "c"])]


def test_an_empty_file_has_no_lines(tmp_path):
    path = written(tmp_path, "")
    assert list(LineReader(path).chunks()) == list(numbered_lines(path)) == list(text_pieces(path)) == []
    assert list(numbered_lines(written(tmp_path, "\n"))) == [(1, "")]


def test_what_is_not_utf8_is_named_by_its_line_and_byte(tmp_path):
    for data, first, line, byte, column in (
        (b"\xff", 1, 1, "0xff", 1), (b"a\nb\nc\xe9d\n", 1, 3, "0xe9", 2), (b"x\n\x80", 7, 8, "0x80", 1),
        ("é".encode() + b"\xfe", 4, 4, "0xfe", 3),
    ):  # fmt: skip
        with pytest.raises(UnifiedError) as refused:
            _ = Chunk("a.txt", first, data).lines
        assert str(refused.value) == (
            f"a.txt, line {line}: not UTF-8 (byte {byte} at byte {column} of the line); convert the file to UTF-8"
        )
    path = written(tmp_path, b"a\nb\nc\xe9d\n")
    for size in (1, 3, 100):
        said = refusal(text_pieces, path, size)
        lines = {1: 3, 3: 3, 100: 1}[size]  # those of the pieces before
        assert said == f"{path}: not UTF-8 (byte 0xe9 behind line {lines}); convert it"
    path = written(tmp_path, "aé".encode()[:-1])
    assert refusal(text_pieces, path) == f"{path}: not UTF-8 (byte 0xc3 behind line 1); convert it"


def test_a_file_of_another_kind_is_called_what_it_is(tmp_path):
    """Nobody can convert a compressed file to UTF-8, as was advised."""
    data = gzip.compress(b"a text\n" * 50)
    zipped = b"PK\x03\x04\xff\n"
    for content, says in (
        (data, "compressed by gzip, which a name with .gz says"),
        (zipped, "a zip archive, such as an .xlsx or a .docx"),
    ):
        path = written(tmp_path, content)
        assert refusal(numbered_lines, path) == f"{path}: not text but {says}"
        for size in (9, 1000):
            assert refusal(text_pieces, path, size) == f"{path}: not text but {says}"
    with pytest.raises(UnifiedError, match="line 7: not UTF-8"):  # the beginning of a line is none of a file
        _ = Chunk("a.txt", 7, data).lines


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_line_may_have_as_many_bytes_as_fit_and_no_more(tmp_path, monkeypatch, name):
    small, large = 1 << 20, 3 << 20
    monkeypatch.setattr(text_files, "longest_line", lambda path: small if text_files.is_compressed(path) else large)
    longest, unpack = (small, ", or unpack the file first") if name.endswith("gz") else (large, "")
    pack = gzip.compress if unpack else bytes
    path = written(tmp_path, pack(b"a\nb\n" + b"x" * (longest - 2) + b"\nc"), name)
    assert [len(line) for _, line in numbered_lines(path)] == [1, 1, longest - 2, 1]
    path = written(tmp_path, pack(b"a\nb\n" + b"x" * (longest - 1) + b"\nc"), name)
    reader = LineReader(path, 1)
    with pytest.raises(UnifiedError) as refused:
        [reader.take(1), reader.take(1), reader.take(1)]
    assert str(refused.value) == (
        f"{path}: a line after line 3 is longer than {longest >> 20} MiB; "
        f"write one sentence or paragraph a line{unpack}"
    )


def test_how_long_a_line_may_be():
    assert longest_line("a.txt") == 256 * 2**20 and longest_line("a.txt.xz") == 16 * 2**20 and CHUNK_BYTES == 2**20


def test_what_is_no_file_is_refused(tmp_path):
    for read in (require_file, LineReader, numbered_lines, text_pieces):
        assert refusal(read, f"{tmp_path}/none") == f"{tmp_path}/none: no such file"
        assert refusal(read, str(tmp_path)) == f"{tmp_path}: a folder, not a file; there is no file in it"
        assert refusal(read, "/dev/null") == "/dev/null: not a file; name a file"
    written(tmp_path, "", ".hidden")
    path = written(tmp_path, "a")
    assert refusal(require_file, str(tmp_path)) == f"{tmp_path}: a folder, not a file; name its files, such as {path}"
    assert LineReader(path, 1).take(1) == Chunk(path, 1, b"a")
    assert LineReader(path, 2**30).take(1) == Chunk(path, 1, b"a")
    for size in (0, -1, 2**30 + 1, 10**20):
        assert refusal(LineReader, path, size) == f"--chunk-bytes must be from 1 to {2**30}, got {size}"


def test_compression_is_known_by_the_name():
    for ending in ("gz", "xz", "zst"):
        assert is_compressed(f"a.txt.{ending}") and without_compression(f"a.txt.{ending}") == "a.txt"
    for name in ("a.txt", "gz", "a.GZ", "a.gz.txt", "a.", ".", "a.bz2", "a"):
        assert not is_compressed(name) and without_compression(name) == name


def test_damaged_compressed_data_are_refused_wherever_they_are_read(tmp_path):
    data = gzip.compress(random.Random(1).randbytes(3000).hex().encode())
    path = written(tmp_path, data[:-20], "a.gz")
    begins = re.escape(f"{path}: the compressed data are damaged or cut off (")
    for read in (numbered_lines, text_pieces):
        assert re.match(begins, refusal(read, path))
    assert re.match(begins, refusal(lambda: LineReader(path).take(1)))
    assert "".join(text_pieces(written(tmp_path, gzip.compress(b"a\r\nb"), "b.gz"), 2)) == "a\r\nb"


def test_a_small_file_that_holds_much_text_is_refused_wherever_it_is_read(tmp_path):
    path = written(tmp_path, gzip.compress((b"a" * 1023 + b"\n") * (17 << 10), 1), "a.gz")
    for read in (numbered_lines, text_pieces):
        assert refusal(read, path) == (
            f"{path}: holds more than 25 times as many bytes as the compressed file, as no text does; unpack it first "
            "if this is what it should be"
        )
