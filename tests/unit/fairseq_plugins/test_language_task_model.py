"""The task of language modelling around its model: how it is built, trained, validated, saved and gone on with."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf

from fairseq_plugins.criterions.unified_lm import UnifiedLMCriterion
from fairseq_plugins.evaluation import METRICS, GeneratedTexts
from fairseq_plugins.models.unified_lm import UnifiedLMModel, UnifiedLMModelConfig
from tests.support.language_tasks import SEPARATOR, WORDS, document_folder, language_task, pair_folder
from tests.support.token_files import write_documents
from unified.generation.lengths import PairLengths

PAIRS = [(3, 2), (5, 4), (26, 1)]


def model_settings(**changes):
    shape = {"layers": 1, "width": 16, "heads": 2, "max_positions": 40}
    return OmegaConf.structured({**vars(UnifiedLMModelConfig(**{**shape, **changes})), "_name": "unified_lm"})


@pytest.fixture
def pairs(tmp_path):
    """The task on a few pairs, with these options."""

    def make(**options):
        return language_task(pair_folder(tmp_path / "pairs", PAIRS), **options)

    return make


@pytest.fixture
def documents(tmp_path):
    """The task on a few documents, with these options."""

    def make(**options):
        return language_task(document_folder(tmp_path / "documents"), **{"objectives": "bert", **options})

    return make


def test_a_new_model_takes_what_the_objectives_and_the_data_say(pairs):
    task, cfg = pairs(), model_settings()
    assert task.state_dict() == {}
    model = task.build_model(cfg)
    assert type(model) is UnifiedLMModel and model.core.config.vocabulary_size == len(WORDS)
    assert cfg.writes == "cloze" and model.decoder is not None and "token" in model.core.heads
    assert task.state_dict() == {"pair_lengths": vars(PairLengths(0, 0, 4))} and task.generated == []
    assert task.continues is False and not task.lengths.from_checkpoint


def test_lengths_are_chosen_over_all_folders(tmp_path):
    folders = [pair_folder(tmp_path / str(n), [(3, n)]) for n in (2, 8)]
    task = language_task(*folders, max_target=0)
    task.build_model(model_settings(), from_checkpoint=False)
    assert task.lengths.trained == PairLengths(0, 0, 8)


def test_a_batch_without_room_for_a_row_is_refused_in_training_alone(documents, pairs):
    """fairseq-generate --max-tokens was held against --tokens-per-sample, of which no pair of it knows."""
    for make in (documents, pairs):
        task = make(max_tokens=31, tokens_per_sample=32)
        with pytest.raises(SystemExit, match="^unified_lm: error: --max-tokens 31 is less than one row of "):
            task.build_model(model_settings())
        assert task.build_model(model_settings(writes="nothing"), from_checkpoint=True) is not None


def test_padded_rows_may_be_shorter_than_the_longest_one(documents):
    task = documents(max_tokens=31, tokens_per_sample=32, padded=True)
    assert task.build_model(model_settings()) is not None


def test_documents_have_no_lengths(documents):
    task, cfg = documents(), model_settings()
    assert "next_sentence" in task.build_model(cfg).core.heads and cfg.writes == "left_to_right"
    assert task.state_dict() == {}


def test_a_new_model_that_does_not_fit_is_refused_in_one_line(documents):
    with pytest.raises(SystemExit) as raised:
        documents().build_model(model_settings(max_positions=31))
    assert str(raised.value) == "unified_lm: error: --tokens-per-sample 32 exceeds --max-positions 31"


def test_a_memory_needs_a_model_that_remembers(documents):
    with pytest.raises(SystemExit, match="^unified_lm: error: --memory 8 needs a model with relative or rotary "):
        documents(objectives="xlnet", memory=8).build_model(model_settings(positions="learned"))


@pytest.mark.parametrize(("writes", "continues"), [("cloze", False), ("left_to_right", True), ("nothing", False)])
def test_the_model_of_a_checkpoint_is_taken_as_it_is(pairs, writes, continues):
    task, cfg = pairs(), model_settings(writes=writes)
    model = task.build_model(cfg, from_checkpoint=True)
    assert cfg.writes == writes and model.target_symbols is None and task.state_dict() == {}
    assert task.continues is continues
    task.load_state_dict(PairLengths(0, 0, 4).state())
    assert task.lengths.from_checkpoint and task.lengths.source_limit() == 40 - 4 - 3


def test_symbols_that_training_or_validation_has_as_targets(tmp_path):
    """They are those of the training texts of all folders and of each split that was loaded, and the separator."""
    folders = [document_folder(tmp_path / str(first), first) for first in (4, 5)]
    write_documents(folders[0] / "valid", [[[20, 21]], [[20]]])
    task = language_task(*folders, objectives="bert")
    model = task.build_model(model_settings())
    every = np.arange(len(WORDS))
    trained = [SEPARATOR, 4, 5, *range(8, 14)]
    assert model.target_symbols(every).tolist() == task.target_symbols(every).tolist() == trained
    assert task.target_symbols(np.array([21, 7, 9])).tolist() == [9]
    task.load_dataset("valid")
    assert model.target_symbols(every).tolist() == [*trained, 20, 21]


def test_the_metric_of_generated_texts_is_logged_where_it_is_asked_for(pairs):
    task = pairs(eval_generate="bleu", eval_generate_args='{"beam": 3, "min_len": 2}')
    model = task.build_model(model_settings())
    (texts,) = task.generated
    assert type(texts) is GeneratedTexts and texts.metric is METRICS["bleu"]
    assert (
        texts.task is task and texts.model is model and (texts.generator.beam_size, texts.generator.min_len) == (3, 2)
    )
    task.build_model(model_settings())
    assert len(task.generated) == 1, "a second model begins anew"


class Scores:
    """Scores of texts; notes what it is asked."""

    def __init__(self):
        self.asked = []

    def begin(self):
        self.asked.append("begin")

    def add(self, sample):
        self.asked.append(sample)
        return {"_sum": 2.0}

    def log(self, logs):
        self.asked.append(logs)

    def write_with(self, *given):
        self.asked.append(given)


def test_official_scores_are_of_the_texts_of_the_model(pairs):
    task, cfg = pairs(), model_settings(writes="next")
    task.official = Scores()
    model = task.build_model(cfg)
    lengths = PairLengths(0, 0, 4)
    assert task.official.asked == [(model.core, task.vocabulary, "next", task.folder.path, lengths)]
    assert task.generated == [task.official]


class Optimizer:
    """Computes gradients as fairseq's optimizers do."""

    def backward(self, loss):
        loss.backward()


class Remembering:
    """A memory in name only."""

    def __init__(self):
        self.gathered, self.loaded, self.likes = 0, [], []

    def attach(self, sample, like):
        self.likes.append(like)
        return {**sample, "memory": self}

    def gather(self):
        self.gathered += 1

    def state(self):
        return ["states"]

    def load(self, state):
        self.loaded.append(state)


class Module(torch.nn.Linear):
    """A model of one weight."""

    def __init__(self):
        super().__init__(1, 1, bias=False)

    def set_num_updates(self, updates):
        self.updates = updates


def test_a_step_of_training_goes_on_from_the_memory_unless_it_stands_in_for_another(documents):
    task, model, seen = documents(), Module(), []

    def criterion(model, sample):
        seen.append(sample)
        return model.weight.sum() * 3, 1, {"log": 2}

    sample = {"id": 1}
    for memory in (None, Remembering()):
        task.stream_memory = memory
        for options in ({}, {"ignore_grad": True}):
            model.weight.grad = None
            loss, size, log = task.train_step(sample, model, criterion, Optimizer(), 7, **options)
            assert float(model.weight.grad) == (0 if options else 3) and (size, log) == (1, {"log": 2})
            assert float(loss.detach()) == (0 if options else 3 * float(model.weight.detach())) and model.updates == 7
    assert [one.get("memory") for one in seen] == [None, None, memory, None] and sample == {"id": 1}
    assert len(memory.likes) == 1 and memory.likes[0] is model.weight


def test_the_memory_is_gathered_before_saving_and_goes_into_the_checkpoint(documents):
    task = documents()
    task.before_saving()
    assert task.get_checkpoint_dict() == {"best_checkpoint_metric": "loss"}
    task.set_checkpoint_dict({"memory": ["of a checkpoint"]})
    task.stream_memory = memory = Remembering()
    task.before_saving()
    assert memory.gathered == 1
    kept = {"best_checkpoint_metric": "loss", "UnifiedLMTask": {"memory": ["states"]}}
    assert task.get_checkpoint_dict() == kept
    task.set_checkpoint_dict({})
    task.set_checkpoint_dict({"memory": ["of a checkpoint"]})
    assert memory.loaded == [["of a checkpoint"]]


def test_the_state_in_a_checkpoint_is_fairseqs_and_the_lengths(pairs):
    task = pairs()
    task.build_model(model_settings())
    task.state.merge_state_dict({"other": 1})
    assert task.state_dict() == {"other": 1, "pair_lengths": vars(PairLengths(0, 0, 4))}


def test_validation_begins_scores_adds_to_them_and_logs_them(documents, monkeypatch):
    begun = []
    monkeypatch.setattr(FairseqTask, "begin_valid_epoch", lambda self, *given: begun.append(given))
    task, model, scores = documents(), Module(), Scores()
    task.generated = [scores]
    task.begin_valid_epoch(4, model)
    assert begun == [(4, model)] and scores.asked == ["begin"]

    def criterion(model, sample):
        assert not model.training and not torch.is_grad_enabled()
        return model.weight.sum(), 5, {"loss": 1.0}

    samples = [{"target": torch.tensor([1])}, {"target": None}, {}]
    found = [task.valid_step(sample, model.train(), criterion) for sample in samples]
    assert [log for *_, log in found] == [{"loss": 1.0, "_sum": 2.0}, {"loss": 1.0}, {"loss": 1.0}]
    assert [size for _, size, _ in found] == [5] * 3 and torch.equal(found[0][0], model.weight.sum())
    assert scores.asked[1:] == samples[:1]


def test_a_validation_logs_losses_and_scores_together(documents):
    task, scores = documents(), Scores()
    task.generated = [scores]
    criterion = UnifiedLMCriterion(
        SimpleNamespace(loss_names=(), mixture=SimpleNamespace(names=()), special=WORDS.special), 0.0, "objectives"
    )
    logs = [{"loss": 2.0, "sample_size": 1, "ntokens": 4, "nsentences": 2}]
    metrics.reset()
    with metrics.aggregate("valid", new_root=True) as found:
        task.reduce_metrics(logs, criterion)
    assert scores.asked == [logs] and found["loss"].val == pytest.approx(2.0 / np.log(2))
