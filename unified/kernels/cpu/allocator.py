"""The C library's allocator, set for training on a CPU."""

from __future__ import annotations

import ctypes
import sys

#: glibc's names for `mallopt` (malloc.h), and the most that its parameters, C integers, can hold.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_MOST, _PAD = 2**31 - 1, 64 * 2**20
#: Sizes from which blocks are mapped one by one: the one that is wanted, and the greatest that glibc took before 2.35.
_MAPPED = (2**30, 32 * 2**20)


def keep_freed_memory() -> bool:
    """Large blocks that are freed stay with the process, instead of returning to the system and being mapped anew.

    A training step frees and takes the same large tensors again and again; glibc gives blocks above 32 MiB back each
    time, and every page of the next one is a page fault. A small model's step on two cores takes a tenth less time and
    a twelfth more memory. A glibc before 2.35 keeps blocks of up to 32 MiB alone.

    Returns:
        Whether the allocator took the settings; False where it is not glibc's. Where it maps small blocks one by one
        whatever it is told, all stays as it is: the other settings would make it slower.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # the library has no such function
        return False
    if not any(mallopt(_MMAP_THRESHOLD, size) == 1 for size in _MAPPED):
        return False
    return all([mallopt(name, value) == 1 for name, value in ((_TRIM_THRESHOLD, _MOST), (_TOP_PAD, _PAD))])
