"""Packages of fine-tuned models: what they hold, and that the model in them is the one that was fine-tuned."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess

import pytest

import unified
from tests.recipes.test_recipes import RECIPES, load
from tests.support.prepared_python import interpreter
from tests.support.task_folders import language_model
from unified.errors import UnifiedError
from unified.reports.results import write_result

RESULT = {
    "task": "texts", "run": "ours", "scores": {"valid": {"rougeL": 12.5}}, "seed": 1, "published": {}, "settings": {},
    "command": ["unified", "finetune"], "data": {"train.jsonl": "0" * 64}, "model": {"name": "tiny", "sha256": None},
}  # fmt: skip
USE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import unified, unified_asks
model = unified.load(unified_asks.PATH)
print(json.dumps([model.embed(["w1 w2 w3 w4"])[0].tolist(), str(next(model.model.parameters()).dtype)]))
"""


@pytest.fixture
def run(tmp_path):
    """A model that writes, with its results."""
    folder = language_model(tmp_path / "run", writes="cloze", token_types=6, initializer_range=0.25)
    write_result(folder, **RESULT)
    return unified.load(folder), folder


def test_a_package_holds_the_model_in_half_precision(run, tmp_path):
    lm, folder = run
    checksum = load(RECIPES / "models" / "build.py").build("asks", folder, tmp_path / "asks")
    model = tmp_path / "asks" / "unified_asks" / "model"
    assert hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest() == checksum
    assert (tmp_path / "asks" / "SHA256SUMS").read_text() == f"{checksum}  unified_asks/model/model.safetensors\n"
    assert json.loads((model / "config.json").read_text())["dtype"] == "float16"
    assert "12.5" in (model / "README.md").read_text() == (tmp_path / "asks" / "README.md").read_text()
    done = subprocess.run([interpreter(), "-c", USE, str(tmp_path / "asks")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    states, dtype = json.loads(done.stdout)
    wanted = lm.embed(["w1 w2 w3 w4"])[0].tolist()
    assert dtype == "torch.float32" and states != wanted and states == pytest.approx(wanted, abs=5e-3)


def test_names_sizes_and_runs_are_checked(run, tmp_path):
    build = load(RECIPES / "models" / "build.py")
    with pytest.raises(UnifiedError, match="'My model' is no name of a package"):
        build.build("My model", run[1], tmp_path / "out")
    with pytest.raises(UnifiedError, match="larger than 0 MB"):
        build.build("asks", run[1], tmp_path / "out", most_megabytes=0)
    shutil.rmtree(run[1])
    with pytest.raises(UnifiedError, match="run"):
        build.build("asks", run[1], tmp_path / "out")
    assert not (tmp_path / "out").exists()
