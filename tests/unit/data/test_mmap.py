"""Token files against fairseq's own reader and writer, and what is refused."""

import os
import pickle
import stat
import struct

import numpy as np
import pytest
import torch

from tests.support.full_disk import full_disk
from unified.data.token_files import TokenFile, TokenFileWriter, exists, token_dtype
from unified.errors import UnifiedError


@pytest.fixture(scope="module")
def fairseq_files():
    return pytest.importorskip("fairseq.data.indexed_dataset")


DTYPES = [np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64]


def random_items(rng, count, dtype):
    highest = min(np.iinfo(dtype).max, 60000)
    return [rng.integers(0, highest, size=rng.integers(0, 30), endpoint=True).astype(dtype) for _ in range(count)]


def write(prefix, items, dtype):
    with TokenFileWriter(prefix, dtype) as writer:
        for item in items:
            writer.add(item)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fairseq_reads_what_we_write(fairseq_files, tmp_path, dtype):
    items = random_items(np.random.default_rng(1), 200, dtype)
    write(tmp_path / "a", items, dtype)
    theirs = fairseq_files.MMapIndexedDataset(str(tmp_path / "a"))
    assert len(theirs) == len(items)
    np.testing.assert_array_equal(theirs.sizes, [len(item) for item in items])
    for item, read in zip(items, theirs, strict=False):
        np.testing.assert_array_equal(read.numpy(), item)


@pytest.mark.parametrize("dtype", DTYPES)
def test_files_are_byte_for_byte_fairseqs(fairseq_files, tmp_path, dtype):
    items = random_items(np.random.default_rng(2), 200, dtype)
    builder = fairseq_files.MMapIndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=dtype)
    for item in items:
        builder.add_item(torch.from_numpy(item.astype(np.int64)))
    builder.finalize(str(tmp_path / "theirs.idx"))
    write(tmp_path / "ours", items, dtype)
    for part in ("bin", "idx"):
        assert (tmp_path / f"ours.{part}").read_bytes() == (tmp_path / f"theirs.{part}").read_bytes()

    ours = TokenFile(tmp_path / "theirs")
    assert ours.dtype == dtype and len(ours) == 200 and ours.sizes.dtype == np.int32
    for i, item in enumerate(items):
        np.testing.assert_array_equal(ours[i], item)


@pytest.mark.parametrize("size", [1000, 65499, 65500, 2**20])
def test_dtype_holds_the_vocabulary_and_small_ones_use_fairseqs_choice(fairseq_files, size):
    dtype = token_dtype(size)
    assert np.iinfo(dtype).max >= size - 1
    if size <= 65500:
        assert (dtype == np.uint16) == (fairseq_files.best_fitting_int_dtype(size) == np.uint16)


def test_slices_and_offsets_follow_their_definition(tmp_path):
    rng = np.random.default_rng(3)
    items = random_items(rng, 300, np.uint16)
    write(tmp_path / "a", items, np.uint16)
    file = TokenFile(tmp_path / "a")
    for _ in range(200):
        start, stop = sorted(rng.integers(0, 300, size=2, endpoint=True))
        expected = np.concatenate([np.zeros(0, np.uint16), *items[start:stop]])
        np.testing.assert_array_equal(file.slice(start, stop), expected)
    np.testing.assert_array_equal(file.offsets, np.cumsum([0] + [len(item) for item in items]))
    assert file.offsets.dtype == np.int64
    for item in (-1, -300):
        np.testing.assert_array_equal(file[item], items[item])
    for wrong in (300, -301):
        with pytest.raises(IndexError):
            file[wrong]
    for start, stop in [(-1, 3), (5, 4), (0, 301)]:
        with pytest.raises(IndexError):
            file.slice(start, stop)


def test_items_cannot_be_changed_through_the_reader(tmp_path):
    write(tmp_path / "a", [np.arange(5)], np.uint16)
    with pytest.raises(ValueError, match="read-only"):
        TokenFile(tmp_path / "a")[0][0] = 7


def test_no_items_and_only_empty_items(tmp_path):
    write(tmp_path / "none", [], np.uint16)
    none = TokenFile(tmp_path / "none")
    assert len(none) == 0 and none.slice(0, 0).size == 0 and none.offsets.tolist() == [0]
    write(tmp_path / "empty", [np.zeros(0, np.int64)] * 3, np.uint16)
    empty = TokenFile(tmp_path / "empty")
    assert empty.sizes.tolist() == [0, 0, 0] and empty[1].size == 0


def test_add_many_equals_add(tmp_path):
    items = random_items(np.random.default_rng(4), 50, np.uint16)
    write(tmp_path / "one", items, np.uint16)
    with TokenFileWriter(tmp_path / "many", np.uint16) as writer:
        for start in (0, 20):
            part = items[start : start + 20] if start == 0 else items[20:]
            writer.add_many(np.concatenate(part), np.array([len(item) for item in part]))
        assert writer.items == 50 and writer.tokens == sum(map(len, items))
    for part in ("bin", "idx"):
        assert (tmp_path / f"one.{part}").read_bytes() == (tmp_path / f"many.{part}").read_bytes()


def test_pickle_holds_the_path_alone(tmp_path):
    items = [np.arange(10_000)]
    write(tmp_path / "a", items, np.uint16)
    file = TokenFile(tmp_path / "a")
    file.offsets  # noqa: B018 - fills the cache, which must not travel
    pickled = pickle.dumps(file)
    assert len(pickled) < 500
    np.testing.assert_array_equal(pickle.loads(pickled)[0], items[0])


def test_nothing_appears_before_the_end_and_failures_leave_the_old_files(tmp_path):
    write(tmp_path / "a", [np.array([1, 2])], np.uint16)
    with pytest.raises(RuntimeError, match="stop"), TokenFileWriter(tmp_path / "a", np.uint16) as writer:
        writer.add(np.array([3, 4, 5]))
        assert TokenFile(tmp_path / "a")[0].tolist() == [1, 2]
        raise RuntimeError("stop")
    assert TokenFile(tmp_path / "a")[0].tolist() == [1, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bin", "a.idx"]

    writer = TokenFileWriter(tmp_path / "b", np.uint16)  # as after a kill: neither finished nor discarded
    writer.add(np.array([1]))
    assert not exists(tmp_path / "b")


def test_a_file_is_there_where_both_its_parts_are(tmp_path):
    write(tmp_path / "a", [np.array([1, 2])], np.uint16)
    assert exists(tmp_path / "a") and exists(str(tmp_path / "a")) and not exists(tmp_path / "b")
    for end in ("bin", "idx"):
        (tmp_path / f"b.{end}").touch()
        assert exists(tmp_path / "b") == (end == "idx")
    (tmp_path / "b.bin").unlink()
    assert not exists(tmp_path / "b")


@pytest.mark.parametrize("at_once", [1, 2, 3, 1 << 20])
def test_ids_are_those_of_the_dictionary(tmp_path, at_once):
    write(tmp_path / "a", [np.array([0, 3]), np.array([5]), np.array([2, 4])], np.int32)
    file = TokenFile(tmp_path / "a")
    file.check_ids(6, at_once)
    file.check_ids(6)
    with pytest.raises(UnifiedError) as caught:
        file.check_ids(5, at_once)
    assert str(caught.value) == (
        f"{tmp_path / 'a'}.bin: holds token id 5, but dict.txt beside it lists 5 symbols; data and dictionary must "
        "come from the same run of `unified prepare` or fairseq-preprocess"
    )
    for items, wrong in (([[7, 3], [-1, 2]], -1), ([[8, 3], [1, 2]], 8), ([[1, 3], [2, 9]], 9)):
        write(tmp_path / "b", map(np.array, items), np.int32)
        with pytest.raises(UnifiedError, match=f"holds token id {wrong}, "):
            TokenFile(tmp_path / "b").check_ids(8, at_once)


@pytest.mark.parametrize("at_once", [1, 2, 3, 1 << 20])
def test_symbols_that_occur_are_found(tmp_path, at_once):
    write(tmp_path / "a", [np.array([0, 3]), np.array([5]), np.array([2, 4])], np.uint16)
    file = TokenFile(tmp_path / "a")
    for wanted in ([4, 1, 0], [0], [1], [3, 5], [6, 2, 3, 7], []):
        found = file.holds(np.array(wanted, dtype=np.int64), at_once)
        assert found.dtype == bool and found.tolist() == [token in (0, 3, 5, 2, 4) for token in wanted]
    assert file.holds(np.array([1, 2])).tolist() == [False, True]


def test_files_are_on_disk_before_they_get_their_names_and_the_index_comes_last(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace

    def to_disk(descriptor):
        status = os.fstat(descriptor)
        done.extend([] if stat.S_ISDIR(status.st_mode) else [status.st_size])
        fsync(descriptor)

    def named(old, new):
        done.append(os.path.basename(new))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", to_disk)
    monkeypatch.setattr(os, "replace", named)
    write(tmp_path / "a", [np.array([1, 2]), np.array([3])], np.uint16)
    assert done == [26 + 2 * 12, 6, "a.bin", 26 + 2 * 12, "a.idx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin", "a.idx"]


@pytest.mark.parametrize("token", [-1, 65536])
def test_a_token_that_does_not_fit_is_refused(tmp_path, token):
    with pytest.raises(UnifiedError, match=f"token {token} does not fit uint16"):
        write(tmp_path / "a", [np.array([1, token])], np.uint16)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tokens", [np.array([1.7, 2]), np.array([[1, 2], [3, 4]]), np.array(["a"])])
def test_what_is_no_flat_array_of_integers_is_refused(tmp_path, tokens):
    with pytest.raises(UnifiedError, match=r"a: tokens must be integers \(n,\), got "):
        write(tmp_path / "a", [tokens], np.uint16)
    assert list(tmp_path.iterdir()) == []


def test_sizes_that_do_not_add_up_and_foreign_dtypes_are_refused(tmp_path):
    with pytest.raises(UnifiedError, match="add up to 3, but 2"), TokenFileWriter(tmp_path / "a", np.uint16) as writer:
        writer.add_many(np.array([1, 2]), np.array([1, 2]))
    sizes = {size: f"an item of {size} tokens cannot be stored" for size in (-1, 2**31)} | {
        2**31 - 1: "sizes add up to"
    }
    for size, message in sizes.items():
        with pytest.raises(UnifiedError, match=message):
            with TokenFileWriter(tmp_path / "a", np.uint16) as writer:
                writer.add_many(np.array([1, 2]), np.array([2, size]))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnifiedError, match="float32"):
        TokenFileWriter(tmp_path / "a", np.float32)


def garble_offset(index):
    return index[:-8] + struct.pack("<q", 7)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda index: b"", r"a\.idx: not an index"),
        (lambda index: b"GARBAGE" + index[7:], r"a\.idx: not an index.*GARBAGE"),
        (lambda index: b"TNTIDX\x00\x00" + index[8:], "older format.*--dataset-impl mmap"),
        (lambda index: index[:20], r"a\.idx: truncated, 20 bytes"),
        (lambda index: index[:9] + struct.pack("<Q", 2) + index[17:], "version 2"),
        (lambda index: index[:17] + b"\x06" + index[18:], "type code 6"),
        (lambda index: index[:-3], r"a\.idx: \d+ bytes, but 3 items take"),
        (lambda index: index[:18] + struct.pack("<Q", 2**60) + index[26:], "truncated or garbled"),
        (lambda index: index[:26] + struct.pack("<i", 5) + index[30:], "item 0|item 1"),
        (lambda index: index[:-16] + struct.pack("<q", 2) + index[-8:], "item 1 does not begin where"),
        (garble_offset, r"a\.bin: 12 bytes, but .*a\.idx describes"),
    ],
)
def test_damaged_index(tmp_path, damage, message):
    write(tmp_path / "a", [np.array([1, 2]), np.array([3]), np.array([4, 5, 6])], np.uint16)
    index = tmp_path / "a.idx"
    index.write_bytes(damage(index.read_bytes()))
    with pytest.raises(UnifiedError, match=message):
        TokenFile(tmp_path / "a")


def test_an_index_of_more_than_a_million_items_is_checked_to_its_end(tmp_path):
    """It is read in blocks."""
    count = 2**20 + 3
    with TokenFileWriter(tmp_path / "a", np.uint8) as writer:
        writer.add_many(np.arange(count) % 200, np.ones(count, dtype=np.int64))
    file = TokenFile(tmp_path / "a")
    assert file[count - 1].tolist() == file.at(np.array([count - 1])).tolist() == [(count - 1) % 200]
    index = tmp_path / "a.idx"
    index.write_bytes(index.read_bytes()[:-16] + struct.pack("<qq", 7, count - 1))
    with pytest.raises(UnifiedError, match=f"item {count - 2} does not begin where the item before it ends"):
        TokenFile(tmp_path / "a")


def test_damaged_or_missing_data(tmp_path):
    write(tmp_path / "a", [np.array([1, 2]), np.array([3])], np.uint16)
    data = tmp_path / "a.bin"
    for wrong in (data.read_bytes()[:-1], data.read_bytes() + b"\x00"):
        data.write_bytes(wrong)
        with pytest.raises(UnifiedError, match=r"a\.bin: \d bytes, but .*a\.idx describes 6"):
            TokenFile(tmp_path / "a")
    data.unlink()
    with pytest.raises(UnifiedError, match=r"a\.bin: no such file"):
        TokenFile(tmp_path / "a")
    with pytest.raises(UnifiedError, match=r"b\.idx: no such file"):
        TokenFile(tmp_path / "b")


@pytest.mark.parametrize(("room", "part"), [(0, "bin"), (10, "idx")])
def test_a_full_disk_names_the_file_and_leaves_the_old_ones(tmp_path, room, part):
    write(tmp_path / "a", [np.array([1, 2])], np.uint16)
    with pytest.raises(OSError, match="File too large") as raised, full_disk(room):
        write(tmp_path / "a", [np.array([3, 4, 5])], np.uint16)
    assert raised.value.filename == str(tmp_path / f"a.{part}")
    assert TokenFile(tmp_path / "a")[0].tolist() == [1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin", "a.idx"]


def test_a_folder_that_is_not_there_names_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        TokenFileWriter(tmp_path / "none" / "a", np.uint16)
    assert raised.value.filename == str(tmp_path / "none" / "a.idx")
