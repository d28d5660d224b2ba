"""Rows of examples: how short they may be, what objectives miss is refused, and which texts are planned anew."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from docs.examples.suffix_objective import Suffix
from tests.support.token_files import SPECIAL, numbered_documents, random_sizes, write_documents
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.planning.planners import BLOCKS
from unified.training import row_dataset
from unified.training.row_dataset import RowDataset, longest_text


@pytest.fixture
def texts(tmp_path):
    sizes = random_sizes(np.random.default_rng(0), 14, 15, 20)
    return DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL)


@pytest.mark.parametrize("name", ["left_to_right", "bert", "bert(next_sentence=False)", "spanbert(scheme='subword')"])
def test_rows_hold_the_shortest_text_of_their_objectives_and_no_less(texts, name):
    mixture = parse_objectives(name)
    (objective,) = mixture.objectives
    shortest = (objective.planner or BLOCKS).shortest
    least = next(length for length in range(1, 99) if longest_text(mixture, length) == shortest)
    assert len(RowDataset(texts, mixture, least, 1)) > 0
    with pytest.raises(UnifiedError) as raised:
        RowDataset(texts, mixture, least - 1, 1)
    assert str(raised.value) == (
        f"rows of {least - 1} tokens hold no text beside the special tokens of {mixture.names[0]}"
    )


def test_what_an_objective_misses_is_refused_under_its_name(texts):
    mixture = parse_objectives("left_to_right,words=bidirectional(whole_words=True)")
    (problem,) = {mixture.objectives[1].unmet(row_dataset.Supply(SPECIAL, False, 30, frozenset()))}
    with pytest.raises(UnifiedError) as raised:
        RowDataset(texts, mixture, 32, 1)
    assert str(raised.value) == f"{texts.name}: objective words: {problem}" and "word" in problem


@dataclass(frozen=True)
class FailsElsewhere(Suffix):
    """Has a bug in one of its methods, of which ``lengths`` can do with the few numbers of the first check."""

    method: str = ""

    def lengths(self, tokens):
        return {}["missing"] if self.method == "lengths" and len(tokens) > 3 else super().lengths(tokens)

    def unmet(self, supply):
        return {}["missing"] if self.method == "unmet" else super().unmet(supply)


@pytest.mark.parametrize("method", ["lengths", "unmet"])
@pytest.mark.parametrize("beside", ["", ",left_to_right:1"])
def test_an_own_objective_whose_rows_cannot_be_planned_is_named(texts, method, beside):
    mixture = parse_objectives(f"mine={__name__}:FailsElsewhere(method={method!r}):1{beside}")
    with pytest.raises(UnifiedError, match=f"^objective mine fails in line [0-9]+ of {__name__}: KeyError: 'missing'$"):
        RowDataset(texts, mixture, 32, 1)


@dataclass(frozen=True)
class Fails(Suffix):
    """Fails once it is told to."""

    failing: ClassVar[list[bool]] = []

    def __call__(self, text, rng):
        return {}["missing"] if self.failing else super().__call__(text, rng)


def test_an_own_objective_that_fails_is_named_before_training_and_within(texts, monkeypatch):
    mixture = parse_objectives(f"mine={__name__}:Fails:1")
    rows = RowDataset(texts, mixture, 32, 1)
    monkeypatch.setattr(Fails, "failing", [True])
    for fails in (lambda: RowDataset(texts, mixture, 32, 1), lambda: rows[0]):
        with pytest.raises(UnifiedError, match=f"^objective mine fails in line [0-9]+ of {__name__}: KeyError: "):
            fails()


@pytest.mark.parametrize(
    ("names", "plans"),
    [
        ("left_to_right,bidirectional(next_sentence=False)", 1),  # one plan for all epochs
        ("bert", 3),  # its second segments are drawn anew
        ("left_to_right,bert", 6),  # two plans, and documents are dealt anew
    ],
)
def test_texts_are_planned_in_each_epoch_where_they_change(texts, monkeypatch, names, plans):
    made, plan = [], row_dataset.PlannedTogether.plan

    def counted(own, *given):
        made.append(own)
        return plan(own, *given)

    monkeypatch.setattr(row_dataset.PlannedTogether, "plan", counted)
    rows = RowDataset(texts, parse_objectives(names), 64, 1)
    for epoch in (2, 2, 3):
        rows.set_epoch(epoch)
    assert len(made) == plans


def test_seeds_have_64_bits(texts):
    mixture = parse_objectives("left_to_right")
    for seed in (0, 2**64 - 1):
        RowDataset(texts, mixture, 32, seed)
    for seed in (-1, 2**64):
        with pytest.raises(UnifiedError) as raised:
            RowDataset(texts, mixture, 32, seed)
        assert str(raised.value) == f"the seed must be a whole number from 0 to 2^64 - 1, got {seed}"
