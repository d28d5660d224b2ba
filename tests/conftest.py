"""What every test shares: threads, seeds, no network, and the folder of real data."""

import atexit
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import numpy
import pytest

# Read when torch is first imported, here and in every program that a test starts. Tests use tiny models, which one
# thread serves best, and a fixed number of threads keeps results the same from machine to machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # silences a warning of `tokenizers` after a fork
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["UNIFIED_CACHE"] = tempfile.mkdtemp(prefix="unified-cache-")  # of models that tests name
os.environ["HF_MODULES_CACHE"] = tempfile.mkdtemp(prefix="modules-cache-")  # code of models that transformers runs
os.environ["HF_DATASETS_CACHE"] = tempfile.mkdtemp(prefix="datasets-cache-")
for variable in ("UNIFIED_CACHE", "HF_MODULES_CACHE", "HF_DATASETS_CACHE"):
    atexit.register(shutil.rmtree, os.environ[variable], ignore_errors=True)
# Where this is forbidden, each of hundreds of Pythons would compile the library and its tests anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What is written need not outlive the power: waiting for a busy disk took up to five seconds for each checkpoint.
os.fsync = lambda descriptor: None
# A shell's background jobs ignore SIGINT, and so would every program that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# What is imported stays: looking through it for garbage again and again took a tenth of the time of all tests.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


@pytest.fixture(autouse=True)
def card(request):
    """A test with the marker ``gpu`` runs where there is a card, and compiles what it compiles anew."""
    if request.node.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no GPU")
        torch.compiler.reset()  # after eight shapes of one function torch would compile no more


@pytest.fixture(autouse=True)
def seeds():
    """Every test starts from the same global seeds, whatever ran before it."""
    import torch

    random.seed(1)
    numpy.random.seed(1)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(1)
    torch.default_generator.manual_seed(1)  # without a card, torch.manual_seed notes its caller's stack: a millisecond


@pytest.fixture(scope="session")
def unified_data() -> Path:
    """The folder of real data; a test that asks for it is skipped where the environment variable does not name one."""
    value = os.environ.get("UNIFIED_DATA")
    if not value:
        pytest.skip("UNIFIED_DATA is not set: it names the folder of real data sets")
    folder = Path(value)
    if not folder.is_dir():
        pytest.fail(f"UNIFIED_DATA={value} is not a folder")
    return folder
