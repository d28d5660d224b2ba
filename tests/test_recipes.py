"""Recipes: all scripts are sound; SQuAD at its debug size."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_bert_checkpoints import bert_folder
from unified.checkpoints.bert import import_bert
from unified.tasks.catalogue import TASKS
from unified.tasks.span import SpanAnswers

RECIPES = Path(__file__).resolve().parent.parent / "recipes"
SQUAD = RECIPES / "bert" / "squad"
SCRIPTS = sorted(RECIPES.rglob("*.sh"))
#: Read by other scripts, never run.
SOURCED = [*(RECIPES / "common").glob("*.sh")]


def load(path: Path) -> ModuleType:
    """A script of a recipe as a module."""
    spec = importlib.util.spec_from_file_location(f"recipe_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def run(*words, **environment: str) -> subprocess.CompletedProcess:
    result = subprocess.run(
        [*map(str, words)], capture_output=True, text=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
             "CARDS": "0", **environment},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(RECIPES)))
def test_scripts_are_bash(script):
    assert subprocess.run(["bash", "-n", script], capture_output=True, text=True).stderr == ""
    if script not in SOURCED:
        assert os.access(script, os.X_OK), "not executable"
        assert script.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")


@pytest.mark.parametrize(
    "script",
    [script for script in SCRIPTS if script not in SOURCED and script.name != "check_gpus.sh"],
    ids=lambda path: str(path.relative_to(RECIPES)),
)
def test_scripts_without_arguments_say_what_they_expect(script):
    result = subprocess.run(["bash", script], capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr.startswith("usage: ") and not result.stdout


def test_squad_at_debug_size(tmp_path):
    """From generated files to official scores, which the file of results has, too."""
    bert_folder(tmp_path / "bert")
    import_bert(tmp_path / "bert", tmp_path / "model")
    run(sys.executable, SQUAD / "debug_data.py", tmp_path / "squad")
    before = {path.name: path.read_bytes() for path in (tmp_path / "squad").iterdir()}
    run(sys.executable, SQUAD / "debug_data.py", tmp_path / "squad")
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "squad").iterdir()} and len(before) == 2
    words = ("bash", SQUAD / "finetune.sh", "debug", tmp_path / "squad", tmp_path / "model", tmp_path / "out")
    printed = run(*words, "--epochs", 1, "--longest", 24).stdout
    assert "answers cannot be learnt" not in printed
    scores = json.loads((tmp_path / "out" / "results.json").read_text())["scores"]["valid"]
    official, searched = (json.loads("{" + part.split("}")[0] + "}") for part in printed.split("{")[-2:])
    assert official.items() <= scores.items() and official["total"] == 48 == scores["HasAns_total"] + 12
    best = {name: value for name, value in searched.items() if name.startswith("best_")}
    assert len(best) == 4 and best.items() <= scores.items()


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_squad_has_the_published_settings(version):
    """Devlin et al. 2019, sections 4.2 and 4.3."""
    printed = run("bash", SQUAD / "finetune.sh", version, "DATA", "MODEL", "OUT", "--select", "best", PRINT="1").stdout
    first, *rest = printed.splitlines()
    assert first.split() == ["unified", "finetune", f"squad{version}", "--data", "DATA", "--init", "MODEL", "--output",
                             "OUT", "--select", "best"]  # fmt: skip
    assert all(line.startswith("unified score squad DATA/dev-v") for line in rest)
    assert len(rest) == (1 if version == "1.1" else 2)
    training = TASKS[f"squad{version}"].training
    published = (3, 32, 5e-5) if version == "1.1" else (2, 48, 5e-5)
    assert (training.epochs, training.batch_size, training.learning_rate) == published and training.longest == 384
    task = SpanAnswers()
    assert (task.design, task.max_query, task.stride, task.max_answer, task.n_best) == ("bert", 64, 128, 30, 20)
