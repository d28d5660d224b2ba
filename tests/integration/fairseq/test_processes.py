"""Programs that ours start import nothing from the current folder, whatever lies there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from tests.integration.cli.test_task_commands import items
from tests.support import fairseq_runs as fairseq
from tests.support.task_folders import WORDS, language_model
from unified.errors import UnifiedError
from unified.runtime import processes
from unified.tasks.augmentation.two_stages import TwoStages
from unified.tasks.heads.items import write_items

ROOT = fairseq.ROOT
OTHERS = ("torch", "numpy", "fairseq", "fairseq_cli", "fairseq_plugins", "unified", "omegaconf", "hydra", "regex")
OTHERS += ("sentencepiece", "tokenizers", "sacrebleu", "scipy", "tensorboardX", "sitecustomize")


@pytest.fixture(autouse=True)
def prepared_commands():
    """None: what a fresh Python imports is tested."""


@pytest.fixture
def hostile(tmp_path, monkeypatch) -> Path:
    """The current folder: has a module of every name that may be imported, which leaves a mark; gives the mark."""
    folder, mark = tmp_path / "downloaded", tmp_path / "imported"
    folder.mkdir()
    for name in {*sys.stdlib_module_names, *OTHERS} - set(sys.builtin_module_names):
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r} + ' ')\nraise ImportError\n")
    monkeypatch.chdir(folder)
    return mark


def unified(*words) -> subprocess.CompletedProcess:
    """The program starts as the installed command does: its own folder is on the path, the current one is not."""
    command = [sys.executable, "-P", "-m", "unified.cli", *map(str, words)]
    return subprocess.run(command, env=fairseq.environment(), capture_output=True, text=True)


def test_the_folder_is_hostile(hostile):
    command = [sys.executable, "-m", "unified.cli", "--help"]
    assert subprocess.run(command, env=fairseq.environment(), capture_output=True).returncode != 0
    assert hostile.exists()


def test_finetune(hostile, tmp_path):
    """It starts fairseq-train, and that its processes."""
    (tmp_path / "data").mkdir()
    for split in ("train", "valid"):
        write_items(tmp_path / "data" / f"{split}.jsonl", items(8, np.random.default_rng(0)))
    result = unified(
        "finetune", "classification", "--data", tmp_path / "data", "--init", language_model(tmp_path / "model"),
        "--output", tmp_path / "run", "--epochs", 1, "--max-length", 16, "--batch-size", 4,
    )  # fmt: skip
    assert not hostile.exists(), hostile.read_text()
    assert result.returncode == 0 and (tmp_path / "run" / "results.json").exists(), result.stderr[-2000:]


def test_augment(hostile, tmp_path, monkeypatch):
    """The recipe's stages are `unified finetune`, which gets as far as it can here."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "squad").mkdir()
    language_model(tmp_path / "model")
    stages = TwoStages(tmp_path / "all", tmp_path / "squad", tmp_path / "squad", tmp_path / "model", 0.0, (), (), 1)
    with pytest.raises(UnifiedError, match="the first stage of fine-tuning has failed"):
        stages.run()
    assert not hostile.exists(), hostile.read_text()


@pytest.mark.parametrize("command", ["prepare", "generate"])
def test_several_processes(hostile, tmp_path, command):
    text, more = tmp_path / "text.txt", []
    text.write_text("\n".join(f"{a} {b}" for a in WORDS[:5] for b in WORDS) + "\n")
    if command == "prepare":
        more = [text, "--output", tmp_path / "made", "--tokenizer", "char", "--workers", 2]
    else:
        model = language_model(tmp_path / "model", writes="left_to_right", token_types=6)
        more = ["--input", text, "--output", tmp_path / "made", "--model", model, "--chunk", 60, "--workers", 2]
        more += ["--max-length", 3, "--prompt", "--beam", 1]
    result = unified(command, *more)
    assert not hostile.exists(), hostile.read_text()
    assert result.returncode == 0 and (tmp_path / "made").exists(), result.stderr[-2000:]


def test_an_empty_entry_of_the_path_does_not_reach_what_is_started(hostile, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}{ROOT}{os.pathsep}")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert processes.run_module("unified.cli", ["--help"]) == 0
    again = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', 'import random']).returncode)"
    with processes.guarded_children():
        assert subprocess.run([sys.executable, "-c", again]).returncode == 0
    assert not hostile.exists()
    assert os.environ["PYTHONPATH"] == f"{os.pathsep}{ROOT}{os.pathsep}" and "PYTHONSAFEPATH" not in os.environ


def test_processes_of_fairseq_are_guarded(monkeypatch):
    """The processes that fairseq-train starts for several cards are `python -c`."""
    from fairseq.distributed import utils

    import fairseq_plugins  # noqa: F401

    seen, cfg = (
        [],
        Namespace(
            distributed_training=Namespace(distributed_init_method=None, distributed_rank=0),
            common=Namespace(tpu=False),
            common_eval=Namespace(path="model.pt"),  # a command that reads a model leaves no files when it ends
        ),
    )
    monkeypatch.setattr(utils, "infer_init_method", lambda settings: None)
    utils.call_main(cfg, lambda cfg: seen.append(os.environ.get("PYTHONSAFEPATH")))
    assert seen == ["1"]


def test_scripts_of_recipes(hostile, tmp_path):
    script = f'source "{ROOT}/recipes/common/machine.sh"; cards'
    environment = {**fairseq.environment(), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    result = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
    assert not hostile.exists(), hostile.read_text()
    assert result.stdout.strip().isdigit(), result.stderr


def test_every_command_that_starts_python_says_so():
    """`-m` or `-c` after the name of a Python, without -P."""
    started = re.compile(r"""(?:sys\.executable|str\(python\))["')]*, *\*?\(?["'](?:-W|-m|-c)["']|\bpython3? -[mc] """)
    files = [path for folder in ("unified", "fairseq_plugins", "recipes", "benchmarks", "tools")
             for kind in ("py", "sh") for path in sorted((ROOT / folder).rglob(f"*.{kind}"))]  # fmt: skip
    assert len(files) > 200
    found = {}
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        found[str(path.relative_to(ROOT))] = [line.strip() for line in lines if started.search(line)]
    advice = {
        "unified/corpus/spacy_pipeline.py": ['"with: python -m spacy download en_core_web_sm"'],
        "unified/evaluation/harness.py": ["``python -m unified.evaluation.harness`` takes the options of ``lm_eval``"],
    }
    assert {path: lines for path, lines in found.items() if lines} == advice
