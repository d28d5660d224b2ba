"""`unified export`: the model, the format and the type of weights that it asks for, and what it says of the outcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.support.commands import exit_status
from tests.support.task_folders import language_model
from unified.checkpoints.conversion import Conversion
from unified.conversions.export import Source


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    language_model(Path("m"))


@pytest.mark.parametrize(
    ("options", "dtype", "model_type"),
    [
        ([], torch.float32, "bert"),
        (["--dtype", "float32", "--format", "bert"], torch.float32, "bert"),
        (["--dtype", "float16"], torch.float16, "bert"),
        (["--dtype", "bfloat16", "--format", "unified"], torch.bfloat16, "unified"),
    ],
)
def test_the_folder_has_the_format_and_the_type_of_weights_that_are_asked_for(options, dtype, model_type, capsys):
    assert exit_status("export", "m", "out", *options) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "wrote out"
    settings = json.loads(Path("out/config.json").read_text(encoding="utf-8"))
    assert (settings["model_type"], f"torch.{settings['dtype']}") == (model_type, str(dtype))
    assert {value.dtype for value in load_file("out/model.safetensors").values()} == {dtype}


@pytest.fixture
def exported(monkeypatch):
    """Lets an export end as a test says; returns what it was asked for."""
    asked = []

    def so(**told: tuple[str, ...]) -> list:
        def export(*arguments: object) -> Conversion:
            asked.append(arguments)
            return Conversion(**told)

        monkeypatch.setattr("unified.conversions.formats.export", export)
        return asked

    return so


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        ({}, []),
        ({"left_out": ("a", "b")}, ["left out, no place in out: a, b"]),
        ({"remarks": ("one", "two")}, ["out: one", "out: two"]),
        ({"left_out": ("a",), "remarks": ("one",)}, ["left out, no place in out: a", "out: one"]),
    ],
)
def test_what_became_of_a_model_is_said_to_people_and_to_programs(exported, capsys, told, lines):
    asked = exported(**told)
    assert exit_status("export", "m", "out", "--format", "xlnet", "--dtype", "bfloat16") == 0
    assert capsys.readouterr().out.splitlines() == [*lines, "wrote out"]
    ((source, *others),) = asked
    assert others == [Path("out"), "xlnet"]
    assert isinstance(source, Source) and source.dtype == torch.bfloat16
    assert source.name == str(Path("m/checkpoint_last.pt"))
    assert exit_status("export", "m", "out", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"output": "out", "left_out": [], "remarks": []} | {
        name: [*value] for name, value in told.items()
    }
    assert asked[1][2] is None and asked[1][0].dtype == torch.float32
