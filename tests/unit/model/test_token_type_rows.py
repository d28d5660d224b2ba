"""How many token types a model has, and which objectives and schemes may use it."""

import pytest

from unified.model import TransformerConfig


@pytest.mark.parametrize(("rows", "asked", "has"), [(0, 6, True), (1, 1, True), (1, 2, False), (6, 2, True)])
def test_a_table_serves_as_many_types_as_it_has_rows(rows, asked, has):
    """Without a table (0 rows) no type lacks a row."""
    positions = "learned" if rows else "rotary"
    config = TransformerConfig(10, layers=1, width=16, heads=2, token_types=rows, positions=positions)
    assert config.has_token_types(asked) is has
    assert config.with_token_types(asked).token_types == (rows if has else asked)
