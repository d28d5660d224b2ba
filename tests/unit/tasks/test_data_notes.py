"""Notes on data before fine-tuning: counts, classes that are probably one, items that train and validate."""

from unified.tasks.data_notes import data_notes
from unified.tasks.heads.items import TextItem, WordsItem


def items(*rows, first=0):
    return [TextItem(str(i), text, None, label) for i, (text, label) in enumerate(rows, first)]


def test_classes_are_counted_and_those_that_are_probably_one_are_named():
    train = items(("a", "Good"), ("b", "bad"), ("c", "good "), ("d", "bad"), ("e", "so  so"), ("f", "So so"))
    found = data_notes({"train": train, "valid": items(("x", "Good"), ("a", "bad"), ("a", "Good"))})
    assert found == [
        "items: train 6, valid 3",
        "5 labels in train: 'bad' 2, 'Good' 1, 'good ' 1, 'so  so' 1, 'So so' 1",
        "labels that differ in capitals or blanks alone, and are different classes: 'Good', 'good '",
        "labels that differ in capitals or blanks alone, and are different classes: 'So so', 'so  so'",
        "2 of 3 valid items have the texts of a train item: scores come out too high",
    ]


def test_of_many_labels_the_most_frequent_are_named():
    train = items(*((f"{i}", f"l{i % 30}") for i in range(95)))
    note = data_notes({"train": train})[1]
    assert note.startswith("30 labels in train: 'l0' 4, 'l1' 4, 'l2' 4, 'l3' 4, 'l4' 4, 'l5' 3,")
    assert note.endswith("'l19' 3, and 10 more")


def test_items_without_classes_are_counted_alone():
    assert data_notes({"train": items(("a", 1.0), ("b", 2.0))}) == ["items: train 2"]
    assert data_notes({"train": [WordsItem("1", ("a",), ("O",))] * 1200}) == ["items: train 1,200"]
