"""A device that the machine lacks is refused in one line, before anything is read or written."""

from __future__ import annotations

import pytest
import torch

from unified import UnifiedLM
from unified.cli import main
from unified.errors import UnifiedError
from unified.runtime.devices import usable_device


@pytest.fixture
def gpus(monkeypatch):
    """Says how many GPUs the machine has."""
    return lambda count: monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_devices_that_are_there_are_taken(gpus):
    gpus(2)
    assert usable_device("cpu") == torch.device("cpu")
    assert usable_device(torch.device("cpu")) == torch.device("cpu")
    assert usable_device("cuda") == torch.device("cuda")
    assert usable_device("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("device", "count", "message"),
    [
        ("cuda", 0, "device cuda: PyTorch finds no GPU on this machine; cpu needs none"),
        ("cuda:2", 2, "device cuda:2: this machine's GPUs are cuda:0 to cuda:1"),
        ("gpu", 2, "device gpu: PyTorch cannot compute there; use cpu, cuda or cuda:NUMBER"),
        ("meta", 0, "device meta: PyTorch cannot compute there"),
        (None, 0, "device None: PyTorch cannot compute there"),
    ],
)
def test_others_are_refused(gpus, device, count, message):
    gpus(count)
    with pytest.raises(UnifiedError) as caught:
        usable_device(device)
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)
    # A model is not even looked for.
    with pytest.raises(UnifiedError, match=message):
        UnifiedLM.from_pretrained("no such model", device=device)
    with pytest.raises(UnifiedError, match=message):
        UnifiedLM.ensemble(["no such model", "nor this"], device=device)


@pytest.mark.parametrize(
    "command",
    [
        "predict squad2.0 items.jsonl --model model --output out.jsonl",
        "generate data --model model --output out.txt",
        "augment corpus.txt --output out --answer-model a --question-model b --reader-model c",
    ],
)
def test_commands_name_the_option(gpus, tmp_path, monkeypatch, capsys, command):
    gpus(0)
    monkeypatch.chdir(tmp_path)
    name = command.split()[0]
    assert main([*command.split(), "--device", "cuda"]) == 2
    assert capsys.readouterr().err == (
        f"unified {name}: error: --device cuda: PyTorch finds no GPU on this machine; cpu needs none\n"
    )
    assert not list(tmp_path.iterdir())
