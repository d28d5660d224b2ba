"""Outcomes of single items, which a line keeps: two systems are compared on the same items when their models are gone.

The outcomes of a run are a text, in the order of the data. What it holds depends on their kind, see :data:`KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from entries import Figures

from unified.errors import UnifiedError
from unified.files.rows import read_rows
from unified.tasks.heads.items import read_items
from unified.tasks.heads.questions import question_item
from unified.tasks.metrics.answer_rules import ANSWER_RULES
from unified.tasks.metrics.bootstrap import Examples, bootstrap_intervals
from unified.tasks.metrics.classification import Classification, Confusion
from unified.tasks.metrics.comparison import Difference, Mean
from unified.tasks.metrics.examples import SingleScores
from unified.tasks.metrics.files import read_answers, read_labels

RIGHT, WRONG, UNDECIDED = "1", "0", "="
_POINTS = {RIGHT: 1.0, WRONG: 0.0, UNDECIDED: 0.5}
#: The class whose F1 is meant is the second in the order of names: MRPC's paraphrases.
_POSITIVE = "1"


@dataclass(frozen=True)
class Kind:
    """A kind of outcomes.

    Attributes:
        read: the text, from the file that a run leaves.
        examples: items with their measures, from the text. Runs have the same items where the recipes of their data are
            the same, so that items are numbered alone where the text does not say what they are scored against.
    """

    read: Callable[[Path], str]
    examples: Callable[[str], Examples]


def read_outcomes(folder: Path, places: Iterable[Figures]) -> dict[str, str]:
    """The outcomes that a run has left, by the prefix of each place.

    Raises:
        UnifiedError: a file is missing or is something else.
    """
    found = {}
    for place in places:
        path = folder / place.path
        if not path.exists():
            raise UnifiedError(f"{path}: missing; the run should have left the scores of its items there")
        found[place.prefix] = KINDS[place.kind].read(path)
    return found


def difference(kind: str, measure: str, first: Sequence[str], second: Sequence[str]) -> tuple[float, list[float]]:
    """A measure of one system less that of another, and its interval of 95 % over items.

    Args:
        kind: of the outcomes, a name of :data:`KINDS`.
        first, second: outcomes of each seed of a system; a system is the mean over its seeds.

    Returns:
        percentage points; [low, high].

    Raises:
        UnifiedError: their items differ.
    """
    examples = KINDS[kind].examples
    beside = Difference(*(Mean([examples(run) for run in runs]) for runs in (first, second)))
    return beside.measures()[measure], bootstrap_intervals(beside)[measure]


def _pairs(path: Path) -> str:
    """Pairs in the ``examples.jsonl`` of ``unified evaluate minimal-pairs``: does the good sentence score higher?"""
    scores = [(row.fields["good"], row.fields["bad"]) for row in read_rows(path)]
    return "".join(UNDECIDED if good == bad else RIGHT if good > bad else WRONG for good, bad in scores)


def _accuracy(outcomes: str) -> Examples:
    return SingleScores(range(len(outcomes)), {"accuracy": [100 * _POINTS[one] for one in outcomes]})


def _items(predictions: Path) -> Path:
    """The validation items of a run of ``unified finetune``, whose predictions stand beside its data."""
    return predictions.parent / "data" / "valid.jsonl"


def _classes(path: Path) -> str:
    """Gold and predicted class of each item, by their place in the order of names."""
    gold, predicted = read_labels(_items(path), path)
    names = sorted({*gold, *predicted})
    if len(names) > len("0123456789"):
        raise UnifiedError(f"{path}: {len(names)} classes; outcomes have one digit for each")
    return " ".join(f"{names.index(own)}{names.index(found)}" for own, found in zip(gold, predicted, strict=True))


def _classification(outcomes: str) -> Examples:
    gold, predicted = zip(*outcomes.split(" "), strict=True)
    return Classification(Confusion.of(gold, predicted), _POSITIVE)


def _answers(path: Path) -> str:
    """F1 of the answer to each question, in percent with two digits behind the point at most."""
    answers, rule = read_answers(path), ANSWER_RULES["1.1"].f1
    items = read_items(_items(path), partial(question_item, labelled=True))
    return " ".join(f"{round(rule(item.gold, answers[item.id]), 2):g}" for item in items)


def _f1(outcomes: str) -> Examples:
    scores = [float(one) for one in outcomes.split(" ")]
    return SingleScores(range(len(scores)), {"f1": scores})


#: Kinds of outcomes by name. Of ``pairs`` there is one character for each: "1" where the good sentence scores higher,
#: "0" where the bad one does, "=" where neither, which counts half. Of ``classes`` there are two digits for each item,
#: the gold class and the predicted one; of ``answers`` there is the F1 of each.
KINDS: Mapping[str, Kind] = {
    "pairs": Kind(_pairs, _accuracy),
    "classes": Kind(_classes, _classification),
    "answers": Kind(_answers, _f1),
}
