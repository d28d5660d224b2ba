"""Ids and labels are texts or integers, which are one where they look alike."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.files.ids import Spellings, item_id, name_text, require_common

NAMES = [
    ("a", "a"),
    (" a ", " a "),
    ("1", "1"),
    (1, "1"),
    (0, "0"),
    (-3, "-3"),
    (2**70, str(2**70)),
    (np.int64(5), "5"),
]
NO_NAMES = ["", "  ", "\n", 1.0, True, False, [], ["a"], {}, None]


def test_texts_and_integers_are_names_and_nothing_else():
    for value, text in NAMES:
        assert name_text(value) == text
    for value in NO_NAMES:
        assert name_text(value) is None


def test_an_item_without_an_id_is_called_by_the_number_of_its_line():
    for value, text in NAMES:
        assert item_id({"id": value}, 9) == text
    assert item_id({}, 9) == "9" and item_id({"id": None, "ID": "x"}, 10) == "10"
    for value in NO_NAMES[:-1]:
        with pytest.raises(UnifiedError) as refused:
            item_id({"id": value}, 9)
        assert refused.value.details == f"'id' must be a text that is not empty, or an integer, got {value!r}"


def test_a_label_has_one_spelling_in_a_file():
    for first, second in ((1, "1"), ("1", 1)):
        spellings = Spellings()
        assert [spellings.problem(one) for one in (first, "a", 2, first, 1.0, None, "")] == [None] * 7
        for _ in range(2):
            assert spellings.problem(second) == (
                'both 1 and "1" are labels of this file; write the label in one of the two ways'
            )
        assert spellings.problem(first) is None and Spellings().problem(second) is None


def test_files_with_nothing_in_common_are_refused():
    with pytest.raises(UnifiedError) as refused:
        require_common("p.jsonl", iter(["1", "2"]), "g.json", iter(["q1", "q2"]), "id")
    assert str(refused.value) == (
        "p.jsonl: has no id of g.json, but such as '1', where that has 'q1'; both files must use the same"
    )
    require_common("p", ["1", "q2"], "g", ["q1", "q2"], "id")
    require_common("p", [], "g", ["q1"], "id")
    require_common("p", ["1"], "g", [], "id")


def test_ids_of_json_are_the_same_as_those_of_columns():
    line = json.loads('{"id": 12}')
    assert item_id(line, 1) == item_id({"id": "12"}, 1) == "12"
