"""Notes on data before fine-tuning: counts, classes that are probably one, items that train and validate."""

from dataclasses import replace

import pytest

from unified.errors import UnifiedError
from unified.tasks.data_notes import capitals_note, data_notes, guess_note, require_known_labels, silence_note
from unified.tasks.heads import parse_head
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.relation import RelationItem
from unified.tasks.metrics import score_generation
from unified.tasks.metrics.squad import score_squad_v2
from unified.tasks.writing import WritingItem

ALIKE = (
    "labels that differ in capitals or blanks alone are learnt as different classes; make them equal in the file if "
    "they mean the same: "
)
#: The scores that capitals change.
BOTH = {"bleu": 1.0, "exact_match": 0.0}


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


def test_tags_of_words_are_counted():
    train = [WordsItem("1", ("Bob", "ran"), ("B-PER", "O")), WordsItem("2", ("it", "ran"), ("O", "O"))]
    valid = [WordsItem("3", ("Bob",), ("B-X",))]
    assert data_notes({"train": train, "valid": valid}) == [
        "items: train 2, valid 1",
        "2 tags in train: 'O' 3, 'B-PER' 1",
    ]


@pytest.mark.parametrize(
    ("count", "classes", "questioned"),
    [(40, 20, False), (40, 21, True), (80, 21, True), (200, 50, False), (200, 51, True), (60, 20, False)],
)
def test_more_than_twenty_classes_are_questioned_where_each_has_fewer_than_four_items(count, classes, questioned):
    notes = data_notes({"train": items(*((f"{i}", f"l{i % classes}") for i in range(count)))})
    asked = f"{classes} classes of {count} items: is the label read from the right field?"
    assert notes[2:] == ([asked] if questioned else []) and notes[1].count("'l") == 20
    assert notes[1].endswith(f", and {classes - 20} more") == (classes > 20)


def test_large_numbers_have_commas():
    rows = [(f"t{i}", f"l{i % 4000}") for i in range(8000)]
    notes = data_notes({"train": items(*rows), "valid": items(*rows)})
    assert notes[0] == "items: train 8,000, valid 8,000" and notes[1].startswith("4,000 labels in train: 'l0' 2, ")
    assert notes[1].endswith(", and 3,980 more")
    assert notes[2] == "4,000 classes of 8,000 items: is the label read from the right field?"
    assert notes[3] == "8,000 of 8,000 valid items have the texts of a train item: scores come out too high"


def test_pairs_of_texts_are_the_same_where_both_texts_are():
    pairs = {"train": [TextItem("1", "a", "b", 1.0)], "valid": [TextItem("1", "a", "c", 1.0)]}
    assert data_notes(pairs) == ["items: train 1, valid 1"]


def unlearnt(**splits) -> str:
    """The refusal of splits of a classification that learns the labels of its training items."""
    with pytest.raises(UnifiedError) as caught:
        require_known_labels([(parse_head("classification").for_items(splits["train"]), splits)])
    return str(caught.value)


def test_classes_that_nobody_can_learn_are_refused():
    train = items(("a", "x"), ("b", "y"))
    others = {"valid": items(("c", "z"), ("d", "x"), ("e", "z")), "test": items(("f", "w"))}
    assert unlearnt(train=train, **others) == (
        "valid, 2 items (0, 2): label 'z' is none of those that are learnt, 'x', 'y'; "
        "test, item 0: label 'w' is none of those that are learnt, 'x', 'y'"
    )
    known = parse_head("classification").for_items(train)
    require_known_labels([(known, {"train": train, "valid": items(("c", "x")), "test": items(("d", None))})])
    other = parse_head("classification").for_items(items(("a", "u"), ("b", "v")))
    splits = {"rte/train": train, "rte/valid": train[:1]}, {"sst2/train": items(("a", "u")), "sst2/valid": train[:1]}
    with pytest.raises(
        UnifiedError, match="^sst2/valid, item 0: label 'x' is none of those that are learnt, 'u', 'v'$"
    ):
        require_known_labels(zip((known, other), splits, strict=True))


def test_labels_of_ones_own_are_those_that_are_learnt():
    train, valid = items(("a", "x"), ("b", "y")), items(("c", "z"))
    require_known_labels(
        [(parse_head("classification(labels=['x', 'y', 'z'])").for_items(train), {"train": train, "valid": valid})]
    )
    fewer = parse_head("classification(labels=['x', 'z'])").for_items(train)
    for split in ("train", "a/train"):
        with pytest.raises(UnifiedError) as caught:
            require_known_labels([(fewer, {split: train, "valid": valid})])
        assert str(caught.value) == f"{split}, item 1: label 'y' is none of those that are learnt, 'x', 'z'"


@pytest.mark.parametrize(("rules", "program"), [("1.1", "SQuAD 1.1"), ("coqa", "CoQA")])
def test_questions_without_an_answer_are_refused_by_rules_that_score_none(rules, program):
    """They may be trained on, and those with references can be scored."""
    silent, answered = QuestionItem("1", "q", "c", (), True), QuestionItem("2", "q", "c", (Answer("c", 0),))
    train, head = [silent, answered], parse_head(f"span(rules={rules!r})")
    others = {"valid": [answered, replace(silent, references=("none",))], "test": [QuestionItem("3", "q", "c")]}
    require_known_labels([(head.for_items(train), {"train": train, **others})])  # or refuses
    with pytest.raises(UnifiedError) as caught:
        require_known_labels([(head.for_items(train), {"train": train, "valid": [silent]})])
    assert str(caught.value) == (
        f"valid, item 1: it has no answer, and the rules of {program} score none; leave rules={rules!r} out"
    )
    require_known_labels([(parse_head("span").for_items(train), {"train": train, "valid": train})])  # or refuses


TYPED = RelationItem("1", ("a", "b"), (Entity(0, 1, "PER"), Entity(1, 2, "ORG")), "no_relation")


@pytest.mark.parametrize(
    ("head", "train", "item", "says"),
    [
        (
            "tagging",
            WordsItem("1", ("a", "b"), ("B-X", "O")),
            WordsItem("2", ("a", "b"), ("O", "I-X")),
            "tag 'I-X' is none of those that are learnt, 'B-X', 'O'",
        ),
        (
            "relation",
            [TYPED, replace(TYPED, label="x")],
            replace(TYPED, label="y"),
            "label 'y' is none of those that are learnt, 'no_relation', 'x'",
        ),
        (
            "relation(design='types')",
            [TYPED, replace(TYPED, label="x")],
            replace(TYPED, entities=TYPED.entities[::-1]),
            "type of an entity 'SUBJ=ORG' is none of those that are learnt, 'SUBJ=PER', 'OBJ=ORG'",
        ),
        (
            "span(design='unilm', rules='coqa')",
            QuestionItem("1", "q", "c", (), choice="yes"),
            QuestionItem("2", "q", "c", (), choice="no"),
            "answer outside the passage 'no' is none of those that are learnt, 'yes'",
        ),
    ],
)
def test_what_no_training_item_has_is_refused_of_every_head(head, train, item, says):
    train = train if isinstance(train, list) else [train]
    understanding = parse_head(head).for_items(train)
    require_known_labels([(understanding, {"train": train, "test": train})])
    with pytest.raises(UnifiedError) as caught:
        require_known_labels([(understanding, {"train": train, "test": [item]})])
    assert str(caught.value) == f"test, item {item.id}: {says}"


def test_a_question_without_an_answer_is_refused_where_all_training_items_have_one():
    train = [QuestionItem("1", "q", "c", (Answer("c", 0),))]
    judged = (parse_head("span").for_items(train), {"train": train, "valid": [QuestionItem("2", "q", "c", (), True)]})
    with pytest.raises(UnifiedError) as caught:
        require_known_labels([judged])
    assert str(caught.value) == "valid, item 2: it has no answer, and only questions that have one are learnt"


def test_items_without_labels_are_known():
    for head, train, item in (
        ("tagging", WordsItem("1", ("a", "b"), ("B-X", "O")), WordsItem("2", ("a",))),
        ("regression", TextItem("1", "a", label=1.0), TextItem("2", "a", label=2.0)),
        ("choice", ChoiceItem("1", "c", ("a", "b"), label=0), ChoiceItem("2", "c", ("a", "b", "d"), label=2)),
    ):
        understanding = parse_head(head).for_items([train])
        require_known_labels([(understanding, {"train": [train], "test": [item]})])


def test_items_without_classes_are_counted_alone():
    assert data_notes({"train": items(("a", 1.0), ("b", 2.0))}) == ["items: train 2"]
    assert data_notes({"train": [WordsItem("1", ("a",))] * 1200}) == ["items: train 1,200"]


def test_a_classifier_is_compared_with_a_constant_answer():
    scored = items(("a", "x"), ("b", "x"), ("c", "y"), ("d", "x"), ("e", None))
    assert guess_note(scored, 75.0) == (
        "a constant answer, 'x', would have accuracy 75.00: the model has learnt little; try a higher --lr, more "
        "--epochs or other --seeds"
    )
    assert guess_note(scored, 75.01) is None and guess_note([], 0.0) is None
    third = items(("a", "x"), ("b", "x"), ("c", "y"))  # accuracies are not rounded before they are compared
    assert guess_note(third, 200 / 3) is not None and guess_note(third, 66.7) is None
    assert guess_note(items(("a", "x"), ("b", "x")), 100.0) is None  # nothing is better than all
    assert guess_note(items(("a", 1.0)), 0.0) is None and guess_note([WordsItem("1", ("a",), ("O",))], 0.0) is None


def test_what_silence_scores_is_said_where_a_model_may_leave_questions_unanswered():
    answers = {"a": ["x y"], "b": ["z"], "c": [], "d": [], "e": []}
    silent = score_squad_v2(answers, dict.fromkeys(answers, ""))
    assert silent["f1"] == pytest.approx(60)
    said = "questions that have an answer: F1 {}; a model that never answers has F1 60.00 on all"
    assert silence_note(silent) == said.format("0.00")
    assert silence_note(score_squad_v2(answers, dict.fromkeys(answers, "z"))) == said.format("50.00")
    for all_alike in ({"a": ["x"]}, {"a": []}):  # all questions have an answer, or none has
        assert silence_note(score_squad_v2(all_alike, {"a": "x"})) is None
    assert silence_note({"accuracy": 50.0}) is None


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
    assert capitals_note(written, small, scores) == capitals_note(written, small, BOTH) == said
    # The scores are what the sentence says of them.
    own = score_generation([small[0]["text"]], references[:1]).to_dict()
    assert own["exact_match"] == 0.0 and own["bleu"] < 100 and own["rougeL"] == 100.0
    assert capitals_note(written, [*small[:4], {"text": "It falls"}], scores) is None
    assert capitals_note(written[1:2], small[1:2], scores) is None  # references without capitals
    without_bleu = {name: score for name, score in scores.items() if name != "bleu"}
    assert capitals_note(written, small, without_bleu) is None and capitals_note(written, small, {"bleu": 1.0}) is None
