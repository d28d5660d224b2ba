"""A model with today's layers is fine-tuned by the command, and stays what it was."""

from dataclasses import asdict

import numpy as np

from tests.integration.cli.test_task_commands import finetune, items
from tests.support.task_folders import language_model
from unified import load
from unified.model import PRESETS
from unified.tasks.heads.items import write_items


def test_settings_of_the_layers_are_kept_by_fine_tuning(tmp_path):
    """Settings that are true or false too, whose options have no value."""
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    for split, count in (("train", 40), ("valid", 10)):
        write_items(tmp_path / "data" / f"{split}.jsonl", items(count, rng))
    modern = asdict(PRESETS["modern_tiny"]())
    own = {"layers": 2, "width": 32, "heads": 2, "feed_forward": 24, "token_types": 2}
    settings = {name: value for name, value in modern.items() if name != "vocabulary_size"} | own
    assert {name for name, value in settings.items() if value is True} >= {"gated", "linear_without_bias"}
    language_model(tmp_path / "model", **settings)
    result = finetune(
        "finetune", "classification", "--data", tmp_path / "data", "--init", tmp_path / "model", "--output",
        tmp_path / "run", "--epochs", 1, "--max-length", 16,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    kept = asdict(load(tmp_path / "run").model.config)
    assert {name: kept[name] for name in settings} == settings
