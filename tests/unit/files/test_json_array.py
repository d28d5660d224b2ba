"""Arrays of JSON that are read piece by piece: what is refused, and how long an entry may be."""

from __future__ import annotations

import pytest

from tests.support.refusals import refused
from unified.files.json_array import array_entries


def refusal(folder, text: str, piece_bytes: int, longest: int = 100) -> str:
    """What is said of an array, without the name of its file."""
    path = folder / "a.json"
    path.write_text(text)
    said = refused(lambda: list(array_entries(str(path), piece_bytes, longest)))
    return said.removeprefix(f"{path}, ")


@pytest.mark.parametrize("piece_bytes", [1, 7, 100])
def test_numbers_that_json_does_not_know_are_refused(tmp_path, piece_bytes):
    said = refusal(tmp_path, '[{"a": 1},\n{"a": NaN}]', piece_bytes)
    assert said == "line 2: not a JSON array of objects: NaN is no number of JSON"


@pytest.mark.parametrize("piece_bytes", [1, 2, 7])
def test_an_entry_that_is_cut_off_is_too_long_only_where_it_has_more_characters_than_it_may(tmp_path, piece_bytes):
    entry = '{"a": "123456789'
    said = refusal(tmp_path, f"[\n{entry}", piece_bytes, longest=len(entry))
    assert said == "line 2: not a JSON array of objects: Unterminated string starting at"
    said = refusal(tmp_path, f"[\n{entry}", piece_bytes, longest=len(entry) - 1)
    assert said == "line 2: an entry is longer than 0 MiB"
