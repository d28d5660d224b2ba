"""Distances and segments of queries and keys: their definitions pair by pair, of tiles too, and what is made once."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from unified import masks
from unified.attention.bias import Tile
from unified.model.key_relations import DistanceTable, Pairs, Relations, sinusoids

UP = torch.arange(6)


def relations(queries: torch.Tensor, keys: torch.Tensor, reach: int = 20, clipped: bool = False, **more) -> Relations:
    """The row's token types change in the middle."""
    table = DistanceTable(torch.zeros(2 * reach + 1, 4), clipped)
    types = [(torch.arange(len(side)) >= len(side) // 2).long()[None] for side in (queries, keys)]
    return Relations(queries[None], keys[None], *types, len(keys), table, **more)


@pytest.mark.parametrize(
    ("reach", "width"), [(0, 8), (1, 8), (3, 8), (4, 16), (7, 16), (8, 24), (11, 24), (12, 32), (100, 208)]
)
def test_a_table_has_a_row_for_each_distance_and_a_width_of_whole_eights(reach, width):
    table = DistanceTable(torch.zeros(2 * reach + 1, 3))
    assert (table.reach, table.width, table.clipped) == (reach, width, False)
    assert DistanceTable(table.rows, True).clipped is True


@torch.no_grad()
def test_a_projection_of_a_table_is_made_once(monkeypatch):
    table, calls = DistanceTable(torch.randn(5, 3)), []

    class Counted(torch.nn.Linear):
        def forward(self, rows):
            calls.append(rows)
            return super().forward(rows)

    first, second = Counted(3, 4), Counted(3, 4)
    made = table.projected(first)
    assert table.projected(first) is made and len(calls) == 1 and calls[0] is table.rows
    torch.testing.assert_close(made, first(table.rows))
    torch.testing.assert_close(table.projected(second), second(table.rows))
    calls.clear()
    assert table.projected(second) is table.projected(second) and not calls
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for _ in range(2):  # a compiled layer, which is run once, makes its own
        torch.testing.assert_close(table.projected(first), made)
    assert len(calls) == 2


def test_with_gradients_a_projection_is_made_of_the_rows_whatever_is_kept():
    table, projection = DistanceTable(torch.randn(5, 3)), torch.nn.Linear(3, 4)
    with torch.no_grad():
        kept = table.projected(projection)
    made = table.projected(projection)
    assert torch.equal(made, kept) and not kept.requires_grad
    made.sum().backward()
    torch.testing.assert_close(projection.weight.grad, table.rows.sum(0).expand(4, -1))
    with torch.no_grad():
        assert table.projected(projection) is kept


@pytest.mark.parametrize("reach", [0, 1, 5, 12])
@pytest.mark.parametrize("width", [2, 8, 10])
def test_sinusoids_are_transformer_xls(reach, width):
    found = sinusoids(reach, width, torch.zeros(0, dtype=torch.float64))
    assert found.shape == (2 * reach + 1, width) and found.dtype == torch.float64
    for row, distance in enumerate(range(reach, -reach - 1, -1)):
        angles = [distance / 10000 ** (2 * i / width) for i in range(width // 2)]
        wanted = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
        assert found[row].tolist() == pytest.approx(wanted, abs=1e-6)
    assert torch.equal(sinusoids(reach, width, torch.zeros(0, dtype=torch.bfloat16)), found.bfloat16())


def test_sinusoids_are_computed_in_float32_whatever_the_default_is():
    expected = sinusoids(300, 8, torch.zeros(0, dtype=torch.float64))
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(sinusoids(300, 8, torch.zeros(0)).double(), expected)
    finally:
        torch.set_default_dtype(torch.float32)
    with PretendCard():
        assert torch.equal(sinusoids(300, 8, torch.zeros(0).to(DEVICE)).cpu().double(), expected)


@pytest.mark.parametrize("compiling", [False, True])
def test_distances_and_differences_are_those_of_each_pair(compiling, monkeypatch):
    """Eager layers share what the first one has found; a compiled layer keeps nothing."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
    generator = torch.Generator().manual_seed(0)
    sides = [torch.randint(-9, 9, (2, length), generator=generator) for length in (5, 7, 5, 7)]
    for table in (None, DistanceTable(torch.zeros(9, 1), clipped=True)):
        found = Relations(*sides, 5, table)
        distances, different = found.distances, found.different
        for row in range(2):
            for i in range(5):
                for j in range(7):
                    wanted = int(sides[0][row, i] - sides[1][row, j])
                    assert int(distances[row, i, j]) == (wanted if table is None else max(-4, min(4, wanted)))
                    assert bool(different[row, i, j]) == (sides[2][row, i] != sides[3][row, j])
        assert (found.distances is distances) is (found.different is different) is (not compiling)
    with pytest.raises(FrozenInstanceError):
        found.content = 3
    with pytest.raises(FrozenInstanceError):
        found.within(Tile(0, slice(0, 2), slice(0, 2))).step = 1


def test_keys_at_distances_are_those_that_are_visible():
    permuted = torch.tensor([3, 0, 5, 1, 4, 2])
    found = relations(UP, permuted, reach=6)
    mask = masks.batch([masks.left_to_right(6)])
    keys_at = found.inverted(mask).keys_at
    assert keys_at.shape == (1, 6, 16) and keys_at.dtype == torch.int32 and keys_at.is_contiguous()
    for i in range(6):
        for column in range(16):
            keys = [j for j in range(i + 1) if column == 6 - (i - int(permuted[j]))]
            assert keys_at[0, i, column].tolist() == (keys[0] if keys else -1)
    with PretendCard() as card:
        moved = {name: value.to(DEVICE) for name, value in vars(found).items() if isinstance(value, torch.Tensor)}
        moved.pop("_kept_distances", None)
        table = DistanceTable(found.table.rows.to(DEVICE))
        there = Relations(**moved, content=6, table=table).inverted(mask.to(DEVICE))
        assert not card.looks and torch.equal(there.keys_at.cpu(), keys_at)


def test_keys_at_distances_are_made_for_tables_that_reach():
    mask = masks.batch([masks.left_to_right(6)])
    clipped, bare = relations(UP, UP, reach=2, clipped=True), Relations(UP[None], UP[None], UP[None], UP[None], 6)
    assert clipped.inverted(mask) is clipped and bare.inverted(mask) is bare
    twice = relations(UP, torch.tensor([0, 1, 1, 2, 3, 4]))
    with pytest.raises(RuntimeError) as raised:
        twice.inverted(mask)
    assert str(raised.value) == (
        "attention backend 'fused': a query sees several keys at one distance, so positions repeat within a document; "
        "choose 'sdpa'"
    )
    far = Relations(*[UP[None]] * 4, 6, DistanceTable(torch.zeros(41, 1)))
    hidden = masks.batch([masks.left_to_right(6).without_self()])
    assert (far.inverted(hidden).keys_at == -1).all(-1).tolist() == [[True, *[False] * 5]]


def step_of(queries: list[int], keys: list[int], reach: int = 20) -> int:
    whole = relations(torch.tensor(queries), torch.tensor(keys), reach)
    return whole.within(Tile(0, slice(0, len(queries)), slice(0, len(keys)))).step


def test_positions_one_by_one_have_a_step():
    assert step_of([3, 4, 5], [0, 1, 2, 3]) == 1
    assert step_of([5, 4, 3], [3, 2, 1]) == -1
    assert step_of([3], [0, 1]) == 1 and step_of([3], [1, 0]) == -1
    assert step_of([3, 4], [7]) == 1 and step_of([4, 3], [7]) == -1
    assert step_of([3], [3]) == 0  # one pair
    assert step_of([3, 4, 5], [3, 2, 1]) == 0  # against each other
    assert step_of([0, 2, 4], [0, 2]) == 0  # two by two
    assert step_of([0, 0, 0], [0, 0]) == 0
    assert step_of([0, 1, 3], [0, 1, 2]) == 0
    assert step_of([0, 1, 2], [0, 1, 3]) == 0
    # A table that ends before the farthest distance has no row of its own for it.
    assert step_of([3, 4, 5], [0, 1, 2], reach=5) == 1
    assert step_of([3, 4, 5], [0, 1, 2], reach=4) == 0
    assert step_of([0, 1, 2], [3, 4, 5], reach=5) == 1
    assert step_of([0, 1, 2], [3, 4, 5], reach=4) == 0


@pytest.mark.parametrize("reach", [3, 20])
def test_a_tile_names_rows_of_the_table_and_columns_among_them(reach):
    """By its definition, for stretches of rows; the whole table's row of each pair is what it leads to."""
    generator = torch.Generator().manual_seed(0)
    queries, keys = torch.randint(-6, 9, (8,), generator=generator), torch.randint(-6, 9, (9,), generator=generator)
    whole, numbers = relations(queries, keys, reach, clipped=True), torch.arange(2 * reach + 1)
    for tile in (
        Tile(0, slice(0, 8), slice(0, 9)),
        Tile(0, slice(2, 5), slice(3, 9)),
        Tile(0, slice(7, 8), slice(0, 1)),
        Tile(0, slice(0, 4), slice(0, 4)),
        Tile(0, slice(0, 4), slice(4, 9)),
    ):
        pairs = whole.within(tile)
        assert pairs is whole.within(Tile(tile.row, tile.queries, tile.keys)), "it is found once"
        rows = reach - whole.distances[0, tile.queries, tile.keys]
        assert torch.equal(numbers[pairs.rows][pairs.columns], rows)
        assert (pairs.rows.start, pairs.rows.stop) == (int(rows.min()), int(rows.max()) + 1)
        different = whole.different[0, tile.queries, tile.keys]
        if different.all() or not different.any():
            assert pairs.different is None
        else:
            assert torch.equal(pairs.different, different.float())
    assert whole.within(Tile(0, slice(0, 4), slice(0, 4))).different is None
    assert whole.within(Tile(0, slice(0, 4), slice(4, 9))).different is None
    assert isinstance(pairs, Pairs)


@pytest.mark.parametrize("keys", [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 0]])
def test_a_single_key_of_another_type_counts(keys):
    sides = torch.arange(4)[None], torch.tensor([keys])
    found = Relations(sides[0], sides[0], torch.ones(1, 4).long(), sides[1], 4, DistanceTable(torch.zeros(9, 1)))
    expected = torch.tensor([[float(1 - one) for one in keys]]).expand(4, -1)
    assert torch.equal(found.within(Tile(0, slice(0, 4), slice(0, 4))).different, expected)


def test_tiles_of_other_rows_and_stretches_are_told_apart():
    positions = torch.tensor([[0, 1, 2, 3], [7, 3, 5, 0]])
    found = Relations(positions, positions, positions * 0, positions * 0, 4, DistanceTable(torch.zeros(41, 1)))
    tiles = [Tile(r, slice(a, b), slice(c, d)) for r in (0, 1) for a, b, c, d in [(0, 4, 0, 4), (0, 3, 0, 4),
             (1, 4, 0, 4), (0, 4, 0, 3), (0, 4, 1, 4)]]  # fmt: skip
    for tile in tiles * 2:
        own = positions[tile.row, tile.queries, None] - positions[tile.row, tile.keys]
        assert torch.equal(torch.arange(41)[found.within(tile).rows][found.within(tile).columns], 20 - own)
