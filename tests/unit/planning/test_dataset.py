"""Rows of examples: the same stream whoever asks, for documents and for pairs."""

import pickle
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tests.support.token_files import (
    SPECIAL,
    Greedy,
    Reads,
    equal,
    numbered_documents,
    random_sizes,
    same,
    write,
    write_documents,
)
from tests.unit.planning.test_pairs import PAIRED, ROW, random_pairs, write_pairs
from unified.data import randomness
from unified.data.collate import collate
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.objectives.bert import Bert
from unified.objectives.mixture import Mixture
from unified.objectives.t5 import Deshuffling, RandomSpans
from unified.objectives.unilm import Bidirectional, LeftToRight, RightToLeft, Seq2Seq
from unified.planning.documents import DocumentTexts
from unified.runtime.sockets import place_sockets
from unified.training.row_dataset import RowDataset, longest_text

UNILM = Mixture((Bidirectional(), Seq2Seq(), LeftToRight(), RightToLeft()), (2, 2, 1, 1))
#: Examples longer than their texts by 2, by a part of them, and twice as long.
GROWING = Mixture((LeftToRight(), RandomSpans(), Deshuffling()), (1, 1, 1))
#: Texts planned in two ways, some packed when the examples' lengths are known.
MIXED = Mixture((Bert(), Seq2Seq(), RandomSpans()), (2, 1, 1))


@pytest.fixture
def documents(tmp_path):
    sizes = random_sizes(np.random.default_rng(0), 14, 15, 20)
    return DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL)


@pytest.fixture
def pairs(tmp_path):
    return write_pairs(tmp_path, random_pairs(80))


@pytest.fixture(autouse=True, scope="module")
def sockets():
    """Workers of torch's loader fail where TMPDIR is long, and who waits for them waits forever."""
    place_sockets()


def stream(dataset, workers, epochs=(1, 2), batch_size=4):
    """All batches of some epochs through torch's loader, as dictionaries of tensors."""
    batches = []
    for epoch in epochs:
        dataset.set_epoch(epoch)
        loader = DataLoader(
            dataset,
            batch_size=batch_size,
            sampler=dataset.order().tolist(),
            num_workers=workers,
            collate_fn=partial(collate, row_length=None, objectives=dataset.mixture.names, pad=SPECIAL.pad),
        )
        batches.append([batch.tensors() for batch in loader])
    return batches


def equal_batches(one, other):
    return len(one) == len(other) and all(map(equal_tensors, one, other))


def equal_tensors(one, other):
    """Whether tensors, or dictionaries of them, are equal."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal_tensors(one[name], other[name]) for name in one)
    return one is other if one is None else torch.equal(one, other)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more workers than this machine has cores
@pytest.mark.parametrize(
    "kind, mixture", [("documents", UNILM), ("documents", GROWING), ("documents", MIXED), ("pairs", PAIRED)]
)
@pytest.mark.parametrize("packed", [True, False])
def test_the_stream_is_the_same_for_any_number_of_workers(kind, mixture, packed, request):
    texts = request.getfixturevalue(kind)
    streams = [stream(RowDataset(texts, mixture, ROW, seed=7, packed=packed), workers) for workers in (0, 3)]
    assert len(streams[0][0]) > 5
    for other in streams[1:]:
        assert all(equal_batches(a, b) for a, b in zip(streams[0], other, strict=True))
    assert not equal_batches(*streams[0])


@pytest.mark.slow
def test_two_processes_see_what_one_sees(documents):
    alone = RowDataset(documents, UNILM, ROW, seed=7)
    alone.set_epoch(2)
    shards = []
    for process in range(2):
        dataset = RowDataset(documents, UNILM, ROW, seed=7)
        dataset.set_epoch(2)
        mine = dataset.order()[process::2].tolist()
        loader = DataLoader(dataset, sampler=mine, batch_size=None, num_workers=2, collate_fn=list)
        shards.append(dict(zip(mine, loader, strict=True)))
    assert sorted([*shards[0], *shards[1]]) == list(range(len(alone)))
    for shard in shards:
        assert same(shard.values(), (alone[row] for row in shard))


def test_packed_rows_give_two_processes_as_many_real_tokens(tmp_path):
    sizes = random_sizes(np.random.default_rng(0), 30, 15, 20)
    documents = DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL)
    dataset = RowDataset(documents, UNILM, ROW, seed=7)
    order = dataset.order()
    order = order[: len(order) // 8 * 8].reshape(-1, 2, 4)  # updates, processes, rows of a batch
    tokens = np.vectorize(lambda row: sum(len(example.tokens) for example in dataset[row]))(order).sum(-1)
    first, second = tokens.T
    assert abs(first.sum() / second.sum() - 1) < 0.02
    assert np.abs(first / second - 1).max() < 0.2


@pytest.mark.slow
def test_a_restart_in_mid_epoch_goes_on_where_it_stopped(pairs, documents):
    for texts, mixture in ((pairs, PAIRED), (documents, UNILM), (documents, GROWING), (documents, MIXED)):
        whole = stream(RowDataset(texts, mixture, ROW, seed=3), 0, epochs=(2,))[0]
        restarted = RowDataset(texts, mixture, ROW, seed=3)
        restarted.set_epoch(2)
        rest = restarted.order()[8:].tolist()  # two batches of four were seen
        batches = [
            collate([restarted[row] for row in rest[i : i + 4]], None, mixture.names, SPECIAL.pad).tensors()
            for i in range(0, len(rest), 4)
        ]
        assert equal_batches(whole[2:], batches)


def test_a_row_depends_on_nothing_that_was_asked_before(documents):
    dataset = RowDataset(documents, UNILM, ROW, seed=1)
    forward = [dataset[row] for row in range(len(dataset))]
    backward = [dataset[row] for row in reversed(range(len(dataset)))][::-1]
    dataset.set_epoch(5)
    dataset.set_epoch(1)
    assert same(forward, backward) and same(forward, (dataset[row] for row in range(len(dataset))))
    other_seed = RowDataset(documents, UNILM, ROW, seed=2)
    assert not same(forward, (other_seed[row] for row in range(len(other_seed))))


def test_a_pickled_copy_gives_the_same_rows(documents, pairs):
    for texts, mixture in ((documents, UNILM), (documents, GROWING), (pairs, PAIRED)):
        dataset = RowDataset(texts, mixture, ROW, seed=1)
        dataset.set_epoch(3)
        copy = pickle.loads(pickle.dumps(dataset))
        assert same((dataset[row] for row in range(len(dataset))), (copy[row] for row in range(len(copy))))


@pytest.mark.parametrize("packed", [True, False])
def test_an_epoch_holds_every_token_once(documents, packed):
    dataset = RowDataset(documents, Mixture((Reads(segments=2), Reads(name="one")), (1, 1)), ROW, seed=4, packed=packed)
    total = int(documents.bounds[-1])
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        tokens = [token for row in range(len(dataset)) for e in dataset[row] for token in e.tokens.tolist()]
        assert sorted(token for token in tokens if token >= 10) == list(range(10, 10 + total))
    if not packed:
        assert all(len(dataset[row]) == 1 for row in range(len(dataset)))


@pytest.mark.parametrize("packed", [True, False])
def test_an_epoch_of_growing_examples_holds_every_text_once(documents, packed):
    dataset = RowDataset(documents, Mixture((Deshuffling(), Reads()), (1, 1)), ROW, seed=4, packed=packed)
    rows = []
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        rows.append([dataset[row] for row in range(len(dataset))])
        assert max(sum(len(example.tokens) for example in row) for row in rows[-1]) <= ROW
        # The target of one objective and the whole of the other: every token once.
        texts = [
            e.targets["token"].labels[:-1] if e.objective == "deshuffling" else e.tokens[1:-1]
            for row in rows[-1]
            for e in row
        ]
        total = int(documents.bounds[-1])
        assert np.sort(np.concatenate(texts)).tolist() == list(range(10, 10 + total))
    assert not same(*rows)


def test_texts_are_as_long_as_the_most_growing_objective_allows():
    tokens = np.arange(1, 200)
    for mixture in (UNILM, GROWING, Mixture((RandomSpans(),), (1,))):
        fitting = [n for n in tokens if all(o.lengths(np.array(n)) <= ROW for o in mixture.objectives)]
        assert longest_text(mixture, ROW) == max(fitting)
    assert longest_text(GROWING, 4) == 0


def test_packing_does_not_change_a_pair(pairs):
    packed, alone = (RowDataset(pairs, PAIRED, ROW, seed=9, packed=packed) for packed in (True, False))
    for dataset in (packed, alone):
        dataset.set_epoch(2)
    examples = [example for row in range(len(packed)) for example in packed[row]]
    key = lambda example: (example.tokens.tolist(), example.targets["token"].labels.tolist())  # noqa: E731
    singles = sorted((alone[row][0] for row in range(len(alone))), key=key)
    assert all(map(equal, sorted(examples, key=key), singles)) and len(examples) == len(singles)


def test_equal_texts_are_corrupted_differently(tmp_path):
    texts = write_pairs(tmp_path, [(range(10, 20), range(30, 50))] * 60)
    dataset = RowDataset(texts, PAIRED, ROW, seed=2)
    seen = []
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        seen += [
            tuple(example.targets["token"].output_indices[:, 0].tolist())
            for row in range(len(dataset))
            for example in dataset[row]
        ]
    assert len(seen) == 120 and len(set(seen)) > 110  # 14 of 21 indices: 116,280 choices


def test_random_streams_do_not_meet():
    keys = [
        (seed, epoch, purpose, index) for seed in (0, 1) for epoch in (0, 1) for purpose in (0, 3) for index in (0, 1)
    ]
    drawn = np.array([randomness.generator(*key).random(500) for key in keys])
    assert len(np.unique(drawn)) == drawn.size
    assert np.array_equal(drawn[3], randomness.generator(*keys[3]).random(500))


def test_objectives_are_drawn_by_weight_and_anew_in_every_epoch(tmp_path):
    sizes = [[4, 4]] * 1500
    texts = DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL)
    dataset = RowDataset(texts, UNILM, 64, seed=5)
    drawn = []
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        drawn.append(dataset.examples(range(len(dataset)))[0].objectives)
    counts = Counter(drawn[0] + drawn[1])
    for name, weight in zip(UNILM.names, UNILM.weights, strict=True):
        assert abs(counts[name] - 3000 * weight) < 5 * np.sqrt(3000 * weight * (1 - weight))
    agreement = np.mean([a == b for a, b in zip(*drawn, strict=True)])
    assert abs(agreement - sum(w * w for w in UNILM.weights)) < 5 * np.sqrt(0.25 / 1500)


#: Objectives of 2 and of 3 special symbols.
TWO_AND_THREE = Mixture((Seq2Seq(), LeftToRight()), (1, 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind, mixture", [("documents", TWO_AND_THREE), ("documents", GROWING), ("pairs", PAIRED)])
@pytest.mark.parametrize("packed", [True, False])
def test_lengths_are_those_of_the_rows(kind, mixture, packed, request):
    texts = request.getfixturevalue(kind)
    dataset = RowDataset(texts, mixture, ROW, seed=6, packed=packed)
    dataset.set_epoch(4)
    lengths = [sum(len(example.tokens) for example in dataset[row]) for row in range(len(dataset))]
    assert dataset.lengths.tolist() == lengths
    assert [dataset.row_tokens(row) for row in range(len(dataset))] == lengths
    order = dataset.order()
    assert sorted(order.tolist()) == list(range(len(dataset)))
    if packed:
        batch = collate([dataset[row] for row in range(len(dataset))], ROW, mixture.names, SPECIAL.pad)
        assert (batch.mask.query_documents() == -1).double().mean().item() == pytest.approx(
            1 - sum(lengths) / (ROW * len(dataset))
        )
    else:
        assert (np.diff(dataset.lengths[order]) >= 0).all()
        dataset.set_epoch(5)
        assert not np.array_equal(order, dataset.order())


def test_rows_with_random_seconds_stay_within_their_length(documents):
    dataset = RowDataset(documents, UNILM, ROW, seed=6)
    for epoch in (1, 2, 3):
        dataset.set_epoch(epoch)
        for row in range(len(dataset)):
            assert sum(len(example.tokens) for example in dataset[row]) <= dataset.row_tokens(row) <= ROW


def test_refusals(documents, pairs, tmp_path):
    with pytest.raises(UnifiedError, match="holds documents, but target_cloze needs source/target pairs"):
        RowDataset(documents, PAIRED, ROW, seed=1)
    with pytest.raises(UnifiedError, match="holds source/target pairs, but bidirectional, seq2seq, .* needs documents"):
        RowDataset(pairs, UNILM, ROW, seed=1)
    with pytest.raises(
        UnifiedError, match="rows of 3 tokens hold no text beside the special tokens of bidirectional, seq2seq"
    ):
        RowDataset(documents, UNILM, 3, seed=1)
    for seed in (-1, 2**64):
        with pytest.raises(UnifiedError, match="the seed must be"):
            RowDataset(documents, UNILM, ROW, seed=seed)
    one = DocumentTexts(write(tmp_path / "one", [[5, 2], [6, 2]]), SPECIAL)
    with pytest.raises(UnifiedError, match="holds one document, but bidirectional wants second segments"):
        RowDataset(one, UNILM, ROW, seed=1)
    assert len(RowDataset(one, Mixture((Bidirectional(next_sentence=False), Seq2Seq()), (1, 1)), ROW, seed=1)) == 1
    dataset = RowDataset(documents, UNILM, ROW, seed=1)
    for row in (-1, len(dataset)):
        with pytest.raises(IndexError):
            dataset[row]
    with pytest.raises(UnifiedError, match="objective reads made .* its special_tokens, or lengths, allows"):
        RowDataset(documents, Mixture((Greedy(segments=2),), (1,)), ROW, seed=1)


@pytest.mark.parametrize("name, most", [("random_spans", 0.03), ("deshuffling", 0.03), ("replace_spans", 0.1)])
def test_rows_of_t5s_growing_examples_are_full(tmp_path, name, most):
    """Raw lengths are chosen so that rows of 512 are full; of replace_spans the noise alone decides the rest."""
    rng = np.random.default_rng(5)
    documents = [[rng.integers(10, 900, size) for size in sizes] for sizes in random_sizes(rng, 60, 60, 18)]
    texts = DocumentTexts(write_documents(tmp_path / "text", documents), SPECIAL)
    rows = RowDataset(texts, parse_objectives(name), 512, 1)
    examples, per_row = rows.examples(range(len(rows)))
    used = np.add.reduceat(examples.lengths, np.cumsum(per_row) - per_row)
    assert max(used) <= 512 and 1 - np.mean(used) / 512 < most, 1 - np.mean(used) / 512
