"""What all tasks of the plug-ins share: one dictionary, settings of the processor, checks, and batches of an epoch."""

from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq import criterions, models
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf

from fairseq_plugins import task as module
from fairseq_plugins.dataset import Planned
from fairseq_plugins.epochs import EpochRows
from fairseq_plugins.models import unified_lm  # noqa: F401  (registers the model)
from fairseq_plugins.task import DictionaryTask
from tests.support.tiny_models import vocabulary
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.training.batches import Cut

WORDS = vocabulary()


@pytest.fixture
def make(monkeypatch):
    """Makes tasks; gives how often the allocator was asked to keep freed memory."""
    calls = []
    monkeypatch.setattr(module, "keep_freed_memory", lambda: calls.append(1))

    def made(**options):
        return DictionaryTask(Namespace(**{"update_freq": [1], **options}), WORDS)

    made.calls = calls
    return made


def test_a_task_has_one_dictionary_for_everything(make):
    task = make(seed=3)
    assert task.vocabulary is WORDS and task.special == WORDS.special and task.cfg.seed == 3
    assert task.dictionary.symbols == WORDS.symbols
    assert task.source_dictionary is task.target_dictionary is task.dictionary
    assert task.max_positions() is None and task.of_checkpoint is False and task.datasets == {}
    assert task.before_saving() is None


def test_numbers_near_zero_are_zero(make):
    try:
        torch.set_flush_denormal(False)
        small = torch.tensor([1e-40])
        assert float(small / 1) > 0
        make()
        assert float(small / 1) == 0.0
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("card", [True, False])
def test_a_processor_keeps_freed_memory_where_there_is_no_card(make, monkeypatch, card):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    make()
    assert len(make.calls) == (0 if card else 1)


def test_a_model_of_a_checkpoint_is_looked_at_before_it_is_built(make, monkeypatch):
    built = []
    monkeypatch.setattr(models, "build_model", lambda cfg, task, from_checkpoint: built.append(from_checkpoint) or task)
    monkeypatch.setattr("fairseq.quantization_utils.quantize_model_scalar", lambda model, cfg: model)
    task, theirs = make(), {"_name": "transformer"}
    with pytest.raises(
        SystemExit, match="^unified_lm: error: the checkpoint names the model 'transformer' of fairseq "
    ):
        task.build_model(theirs, from_checkpoint=True)
    assert built == []
    assert task.build_model(theirs) is task.build_model(theirs, False) is task
    assert task.build_model({"_name": "unified_lm"}, from_checkpoint=True) is task
    assert built == [False, False, True]


def test_a_criterion_of_a_checkpoint_is_looked_at_before_it_is_built(make, monkeypatch):
    built = []

    def build(cfg, task, from_checkpoint):
        built.append((cfg["_name"], from_checkpoint))
        return "criterion"

    monkeypatch.setattr(criterions, "build_criterion", build)
    task = make()
    assert task.build_criterion({"_name": "cross_entropy"}) == "criterion"
    task.of_checkpoint = True
    with pytest.raises(SystemExit, match="^unified_lm: error: the checkpoint names the criterion 'cross_entropy' of "):
        task.build_criterion({"_name": "cross_entropy"})
    assert task.build_criterion({"_name": "unified_lm"}, from_checkpoint=True) == "criterion"
    assert built == [("cross_entropy", False), ("unified_lm", True)]


def test_several_processes_that_only_validate_are_refused(make, monkeypatch):
    """It was a KeyError in those that had fewer batches than the others."""
    monkeypatch.setattr(criterions, "build_criterion", lambda cfg, task, from_checkpoint: "criterion")
    monkeypatch.setattr(module.distributed_utils, "get_data_parallel_world_size", lambda: 2)
    task = make()
    assert task.build_criterion({"_name": "unified_lm"}) == "criterion"  # a training has as many as it wants
    task.of_checkpoint = True
    with pytest.raises(SystemExit) as raised:
        task.build_criterion({"_name": "unified_lm"})
    said = "--distributed-world-size must be 1 for fairseq-validate, got 2"
    assert str(raised.value) == f"unified_lm: error: {said}"


class Numbers(Planned):
    """Eleven rows of three tokens."""

    def __len__(self):
        return 11

    def __getitem__(self, index):
        return index

    def num_tokens(self, index):
        return 3

    size = num_tokens

    def set_epoch(self, epoch):
        self.epoch = epoch

    def ordered_indices(self):
        return np.arange(11)

    def collater(self, items):
        return list(items)


def test_an_epoch_has_the_batches_of_fairseq_and_its_position_in_rows(make):
    task, data = make(), Numbers()
    options = {"max_tokens": 9, "max_sentences": 2, "seed": 4, "num_workers": 0, "shard_id": 1, "data_buffer_size": 5}
    found = task.get_batch_iterator(data, num_shards=2, epoch=3, **options)
    theirs = FairseqTask.get_batch_iterator(task, data, num_shards=2, epoch=3, **options)
    assert type(found) is EpochRows and type(theirs) is EpochBatchIterator and found.dataset is data
    assert data.epoch == 3 and found.epoch == 3
    for name in ("seed", "num_shards", "shard_id", "buffer_size"):
        assert vars(found)[name] == vars(theirs)[name], name
    assert [batch.tolist() for batch in found.frozen_batches] == [[*range(i, min(i + 2, 11))] for i in range(0, 11, 2)]
    assert found.cut == Cut(9, 2, 2) and found.update_freq == 1
    by_tokens = task.get_batch_iterator(data, max_tokens=9)
    assert [len(batch) for batch in by_tokens.frozen_batches] == [3, 3, 3, 2]
    assert by_tokens.cut == Cut(9, None, 1) and (by_tokens.num_shards, by_tokens.epoch, data.epoch) == (1, 1, 1)


def test_batches_of_no_size_are_refused(make):
    """fairseq-validate has no default of either option, and ended in a traceback."""
    with pytest.raises(SystemExit, match="^unified_lm: error: --max-tokens or --batch-size must say how much a batch "):
        make().get_batch_iterator(Numbers())


def test_sockets_of_worker_processes_are_placed_where_there_are_some(make, monkeypatch):
    def no_place():
        raise UnifiedError("TMPDIR is long")

    monkeypatch.setattr(module, "place_sockets", no_place)
    assert make().get_batch_iterator(Numbers(), max_sentences=1, num_workers=0).num_workers == 0
    with pytest.raises(SystemExit) as raised:
        make().get_batch_iterator(Numbers(), max_sentences=1, num_workers=2)
    assert str(raised.value) == "unified_lm: error: TMPDIR is long"


@pytest.mark.parametrize(("epoch", "update_freq"), [(1, 4), (2, 7), (3, 2), (4, 2), (9, 2)])
def test_updates_have_as_many_batches_as_the_epoch_says_and_later_epochs_as_the_last(make, epoch, update_freq):
    found = make(update_freq=[4, 7, 2]).get_batch_iterator(Numbers(), max_sentences=1, num_shards=3, epoch=epoch)
    assert found.update_freq == update_freq and found.cut == Cut(None, 1, 3 * update_freq)


def test_rows_are_no_longer_than_the_table_of_positions(make):
    task = make(tokens_per_sample=64)
    task.require_positions(TransformerConfig(max_positions=64))
    task.require_positions(TransformerConfig(max_positions=63, positions="relative"))
    with pytest.raises(UnifiedError) as raised:
        task.require_positions(OmegaConf.create({"positions": "learned", "max_positions": 63}))
    assert str(raised.value) == "--tokens-per-sample 64 exceeds --max-positions 63"
