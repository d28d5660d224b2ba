"""fairseq-train with an objective that leaks."""

import numpy as np

from tests.support import fairseq_runs as fairseq
from tests.unit.objectives import test_objective_check as wrong


def test_a_leak_is_refused_before_any_training(tmp_path):
    data = fairseq.documents(tmp_path / "data", np.random.default_rng(0))
    objectives = f"mine={wrong.__name__}:Wrong(fault='passed on')"
    options = ("--batch-size", 4, "--max-update", 1, "--objectives", objectives)
    result = fairseq.train(data, tmp_path / "model", *options, check=False)
    fairseq.assert_refused(result, "objective mine leaks: the ")
    assert "| train_inner |" not in result.stdout + result.stderr
