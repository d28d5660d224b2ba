"""Predictions as items come, what a model is judged by, and which class loads and publishes it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.refusals import refused
from tests.support.task_folders import language_model
from tests.support.understanding_runs import codec, small_model
from tests.support.untrained_models import task_model
from unified import TaskModel, UnifiedLM, load
from unified.reports.model_card import model_card
from unified.reports.results import read_results, write_result
from unified.tasks import prediction, publishing
from unified.tasks.evaluation import SplitOutcome, outcomes
from unified.tasks.finetuning import Learnt
from unified.tasks.heads import Classification, Relation
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.questions import QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.loading import require_language_model, require_task_model
from unified.tasks.prediction import Predictor, batches_of, cut_note
from unified.tasks.publishing import publish
from unified.tasks.settings import Task

CODEC = codec(12)
CLASSES = Classification(("a", "b"))


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor(small_model(CLASSES, CODEC), "task", CLASSES, CODEC)


def items(count: int) -> list[TextItem]:
    return [TextItem(str(i), " ".join(f"w{(i + k) % 30}" for k in range(1 + 7 * i % 20))) for i in range(count)]


# ---------------------------------------------------------------- predictions


@torch.no_grad()
def test_predictions_are_those_of_each_item_alone(predictor):
    some = items(30)
    found = list(predictor.predict(some))
    assert [one["id"] for one in found] == [item.id for item in some] and any("cut" in one for one in found)
    for item, one in zip(some, found, strict=True):
        (alone,) = predictor.predict([item])
        assert alone.keys() == one.keys() and alone["label"] == one["label"]
        assert list(alone["probabilities"].values()) == pytest.approx(list(one["probabilities"].values()), abs=2e-5)
        lost = max(0, len(item.text.split()) - 10)  # ten tokens of a text have room between CLS and SEP
        assert one.get("cut") == (lost or None)
    few = list(replace(predictor, max_tokens=1).predict(some))
    assert [one["label"] for one in few] == [one["label"] for one in found]


@pytest.mark.parametrize("max_tokens", [1, 40, 100])
def test_a_long_passage_is_read_in_rows_of_limited_length(max_tokens, monkeypatch):
    """So that the model reads them in portions; all windows in one row give the same answers."""
    task, passages = SpanAnswers(stride=3, max_query=3), codec(16)
    reading = small_model(task, passages, attention_backend="blocked")
    whole = Predictor(reading, "task", task, passages, max_tokens=10**6)
    some = [QuestionItem(str(i), "w1 w2", " ".join(f"w{(i + k * k) % 30}" for k in range(n))) for i, n in
            enumerate((90, 3, 60))]  # fmt: skip
    model, rows = type(whole.model), list[tuple[int, int]]()
    hidden = model.hidden
    monkeypatch.setattr(
        model, "hidden", lambda self, batch, *given, **named: rows.append(tuple(batch.tokens.shape))
        or hidden(self, batch, *given, **named)
    )  # fmt: skip
    expected = list(whole.predict(some))
    assert len(rows) == 1 and rows[0][0] == 1 and rows[0][1] > 300  # on a CPU
    rows.clear()
    whole.model.tokens_at_once = 2 * max(max_tokens, 16)
    found = list(replace(whole, max_tokens=max_tokens).predict(some))
    assert all(width <= max(max_tokens, 16) and count * width <= 2 * max(max_tokens, 16) for count, width in rows)
    assert len(rows) > 3
    for one, other in zip(found, expected, strict=True):
        assert one["answer"] == other["answer"] and one["start"] == other["start"]
        assert [span["probability"] for span in one["nbest"]] == pytest.approx(
            [span["probability"] for span in other["nbest"]], abs=2e-5
        )


def test_items_are_read_ahead_in_groups_and_answered_in_their_order(predictor):
    read: list[int] = []

    def coming(count: int):
        for i in range(count):
            read.append(i)
            yield TextItem(str(i), "w1")

    found = replace(predictor, ahead=3).predict(coming(7))
    seen = []
    for one in found:
        seen.append((one["id"], len(read)))
    assert seen == [("0", 3), ("1", 3), ("2", 3), ("3", 6), ("4", 6), ("5", 6), ("6", 7)]
    assert list(predictor.predict([])) == [] and (predictor.ahead, predictor.max_tokens) == (512, 4096)


def test_items_of_one_document_are_answered_together(predictor, monkeypatch):
    batches: list[list[str]] = []
    task = type(predictor.task)
    monkeypatch.setattr(task, "document_of", lambda self, item: item.second)
    encode = task.encode
    monkeypatch.setattr(
        task, "encode", lambda self, some, *more: batches.append([one.id for one in some]) or encode(self, some, *more)
    )
    documents = "AABBBBCDDE"
    given = [TextItem(str(i), "w1", second) for i, second in enumerate(documents)]
    assert len(list(replace(predictor, ahead=3).predict(given))) == 10
    assert ["".join(documents[int(i)] for i in batch) for batch in batches] == ["AABBBB", "CDD", "E"]
    batches.clear()
    mixed = [TextItem(str(i), "w1", second) for i, second in enumerate(["A", "A", None, None, None, "A", "A"])]
    list(replace(predictor, ahead=2).predict(mixed))
    assert batches == [["0", "1"], ["2", "3"], ["4", "5", "6"]]


def test_a_predictor_says_what_it_reads_and_scores(predictor):
    assert predictor.reads == "sequences of at most 12 tokens"
    assert replace(predictor, codec=replace(CODEC, longest=1200)).reads == "sequences of at most 1,200 tokens"
    questions = replace(predictor, task=SpanAnswers(max_query=1200))
    assert questions.reads == "at most 1,200 tokens of a question and its history (max_query)"
    assert predictor.item({"text": "w1"}, 3) == TextItem("3", "w1")
    labelled = [TextItem("1", "w1", None, "a"), TextItem("2", "w2", None, "b")]
    found = [{"id": "1", "label": "a"}, {"id": "2", "label": "a"}]
    scores = predictor.scored(labelled, found).scores()
    assert scores == CLASSES.signed(labelled, found).scores() and scores["accuracy"] == 50.0
    assert predictor.official(labelled, found) == CLASSES.official(labelled, found)
    assert refused(replace, predictor, annotator=object()).startswith("no attention of the model reads named entities ")


def test_gradients_are_not_kept(predictor, monkeypatch):
    enabled = []
    model = type(predictor.model)
    scores = model.scores
    monkeypatch.setattr(
        model, "scores", lambda self, *given: enabled.append(torch.is_grad_enabled()) or scores(self, *given)
    )
    list(predictor.predict(items(2)))
    assert enabled == [False]


def test_models_that_answer_together_have_the_mean_of_their_probabilities(predictor):
    torch.manual_seed(9)
    other = small_model(CLASSES, CODEC)
    joint = replace(predictor, others=((other, "task"),))
    some = items(5)
    alone = [list(replace(predictor, model=one).predict(some)) for one in (predictor.model, other)]
    for i, found in enumerate(joint.predict(some)):
        mean = [np.mean([one[i]["probabilities"][label] for one in alone]) for label in "ab"]
        assert list(found["probabilities"].values()) == pytest.approx(mean, abs=2e-5)


def test_cuts_are_counted_in_a_sentence():
    assert cut_note(0, 5, "x") is None
    assert cut_note(1200, 3400, "x") == "1,200 of 3,400 texts were cut; the model reads x"


# ---------------------------------------------------------------- outcomes


def test_scores_of_several_items_have_intervals(predictor, tmp_path):
    """They are those of a bootstrap over the items, beside the score of a plain one."""
    labelled = [TextItem(str(i), f"w{i % 7}", None, "ab"[i % 3 == 0]) for i in range(30)]
    task = Task(name="mine", head="classification", read=dict)
    (found,) = outcomes(Learnt(task, tmp_path, {"valid": labelled}, {}, predictor, "accuracy"), None)
    assert found.intervals is not None and found.scores is not None
    assert found.intervals.keys() == found.scores.keys() - {"total", "signature"}
    right = np.array([item.label == one["label"] for item, one in zip(labelled, found.predictions, strict=True)])
    rng = np.random.default_rng(0)
    means = [100 * rng.choice(right, 30).mean() for _ in range(4000)]
    assert found.intervals["accuracy"] == pytest.approx(np.quantile(means, (0.025, 0.975)).tolist(), abs=3.4)


def test_the_development_set_is_predicted_first_and_training_items_are_not(predictor, tmp_path):
    labelled = [TextItem("1", "w1", None, "a")]
    splits = {"train": labelled, "alpha": labelled, "valid": labelled, "test": [TextItem("2", "w2")]}
    task = Task(name="mine", head="classification", read=dict, unlabelled=("test",))
    found = list(outcomes(Learnt(task, tmp_path, splits, {}, predictor, "accuracy"), None))
    assert [one.name for one in found] == ["valid", "alpha", "test"]
    predictions = list(predictor.predict(labelled))
    files, scores = CLASSES.official(labelled, predictions), CLASSES.signed(labelled, predictions).scores()
    assert found[0] == SplitOutcome("valid", predictions, files, scores, None, None)  # one item tells no interval
    assert found[2].scores is found[2].intervals is None and found[1].scores == found[0].scores
    assert all(one.threshold is None for one in outcomes(Learnt(task, tmp_path, splits, {}, predictor, "x"), 0.5))


# ---------------------------------------------------------------- loading and publishing


def test_a_model_is_loaded_as_what_it_is(tmp_path):
    tasks = task_model(tmp_path / "tasks", {"a": CLASSES})
    language = language_model(tmp_path / "language")
    model, lm = load(tasks), load(language)
    assert type(model) is TaskModel and type(lm) is UnifiedLM and lm.device == torch.device("cpu")
    assert require_task_model(model) is model and require_language_model(lm) is lm
    assert refused(require_task_model, lm).startswith("the model is a language model")
    assert refused(require_language_model, model) == (
        "the model was fine-tuned for a and predicts no tokens; take the language model it came from"
    )
    assert type(load(tasks, tasks)) is TaskModel and len(load(tasks, tasks).others) == 1
    assert type(load(language, language)) is UnifiedLM and len(load(language, language).others) == 1
    assert refused(load, tasks, language) == (
        f"{language} and {tasks} cannot answer together: types of model differ (UnifiedLM and TaskModel)"
    )
    assert refused(load) == "an ensemble needs at least one model"
    for folder in (language, tasks):
        assert refused(load, folder, annotator=object()).startswith("no attention of the model reads named entities ")
    assert refused(load, 3).startswith("paths[0]: expected the path of a file or folder")


def test_files_for_transformers_appear_beside_the_checkpoint(tmp_path, monkeypatch):
    folder = task_model(tmp_path / "run", {"a": CLASSES})
    before = {path.name for path in folder.iterdir()}
    publish(folder)
    made = {path.name for path in folder.iterdir()} - before
    assert {"config.json", "model.safetensors"} <= made and "README.md" not in made
    assert not list(folder.glob(".export*")) and load(folder).predictor().task == CLASSES
    write_result(
        folder, task="rte", run="r", scores={"valid": {"accuracy": 50.0}}, seed=1, command=["fairseq-train"],
        model={"name": "é", "sha256": None}, settings={}, data={}, published={}, checkpoint="last",
    )  # fmt: skip
    results = [folder / "results.json"]
    publish(folder, results)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (folder / "README.md").read_text(encoding="utf-8") == model_card(read_results(results), config, folder)
    # The weights come last: where they are, all files are.
    moved, replace = [], Path.replace
    monkeypatch.setattr(Path, "replace", lambda path, target: moved.append(path.name) or replace(path, target))
    publish(folder, results)
    assert moved[-1] == "model.safetensors" and {"config.json", "README.md"} < set(moved)
    # The files are made beside those that they replace, and nothing is left where that fails.
    broken = _Broken([])
    monkeypatch.setattr(publishing, "load", lambda path: broken)
    before = sorted(folder.iterdir())
    with pytest.raises(OSError):
        publish(folder)
    assert [path.parent for path in broken.made] == [folder] and sorted(folder.iterdir()) == before


@dataclass
class _Broken:
    made: list[Path]

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir()
        self.made.append(folder)
        (folder / "config.json").touch()
        raise OSError("no space")


def test_an_item_with_half_of_a_surrogate_pair_is_refused(predictor):
    assert predictor.item({"text": "w1"}, 3).id == "3"
    assert "surrogate" in refused(predictor.item, {"text": "w1 \ud800"}, 3)


def test_an_entity_of_a_type_that_training_lacks_is_refused_as_the_item_is_read():
    """A file of items is read to its end before anything is predicted."""
    task = Relation(("a", "b"), ("SUBJ=PER", "OBJ=ORG"), design="types", negative=None)
    reader = Predictor(small_model(task, CODEC), "task", task, CODEC)
    entities = [{"start": 0, "stop": 1, "type": "PER"}, {"start": 1, "stop": 2, "type": "ORG"}]
    fields = {"words": ["w1", "w2"], "entities": entities}
    assert reader.item(fields, 3).id == "3"
    assert refused(reader.item, fields | {"entities": entities[::-1]}, 3) == (
        "type of an entity 'SUBJ=ORG' is none of those that are learnt, 'SUBJ=PER', 'OBJ=ORG'"
    )


def test_the_longest_items_are_predicted_first_and_equal_ones_in_their_order(predictor, monkeypatch):
    """So that memory that does not suffice is missed at once, and a run on the same items makes the same batches."""
    some, seen = items(40), []

    def observed(order, lengths, *others):
        seen.append(([*order], [*lengths]))
        return batches_of(order, lengths, *others)

    monkeypatch.setattr(prediction, "batches_of", observed)
    list(predictor.predict(some))
    ((order, lengths),) = seen
    assert order == sorted(range(40), key=lambda i: -lengths[i]) and len({*lengths}) < 40
