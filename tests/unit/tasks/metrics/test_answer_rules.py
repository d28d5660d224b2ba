"""Rules for answers by their names: each gives the scores of its official program."""

from __future__ import annotations

import pytest

from unified.tasks.metrics import score_coqa, score_squad_v1, score_squad_v2
from unified.tasks.metrics.answer_rules import ANSWER_RULES
from unified.tasks.metrics.official_answers import coqa_files, squad_files

GOLD = [["the cat"], ["a dog", "dog house"], ["red", "blue car", "red"]]
TEXTS = ["Cat.", "dog", "car"]


def numbered(values) -> dict[str, object]:
    return {str(number): value for number, value in enumerate(values)}


def test_every_rule_names_its_program_and_how_it_scores():
    """F1 of one text goes from 0 to 100."""
    found = {name: (rules.program, rules.signature, rules.f1(GOLD[2], "car")) for name, rules in ANSWER_RULES.items()}
    assert found == {
        "1.1": ("SQuAD 1.1", "rules:squad1.1|refs:best", pytest.approx(200 / 3)),
        "2.0": ("SQuAD 2.0", "rules:squad2.0|refs:best", pytest.approx(200 / 3)),
        "coqa": ("CoQA", "rules:coqa|refs:leave-one-out", pytest.approx(400 / 9)),
    }
    assert ANSWER_RULES["1.1"].f1([], "") == ANSWER_RULES["2.0"].f1([], "") == 100
    assert [rules.files for rules in ANSWER_RULES.values()] == [squad_files, squad_files, coqa_files]
    assert [rules.best is None for rules in ANSWER_RULES.values()] == [True, False, True]


def test_scores_are_those_of_the_program_with_f1_and_exact_among_them():
    one, two = score_squad_v1(numbered(GOLD), numbered(TEXTS)), score_squad_v2(numbered(GOLD), numbered(TEXTS))
    assert ANSWER_RULES["1.1"].scored(GOLD, TEXTS).scores() == one | {"exact": one["exact_match"]}
    assert ANSWER_RULES["2.0"].scored(GOLD, TEXTS).scores() == two
    coqa = score_coqa(GOLD, TEXTS)
    assert ANSWER_RULES["coqa"].scored(GOLD, TEXTS).scores() == coqa | {"exact": coqa["em"]}
    assert len({one["exact_match"], one["f1"], coqa["em"], coqa["f1"]}) == 4  # so none stands for another


def test_the_best_scores_are_those_of_the_search_for_thresholds():
    chances = [0.2, 0.9, 0.4]
    best, gold = ANSWER_RULES["2.0"].best, [GOLD[0], [], GOLD[2]]
    assert best is not None
    whole = score_squad_v2(numbered(gold), numbered(TEXTS), na_probs=numbered(chances))
    found = best(gold, TEXTS, chances).scores()
    assert found == {name: whole[name] for name in ("best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh")}
    assert found["best_f1_thresh"] == 0.4
