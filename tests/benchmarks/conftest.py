"""What tests of the benchmarks share: the programs, imported."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = [path.stem for path in BENCHMARKS.glob("*.py")]


@pytest.fixture
def benchmark(monkeypatch):
    """Imports a program; names such as ``run`` belong to others again afterwards."""
    before = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    threads = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield importlib.import_module
    torch.set_num_threads(threads)
    for name in NAMES:
        sys.modules.pop(name, None)
    sys.modules.update(before)
