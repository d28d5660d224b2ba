"""Kinds of planning in one dataset: how documents are dealt to them, and rows of all kinds together."""

import pickle
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.rates import assert_rate
from tests.support.token_files import SPECIAL, Reads, numbered_documents, random_sizes, same, write, write_documents
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.objectives.bert import Bert
from unified.objectives.mixture import Mixture
from unified.planning.documents import DocumentTexts
from unified.planning.instances import Instances
from unified.planning.planners import Blocks, deal
from unified.planning.rows import RowLimits, plan_single_blocks
from unified.training.row_dataset import RowDataset

ROW = 128


@dataclass(frozen=True)
class ReadsInstances(Reads):
    """Returns BERT's instances as they are."""

    name: str = "instances"
    segments: int = 2
    wants_random_second: bool = True
    planner: Instances = Instances(next_sentence=True, short_share=0.1)


def corpus(tmp_path, sizes, **options):
    return DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL, **options)


@pytest.fixture
def documents(tmp_path):
    starts = np.arange(SPECIAL.first_sentinel + SPECIAL.sentinel_count) % 3 != 0
    return corpus(tmp_path, random_sizes(np.random.default_rng(0), 60, 12, 18), word_starts=starts)


def rows_of(dataset):
    """The examples of each row, made at once."""
    examples, per_row = dataset.examples(range(len(dataset)))
    all_of_them = iter(examples.split())
    return [list(islice(all_of_them, count)) for count in per_row.tolist()]


def indices(texts):
    """Bounds of texts of 10,000 tokens and the documents that hold them."""
    return SimpleNamespace(
        bounds=np.cumsum([0, *(s for d in texts for s in d)]), starts=np.cumsum([0, *map(len, texts)])
    )


def test_documents_are_dealt_by_weight():
    """Each document with the probability of the weight; together the tokens, but for one document at either border."""
    sizes = random_sizes(np.random.default_rng(3), 50, 8, 12)
    at = indices(sizes)
    totals, weights = np.array([sum(d) for d in sizes]), (0.5, 0.2, 0.3)
    hits = np.zeros((3, 50), dtype=int)
    for seed in range(500):
        dealt_out = deal(at.bounds, at.starts, weights, 512, np.random.default_rng(seed))
        dealt = np.stack([one.wanted for one in dealt_out])
        assert (dealt.sum(0) == 1).all() and all(np.array_equal(s.document_starts, at.starts) for s in dealt_out)
        assert (abs(dealt @ totals - np.array(weights) * totals.sum()) <= totals.max()).all()
        hits += dealt
    for kind, weight in enumerate(weights):
        for count in hits[kind].tolist():
            assert_rate(count, 500, weight)


@pytest.mark.parametrize("row_length, limit", [(64, 64 * 64), (128, 200_600 // 32), (8000, 8000)])
def test_long_documents_are_dealt_in_parts(row_length, limit):
    at = indices([[20] * 5000, [20] * 30, [20] * 5000])
    dealt_out = deal(at.bounds, at.starts, (0.5, 0.5), row_length, np.random.default_rng(0))
    starts = dealt_out[0].document_starts
    assert set(at.starts.tolist()) <= set(starts.tolist())
    parts = np.diff(at.bounds[starts])
    assert len(parts) == 1 + 2 * (100_000 // limit)
    assert parts.max() <= 2 * limit and sorted(parts.tolist())[1] >= limit - 20
    for one in dealt_out:
        assert abs(parts[one.wanted].sum() - 100_300) <= parts.max()
        assert one.wanted[starts[:-1] < 5000].any() and one.wanted[starts[:-1] >= 5030].any()


MIXED = "bert:1,seq2seq:1,spanbert:1"


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("mixture", [MIXED, "bert:2,random_spans,deshuffling", "bert(next_sentence=False),spanbert"])
def test_rows_of_all_kinds_keep_to_their_lengths(documents, mixture, packed):
    dataset = RowDataset(documents, parse_objectives(mixture), ROW, seed=4, packed=packed)
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        rows = rows_of(dataset)
        assert {example.objective for row in rows for example in row} == set(dataset.mixture.names)
        lengths = [sum(len(example.tokens) for example in row) for row in rows]
        assert dataset.lengths.tolist() == lengths and max(lengths) <= ROW
        assert [dataset.row_tokens(row) for row in range(len(rows))] == lengths
        if not packed:
            assert all(len(row) == 1 for row in rows)


def test_each_document_goes_to_one_kind(documents):
    """Blocks hold their documents once, instances theirs, and each epoch deals them anew."""
    dataset = RowDataset(documents, Mixture((ReadsInstances(), Reads()), (1, 1)), ROW, seed=2)
    total = int(documents.bounds[-1])
    edges = documents.bounds[documents.document_starts]
    dealt = []
    for epoch in range(1, 7):
        dataset.set_epoch(epoch)
        examples = [example for row in rows_of(dataset) for example in row]
        read = np.concatenate([e.tokens[1:-1] for e in examples if e.objective == "reads"]) - 10
        assert len(np.unique(read)) == len(read)
        in_blocks = np.unique(np.searchsorted(edges, read, side="right") - 1)
        assert len(read) == np.diff(edges)[in_blocks].sum()
        # The first segment of an instance is always its own document's.
        firsts = {
            int(np.searchsorted(edges, e.tokens[1] - 10, side="right")) - 1 for e in examples if e.objective != "reads"
        }
        assert firsts == set(range(documents.document_count)) - set(in_blocks.tolist())
        assert abs(len(read) - total / 2) <= np.diff(edges).max()
        dealt.append(tuple(in_blocks))
    assert len(set(dealt)) == 6


def test_batches_mix_the_kinds(documents):
    dataset = RowDataset(documents, parse_objectives(MIXED), ROW, seed=5)
    kinds = [{example.objective == "bert" for example in dataset[row]} for row in dataset.order()]
    assert all(len(kind) == 1 for kind in kinds)  # a row holds one kind
    flags = np.array([kind.pop() for kind in kinds])
    changes = int((flags[1:] != flags[:-1]).sum())
    assert_rate(changes, len(flags) - 1, 2 * flags.mean() * (1 - flags.mean()))


@pytest.mark.slow
def test_the_objectives_of_a_kind_share_it_by_weight(tmp_path):
    texts = corpus(tmp_path, [[3, 3]] * 1500)
    dataset = RowDataset(texts, parse_objectives("bert:2,left_to_right:3,right_to_left:1"), 64, seed=5)
    counts = Counter()
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        counts.update(example.objective for row in rows_of(dataset) for example in row)
    blocks = counts["left_to_right"] + counts["right_to_left"]
    assert abs(blocks - 3000 * 4 / 6) <= 2  # documents of one block each, dealt by tokens
    assert_rate(counts["left_to_right"], blocks, 3 / 4)


@pytest.mark.slow
@pytest.mark.parametrize("mixture", ["bert", MIXED])
def test_a_mixture_with_instances_depends_on_seed_and_epoch_alone(documents, mixture):
    def fresh(seed=1, epoch=3):
        dataset = RowDataset(documents, parse_objectives(mixture), ROW, seed=seed)
        dataset.set_epoch(epoch)
        return dataset

    rows, dataset = rows_of(fresh()), fresh(epoch=1)
    for epoch in (5, 3):
        dataset.set_epoch(epoch)
    assert same(rows, rows_of(dataset)) and same(rows, rows_of(pickle.loads(pickle.dumps(dataset))))
    assert same(rows[::-1], [dataset[row] for row in reversed(range(len(dataset)))])
    assert not same(rows, rows_of(fresh(epoch=4))) and not same(rows, rows_of(fresh(seed=2)))


def test_epochs_of_next_sentence_instances_differ_in_their_pairs(documents):
    dataset = RowDataset(documents, Mixture((ReadsInstances(),), (1,)), ROW, seed=1)
    pairs = []
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        pairs.append({tuple(e.tokens.tolist()) for row in rows_of(dataset) for e in row})
    assert len(pairs[0] & pairs[1]) < 0.2 * len(pairs[0])


def test_refusals(tmp_path, documents):
    one = DocumentTexts(write(tmp_path / "one", [[15, 2], [16, 2], [17, 2]]), SPECIAL)
    with pytest.raises(UnifiedError, match="holds one document, but bert wants second segments"):
        RowDataset(one, parse_objectives("bert"), ROW, seed=1)
    alone = RowDataset(one, parse_objectives("bert(next_sentence=False)"), ROW, seed=1)
    assert [len(example.tokens) for row in rows_of(alone) for example in row] == [5]
    with pytest.raises(UnifiedError, match="rows of 4 tokens hold no text beside the special tokens of bert"):
        RowDataset(documents, parse_objectives("bert,left_to_right"), 4, seed=1)
    assert len(RowDataset(documents, Mixture((Bert(),), (1,)), 5, seed=1)) > 0
    unknown = DocumentTexts(documents.file, SPECIAL)
    with pytest.raises(UnifiedError, match="objective bert: whole_words needs"):
        RowDataset(unknown, parse_objectives("bert(whole_words=True),left_to_right"), ROW, seed=1)


def test_a_kind_without_documents_is_left_out(tmp_path):
    """Two short documents cannot serve three kinds at once; over epochs each has its turn."""
    texts = corpus(tmp_path, [[5, 5], [6, 4]])
    mixture = Mixture((Bert(), Bert2(), Reads()), (1, 1, 1))
    dataset, seen = RowDataset(texts, mixture, 64, seed=1), Counter()
    for epoch in range(1, 40):
        dataset.set_epoch(epoch)
        seen.update({example.objective for row in rows_of(dataset) for example in row})
    assert set(seen) == {"bert", "bert2", "reads"} and all(count < 39 for count in seen.values())


@dataclass(frozen=True)
class Bert2(Bert):
    name = "bert2"
    short_share: float = 0.5


@pytest.mark.parametrize("packed", [True, False])
def test_texts_of_examples_of_unknown_length_are_planned_one_by_one(documents, packed):
    """Each has as many sentences as fit; nothing is said of rows."""
    plan = Blocks().plan(documents, RowLimits(64, 50, None, packed, 1.0), 1, 1, None)
    expected = plan_single_blocks(documents.bounds, documents.document_starts, 50, 0)
    assert plan.rows is None
    assert np.array_equal(plan.starts, expected.starts) and np.array_equal(plan.lengths, expected.lengths)


def test_rows_of_blocks_may_be_as_short_as_one_token(tmp_path):
    file = write_documents(tmp_path / "train", numbered_documents([[1, 1, 1], [2]]))
    dataset = RowDataset(DocumentTexts(file, SPECIAL), Mixture((Reads(),), (1,)), 3, seed=1)
    assert [len(example.tokens) for row in range(len(dataset)) for example in dataset[row]] == [3] * 5
    assert Blocks() == Blocks() and Blocks() != Instances(next_sentence=True, short_share=0.1)


def test_a_piece_of_a_long_document_has_64_rows_or_more():
    at = indices([[1] * 64_000])
    (dealt,) = deal(at.bounds, at.starts, (1.0,), 10, np.random.default_rng(0))
    assert np.diff(at.bounds[dealt.document_starts]).tolist() == [640] * 100
