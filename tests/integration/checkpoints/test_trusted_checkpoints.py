"""Nothing in a checkpoint chooses what is imported or evaluated."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support import fairseq_runs as fairseq
from unified import UnifiedLM
from unified.errors import UnifiedError
from unified.objectives import parse_objectives

OWN = """
from dataclasses import dataclass
from unified.objectives.unilm import TargetCloze
open({mark!r}, "a").write("imported")

@dataclass(frozen=True)
class Own(TargetCloze):
    name = "target_cloze"
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with ``bin``, prepared pairs, and ``model.pt``, a checkpoint that fairseq-train wrote."""
    folder, rng = tmp_path_factory.mktemp("trained"), np.random.default_rng(0)
    fairseq.pairs(folder, lambda row: row, rng, {"train": 20, "valid": 5, "test": 5})
    fairseq.train(folder / "bin", folder / "save", "--batch-size", 2, "--max-update", 1)
    (folder / "save" / "checkpoint_last.pt").rename(folder / "model.pt")
    return folder


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module on the path, ``own_objectives``; the file that it leaves when it is imported."""
    mark = tmp_path / "imported"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "own_objectives.py").write_text(OWN.format(mark=str(mark)))
    monkeypatch.syspath_prepend(tmp_path / "modules")
    yield mark
    sys.modules.pop("own_objectives", None)


def changed(trained: Path, destination: Path, change) -> Path:
    content = torch.load(trained / "model.pt", weights_only=True)
    change(content)
    torch.save(content, destination)
    return destination


def validate(trained: Path, checkpoint: Path, *more) -> None:
    arguments = [trained / "bin", *fairseq.PLUGINS, "--path", checkpoint, "--batch-size", 4, *more]
    fairseq.in_this_process("validate", *arguments)


def name_own_objective(content: dict) -> None:
    content["cfg"]["task"]["objectives"] = "own_objectives:Own"


@pytest.mark.slow
def test_validation_imports_no_objective_of_a_checkpoint(trained, own, tmp_path):
    checkpoint = changed(trained, tmp_path / "hostile.pt", name_own_objective)
    with pytest.raises(SystemExit, match="no checkpoint chooses what is imported"):
        validate(trained, checkpoint)
    assert not own.exists()


def test_the_command_line_names_own_objectives(trained, own, tmp_path):
    checkpoint = changed(trained, tmp_path / "own.pt", name_own_objective)
    validate(trained, checkpoint, "--objectives", "own_objectives:Own")
    assert own.exists()


def name_own_backend(content: dict) -> None:
    content["cfg"]["model"]["attention_backend"] = "own_objectives:Own"


@pytest.mark.slow
def test_no_attention_backend_of_a_checkpoint_is_imported(trained, own, tmp_path):
    checkpoint = changed(trained, tmp_path / "hostile.pt", name_own_backend)
    refused = "the attention backend own_objectives:Own of another library, and no checkpoint chooses what is imported"
    with pytest.raises(SystemExit, match=refused):
        validate(trained, checkpoint)
    with pytest.raises(SystemExit, match=refused):
        fairseq.in_this_process("generate", trained / "bin", *fairseq.PLUGINS, "--path", checkpoint, "--batch-size", 4)
    UnifiedLM.from_pretrained(checkpoint, trained / "bin")
    assert not own.exists()


def test_the_command_line_names_own_backends(trained, tmp_path):
    checkpoint = changed(trained, tmp_path / "own.pt", name_own_backend)
    named = {"attention_backend": "docs.examples.precise_attention:PreciseAttention"}
    validate(trained, checkpoint, "--model-overrides", repr(named))


@pytest.mark.slow
def test_generation_import_and_training_read_no_objectives(trained, own, tmp_path, capsys):
    checkpoint = changed(trained, tmp_path / "hostile.pt", name_own_objective)
    fairseq.in_this_process(
        "generate", trained / "bin", *fairseq.PLUGINS, "--path", checkpoint, "--batch-size", 4, "--max-len-b", 3
    )
    UnifiedLM.from_pretrained(checkpoint, trained / "bin")
    result = fairseq.train(trained / "bin", tmp_path / "save", "--restore-file", checkpoint, "--batch-size", 2,
                           "--max-update", 2)  # fmt: skip
    assert result.returncode == 0 and not own.exists()


EVALUATED = "open({mark!r}, 'a').write('evaluated')"


def evaluate_in_model(content: dict, code: str) -> None:
    content["cfg"]["model"] = {"_name": "fconv_lm", "decoder_layers": code, "tokens_per_sample": 64}


def evaluate_in_task(content: dict, code: str) -> None:
    content["cfg"]["task"] = {"_name": "language_modeling", "data": content["cfg"]["task"]["data"]}
    evaluate_in_model(content, code)


def evaluate_in_criterion(content: dict, code: str) -> None:
    content["cfg"]["criterion"] = {"_name": "ctc", "wer_args": code, "zero_infinity": True}


def evaluate_in_older_settings(content: dict, code: str) -> None:
    """Before 2021 fairseq kept a namespace instead of a configuration."""
    data = content["cfg"]["task"]["data"]
    content["args"] = argparse.Namespace(
        task="unified_lm", arch="fconv_lm", data=data, decoder_layers=code, criterion="unified_lm", optimizer="adam",
        lr_scheduler="fixed", maximize_best_checkpoint_metric=False, best_checkpoint_metric="loss",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [evaluate_in_model, evaluate_in_task, evaluate_in_criterion, evaluate_in_older_settings]
)
def test_nothing_of_fairseq_that_evaluates_is_built(trained, tmp_path, change):
    mark = tmp_path / "evaluated"
    code = EVALUATED.format(mark=str(mark))
    checkpoint = changed(trained, tmp_path / "hostile.pt", lambda content: change(content, code))
    with pytest.raises(SystemExit, match="of fairseq itself, whose settings may be evaluated as Python"):
        validate(trained, checkpoint)
    assert not mark.exists()


def test_generation_builds_no_model_of_fairseq(trained, tmp_path):
    mark = tmp_path / "evaluated"
    code = EVALUATED.format(mark=str(mark))
    checkpoint = changed(trained, tmp_path / "hostile.pt", lambda content: evaluate_in_model(content, code))
    with pytest.raises(SystemExit, match="the model 'fconv_lm' of fairseq itself"):
        fairseq.in_this_process("generate", trained / "bin", *fairseq.PLUGINS, "--path", checkpoint, "--batch-size", 4)
    assert not mark.exists()


@pytest.mark.slow
def test_a_folder_of_modules_in_a_checkpoint_is_not_imported(trained, own, tmp_path):
    def change(content):
        content["cfg"]["common"]["user_dir"] = str(tmp_path / "modules")

    validate(trained, changed(trained, tmp_path / "hostile.pt", change))
    assert not own.exists() and "modules" not in sys.modules


def test_objectives_of_others_can_be_left_out(own):
    with pytest.raises(UnifiedError, match="names a class of another library"):
        parse_objectives("bidirectional:1,own_objectives:Own", own_classes=False)
    assert not own.exists()
    assert parse_objectives("own_objectives:Own").names == ("target_cloze",)
