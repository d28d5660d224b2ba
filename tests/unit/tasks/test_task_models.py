"""``TaskModel``: which of its heads answers, what each method gives, and models that answer together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.refusals import refused
from tests.support.task_folders import language_model
from tests.support.understanding_runs import codec, small_model
from tests.support.untrained_models import task_model, write_found_threshold
from unified import load
from unified.checkpoints import load_checkpoint, save
from unified.conversions.named_models import load_named
from unified.tasks.heads import Classification, Regression, Tagging
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.prediction import Predictor
from unified.tasks.task_model import NO_HEADS, TaskModel

CODEC = codec(32)
TASKS = {
    "classes": Classification(("a", "b", "c")),
    "numbers": Regression(),
    "tags": Tagging(("O", "B-X", "I-X")),
    "spans": SpanAnswers(("",), max_answer=5),
    "chains": Coreference(),
}


def model(**tasks) -> TaskModel:
    """A model with random weights for each head."""
    predictors = {}
    for name, task in (tasks or TASKS).items():
        torch.manual_seed(len(predictors))
        predictors[name] = Predictor(small_model(task, CODEC), "task", task, CODEC)
    first = next(iter(predictors.values()))
    return TaskModel(first.model, CODEC.vocabulary, CODEC.tokenizer, Path("folder"), predictors)


@pytest.fixture(scope="module")
def several() -> TaskModel:
    return model()


# ---------------------------------------------------------------- heads


def test_a_head_is_found_by_its_name_or_by_what_it_answers(several):
    for name, predictor in several.predictors.items():
        assert several.predictor(head=name) is predictor
        assert several.predictor(predictor.task.name) is predictor
    assert several.predictor("span", "tagging", head="spans") is several.predictors["spans"]
    alone = model(only=TASKS["classes"])
    assert alone.predictor() is alone.predictors["only"]


def test_a_head_of_another_package_is_of_the_type_that_it_inherits_from():
    class Ordinal(Classification):
        name = "ordinal"

    own = model(stars=Ordinal(TASKS["classes"].labels), tags=TASKS["tags"])
    assert own.predictor("classification", "regression") is own.predictors["stars"]
    assert own.predictor("classification", head="stars") is own.predictors["stars"]
    [found] = own.classify(["w1 w2"])
    assert found["label"] in TASKS["classes"].labels


def test_a_head_that_is_missing_or_one_of_several_is_refused(several):
    names = "classes, numbers, tags, spans, chains"
    choose = "; name one of them (head= in Python, `unified predict --head`)"
    assert refused(several.predictor) == f"the model has several heads, {names}{choose}"
    assert refused(several.predictor, "classification", "span") == (
        f"the model has several heads, classes, spans{choose}"
    )
    for arguments, head, wanted in (
        (("choice",), None, "choice"), (("choice", "relation"), None, "choice or relation"), ((), "x", "x"),
        (("span",), "tags", "tags, as span"),
        (("classification", "regression"), "tags", "tags, as classification or regression"),
    ):  # fmt: skip
        assert refused(several.predictor, *arguments, head=head) == (
            f"the model was fine-tuned for {names}, not for {wanted}"
        )


# ---------------------------------------------------------------- answers


def test_predictions_are_those_of_the_head(several):
    texts = ["w1 w2", "w3", "w4 w5 w6"]
    found = list(several.predict(({"text": text} for text in texts), head="classes"))
    items = [TextItem(str(i), text) for i, text in enumerate(texts, 1)]
    assert found == list(several.predictors["classes"].predict(items)) and [one["id"] for one in found] == list("123")
    assert next(several.predict([{"text": "w1", "id": "x", "label": None}], head="classes"))["id"] == "x"


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ("w1", "items: expected a list of dictionaries, got str"),
        ({"text": "w1"}, "items: expected a list of dictionaries, got dict"),
        (3, "items: expected a list of dictionaries, got int"),
        ([{"text": "w1"}, "w2"], "item 2: expected a dictionary, got str"),
        ([["w1"]], "item 1: expected a dictionary, got list"),
        ([{"text": "w1"}, {"words": ["w1"]}], "item 2: no field 'text'; its fields: 'words'"),
        ([{"text": "w1", "id": "x"}, {"text": "w1"}, {"text": " "}], "item 3: 'text' must be a text that is not empty"),
        ([{"text": "w1 \ud800"}], "item 1: 'text' holds half of a surrogate pair, such as a part of an emoji"),
    ],
)
def test_items_that_are_none_are_refused(several, items, says):
    assert refused(lambda: list(several.predict(items, head="classes"))) == says


def test_texts_are_classified_alone_or_in_pairs(several):
    alone = model(only=TASKS["classes"])
    items = [TextItem("1", "w1 w2"), TextItem("2", "w3")]
    assert alone.classify(["w1 w2", "w3"]) == list(alone.predictor().predict(items))
    pairs = [TextItem("1", "w1 w2", "w4"), TextItem("2", "w3", "w5 w6")]
    assert alone.classify(["w1 w2", "w3"], ["w4", "w5 w6"]) == list(alone.predictor().predict(pairs))
    numbers = several.classify(["w1 w2"], head="numbers")
    assert numbers == list(several.predictors["numbers"].predict([TextItem("1", "w1 w2")]))
    assert isinstance(numbers[0]["label"], float) and several.classify([], head="classes") == []
    for seconds, count in (([], "0 second texts"), (["w1"], "1 second text"), (["w1"] * 3, "3 second texts")):
        assert refused(alone.classify, ["w1", "w2"], seconds) == (f"2 texts but {count}; they must pair one to one")
    assert refused(alone.classify, "w1").startswith("texts: expected a list")
    assert refused(alone.classify, ["w1", "w2", ""]) == "item 3: 'text' must be a text that is not empty"
    assert refused(alone.classify, ["w1", "w2"], ["w3", 3]).startswith("item 2: 'second' must be ")
    assert refused(alone.classify, ["w1"], 3).startswith("seconds: expected a list")
    assert refused(several.classify, ["w1"]).startswith("the model has several heads, classes, numbers;")
    assert refused(model(only=TASKS["tags"]).classify, ["w1"]).endswith("not for classification or regression")


def test_words_are_tagged(several):
    (found,) = several.predict([{"words": ["w1", "w2", "w3"]}], head="tags")
    expected = list(zip(["w1", "w2", "w3"], found["tags"], strict=True))
    assert (
        several.tag("w1 w2\nw3") == several.tag(["w1", "w2", "w3"]) == several.tag("w1 w2 w3", head="tags") == expected
    )
    assert refused(several.tag, 3).startswith("words: expected a list")
    assert refused(several.tag, " ").startswith("'words' must ")  # it is the only item
    assert refused(several.tag, ["w1", 3]).startswith("words[1]: expected one text")
    assert refused(several.tag, "w1", head="classes").endswith("not for classes, as tagging")


def test_questions_are_answered_by_the_threshold_of_fine_tuning_or_another(several):
    question = {"question": "w1", "context": "w2 w3 w4 w5", "history": "w6"}
    (found,) = several.predict([question], head="spans")
    answer = several.answer("w1", "w2 w3 w4 w5", "w6")
    assert answer == {name: value for name, value in found.items() if name != "id"} and "id" not in answer
    assert several.answer("w1", "w2 w3 w4 w5", history="w6", head="spans") == answer
    spoken = several.answer("w1", "w2 w3 w4 w5")
    assert spoken["no_answer"] != answer["no_answer"]
    assert several.answer("w1", "w2 w3 w4 w5", threshold=0)["answer"] == ""
    assert several.answer("w1", "w2 w3 w4 w5", threshold=1)["answer"] != ""
    assert several.predictors["spans"].task == TASKS["spans"]
    for threshold in (True, "0.5", [0.5]):
        assert refused(several.answer, "w1", "w2", threshold=threshold) == (
            f"threshold must be a probability, got {threshold!r}"
        )
    for threshold in (2, -0.1, float("nan")):
        assert refused(several.answer, "w1", "w2", threshold=threshold) == (
            f"threshold must be from 0 to 1, got {threshold!r}"
        )
    assert refused(several.answer, "w1", " ") == "'context' must be a text that is not empty"
    assert refused(several.answer, "w1", "w2", head="tags").endswith("not for tags, as span")


def test_chains_are_given_as_their_words(several):
    sentences = ["w1 w2 w3", ["w4", "w5"]]
    words = ["w1", "w2", "w3", "w4", "w5"]
    (found,) = several.predict([{"sentences": [["w1", "w2", "w3"], ["w4", "w5"]]}], head="chains")
    assert found["chains"], "the random weights find a chain"
    expected = [[" ".join(words[first : last + 1]) for first, last in chain] for chain in found["chains"]]
    assert several.resolve(sentences) == several.resolve(sentences, head="chains") == expected
    assert refused(several.resolve, "w1 w2").startswith("sentences: expected a list")
    assert refused(several.resolve, ["w1", ["w2", 3]]).startswith("sentences[1][1]: expected one text")
    assert refused(several.resolve, ["w1"], head="tags").endswith("not for tags, as coreference")


# ---------------------------------------------------------------- files


def test_a_model_of_tasks_is_loaded_with_its_heads(tmp_path):
    task_model(tmp_path / "one", {"a": TASKS["classes"], "b": TASKS["numbers"]}, 24)
    for loaded in (TaskModel.from_pretrained(tmp_path / "one"), load(tmp_path / "one")):
        assert isinstance(loaded, TaskModel) and loaded.folder == tmp_path / "one"
        assert {name: one.task for name, one in loaded.predictors.items()} == {
            "a": TASKS["classes"], "b": TASKS["numbers"],
        }  # fmt: skip
        assert [(one.head, one.codec.longest, one.annotator) for one in loaded.predictors.values()] == [
            ("a", 24, None), ("b", 24, None),
        ]  # fmt: skip
        assert loaded.device == torch.device("cpu") and not loaded.model.training
    language_model(tmp_path / "language")
    assert refused(TaskModel.from_pretrained, tmp_path / "language") == (
        f"{tmp_path / 'language' / 'checkpoint_last.pt'}: {NO_HEADS}"
    )


def test_the_head_of_the_language_model_that_a_checkpoint_kept_is_left_out(tmp_path):
    path = task_model(tmp_path / "one", {"a": TASKS["classes"]}) / "checkpoint_last.pt"
    expected = TaskModel.from_pretrained(path).classify(["w1 w2"])
    content = load_checkpoint(path)
    content["model"]["core.heads.token.bias"] = torch.zeros(len(CODEC.vocabulary))
    save(content, path)
    assert TaskModel.from_pretrained(path).classify(["w1 w2"]) == expected
    content["model"]["core.heads.other.bias"] = torch.zeros(3)
    save(content, path)
    assert "heads.other" in refused(TaskModel.from_pretrained, path)


def test_the_threshold_beside_a_checkpoint_counts(tmp_path):
    folder = task_model(tmp_path / "one", {"qa": TASKS["spans"]})
    write_found_threshold(folder, 0.25)
    task = TaskModel.from_pretrained(folder).predictor().task
    assert task == TASKS["spans"].with_threshold(0.25, "valid")


def test_each_of_several_heads_has_a_threshold_of_its_own(tmp_path):
    folder = task_model(tmp_path / "both", {"one": TASKS["spans"], "two": TASKS["spans"]})
    for name, value in (("one", 0.1), ("two", 0.9)):
        write_found_threshold(folder / name, value, together=["one", "two"])
    handle = load(folder)
    assert [handle.predictor(head=name).task.threshold for name in ("one", "two")] == [0.1, 0.9]


def test_a_model_leaves_with_its_heads(tmp_path):
    loaded = TaskModel.from_pretrained(task_model(tmp_path / "one", {"only": TASKS["classes"]}, 24))
    loaded.save_pretrained(tmp_path / "out")
    again = load(tmp_path / "out")
    assert again.predictor().task.labels == ("a", "b", "c") and again.predictor().codec.longest == 24
    for ours, theirs in zip(loaded.classify(["w1 w2"]), again.classify(["w1 w2"]), strict=True):
        assert ours["probabilities"] == pytest.approx(theirs["probabilities"], abs=1e-5)


# ---------------------------------------------------------------- ensembles


def together(*models: TaskModel) -> TaskModel:
    return TaskModel.together([f"m{i}" for i in range(len(models))], models)


def test_models_that_answer_together_have_the_first_ones_words():
    models = [model(only=TASKS["classes"]) for _ in range(3)]
    assert together(models[0]) is models[0]
    joint = together(*models)
    assert joint.others == tuple(models[1:]) and joint.model is models[0].model and joint.folder == Path("folder")
    predictor = joint.predictor()
    assert predictor.others == tuple((one.model, "task") for one in models[1:])
    assert replace(predictor, others=()) == models[0].predictor()
    assert refused(TaskModel.together, [], []) == "an ensemble needs at least one model"
    assert refused(joint.save_pretrained, "x") == "save_pretrained asks a single model; this is an ensemble of 3"


def test_the_threshold_of_an_ensemble_is_the_mean():
    def spans(threshold: float, found_on: str | None = None) -> TaskModel:
        return model(only=TASKS["spans"].with_threshold(threshold, found_on))

    task = together(spans(0.1, "valid"), spans(0.3, "valid"), spans(0.5, "valid")).predictor().task
    assert task.threshold == pytest.approx(0.3) and task.threshold_found_on == "valid"
    task = together(spans(0.1, "valid"), spans(0.5)).predictor().task
    assert task.threshold == pytest.approx(0.3) and task.threshold_found_on is None
    task = together(model(only=TASKS["spans"]), spans(0.1)).predictor().task
    assert task.null_threshold == pytest.approx(0.3)  # 0.5 counts where nobody set one
    assert together(model(only=TASKS["spans"]), model(only=TASKS["spans"])).predictor().task == TASKS["spans"]
    answering = SpanAnswers((), max_answer=5)
    assert together(model(only=answering), model(only=answering)).predictor().task == answering


def test_models_that_do_not_belong_together_are_refused():
    first = model(only=TASKS["classes"])
    for other, says in (
        (model(only=Classification(("a", "b"))), "the labels differ (('a', 'b') and ('a', 'b', 'c'))"),
        (model(only=TASKS["numbers"]), "types of head differ (regression and classification)"),
        (model(x=TASKS["classes"], y=TASKS["classes"]), "numbers of heads differ (2 and 1)"),
    ):
        assert refused(together, first, other) == f"m1 and m0 cannot answer together: {says}"
    # Dropout, and the name of the only head, change nothing.
    assert together(first, model(other=Classification(("a", "b", "c"), dropout=0.7))).others
    pair = {"a": TASKS["classes"], "b": TASKS["classes"]}
    for changed, says in (
        ({"a": TASKS["classes"], "c": TASKS["classes"]}, "names of heads differ (a, c and a, b)"),
        ({"a": TASKS["classes"], "b": TASKS["numbers"]}, "the types of the heads b differ (regression and "
         "classification)"),
        ({"a": TASKS["classes"], "b": Classification(("a", "b"))}, "the labels of the heads b differ (('a', 'b') and "
         "('a', 'b', 'c'))"),
    ):  # fmt: skip
        assert refused(together, model(**pair), model(**changed)) == f"m1 and m0 cannot answer together: {says}"
    assert together(model(**pair), model(**pair)).predictors.keys() == pair.keys()
    chains = model(only=TASKS["chains"])
    assert refused(together, chains, chains) == (
        "m0, m1: models of only cannot answer together, because they have no common scores to average; give one model"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"longest": 16}, "the lengths of sequences differ (16 and 32)"),
        ({"pair_separators": 2}, "the separators between two texts differ (2 and 1)"),
        ({"cls_last": True}, "the orders of a sequence differ ((True, False, (0, 1)) and (False, False, (0, 1)))"),
        ({"mask": "left_to_right"}, "the masks of a sequence differ (left_to_right and bidirectional)"),
    ],
)
def test_models_that_read_otherwise_are_refused(change, says):
    first, other = model(only=TASKS["classes"]), model(only=TASKS["classes"])
    predictor = other.predictor()
    other.predictors["only"] = replace(predictor, codec=replace(predictor.codec, **change))
    assert refused(together, first, other) == f"m1 and m0 cannot answer together: {says}"


def test_an_ensemble_is_loaded_from_its_folders(tmp_path):
    folders = [task_model(tmp_path / name, {"a": TASKS["classes"]}) for name in ("one", "two")]
    joint = TaskModel.ensemble(folders)
    alone = [TaskModel.from_pretrained(folder) for folder in folders]
    assert joint.classify(["w1 w2"]) == TaskModel.together(list(map(str, folders)), alone).classify(["w1 w2"])
    assert joint.device == torch.device("cpu") and len(joint.others) == 1
    assert refused(TaskModel.ensemble, "one").startswith("paths: expected a list")
    assert "cuda" in refused(TaskModel.ensemble, folders, device="cuda:99")
    assert "entities" in refused(TaskModel.ensemble, folders, annotator=lambda texts: {})


def test_a_model_is_put_on_the_device_that_is_asked_for(tmp_path):
    folder = task_model(tmp_path / "one", {"a": TASKS["classes"]})
    assert TaskModel.of_checkpoint(load_named(folder), "meta").device == torch.device("meta")
