"""CoQA's domains by the names of the published table, and what its scores refuse."""

from __future__ import annotations

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.tasks.metrics import score_coqa, score_coqa_domains
from unified.tasks.metrics.coqa import COQA_SIGNATURE, CoqaDomains, CoqaTurns

#: Source of a story in the data, and the domain's name in the table of the published program.
NAMES = {
    "mctest": "children_stories", "gutenberg": "literature", "race": "mid-high_school", "cnn": "news",
    "wikipedia": "wikipedia", "reddit": "reddit", "science": "science",
}  # fmt: skip


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("source", NAMES)
def test_a_turn_counts_in_its_domain_its_side_and_the_whole(source):
    side = "out_domain" if source in ("reddit", "science") else "in_domain"
    found = score_coqa_domains([["x y"]], ["x"], [source])
    assert [*found] == [*NAMES.values(), "in_domain", "out_domain", "overall"]
    assert {name for name, one in found.items() if one["turns"]} == {NAMES[source], side, "overall"}
    for name, one in found.items():
        expected = (0, 200 / 3, 1) if one["turns"] else (0, 0, 0)
        assert (one["em"], one["f1"], one["turns"]) == pytest.approx(expected), name


def test_what_cannot_be_scored_is_refused():
    assert COQA_SIGNATURE == "rules:coqa|refs:leave-one-out"
    assert refusal(score_coqa, [["x"]], []) == "0 predictions for 1 turn; they must pair one to one"
    assert refusal(score_coqa, [["x"], []], ["x", None]) == "answers[1]: empty; every turn needs at least one answer"
    assert refusal(score_coqa_domains, [["x"]], ["x"], ["cnn", "cnn"]) == (
        "2 sources for 1 turn; they must pair one to one"
    )
    assert refusal(score_coqa_domains, [["x"]], ["x"], ["blog"]) == (
        "source 'blog': expected one of mctest, gutenberg, race, cnn, wikipedia, reddit, science"
    )


def test_no_turn_scores_0():
    assert score_coqa([], []) == {"em": 0, "f1": 0, "turns": 0}


def test_a_sample_is_scored_as_its_turns_written_out():
    answers = [["a", "b"], ["c"], ["a b", "b", "b"], ["d"]]
    predictions, sources = ["a", "c", "b", None], ["cnn", "reddit", "cnn", "race"]
    counts = np.array([2, 0, 1, 3.0])
    chosen = np.repeat(np.arange(4), counts.astype(int)).tolist()
    columns = [[column[i] for i in chosen] for column in (answers, predictions, sources)]
    whole = score_coqa(*columns[:2])
    assert CoqaTurns(answers, predictions).measures(counts) == pytest.approx({k: whole[k] for k in ("em", "f1")})
    expected = score_coqa_domains(*columns)
    found = CoqaDomains(answers, predictions, sources).measures(counts)
    for name, one in found.items():
        assert one == pytest.approx({measure: expected[name][measure] for measure in one}), name
