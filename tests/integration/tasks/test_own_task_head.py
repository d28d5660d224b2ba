"""A fine-tuning head of a user's own is named by its import path, and by nothing in a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from docs.examples.focal_classification import FocalClassification
from tests.integration.cli.test_task_commands import refused, said
from tests.support import fairseq_runs as fairseq
from tests.support.task_folders import WORDS, data_folder
from tests.support.understanding_runs import TASK, train
from unified import load
from unified.errors import UnifiedError
from unified.tasks.catalogue import task_named
from unified.tasks.heads import TASK_HEADS, Classification, parse_head, parse_heads, register
from unified.tasks.heads.items import TextItem

NAME = "docs.examples.focal_classification:FocalClassification"


@pytest.fixture(autouse=True)
def _nobody_named_it():
    TASK_HEADS.pop(FocalClassification.name, None)
    yield
    TASK_HEADS.pop(FocalClassification.name, None)


@dataclass(frozen=True)
class SameName(Classification):
    """Has the name of classification."""


def items(count: int, seed: int) -> list[TextItem]:
    """Positive where w0 stands in the text."""
    rng, made = np.random.default_rng(seed), []
    for number in range(count):
        good = rng.random() < 0.5
        words = [*rng.choice(WORDS[1:], 4).tolist(), *(["w0"] if good else [])]
        made.append(TextItem(str(number), " ".join(words), label="good" if good else "bad"))
    return made


def test_it_is_learnt_and_loaded_by_whom_the_user_names(tmp_path, capsys):
    data = data_folder(tmp_path / "data", {"train": items(32, 0), "valid": items(8, 1)})
    train(data, tmp_path / "save", "--head", f"{NAME}(gamma=1.0)", "--max-epoch", 1)
    asked = ('{"text": "w3 w0 w5"}', "--model", str(tmp_path / "save"))
    with pytest.raises(UnifiedError, match="has a head 'focal_classification'; known are .*heads.register first"):
        load(tmp_path / "save")
    assert "has a head 'focal_classification'; known are" in refused(capsys, "predict", "classification", *asked)
    [line] = said(capsys, "predict", NAME, *asked)
    assert json.loads(line)["label"] in ("good", "bad")
    assert load(tmp_path / "save").predictor().task == FocalClassification(("bad", "good"), gamma=1.0)

    TASK_HEADS.pop(FocalClassification.name)
    command = (data, *TASK, "--path", tmp_path / "save" / "checkpoint_last.pt", "--batch-size", 8, "--cpu")
    with pytest.raises(SystemExit, match="names a class of another library, and no checkpoint chooses what is"):
        fairseq.in_this_process("validate", *command)
    assert FocalClassification.name not in TASK_HEADS
    fairseq.in_this_process("validate", *command, "--head", f"{NAME}(gamma=1.0)")


def test_without_gamma_its_loss_is_that_of_classification():
    generator = torch.Generator().manual_seed(0)
    scores, reading = torch.randn(6, 3, generator=generator), {"labels": torch.tensor([0, 1, 2, 0, 1, 2])}
    plain = Classification(("a", "b", "c")).loss(scores, reading)
    focal = FocalClassification(("a", "b", "c"), gamma=0.0).loss(scores, reading)
    torch.testing.assert_close(tuple(focal), tuple(plain))
    assert FocalClassification(("a", "b", "c")).loss(scores, reading).total < plain.total


def test_names_settings_and_weights_go_with_an_import_path():
    first, second = parse_heads(f"{NAME}:2, rare={NAME}(gamma=3.0):0.5")
    assert (first.name, first.head_class.name, first.weight) == ("focal_classification", "focal_classification", 2.0)
    assert (second.name, second.weight, second.for_items(items(9, 0)).gamma) == ("rare", 0.5, 3.0)
    task = task_named(f"{NAME}(gamma=3.0)")
    assert task.name == "focal_classification" and parse_head(task.head).for_items(items(9, 0)).gamma == 3.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no.such.module:Head", "head 'no.such.module:Head': module no.such.module cannot be imported"),
        ("docs.examples.focal_classification:TwoLayerHead", "TwoLayerHead is not a subclass of unified.tasks.heads"),
        (f"{NAME}(gama=1.0)", "no setting 'gama'"),
        (f"{__name__}:SameName", "SameName: another head is called 'classification'; change its name"),
    ],
)
def test_what_is_no_head_is_refused(text, says):
    with pytest.raises(UnifiedError, match=says):
        parse_head(text)


def test_a_text_of_a_checkpoint_imports_no_head():
    with pytest.raises(UnifiedError, match="no checkpoint chooses what is imported"):
        parse_heads(NAME, own_classes=False)
    assert FocalClassification.name not in TASK_HEADS
    register(FocalClassification)
    register(FocalClassification)
