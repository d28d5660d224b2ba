"""What a Transformer is given must fit together: exact words of refusals, and what just fits."""

from __future__ import annotations

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from unified import masks
from unified.errors import UnifiedError
from unified.masks import NO_KEY, AttentionMask
from unified.model import TransformerConfig
from unified.model.inputs import check_inputs, described, require_config

LONG = torch.long


def given(rows: int = 2, length: int = 3, queries: int = 3, **changes) -> dict:
    """Tokens of some rows, with a query stream where there are more queries than tokens."""
    steps = torch.arange(1, length + 1).expand(rows, -1)
    own = torch.cat([torch.arange(length), torch.full((queries - length,), NO_KEY)])
    mask = AttentionMask(
        query_step=torch.ones(rows, queries, dtype=LONG),
        key_start=steps,
        key_stop=torch.full_like(steps, length + 1),
        query_key=own.expand(rows, -1),
    )
    fitting = {
        "tokens": torch.zeros(rows, length, dtype=LONG),
        "positions": torch.zeros(rows, queries, dtype=LONG),
        "token_types": torch.zeros(rows, queries, dtype=LONG),
        "mask": mask,
    }
    return {**fitting, **changes}


@pytest.mark.parametrize(
    "inputs",
    [
        given(),
        given(queries=5),
        given(rows=1, length=1, queries=1),
        given(mask=masks.left_to_right(3)),
        given(output_indices=torch.tensor([0, 5])),
        given(output_indices=torch.tensor([5])),
        given(output_indices=torch.tensor([0])),
        given(output_indices=torch.zeros(0, dtype=LONG)),
        given(queries=5, output_indices=torch.tensor([9, 3])),
        given(entities=torch.zeros(2, 3, dtype=torch.bool)),
    ],
)
def test_what_fits_is_taken(inputs):
    check_inputs(**inputs)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (given(tokens=None), "tokens must be an int64 tensor (rows, length), got NoneType"),
        (given(tokens=torch.zeros(2, 3)), "tokens must be an int64 tensor (rows, length), got float32 (2, 3)"),
        (given(tokens=torch.zeros(6, dtype=LONG)), "tokens must be an int64 tensor (rows, length), got int64 (6,)"),
        (
            given(tokens=torch.zeros(2, 3, 1, dtype=LONG)),
            "tokens must be an int64 tensor (rows, length), got int64 (2, 3, 1)",
        ),
        (given(positions=[[0]]), "positions must be an int64 tensor (rows, length), got list"),
        (
            given(positions=torch.zeros(2, 3, dtype=torch.int32)),
            "positions must be an int64 tensor (rows, length), got int32 (2, 3)",
        ),
        (
            given(positions=torch.zeros(2, 2, dtype=LONG)),
            "positions must be (rows, length) of the 2 rows of at least 3 tokens, got (2, 2)",
        ),
        (
            given(positions=torch.zeros(3, 3, dtype=LONG)),
            "positions must be (rows, length) of the 2 rows of at least 3 tokens, got (3, 3)",
        ),
        (
            given(token_types=torch.zeros(2, 3).double()),
            "token_types must be an int64 tensor (rows, length), got float64 (2, 3)",
        ),
        (
            given(queries=5, token_types=torch.zeros(2, 3, dtype=LONG)),
            "token_types must have the shape of positions, (2, 5), got (2, 3)",
        ),
        (
            given(mask=torch.ones(3, 3)),
            "mask must be an AttentionMask of unified.masks, got float32 (3, 3); from_dense makes one of a matrix",
        ),
        (
            given(queries=5, mask=given(queries=4)["mask"]),
            "mask must have a query for each of 5 positions and a key for each of 3 tokens, got 4 queries and 3 keys",
        ),
        (
            given(queries=5, mask=given(length=4, queries=5)["mask"]),
            "mask must have a query for each of 5 positions and a key for each of 3 tokens, got 5 queries and 4 keys",
        ),
        (given(mask=given(rows=3)["mask"]), "mask must have the 2 rows of tokens, got 3"),
        (
            given(output_indices=torch.tensor([True])),
            "output_indices must be an int64 tensor (length,), got bool (1,)",
        ),
        (
            given(output_indices=torch.tensor(3)),
            "output_indices must be an int64 tensor (length,), got int64 ()",
        ),
        (
            given(output_indices=torch.tensor([2, -1])),
            "output_indices must be from 0 to 5, indices of rows and positions, got -1 to 2",
        ),
        (
            given(queries=5, output_indices=torch.tensor([10, 9])),
            "output_indices must be from 0 to 9, indices of rows and positions, got 9 to 10",
        ),
        (
            given(entities=torch.zeros(2, 3, dtype=LONG)),
            "entities must be a bool tensor (rows, length), got int64 (2, 3)",
        ),
        (
            given(entities=torch.zeros(6, dtype=torch.bool)),
            "entities must be a bool tensor (rows, length), got bool (6,)",
        ),
        (
            given(queries=5, entities=torch.zeros(2, 5, dtype=torch.bool)),
            "entities must have the shape of tokens, (2, 3), got (2, 5)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_these_words(inputs, message):
    with pytest.raises(UnifiedError) as raised:
        check_inputs(**inputs)
    assert str(raised.value) == message


def test_on_a_card_values_are_not_looked_at():
    with PretendCard() as card:
        inputs = given(output_indices=torch.tensor([99]))
        check_inputs(**{name: value.to(DEVICE) for name, value in inputs.items()})
        assert not card.looks
    with pytest.raises(UnifiedError):
        check_inputs(**inputs)


def test_anything_is_described_in_a_word_or_two():
    assert described(torch.zeros(2, 0, dtype=torch.bfloat16)) == "bfloat16 (2, 0)"
    assert described("text") == "str"


def test_a_configuration_is_asked_for():
    require_config(TransformerConfig())
    with pytest.raises(UnifiedError) as raised:
        require_config(torch.zeros(3))
    assert str(raised.value) == "config must be a TransformerConfig, got float32 (3,)"
