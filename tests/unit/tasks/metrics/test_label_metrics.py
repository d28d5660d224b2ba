"""Scores of labels, numbers, relations and tags against other implementations, definitions and published scores."""

import json
import random
from collections import Counter

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.tasks.metrics import (
    score_classification,
    score_regression,
    score_relations,
    score_semeval2010_task8,
    score_tagging,
    score_tagging_by_type,
)


def labels(rng: random.Random, known: list, count: int) -> tuple[list, list]:
    gold = [rng.choice(known) for _ in range(count)]
    return gold, [label if rng.random() < 0.5 else rng.choice(known) for label in gold]


# ----------------------------------------------------------- classification


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_classification_is_scikit_learns():
    import sklearn.metrics

    rng = random.Random(1)
    for _ in range(120):
        classes = rng.choice([2, 2, 3, 5])
        known = list(range(classes)) if rng.random() < 0.5 else [f"class {i}" for i in range(classes)]
        gold, predicted = labels(rng, known, rng.randint(1, 40))
        positive = rng.choice(gold + predicted)
        scores = score_classification(gold, predicted, positive=positive)
        per_class = sklearn.metrics.precision_recall_fscore_support(gold, predicted)[:3]
        index = sorted({*gold, *predicted}).index(positive)
        expected = {
            "accuracy": sklearn.metrics.accuracy_score(gold, predicted),
            **dict(zip(("macro_precision", "macro_recall", "macro_f1"), map(np.mean, per_class), strict=True)),
            "matthews": sklearn.metrics.matthews_corrcoef(gold, predicted),
            **{name: column[index] for name, column in zip(("precision", "recall", "f1"), per_class, strict=True)},
        }
        assert scores == pytest.approx({name: 100 * v for name, v in expected.items()} | {"total": len(gold)})


def test_classification_by_hand():
    scores = score_classification(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]), positive=1)
    expected = {
        "accuracy": 75, "macro_precision": (200 / 3 + 100) / 2, "macro_recall": (100 + 50) / 2,
        "macro_f1": (200 / 3 + 80) / 2, "matthews": 100 / 3**0.5, "precision": 100, "recall": 50, "f1": 200 / 3,
        "total": 4,
    }  # fmt: skip
    assert scores == pytest.approx(expected)
    assert score_classification(["a", "b"], ["b", "a"])["matthews"] == pytest.approx(-100)
    assert score_classification(["a", "b"], ["a", "a"])["matthews"] == 0
    assert json.dumps(scores)


@pytest.mark.parametrize(
    ("gold", "predicted", "options", "message"),
    [
        ([], [], {}, "no labels"),
        (["a"], ["a", "b"], {}, "2 predictions for 1 gold label;"),
        (["1"], [1], {}, "labels of one kind"),
        (["a"], ["b"], {"positive": "c"}, "positive class 'c': no label is called so; the labels are 'a', 'b'"),
    ],
)
def test_unusable_labels_are_refused(gold, predicted, options, message):
    with pytest.raises(UnifiedError, match=message):
        score_classification(gold, predicted, **options)


def test_regression_is_scipys():
    import scipy.stats

    rng = random.Random(2)
    for _ in range(250):
        count = rng.randint(3, 40)
        gold = np.array([rng.choice([rng.gauss(0, 1), round(rng.gauss(0, 2))]) for _ in range(count)])  # with ties
        predicted = gold * rng.choice([0.5, -2]) + np.array([round(rng.gauss(0, 1), 1) for _ in range(count)])
        scores = score_regression(gold, predicted)
        assert scores["pearson"] == pytest.approx(100 * scipy.stats.pearsonr(gold, predicted)[0])
        assert scores["spearman"] == pytest.approx(100 * scipy.stats.spearmanr(gold, predicted)[0])
        curve = np.unique(predicted, return_inverse=True)[1] ** 3.0  # rises with the predictions
        assert score_regression(gold, curve)["spearman"] == pytest.approx(scores["spearman"])
        assert score_regression(gold, 0.1 - predicted)["pearson"] == pytest.approx(-scores["pearson"])


def test_constants_have_no_correlation():
    assert score_regression([1, 2, 3], [0.1] * 3) == {"pearson": 0, "spearman": 0, "total": 3}
    assert score_regression([5.0], [5.0])["pearson"] == 0
    with pytest.raises(UnifiedError, match="predicted: number 1 is not finite"):
        score_regression([1, 2], [1, float("nan")])


# ---------------------------------------------------------------- relations


def test_relations_by_definition():
    rng = random.Random(3)
    known = ["no_relation", "founded", "lives_in", "child"]
    for _ in range(300):
        gold, predicted = labels(rng, known, rng.randint(1, 20))
        found = [(i, p) for i, p in enumerate(predicted) if p != "no_relation"]
        wanted = [(i, g) for i, g in enumerate(gold) if g != "no_relation"]
        correct = len(set(found) & set(wanted))
        precision = correct / len(found) if found else 1.0  # as TACRED's scorer has it
        recall = correct / len(wanted) if wanted else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        expected = {"precision": 100 * precision, "recall": 100 * recall, "f1": 100 * f1}
        assert score_relations(gold, predicted) == pytest.approx(expected)
        renamed = [[label.replace("no_relation", "NA") for label in side] for side in (gold, predicted)]
        assert score_relations(*renamed, negative="NA") == pytest.approx(expected)
        codes = [np.array([known.index(label) for label in side]) for side in (gold, predicted)]
        assert score_relations(*codes, negative=0) == pytest.approx(expected)
    with pytest.raises(UnifiedError, match="negative label 'no_relation': the labels are of another kind"):
        score_relations([0, 1], [1, 1])


# Output of the official scorer for one system on the test set, version 1.2: relation, right, predicted with another
# gold relation or right, wrong direction, gold; then the F1 that it prints.
RELATIONS = """
Cause-Effect        296 325   4 328 90.11
Component-Whole     209 257  31 312 69.67
Content-Container   160 203   4 192 80.20
Entity-Destination  260 315   1 292 85.53
Entity-Origin       221 278   1 258 82.31
Instrument-Agency   101 145   2 156 66.67
Member-Collection   195 251   1 233 80.41
Message-Topic       228 289   3 261 82.46
Product-Producer    167 215   5 231 74.06
"""
# Its confusion matrix, without wrong directions: gold in rows, predicted in columns, Other last.
CONFUSION = """
296   0   0   0   9   1   0   1   2  15
  2 209   5   3   1   9  13   5   2  32
  0   4 160  10   2   0   0   1   0  11
  0   2  10 260   0   0   0   2   1  16
  2   1   0  12 221   1   0   1   3  16
  0   4   1   2   2 101   1   3   9  31
  0   6   0   0   2   3 195   4   2  20
  1   2   0   2   0   0   3 228   3  19
  4   4   2   1   9  10   0   5 167  24
 20  25  25  25  32  20  39  39  26 203
"""


def published_predictions() -> tuple[list[str], list[str]]:
    rows = [line.split() for line in RELATIONS.split("\n") if line]
    names = [name for name, *_ in rows] + ["Other"]
    pairs = []
    for gold, counts in zip(names, CONFUSION.split("\n")[1:], strict=False):
        for predicted, count in zip(names, counts.split(), strict=True):
            # Directions of different relations do not matter, so any will do.
            pairs += [(directed(gold, 1), directed(predicted, 1 if gold == predicted else 2))] * int(count)
    for name, _, _, wrong, *_ in rows:
        pairs += [(directed(name, 2), directed(name, 1))] * int(wrong)
    return [gold for gold, _ in pairs], [predicted for _, predicted in pairs]


def directed(name: str, first: int) -> str:
    return name if name == "Other" else f"{name}(e{first},e{3 - first})"


def test_semeval_2010_has_the_published_scores():
    gold, predicted = published_predictions()
    assert len(gold) == 2717
    scores = score_semeval2010_task8(gold, predicted)
    printed = {
        "macro_f1": 79.05, "macro_precision": 77.93, "macro_recall": 80.37,
        "micro_f1": 79.99, "micro_precision": 78.84, "micro_recall": 81.18, "accuracy": 75.08,
    }  # fmt: skip
    assert {name: round(value, 2) for name, value in scores.items()} == printed
    f1 = []
    for row in RELATIONS.split("\n"):
        if row:
            correct, found, wrong, wanted = map(int, row.split()[1:5])
            f1.append(200 * correct / (found + wrong + wanted))
            assert round(f1[-1], 2) == float(row.split()[5])
    assert scores["macro_f1"] == pytest.approx(np.mean(f1))


def test_semeval_2010_by_definition():
    rng = random.Random(4)
    known = [directed(name, side) for name in ("A-B", "C-D", "E-F") for side in (1, 2)] + ["Other"]
    for _ in range(300):
        gold, predicted = labels(rng, rng.sample(known, rng.randint(2, len(known))), rng.randint(1, 20))
        f1 = []
        for name in {g.partition("(")[0] for g in gold} - {"Other"}:
            correct = sum(g == p and g.startswith(name) for g, p in zip(gold, predicted, strict=True))
            sizes = [sum(label.startswith(name) for label in side) for side in (gold, predicted)]
            f1.append(2 * correct / sum(sizes))
        assert score_semeval2010_task8(gold, predicted)["macro_f1"] == pytest.approx(100 * np.mean(f1) if f1 else 0)
    with pytest.raises(UnifiedError, match=r"label 'A-B': expected 'Other' or a relation with a direction"):
        score_semeval2010_task8(["Other"], ["A-B"])


# -------------------------------------------------------------------- tags


def entities_by_definition(sentence: list[str]) -> set[tuple[int, int, str]]:
    """One token after the other."""
    found, start, kind = set(), None, None
    for i, tag in enumerate([*sentence, "O"]):
        prefix, _, name = tag.partition("-")
        if start is not None and (prefix in "BO" or name != kind):
            found.add((start, i, kind))
            start = None
        if prefix != "O" and start is None:
            start, kind = i, name
    return found


def tagged(rng: random.Random, count: int) -> list[str]:
    kinds = ["PER", "LOC", "A-B"]
    return [rng.choice(["O", "O", "B-", "I-", "I-"]) for _ in range(count)], [rng.choice(kinds) for _ in range(count)]


def test_tagging_is_the_definition():
    rng = random.Random(5)
    for _ in range(400):
        gold, predicted = [], []
        for _ in range(rng.randint(1, 5)):
            sentence = [p if p == "O" else p + k for p, k in zip(*tagged(rng, rng.randint(0, 10)), strict=True)]
            other = [p if p == "O" else p + k for p, k in zip(*tagged(rng, len(sentence)), strict=True)]
            gold.append(sentence)
            predicted.append([g if rng.random() < 0.7 else o for g, o in zip(sentence, other, strict=True)])
        if not any(gold):
            continue
        sides = [
            {(i, *e) for i, sentence in enumerate(side) for e in entities_by_definition(sentence)}
            for side in (gold, predicted)
        ]
        scores = score_tagging(gold, predicted)
        correct = len(sides[0] & sides[1])
        assert [scores[name] for name in ("gold", "predicted", "correct")] == [*map(len, sides), correct]
        assert scores["f1"] == pytest.approx(200 * correct / max(1, sum(map(len, sides))))
        assert scores["precision"] == pytest.approx(100 * correct / max(1, len(sides[1])))
        assert scores["recall"] == pytest.approx(100 * correct / max(1, len(sides[0])))
        pairs = [pair for g, p in zip(gold, predicted, strict=True) for pair in zip(g, p, strict=True)]
        assert scores["accuracy"] == pytest.approx(100 * sum(g == p for g, p in pairs) / len(pairs))
        assert scores["tokens"] == len(pairs)
        by_type = score_tagging_by_type(gold, predicted)
        counts = [Counter(kind for *_, kind in entities) for entities in (*sides, sides[0] & sides[1])]
        assert set(by_type) == {*counts[0], *counts[1]}
        for kind, scored in by_type.items():
            expected = [count[kind] for count in counts]
            assert [scored[name] for name in ("gold", "predicted", "correct")] == expected


def encoded(kinds: list[str | None], first: list[bool], iob1: bool) -> list[str]:
    """Tags of one sentence: of each token its type, None outside, and whether an entity begins there."""
    tags = []
    for i, (kind, begins) in enumerate(zip(kinds, first, strict=True)):
        marked = begins and (not iob1 or (i > 0 and kinds[i - 1] == kind))  # IOB1: B behind its like alone
        tags.append("O" if kind is None else f"{'B' if marked else 'I'}-{kind}")
    return tags


def entities_of_types(rng: random.Random, count: int) -> tuple[list[str | None], list[bool]]:
    """What :func:`encoded` takes, of ``count`` entities and what lies between them."""
    kinds, first = [], []
    for _ in range(count):
        length = rng.randint(1, 4)
        kinds += [rng.choice([None, "PER", "LOC", "A-B"])] * length
        first += [i == 0 for i in range(length)]
    return kinds, first


def perturbed_tags(rng: random.Random, tags: list[str], known: list[str]) -> list[str]:
    """Other tags in a tenth of the indices, and two neighbours the other way round."""
    tags = [rng.choice(known) if rng.random() < 0.1 else tag for tag in tags]
    if len(tags) > 1 and rng.random() < 0.3:
        i = rng.randrange(len(tags) - 1)
        tags[i : i + 2] = tags[i + 1], tags[i]
    return tags


@pytest.mark.slow
@pytest.mark.parametrize("iob1", [False, True], ids=["BIO", "IOB1"])
def test_tagging_is_conllevals(iob1):
    """500 sets of sentences in each scheme, by conlleval 0.2 from PyPI."""
    import conlleval

    rng = random.Random(8)
    known = ["O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in ("PER", "LOC", "A-B"))]
    for _ in range(500):
        gold = [encoded(*entities_of_types(rng, rng.randint(1, 6)), iob1) for _ in range(rng.randint(1, 5))]
        predicted = [perturbed_tags(rng, sentence, known) for sentence in gold]
        lines = []
        for sentence, found in zip(gold, predicted, strict=True):
            lines += [f"word {g} {p}" for g, p in zip(sentence, found, strict=True)] + [""]
        theirs, scores = conlleval.evaluate(lines), score_tagging(gold, predicted)
        pairs = [(scores, theirs["overall"]["chunks"])]
        for kind, scored in score_tagging_by_type(gold, predicted).items():
            pairs.append((scored, theirs["slots"]["chunks"][kind]))
        for ours, other in pairs:
            counts = [other["stats"][name] for name in ("gold", "pred", "correct")]
            assert [ours[name] for name in ("gold", "predicted", "correct")] == counts
            assert ours["f1"] == pytest.approx(100 * other["evals"]["f1"], abs=1e-9)
            assert ours["recall"] == pytest.approx(100 * other["evals"]["rec"], abs=1e-9)
            # Where nothing is predicted the package has precision 1, and conlleval's own program 0, as here.
            precision = 100 * other["evals"]["prec"] if ours["predicted"] else 0
            assert ours["precision"] == pytest.approx(precision, abs=1e-9)
        assert scores["accuracy"] == pytest.approx(100 * theirs["overall"]["tags"]["evals"]["rec"], abs=1e-9)


@pytest.mark.parametrize(
    ("sentence", "entities"),
    [
        ("B-X I-X O", {(0, 2, "X")}),
        ("I-X I-X B-X I-X", {(0, 2, "X"), (2, 4, "X")}),  # IOB1
        ("I-X I-Y", {(0, 1, "X"), (1, 2, "Y")}),
        ("B-X I-Y I-Y", {(0, 1, "X"), (1, 3, "Y")}),
        ("O I-X O", {(1, 2, "X")}),
        ("B I O B", {(0, 2, ""), (3, 4, "")}),
        ("B-X-Y I-X-Y I-X", {(0, 2, "X-Y"), (2, 3, "X")}),
    ],
)
def test_entities_by_hand(sentence, entities):
    tags = sentence.split()
    assert entities_by_definition(tags) == entities
    assert score_tagging([tags], [tags])["gold"] == len(entities)
    for start, end, kind in entities:
        suffix = f"-{kind}" if kind else ""
        alone = ["B" + suffix if i == start else "I" + suffix if start < i < end else "O" for i in range(len(tags))]
        assert score_tagging([tags], [alone])["correct"] == 1


def test_entities_end_with_their_sentence():
    scores = score_tagging([["B-X"], ["I-X"]], [["B-X", ], ["O"]])  # fmt: skip
    assert (scores["gold"], scores["correct"]) == (2, 1)


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([["O"]], [], "0 sentences predicted, but 1 are gold"),
        ([["O"], ["O"]], [["O"], []], "sentence 2: 0 tags predicted for 1 token"),
        ([[]], [[]], "no tags"),
        ([["S-PER"]], [["O"]], "tag 'S-PER': expected O, B-TYPE or I-TYPE"),
    ],
)
def test_unusable_tags_are_refused(gold, predicted, message):
    with pytest.raises(UnifiedError, match=message):
        score_tagging(gold, predicted)
