"""What a stream's memory alone tells is learnt."""

import math

import numpy as np
import pytest
import torch

from tests.support.token_files import SPECIAL, write_documents
from unified.data.collate import collate
from unified.model import UnifiedModel
from unified.model.presets import unified_lm_tiny
from unified.model.relative import Memory
from unified.objectives.xlnet import XLNet
from unified.training.stream_dataset import RunningText, StreamDataset


def _bits_at_the_end(batches, memory):
    """The mean loss of the last 40 updates of a tiny XLNet."""
    torch.manual_seed(0)
    shape = {"layers": 1, "width": 64, "heads": 2, "token_types": 3, "initializer_range": 0.05}
    model = UnifiedModel.for_language(
        unified_lm_tiny(vocabulary_size=SPECIAL.ordinary_start + 16, positions="relative", dropout=0.0, **shape)
    ).eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    bits = []
    for batch in batches:
        loss = model(batch, memory=memory)["xlnet"]
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        optimizer.step()
        bits.append(float(loss.nll / loss.count) / math.log(2))
    return np.mean(bits[-40:])


@pytest.mark.slow
def test_a_model_learns_what_only_its_memory_tells(tmp_path):
    """Text that repeats every 20 tokens, of 16 kinds, in both directions: half of a row's source is in the row before.

    A window of 32 shows its second half's source at most; of the first half nothing is known without a memory.
    """
    rng = np.random.default_rng(0)
    repeated = rng.integers(SPECIAL.ordinary_start, SPECIAL.ordinary_start + 16, (150, 20))
    text = RunningText(write_documents(tmp_path / "text", [[np.tile(part, 12)] for part in repeated]), SPECIAL)
    streams = StreamDataset(text, XLNet(), None, 32, 1, streams=16)
    assert streams.steps >= 160
    steps = np.arange(160 * streams.streams).reshape(160, streams.streams)
    batches = [
        collate([[one] for one in streams.examples(rows)[0].split()], 32, ("xlnet",), SPECIAL.pad) for rows in steps
    ]
    assert _bits_at_the_end(batches, None) > 3.7
    assert _bits_at_the_end(batches, Memory(32, streams.advance)) < 2.3
