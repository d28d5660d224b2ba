"""Symbols that may be targets: those of the data, the separator, and as many sentinels as an objective writes."""

from dataclasses import dataclass

import numpy as np
import pytest

from docs.examples.suffix_objective import Suffix
from tests.support.token_files import SPECIAL, write
from unified.data.targets import TOKEN
from unified.data.text import Text
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.training.target_symbols import target_symbols

FIRST = SPECIAL.first_sentinel
ORDERED = np.array([FIRST + 40, 12, SPECIAL.separator, 11, *range(FIRST - 1, FIRST + 40), 10, SPECIAL.pad])


def found(files, objectives, length=32):
    return target_symbols(ORDERED, files, parse_objectives(objectives), SPECIAL, length).tolist()


@pytest.fixture
def files(tmp_path):
    return [write(tmp_path / "a", [[10, 2], [12, 12, 2]]), write(tmp_path / "b", [[13, 2]])]


def test_the_data_of_all_files_and_the_separator_are_targets_in_their_order(files, tmp_path):
    more = [*files, write(tmp_path / "c", [[11, FIRST + 5, 2]])]
    assert found(files, "left_to_right") == [12, SPECIAL.separator, 10]
    assert found(files[1:], "left_to_right") == found([], "left_to_right") == [SPECIAL.separator]
    assert found(more, "left_to_right") == [12, SPECIAL.separator, 11, FIRST + 5, 10]


def sentinels_written(name, length):
    """Sentinels in the targets of the longest text that fits into a row, of many draws."""
    (objective,) = parse_objectives(name).objectives
    longest = max(size for size in range(1, length) if objective.lengths(np.array(size)) <= length)
    text = Text(np.arange(100, 100 + longest), SPECIAL)
    examples = (objective(text, np.random.default_rng(seed)) for seed in range(100))
    labels = np.unique(np.concatenate([example.targets[TOKEN].labels for example in examples]))
    return labels[labels >= FIRST].tolist()


@pytest.mark.parametrize("length", [16, 32])
def test_sentinels_are_those_of_the_objective_that_writes_most(files, length):
    names = ("replace_spans", "closed=replace_spans(closing_sentinel=True)")
    fewer, more = (sentinels_written(name, length) for name in names)
    assert len(fewer) < len(more) < 40
    for name, sentinels in zip(names, (fewer, more), strict=True):
        assert found(files, name, length) == [12, SPECIAL.separator, *sentinels, 10]
    assert found(files, f"left_to_right,{','.join(names)}", length) == [12, SPECIAL.separator, *more, 10]


@dataclass(frozen=True)
class Fails(Suffix):
    """Has a bug where it says how many sentinels it writes."""

    def target_sentinels(self, tokens):
        return {}["missing"]


def test_an_own_objective_that_cannot_say_it_is_named(files):
    with pytest.raises(UnifiedError, match=f"^objective mine fails in line [0-9]+ of {__name__}: KeyError: 'missing'$"):
        found(files, f"mine={__name__}:Fails")
