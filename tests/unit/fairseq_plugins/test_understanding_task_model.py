"""The task of understanding around its model: how it is built, validated, and scored over a whole split."""

import re

import numpy as np
import pytest
import torch
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask

from fairseq_plugins.criterions.unified_understanding import UnifiedUnderstandingCriterion
from fairseq_plugins.tasks import unified_understanding as module
from tests.support.task_folders import vocabulary
from tests.support.understanding_tasks import (
    ITEMS,
    built_model,
    item_folder,
    model_settings,
    understanding_task,
)
from unified.inference.sequences import Codec
from unified.model import TransformerConfig
from unified.tasks.heads.items import WordsItem, write_items
from unified.tasks.prediction import Predictor

BOTH = "classification, tagging"
WORDS = vocabulary()


@pytest.fixture
def make(tmp_path):
    """Makes the task on the items of these heads."""

    def made(head="classification", **options):
        names = [re.split(r"[(:]", entry)[0] for entry in head.split(", ")]
        data = tmp_path / "data"
        return understanding_task(data if data.exists() else item_folder(data, *names), head, **options)

    return made


def test_a_new_model_writes_nothing_and_has_the_heads_of_all_tasks(make):
    task, cfg = make(BOTH), model_settings()
    model = task.build_model(cfg)
    assert cfg.writes == "nothing" and model.encoder is None and [*model.core.heads] == ["classification", "tagging"]
    assert model.core.config.vocabulary_size == len(WORDS)
    assert task.codec == Codec.for_model(model.core.config, task.tokenizer, task.vocabulary, 16)
    assert model.learnt_heads == task.get_checkpoint_dict()["UnifiedUnderstandingTask"]
    assert model.core.heads["classification"].output.weight.shape == (2, 16)


def test_a_model_beside_whose_tasks_words_are_masked_predicts_tokens_too(make):
    model = built_model(make(auxiliary_masking=0.5))
    assert [*model.core.heads] == ["classification", "token"]


def test_the_model_of_a_checkpoint_is_taken_as_it_is(make):
    task, cfg = make(), model_settings(writes="cloze", token_types=6, max_positions=8)
    model = task.build_model(cfg, from_checkpoint=True)
    assert cfg.writes == "cloze" and model.decoder is not None and model.target_symbols is None
    assert task.codec.longest == 16
    with pytest.raises(SystemExit, match="^unified_lm: error: .*exceeds --max-positions 8$"):
        task.build_model(model_settings(max_positions=8), from_checkpoint=False)


def test_a_checkpoint_that_is_read_lacks_no_head_of_its_task(make):
    """It was drawn at random, and validated."""
    saved = built_model(make()).state_dict()
    saved = {name: value for name, value in saved.items() if "classification.output" not in name}
    built_model(make()).load_state_dict(saved)
    model = make().build_model(model_settings(writes="nothing"), from_checkpoint=True)
    with pytest.raises(SystemExit) as raised:
        model.load_state_dict(saved)
    assert str(raised.value) == (
        "unified_lm: error: the checkpoint lacks parameters of its task, which would be random: "
        "heads.classification (2 parameters)"
    )


@pytest.mark.parametrize(
    ("card", "cpu", "device"), [(False, False, "cpu"), (False, True, "cpu"), (True, True, "cpu"), (True, False, "cuda")]
)
def test_rows_are_as_long_as_the_device_allows(make, monkeypatch, card, cpu, device):
    asked = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    monkeypatch.setattr(module, "packed_length", lambda *given: asked.append(given) or 99)
    task = make(cpu=cpu)
    model = built_model(task)
    assert asked == [(model.core.transformer, 16, torch.device(device))] and task.row_length == 99
    task.load_dataset("train")
    assert task.datasets["train"].row_length == 99


def test_masked_words_are_those_of_the_training_items(make):
    task = make(BOTH, auxiliary_masking=0.5)
    model = built_model(task)
    every = np.arange(len(WORDS))
    words = {word for item in ITEMS["classification"]["train"] for word in item.text.split()}
    words |= {word for item in ITEMS["tagging"]["train"] for word in item.words}
    expected = sorted(WORDS.index(word) for word in words)
    assert model.target_symbols(every).tolist() == task.target_symbols(every).tolist() == expected
    assert task.target_symbols(every[expected[-1] :]).tolist() == [expected[-1]]
    nothing = make(BOTH)
    assert built_model(nothing).target_symbols(every).tolist() == [] == nothing.target_symbols(every[:3]).tolist()


def test_a_model_that_reads_named_entities_needs_items_that_say_where_they_are(make):
    with pytest.raises(SystemExit, match="^unified_lm: error: the model has entity-aware attention .* head tagging "):
        built_model(make(BOTH), sublayers="entity,feed_forward")


def test_of_the_heads_each_is_asked_whether_it_knows_named_entities(make):
    task = make()
    core = task.build_core(TransformerConfig(
        vocabulary_size=len(WORDS), layers=1, width=8, heads=2, sublayers="entity,feed_forward"
    ))  # fmt: skip
    assert core.config.reads_entities and task.codec.marks_entities


class Validation:
    """A split that is validated batch by batch: logs, predictions, and what is logged of all."""

    def __init__(self, task, split="valid", size=2):
        self.task, self.model = task, built_model(task)
        self.criterion = UnifiedUnderstandingCriterion(task)
        task.load_dataset(split)
        self.dataset = task.datasets[split]
        order = self.dataset.ordered_indices()
        self.batches = [batch.tolist() for batch in self.dataset.batch_by_size(order, max_sentences=size)]

    def run(self):
        logs = []
        for batch in self.batches:
            self.model.train()
            loss, size, log = self.task.valid_step(self.dataset.collater(batch), self.model, self.criterion)
            assert not self.model.training and not loss.requires_grad and size == log["sample_size"]
            logs.append(log)
        metrics.reset()
        with metrics.aggregate("valid", new_root=True) as found:
            self.task.reduce_metrics(logs, self.criterion)
        return logs, found.get_smoothed_values()

    def official(self, head, split="valid"):
        """Scores of all items of a head, predicted by themselves."""
        task, items = self.task.tasks[head], ITEMS[head][split]
        predictor = Predictor(self.model.core, head, task, self.task.codec)
        return task.score(items, list(predictor.predict(items)))


def test_a_validation_logs_the_official_scores_of_all_items(make):
    validation = Validation(make())
    assert sorted(map(len, validation.batches)) == [1, 2, 2]
    logs, found = validation.run()
    assert sum(log["share"] for log in logs) == pytest.approx(1) and len(validation.task.predictions.found) == 5
    expected = validation.official("classification")
    for measure in ("accuracy", "matthews", "macro_f1"):
        assert found[measure] == round(expected[measure], 2)
    assert found["bsz"] == 5 and found["loss"] > 0


def test_several_heads_are_scored_together(make):
    validation = Validation(make(BOTH))
    logs, found = validation.run()
    shares = sorted(log["share"] for log in logs)
    assert shares == pytest.approx(sorted(len(batch) / 8 for batch in validation.batches)) and sum(shares) == 1
    scores = {head: validation.official(head)["accuracy"] for head in ("classification", "tagging")}
    for head, score in scores.items():
        assert found[f"{head}_accuracy"] == round(score, 2)
    assert found["average"] == round(sum(scores.values()) / 2, 2)


@pytest.mark.parametrize("head", ["classification", BOTH])
@pytest.mark.parametrize("masking", [0.0, 0.5])
def test_every_metric_that_may_choose_a_checkpoint_is_logged_in_validation(make, head, masking):
    """``masked_loss`` was taken, and ended the training at its first validation."""
    with pytest.raises(SystemExit) as raised:
        make(head, auxiliary_masking=masking, best_checkpoint_metric="another")
    known = str(raised.value).partition("(known: ")[2].removesuffix(")").split(", ")
    _, found = Validation(make(head, auxiliary_masking=masking)).run()
    assert set(known) == set(found) - {"wps", "ups", "wpb", "bsz"}  # fairseq's own are of the speed


def test_items_in_windows_are_predicted_once(tmp_path, make):
    task = make("tagging", tokens_per_sample=4)
    items = [WordsItem(str(n), (f"w{n}",) * 5, ("x", "y", "x", "x", "y")) for n in range(3)]
    write_items(tmp_path / "data" / "valid.jsonl", items)
    validation = Validation(task, size=1)
    logs, found = validation.run()
    assert [log["share"] for log in logs] == [1 / 3] * 3 and task.predictions.split == "valid"
    assert {key: one["id"] for key, one in task.predictions.found.items()} == {("tagging", n): str(n) for n in range(3)}
    assert all(len(one["tags"]) == 5 for one in task.predictions.found.values())
    assert 0 <= found["accuracy"] <= 100


def test_a_batch_of_training_stands_in_without_being_predicted(make):
    """fairseq validates on one where a process has none of its own."""
    validation = Validation(make(), "train")
    log = validation.task.valid_step(
        validation.dataset.collater([0]), validation.model, validation.criterion
    )[2]  # fmt: skip
    assert validation.task.predictions.found == {} and validation.task.predictions.split is None
    assert log["share"] == 1 / 7


@pytest.mark.parametrize("head", ["classification:0.5", "classification:0.5, tagging:3"])
def test_what_was_trained_on_is_scored_with_a_checkpoint(make, head):
    """All items once, in the order of a validation: fairseq-validate ended in a traceback."""
    task = make(head)
    task.of_checkpoint = True
    validation = Validation(task, "train")
    logs, found = validation.run()
    assert sum(log["share"] for log in logs) == pytest.approx(1)
    several = len(task.tasks) > 1
    for name in task.tasks:
        expected = validation.official(name, "train")["accuracy"]
        assert found[f"{name}_accuracy" if several else "accuracy"] == round(expected, 2)


def test_a_validation_forgets_the_last_one(make, monkeypatch):
    begun = []
    monkeypatch.setattr(FairseqTask, "begin_valid_epoch", lambda self, *given: begun.append(given))
    task = make()
    task.predictions.add("valid", "classification", {0: {}})
    task.begin_valid_epoch(3, "model")
    assert begun == [(3, "model")] and task.predictions.found == {}


def test_scores_are_logged_where_batches_have_shares(make):
    """The scores are of all batches and processes together; training has none."""
    task, shares = make(), []
    task.predictions.log = shares.append
    criterion = UnifiedUnderstandingCriterion(task)
    log = {"classification:loss": 2.0, "classification:count": 4, "classification:correct": 3, "training": 1,
           "ntokens": 9, "nsentences": 2}  # fmt: skip
    metrics.reset()
    with metrics.aggregate("train", new_root=True) as found:
        task.reduce_metrics([log, {**log, "training": 0}], criterion)
    assert shares == [] and found["train_accuracy"].val == 75.0
    with metrics.aggregate("valid", new_root=True):
        task.reduce_metrics([{**log, "share": 0.25}, log, {**log, "share": torch.tensor(0.5)}], criterion)
    assert shares == [0.75] and type(shares[0]) is float
