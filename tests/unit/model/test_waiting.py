"""A step of training on a card that only pretends: nothing waits for a value, and nothing is made on the CPU."""

import numpy as np
import pytest
import torch

from tests.support.pretend_card import pretend_card
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
        SPECIAL.ordinary_stop, layers=2, width=32, heads=2, attention_backend=backend, boundary_offsets=20,
        **BODIES[body][0],
    )  # fmt: skip
    return UnifiedModel.for_language(config)


@pytest.mark.slow
@pytest.mark.parametrize(("body", "mixture", "backend"), CASES)
def test_a_step_looks_at_no_value_and_stays_on_its_device(tmp_path, body, mixture, backend):
    batch = batch_of(tmp_path, MIXTURES[mixture])
    with pretend_card() as device:
        with device:
            model = model_of(body, backend).train()
        batch = batch.to(device)
        losses = model(batch, smoothing=0.1, pad=SPECIAL.pad)
        loss = sum(part.total / part.count.clamp(min=1) for part in losses.values())
        loss.backward()
        assert loss.device.type == device.type
        assert all(parameter.grad is not None for parameter in model.transformer.layers.parameters())
        optimizer = torch.optim.AdamW(model.parameters())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def test_a_look_at_a_value_and_two_devices_are_found():
    with pretend_card() as device:
        there = torch.ones(3, device=device)
        with pytest.raises(RuntimeError, match="aten._local_scalar_dense"):
            bool(there.sum() > 0)
        with pytest.raises(RuntimeError, match="two devices, lazy and cpu"):
            there + torch.ones(3)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_block_masks_are_made_without_a_look(tmp_path, mixture):
    mask = batch_of(tmp_path, MIXTURES[mixture]).mask
    with pretend_card() as device:
        for known in (mask, mask.without_self(), mask.with_memory(70)):
            assert known.to(device).block_mask(32).kv_indices.device.type == device.type
