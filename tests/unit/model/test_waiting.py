"""Nothing in a step waits for a GPU: on the meta device, whose tensors have no values, every look at one raises."""

import numpy as np
import pytest

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


def batch_of(folder, objectives: str) -> Batch:
    rng = np.random.default_rng(0)
    file = write_documents(folder / "train", numbered_documents(random_sizes(rng, 30, 15, 20)))
    documents = DocumentTexts(file, SPECIAL, rng.random(SPECIAL.ordinary_stop) < 0.6)
    dataset = RowDataset(documents, parse_objectives(objectives), 160, seed=1)
    return collate([dataset[row] for row in range(6)], 160, dataset.objective_names, SPECIAL.pad)


def model_of(kind: str, backend: str) -> UnifiedModel:
    changes = {"query stream": {"positions": "relative"}, "neighbors": {"sublayers": "neighbor,self,feed_forward"}}
    config = TransformerConfig(
        SPECIAL.ordinary_stop, layers=2, width=32, heads=2, attention_backend=backend, boundary_offsets=20,
        **changes.get(kind, {}),
    )  # fmt: skip
    return UnifiedModel.for_language(config)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sdpa", "dense"])
@pytest.mark.parametrize("kind", MIXTURES)
def test_a_step_looks_at_no_value(tmp_path, kind, backend):
    model, batch = model_of(kind, backend).train().to("meta"), batch_of(tmp_path, MIXTURES[kind]).to("meta")
    losses = model(batch, smoothing=0.1, pad=SPECIAL.pad)
    sum(part.total / part.count.clamp(min=1) for part in losses.values()).backward()
    assert all(parameter.grad is not None for parameter in model.transformer.layers.parameters())
    with pytest.raises(RuntimeError, match="meta"):
        bool(losses[batch.objectives[0]].total > 0)


@pytest.mark.parametrize("kind", MIXTURES)
def test_block_masks_are_made_without_a_look(tmp_path, kind):
    mask = batch_of(tmp_path, MIXTURES[kind]).mask
    for known in (mask, mask.without_self(), mask.with_memory(70)):
        assert known.to("meta").block_mask(32) is not None
