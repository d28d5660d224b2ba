"""A step of training on a card that only pretends: nothing waits for a value, and nothing is made on the CPU."""

import copy

import numpy as np
import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.token_files import SPECIAL, numbered_documents, random_sizes, write_documents
from unified.data.collate import collate
from unified.data.example import Batch
from unified.model import TransformerConfig, UnifiedModel
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.training.row_dataset import RowDataset

MIXTURES = {
    "mixed": "bidirectional,left_to_right,right_to_left,seq2seq,spanbert,anna(scheme='token'),bert_style",
    "causal": "prefix_lm",
    "query stream": "xlnet(next_sentence=True)",
    "neighbors": "anna(scheme='token'),left_to_right",
}
#: Name of a body -> what it changes, and the mixtures that it learns.
BODIES = {
    "as published": ({}, ("mixed", "causal", "neighbors")),
    "neighbors": ({"sublayers": "neighbor,self,feed_forward"}, ("neighbors",)),
    "relative": ({"positions": "relative", "clamp_len": 40}, ("query stream", "mixed")),
    "one way": ({"positions": "relative", "attn_type": "uni"}, ("query stream",)),
    "rotary": ({"positions": "rotary", "attention_windows": "0,9", "gated": True}, ("mixed", "query stream")),
    "distances of keys and values": ({"sublayers": "relative_key,relative_value,feed_forward"}, ("mixed",)),
}
CASES = [
    (body, mixture, backend)
    for body, (changes, mixtures) in BODIES.items()
    for mixture in mixtures
    for backend in (["dense"] if "relative_value" in changes.get("sublayers", "") else ["sdpa", "dense"])
]


def batch_of(folder, objectives: str) -> Batch:
    rng = np.random.default_rng(0)
    file = write_documents(folder / "train", numbered_documents(random_sizes(rng, 30, 15, 20)))
    documents = DocumentTexts(file, SPECIAL, rng.random(SPECIAL.ordinary_stop) < 0.6)
    dataset = RowDataset(documents, parse_objectives(objectives), 160, seed=1)
    return collate([dataset[row] for row in range(6)], 160, dataset.objective_names, SPECIAL.pad)


def model_of(body: str, backend: str) -> UnifiedModel:
    config = TransformerConfig(
        SPECIAL.ordinary_stop + 10, layers=2, width=32, heads=2, attention_backend=backend, boundary_offsets=20,
        dropout=0.0, attention_dropout=0.0, **BODIES[body][0],
    )  # fmt: skip
    return UnifiedModel.for_language(config)


def trained(model: UnifiedModel, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of a step, and a sum over the weights after it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = model(batch, smoothing=0.1, pad=SPECIAL.pad)
    loss = sum(part.total / part.count.clamp(min=1) for part in losses.values())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach(), sum(parameter.detach().double().square().sum() for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize(("body", "mixture", "backend"), CASES)
def test_a_step_waits_for_no_value_and_is_that_of_a_cpu(tmp_path, body, mixture, backend):
    torch.manual_seed(0)
    model, batch = model_of(body, backend).train(), batch_of(tmp_path, MIXTURES[mixture])
    there = copy.deepcopy(model)
    expected = trained(model, batch)
    with PretendCard() as card:
        found = trained(there.to(DEVICE), batch.to(DEVICE))
        assert not card.looks
        assert all(one.device.type == DEVICE.type for one in found)
        torch.testing.assert_close([one.cpu() for one in found], list(expected), rtol=1e-6, atol=1e-6)


def test_a_look_at_a_value_and_two_devices_are_found():
    with PretendCard() as card:
        there = torch.arange(3, device=DEVICE)
        assert (there + torch.tensor(2)).sum() == 9, "a single number may come from the CPU"
        for look in (
            lambda: there.tolist(),
            lambda: there[there > 1],
            lambda: there.cpu(),
            lambda: bool(there[0] == 1),
        ):
            card.looks.clear()
            look()
            assert card.looks.total() == 1
        card.looks.clear()
        there.repeat_interleave(there, output_size=3)
        there[there > 1] = 5
        assert there.sum() == 6 and card.looks.total() == 1, "the sum's"
        with pytest.raises(RuntimeError, match="aten.add.Tensor: tensors of two devices, lazy and cpu"):
            there + torch.arange(3)
        with pytest.raises(RuntimeError, match="numpy"):
            there.numpy()


@pytest.mark.parametrize("mixture", MIXTURES)
def test_block_masks_are_made_without_a_look(tmp_path, mixture):
    mask = batch_of(tmp_path, MIXTURES[mixture]).mask
    with PretendCard() as card:
        for known in (mask, mask.without_self(), mask.with_memory(70)):
            assert known.to(DEVICE).block_mask(32).kv_indices.device.type == DEVICE.type
        assert not card.looks
