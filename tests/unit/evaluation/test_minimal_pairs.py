"""Minimal pairs: what is read, what a pair counts, and what comes of scores that are known."""

import json
import lzma

import numpy as np
import pytest

from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM
from unified.errors import UnifiedError
from unified.evaluation.minimal_pairs import PairScores, score_pairs
from unified.evaluation.pair_files import Paradigm, read_paradigms
from unified.evaluation.patterns import Sampling
from unified.evaluation.scorings import SCORINGS, scorings_named
from unified.evaluation.token_scores import token_scores
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tokenization.symbol_tokenizer import SymbolTokenizer


def handle(writes="left_to_right", zero=False, **changes):
    own, words = model(**changes), vocabulary()
    if zero:
        for parameter in own.parameters():
            parameter.data.zero_()
    return UnifiedLM(own, words, SymbolTokenizer(words.symbols), writes, None)


def paradigm(*pairs, name="agreement", **groups):
    good, bad = map(list, zip(*pairs, strict=True))
    return Paradigm(name, groups, good, bad, 2 * [f"{name}.jsonl, line {i}" for i in range(1, len(pairs) + 1)])


PAIRS = [(f"w{i} w{(5 * i) % 12} w3", f"w{(7 * i) % 12} w{i} w3") for i in range(1, 9)]


@pytest.mark.parametrize("scoring", SCORINGS)
def test_constant_scores_tie_where_lengths_are_equal_and_prefer_the_shorter_sentence(scoring):
    lm = handle(zero=True)
    equal, longer = paradigm(*PAIRS), paradigm(("w1 w2", "w1 w2 w3"), ("w1", "w1 w2"), name="length")
    found = score_pairs(lm, [equal, longer], scorings_named(scoring)).scores()
    assert found["paradigm"] == {"agreement": 50.0, "length": 100.0}
    assert found["ties"] == 8 and found["tied"] == {"agreement": 8} and found["accuracy"] == 75.0


@pytest.mark.parametrize("scoring", ["left_to_right", "pseudo_likelihood", "both+diffusion"])
def test_identical_sentences_tie_and_swapped_ones_give_the_rest(scoring):
    lm, scorings = handle(), scorings_named(scoring)
    pairs = [*PAIRS, ("w9 w2 w1 w0", "w9 w2 w1 w0"), ("w9", "w9")]
    found = score_pairs(lm, [paradigm(*pairs)], scorings)
    swapped = score_pairs(lm, [paradigm(*((bad, good) for good, bad in pairs))], scorings)
    assert (found.good[-2:] == found.bad[-2:]).all()
    assert 10 < found.scores()["accuracy"] != 50
    assert swapped.scores()["accuracy"] == pytest.approx(100 - found.scores()["accuracy"])


def test_scores_of_several_scorings_are_added():
    lm, own = handle(), [paradigm(*PAIRS)]
    both = score_pairs(lm, own, scorings_named("both"))
    each = [score_pairs(lm, own, [SCORINGS[name]]).good for name in ("left_to_right", "right_to_left")]
    np.testing.assert_allclose(both.good, sum(each))


def test_each_sentence_has_the_score_of_its_text_in_paradigms_of_any_size():
    """With the draws that are asked for; the number of sentences that have been scored is told."""
    lm, names, sampling, told = handle(), ("permutation", "left_to_right"), Sampling(2, seed=3), []
    sizes = (3, 1, 4)
    each = [paradigm(*PAIRS[sum(sizes[:i]) :][:size], name=str(i)) for i, size in enumerate(sizes)]
    found = score_pairs(lm, each, [SCORINGS[name] for name in names], sampling, told.append)
    for side, sentences in ((found.good, [g for g, _ in PAIRS]), (found.bad, [b for _, b in PAIRS])):
        texts = [np.array(lm.encode(sentence)) for sentence in sentences]
        own = [[one.total for one in token_scores(lm, texts, SCORINGS[name], sampling=sampling)] for name in names]
        np.testing.assert_allclose(side, np.sum(own, axis=0), atol=1e-5)
    assert sum(told) == len(names) * 2 * len(PAIRS)  # equal sentences are counted, though they are read once


def test_a_scoring_that_the_model_cannot_do_is_refused_before_any_sentence_is_scored():
    lm, told = handle("permutation", positions="relative"), []
    with pytest.raises(UnifiedError, match="scoring 'shifted' reads a token at the symbol before it"):
        score_pairs(lm, [paradigm(*PAIRS)], scorings_named("left_to_right+shifted"), done=told.append)
    with pytest.raises(UnifiedError, match="scoring 'infilling' reads a token at the sentinel before it"):
        score_pairs(lm, [paradigm(*PAIRS)], scorings_named("infilling"), done=told.append)
    assert not told


def test_accuracy_is_a_mean_over_paradigms_and_groups_are_means_over_theirs():
    one = paradigm(("a", "b"), ("a", "b"), ("a", "b"), ("a", "b"), name="one", field="syntax", linguistics_term="x")
    two = paradigm(("a", "b"), ("a", "b"), name="two", field="syntax", linguistics_term="y")
    three = paradigm(("a", "b"), name="three", field="morphology", linguistics_term="x")
    scores = PairScores([one, two, three], np.array([1.0, 1, 1, 0, 5, 2, -3]), np.array([0.0, 1, 2, 3, 4, 1, -3]))
    assert scores.scores() == {
        "accuracy": pytest.approx((37.5 + 100 + 50) / 3),
        "field": {"morphology": 50.0, "syntax": pytest.approx(68.75)},
        "linguistics_term": {"x": pytest.approx(43.75), "y": 100.0},
        "paradigm": {"one": 37.5, "two": 100.0, "three": 50.0},
        "pairs": 7,
        "ties": 2,
        "tied": {"one": 1, "three": 1},
    }
    drawn = scores.measures(np.array([0.0, 0, 4, 0, 0, 3, 0]))
    assert drawn["paradigm"] == {"one": 0.0, "two": 100.0} and drawn["accuracy"] == 50.0


def test_intervals_hold_the_scores_and_shrink_with_the_number_of_pairs():
    rng = np.random.default_rng(0)

    def interval(count):
        own = [paradigm(*[("a", "b")] * count, name=name) for name in ("one", "two")]
        scores = PairScores(own, rng.normal(0.5, 1, 2 * count), np.zeros(2 * count))
        low, high = bootstrap_intervals(scores, samples=200)["accuracy"]
        assert low < scores.scores()["accuracy"] < high
        return high - low

    assert interval(400) == pytest.approx(interval(25) / 4, rel=0.5)


def rows(*pairs, **more):
    return "".join(json.dumps({"sentence_good": g, "sentence_bad": b, **more}) + "\n" for g, b in pairs)


def test_files_of_blimp_and_of_zorro_are_read_compressed_or_not(tmp_path):
    groups = {"field": "syntax/semantics", "linguistics_term": "islands"}
    (tmp_path / "wh.jsonl").write_text(rows(("A b.", "B a."), UID="wh_island", **groups))
    with lzma.open(tmp_path / "b.jsonl.xz", "wt") as stream:
        stream.write(rows(("C d.", "D c."), ("E f.", "F e.")))
    (tmp_path / "models_summary.jsonl").write_text('{"UID": "wh_island", "gpt2": 0.9}\n')
    (tmp_path / "case-subjective.txt").write_text("bad one\ngood one\nbad two\ngood two\n\n")
    (tmp_path / "README").write_text("not read")
    (tmp_path / "README.txt").write_text("not\nread")
    found = read_paradigms(tmp_path)
    assert found.left_out == ["README.txt", "models_summary.jsonl"] and len(found.files) == 3
    assert [(p.name, p.groups, list(zip(p.good, p.bad, strict=True))) for p in found.paradigms] == [
        ("b", {}, [("C d.", "D c."), ("E f.", "F e.")]),
        ("case-subjective", {"field": "case"}, [("good one", "bad one"), ("good two", "bad two")]),
        ("wh_island", {**groups, "field": "syntax_semantics"}, [("A b.", "B a.")]),
    ]
    assert [place.rpartition(" ")[2] for place in found.paradigms[1].places] == ["2", "4", "1", "3"]
    assert [place.rpartition(" ")[2] for place in found.paradigms[0].places] == ["1", "2", "1", "2"]
    assert [p.name for p in read_paradigms(str(tmp_path / "wh.jsonl")).paradigms] == ["wh_island"]


@pytest.mark.parametrize(
    ("name", "phenomenon"),
    [
        ("filler-gap-wh_question_object", "filler-gap"),
        ("island-effects-coordinate_structure_constraint", "island-effects"),
        ("npi_licensing-only_npi_licensor", "npi_licensing"),
    ],
)
def test_the_field_of_zorro_is_the_phenomenon_whose_name_may_have_hyphens(tmp_path, name, phenomenon):
    (tmp_path / f"{name}.txt").write_text("bad one\ngood one\n")
    [found] = read_paradigms(tmp_path).paradigms
    assert (found.name, found.groups) == (name, {"field": phenomenon})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a-b.txt", "bad\ngood\nbad\n", "a-b.txt: 3 lines; bad and good sentences take turns, so their number is even"),
        ("a-b.txt", "bad\n\nbad\ngood\n", "a-b.txt, line 2: an empty line"),
        ("a.jsonl", '{"sentence_good": "x"}\n', "a.jsonl, line 1: no field 'sentence_bad'"),
        ("a.jsonl", rows(("x", "y"), ("x", "")), "a.jsonl, line 2: sentence_bad must be a sentence, got ''"),
        (
            "a.jsonl",
            rows(("\ud83d", "y")),
            "a.jsonl, line 1: sentence_good holds half of a surrogate pair, such as a part of an emoji",
        ),
        ("a.jsonl", "{\n", "a.jsonl, line 1"),
        ("a.jsonl", "", "no minimal pairs; BLiMP's files"),
        ("a.csv", "x", "no minimal pairs; BLiMP's files"),
    ],
)
def test_what_is_no_pair_is_refused_by_its_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(UnifiedError, match=message.replace("'", ".")):
        read_paradigms(tmp_path)


def test_a_place_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UnifiedError) as caught:
        read_paradigms(tmp_path / "missing")
    assert str(caught.value) == f"{tmp_path / 'missing'}: no such file or folder"


def test_a_paradigm_of_two_files_is_refused(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(rows(("x", "y"), UID="same"))
    with pytest.raises(UnifiedError, match="two files hold the paradigm 'same'"):
        read_paradigms(tmp_path)


def test_sentences_that_the_model_cannot_read_are_refused_by_their_lines():
    longest = " ".join(["w1"] * 46)
    assert score_pairs(handle(), [paradigm(("w2", longest))], [SCORINGS["left_to_right"]]).size == 1
    own = paradigm((" ", "w1"), ("w2", f"{longest} w1"), name="two")
    with pytest.raises(UnifiedError, match="two.jsonl, line 1: a sentence without a token; two.jsonl, line 2: a sent"):
        score_pairs(handle(), [own], [SCORINGS["left_to_right"]])


def test_scores_that_are_no_numbers_are_refused():
    lm = handle()
    lm.model.heads["token"].bias.data[5] = float("nan")
    with pytest.raises(UnifiedError, match="not numbers"):
        score_pairs(lm, [paradigm(*PAIRS)], [SCORINGS["left_to_right"]])
