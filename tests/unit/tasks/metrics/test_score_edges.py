"""Scores of answers, relations, tags, questions and subsets at their edges, and the exact text of refusals."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from unified import __version__
from unified.errors import UnifiedError
from unified.tasks.metrics import (
    QuestionScores,
    best_threshold,
    score_question_generation,
    score_relations,
    score_semeval2010_task8,
    score_squad_v1,
    score_squad_v2,
    score_tagging,
)
from unified.tasks.metrics.classification import Classification, Confusion
from unified.tasks.metrics.question_generation import GeneratedQuestions, group_by_source
from unified.tasks.metrics.relations import OTHER, Relations, SemevalRelations
from unified.tasks.metrics.squad import SquadV1Examples, SquadV2Examples
from unified.tasks.metrics.subsets import OfSubsets, named_by_subset
from unified.tasks.metrics.tagging import TaggedSentences, is_entity_tag


def refusal(call, *arguments, **settings) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments, **settings)
    return caught.value.details


# Answers


def test_questions_that_cannot_be_scored_are_refused():
    one = {"a": ["x"]}
    for rules in (score_squad_v1, score_squad_v2):
        assert refusal(rules, {}, {}) == "nothing to score: no questions"
        assert refusal(rules, one, {}) == ("no prediction is for any of the 1 questions, such as 'a'; there are none")
        assert refusal(rules, one, {"b": "x", "c": "y"}) == (
            "no prediction is for any of the 1 questions, such as 'a'; they are for questions such as 'b'"
        )
        assert refusal(rules, one, {"a": 3}) == "prediction of question 'a': expected a string, got 3"
    assert refusal(score_squad_v1, {"a": ["x"], "b": []}, {"a": "x"}) == (
        "question 'b' has no answer; score unanswerable questions by the rules of 2.0"
    )
    needed = "the rules of SQuAD 2.0 need one for every question"
    three = {"a": ["x"], "b": ["x"], "c": []}
    assert refusal(score_squad_v2, three, {"b": "x"}) == (
        f"no prediction for 2 of 3 questions, the first is 'a'; {needed}"
    )
    assert refusal(score_squad_v2, one, {"a": "x"}, na_probs={"b": 1.0}) == (
        f"no no-answer probability for 1 of 1 questions, the first is 'a'; {needed}"
    )


def test_scores_have_the_official_names_in_their_order():
    both = {"a": ["x"], "b": []}, {"a": "x", "b": "y"}
    groups = [f"{group}{name}" for group in ("", "HasAns_", "NoAns_") for name in ("exact", "f1", "total")]
    best = ["best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh"]
    assert list(score_squad_v2(*both, na_probs={"a": 0.1, "b": 0.9})) == [*groups, *best]
    assert list(score_squad_v2(*both)) == groups
    assert list(score_squad_v2({"a": ["x"]}, {"a": "x"})) == groups[:6]
    assert list(score_squad_v1({"a": ["x"]}, {"a": "x"})) == ["exact_match", "f1", "total", "unanswered"]


def test_an_answer_is_taken_back_where_its_probability_exceeds_the_threshold():
    """1 where nobody names another: no probability exceeds it."""
    answers, predictions = {"a": ["x"], "b": []}, {"a": "x", "b": "y"}
    assert score_squad_v2(answers, predictions, na_probs={"a": 1.0, "b": 1.0})["exact"] == 50
    assert score_squad_v2(answers, predictions, na_probs={"a": 1.0, "b": 1.5})["exact"] == 100
    assert SquadV2Examples(answers, predictions, {"a": 1.0, "b": 1.5}).measures()["exact"] == 100
    assert SquadV2Examples(answers, predictions, {"a": 1.0, "b": 1.0}).measures()["exact"] == 50


def test_probabilities_of_other_questions_do_not_count():
    answers, predictions = {"a": ["x"], "b": []}, {"a": "x", "b": "y"}
    own = {"b": 0.8, "a": 0.3}
    assert score_squad_v2(answers, predictions, na_probs={"z": 0.1, **own, "y": 0.9}) == (
        score_squad_v2(answers, predictions, na_probs=own)
    )


def test_samples_of_questions_are_scored_as_written_out():
    rng = random.Random(1)
    answers = {f"q{i}": [rng.choice("abc"), "a b"][: rng.randint(1, 2)] for i in range(6)}
    predictions = {f"q{i}": rng.choice(["a", "b", "c b"]) for i in range(1, 6)}
    counts = np.array([1, 0, 2, 1, 0, 2.0])
    copies = [f"q{i}" for i in np.repeat(np.arange(6), counts.astype(int))]
    whole = score_squad_v1(
        {str(n): answers[q] for n, q in enumerate(copies)},
        {str(n): predictions[q] for n, q in enumerate(copies) if q in predictions},
    )
    found = SquadV1Examples(answers, predictions).measures(counts)
    assert found == pytest.approx({name: whole[name] for name in ("exact_match", "f1")})


def test_a_threshold_needs_as_many_of_everything():
    for sizes in ((0, 0, 0), (1, 2, 1), (1, 1, 2), (2, 1, 1)):
        lists = [[0.5] * size for size in sizes]
        assert refusal(best_threshold, *lists) == (
            f"a threshold needs as many probabilities as scores and one at least, got {sizes[0]} scores of answers, "
            f"{sizes[1]} of silence and {sizes[2]} probabilities"
        )


def test_the_threshold_lies_in_the_middle():
    assert best_threshold([1], [0], [0.5]) == 0.75  # up to 1
    assert best_threshold([0], [1], [0.5]) == 0.25  # from 0
    assert best_threshold([0], [1], [0.0]) == 0.5  # 0 exceeds no threshold
    assert best_threshold([1, 0], [0, 1], [0.25, 0.75]) == 0.5
    assert best_threshold([1, 1, 0], [0, 0, 1], [0.25, 0.5, 0.5]) == 0.375  # equal ones are decided alike
    assert best_threshold([1], [1], [0.5]) == 0.25  # of equal sums the lowest
    near = np.nextafter(0.5, 1)
    assert best_threshold([1, 0], [0, 1], [0.5, near]) == 0.5  # the middle would be one of them
    assert best_threshold([1], [0], [1.0]) == 1.0


# Relations


def test_relations_that_cannot_be_scored_are_refused():
    kind = "the labels are of another kind, such as"
    assert refusal(score_relations, [1, 2], [1, 1]) == f"negative label 'no_relation': {kind} {np.int64(1)!r}"
    assert refusal(score_relations, ["a"], ["b"], negative=0) == f"negative label 0: {kind} {np.str_('a')!r}"
    assert refusal(score_semeval2010_task8, ["A-B(e1,e2)", "A-B"], ["Other"] * 2) == (
        "label 'A-B': expected 'Other' or a relation with a direction, as in 'A-B(e1,e2)'"
    )
    assert OTHER == "Other"


def test_nothing_found_has_a_precision_of_100_and_nothing_wanted_a_recall_of_0():
    assert score_relations(["a", "no_relation"], ["no_relation"] * 2) == {"precision": 100, "recall": 0, "f1": 0}
    assert score_relations(["no_relation"] * 2, ["a", "a"]) == {"precision": 0, "recall": 0, "f1": 0}
    assert Relations(Confusion.of(["a", "b"], ["a", "a"])).measures() == score_relations(["a", "b"], ["a", "a"])
    found = score_semeval2010_task8(["Other"] * 2, ["Other", "A-B(e1,e2)"])
    assert found.pop("accuracy") == 50 and set(found.values()) == {0}


def test_a_sample_of_relations_is_scored_as_written_out():
    rng = np.random.default_rng(1)
    known = ["Other", "A-B(e1,e2)", "A-B(e2,e1)", "C-D(e1,e2)", "C-D(e2,e1)"]
    for _ in range(100):
        gold, predicted = rng.choice(known, (2, 5))
        counts = np.bincount(rng.integers(5, size=5), minlength=5).astype(np.float64)
        chosen = np.repeat(np.arange(5), counts.astype(int))
        found = SemevalRelations(Confusion.of(gold, predicted)).measures(counts)
        expected = score_semeval2010_task8(gold[chosen], predicted[chosen])
        assert found == pytest.approx({name: expected[name] for name in found})
        assert found.keys() == ({"accuracy"} if set(gold[chosen]) == {"Other"} else expected.keys())


# Tags


def test_tags_that_cannot_be_scored_are_refused():
    assert refusal(score_tagging, [["O"]], []) == "0 sentences predicted, but 1 are gold"
    assert refusal(score_tagging, [["O"], ["O"]], [["O"], []]) == "sentence 2: 0 tags predicted for 1 token"
    assert refusal(score_tagging, [[]], [[]]) == "nothing to score: no tags"
    assert refusal(score_tagging, [], []) == "nothing to score: no tags"
    assert refusal(score_tagging, [["S-X"]], [["O"]]) == "tag 'S-X': expected O, B-TYPE or I-TYPE (BIO or IOB1)"
    assert [is_entity_tag(tag) for tag in ("O", "B-x", "I-x", "B", "I", "O-x", "X", "")] == [
        True, True, True, True, True, False, False, False,
    ]  # fmt: skip


def test_a_sample_of_sentences_has_the_types_that_are_in_it():
    gold, predicted = [["B-X", "O"], ["B-Y"], ["O"]], [["B-X", "B-X"], ["O"], ["B-Z"]]
    sentences = TaggedSentences(gold, predicted, by_type=True)
    for counts in ([1, 0, 0], [0, 2, 0], [0, 1, 2], [1, 1, 1]):
        chosen = np.repeat(np.arange(3), counts).tolist()
        whole = TaggedSentences([gold[i] for i in chosen], [predicted[i] for i in chosen], by_type=True)
        assert sentences.measures(np.array(counts, dtype=np.float64)) == whole.measures()
    assert "types" not in TaggedSentences(gold, predicted).scores()
    assert "types" not in TaggedSentences(gold, predicted).measures()
    assert TaggedSentences(gold, predicted).measures(np.zeros(3)) == {}


# Questions that were generated


def test_lists_of_questions_must_pair():
    assert refusal(group_by_source, ["a"], ["b", "c"], []) == (
        "1 hypotheses, 2 references, 0 sources; they must pair one to one"
    )
    assert refusal(group_by_source, ["a"], ["b"], ["c", "d"]) == (
        "1 hypotheses, 1 references, 2 sources; they must pair one to one"
    )
    assert refusal(group_by_source, [], [], []) == "nothing to score: no hypotheses"
    assert refusal(group_by_source, ["a", "b"], ["c", []], ["s", "t"]) == (
        "references[1]: empty; every hypothesis needs at least one reference"
    )


def test_empty_questions_score_0():
    for hypotheses, references in (([""], ["a b"]), (["a"], ["b"]), ([""], [""])):
        found = score_question_generation(hypotheses, references, ["s"])
        assert (found.rougeL, found.source_words) == (0, 0)
        assert max(found.bleu1, found.bleu2, found.bleu3, found.bleu4) < 1e-3


def test_what_is_added_so_that_nothing_divides_by_0():
    """As published: 1e-15 to matches, 1e-9 to totals; a text of one word has no pair of words to match."""
    found = score_question_generation(["a"], ["a"], ["s"])
    one = (1 + 1e-15) / (1 + 1e-9)
    for n in range(1, 5):
        expected = 100 * math.exp(1 - 1 / one) * (one * (1e-15 / 1e-9) ** (n - 1)) ** (1 / n)
        assert vars(found)[f"bleu{n}"] == pytest.approx(expected, rel=1e-12)
    nothing = score_question_generation(["a"], [""], ["s"])
    assert nothing.bleu1 == pytest.approx(100 * 1e-15 / (1 + 1e-9), rel=1e-9)
    shorter = score_question_generation(["a"], ["a b"], ["s"])
    assert shorter.bleu1 == pytest.approx(100 * one * math.exp(1 - (2 + 1e-9) / (1 + 1e-15)), rel=1e-12)
    assert GeneratedQuestions(["a"], ["a"], ["s"]).scores() == found.to_dict()


def test_scores_without_a_signature():
    found = QuestionScores(1, 1, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
    assert (found.meteor, found.signature) == (None, "") and "meteor" not in found.to_dict()
    signed = score_question_generation(["a"], ["a"], ["s"], form="x").signature
    assert signed == (
        "nrefs:1|tok:x+spaces|groups:source,last-hypothesis|bleu:qgevalcap,smooth-1e-15,closest-length|"
        f"rougeL:qgevalcap,beta-1.2|version:{__version__}"
    )


# Subsets


def test_subsets_are_scored_by_themselves():
    examples = Classification(Confusion.of(list("aabb"), list("abba")))

    def found(subsets, average=True):
        return OfSubsets(examples, subsets, ["accuracy"], average).scores()

    divided = ["y", "x", "y", None]
    assert found(divided) == {"accuracy_y": 100, "accuracy_x": 0, "average_accuracy": 50}
    assert list(found(divided)) == ["accuracy_y", "accuracy_x", "average_accuracy"]
    assert found(["y"] * 4) == {"accuracy_y": 50}
    assert found(divided, average=False) == {"accuracy_y": 100, "accuracy_x": 0}
    assert found([None] * 4) == {} == named_by_subset({}, ["accuracy"], True)
    # A sample that lacks a subset has no mean over both.
    assert OfSubsets(examples, divided, ["accuracy"], True).measures(np.array([1.0, 0, 1, 2])) == {"accuracy_y": 100}
    whole = OfSubsets(examples, divided, ["accuracy"])
    assert whole.references() == list(zip("aabb", divided, strict=True)) and whole.size == 4


def test_a_measure_that_a_subset_lacks_has_no_mean():
    scores = {"x": {"f1": 1.0, "best": 2.0}, "y": {"f1": 3.0}}
    assert named_by_subset(scores, ["f1", "best"], True) == {"f1_x": 1, "f1_y": 3, "average_f1": 2, "best_x": 2}


class Sums:
    """Three examples, and the sum of twice their numbers in a sample."""

    size = 3

    def scores(self):
        return self.measures()

    def measures(self, counts=None):
        counts = np.ones(3) if counts is None else counts
        return {"sum": float((counts + counts).sum())}


def test_the_examples_of_a_subset_are_counted_in_numbers():
    """As those of any sample are: truth values would add up to 1 at most."""
    assert OfSubsets(Sums(), ["x", "x", None], ["sum"]).measures() == {"sum_x": 4}
