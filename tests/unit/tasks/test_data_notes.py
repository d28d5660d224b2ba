"""Notes on data before fine-tuning: counts, classes that are probably one, items that train and validate."""

import pytest

from unified.errors import UnifiedError
from unified.tasks.data_notes import capitals_note, data_notes, guess_note, require_known_labels, silence_note
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.metrics import score_generation
from unified.tasks.metrics.squad import score_squad_v2
from unified.tasks.writing import WritingItem

ALIKE = (
    "labels that differ in capitals or blanks alone are learnt as different classes; make them equal in the file if "
    "they mean the same: "
)


def items(*rows, first=0):
    return [TextItem(str(i), text, None, label) for i, (text, label) in enumerate(rows, first)]


def test_classes_are_counted_and_those_that_are_probably_one_are_named():
    train = items(("a", "Good"), ("b", "bad"), ("c", "good "), ("d", "bad"), ("e", "so  so"), ("f", "So so"))
    found = data_notes({"train": train, "valid": items(("x", "Good"), ("a", "bad"), ("a", "Good"))})
    assert found == [
        "items: train 6, valid 3",
        "5 labels in train: 'bad' 2, 'Good' 1, 'good ' 1, 'so  so' 1, 'So so' 1",
        ALIKE + "'Good', 'good '",
        ALIKE + "'So so', 'so  so'",
        "2 of 3 valid items have the texts of a train item: scores come out too high",
    ]


def test_of_many_labels_the_most_frequent_are_named():
    train = items(*((f"{i}", f"l{i % 30}") for i in range(95)))
    note = data_notes({"train": train})[1]
    assert note.startswith("30 labels in train: 'l0' 4, 'l1' 4, 'l2' 4, 'l3' 4, 'l4' 4, 'l5' 3,")
    assert note.endswith("'l19' 3, and 10 more")


def test_almost_as_many_classes_as_items_are_questioned():
    few, many = (items(*((f"{i}", f"l{i % count}") for i in range(80))) for count in (20, 21))
    asked = "21 classes of 80 items: is the label read from the right field?"
    assert asked in data_notes({"train": many}) and len(data_notes({"train": few})) == 2


def test_classes_that_nobody_can_learn_are_refused():
    train = items(("a", "x"), ("b", "y"))
    require_known_labels({"train": train, "valid": items(("c", "x")), "test": items(("d", None))})
    require_known_labels(
        {"rte/train": train, "rte/valid": items(("c", "y")), "sst2/train": items(("a", "u"), ("b", "v"))}
    )
    others = {"valid": items(("c", "z"), ("d", "x"), ("e", "z")), "test": items(("f", "w"))}
    with pytest.raises(UnifiedError) as caught:
        require_known_labels({"train": train, **others})
    assert str(caught.value) == (
        "valid, 2 items (0, 2): no item of train has its label 'z'; test, item 0: no item of train has its label 'w'"
    )


def test_items_without_classes_are_counted_alone():
    assert data_notes({"train": items(("a", 1.0), ("b", 2.0))}) == ["items: train 2"]
    assert data_notes({"train": [WordsItem("1", ("a",), ("O",))] * 1200}) == ["items: train 1,200"]


def test_a_classifier_is_compared_with_a_constant_answer():
    scored = items(("a", "x"), ("b", "x"), ("c", "y"), ("d", "x"), ("e", None))
    assert guess_note(scored, 75.0).startswith("a constant answer, 'x', would have accuracy 75.00: ")
    assert guess_note(scored, 75.01) is None
    assert guess_note(items(("a", 1.0)), 0.0) is None and guess_note([WordsItem("1", ("a",), ("O",))], 0.0) is None


def test_what_silence_scores_is_said_where_a_model_may_leave_questions_unanswered():
    answers = {"a": ["x y"], "b": ["z"], "c": [], "d": [], "e": []}
    silent = score_squad_v2(answers, dict.fromkeys(answers, ""))
    assert silent["f1"] == pytest.approx(60)
    said = "questions that have an answer: F1 {}; a model that never answers has F1 60.00 on all"
    assert silence_note(silent) == said.format("0.00")
    assert silence_note(score_squad_v2(answers, dict.fromkeys(answers, "z"))) == said.format("50.00")
    assert silence_note(score_squad_v2({"a": ["x"]}, {"a": "x"})) is None and silence_note({"accuracy": 50.0}) is None


def test_a_model_that_writes_no_capital_letters_is_compared_with_its_references():
    targets = ["RUSSIA SAYS no", "oil falls", "Gold ends up"]
    written = [WritingItem(str(i), "a source", target) for i, target in enumerate(targets)]
    # A reference without capitals is enough, and an unknown word has none.
    written.append(WritingItem("3", "a source", "it falls", ("it falls", "It fell")))
    written.append(WritingItem("4", "a source", "UNK falls"))
    references = [item.right for item in written]
    small = [{"text": text} for text in ("russia says no", "oil falls", "gold ends up", "it falls", "falls")]
    scores = score_generation([one["text"] for one in small], references).to_dict()
    said = (
        "no prediction has a capital letter, and all references of 2 of 5 items have some: bleu and exact_match count "
        "such words as wrong, rouge1, rouge2 and rougeL do not"
    )
    assert capitals_note(written, small, scores) == said
    # The scores are what the sentence says of them.
    own = score_generation([small[0]["text"]], references[:1]).to_dict()
    assert own["exact_match"] == 0.0 and own["bleu"] < 100 and own["rougeL"] == 100.0
    assert capitals_note(written, [*small[:4], {"text": "It falls"}], scores) is None
    assert capitals_note(written[1:2], small[1:2], scores) is None  # references without capitals
    without_bleu = {name: score for name, score in scores.items() if name != "bleu"}
    assert capitals_note(written, small, without_bleu) is None and capitals_note(written, small, {"bleu": 1.0}) is None
