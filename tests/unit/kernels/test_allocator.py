"""Freed memory stays with the process."""

import subprocess
import sys

import pytest

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
