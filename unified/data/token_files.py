r"""fairseq's memory-mapped token files (``PREFIX.bin`` and ``PREFIX.idx``), read and written without fairseq.

``.bin`` holds the tokens of all items one after another. ``.idx`` holds, little-endian: the 9 bytes ``MMIDIDX\0\0``,
version 1 (8 bytes), a code for the type of a token (1 byte), the number of items n (8 bytes), n sizes in tokens (int32)
and n offsets in bytes (int64).
"""

from __future__ import annotations

import os
import shutil
import struct
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType

import numpy as np

from unified.data.extents import ranges
from unified.errors import UnifiedError
from unified.files.whole import open_output, to_disk, whole_file

_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = struct.Struct("<9sQBQ")
_DTYPES: dict[int, np.dtype] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.int8),
    3: np.dtype(np.int16),
    4: np.dtype(np.int32),
    5: np.dtype(np.int64),
    8: np.dtype(np.uint16),
    9: np.dtype(np.uint32),
    10: np.dtype(np.uint64),
}
_CHECKED_AT_ONCE = 1 << 20
_COPIED_AT_ONCE = 1 << 20


def token_dtype(vocabulary_size: int) -> np.dtype:
    """The narrowest type that every fairseq 0.12 reads: uint16 below 65,500 symbols (fairseq's limit), else int32."""
    return np.dtype(np.uint16 if vocabulary_size < 65500 else np.int32)


def exists(prefix: str | os.PathLike[str]) -> bool:
    """True where both files of ``prefix`` exist."""
    return Path(f"{prefix}.idx").is_file() and Path(f"{prefix}.bin").is_file()


class TokenFile:
    """Items of token ids, read from disk as they are asked for.

    Pickling keeps the path alone, so data-loader workers open the files themselves.

    Args:
        prefix: path without ``.bin`` or ``.idx``.

    Raises:
        UnifiedError: a file is missing, truncated, or not in this format.
    """

    def __init__(self, prefix: str | os.PathLike[str]):
        self.prefix = os.fspath(prefix)
        self._open()
        self._check_offsets()

    def _open(self) -> None:
        index_path, data_path = f"{self.prefix}.idx", f"{self.prefix}.bin"
        self.dtype, count = _read_header(index_path)
        if not os.path.isfile(data_path):
            raise UnifiedError(f"{data_path}: no such file, though its index {index_path} is there")
        index = _map_bytes(index_path)
        sizes_end = _HEADER.size + 4 * count
        #: int32 (n,), tokens per item, memory-mapped.
        self.sizes = index[_HEADER.size : sizes_end].view("<i4")
        self._byte_offsets = index[sizes_end:].view("<i8")
        end = int(self._byte_offsets[-1]) + int(self.sizes[-1]) * self.dtype.itemsize if count else 0
        found = os.path.getsize(data_path)
        if found != end:
            raise UnifiedError(
                f"{data_path}: {found} bytes, but {index_path} describes {end}; "
                "the file is truncated or belongs to another index"
            )
        self._tokens = _map_bytes(data_path).view(self.dtype)

    def _check_offsets(self) -> None:
        """Items must lie one after another: each offset is the sum of the sizes before it."""
        expected = 0
        for start in range(0, len(self), _CHECKED_AT_ONCE):
            sizes = self.sizes[start : start + _CHECKED_AT_ONCE].astype(np.int64) * self.dtype.itemsize
            ends = np.cumsum(sizes) + expected
            offsets = self._byte_offsets[start : start + _CHECKED_AT_ONCE]
            wrong = np.flatnonzero((offsets != ends - sizes) | (sizes < 0))
            if wrong.size:
                raise UnifiedError(
                    f"{self.prefix}.idx: item {start + int(wrong[0])} does not begin where the item before it ends; "
                    "the index is garbled"
                )
            expected = int(ends[-1])

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, item: int) -> np.ndarray:
        """Tokens of one item, (sizes[item],), a read-only view of the file in its own dtype."""
        if not -len(self) <= item < len(self):
            raise IndexError(f"item {item} of {len(self)} in {self.prefix}")
        item %= len(self)
        return self.slice(item, item + 1)

    def slice(self, start: int, stop: int) -> np.ndarray:
        """Tokens of items ``start`` to ``stop - 1`` in one array, a read-only view of the file.

        Raises:
            IndexError: not ``0 <= start <= stop <= len(self)``.
        """
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"items {start} to {stop} of {len(self)} in {self.prefix}")
        return self._tokens[self._token_offset(start) : self._token_offset(stop)]

    @property
    def token_count(self) -> int:
        """Tokens of all items together."""
        return len(self._tokens)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Tokens, int64, at indices (int64, any shape) counted over all items one after another."""
        return self._tokens[indices].astype(np.int64)

    def tokens_of(self, items: np.ndarray) -> np.ndarray:
        """Tokens, int64, of items (int64 (n,)), those of one after another."""
        starts = self._byte_offsets[items] // self.dtype.itemsize
        return self.at(ranges(starts, self.sizes[items].astype(np.int64)))

    def _token_offset(self, item: int) -> int:
        if item == len(self):
            return len(self._tokens)
        return int(self._byte_offsets[item]) // self.dtype.itemsize

    @cached_property
    def offsets(self) -> np.ndarray:
        """int64 (n + 1,): item i holds tokens ``offsets[i]`` to ``offsets[i + 1] - 1``. Made at its first use."""
        offsets = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(self.sizes, out=offsets[1:])
        return offsets

    def check_ids(self, listed: int, at_once: int = _CHECKED_AT_ONCE) -> None:
        """Read all tokens once, ``at_once`` at a time: each must be an id of a dictionary of ``listed`` symbols.

        Raises:
            UnifiedError: one is not; data and dictionary do not belong together, or the file is garbled.
        """
        for start in range(0, len(self._tokens), at_once):
            tokens = self._tokens[start : start + at_once]
            for token in (int(tokens.max()), int(tokens.min())):
                if not 0 <= token < listed:
                    raise UnifiedError(
                        f"{self.prefix}.bin: holds token id {token}, but dict.txt beside it lists {listed} symbols; "
                        "data and dictionary must come from the same run of `unified prepare` or fairseq-preprocess"
                    )

    def holds(self, tokens: np.ndarray, at_once: int = _CHECKED_AT_ONCE) -> np.ndarray:
        """True for each of some token ids, int64 (n,), that occurs in the file: bool (n,).

        It reads ``at_once`` tokens after another, and no further than to where the last id is found.
        """
        found = np.zeros(len(tokens), dtype=bool)
        for start in range(0, len(self._tokens), at_once):
            if found.all():
                break
            found |= np.isin(tokens, self._tokens[start : start + at_once])
        return found

    def __getstate__(self) -> str:
        return self.prefix

    def __setstate__(self, prefix: str) -> None:
        self.prefix = prefix
        self._open()


class TokenFileWriter:
    """Writes items of token ids; the two files appear under their names only when all is on disk.

    Memory does not grow with the number of items: sizes wait in a file of their own. It is a context manager: where its
    block fails, what was written is removed.

    Args:
        prefix: path without ``.bin`` or ``.idx``; its folder must exist.
        dtype: type of a token on disk, see :func:`token_dtype`.

    Raises:
        UnifiedError: fairseq has no code for ``dtype``.
        OSError: a file cannot be written; its ``filename`` says which.
    """

    def __init__(self, prefix: str | os.PathLike[str], dtype: np.dtype | type):
        self.prefix = os.fspath(prefix)
        self.dtype = np.dtype(dtype)
        self._code = next((code for code, known in _DTYPES.items() if known == self.dtype), None)
        if self._code is None:
            raise UnifiedError(f"{self.dtype} cannot be stored; fairseq's token files hold integers of 8 to 64 bits")
        self.items = 0
        self.tokens = 0
        # Closed in the opposite order: the index gets its name last, so that where there is one, there are its data.
        with ExitStack() as files:
            self._index = files.enter_context(whole_file(Path(f"{self.prefix}.idx")))
            self._data = files.enter_context(whole_file(Path(f"{self.prefix}.bin")))
            self._waiting = Path(f"{self.prefix}.sizes.partial")
            self._sizes = open_output(self._waiting, name=Path(f"{self.prefix}.idx"))
            files.callback(self._waiting.unlink)
            files.enter_context(self._sizes)
            files.push(self._write_index)
            self._files = files.pop_all()

    def add(self, tokens: np.ndarray) -> None:
        """Append one item, tokens (n,)."""
        self.add_many(tokens, np.array([len(tokens)]))

    def add_many(self, flat: np.ndarray, sizes: np.ndarray) -> None:
        """Append ``len(sizes)`` items whose tokens lie one after another in ``flat`` (sum of sizes,).

        Raises:
            UnifiedError: tokens are no flat array of integers, a size is negative or above 2^31 - 1, sizes do not add
                up, or a token does not fit the dtype.
        """
        flat, sizes = np.asarray(flat), np.asarray(sizes)
        if flat.ndim != 1 or (flat.size and flat.dtype.kind not in "iu"):
            raise UnifiedError(f"{self.prefix}: tokens must be integers (n,), got {flat.dtype} {flat.shape}")
        wrong = sizes[(sizes < 0) | (sizes > np.iinfo(np.int32).max)]
        if wrong.size:
            raise UnifiedError(f"{self.prefix}: an item of {wrong[0]} tokens cannot be stored")
        if sizes.sum() != len(flat):
            raise UnifiedError(f"{self.prefix}: sizes add up to {sizes.sum()}, but {len(flat)} tokens arrived")
        if len(flat):
            limits = np.iinfo(self.dtype)
            for token in (flat.min(), flat.max()):
                if not limits.min <= token <= limits.max:
                    raise UnifiedError(f"{self.prefix}: token {token} does not fit {self.dtype}")
        self._data.write(flat.astype(self.dtype.newbyteorder("<")).tobytes())
        self._sizes.write(sizes.astype("<i4").tobytes())
        self.items += len(sizes)
        self.tokens += len(flat)

    def __enter__(self) -> TokenFileWriter:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._files.__exit__(error_type, error, traceback)

    def _write_index(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Write the index, unless the block fails."""
        if error_type is not None:
            return
        self._sizes.flush()
        self._index.write(_HEADER.pack(_MAGIC, 1, self._code, self.items))
        with open(self._waiting, "rb") as sizes:
            shutil.copyfileobj(sizes, self._index, _COPIED_AT_ONCE)
            sizes.seek(0)
            offset = 0
            while block := sizes.read(_COPIED_AT_ONCE):
                widths = np.frombuffer(block, dtype="<i4").astype(np.int64) * self.dtype.itemsize
                ends = np.cumsum(widths) + offset
                self._index.write((ends - widths).astype("<i8").tobytes())
                offset = int(ends[-1])
        to_disk(self._index)  # before the data get their name: a disk may be full


def _read_header(path: str) -> tuple[np.dtype, int]:
    """Type of a token and number of items; the size of the file is checked against the latter."""
    if not os.path.isfile(path):
        raise UnifiedError(f"{path}: no such file; `unified prepare` or `fairseq-preprocess` makes it")
    with open(path, "rb") as stream:
        header = stream.read(_HEADER.size)
    if header[:8] == b"TNTIDX\x00\x00":
        raise UnifiedError(
            f"{path}: fairseq's older format; make the folder again with `fairseq-preprocess --dataset-impl mmap`"
        )
    if not header.startswith(_MAGIC):
        raise UnifiedError(f"{path}: not an index of token files (it begins with {header[:9]!r}, not {_MAGIC!r})")
    if len(header) < _HEADER.size:
        raise UnifiedError(f"{path}: truncated, {len(header)} bytes are less than a header")
    _, version, code, count = _HEADER.unpack(header)
    if version != 1:
        raise UnifiedError(f"{path}: version {version} of the format; only version 1 is known")
    if code not in _DTYPES:
        raise UnifiedError(f"{path}: type code {code} is not a type of token ids ({sorted(_DTYPES)})")
    expected, found = _HEADER.size + 12 * count, os.path.getsize(path)
    if found != expected:
        raise UnifiedError(
            f"{path}: {found} bytes, but {count} items take {expected}; the file is truncated or garbled"
        )
    return _DTYPES[code].newbyteorder("<"), count


def _map_bytes(path: str) -> np.ndarray:
    """The file as read-only uint8 (an empty file cannot be mapped)."""
    if os.path.getsize(path) == 0:
        return np.zeros(0, dtype=np.uint8)
    # A plain array of the same memory: slices of the subclass cost several microseconds more.
    return np.asarray(np.memmap(path, mode="r", dtype=np.uint8))
