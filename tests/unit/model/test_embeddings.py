"""Tables of symbols, positions and token types: what is added and normed, and which symbols no softmax has."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from unified.errors import UnifiedError
from unified.kernels.plain import LinearMap
from unified.model import TransformerConfig
from unified.model.embeddings import (
    EMBEDDINGS,
    MOST_TOKEN_TYPES,
    Embeddings,
    RotaryEmbeddings,
    SymbolTable,
    TokenEmbeddings,
    extend_positions,
    extend_token_types,
)

CONFIG = TransformerConfig(vocabulary_size=9, layers=1, width=6, heads=3, max_positions=7, token_types=4, dropout=0.0)
TOKENS, TYPES = torch.tensor([[8, 0, 3], [1, 1, 5]]), torch.tensor([[0, 3, 1], [2, 2, 0]])
POSITIONS = torch.tensor([[0, 6, 2], [5, 4, 3]])


def embeddings(kind: str, **changes) -> torch.nn.Module:
    torch.manual_seed(0)
    made = EMBEDDINGS[kind](replace(CONFIG, positions=kind, **changes)).eval()
    for parameter in made.parameters():  # the norms' too
        parameter.data = torch.randn_like(parameter)
    return made


def normed(made: torch.nn.Module, states: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(states, (6,), made.norm.weight, made.norm.bias, CONFIG.norm_epsilon)


def test_each_kind_of_positions_has_its_embeddings():
    assert EMBEDDINGS == {"learned": Embeddings, "relative": TokenEmbeddings, "rotary": RotaryEmbeddings}
    shapes = {kind: {n: tuple(p.shape) for n, p in embeddings(kind).named_parameters()} for kind in EMBEDDINGS}
    norm, tokens, types = {"norm.weight": (6,), "norm.bias": (6,)}, {"tokens.weight": (9, 6)}, (4, 6)
    assert shapes["learned"] == tokens | norm | {"positions.weight": (7, 6), "token_types.weight": types}
    assert shapes["relative"] == tokens | {"query": (6,)}
    assert shapes["rotary"] == tokens | norm | {"query": (6,), "token_types.weight": types}
    assert embeddings("rotary", token_types=0).token_types is None


@pytest.mark.parametrize("kind", EMBEDDINGS)
@pytest.mark.parametrize(("norm", "embedding_norm"), [("post", False), ("pre", False), ("pre", True)])
def test_rows_are_added_and_normed_where_the_configuration_says(kind, norm, embedding_norm):
    made = embeddings(kind, norm=norm, embedding_norm=embedding_norm)
    expected = made.tokens.weight[TOKENS]
    if kind != "relative":
        expected = expected + made.token_types.weight[TYPES]
    if kind == "learned":
        expected = expected + made.positions.weight[POSITIONS]
    if embedding_norm or (norm == "post" and kind != "relative"):
        expected = normed(made, expected)
    torch.testing.assert_close(made(TOKENS, POSITIONS, TYPES), expected)


@pytest.mark.parametrize("kind", ["relative", "rotary"])
def test_a_query_stream_begins_at_one_vector(kind):
    made = embeddings(kind, norm="pre", token_types=4)
    positions = torch.cat([POSITIONS, POSITIONS[:, :2]], dim=1)
    types = torch.cat([TYPES, TYPES[:, 1:]], dim=1)
    expected = torch.cat([made.tokens.weight[TOKENS], made.query.expand(2, 2, 6)], dim=1)
    found = made(TOKENS, positions, types)
    torch.testing.assert_close(found, expected + (made.token_types.weight[types] if kind == "rotary" else 0))
    bare = embeddings("rotary", norm="pre", token_types=0)
    torch.testing.assert_close(bare(TOKENS, POSITIONS, TYPES), bare.tokens.weight[TOKENS])
    (gradient,) = torch.autograd.grad(made(TOKENS, POSITIONS, TYPES).sum(), made.query)
    assert not gradient.any()  # there is one, in every batch


def test_the_query_vector_begins_normal():
    torch.manual_seed(0)
    query = TokenEmbeddings(replace(CONFIG, width=3000, initializer_range=0.25, positions="relative")).query.detach()
    assert query.std().item() == pytest.approx(0.25, rel=0.05) and abs(query.mean().item()) < 0.02


@pytest.mark.parametrize("kind", EMBEDDINGS)
def test_embeddings_are_dropped_in_training(kind):
    made = EMBEDDINGS[kind](replace(CONFIG, positions=kind, dropout=0.5, width=300))
    tokens = torch.ones(4, 7, dtype=torch.long)
    given = tokens, torch.arange(7).expand(4, 7), tokens
    assert 0.4 < (made(*given) == 0).float().mean() < 0.6
    assert not (made.eval()(*given) == 0).any()


@pytest.mark.parametrize(
    ("kind", "name", "rows"),
    [("learned", "tokens", 9), ("learned", "positions", 7), ("learned", "token_types", 4)]
    + [("relative", "tokens", 9), ("rotary", "tokens", 9), ("rotary", "token_types", 4)],
)
def test_an_id_beyond_its_table_is_named(kind, name, rows):
    made, zeros = embeddings(kind), torch.zeros(1, 2, dtype=torch.long)
    for ids in ([[1, rows]], [[-1, 2]]):
        given = {"tokens": zeros, "positions": zeros, "token_types": zeros, name: torch.tensor(ids)}
        with pytest.raises(UnifiedError) as raised:
            made(**given)
        least, most = sorted(ids[0])
        assert str(raised.value) == f"{name} must be from 0 to {rows - 1}, got {least} to {most}"


def table_of(size: int, left_out: list[int]) -> SymbolTable:
    torch.manual_seed(0)
    table = SymbolTable(replace(CONFIG, vocabulary_size=size))
    assert torch.equal(table.scored, torch.ones(size)) and "scored" in table.state_dict()
    assert type(table.linear) is LinearMap
    table.scored[left_out] = 0.0
    return table


@pytest.mark.parametrize("multiple", [1, 4, 5, 64])
def test_symbols_that_are_left_out_have_no_score(multiple, monkeypatch):
    """In training, where the matrix is filled up to a multiple of rows, and without gradients."""
    monkeypatch.setattr(SymbolTable, "multiple_of_rows", staticmethod(lambda device: multiple))
    table, states, bias = table_of(10, [2, 7]), torch.randn(3, 6), torch.randn(10)
    expected = states @ table.weight.T + bias
    expected[:, [2, 7]] = -torch.inf
    widths = []
    table.linear.register_forward_hook(lambda module, inputs, out: widths.append(out.size(1)))
    torch.testing.assert_close(table.logits(states, bias), expected)
    with torch.no_grad():
        torch.testing.assert_close(table.logits(states, bias), expected)
    assert widths == [-(-10 // multiple) * multiple, 10]


def test_the_output_matrix_is_filled_up_on_a_card_alone():
    assert SymbolTable.multiple_of_rows(torch.device("cuda")) == 64
    assert table_of(9, []).multiple_of_rows(torch.device("cpu")) == 1


def test_symbols_are_scored_from_half_of_a_mean_of_models_on():
    table = table_of(6, [0])
    table.scored[:] = torch.tensor([0.0, 0.25, 0.499, 0.5, 0.75, 1.0])
    assert table.left_out.tolist() == [True, True, True, False, False, False]
    table.score([1, 0])
    assert table.scored.tolist() == pytest.approx([1.0, 1.0, 0.499, 0.5, 0.75, 1.0])
    table.score(range(6))
    assert not table.left_out.any()


def test_tables_are_continued_as_unilm_does():
    table = torch.arange(5.0)[:, None].expand(5, 2)
    assert extend_positions(table, 12)[:, 0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    assert extend_positions(table, 3)[:, 1].tolist() == [0, 1, 2]
    assert MOST_TOKEN_TYPES == 7
    assert extend_token_types(table[:2], 7)[:, 0].tolist() == [0, 1, 0, 0, 0, 1, 1]
    assert extend_token_types(table[:2], 3)[:, 1].tolist() == [0, 1, 0]
