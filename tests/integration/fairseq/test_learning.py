"""A copy and a reverse task are learnt through fairseq-train and fairseq-generate."""

import numpy as np
import pytest

from tests.support.fairseq_runs import PLUGINS, exact_share, pairs, run, train


@pytest.mark.parametrize(("name", "objective"), [("copy", "target_next"), ("reverse", "target_cloze")])
def test_learns_and_generates(tmp_path, name, objective):
    rewrite = (lambda row: row) if name == "copy" else (lambda row: row[::-1])
    data = pairs(tmp_path, rewrite, np.random.default_rng(3), {"train": 6000, "valid": 50, "test": 200})
    train(
        data, tmp_path / "model", "--objectives", objective, "--batch-size", 16, "--max-update", 190, "--lr", 3e-3,
        "--lr-scheduler", "polynomial_decay", "--warmup-updates", 50, "--total-num-update", 190, "--clip-norm", 1,
        "--initializer-range", 0.125, "--disable-validation",
    )  # fmt: skip
    checkpoint = tmp_path / "model" / "checkpoint_last.pt"
    output = run("generate", data, *PLUGINS, "--path", checkpoint, "--beam", 4, "--batch-size", 100, "--cpu").stdout
    assert exact_share(output) >= 0.95
