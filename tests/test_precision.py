"""Half precision through fairseq-train: on the CPU here, on a GPU where there is one."""

import numpy as np
import pytest
import torch

from tests import fairseq_runs as fairseq

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="fairseq scales losses on a GPU only")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return fairseq.documents(tmp_path_factory.mktemp("documents"), np.random.default_rng(0))


def last_losses(data, save, *precision) -> dict[str, float]:
    """Losses of the last of 30 updates; with a GPU the run is there."""
    settings = [word for word in fairseq.TINY if word != "--cpu" or not torch.cuda.is_available()]
    result = fairseq.run(
        "train", data, *fairseq.PLUGINS, *settings, "--save-dir", save, "--batch-size", 8, "--max-update", 30,
        "--log-interval", 30, "--warmup-updates", 3, "--lr-scheduler", "inverse_sqrt", *precision,
    )  # fmt: skip
    (logged,) = fairseq.logged(result.stdout + result.stderr, "train_inner")
    return {key: float(value) for key, value in logged.items() if key.endswith("_loss")}


@pytest.fixture(scope="module")
def single(data, tmp_path_factory):
    return last_losses(data, tmp_path_factory.mktemp("single"))


@pytest.mark.parametrize(
    "precision",
    [
        ("--bf16",),
        ("--memory-efficient-bf16",),
        pytest.param(("--fp16", "--fp16-init-scale", 8), marks=GPU),
        pytest.param(("--memory-efficient-fp16", "--fp16-init-scale", 8), marks=GPU),
        pytest.param(("--amp",), marks=GPU),
    ],
    ids=lambda words: words[0],
)
def test_half_precision_learns_as_single_precision_does(data, single, tmp_path, precision):
    """The mean losses of 30 updates differ by less than 2 %; each save folder holds a checkpoint."""
    half = last_losses(data, tmp_path, *precision)
    assert half.keys() == single.keys()
    for name, loss in single.items():
        assert half[name] == pytest.approx(loss, rel=0.02), name
    assert (tmp_path / "checkpoint_last.pt").exists()
