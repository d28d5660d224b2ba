"""What does not fit a model, an attention or a mask is refused in one line; some kernels would compute all the same."""

from __future__ import annotations

import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from unified import masks
from unified.attention import attend, prepare
from unified.errors import UnifiedError
from unified.model import Transformer, TransformerConfig, UnifiedModel
from unified.model.relative import Memory

_SHAPE = {"vocabulary_size": 50, "layers": 2, "width": 16, "heads": 2, "max_positions": 32}
CPU = torch.device("cpu")


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
        ({"tokens": torch.arange(7)}, r"tokens must be an int64 tensor \(rows, length\), got int64 \(7,\)"),
        ({"tokens": torch.zeros(2, 7)}, r"tokens must be an int64 tensor .*, got float32 \(2, 7\)"),
        ({"tokens": [[1, 2]]}, "tokens must be an int64 tensor .*, got list"),
        ({"positions": torch.arange(6).expand(2, 6)}, r"of the 2 rows of at least 7 tokens, got \(2, 6\)"),
        ({"positions": torch.arange(7).expand(1, 7)}, r"of the 2 rows of at least 7 tokens, got \(1, 7\)"),
        ({"token_types": torch.zeros(2, 3, dtype=torch.long)}, r"the shape of positions, \(2, 7\), got \(2, 3\)"),
        # Causal and full masks hold no matrix, so that kernels would not notice.
        ({"mask": masks.batch([masks.left_to_right(5)] * 2)}, "for each of 7 tokens, got 5 queries and 5 keys"),
        ({"mask": masks.bidirectional(5)}, "a query for each of 7 positions .* got 5 queries and 5 keys"),
        ({"mask": masks.batch([masks.left_to_right(7)] * 3)}, "mask must have the 2 rows of tokens, got 3"),
        ({"mask": torch.ones(2, 7, 7).bool()}, r"an AttentionMask of unified.masks, got bool \(2, 7, 7\); from_dense"),
        ({"mask": None}, "an AttentionMask of unified.masks, got NoneType"),
        ({"tokens": torch.full((2, 7), 50)}, "tokens must be from 0 to 49, got 50 to 50"),
        ({"positions": torch.arange(30, 37).expand(2, 7)}, "positions must be from 0 to 31, got 30 to 36"),
        ({"token_types": torch.full((2, 7), 6)}, "token_types must be from 0 to 5, got 6 to 6"),
        ({"output_indices": torch.tensor([3, 14])}, "output_indices must be from 0 to 13, .* got 3 to 14"),
        (
            {"output_indices": torch.tensor([[3]])},
            r"output_indices must be an int64 tensor \(length,\), got int64 \(1, 1\)",
        ),
        ({"entities": torch.ones(2, 6).bool()}, r"entities must have the shape of tokens, \(2, 7\), got \(2, 6\)"),
    ],
)
def test_inputs_of_a_transformer_fit_together(changes, message):
    with pytest.raises(UnifiedError, match=message):
        model()(**inputs(**changes))


def test_a_memory_has_the_rows_of_the_text():
    reader, memory = model(positions="relative", token_head="plain"), Memory(length=4, taken=7)
    reader(**inputs(), memory=memory)
    one = {name: value[:1] for name, value in inputs().items() if name != "mask"}
    with pytest.raises(UnifiedError, match="memory must have the 1 rows of tokens, got 2"):
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": "12"}, "layers must be an integer, got '12'"),
        ({"layers": 2.0}, "layers must be an integer, got 2.0"),
        ({"heads": True}, "heads must be an integer, got True"),
        ({"width": None}, "width must be an integer, got None"),
        ({"dropout": "0.1"}, "dropout must be a number, got '0.1'"),
        ({"sublayers": ["self"]}, r"sublayers must be a text, got \['self'\]"),
        ({"sentence_head": "yes"}, "sentence_head must be True or False, got 'yes'"),
        ({"vocabulary_size": -1}, "vocabulary_size must be at least 0, got -1"),
        ({"norm_epsilon": -1e-5}, "norm_epsilon must be at least 0, got -1e-05"),
    ],
)
def test_settings_have_their_types(changes, message):
    with pytest.raises(UnifiedError, match=message):
        TransformerConfig(**{**_SHAPE, **changes})


@pytest.mark.parametrize("kind", [Transformer, UnifiedModel.for_language])
def test_a_model_is_made_of_a_configuration(kind):
    with pytest.raises(UnifiedError, match="config must be a TransformerConfig, got dict"):
        kind({"layers": 2})


@pytest.mark.parametrize("backend", ["auto", "dense", "sdpa", "blocked"])
@pytest.mark.parametrize("row", [masks.left_to_right(5), masks.bidirectional(5), masks.seq2seq(2, 3)], ids=repr)
def test_attention_has_the_lengths_of_its_mask(backend, row):
    prepared = prepare(masks.batch([row] * 2), torch.float32, CPU, backend=backend)
    right, long = torch.randn(2, 2, 5, 8), torch.randn(2, 2, 7, 8)
    assert attend(right, right, right, prepared).shape == right.shape
    for query, key in ((long, long), (long, right), (right, long)):
        with pytest.raises(UnifiedError, match="the mask is for 2 rows of 5 queries and 5 keys, got 2 rows of"):
            attend(query, key, key, prepared)
    with pytest.raises(UnifiedError, match="2 rows of 5 queries and 5 keys, got 1 rows of 5 queries and 5 keys"):
        attend(right[:1], right[:1], right[:1], prepared)
    with pytest.raises(UnifiedError, match="query, key and value must agree in rows, heads, keys and size"):
        attend(right, right[:, :1], right, prepared)
    with pytest.raises(UnifiedError, match=r"must be \(rows, heads, length, size\), got 3, 4, 4 axes"):
        attend(right[0], right, right, prepared)


def test_masks_are_joined_from_lists():
    one = masks.left_to_right(3)
    for join in (masks.batch, lambda rows: masks.pack(rows, length=8)):
        with pytest.raises(ValueError, match="takes a list of masks, got one mask; put it in a list"):
            join(one)
        with pytest.raises(ValueError, match="takes a list of masks, got NoneType"):
            join(None)


@pytest.mark.parametrize("indices", [torch.zeros(2, dtype=torch.long), torch.zeros(3), [0, 1, 2]], ids=str)
def test_a_last_key_is_one_for_each_query(indices):
    with pytest.raises(ValueError, match=r"key_indices must be int64 of the shape of query_step, \(3,\), got"):
        masks.bidirectional(3).causal(indices)
