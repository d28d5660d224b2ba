"""fairseq's datasets over rows and pairs: batches, their tensors, and what is cut."""

import numpy as np
import pytest
import torch

from fairseq_plugins.dataset import (
    PairFairseqDataset,
    Planned,
    RowFairseqDataset,
    Side,
    StreamFairseqDataset,
    cut_item,
    to_batch,
)
from tests.support.token_files import SEPARATOR, SPECIAL, numbered_documents, random_sizes, write, write_documents
from unified.data.collate import collate
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.training.batches import Cut
from unified.training.row_dataset import RowDataset

ROW = 32
PAD = SPECIAL.pad


def rows(tmp_path, packed=True) -> RowDataset:
    sizes = random_sizes(np.random.default_rng(0), 14, 15, 20)
    texts = DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL)
    return RowDataset(texts, parse_objectives("bidirectional,left_to_right"), ROW, 3, packed)


def require_batch(sample, wanted):
    found, expected = to_batch(sample).tensors(), wanted.tensors()
    assert torch.equal(found["tokens"], expected["tokens"]) and set(found) == set(expected)


@pytest.mark.parametrize("packed", [True, False])
def test_a_batch_holds_the_examples_of_its_rows(tmp_path, packed):
    own = rows(tmp_path, packed)
    dataset = RowFairseqDataset(own, SPECIAL, shuffle=True)
    numbers = [3, 0, 5]
    sample = dataset.collater(numbers)
    examples = [own[number] for number in numbers]
    assert sample["id"].tolist() == numbers and sample["nsentences"] == sum(map(len, examples))
    assert sample["ntokens"] == sum(len(example.tokens) for row in examples for example in row)
    require_batch(sample, collate(examples, ROW if packed else None, own.objective_names, PAD))
    assert dataset.collater([]) == {} and len(dataset) == len(own) and dataset[4] == 4
    for number in numbers:
        length = ROW if packed else sum(len(example.tokens) for example in own[number])
        assert dataset.size(number) == dataset.num_tokens(number) == length


def test_training_reads_in_the_order_of_the_epoch_and_validation_as_the_file_lies(tmp_path):
    own = rows(tmp_path)
    for epoch in (1, 2):
        dataset = RowFairseqDataset(own, SPECIAL, shuffle=True)
        dataset.set_epoch(epoch)
        assert own.epoch == epoch and np.array_equal(dataset.ordered_indices(), own.order())
    assert RowFairseqDataset(own, SPECIAL, shuffle=False).ordered_indices().tolist() == list(range(len(own)))


def test_batches_hold_all_rows_and_one_that_is_too_long_is_refused(tmp_path):
    dataset = RowFairseqDataset(rows(tmp_path), SPECIAL, shuffle=True)
    order = dataset.ordered_indices()
    by_tokens = dataset.batch_by_size(order, max_tokens=3 * ROW + 1, required_batch_size_multiple=8)
    assert [len(batch) for batch in by_tokens[:-1]] == [3] * (len(by_tokens) - 1)
    assert np.array_equal(np.concatenate(by_tokens), order)
    by_rows = dataset.batch_by_size(order, max_tokens=3 * ROW, max_sentences=2)
    assert {len(batch) for batch in by_rows[:-1]} == {2} and np.array_equal(np.concatenate(by_rows), order)
    with pytest.raises(SystemExit, match=f"^unified_lm: error: --max-tokens {ROW - 1} is less than the longest row"):
        dataset.batch_by_size(order, max_tokens=ROW - 1)
    validation = RowFairseqDataset(rows(tmp_path), SPECIAL, shuffle=False)
    with pytest.raises(SystemExit) as raised:
        validation.batch_by_size(validation.ordered_indices(), max_tokens=ROW - 1)
    option = "--max-tokens-valid (or else --max-tokens)"
    said = f"{option} {ROW - 1} is less than the longest row, of {ROW} tokens"
    assert str(raised.value) == f"unified_lm: error: {said}"


@pytest.mark.parametrize(
    ("targets", "item", "longest"), [(True, "pair with its whole target", 7), (False, "source", 5)]
)
def test_a_pair_that_is_too_long_for_a_batch_is_refused(targets, item, longest):
    """fairseq ended in an AssertionError: references stay whole, so that they may exceed a row of training."""
    dataset = PairFairseqDataset(arrays(SOURCES), arrays(TARGETS) if targets else None, SPECIAL)
    order = dataset.ordered_indices()
    with pytest.raises(SystemExit) as raised:
        dataset.batch_by_size(order, max_tokens=longest - 1)
    option = "--max-tokens-valid (or else --max-tokens)"
    said = f"{option} {longest - 1} is less than the longest {item}, of {longest} tokens"
    assert str(raised.value) == f"unified_lm: error: {said}"
    batches = dataset.batch_by_size(order, max_tokens=longest, required_batch_size_multiple=8)
    assert np.array_equal(np.concatenate(batches), order)
    assert [len(batch) for batch in dataset.batch_by_size(order, max_sentences=2)] == [2, 1]


def test_nothing_is_dropped_by_size_and_an_epoch_goes_on_behind_the_rows_that_were_read(tmp_path):
    dataset = RowFairseqDataset(rows(tmp_path), SPECIAL, shuffle=True)
    indices = np.arange(5)
    assert dataset.filter_indices_by_size(indices, 1) == (indices, [])
    begun, now = Cut(8, 2, 1), Cut(9, 3, 2)
    assert dataset.position(7, begun, now) == (7, begun) and dataset.rows_of_epoch == len(dataset)
    assert not Planned.can_reuse_epoch_itr_across_epochs


class Streams:
    """Streams in name only."""

    streams = 4

    def split(self, streams):
        self.asked = streams

    def step(self, row):
        return row // self.streams


@pytest.mark.parametrize(("read", "behind"), [(0, 0), (1, 4), (4, 4), (5, 8), (8, 8)])
def test_streams_go_on_at_a_whole_step_of_all_and_are_cut_by_this_run(read, behind):
    dataset = StreamFairseqDataset(Streams(), SPECIAL, shuffle=True)
    begun, now = Cut(8, 2, 1), Cut(9, 3, 2)
    assert dataset.position(read, begun, now) == (behind, now) and dataset.rows_of_epoch is None
    dataset.split(6)
    assert dataset.rows.asked == 6


@pytest.mark.parametrize(
    ("maximum", "kept"), [(0, [9]), (1, [5, 9]), (2, [5, 6, 9]), (3, [5, 6, 7, 9]), (4, [5, 6, 7, 9])]
)
def test_an_item_keeps_its_separator_where_it_is_cut(maximum, kept):
    assert cut_item(np.array([5, 6, 7, 9]), maximum).tolist() == kept


@pytest.mark.parametrize("maximum", [0, 1, 2, 5])
def test_a_side_has_items_and_sizes_that_agree(tmp_path, maximum):
    items = [[5, 6, 7, SEPARATOR], [8, SEPARATOR], [SEPARATOR]]
    side = Side(write(tmp_path / "source", items), maximum)
    found = [side[i] for i in range(len(side))]
    assert len(side) == 3 and all(one.dtype == np.int64 for one in found)
    for one, item in zip(found, items, strict=True):
        assert one.tolist() == (item if not maximum else [*item[:-1][:maximum], SEPARATOR])
    assert side.sizes.tolist() == [len(one) for one in found] and side.sizes.dtype == np.int64


SOURCES = [[5, 6, 7, SEPARATOR], [8, SEPARATOR], [9, 10, SEPARATOR]]
TARGETS = [[11, SEPARATOR], [12, 13, 14, SEPARATOR], [SEPARATOR]]


def arrays(items):
    return [np.array(item, dtype=np.int64) for item in items]


def test_pairs_are_padded_on_the_right_and_targets_begin_with_the_separator():
    dataset = PairFairseqDataset(arrays(SOURCES), arrays(TARGETS), SPECIAL)
    assert len(dataset) == 3 and [dataset.size(i) for i in range(3)] == [7, 7, 5] == [
        dataset.num_tokens(i) for i in range(3)
    ]
    assert dataset.ordered_indices().tolist() == [2, 0, 1]
    sample = dataset.collater([dataset[i] for i in (1, 2)])
    assert sample["id"].tolist() == [1, 2] and (sample["nsentences"], sample["ntokens"]) == (2, 2 + 3 + 4 + 1)
    assert sample["net_input"]["src_tokens"].tolist() == [[8, SEPARATOR, PAD], [9, 10, SEPARATOR]]
    assert sample["net_input"]["src_lengths"].tolist() == [2, 3]
    assert sample["target"].tolist() == [[12, 13, 14, SEPARATOR], [SEPARATOR, PAD, PAD, PAD]]
    assert sample["net_input"]["prev_output_tokens"].tolist() == [[SEPARATOR, 12, 13, 14], [SEPARATOR, PAD, PAD, PAD]]
    assert "batch" not in sample and dataset.collater([]) == {}
    dataset.set_epoch(2)


def test_sources_alone_have_no_target():
    dataset = PairFairseqDataset(arrays(SOURCES), None, SPECIAL)
    assert dataset[1][0] == 1 and dataset[1][1].tolist() == [8, SEPARATOR] and dataset[1][2] is None
    assert [dataset.size(i) for i in range(3)] == [5, 3, 4]
    sample = dataset.collater([dataset[0]])
    assert (
        sample["target"] is None
        and sample["ntokens"] == 4
        and set(sample["net_input"]) == {"src_tokens", "src_lengths"}
    )


def test_pairs_come_with_the_batches_of_their_losses(tmp_path):
    source, target = (write(tmp_path / name, items) for name, items in (("source", SOURCES), ("target", TARGETS)))
    losses = RowDataset(PairTexts(source, target, SPECIAL), parse_objectives("target_cloze"), ROW, 3, packed=False)
    dataset = PairFairseqDataset(Side(source, 0), Side(target, 0), SPECIAL, losses)
    dataset.set_epoch(2)
    assert losses.epoch == 2
    sample = dataset.collater([dataset[i] for i in (2, 0)])
    require_batch(sample, collate([losses[2], losses[0]], None, losses.objective_names, PAD))


def test_pairs_of_equal_lengths_stay_in_their_order():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, 60)
    dataset = PairFairseqDataset([np.full(size, 5) for size in sizes], None, SPECIAL)
    assert dataset.ordered_indices().tolist() == sorted(range(60), key=lambda number: (sizes[number], number))
    assert [len(batch) for batch in dataset.batch_by_size(np.arange(5), max_sentences=5)] == [5]


def test_tokens_of_any_integers_become_those_of_torch():
    small = [np.array(item, dtype=np.int32) for item in SOURCES]
    dataset = PairFairseqDataset(small, small, SPECIAL)
    sample = dataset.collater([dataset[i] for i in range(3)])
    for tokens in (*sample["net_input"].values(), sample["target"]):
        assert tokens.dtype == torch.int64
