"""Parameters of a file for a module: tables of other lengths, modules without memory, and texts of refusals."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unified.checkpoints.parameters import listed, load_parameters, loaded, shape_name, without_values, wrong_kind
from unified.errors import UnifiedError

POSITIONS, TYPES = "embeddings.positions.weight", "embeddings.token_types.weight"


class Tables(nn.Module):
    """A table of positions and one of token types, below a module of another name."""

    def __init__(self, positions: int = 4, types: int = 6, width: int = 3):
        super().__init__()
        self.embeddings = nn.Module()
        self.embeddings.positions = nn.Embedding(positions, width)
        self.embeddings.token_types = nn.Embedding(types, width)
        self.register_buffer("scale", torch.ones(()))


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


def state(positions: int = 4, types: int = 6, width: int = 3) -> dict:
    return dict(Tables(positions, types, width).state_dict())


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_a_position_table_is_cut_or_continued_from_its_first_row(rows):
    mine, theirs = Tables(), state(positions=rows)
    assert load_parameters(mine, theirs) == ([], [])
    expected = torch.stack([theirs[POSITIONS][i % rows] for i in range(4)])
    assert torch.equal(mine.embeddings.positions.weight, expected)


@pytest.mark.parametrize(
    ("rows", "begins"),
    [(3, [0, 1, 0]), (6, [0, 1, 0, 0, 0, 1]), (7, [0, 1, 0, 0, 0, 1, 1])],
)
def test_two_token_types_are_extended_as_unilm_does(rows, begins):
    mine, theirs = Tables(types=rows), state(types=2)
    load_parameters(mine, theirs)
    assert torch.equal(mine.embeddings.token_types.weight, theirs[TYPES][begins])


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        ({"types": 8}, {"types": 2}, f"{TYPES}: shape 2x3, the model has 8x3"),
        ({"types": 1}, {"types": 2}, f"{TYPES}: shape 2x3, the model has 1x3"),
        ({"types": 6}, {"types": 3}, f"{TYPES}: shape 3x3, the model has 6x3"),
        ({"width": 2}, {"width": 3, "types": 2}, f"{POSITIONS}: shape 4x3, the model has 4x2; {TYPES}: shape 2x3, "
         "the model has 6x2"),
        ({}, {"positions": 0}, f"{POSITIONS}: shape 0x3, the model has 4x3"),
    ],
)  # fmt: skip
def test_other_tables_are_refused(mine, theirs, said):
    wanted = f"the checkpoint's parameters do not fit the model: {said}"
    assert refusal(load_parameters, Tables(**mine), state(**theirs)) == wanted


@pytest.mark.parametrize("value", [torch.ones(3), torch.ones(2, 3, 1)])
def test_a_position_table_is_a_matrix(value):
    said = refusal(load_parameters, Tables(), {**state(), POSITIONS: value})
    assert said.endswith(f"{POSITIONS}: shape {shape_name(value)}, the model has 4x3")


def test_two_token_types_stay_two():
    mine, theirs = Tables(types=2), state(types=2)
    load_parameters(mine, theirs)
    assert torch.equal(mine.embeddings.token_types.weight, theirs[TYPES])


def test_values_that_are_no_real_numbers_are_named():
    assert wrong_kind(torch.ones(1)) is None and wrong_kind(torch.tensor(True)) is None
    assert wrong_kind("x") == "expected a tensor, got str"
    for value in (torch.ones(1) * 1j, torch.ones(2).to_sparse()):
        assert wrong_kind(value) == "expected real numbers, one beside the other"


def test_shapes_and_lists_as_text():
    assert [shape_name(torch.ones(shape)) for shape in ((), (4,), (768, 3))] == ["scalar", "4", "768x3"]
    assert listed([f"p{i}" for i in range(8)]) == "p0; p1; p2; p3; p4; p5; p6; p7"
    assert listed([f"p{i}" for i in range(10)]) == "p0; p1; p2; p3; p4; p5; p6; p7; and 2 more"


# Modules that take no memory before it is known that a file fits


class Drawn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        nn.init.normal_(tensor=self.linear.bias)
        nn.init.zeros_(self.linear.weight)
        self.register_buffer("made", nn.init.uniform_(torch.empty(2)))


def test_a_module_without_values_has_its_names_and_shapes(monkeypatch):
    drawn = []
    monkeypatch.setattr(torch.Tensor, "normal_", lambda *_, **__: drawn.append("normal"))
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda *_, **__: drawn.append("uniform"))
    found = without_values(Drawn)
    monkeypatch.undo()
    expected = Drawn().state_dict()
    assert {name: value.shape for name, value in found.items()} == {n: value.shape for n, value in expected.items()}
    assert {value.device.type for value in found.values()} == {"meta"} and drawn == []
    assert Drawn().linear.bias.device.type == "cpu"  # the block has ended


def test_a_module_is_built_after_its_file_was_found_to_fit():
    built = []

    def make() -> Tables:
        module = Tables()
        built.append(module.embeddings.positions.weight.device.type)
        return module

    theirs = state()
    module, new = loaded(make, theirs)
    assert built == ["meta", "cpu"] and new == []
    assert all(torch.equal(value, theirs[name]) for name, value in module.state_dict().items())
    for change, said in (
        ({POSITIONS: torch.ones(5, 3)}, f"{POSITIONS}: shape 5x3, the settings say 4x3"),
        ({POSITIONS: 3}, f"the checkpoint's parameters do not fit the model: {POSITIONS}: expected a tensor, got int"),
        ({"x": torch.ones(1)}, "the checkpoint's parameters do not fit the model: unknown: x"),
    ):
        built.clear()
        assert refusal(loaded, make, theirs | change) == said and built == ["meta"]


def test_whole_modules_may_be_new_or_unused_where_they_are_allowed():
    theirs = state()
    for name in (POSITIONS, TYPES):
        del theirs[name]
    module, new = loaded(Tables, {**theirs, "other.x": torch.ones(1)}, ["embeddings."], ["other."])
    assert new == [POSITIONS, TYPES] and module.scale == 1
    wanted = f"the checkpoint's parameters do not fit the model: missing: {POSITIONS}; missing: {TYPES}"
    assert refusal(loaded, Tables, theirs, ["other."]) == wanted
