"""`--device` of commands that load a model: where it is loaded, and a card that the machine does not have."""

from __future__ import annotations

import pytest
import torch

from tests.support.corpora import jsonl
from tests.support.task_folders import language_model
from unified.cli import main
from unified.errors import UnifiedError

ROLES = "--answer-model m --question-model m --reader-model m"
#: Command lines that load a model, and the function by which each loads it.
LINES = {
    "predict classification rows.jsonl --model m": "unified.tasks.loading.load",
    "evaluate minimal-pairs pairs.jsonl --model m": "unified.inference.language_model.UnifiedLM.from_pretrained",
    "evaluate perplexity rows.jsonl --model m": "unified.inference.language_model.UnifiedLM.from_pretrained",
    "evaluate similarity rows.jsonl --model m": "unified.tasks.loading.load",
    f"augment rows.jsonl --output out {ROLES}": "unified.tasks.loading.load",
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    language_model(tmp_path / "m")
    jsonl(tmp_path / "rows.jsonl", [{"text": "w1", "second": "w2", "label": n} for n in range(3)])
    jsonl(tmp_path / "pairs.jsonl", [{"sentence_good": "w1", "sentence_bad": "w2"}])


@pytest.mark.parametrize("line", [*LINES, "generate --input rows.jsonl --output out --model m"])
def test_a_card_that_the_machine_does_not_have_is_refused(line, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert main([*line.split(), "--device", "cuda"]) == 2
    assert capsys.readouterr().err == (
        f"unified {line.split()[0]}: error: --device cuda: PyTorch finds no GPU on this machine; cpu needs none\n"
    )


@pytest.mark.parametrize("line", LINES)
def test_a_model_is_loaded_where_the_option_says(line, monkeypatch, capsys):
    asked = []

    def load(*_, device, **__):
        asked.append(torch.device(device).type)
        raise UnifiedError("enough")

    monkeypatch.setattr(LINES[line], load)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    for device in ("cuda", "cpu"):
        assert main([*line.split(), "--device", device]) == 2
        assert capsys.readouterr().err.endswith("error: enough\n")
    assert asked == ["cuda", "cpu"]
