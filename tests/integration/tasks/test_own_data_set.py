"""A data set of a user's own, one file outside the library, is learnt and answered by name."""

import json

import numpy as np
import pytest

from tests.integration.cli.test_task_commands import finetune, refused, said
from tests.support.task_folders import WORDS, language_model

NAME = "docs.examples.opinions:TASK"


def opinions(folder, count: int) -> None:
    """Opinions are good where w0 stands in them."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for split in ("train", "dev", "test"):
        rows = []
        for _ in range(count):
            words = [str(word) for word in rng.choice(WORDS[1:], 4)]
            good = rng.random() < 0.5
            rows.append(f"{'good' if good else 'bad'}\t{' '.join([*words, *(['w0'] if good else [])])}\n")
        (folder / f"{split}.tsv").write_text("".join(rows))


def test_a_data_set_of_ones_own_is_learnt_and_answered(tmp_path, capsys):
    opinions(tmp_path / "data", 30)
    language_model(tmp_path / "model")
    result = finetune(
        "finetune", NAME, "--data", tmp_path / "data", "--init", tmp_path / "model", "--output", tmp_path / "run",
        "--max-length", 16, "--epochs", 1,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    content = json.loads((tmp_path / "run" / "results.json").read_text())
    assert content["task"] == "opinions" and content["published"]["test"]["a bag of words"] == {"accuracy": 71.5}
    assert set(content["scores"]) == {"valid", "test"}
    [line] = said(capsys, "predict", NAME, '{"text": "w3 w0 w5"}', "--model", tmp_path / "run")
    assert json.loads(line)["label"] in ("good", "bad")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("docs.examples.opinions:LABELS", "LABELS is no Task, WritingTask or head"),
        ("docs.examples.opinion:TASK", "module docs.examples.opinion cannot be imported (No module named"),
        ("opinons", "known are squad1.1"),
    ],
)
def test_what_is_no_task_is_refused(tmp_path, capsys, name, says):
    assert says in refused(capsys, "predict", name, '{"text": "a"}', "--model", language_model(tmp_path / "model"))
