"""How the campaign of losses compares: what counts as a difference, and which runs it compares by their digits."""

import re

import pytest

from tests.golden.plan import runs
from trust.losses import cases, far_from, smooth
from unified.tasks.heads import parse_head

EXPECTED = [{"loss": 20.0, "a_loss": 0.5}, {"loss": 19.0}]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ([{"loss": 20.0, "a_loss": 0.50002}, {"loss": 19.0}], "a_loss of update 1: 0.50002 instead of 0.5"),
        ([{"loss": 20.0, "a_loss": 0.5}, {"loss": 19.0004}], "loss of update 2: 19.0004 instead of 19.0"),
        ([{"loss": float("nan"), "a_loss": 0.5}, {"loss": 19.0}], "loss of update 1: nan instead of 20.0"),
        ([{"loss": 20.0}, {"loss": 19.0}], "update 1 has losses of loss instead of loss, a_loss"),
        ([{"loss": 20.0, "a_loss": 0.5}], "1 update instead of 2"),
    ],
)
def test_differences_are_found_and_named(changed, says):
    assert far_from(EXPECTED, changed) == says


def test_a_hundred_thousandth_of_a_loss_is_no_difference():
    assert far_from(EXPECTED, [{"loss": 20.0001, "a_loss": 0.500009}, {"loss": 18.9999}]) is None


@pytest.mark.parametrize("run", runs(), ids=lambda run: run.name)
def test_no_dropout_is_left(run):
    words = smooth(run.options)
    assert [word for word in words if not str(word).endswith("dropout")]
    assert all(words[number + 1] == 0 for number, word in enumerate(words) if str(word).endswith("dropout"))
    if "--head" in words:
        text = words[words.index("--head") + 1]
        found = re.findall(r"dropout=([0-9.]+)", text)
        head = parse_head(text)
        assert set(map(float, found)) <= {0.0} and bool(found) == ("dropout" in head.head_class.__dataclass_fields__)


def test_coreference_keeps_all_its_candidates():
    """Which of two spans with nearly equal scores is kept is a matter of rounding."""
    (run,) = [run for run in runs() if "coreference" in run.name]
    words = smooth(run.options)
    # Spans of two words at most: fewer than four candidates a word.
    assert words[words.index("--head") + 1] == (
        "coreference(hidden=32, features=8, max_width=2, max_windows=2, dropout=0.0, spans_per_word=4.0)"
    )


def test_all_runs_but_memory_streams_are_divided_among_processes():
    named = [case.name.partition(" | ") for case in cases(True, 1)]
    of_kind = {kind: {name for one, _, name in named if one == kind} for kind in ("workers", "kills", "processes")}
    assert of_kind["workers"] == of_kind["kills"]
    assert of_kind["workers"] - of_kind["processes"] == {"xlnet with a memory, streams"}
