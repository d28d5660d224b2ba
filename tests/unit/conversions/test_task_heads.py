"""Fine-tuned heads of transformers: which class is which head, its settings and parameters, and the reverse."""

from __future__ import annotations

import pytest
import torch

from unified.conversions.task_heads import BERT, OWN_CODE, XLNET, fine_tuned, head_fields, take_head, with_tuples
from unified.errors import UnifiedError

WIDTH = 4
#: Our head, with its settings -> what the classes of BERT and of XLNet are called behind their names.
HEADS = {
    "classification": ({"labels": ("no", "yes", "so")}, "ForSequenceClassification", "ForSequenceClassification"),
    "regression": ({}, "ForSequenceClassification", "ForSequenceClassification"),
    "tagging": ({"labels": ("O", "B")}, "ForTokenClassification", "ForTokenClassification"),
    "span": ({}, "ForQuestionAnswering", "ForQuestionAnsweringSimple"),
    "choice": ({}, "ForMultipleChoice", "ForMultipleChoice"),
}
SCORES = {"classification": 3, "regression": 1, "tagging": 2, "span": 2, "choice": 1}
POOLED = {"classification", "regression", "choice"}
#: Projections by family and head.
PROJECTIONS = {
    "Bert": {"span": "qa_outputs"},
    "XLNet": {"classification": "logits_proj", "regression": "logits_proj", "choice": "logits_proj",
              "span": "qa_outputs"},
}  # fmt: skip
HAVE_DROPOUT = {"Bert": {*HEADS} - {"span"}, "XLNet": {*HEADS} - {"span", "tagging"}}
SUMMARY = {"summary_type": "last", "summary_use_proj": True, "summary_activation": "tanh"}


def record(head: str, **settings) -> dict:
    return {"head": head, "settings": HEADS[head][0] | settings}


def ours(head: str, name: str = "mine") -> dict[str, torch.Tensor]:
    modules = {"output": SCORES[head]} | ({"pooler": WIDTH} if head in POOLED else {})
    shapes = {f"heads.{name}.{module}": (rows, WIDTH) for module, rows in modules.items()}
    weights = {f"{module}.weight": torch.randn(shape) for module, shape in shapes.items()}
    return weights | {f"{module}.bias": torch.randn(shape[0]) for module, shape in shapes.items()}


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


@pytest.mark.parametrize("family", [BERT, XLNET], ids=["bert", "xlnet"])
@pytest.mark.parametrize("head", HEADS)
def test_a_head_becomes_a_class_of_transformers_and_comes_back(family, head):
    settings = {"dropout": 0.4} if head in HAVE_DROPOUT[family.name] else {}
    own, parameters = record(head, **settings), ours(head)
    everything = parameters | {"transformer.x": torch.ones(1), "heads.token.bias": torch.ones(2)}
    encoder = {"below": torch.zeros(1)}
    fields, found, left_out = fine_tuned(family, "mine", own, everything, encoder)
    projection = PROJECTIONS[family.name].get(head, "classifier")
    pooler = "bert.pooler.dense" if family is BERT else "sequence_summary.summary"
    wanted = {f"{projection}.{part}": parameters[f"heads.mine.output.{part}"] for part in ("weight", "bias")}
    if head in POOLED:
        wanted |= {f"{pooler}.{part}": parameters[f"heads.mine.pooler.{part}"] for part in ("weight", "bias")}
    assert found.keys() == wanted.keys() | {"below"} and left_out == ["heads.token.bias"]
    assert all(torch.equal(found[name], value) for name, value in wanted.items())
    assert fields["architectures"] == [family.name + HEADS[head][1 if family is BERT else 2]]
    half = {name: value.half() for name, value in found.items()}
    taken, rest, unread = take_head(family, fields, half, own)
    assert rest == {"below": half["below"]} and unread == [] and taken.head_class.head == head
    assert taken.record == {head: {"head": head, "settings": dict(own["settings"])}}
    assert taken.parameters.keys() == {name.replace("mine", head) for name in parameters}
    for name, value in parameters.items():
        back = taken.parameters[name.replace("mine", head)]
        assert back.dtype == torch.float32 and torch.equal(back, value.half().float())


def test_the_fields_of_a_class_are_those_of_transformers():
    labels = {"id2label": {"0": "no", "1": "yes", "2": "so"}, "label2id": {"no": 0, "yes": 1, "so": 2}}
    classes = {"problem_type": "single_label_classification", **labels}
    number = {"problem_type": "regression", "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    tags = {"id2label": {"0": "O", "1": "B"}, "label2id": {"O": 0, "B": 1}}
    expected = {"classification": classes, "regression": number, "tagging": tags, "span": {}, "choice": {}}
    for family, dropout in (
        (BERT, "classifier_dropout"),
        (XLNET, "summary_last_dropout"),
        (OWN_CODE, "classifier_dropout"),
    ):
        for head, fields in expected.items():
            ending = HEADS[head][2 if family is XLNET else 1]
            wanted = {"architectures": [f"{family.name}{ending}"], **fields}
            wanted |= {dropout: 0.1} if head in HAVE_DROPOUT.get(family.name, HAVE_DROPOUT["Bert"]) else {}
            wanted |= SUMMARY if family is XLNET and head in POOLED else {}
            assert head_fields(family, record(head)) == wanted
    assert head_fields(BERT, record("choice", dropout=0.0))["classifier_dropout"] == 0.0
    assert (OWN_CODE.name, BERT.name, XLNET.name) == ("Unified", "Bert", "XLNet")


def test_heads_that_no_class_has():
    for family in (BERT, XLNET):
        assert family.class_of(record("tagging", features=(1, 2))) is None
        assert family.class_of(record("span", design="xlnet")) is None
        assert family.class_of({"head": "coreference", "settings": {}}) is None
        assert family.class_of(record("span", design="bert", features=None)).head == "span"


# From the settings of a file


def settings(name: str, **more) -> dict:
    return {"architectures": [name], **more}


def theirs(head: str, family: str = "Bert", scores: int | None = None) -> dict[str, torch.Tensor]:
    projection = PROJECTIONS[family].get(head, "classifier")
    pooler = {"Bert": "bert.pooler.dense", "XLNet": "sequence_summary.summary"}[family]
    rows = SCORES[head] if scores is None else scores
    state = {f"{projection}.weight": torch.ones(rows, WIDTH), f"{projection}.bias": torch.ones(rows)}
    return state | {f"{pooler}.weight": torch.ones(WIDTH, WIDTH), f"{pooler}.bias": torch.ones(WIDTH)}


@pytest.mark.parametrize("named", [{}, {"architectures": None}, {"architectures": []}, settings("BertForMaskedLM")])
def test_a_file_without_a_task_keeps_its_parameters(named):
    state = theirs("tagging")
    head, rest, unread = take_head(BERT, named, state, {})
    assert head is None and rest == state and rest is not state and unread == []


@pytest.mark.parametrize(
    ("more", "scores", "head"),
    [
        ({}, 2, "classification"),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, 3, "classification"),
        ({"id2label": {"0": "a"}}, 1, "regression"),
        ({"problem_type": "regression"}, 1, "regression"),
        ({"problem_type": "single_label_classification"}, 2, "classification"),
        ({"problem_type": None, "id2label": {"0": "LABEL_0"}}, 1, "regression"),
    ],
)
def test_one_score_is_a_number_and_more_are_classes(more, scores, head):
    taken, _, _ = take_head(BERT, settings("BertForSequenceClassification", **more), theirs(head, scores=scores), {})
    assert taken.head_class.head == head


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        ({}, ("LABEL_0", "LABEL_1")),
        ({"id2label": None}, ("LABEL_0", "LABEL_1")),
        ({"id2label": {str(i): f"l{i}" for i in (10, *range(10))}}, tuple(f"l{i}" for i in range(11))),
        ({"id2label": {"1": 7, "0": "x"}}, ("x", "7")),
    ],
)
def test_labels_are_in_the_order_of_their_numbers(more, labels):
    state = theirs("tagging", scores=len(labels))
    taken, rest, unread = take_head(BERT, settings("BertForTokenClassification", **more), state, {})
    assert taken.settings["labels"] == labels
    assert unread == ["bert.pooler.dense.weight", "bert.pooler.dense.bias"] and rest == {}


@pytest.mark.parametrize(
    ("more", "own", "dropout"),
    [
        ({}, {}, 0.1),
        ({"transformer": 0.3}, {}, 0.3),
        ({"transformer": 0.3, "head": None}, {}, 0.3),
        ({"transformer": 0.3, "head": 0.0}, {}, 0.0),
        ({"head": 0.5}, {"head": "choice", "settings": {"dropout": 0.2, "x": [1, [2]]}}, 0.2),
        ({"head": 0.5}, {"head": "span", "settings": {"dropout": 0.2}}, 0.5),
    ],
)
@pytest.mark.parametrize(
    ("family", "fields"),
    [
        (BERT, {"transformer": "hidden_dropout_prob", "head": "classifier_dropout"}),
        (XLNET, {"transformer": "dropout", "head": "summary_last_dropout"}),
    ],
    ids=["bert", "xlnet"],
)
def test_dropout_is_the_heads_own_or_that_of_the_transformer(family, fields, more, own, dropout):
    named = settings(f"{family.name}ForMultipleChoice", **{fields[part]: rate for part, rate in more.items()})
    taken, _, _ = take_head(family, named, theirs("choice", family.name), own)
    noted = {"x": (1, (2,))} if own.get("head") == "choice" else {}
    assert taken.settings == {"dropout": dropout, **noted}


def test_a_head_without_dropout_has_no_such_setting():
    taken, _, _ = take_head(BERT, settings("BertForQuestionAnswering", classifier_dropout=0.5), theirs("span"), {})
    assert taken.settings == {} and taken.record == {"span": {"head": "span", "settings": {}}}


@pytest.mark.parametrize(
    ("field", "value", "usual"),
    [("summary_type", "first", "last"), ("summary_use_proj", False, True), ("summary_activation", None, "tanh")],
)
def test_xlnets_summary_must_be_that_of_the_last_token(field, value, usual):
    said = f"config.json: {field} {value!r}; only {usual!r} is built"
    named = settings("XLNetForMultipleChoice", **{field: value})
    assert refusal(take_head, XLNET, named, theirs("choice", "XLNet"), {}) == said
    named = settings("XLNetForTokenClassification", **{field: value})
    assert take_head(XLNET, named, theirs("tagging", "XLNet"), {})[0].head_class.head == "tagging"


@pytest.mark.parametrize(
    ("name", "more", "change", "said"),
    [
        ("BertForSequenceClassification", {"problem_type": "multi_label_classification"}, {}, "problem_type "
         "'multi_label_classification': a text has several labels there; classification here gives it one"),
        ("BertForMultipleChoice", {}, {"bert.pooler.dense.bias": None, "classifier.bias": None},
         "BertForMultipleChoice, but the parameters lack classifier.bias, bert.pooler.dense.bias"),
        ("BertForMultipleChoice", {}, {"classifier.weight": torch.ones(2, WIDTH)}, "BertForMultipleChoice with 1 "
         "scores, but classifier.weight has 2; id2label must name each of them"),
        ("BertForSequenceClassification", {"problem_type": "regression"}, {"classifier.weight": torch.ones(2, WIDTH)},
         "BertForSequenceClassification with 1 scores, but classifier.weight has 2; a regression of several numbers is "
         "not built"),
        ("BertForTokenClassification", {}, {}, "BertForTokenClassification with 2 scores, but classifier.weight has "
         "1; id2label must name each of them"),
        ("BertForTokenClassification", {"id2label": {"0": "a", "x": "b"}}, {}, "id2label must name labels by their "
         "numbers, got {'0': 'a', 'x': 'b'}"),
        ("BertForTokenClassification", {"id2label": {"0": "a", "1": "a"}}, {}, "id2label names 'a' twice; a label may "
         "stand for one score"),
        ("BertForTokenClassification", {"id2label": {"0": "a", "1": "b\n"}}, {}, "id2label has the label 'b\\n'; "
         "labels take printed characters"),
        ("BertForTokenClassification", {"id2label": {"²": "a"}}, {}, "id2label must name labels by their numbers, "
         "got {'²': 'a'}"),
    ],
)  # fmt: skip
def test_what_is_no_head_of_ours_is_refused(name, more, change, said):
    state = {one: value for one, value in (theirs("choice") | change).items() if value is not None}
    assert refusal(take_head, BERT, settings(name, **more), state, {}) == f"config.json: {said}"


def test_lists_become_tuples_at_any_depth():
    assert with_tuples([1, ["a", [None]], {"b": [2]}]) == (1, ("a", (None,)), {"b": [2]})
    assert with_tuples("ab") == "ab"
