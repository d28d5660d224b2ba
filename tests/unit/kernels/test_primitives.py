"""oneDNN remembers few products, so that memory does not grow with the shapes of batches."""

import os
import subprocess
import sys

import pytest
from torch import nn

from unified.kernels.cpu import accelerate, quantize
from unified.kernels.cpu.int8 import has_int8_product
from unified.kernels.cpu.linear import has_product

NAMES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")

#: Products of 150 numbers of rows, with the gradients of their weights; prints by how many megabytes they grew.
GROWTH = """
import torch
from unified.kernels.cpu import accelerate
from unified.kernels.cpu.linear import onednn_product, onednn_sums

def megabytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1000

def products(rows):
    states = torch.ones(rows, 128)
    onednn_sums(onednn_product(states, weight), states, weight, of_bias=True)
    onednn_product(torch.ones(rows, 512), weight.T)

accelerate(torch.nn.Linear(2, 2))
weight = torch.ones(512, 128)
products(1000)
before = megabytes()
for rows in range(1000, 1150):
    products(rows)
print(megabytes() - before)
"""


WITHOUT_INT8 = pytest.mark.skipif(not has_int8_product(), reason="this torch has no int8 product of oneDNN")


@pytest.mark.parametrize("call", [accelerate, pytest.param(quantize, marks=WITHOUT_INT8)])
def test_the_number_is_set_unless_the_environment_has_one(monkeypatch, call):
    monkeypatch.delenv(NAMES[0], raising=False)
    monkeypatch.setenv(NAMES[1], "7")
    call(nn.Linear(3, 2))
    assert [os.environ[name] for name in NAMES] == ["64", "7"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux says how much memory is resident")
@pytest.mark.skipif(not has_product(), reason="this torch has no linear map by oneDNN")
def test_memory_does_not_grow_with_the_numbers_of_rows():
    def grown(**changes):
        environment = {name: value for name, value in os.environ.items() if name not in NAMES} | changes
        environment["OMP_NUM_THREADS"] = "1"
        done = subprocess.run(
            [sys.executable, "-c", GROWTH], env=environment, capture_output=True, text=True, check=True
        )
        return float(done.stdout)

    assert grown() < grown(**dict.fromkeys(NAMES, "1024")) / 2
