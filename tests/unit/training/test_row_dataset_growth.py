"""Rows of examples that grow with their texts, rows of one example each, and promises that are broken late."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tests.support.token_files import (
    SEPARATOR,
    SPECIAL,
    Reads,
    numbered_documents,
    random_sizes,
    write,
    write_documents,
)
from unified.data import randomness
from unified.data.example import Example
from unified.data.targets import TOKEN
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.objectives.mixture import Mixture
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.planning.planners import BLOCKS
from unified.training.row_dataset import PlannedTogether, RowDataset

LENGTHS = {
    "twice_and_three": lambda n: 2 * n + 3,
    "twice_and_one": lambda n: 2 * n + 1,
    "twice_behind_25": lambda n: n + np.maximum(0, n - 25),
    "a_quarter_more": lambda n: n + n // 4,
    "up_to_50": lambda n: np.minimum(n + 5, 50),
    "two_more": lambda n: n + 2,
    "three_more": lambda n: n + 3,
}


@dataclass(frozen=True)
class Grows(Reads):
    """Declares that its examples grow with their texts in one of the ways above."""

    way: str = "two_more"

    def lengths(self, tokens):
        return LENGTHS[self.way](tokens)


def limits(row, *ways, paired=False, packed=True):
    objectives = tuple(Grows(name=way, way=way, paired=paired) for way in ways)
    mixture = Mixture(objectives, (1.0,) * len(ways))
    return PlannedTogether.of(BLOCKS, mixture, list(range(len(ways))), row, packed).limits


@pytest.mark.parametrize(
    ("row", "ways", "longest", "slope", "overhead"),
    [
        (100, ["two_more"], 98, 1.0, 2),
        (100, ["two_more", "three_more"], 97, 1.0, 3),
        (100, ["three_more", "two_more"], 97, 1.0, 3),
        # The slope is that of the upper half of the lengths; the overhead has room for rounding at one more token.
        (100, ["twice_and_three"], 48, 2.0, 5),
        (100, ["twice_behind_25"], 62, 2.0, 1),
        (100, ["a_quarter_more"], 80, 1.25, 2),
        (60, ["up_to_50"], 60, 1.0, 6),
        (5, ["twice_and_one"], 2, 2.0, 3),
        (3, ["twice_and_one"], 1, 1.0, None),
        (100, ["twice_and_three", "twice_and_one"], 48, 1.0, None),
        (100, ["twice_and_three", "two_more"], 48, 1.0, None),
    ],
)
def test_a_line_lies_above_the_lengths_of_examples(row, ways, longest, slope, overhead):
    found = limits(row, *ways)
    assert (found.row_length, found.longest, found.slope, found.overhead) == (row, longest, slope, overhead)
    assert type(found.slope) is float and found.packed and not limits(row, *ways, packed=False).packed
    if overhead is not None:
        tokens = np.arange(1, longest + 1)
        assert all((LENGTHS[way](tokens) <= slope * tokens + overhead).all() for way in ways)


@dataclass(frozen=True)
class Tabled(Reads):
    """Reads the lengths of its examples from a table, whose indices are numbers of tokens."""

    table: tuple[int, ...] = ()

    def lengths(self, tokens):
        return np.array(self.table)[tokens]


def test_lengths_are_asked_of_texts_that_have_no_more_tokens_than_a_row():
    """So that an objective with a table of them needs no others."""
    for row in (5, 6, 40):
        objective = Tabled(table=tuple(tokens + 2 for tokens in range(row + 1)))
        found = PlannedTogether.of(BLOCKS, Mixture((objective,), (1.0,)), [0], row, True).limits
        assert (found.longest, found.overhead) == (row - 2, 2)


def test_pairs_that_grow_have_no_line():
    found = limits(100, "twice_and_three", paired=True)
    assert (found.slope, found.overhead) == (1.0, None)
    assert limits(100, "two_more", paired=True).overhead == 2


def test_a_planner_has_its_objectives_and_their_weight():
    mixture = parse_objectives("left_to_right:1,bert:2,right_to_left:5")
    found = PlannedTogether.of(BLOCKS, mixture, [0, 2], 64, True)
    assert found.numbers.tolist() == [0, 2] and found.mixture.names == ("left_to_right", "right_to_left")
    assert found.weight == 6 / 8 and found.mixture.weights == (1 / 6, 5 / 6)


# ---------------------------------------------------------------- rows of one example each


@pytest.fixture
def texts(tmp_path):
    sizes = random_sizes(np.random.default_rng(0), 60, 3, 8)
    return DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL)


def test_rows_that_are_not_packed_are_read_from_short_to_long_and_ties_at_random(texts):
    rows = RowDataset(texts, Mixture((Reads(),), (1.0,)), 16, 3, packed=False)
    for epoch in (1, 2):
        rows.set_epoch(epoch)
        shuffled = randomness.generator(3, epoch, randomness.ORDER).permutation(len(rows)).tolist()
        assert rows.order().tolist() == sorted(shuffled, key=lambda row: rows.lengths[row])  # keeps the order of ties
        assert rows.batch_lengths.tolist() == rows.lengths.tolist() and len(set(rows.lengths.tolist())) > 4
    packed = RowDataset(texts, Mixture((Reads(),), (1.0,)), 16, 3)
    assert packed.packed and packed.batch_lengths.tolist() == [16] * len(packed)
    assert packed.order().tolist() == randomness.generator(3, 1, randomness.ORDER).permutation(len(packed)).tolist()


def test_row_numbers_may_be_of_any_integer_type(tmp_path):
    documents = numbered_documents([[4]] * 300)
    texts = DocumentTexts(write_documents(tmp_path / "many", documents), SPECIAL)
    rows = RowDataset(texts, Mixture((Reads(),), (1.0,)), 16, 3, packed=False)
    assert len(rows) == 300
    for kind in (np.uint8, np.int16, np.int64):
        examples, each = rows.examples(np.array([255, 3], dtype=kind))
        assert [one.tokens.tolist() for one in examples.split()] == [rows[n][0].tokens.tolist() for n in (255, 3)]
        assert each.tolist() == [1, 1] and each.dtype == np.int64


def test_rows_that_are_none_are_refused(texts):
    rows = RowDataset(texts, Mixture((Reads(),), (1.0,)), 16, 3)
    count = len(rows)
    for asked, refused in (([-1], -1), ([count], count), ([0, count, -1], count), ([0, -1, count - 1], -1)):
        with pytest.raises(IndexError) as raised:
            rows.examples(asked)
        assert str(raised.value) == f"row {refused} of {count}"
    assert len(rows[count - 1]) > 0
    with pytest.raises(IndexError, match=f"^row {count} of {count}$"):
        rows[count]


@pytest.mark.parametrize("packed", [True, False])
def test_an_epoch_holds_each_pair_once(tmp_path, packed):
    rng, row = np.random.default_rng(0), 20
    sides = [[[*rng.integers(10, 900, size), SEPARATOR] for size in rng.integers(0, 9, 50)] for _ in range(2)]
    files = [write(tmp_path / name, items) for name, items in zip(("source", "target"), sides, strict=True)]
    mixture = Mixture((Reads(paired=True, segments=2),), (1.0,))
    rows = RowDataset(PairTexts(*files, SPECIAL), mixture, row, 3, packed)
    for epoch in (1, 2):
        rows.set_epoch(epoch)
        made = [[one.tokens.tolist() for one in rows[number]] for number in range(len(rows))]
        assert all(len(one) == 1 or packed and sum(map(len, one)) <= row for one in made)
        wanted = [[SPECIAL.begin, *source, *target] for source, target in zip(*sides, strict=True)]
        assert sorted(example for one in made for example in one) == sorted(wanted)


@pytest.mark.parametrize("packed", [True, False])
def test_an_epoch_of_examples_that_grow_differently_holds_each_token_once(texts, packed):
    """Each example takes as much of its row as its objective says of the text."""
    ways = ("twice_and_three", "two_more")
    mixture = Mixture(tuple(Grows(name=way, way=way) for way in ways), (1.0, 1.0))
    rows = RowDataset(texts, mixture, 40, 3, packed)
    for epoch in (1, 2):
        rows.set_epoch(epoch)
        examples, each = rows.examples(range(len(rows)))
        found = examples.split()
        assert sorted(token for one in found for token in one.tokens[1:-1]) == list(range(10, 10 + texts.bounds[-1]))
        taken = np.array([LENGTHS[one.objective](len(one.tokens) - 2) for one in found])
        assert rows.lengths.tolist() == [own.sum() for own in np.split(taken, np.cumsum(each)[:-1])]
        assert rows.lengths.max() <= 40 and set(examples.objectives) == set(ways)
        assert (each.max() > 1) == packed


# ---------------------------------------------------------------- what is refused


@dataclass(frozen=True)
class Later(Reads):
    """Keeps its word in the first examples, which are looked at before training, and breaks it when it is ``late``."""

    fault: str = ""
    late: list[bool] = field(default_factory=list, compare=False)

    def __call__(self, text, rng) -> Example:
        if not self.late:
            return super().__call__(text, rng)
        if self.fault == "length":
            return super().__call__(replace(text, tokens=np.append(text.tokens, text.tokens)), rng)
        example = super().__call__(text, rng)
        targets = replace(example.targets[TOKEN], labels=np.array([SPECIAL.first_sentinel + 7]))
        return replace(example, targets={TOKEN: targets})


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("length", r"^objective mine made \d+ tokens of \d+; its special_tokens, or lengths, allows \d+$"),
        ("sentinel", "^objective mine has sentinel 7 as a target; its target_sentinels allows 0$"),
    ],
)
def test_examples_that_break_a_promise_are_refused_before_training_and_later(texts, fault, says):
    """Before training where one of the first examples of any objective does."""
    objective = Later(fault=fault)
    mixture = Mixture((Reads(), objective), (1.0, 1.0), ("other", "mine"))
    rows = RowDataset(texts, mixture, 32, 3)
    assert len(rows) > 8
    objective.late.append(True)
    with pytest.raises(UnifiedError, match=says):
        rows.examples(range(len(rows)))
    with pytest.raises(UnifiedError, match=says):
        RowDataset(texts, mixture, 32, 3)


@dataclass(frozen=True)
class Notes(Reads):
    """Notes the texts that it has got."""

    got: set[tuple[int, ...]] = field(default_factory=set, compare=False)

    def __call__(self, text, rng) -> Example:
        self.got.add(tuple(text.tokens.tolist()))
        return super().__call__(text, rng)


def test_the_first_eight_texts_of_an_objective_are_looked_at(texts):
    """Texts of the corpus have consecutive tokens; other texts are made from them to look for leaks."""
    objective = Notes()
    rows = RowDataset(texts, Mixture((objective,), (1.0,)), 32, 3)
    own = [text for text in objective.got if text == tuple(range(text[0], text[-1] + 1))]
    assert len(own) == 8 < len(rows)


def test_an_objective_that_gets_no_text_is_not_looked_at(texts):
    mixture = Mixture((Reads(), Later(fault="length", late=[True])), (1.0, 1e-12), ("other", "mine"))
    rows = RowDataset(texts, mixture, 32, 3)
    assert set(rows.examples(range(len(rows)))[0].objectives) == {"other"}


def test_second_segments_from_other_documents_need_another_document(tmp_path):
    def rows(name, documents, objectives):
        file = write_documents(tmp_path / name, numbered_documents([[6, 6, 6]] * documents))
        return RowDataset(DocumentTexts(file, SPECIAL), parse_objectives(objectives), 32, 1)

    with pytest.raises(UnifiedError) as raised:
        rows("one", 1, "left_to_right,pairs=bidirectional")
    assert str(raised.value) == (
        f"{tmp_path / 'one'}: holds one document, but pairs wants second segments from other ones; separate documents "
        "by empty lines, or switch next-sentence prediction off"
    )
    assert len(rows("same", 1, "left_to_right")) and len(rows("two", 2, "left_to_right,bidirectional"))


def test_documents_are_no_pairs_and_pairs_no_documents(texts, tmp_path):
    pairs = [write(tmp_path / side, [[7, 8, SEPARATOR], [9, SEPARATOR]]) for side in ("source", "target")]
    for given, names, says in (
        (texts, "target_cloze,target_next", "holds documents, but target_cloze, target_next needs source/target pairs"),
        (PairTexts(*pairs, SPECIAL), "bert,anna", "holds source/target pairs, but bert, anna needs documents"),
    ):
        with pytest.raises(UnifiedError) as raised:
            RowDataset(given, parse_objectives(names), 32, 1)
        assert str(raised.value) == f"{given.name}: {says}"
