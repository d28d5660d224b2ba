"""Source/target pairs: what is kept of each, and an epoch of them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tests.support.many import one_text
from tests.support.token_files import SEPARATOR, SPECIAL, Reads, write
from unified.data.annotations import Annotations, span_prefix
from unified.errors import UnifiedError
from unified.objectives.mixture import Mixture
from unified.objectives.unilm import TargetCloze
from unified.planning.pairs import PairTexts
from unified.training.row_dataset import RowDataset

PAIRED = Mixture((TargetCloze(),), (1,))
ROW = 128


def write_pairs(folder, pairs, **options):
    source = write(folder / "source", [[*s, SEPARATOR] for s, _ in pairs])
    target = write(folder / "target", [[*t, SEPARATOR] for _, t in pairs])
    return PairTexts(source, target, SPECIAL, **options)


def random_pairs(count, seed=0):
    rng = np.random.default_rng(seed)
    return [tuple(rng.integers(10, 20000, rng.integers(0, size)).tolist() for size in (80, 30)) for _ in range(count)]


def test_an_epoch_holds_every_pair_once(tmp_path):
    given = random_pairs(80)
    texts = write_pairs(tmp_path, given)
    assert texts.document_count == 0  # so that nobody asks for segments of other documents
    expected = sorted([SPECIAL.begin, *s, SEPARATOR, *t, SEPARATOR] for s, t in given)
    compositions = set()
    for packed in (True, False):
        dataset = RowDataset(texts, Mixture((Reads(segments=2, paired=True),), (1,)), ROW, seed=4, packed=packed)
        for epoch in (1, 2, 3):
            dataset.set_epoch(epoch)
            rows = [[e.tokens.tolist() for e in dataset[row]] for row in range(len(dataset))]
            assert sorted(tokens for row in rows for tokens in row) == expected
            compositions.add(tuple(sorted(map(str, rows))))
    assert len(compositions) == 4  # pairs meet others in every epoch; without packing they are alone


def test_pairs_are_stripped_and_cut_at_their_ends(tmp_path):
    texts = write_pairs(
        tmp_path, [(range(10, 20), range(30, 35)), ((), (40,)), ((50,), ())], max_source=4, max_target=3
    )
    rng = np.random.default_rng(0)
    read = [one_text(texts, i, int(texts.lengths[i]), PAIRED.objectives[0], rng) for i in range(3)]
    assert [(t.tokens.tolist(), t.second.tolist()) for t in read] == [
        ([10, 11, 12, 13], [30, 31, 32]),
        ([], [40]),
        ([50], []),
    ]
    assert texts.lengths.tolist() == [7, 1, 1]
    assert all(t.is_next is None and t.tokens.dtype == t.second.dtype == np.int64 for t in read)
    dataset = RowDataset(texts, PAIRED, 32, seed=1)
    assert sum(len(dataset[row]) for row in range(len(dataset))) == 3


def test_word_starts_of_pairs(tmp_path):
    """The first token of a source, of each of its parts and of a target begins a word, whatever the table says."""
    table = np.arange(SPECIAL.ordinary_stop) % 3 == 0
    table[SEPARATOR] = True
    pairs = [((10, 11, 12), (16, 17)), ((10, SEPARATOR, 11, 13, SEPARATOR, 14, 17), (15, 16)), ((), ()), ((10, 11), ())]
    texts = write_pairs(tmp_path, pairs, word_starts=table)
    found = texts.texts(np.arange(4), texts.lengths, Reads(segments=2, paired=True), None).texts()
    assert [text.word_starts.tolist() for text in found] == [
        [True, False, True, True, False],
        [True, True, True, False, True, True, False, True, False],
        [],
        [True, False],
    ]


@dataclass(frozen=True)
class Extracts(Reads):
    """Wants the sentences of sources."""

    annotations: ClassVar[tuple[str, ...]] = ("sentences",)


def test_spans_of_a_source_are_cut_as_it_is(tmp_path):
    """Those that begin behind the cut are left out."""
    plain = write_pairs(tmp_path, [(range(10, 20), (6,)), (range(20, 23), (7,))])
    write(span_prefix(plain.source.prefix, "sentences"), [[0, 2, 2, 4, 3, 6, 4, 6, 5, 7], [0, 3]])
    texts = PairTexts(plain.source, plain.target, SPECIAL, max_source=4, annotations=Annotations(plain.source))
    found = texts.texts(np.array([1, 0]), np.array([4, 5]), Extracts(), None)
    assert [spans.tolist() for spans in found.spans["sentences"].split()] == [[[0, 3]], [[0, 2], [2, 4], [3, 4]]]


def test_refusals_of_pairs(tmp_path):
    with pytest.raises(UnifiedError, match="source holds 2 items, .*target 1"):
        PairTexts(write(tmp_path / "source", [[5, 2], [6, 2]]), write(tmp_path / "target", [[5, 2]]), SPECIAL)
    with pytest.raises(UnifiedError, match="holds no pair"):
        write_pairs(tmp_path, [])
    for option in ("max_source", "max_target"):
        with pytest.raises(UnifiedError, match=f"^{option} must be 0"):
            write_pairs(tmp_path, [((5,), (6,))], **{option: -1})
    with pytest.raises(UnifiedError, match="target: item 0 is empty"):
        PairTexts(write(tmp_path / "source", [[5, 2]]), write(tmp_path / "target", [[]]), SPECIAL)
    texts = PairTexts(write(tmp_path / "source", [[5, 2]]), write(tmp_path / "target", [[5, 6]]), SPECIAL)
    with pytest.raises(UnifiedError, match="target: item 0 ends with token 6, not with </s>"):
        one_text(texts, 0, 2, PAIRED.objectives[0], np.random.default_rng(0))
    long = [((5,) * 40, (6,) * 9), ((5,), (6,)), ((5,) * 50, (6,))]
    with pytest.raises(UnifiedError, match="2 of 3 pairs are longer than a row of 32 tokens, the longest has 54 with"):
        RowDataset(write_pairs(tmp_path, long), PAIRED, 32, seed=1)
    with pytest.raises(UnifiedError, match="1 of 3 pairs"):
        RowDataset(write_pairs(tmp_path, long, max_source=25), PAIRED, 32, seed=1)
    RowDataset(write_pairs(tmp_path, long, max_source=25, max_target=4), PAIRED, 32, seed=1)


def test_no_pair_is_read_backward(tmp_path):
    texts = write_pairs(tmp_path, random_pairs(5))
    read = texts.texts(np.arange(3), texts.lengths[:3], Reads(segments=2, paired=True), None)
    assert read.backward.dtype == bool and not read.backward.any()
