"""Bootstrap intervals against a plain bootstrap: every sample is written out and scored by the published functions."""

import json
import math
import random

import numpy as np
import pytest

from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks import metrics
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tasks.metrics.classification import Classification, Confusion, Regression
from unified.tasks.metrics.coqa import CoqaDomains
from unified.tasks.metrics.coreference import CoreferenceDocuments
from unified.tasks.metrics.examples import Joined, Noted, Shaped, SingleScores
from unified.tasks.metrics.generation import GeneratedTexts
from unified.tasks.metrics.question_generation import GeneratedQuestions
from unified.tasks.metrics.relations import Relations, SemevalRelations
from unified.tasks.metrics.squad import SquadV1Examples, SquadV2Examples
from unified.tasks.metrics.subsets import OfSubsets
from unified.tasks.metrics.tagging import TagAccuracy, TaggedSentences

COUNT, SAMPLES = 12, 40
WORDS = ["the", "Fox", "runs", "over", "a", "lazy", "dog", ".", "Paris", "42"]


def texts(rng, count=COUNT):
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(count)]


def labels(rng, names):
    gold = rng.choices(names, k=COUNT)
    return gold, [one if rng.random() < 0.6 else rng.choice(names) for one in gold]


def chains(rng):
    mentions = [(i, i) for i in range(8)]
    rng.shuffle(mentions)
    first, second = sorted(rng.sample(range(1, 8), 2))
    return [mentions[:first], mentions[first:second], mentions[second:]]


def by_id(column):
    """Of questions that may be there several times: each gets an id of its own."""
    return {f"q{i}": value for i, value in enumerate(column)}


def squad_1(answers, predictions):
    return metrics.score_squad_v1(by_id(answers), by_id(predictions))


def squad_2(answers, predictions, probabilities):
    given = by_id(answers), by_id(predictions)
    return metrics.score_squad_v2(*given, na_probs=by_id(probabilities), na_prob_threshold=0.7)


def accuracy(gold, predicted):
    return {"accuracy": metrics.score_classification(gold, predicted)["accuracy"]}


def choices(gold, predicted, subsets):
    """Each subset is scored by itself."""
    found = accuracy(gold, predicted)
    for subset in dict.fromkeys(one for one in subsets if one is not None):
        members = [i for i, one in enumerate(subsets) if one == subset]
        own = accuracy(*([side[i] for i in members] for side in (gold, predicted)))
        found[f"accuracy_{subset}"] = own["accuracy"]
    return found


def questions(hypotheses, references):
    sources = [f"source {i}" for i in range(len(hypotheses))]
    return metrics.score_question_generation(hypotheses, references, sources).to_dict()


def only(scores, wanted, found):
    """Scores without those that are not defined where there is no gold or no predicted one of what they are about."""
    lacking = {"recall"} if found else {"precision", "recall", "f1"}
    return {name: value for name, value in scores.items() if wanted or name not in lacking}


def classified(gold, predicted):
    """A sample may lack the positive class, or all classes but one."""
    seen = "c" in [*gold, *predicted]
    scores = metrics.score_classification(gold, predicted, positive="c" if seen else None)
    if len(set(gold)) == 1:
        del scores["matthews"]
    return only(scores, "c" in gold, "c" in predicted)


def related(gold, predicted):
    """TACRED's rules define the precision where nothing is predicted."""
    scores = metrics.score_relations(gold, predicted)
    found = only(scores, {*gold} != {"no_relation"}, {*predicted} != {"no_relation"})
    return {"precision": scores["precision"]} | found


def related_semeval(gold, predicted):
    scores = metrics.score_semeval2010_task8(gold, predicted)
    return {"accuracy": scores["accuracy"]} if set(gold) == {"Other"} else scores


def tagged(gold, predicted):
    types = metrics.score_tagging_by_type(gold, predicted)
    scores = metrics.score_tagging(gold, predicted) | {"types": types}
    for own in (scores, *types.values()):
        for name in own.keys() - only(own, own["gold"], own["predicted"]).keys():
            del own[name]
    return scores


def conversed(answers, predictions, stories):
    """A domain of which there is no turn has no score."""
    found = metrics.score_coqa_domains(answers, predictions, stories)
    return {name: own for name, own in found.items() if own["turns"]}


def accuracy_of_tags(gold, predicted):
    pairs = [pair for tags in zip(gold, predicted, strict=True) for pair in zip(*tags, strict=True)]
    return {"accuracy": 100 * sum(one == other for one, other in pairs) / len(pairs)}


def cases(rng):
    """By name: columns of examples, what scores columns, and the examples that know what they count."""
    numbers = [[rng.randint(0, 5) / 2 for _ in range(COUNT)] for _ in range(2)]
    directed = ["Other", "A-B(e1,e2)", "A-B(e2,e1)", "C-D(e1,e2)"]
    answers = [texts(rng, rng.randint(1, 3)) for _ in range(COUNT)]
    mixed = [own if rng.random() < 0.7 else [] for own in answers]
    predictions = [rng.choice(["", *own, *texts(rng, 1)]) for own in answers]
    probabilities = [round(rng.random(), 1) for _ in range(COUNT)]
    gold = [rng.choices(["O", "O", "B-PER", "I-PER", "B-LOC"], k=rng.randint(1, 7)) for _ in range(COUNT)]
    found = [[tag if rng.random() < 0.8 else "O" for tag in own] for own in gold]
    references = [texts(rng, rng.randint(1, 2)) for _ in range(COUNT)]
    written = [own[0] if i % 3 else text for i, (own, text) in enumerate(zip(references, texts(rng), strict=True))]
    documents = [[chains(rng) for _ in range(COUNT)] for _ in range(2)]
    first = [own[0] for own in references]
    subsets = rng.choices(["high", "middle", None], k=COUNT)
    stories = rng.choices(["mctest", "cnn", "reddit"], k=COUNT)
    return {
        "classification": (labels(rng, "abc"), classified, lambda *c: Classification(Confusion.of(*c), "c")),
        "regression": (numbers, metrics.score_regression, lambda *c: Regression(*map(np.array, c))),
        "relations": (
            labels(rng, ["no_relation", "x", "y"]), related, lambda *c: Relations(Confusion.of(*c)),
        ),
        "semeval": (
            labels(rng, directed), related_semeval, lambda *c: SemevalRelations(Confusion.of(*c)),
        ),
        "choice": (
            (*labels(rng, "01"), subsets), choices,
            lambda g, p, s: Joined(
                Shaped(Classification(Confusion.of(g, p)), lambda found: {"accuracy": found["accuracy"]}),
                OfSubsets(Classification(Confusion.of(g, p)), s, ["accuracy"]),
            ),
        ),
        "single scores": (
            labels(rng, "abc"), accuracy,
            lambda g, p: SingleScores(g, {"accuracy": 100 * (np.array(g) == np.array(p))}),
        ),
        "accuracy of tags": ((gold, found), accuracy_of_tags, TagAccuracy),
        "joined": (
            labels(rng, ["no_relation", "x", "y"]),
            lambda *c: {"micro": metrics.score_relations(*c)["f1"]} | accuracy(*c),
            lambda *c: Noted(Joined(
                Shaped(Relations(Confusion.of(*c)), lambda found: {"micro": found["f1"]}),
                Shaped(Classification(Confusion.of(*c)), lambda found: {"accuracy": found["accuracy"]}),
            ), {"signature": "s"}),
        ),
        "tagging": ((gold, found), tagged, lambda *c: TaggedSentences(*c, by_type=True)),
        "squad 1.1": ((answers, predictions), squad_1, lambda *c: SquadV1Examples(*map(by_id, c))),
        "squad 2.0": (
            (mixed, predictions, probabilities), squad_2, lambda *c: SquadV2Examples(*map(by_id, c), 0.7),
        ),
        "coqa": ((answers, predictions, stories), conversed, CoqaDomains),
        "coreference": (documents, metrics.score_coreference, CoreferenceDocuments),
        "generation": (
            (written, references, first), lambda h, r, s: metrics.score_generation(h, r, sources=s).to_dict(),
            lambda h, r, s: GeneratedTexts(h, r, sources=s),
        ),
        "question generation": (
            (written, first), questions, lambda *c: GeneratedQuestions(*c, [f"source {i}" for i in range(COUNT)]),
        ),
    }  # fmt: skip


def leaves(values, path=()):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", cases(random.Random(0)))
def test_intervals_are_those_of_a_plain_bootstrap(name, seed):
    columns, score, examples_of = cases(random.Random(seed))[name]
    examples = examples_of(*columns)
    whole, own = dict(leaves(score(*columns))), dict(leaves(examples.measures()))
    assert own == {path: pytest.approx(whole[path], abs=1e-9) for path in own}
    floats = {path for path, value in whole.items() if isinstance(value, float)}
    assert own.keys() == {path for path in floats if not path[-1].endswith("_thresh")}
    intervals = dict(leaves(bootstrap_intervals(examples, SAMPLES, seed)))
    rng, found = np.random.default_rng(seed), {path: [] for path in own}
    for _ in range(SAMPLES):
        chosen = sorted(rng.integers(COUNT, size=COUNT).tolist())
        sample = dict(leaves(score(*([column[i] for i in chosen] for column in columns))))
        for path, values in found.items():
            values += [sample[path]] if path in sample else []
    assert intervals.keys() == found.keys() and all(len(values) > SAMPLES / 2 for values in found.values())
    for path, values in found.items():
        assert intervals[path] == pytest.approx(np.quantile(values, [0.025, 0.975]).tolist(), abs=1e-9), path


@pytest.mark.parametrize("name", cases(random.Random(0)))
def test_a_sample_may_be_of_any_size(name):
    """A subset is a sample, too: its measures are those of its examples alone, as often as they are there."""
    columns, score, examples_of = cases(random.Random(3))[name]
    examples, rng = examples_of(*columns), np.random.default_rng(4)
    for most in (2, 4):
        counts = rng.integers(most, size=COUNT)
        chosen = np.arange(COUNT).repeat(counts).tolist()
        sample = dict(leaves(score(*([column[i] for i in chosen] for column in columns))))
        for path, value in leaves(examples.measures(counts.astype(np.float64))):
            assert value == pytest.approx(sample[path], abs=1e-9), path


def perfect():
    """Examples that are all right, with what half of the draws have not, and the measures that are about that."""
    rare = ["a"] * 59 + ["b"]
    relations, directed = (["none"] * 59 + ["x"]), (["Other"] * 59 + ["A-B(e1,e2)"])
    tags, stories = [["O"]] * 59 + [["B-X"]], ["race"] * 59 + ["cnn"]
    of_class = ("precision", "recall", "f1")
    macro_and_micro = [f"{kind}_{name}" for kind in ("macro", "micro") for name in of_class]
    answers = [["x"]] * 60
    return [
        (Classification(Confusion.of(rare, rare), "b"), [(name,) for name in (*of_class, "matthews")]),
        (Relations(Confusion.of(relations, relations), "none"), [(name,) for name in of_class]),
        (SemevalRelations(Confusion.of(directed, directed)), [(name,) for name in macro_and_micro]),
        (TaggedSentences(tags, tags, by_type=True), [*[(name,) for name in of_class], ("types", "X", "f1")]),
        (TaggedSentences([[]] * 59 + [["O"]], [[]] * 59 + [["O"]]), [("accuracy",)]),
        (TagAccuracy([[]] * 59 + [["O"]], [[]] * 59 + [["O"]]), [("accuracy",)]),
        (CoqaDomains(answers, ["x"] * 60, stories), [("news", "em"), ("news", "f1")]),
    ]


@pytest.mark.parametrize(("examples", "paths"), perfect())
def test_draws_without_what_a_measure_is_about_do_not_count_for_it(examples, paths):
    intervals = dict(leaves(bootstrap_intervals(examples, 50)))
    assert all(intervals[path] == pytest.approx([100, 100]) for path in paths)
    nothing = dict(leaves(examples.measures(np.array([1.0] * 59 + [0]))))
    by_rule = {("precision",)} if isinstance(examples, Relations) else set()  # TACRED's: of nothing predicted it is 100
    assert nothing.keys() & paths == by_rule


def test_what_is_not_defined_for_all_examples_is_0_among_the_scores_and_no_measure():
    same, other = ["a", "a"], ["a", "b"]
    for examples, lacking in (
        (Classification(Confusion.of(same, other)), {"matthews"}),
        (Classification(Confusion.of(same, other), "b"), {"matthews", "recall"}),
        (Classification(Confusion.of(other, same), "b"), set()),  # of one prediction alone 0 is the score
        (Classification(Confusion.of(same, same), "b"), {"matthews", "precision", "recall", "f1"}),
        (Relations(Confusion.of(same, other), "a"), {"recall"}), (Relations(Confusion.of(other, same), "a"), set()),
        (Relations(Confusion.of(same, same), "a"), {"recall", "f1"}),
        (TaggedSentences([["O"]], [["B-X"]]), {"recall"}), (TaggedSentences([["B-X"]], [["O"]]), set()),
        (TaggedSentences([["O"]], [["O"]]), {"precision", "recall", "f1"}),
        (SemevalRelations(Confusion.of(["Other"] * 2, ["Other", "A-B(e1,e2)"])),
         {f"{kind}_{name}" for kind in ("macro", "micro") for name in ("precision", "recall", "f1")}),
        (Regression(np.ones(3), np.arange(3.0)), {"pearson", "spearman"}),
    ):  # fmt: skip
        scores, measures = examples.scores(), examples.measures()
        assert {name for name, value in scores.items() if isinstance(value, float)} - measures.keys() == lacking
        assert {name: scores[name] for name in (*measures, *lacking)} == measures | dict.fromkeys(lacking, 0)
    found = CoqaDomains([["x"]], ["x"], ["cnn"])
    assert found.scores()["science"] == {"em": 0, "f1": 0, "turns": 0} and "science" not in found.measures()
    assert found.measures()["news"] == {"em": 100, "f1": 100}


def test_the_interval_of_an_accuracy_is_that_of_the_binomial_distribution():
    gold, predicted = ["a"] * 400, ["a"] * 280 + ["b"] * 120
    low, high = bootstrap_intervals(Classification(Confusion.of(gold, predicted)), 4000)["accuracy"]
    half = 196 * math.sqrt(0.7 * 0.3 / 400)
    assert low == pytest.approx(70 - half, abs=0.4) and high == pytest.approx(70 + half, abs=0.4)


def test_the_command_adds_intervals_that_a_seed_repeats(tmp_path, capsys):
    (tmp_path / "gold").write_text("a\nb\na\nb\n" * 10)
    (tmp_path / "found").write_text("a\na\na\nb\n" * 10)
    files = [str(tmp_path / "gold"), str(tmp_path / "found")]

    def scored(*words):
        assert main(["score", *words]) == 0
        return capsys.readouterr().out

    words = ["classification", *files, "--intervals", "--resamples", "200"]
    plain, first = json.loads(scored("classification", *files)), json.loads(scored(*words))
    assert first == plain | {"intervals": first["intervals"]} and plain["accuracy"] == 75
    low, high = first["intervals"]["accuracy"]
    assert 55 < low < 75 < high < 95 and first["intervals"].keys() == plain.keys() - {"total"}
    assert json.loads(scored(*words)) == first and json.loads(scored(*words, "--seed", "2")) != first
    shown = scored("generation", *reversed(files), "--intervals", "--resamples", "50")
    (line,) = [line for line in shown.splitlines() if line.startswith("exact sentences, %")]
    assert line.split()[3] == "75.00" and line.endswith("]")


def test_what_has_no_interval_is_refused(tmp_path, capsys):
    with pytest.raises(UnifiedError, match="intervals need at least 2 examples to draw from; there is 1"):
        bootstrap_intervals(Classification(Confusion.of(["a"], ["a"])))
    (tmp_path / "gold").write_text("a\nb\n")
    files = [str(tmp_path / "gold")] * 2
    for option, value, least in (("--resamples", "1", 2), ("--seed", "-1", 0)):
        with pytest.raises(SystemExit):
            main(["score", "classification", *files, "--intervals", f"{option}={value}"])
        assert f"{option}: must be an integer of at least {least}, got '{value}'" in capsys.readouterr().err


class Shares:
    """Two examples, of which a sample has shares: just enough to draw from."""

    size = 2

    def measures(self, counts=None):
        return {"first": 0.5 if counts is None else counts[0] / 2}


def test_limits_of_what_is_drawn_are_exact():
    for samples, seed, message in (
        (1, 0, "samples must be at least 2, got 1"),
        (2, -1, "seed must be at least 0, got -1"),
        (1, -1, "samples must be at least 2, got 1"),
    ):
        with pytest.raises(UnifiedError) as caught:
            bootstrap_intervals(Shares(), samples, seed)
        assert str(caught.value) == message
    low, high = bootstrap_intervals(Shares(), 2, 0)["first"]
    assert 0 <= low <= high <= 1


def test_a_thousand_samples_of_seed_1_are_drawn_where_nobody_says_how_many():
    class Numbers(Shares):
        size = 30

        def measures(self, counts=None):
            return {"mean": 0.0 if counts is None else float(counts @ np.arange(30) / 7)}

    assert bootstrap_intervals(Numbers()) == bootstrap_intervals(Numbers(), 1000, 1)
    others = [bootstrap_intervals(Numbers(), *given) for given in ((1001, 1), (999, 1), (1000, 2), (1000, 0))]
    assert bootstrap_intervals(Numbers()) not in others


def test_the_interval_cuts_a_fortieth_off_each_side():
    rng, drawn = np.random.default_rng(3), []
    for _ in range(400):
        drawn.append(np.bincount(rng.integers(2, size=2), minlength=2)[0] / 2)
    assert bootstrap_intervals(Shares(), 400, 3)["first"] == np.quantile(drawn, [0.025, 0.975]).tolist()


def test_what_no_sample_has_or_what_is_infinite_in_one_has_no_interval():
    class Some(Shares):
        def measures(self, counts=None):
            found = {"known": 1.0, "never": 1.0, "infinite": 1.0}
            if counts is not None:
                found |= {"never": math.nan, "infinite": math.inf if counts[0] else 1.0}
            return {"kind": found}

    with np.errstate(all="raise"):
        assert bootstrap_intervals(Some(), 20, 1) == {"kind": {"known": [1.0, 1.0]}}
