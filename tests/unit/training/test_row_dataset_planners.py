"""Rows of objectives whose texts are planned apart: documents are dealt, and each example is of its own plan."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tests.support.token_files import SPECIAL, Reads, numbered_documents, random_sizes, write_documents
from unified.objectives.mixture import Mixture
from unified.planning.documents import DocumentTexts
from unified.planning.planners import Blocks
from unified.training.row_dataset import RowDataset

ROW = 48


@dataclass(frozen=True)
class OtherBlocks(Blocks):
    """Plans as others do, and apart from them."""


@dataclass(frozen=True)
class Apart(Reads):
    """Has a planner of its own."""

    planner: ClassVar[OtherBlocks] = OtherBlocks()


MIXTURE = Mixture((Reads(), Apart(), Reads(), Apart()), (1.0, 1.0, 2.0, 1.0), ("first", "apart", "second", "apart_too"))
PLANNED = ({"first", "second"}, {"apart", "apart_too"})


@pytest.fixture
def texts(tmp_path):
    sizes = random_sizes(np.random.default_rng(0), 60, 8, 9)
    return DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL)


@pytest.mark.parametrize("packed", [True, False])
def test_an_epoch_holds_each_token_once_whichever_plan_has_it(texts, packed):
    rows, epochs = RowDataset(texts, MIXTURE, ROW, 5, packed), []
    for epoch in (1, 2, 3):
        rows.set_epoch(epoch)
        examples, each = rows.examples(range(len(rows)))
        assert each.sum() == len(examples) and (packed or (each == 1).all())
        of_tokens = {}
        for one in examples.split():
            tokens = one.tokens[1:-1]
            assert (np.diff(tokens) == 1).all()
            of_tokens |= dict.fromkeys(tokens.tolist(), one.objective)
        assert sorted(of_tokens) == list(range(10, 10 + int(texts.bounds[-1])))
        assert sum(len(one.tokens) - 2 for one in examples.split()) == len(of_tokens)
        assert set(of_tokens.values()) == set.union(*PLANNED)
        epochs.append(of_tokens)
    # Documents go to other planners in other epochs, whole or in parts.
    apart = [[name in PLANNED[1] for name in of_tokens.values()] for of_tokens in map(ordered, epochs)]
    assert apart[0] != apart[1] != apart[2] != apart[0]
    for own in apart:
        assert 0.3 < np.mean(own) < 0.5  # two fifths of the weight


def ordered(of_tokens):
    return dict(sorted(of_tokens.items()))


@pytest.mark.parametrize("packed", [True, False])
def test_a_row_is_of_one_plan_and_as_long_as_said(texts, packed):
    rows = RowDataset(texts, MIXTURE, ROW, 5, packed)
    examples, each = rows.examples(range(len(rows)))
    of_rows = np.split(np.array(examples.objectives), np.cumsum(each)[:-1])
    assert all(any(set(row) <= names for names in PLANNED) for row in of_rows)
    lengths = [sum(len(one.tokens) for one in rows[row]) for row in range(len(rows))]
    assert rows.lengths.tolist() == lengths == [rows.row_tokens(row) for row in range(len(rows))]
    assert rows.objective_names == ("first", "apart", "second", "apart_too")


def test_rows_are_read_in_any_order_and_any_number(texts):
    rows = RowDataset(texts, MIXTURE, ROW, 5)
    single = [[(one.objective, one.tokens.tolist()) for one in rows[row]] for row in range(len(rows))]
    for asked in ([3], [5, 2, 2], list(reversed(range(len(rows))))):
        examples, each = rows.examples(asked)
        found = [(one.objective, one.tokens.tolist()) for one in examples.split()]
        assert found == [one for row in asked for one in single[row]] and each.tolist() == [
            len(single[row]) for row in asked
        ]
