"""Named entities of items: what is read, what an annotator adds, and the exact text of every refusal."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.refusals import refused
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.named_entities import annotated, named_entities_of, read_named_entities

TEXTS = {"text": "Ann Lee", "second": "x"}


def test_spans_within_their_texts_are_read():
    found = {"second": [[0, 1]], "text": [[0, 3], [4, 7], [0, 7]]}
    assert read_named_entities({"named_entities": found}, TEXTS) == {
        "second": ((0, 1),),
        "text": ((0, 3), (4, 7), (0, 7)),
    }
    assert read_named_entities({}, TEXTS) is None and read_named_entities({"named_entities": None}, TEXTS) is None
    assert read_named_entities({"named_entities": {"text": []}}, {"text": ""}) == {"text": ()}


@pytest.mark.parametrize("found", [[], {}, {"text": []}, {"text": [], "third": []}, "text"])
def test_each_text_needs_a_list(found):
    assert refused(read_named_entities, {"named_entities": found}, TEXTS) == (
        "'named_entities' must be an object with a list for each of text, second"
    )


@pytest.mark.parametrize(
    "spans",
    [None, (), [0, 1], [[0]], [[0, 1, 2]], [(0, 1)], [[0, 1.0]], [[True, 2]], [[-1, 2]], [[2, 2]], [[3, 2]], [[0, 8]]],
)
def test_what_is_no_list_of_spans_within_the_text_is_refused(spans):
    assert refused(read_named_entities, {"named_entities": {"text": spans, "second": []}}, TEXTS) == (
        "'named_entities' of 'text' must be a list of [start, stop] within the text"
    )


def test_an_item_names_its_entities_or_is_refused():
    assert named_entities_of(TextItem("7", "a", named_entities={"text": ()})) == {"text": ()}
    assert refused(named_entities_of, TextItem("7", "a")) == (
        "item 7 has no 'named_entities', which the model's entity-aware attention reads; find them with --spacy "
        "PIPELINE of `unified finetune` and `unified predict`, or write them into the data"
    )


@pytest.mark.parametrize("at_once", [1, 2, 1000])
def test_an_annotator_marks_items_that_are_not_marked_yet(at_once):
    """Each text once, at most so many at a time, however often it occurs; here every capital is an entity."""
    asked: list[list[str]] = []

    def capitals(texts):
        asked.append(list(texts))
        rows = [(n, i, i + 1) for n, text in enumerate(texts) for i, letter in enumerate(text) if letter.isupper()]
        return {"entities": np.array(rows, dtype=np.int64).reshape(-1, 3)}

    items = [
        TextItem("1", "aBcD", "x", "y"),
        TextItem("2", "EE", named_entities={"text": ((0, 2),)}),
        TextItem("3", "x", "aBcD"),
        TextItem("4", "F"),
    ]
    found = annotated(items, capitals, at_once)
    assert [item.named_entities for item in found] == [
        {"text": ((1, 2), (3, 4)), "second": ()},
        {"text": ((0, 2),)},
        {"text": (), "second": ((1, 2), (3, 4))},
        {"text": ((0, 1),)},
    ]
    assert [(item.id, item.text, item.second, item.label) for item in found] == [
        (item.id, item.text, item.second, item.label) for item in items
    ]
    assert [text for texts in asked for text in texts] == ["aBcD", "x", "F"]
    assert max(map(len, asked)) == min(at_once, 3)


def test_a_thousand_texts_are_annotated_at_once():
    sizes: list[int] = []

    def nothing(texts):
        sizes.append(len(texts))
        return {"entities": np.zeros((0, 3), dtype=np.int64)}

    annotated([TextItem(str(i), f"t{i}") for i in range(2001)], nothing)
    assert sizes == [1000, 1000, 1]
