"""TensorFlow's checkpoints, written from the format's description: types, shapes, the optimizer's variables, damage."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.support import tensorflow_files
from tests.support.tensorflow_files import crc32c, message, number, table, varint
from unified.checkpoints.tensorflow import find_tensorflow, load_tensorflow
from unified.errors import UnifiedError


def entry(dtype: int, shape: tuple[int, ...], data: bytes, shard: int = 0, offset: int = 0) -> bytes:
    """A variable in the index; fields that are 0 are not written, as protocol buffers have it."""
    dimensions = b"".join(message(2, number(1, size)) for size in shape)
    made = number(1, dtype) + message(2, dimensions) + number(3, shard) + number(4, offset) + number(5, len(data))
    return made + varint(6 << 3 | 5) + struct.pack("<I", crc32c(data))


def written(folder: Path, rows: dict[bytes, bytes], data: bytes = b"", header: bytes = b"\x08\x01") -> Path:
    """One shard with ``data``; the header says so."""
    (folder / "x.index").write_bytes(table({b"": header, **rows}))
    (folder / "x.data-00000-of-00001").write_bytes(data)
    return folder / "x"


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


@pytest.mark.parametrize(
    ("number_of_type", "dtype"),
    [(1, "<f4"), (2, "<f8"), (3, "<i4"), (4, "u1"), (5, "<i2"), (6, "i1"), (9, "<i8"), (10, "?"), (19, "<f2")],
)
def test_numbers_keep_their_type(tmp_path, number_of_type, dtype):
    value = np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    prefix = written(tmp_path, {b"v": entry(number_of_type, (2, 3), value.tobytes())}, value.tobytes())
    found, optimizer = load_tensorflow(str(prefix))
    assert found["v"].dtype == value.dtype and np.array_equal(found["v"], value) and optimizer == []


def test_bfloat16_is_the_upper_half_of_float32(tmp_path):
    value = np.array([1.5, -3.0, 0.15625], dtype="<f4")
    data = (value.view("<u4") >> 16).astype("<u2").tobytes()
    found = load_tensorflow(written(tmp_path, {b"v": entry(14, (3,), data)}, data))[0]["v"]
    assert found.dtype == np.float32 and np.array_equal(found, value)


def test_scalars_empty_tables_and_offsets(tmp_path):
    data = np.arange(5, dtype="<i4").tobytes()
    rows = {
        b"scalar": entry(3, (), data[8:12], offset=8),
        b"empty": entry(3, (0, 4), b""),
        b"end": entry(3, (2,), data[12:], offset=12),
    }
    found = load_tensorflow(written(tmp_path, rows, data))[0]
    assert {name: value.tolist() for name, value in found.items()} == {"scalar": 2, "empty": [], "end": [3, 4]}
    assert found["empty"].shape == (0, 4)


def test_variables_of_the_optimizer_are_named_and_not_read(tmp_path):
    names = [
        "a/Adam", "a/Adam_1", "a/b/adam_m", "adam_v", "beta1_power", "beta2_power", "global_step", "x/global_step",
        "a/Adam_2", "a/adam_x", "beta3_power", "xglobal_step", "global_step/x", "adam_mx",
    ]  # fmt: skip
    rows = {name.encode(): entry(1, (1,), bytes(4)) for name in names[8:]}
    rows |= {name.encode(): entry(7, (9,), b"of another type") for name in names[:8]}
    found, optimizer = load_tensorflow(written(tmp_path, rows, bytes(4)))
    assert sorted(optimizer) == sorted(names[:8]) and sorted(found) == sorted(names[8:])


def test_every_variable_of_an_index_is_read(tmp_path):
    data = np.arange(40, dtype="<i4").tobytes()
    numbers = {f"layer_{i:02}/kernel": i for i in range(40)}
    rows = {name.encode(): entry(3, (), data[4 * i : 4 * i + 4], offset=4 * i) for name, i in numbers.items()}
    found = load_tensorflow(written(tmp_path, rows, data))[0]
    assert {name: value.item() for name, value in found.items()} == numbers


def test_keys_of_slices_are_no_variables(tmp_path):
    prefix = written(tmp_path, {b"\0slice": b"anything", b"v": entry(1, (1,), bytes(4))}, bytes(4))
    assert list(load_tensorflow(prefix)[0]) == ["v"]


def test_a_header_says_how_many_files_there_are(tmp_path):
    written(tmp_path, {b"v": entry(1, (1,), bytes(4))}, bytes(4), header=b"")
    assert list(load_tensorflow(tmp_path / "x")[0]) == ["v"]  # one, where it says nothing
    (tmp_path / "x.index").write_bytes(table({b"v": entry(1, (1,), bytes(4))}))
    assert list(load_tensorflow(tmp_path / "x")[0]) == ["v"]
    written(tmp_path, {b"v": entry(1, (1,), bytes(4))}, bytes(4), header=number(1, 3))
    name = tmp_path / "x.data-00000-of-00003"
    assert refusal(load_tensorflow, tmp_path / "x") == f"{name}: no such file; v is in it"


@pytest.mark.parametrize(
    ("row", "data", "said"),
    [
        (entry(1, (2,), bytes(4)), bytes(4), "x.index: damaged, v has 4 bytes for shape (2,)"),
        (entry(1, (1,), bytes(4)), bytes(3), "x.data-00000-of-00001: truncated within v"),
        (entry(1, (1,), bytes(4), offset=1), bytes(4), "x.data-00000-of-00001: truncated within v"),
        (entry(1, (1,), bytes(4)), b"\1\0\0\0", "x.data-00000-of-00001: damaged, the checksum of v does not fit"),
        (entry(7, (1,), bytes(4)), bytes(4), "x: v is of TensorFlow's type 7, no plain number; only checkpoints of "
         "TensorFlow 1's Saver are read, whose names are those of the graph"),
        (entry(1, (1,), bytes(4)) + message(7, b""), bytes(4), "x: v is divided into slices, which are not read; save "
         "it whole"),
        (message(1, b"a"), b"", "x.index: damaged, its content cannot be read (TypeError)"),
    ],
)  # fmt: skip
def test_variables_that_cannot_be_read_are_named(tmp_path, row, data, said):
    assert refusal(load_tensorflow, written(tmp_path, {b"v": row}, data)) == f"{tmp_path}/{said}"


def test_indices_that_cannot_be_read_are_refused(tmp_path):
    path = tmp_path / "x.index"
    said = f"{path}: no such file; a TensorFlow checkpoint has an .index and .data-* beside it"
    assert refusal(load_tensorflow, tmp_path / "x") == said
    written(tmp_path, {b"v": entry(1, (1,), bytes(4))}, bytes(4))
    whole = path.read_bytes()
    for damaged in (b"", whole[-47:], whole[:-1] + b"\0"):
        path.write_bytes(damaged)
        said = f"{path}: not the index of a TensorFlow checkpoint, or a truncated one"
        assert refusal(load_tensorflow, tmp_path / "x") == said
    path.write_bytes(whole[-48:])
    assert refusal(load_tensorflow, tmp_path / "x").startswith(f"{path}: damaged, ")
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert refusal(load_tensorflow, tmp_path / "x") == f"{path}: damaged, a checksum inside it does not fit"
    written(tmp_path, {b"\xff": entry(1, (1,), bytes(4))})
    said = f"{path}: damaged, its content cannot be read (UnicodeDecodeError)"
    assert refusal(load_tensorflow, tmp_path / "x") == said
    written(tmp_path, {}, header=number(2, 1))
    said = f"{path}: a big-endian checkpoint; only little-endian ones are read"
    assert refusal(load_tensorflow, tmp_path / "x") == said


def test_compressed_blocks_are_refused(tmp_path):
    block = struct.pack("<II", 0, 1)
    stored = block + b"\1" + struct.pack("<I", crc32c(block + b"\1"))  # 1: Snappy
    footer = (varint(0) + varint(8) + varint(0) + varint(8)).ljust(40, b"\0") + struct.pack(
        "<Q", tensorflow_files.MAGIC
    )
    (tmp_path / "x.index").write_bytes(stored + footer)
    said = f"{tmp_path / 'x.index'}: compressed; TensorFlow's Saver writes its index uncompressed"
    assert refusal(load_tensorflow, tmp_path / "x") == said


def test_the_checkpoint_of_a_folder_is_found_by_its_index(tmp_path):
    assert find_tensorflow(str(tmp_path)) is None
    (tmp_path / "bert_model.ckpt.index").touch()
    assert find_tensorflow(tmp_path) == tmp_path / "bert_model.ckpt"
    (tmp_path / "a.ckpt.index").touch()
    names = "a.ckpt.index, bert_model.ckpt.index"
    said = f"{tmp_path}: holds several TensorFlow checkpoints ({names}); leave one of them there"
    assert refusal(find_tensorflow, tmp_path) == said
