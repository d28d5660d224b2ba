"""Freed memory stays with the process."""

import ctypes
import math
import subprocess
import sys
from types import SimpleNamespace

import pytest

from unified.kernels.cpu import keep_freed_memory

SIZES = """
import sys, torch
from unified.kernels.cpu import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    sys.exit(3)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

before = resident()
large = torch.empty(2**28, dtype=torch.uint8).fill_(1)
held = resident()
del large
print((resident() - before) / (held - before))
"""


def share_that_stays(how: str) -> float:
    """The share of 256 MiB that the process keeps after they were freed."""
    done = subprocess.run([sys.executable, "-c", SIZES, how], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("the allocator is not glibc's")
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.slow
def test_a_large_block_stays_when_it_is_freed():
    assert share_that_stays("kept") > 0.95
    assert share_that_stays("given back") < 0.05


@pytest.fixture
def asked(monkeypatch):
    """What the C library's `mallopt` is called with; it refuses a name in ``refused``, from a size on."""
    calls, refused = [], {}

    def mallopt(name, value):
        calls.append((name, value))
        return int(value < refused.get(name, math.inf))

    library = SimpleNamespace(mallopt=mallopt)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setitem(vars(ctypes), "CDLL", {None: library}.__getitem__)
    return SimpleNamespace(calls=calls, refused=refused, library=library)


def test_the_allocator_is_told_to_map_nothing_and_to_return_nothing(asked):
    """glibc's malloc.h: M_MMAP_THRESHOLD is -3, M_TRIM_THRESHOLD -1, M_TOP_PAD -2; values are C integers."""
    assert keep_freed_memory() is True
    assert asked.calls == [(-3, 1_073_741_824), (-1, 2_147_483_647), (-2, 67_108_864)]


def test_an_older_glibc_takes_the_greatest_size_that_it_can(asked):
    """Before 2.35 it refuses M_MMAP_THRESHOLD above half of a heap, 32 MiB; the other settings alone cost time."""
    asked.refused[-3] = 2**25 + 1
    assert keep_freed_memory() is True
    assert asked.calls == [(-3, 2**30), (-3, 2**25), (-1, 2_147_483_647), (-2, 67_108_864)]
    asked.calls.clear()
    asked.refused[-3] = 0
    assert keep_freed_memory() is False
    assert asked.calls == [(-3, 2**30), (-3, 2**25)]


@pytest.mark.parametrize("name", [-1, -2])
def test_a_setting_that_is_not_taken_is_told(asked, name):
    asked.refused[name] = 0
    assert keep_freed_memory() is False
    assert len(asked.calls) == 3


def test_other_systems_and_other_libraries_stay_as_they_are(asked, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False
    monkeypatch.setattr(sys, "platform", "linux")
    delattr(asked.library, "mallopt")
    assert keep_freed_memory() is False
    assert asked.calls == []
