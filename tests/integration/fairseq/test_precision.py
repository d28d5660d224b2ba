"""Half precision through fairseq-train: on the CPU here, on a GPU where there is one."""

import numpy as np
import pytest
import torch

from tests.support import fairseq_runs as fairseq
from unified.data.collate import collate
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.training.row_dataset import RowDataset

GPU = pytest.mark.gpu  # fairseq scales losses there alone


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return fairseq.documents(tmp_path_factory.mktemp("documents"), np.random.default_rng(0))


def last_losses(data, save, *precision) -> dict[str, float]:
    """Losses of the last of 30 updates; with a GPU the run is there."""
    settings = [word for word in fairseq.TINY if not (word == "--cpu" and torch.cuda.is_available())]
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
def test_half_precision_learns_as_single_precision_does(data, single, tmp_path, precision, record_property):
    """The mean losses of 30 updates differ by less than 2 %; each save folder holds a checkpoint."""
    half = last_losses(data, tmp_path, *precision)
    record_property("losses", f"{half}, in single precision {single}")
    assert half.keys() == single.keys()
    for name, loss in single.items():
        assert half[name] == pytest.approx(loss, rel=0.02), name
    assert (tmp_path / "checkpoint_last.pt").exists()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_autocast_changes_losses_and_gradients_by_rounding_alone(data, device):
    """Losses stay float32; the gradients of bfloat16 autocast point where those of float32 do."""
    vocabulary, mixture = Vocabulary.load(data / "dict.txt"), parse_objectives("bidirectional,seq2seq,left_to_right")
    rows = RowDataset(DocumentTexts(TokenFile(data / "train"), vocabulary.special), mixture, 64, seed=1)
    rows.set_epoch(1)
    batch = collate([rows[i] for i in range(4)], 64, mixture.names, vocabulary.special.pad).to(device)
    torch.manual_seed(0)
    sizes = {"layers": 2, "width": 64, "heads": 2, "max_positions": 64, "dropout": 0.0, "attention_dropout": 0.0}
    model = UnifiedModel.for_language(TransformerConfig(vocabulary_size=len(vocabulary), **sizes)).to(device)

    def loss_and_gradient(dtype):
        model.zero_grad()
        with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
            losses = model(batch)
            loss = sum(part.total / part.count.clamp(min=1) for part in losses.values())
        loss.backward()
        assert all(part.total.dtype == torch.float32 for part in losses.values())
        return loss.item(), torch.cat([parameter.grad.flatten() for parameter in model.parameters()])

    single, gradient = loss_and_gradient(None)
    half, half_gradient = loss_and_gradient(torch.bfloat16)
    assert half == pytest.approx(single, rel=1e-3)
    assert torch.cosine_similarity(gradient, half_gradient, dim=0) > 0.999
