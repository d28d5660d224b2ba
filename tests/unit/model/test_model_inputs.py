"""What a Transformer is given: each input is checked, texts may come in parts, and one mask may serve all rows."""

from __future__ import annotations

import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from unified import masks
from unified.errors import UnifiedError
from unified.model import Transformer, TransformerConfig, UnifiedModel
from unified.model.relative import Memory

_SHAPE = {"vocabulary_size": 50, "layers": 2, "width": 16, "heads": 2, "max_positions": 32}


def model(**changes) -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerConfig(**{**_SHAPE, **changes})).eval()


def inputs(**changes) -> dict:
    """Two rows of four source and three target tokens."""
    own = {
        "tokens": torch.arange(14).view(2, 7),
        "positions": torch.arange(7).expand(2, 7),
        "token_types": torch.zeros(2, 7, dtype=torch.long),
        "mask": masks.batch([masks.seq2seq(4, 3)] * 2),
    }
    return {**own, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": [[1, 2]]}, "tokens must be an int64 tensor"),
        ({"positions": torch.arange(6).expand(2, 6)}, "positions must be .* of the 2 rows of at least 7 tokens"),
        ({"token_types": torch.zeros(2, 3, dtype=torch.long)}, "token_types must have the shape of positions"),
        ({"mask": torch.ones(2, 7, 7).bool()}, "mask must be an AttentionMask"),
        ({"output_indices": torch.tensor([[3]])}, "output_indices must be an int64 tensor"),
        ({"entities": torch.ones(2, 6).bool()}, "entities must have the shape of tokens"),
        # Kernels would not notice these: causal and full masks hold no matrix.
        ({"mask": masks.batch([masks.left_to_right(5)] * 2)}, "for each of 7 tokens, got 5 queries and 5 keys"),
        ({"mask": masks.bidirectional(5)}, "a query for each of 7 positions .* got 5 queries and 5 keys"),
        # What no shape shows: ids beyond the tables of the model.
        ({"tokens": torch.full((2, 7), 50)}, "tokens must be from 0 to 49, got 50 to 50"),
        ({"positions": torch.arange(30, 37).expand(2, 7)}, "positions must be from 0 to 31, got 30 to 36"),
        ({"token_types": torch.full((2, 7), 6)}, "token_types must be from 0 to 5, got 6 to 6"),
        ({"output_indices": torch.tensor([3, 14])}, "output_indices must be from 0 to 13, .* got 3 to 14"),
    ],
)
def test_a_transformer_checks_each_of_its_inputs(changes, message):
    with pytest.raises(UnifiedError, match=message):
        model()(**inputs(**changes))


def test_a_memory_has_the_rows_of_the_text():
    reader, memory = model(positions="relative", token_head="plain"), Memory(length=4, taken=7)
    reader(**inputs(), memory=memory)
    one = {name: value[:1] for name, value in inputs().items() if name != "mask"}
    with pytest.raises(UnifiedError, match="memory must have the 1 row of tokens, got 2"):
        reader(**one, mask=masks.batch([masks.seq2seq(4, 3)]), memory=memory)


@torch.no_grad()
@pytest.mark.parametrize("positions", ["relative", "rotary"])
@pytest.mark.parametrize("size", [1, 3])
def test_a_text_read_in_parts_with_a_memory_has_the_states_of_the_whole(positions, size):
    reader, memory, whole = model(positions=positions, token_head="plain"), Memory(length=7, taken=size), inputs()
    expected = reader(**{**whole, "mask": masks.batch([masks.left_to_right(7)] * 2)})
    for start in range(0, 6, size):
        part = {name: value[:, start : start + size] for name, value in whole.items() if name != "mask"}
        found = reader(**part, mask=masks.batch([masks.left_to_right(size)] * 2), memory=memory)
        torch.testing.assert_close(found, expected[:, start : start + size], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("sublayers", ["self,feed_forward", "self,neighbor,feed_forward", "relative_key,feed_forward"])
def test_a_mask_of_one_row_serves_all(sublayers):
    # In training attention goes by tiles on a CPU, which want a mask for each row.
    reader = model(sublayers=sublayers, attention_dropout=0.1, dropout=0.0)
    wanted, one = inputs(), inputs(mask=masks.seq2seq(4, 3))
    torch.testing.assert_close(reader(**one), reader(**wanted))
    reader.train()
    assert reader(**one).shape == (2, 7, 16)
    with pytest.raises(UnifiedError, match="'blocked' cannot serve this: .* takes a mask for each row"):
        model(sublayers=sublayers, attention_backend="blocked")(**one)


@torch.no_grad()
@pytest.mark.parametrize("positions", ["relative", "rotary"])
def test_a_packed_mask_of_one_row_serves_all_behind_a_memory_too(positions):
    reader, row = model(positions=positions, token_head="plain"), masks.pack([masks.seq2seq(2, 2), masks.causal(2)], 7)
    passes = [[reader(**inputs(mask=mask), memory=memory) for _ in range(3)]
              for mask, memory in ((row, Memory(5, 3)), (masks.batch([row] * 2), Memory(5, 3)))]  # fmt: skip
    for one, each in zip(*passes, strict=True):
        torch.testing.assert_close(one, each)
    assert not torch.allclose(passes[0][0], passes[0][1])


@pytest.mark.parametrize("kind", [Transformer, UnifiedModel.for_language])
def test_a_model_is_made_of_a_configuration(kind):
    with pytest.raises(UnifiedError, match="config must be a TransformerConfig, got dict"):
        kind({"layers": 2})
