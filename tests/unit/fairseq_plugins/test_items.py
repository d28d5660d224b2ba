"""Items of tasks as fairseq reads them: what an epoch holds, how batches are cut, and batches of several heads."""

import math

import numpy as np
import pytest
import torch
from fairseq import utils

from fairseq_plugins.dataset import to_batch
from fairseq_plugins.items import HeadsFairseqDataset, ItemFairseqDataset, TrainingOrder
from tests.golden.data import MARKS
from tests.golden.data import task as golden_task
from tests.golden.plan import HEADS
from tests.support.tiny_models import vocabulary
from tests.support.understanding_runs import codec
from unified import masks
from unified.data import randomness
from unified.data.collate import collate
from unified.data.example import Example
from unified.data.targets import TASK, TOKEN, ExampleTargets
from unified.tasks.heads import parse_head
from unified.tasks.heads.auxiliary import masked_all
from unified.tasks.heads.base import Encoded
from unified.tasks.heads.batches import runs_of, units_of

SPECIAL = vocabulary().special
LENGTHS = [4, 7, 5, 6, 4, 9]
#: Items of one, three and two examples.
OWNERS = np.array([0, 1, 1, 1, 2, 2])


def example(length: int) -> Example:
    tokens = np.array([SPECIAL.begin, *range(6, 4 + length), SPECIAL.separator])
    return Example(
        objective="task",
        tokens=tokens,
        positions=np.arange(length),
        token_types=np.zeros(length, dtype=np.int64),
        mask=masks.bidirectional(length),
        targets={TASK: ExampleTargets.at(np.array([0]), None)},
    )


ENCODED = Encoded([example(length) for length in LENGTHS], OWNERS, {"labels": [np.array([n]) for n in range(6)]})


def dataset(together=False, row_length=None, training=None, **more) -> ItemFairseqDataset:
    return ItemFairseqDataset(ENCODED, together, row_length, SPECIAL, "valid", "a", training, **more)


def test_a_unit_is_an_example_or_all_of_an_item():
    alone, whole = dataset(), dataset(together=True)
    assert len(alone) == 6 and [alone.num_tokens(i) for i in range(6)] == LENGTHS == [alone.size(i) for i in range(6)]
    assert len(whole) == 3 and [whole.size(i) for i in range(3)] == [4, 18, 13] and whole[2] == 2
    assert all(type(whole.num_tokens(i)) is int for i in range(3))


def test_without_training_the_longest_come_first():
    """Equal lengths in their order."""
    assert dataset().ordered_indices().tolist() == [5, 1, 3, 2, 0, 4]
    assert dataset(together=True).ordered_indices().tolist() == [1, 2, 0]


@pytest.mark.parametrize(("weight", "count"), [(1.0, 6), (0.5, 3), (2.5, 15), (0.01, 1), (2.0, 12)])
def test_an_epoch_of_training_reads_each_as_often_as_its_weight_says(weight, count):
    own = dataset(training=TrainingOrder(3, weight))
    orders = []
    for epoch in (1, 2):
        own.set_epoch(epoch)
        orders.append(own.ordered_indices())
        rng = randomness.generator(3, epoch, randomness.ORDER)
        whole = np.concatenate([rng.permutation(6) for _ in range(math.ceil(weight))])
        assert np.array_equal(orders[-1], whole[:count])
        times = np.bincount(orders[-1], minlength=6)
        assert times.max() - times.min() <= 1
    assert count == 1 or not np.array_equal(*orders)


def test_an_item_of_many_examples_is_read_in_runs():
    own = dataset(together=True, training=TrainingOrder(3, longest_run=2))
    seen = set()
    for epoch in range(1, 9):
        own.set_epoch(epoch)
        wanted = runs_of(units_of(OWNERS, True), 2, randomness.generator(3, epoch, randomness.RUNS))
        assert all(map(np.array_equal, own.units, wanted)) and len(own) == 3
        assert own.unit_lengths.tolist() == [sum(LENGTHS[i] for i in unit) for unit in wanted]
        seen.add(tuple(own.units[1].tolist()))
    assert seen == {(1, 2), (2, 3)}
    validating = dataset(together=True)
    assert [unit.tolist() for unit in validating.units] == [[0], [1, 2, 3], [4, 5]]


def test_batches_are_limited_in_units_and_tokens():
    own = dataset()
    order = [5, 1, 3, 2, 0, 4]
    for arguments, cut in (
        ({"max_sentences": 4}, [[5, 1, 3, 2], [0, 4]]),
        ({"max_tokens": 16}, [[5, 1], [3, 2, 0], [4]]),
        ({"max_tokens": 15, "max_sentences": 2, "required_batch_size_multiple": 8}, [[5], [1, 3], [2, 0], [4]]),
    ):
        assert [batch.tolist() for batch in own.batch_by_size(order, **arguments)] == cut


@pytest.mark.parametrize("row_length", [None, 9, 40])
def test_a_batch_holds_the_examples_of_its_units_and_says_whose_they_are(row_length):
    own = dataset(together=True, row_length=row_length)
    sample = own.collater([2, 0])
    members = sample["members"].tolist()
    assert sorted(members) == [0, 4, 5] and sample["id"].tolist() == [2, 0]
    assert (sample["nsentences"], sample["ntokens"], sample["split"], sample["head"]) == (2, 17, "valid", "a")
    assert sample["reading"]["labels"].tolist() == members and "masked" not in sample
    batch = to_batch(sample)
    rows = {None: 3, 9: 2, 40: 1}[row_length]
    assert len(batch.tokens) == rows and int((batch.tokens != SPECIAL.pad).sum()) == 17
    assert own.collater([]) == {}


@pytest.mark.parametrize("row_length", [None, 40])
def test_a_masked_copy_comes_along_in_training(row_length):
    own = dataset(row_length=row_length, training=TrainingOrder(3, masked=True))
    own.set_epoch(2)
    sample = own.collater([1, 4, 5])
    members = sample["members"].numpy()
    copy = to_batch(sample["masked"])
    examples = masked_all(ENCODED.examples, members, SPECIAL, 3, 2)
    rows = [examples] if row_length else [[one] for one in examples]
    wanted = [[one.tokens.tolist() for one in row] for row in rows]
    found = [row[row != SPECIAL.pad].tolist() for row in copy.tokens]
    assert sorted(sum(found, [])) == sorted(sum(sum(wanted, []), [])) and len(found) == len(rows)
    if row_length is None:
        expected = collate(rows, None, ("task",), SPECIAL.pad)
        assert torch.equal(copy.targets[TOKEN].labels, expected.targets[TOKEN].labels)
    assert len(copy.targets[TOKEN]) == sum(len(one.targets[TOKEN]) for one in examples) > 0
    assert "masked" not in dataset(training=TrainingOrder(3)).collater([0])


@pytest.mark.parametrize("head", HEADS)
def test_fairseq_rounds_no_number_of_a_batch(head, tmp_path):
    """With --fp16 or --bf16 it rounds what is float32, such as a year that is the label of a regression."""
    entry, reads = parse_head(head), codec(32, *MARKS)
    items = entry.head_class.read(golden_task(tmp_path, entry.head_class.name) / "train.jsonl")[:4]
    task, order = entry.for_items(items), TrainingOrder(3, masked=True)
    encoded, special = task.encode(items, reads), reads.vocabulary.special
    sample = ItemFairseqDataset(encoded, task.together, None, special, "train", head, order).collater([0, 1])
    types = []
    utils.apply_to_sample(lambda tensor: types.append(tensor.dtype), sample)
    assert len(types) > 10 and torch.float32 not in types


def heads() -> HeadsFairseqDataset:
    return HeadsFairseqDataset([dataset(), dataset(together=True), dataset(training=TrainingOrder(3, 0.5))])


def test_items_of_several_heads_stand_one_behind_another():
    own = heads()
    assert len(own) == 6 + 3 + 6 and own[7] == 7
    assert [own.num_tokens(i) for i in range(15)] == [*LENGTHS, 4, 18, 13, *LENGTHS] == [own.size(i) for i in range(15)]
    order = own.ordered_indices().tolist()
    assert order[:9] == [5, 1, 3, 2, 0, 4, 6 + 1, 6 + 2, 6 + 0] and len(order) == 12 and min(order[9:]) >= 9
    own.set_epoch(5)
    assert [one.epoch for one in own.datasets] == [5, 5, 5]


def test_a_batch_is_of_one_head():
    own = heads()
    batches = own.batch_by_size([0, 1, 2, 6, 7, 3, 9, 10], max_sentences=2)
    assert [batch.tolist() for batch in batches] == [[0, 1], [2], [6, 7], [3], [9, 10]]
    by_tokens = own.batch_by_size([0, 1, 6, 7], max_tokens=11)
    assert [batch.tolist() for batch in by_tokens] == [[0, 1], [6], [7]]
    assert own.batch_by_size([]) == [] and own.collater([]) == {}
    sample = own.collater([7, 6])
    assert sample["id"].tolist() == [1, 0] and sorted(sample["members"].tolist()) == [0, 1, 2, 3]


def test_training_reads_each_item_once_as_a_whole_where_nothing_else_is_said():
    assert TrainingOrder(3) == TrainingOrder(seed=3, weight=1.0, longest_run=None, masked=False)
    assert dataset().epoch == 1


def test_units_of_equal_lengths_stay_in_their_order():
    lengths = np.random.default_rng(0).integers(3, 6, 60).tolist()
    encoded = Encoded([example(length) for length in lengths], np.arange(60))
    own = ItemFairseqDataset(encoded, False, None, SPECIAL, "valid", "a")
    assert own.ordered_indices().tolist() == sorted(range(60), key=lambda number: (-lengths[number], number))
