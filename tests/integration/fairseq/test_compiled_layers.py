"""Training by compiled layers: the numbers of plain ones, compiled once; through fairseq-train too."""

import shutil

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters

from tests.support import fairseq_runs as fairseq
from tests.support.tiny_models import model
from unified import masks
from unified.data.collate import collate
from unified.data.example import Example
from unified.data.targets import TOKEN, ExampleTargets
from unified.errors import UnifiedError
from unified.kernels.cpu import accelerate
from unified.kernels.cpu.linear import Linear

WIDTH = 24
ROWS = [(3, 20), (5, 17), (10, 8, 4), (23,), (12, 11), (7, 7, 7)]


def batch_of(lengths: tuple[int, ...], seed: int):
    """Two packed rows of one length, in which another number of tokens is predicted each time."""
    rng = np.random.default_rng(seed)

    def example(length: int) -> Example:
        mask = (masks.left_to_right if length % 2 else masks.bidirectional)(length)
        tokens = rng.integers(4, 16, length)
        predicted = np.sort(rng.choice(length, rng.integers(1, length + 1), replace=False))
        return Example(
            objective="a",
            tokens=tokens,
            positions=np.arange(length),
            token_types=np.zeros(length, dtype=np.int64),
            mask=mask,
            targets={TOKEN: ExampleTargets.at(predicted, tokens[predicted])},
        )

    return collate([[example(length) for length in lengths] for _ in range(2)], WIDTH, ("a",), pad=1)


def gradients(core, batch) -> list[torch.Tensor]:
    loss = core(batch)["a"].total
    return [loss, *torch.autograd.grad(loss, list(core.transformer.parameters()), materialize_grads=True)]


def accelerated(**settings):
    """Linear maps by oneDNN on every processor: they must not enter what is compiled."""
    core = accelerate(model(**settings))
    for module in core.modules():
        if type(module) is torch.nn.Linear:
            module.__class__ = Linear
    return core


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


MODERN = {
    "positions": "rotary", "gated": True, "linear_without_bias": True, "norm": "pre", "norm_type": "rms",
    "embedding_norm": True, "attention_windows": "0,3", "token_types": 0,
}  # fmt: skip


@pytest.mark.parametrize("shape", [{}, MODERN], ids=["UniLM", "rotary positions and windows"])
def test_compiled_layers_give_the_same_losses_and_gradients_and_are_compiled_once(shape):
    settings = {"layers": 3, "attention_backend": "sdpa", "dropout": 0.0, "attention_dropout": 0.0, **shape}
    plain, compiled = (accelerated(**settings).train() for _ in range(2))
    compiled.transformer.compile_layers(backend="aot_eager")
    graphs = []
    for step, lengths in enumerate(ROWS):
        batch = batch_of(lengths, step)
        torch.testing.assert_close(gradients(compiled, batch), gradients(plain, batch), atol=2e-4, rtol=1e-4)
        graphs.append(counters["stats"]["unique_graphs"])
    assert not counters["graph_break"]
    assert graphs == [graphs[0]] * len(ROWS) and graphs[0] >= 2, graphs
    assert compiled.state_dict().keys() == plain.state_dict().keys()


def test_dropout_is_drawn_anew_in_compiled_layers():
    core = accelerated(attention_backend="sdpa", dropout=0.5, attention_dropout=0.0).train()
    core.transformer.compile_layers(backend="aot_eager")
    batch = batch_of((11, 12), 0)
    first, second = (float(core(batch)["a"].total.detach()) for _ in range(2))
    assert first != second and not counters["graph_break"]


def test_evaluation_and_generation_are_not_compiled():
    core = accelerated(attention_backend="sdpa").eval()
    expected = core(batch_of((11, 12), 0))["a"].total
    core.transformer.compile_layers(backend="aot_eager")
    assert torch.equal(core(batch_of((11, 12), 0))["a"].total, expected)
    assert not counters["stats"]


def test_attention_is_chosen_for_compiled_layers_in_training_alone():
    """Elsewhere shapes differ, so that nothing may be compiled for one."""
    core, asked = accelerated(attention_backend="sdpa", dropout=0.0).train(), []
    chosen = core.transformer.backend.forward
    core.transformer.backend.forward = lambda *given: asked.append(given[-1]) or chosen(*given)
    core(batch_of((11, 12), 0))
    core.transformer.compile_layers(backend="aot_eager")
    core(batch_of((11, 12), 0))
    core.eval()(batch_of((11, 12), 0))
    assert asked == [False, True, False]


def test_attention_in_tiles_is_refused():
    core = accelerated(attention_dropout=0.1).train()
    core.transformer.compile_layers(backend="aot_eager")
    with pytest.raises(UnifiedError, match="'blocked'; choose 'sdpa' or 'dense'"):
        core(batch_of((11, 12), 0))
    core.eval()(batch_of((11, 12), 0))


@pytest.mark.parametrize("changes", [{"positions": "relative"}, {"sublayers": "relative_value,feed_forward"}], ids=str)
def test_attention_that_reads_distances_is_refused(changes):
    with pytest.raises(UnifiedError, match="cannot be compiled"):
        model(**changes).transformer.compile_layers()


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler on a CPU")
def test_fairseq_trains_by_them(tmp_path):
    data = fairseq.documents(tmp_path / "data", np.random.default_rng(0))
    words = ("--batch-size", 2, "--max-update", 4, "--log-interval", 1, "--layers", 1, "--attention-backend", "sdpa")
    losses = []
    for name, more in (("plain", ()), ("compiled", ("--compile-layers",))):
        result = fairseq.train(data, tmp_path / name, *words, *more)
        rows = fairseq.logged(result.stdout + result.stderr, "train_inner")
        losses.append([float(row["loss"]) for row in rows])
        assert "modules of UnifiedModel for a CPU: swapped: " in result.stdout + result.stderr
        assert (tmp_path / name / "checkpoint_last.pt").exists()
    assert len(losses[0]) == 4
    assert losses[1] == pytest.approx(losses[0], abs=2e-3)
    refused = fairseq.train(data, tmp_path / "refused", *words[:-2], "--attention-dropout", 0.1, "--compile-layers",
                            check=False)  # fmt: skip
    fairseq.assert_refused(refused, "choose 'sdpa' or 'dense'")
