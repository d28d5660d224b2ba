"""Scores of answers against the published programs' rules written out, and against scores of published systems."""

import gzip
import json
import random
import re
import string
from collections import Counter

import pytest

from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks.metrics import score_coqa, score_coqa_domains, score_squad_v1, score_squad_v2
from unified.tasks.metrics.answer_files import read_coqa, read_mrqa, read_predictions, read_squad
from unified.tasks.metrics.squad import exact_match, normalize_answer, word_f1

# Some vanish when normalized, some only look different.
WORDS = "the a AN Paris paris, London 1871 1,871 U.S. us River's -- ... Café then don't".split()


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.choice([0, 1, 1, 2, 3, 5])))


def answers_and_predictions(
    rng: random.Random, count: int, group_sizes: tuple[int, ...]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    answers = {f"q{i}": [text(rng) for _ in range(rng.choice(group_sizes))] for i in range(count)}
    predictions = {q: rng.choice(group) if group and rng.random() < 0.4 else text(rng) for q, group in answers.items()}
    return answers, predictions


# ------------------------------------------------------------ by definition


def words_by_definition(answer: str) -> list[str]:
    kept = "".join(character for character in answer.lower() if character not in string.punctuation)
    runs = re.findall(r"\w+|\W", kept)  # other marks than ASCII's stay, and end an article
    return "".join(" " if run in ("a", "an", "the") else run for run in runs).split()


def f1_by_definition(prediction: str, answer: str, empty_may_agree: bool) -> float:
    found, wanted = words_by_definition(prediction), words_by_definition(answer)
    if empty_may_agree and not (found and wanted):
        return float(found == wanted)
    common = sum(min(found.count(word), wanted.count(word)) for word in set(found))
    return 2 * common / (len(found) + len(wanted)) if common else 0.0


def exact_by_definition(prediction: str, answer: str) -> float:
    return float(words_by_definition(prediction) == words_by_definition(answer))


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("The Eiffel Tower.", "eiffel tower"),
        ("  an   apple,a pear ", "applea pear"),  # punctuation goes first and joins words
        ("a-n-the", "anthe"),
        ("THE the the", ""),
        ("“The” café — 5 €", "“ ” café — 5 €"),  # ASCII punctuation alone; the mark ends the word The
        ("theme anthem", "theme anthem"),
    ],
)
def test_normalization_by_hand(written, normalized):
    assert normalize_answer(written) == normalized


@pytest.mark.parametrize(
    ("prediction", "answer", "f1"),
    [
        ("the red blue car", "blue car, red, green and fast", 2 / 3),  # 3 of 3 words found, 3 of 6 wanted
        ("x x y z", "x x x", 4 / 7),  # 2 of 4 and 2 of 3
        ("x", "y", 0),
        ("x", "the", 0),
        ("...", "x", 0),
        ("...", "the", 1),
    ],
)
def test_f1_of_words_by_hand(prediction, answer, f1):
    assert word_f1(prediction, answer) == pytest.approx(f1)


def test_words_and_pairs_are_the_definition():
    rng = random.Random(1)
    for _ in range(2000):
        a, b = text(rng), text(rng)
        assert normalize_answer(a).split() == words_by_definition(a)
        assert exact_match(a, b) == exact_by_definition(a, b)
        assert word_f1(a, b) == pytest.approx(f1_by_definition(a, b, True))
        assert word_f1(a, b) == pytest.approx(word_f1(b, a))
        assert normalize_answer(normalize_answer(a)) == normalize_answer(a)


def test_rules_of_squad_1():
    rng = random.Random(2)
    for _ in range(400):
        answers, predictions = answers_and_predictions(rng, rng.randint(1, 12), (1, 1, 3, 4))
        for question in list(predictions)[1:]:
            if rng.random() < 0.1:
                del predictions[question]
        exact = sum(max(exact_by_definition(p, a) for a in answers[q]) for q, p in predictions.items())
        f1 = sum(max(f1_by_definition(p, a, False) for a in answers[q]) for q, p in predictions.items())
        scores = score_squad_v1(answers, predictions | {"another": "ignored"})
        assert scores["exact_match"] == pytest.approx(100 * exact / len(answers))
        assert scores["f1"] == pytest.approx(100 * f1 / len(answers))
        assert scores["unanswered"] == len(answers) - len(predictions)


def squad_2_by_definition(answers, predictions, na_probs, threshold) -> dict[str, tuple[float, float]]:
    """(exact, f1), 0 to 1, of each question."""
    scores = {}
    for question, group in answers.items():
        prediction = predictions[question]
        usable = [answer for answer in group if words_by_definition(answer)] or [""]
        scores[question] = (
            max(exact_by_definition(prediction, a) for a in usable),
            max(f1_by_definition(prediction, a, True) for a in usable),
        )
        if na_probs is not None and na_probs[question] > threshold:
            scores[question] = (float(not group), float(not group))
    return scores


def test_rules_of_squad_2():
    rng = random.Random(3)
    for _ in range(400):
        answers, predictions = answers_and_predictions(rng, rng.randint(1, 12), (0, 0, 1, 3))
        na_probs = {q: round(rng.random(), 1) for q in answers} if rng.random() < 0.7 else None
        threshold = rng.choice([0.3, 0.5, 1.0])
        expected = squad_2_by_definition(answers, predictions, na_probs, threshold)
        scores = score_squad_v2(answers, predictions, na_probs=na_probs, na_prob_threshold=threshold)
        splits = {
            "": list(answers),
            "HasAns_": [q for q, group in answers.items() if group],
            "NoAns_": [q for q, group in answers.items() if not group],
        }
        for prefix, chosen in splits.items():
            assert (f"{prefix}total" in scores) == bool(chosen)
            if chosen:
                assert scores[f"{prefix}total"] == len(chosen)
                for i, name in enumerate(("exact", "f1")):
                    mean = sum(expected[q][i] for q in chosen) / len(chosen)
                    assert scores[prefix + name] == pytest.approx(100 * mean)
        assert ("best_f1" in scores) == (na_probs is not None)


def test_the_best_threshold_is_the_best_of_all():
    rng = random.Random(4)
    for _ in range(80):
        answers, predictions = answers_and_predictions(rng, rng.randint(2, 12), (0, 1, 3))
        # What has no word left would be right for an unanswerable question, but counts as an answer in the search.
        predictions = {q: p if normalize_answer(p) else "" for q, p in predictions.items()}
        na_probs = {q: rng.uniform(0.1, 0.9) for q in answers}

        def at(threshold, answers=answers, predictions=predictions, na_probs=na_probs):
            return score_squad_v2(answers, predictions, na_probs=na_probs, na_prob_threshold=threshold)

        scores = at(1.0)
        for name in ("exact", "f1"):
            everywhere = {threshold: at(threshold)[name] for threshold in (0.0, *sorted(na_probs.values()))}
            assert scores[f"best_{name}"] == pytest.approx(max(everywhere.values()))
            assert everywhere[scores[f"best_{name}_thresh"]] == pytest.approx(max(everywhere.values()))


def test_thresholds_by_hand():
    answers = {"a": ["x"], "b": ["y z"], "c": [], "d": []}
    predictions = {"a": "x", "b": "y", "c": "wrong", "d": ""}
    na_probs = {"a": 0.1, "b": 0.4, "c": 0.6, "d": 0.2}
    scores = score_squad_v2(answers, predictions, na_probs=na_probs, na_prob_threshold=0.4)  # not above: b is answered
    assert (scores["exact"], scores["f1"]) == pytest.approx((75, (1 + 2 / 3 + 2) * 25))
    assert (scores["best_exact"], scores["best_exact_thresh"]) == (75, 0.1)  # b adds nothing to exact match
    assert (scores["best_f1"], scores["best_f1_thresh"]) == (pytest.approx((3 + 2 / 3) * 25), 0.4)
    answers["a"], answers["b"] = ["other"], ["other"]
    scores = score_squad_v2(answers, predictions, na_probs=na_probs)
    assert (scores["best_exact"], scores["best_exact_thresh"]) == (50, 0)  # best to answer nothing


def test_among_equal_probabilities_the_order_given_counts():
    """A habit of the published program, kept because the published figures contain it."""
    answers, predictions = {"right": ["x"], "wrong": []}, {"right": "x", "wrong": "y"}
    best = [
        score_squad_v2(answers, predictions, na_probs=dict.fromkeys(order, 0.5))["best_exact"]
        for order in (["right", "wrong"], ["wrong", "right"])
    ]
    assert best == [100, 50]


@pytest.mark.parametrize(
    ("rules", "answers", "predictions", "message"),
    [
        (score_squad_v1, {}, {}, "no questions"),
        (score_squad_v1, {"a": ["x"]}, {"b": "x"}, "no prediction is for any of the 1 questions, such as 'a'"),
        (score_squad_v1, {"a": [], "b": ["x"]}, {"b": "x"}, "question 'a' has no answer"),
        (score_squad_v1, {"a": ["x"]}, {"a": None}, "question 'a': expected a string, got None"),
        (score_squad_v2, {"a": ["x"], "b": [], "c": []}, {"a": "x"}, "no prediction for 2 of 3 questions.* 'b'"),
    ],
)
def test_what_cannot_be_scored_is_refused(rules, answers, predictions, message):
    with pytest.raises(UnifiedError, match=message):
        rules(answers, predictions)


def test_every_question_needs_a_probability():
    with pytest.raises(UnifiedError, match="no no-answer probability for 1 of 1 questions"):
        score_squad_v2({"a": ["x"]}, {"a": "x"}, na_probs={})


@pytest.mark.slow
def test_published_systems_have_their_published_scores(unified_data):
    expected = json.loads((unified_data / "squad_eval" / "expected_scores.json").read_text())
    assert len(expected) == 8
    data = {}
    for name, scores in expected.items():
        path = unified_data / scores["dev_file"]
        if path not in data:
            data[path] = read_squad(path)
        rules = {"1.1": score_squad_v1, "v2.0": score_squad_v2}[data[path].version]
        found = rules(data[path].answers, read_predictions(unified_data / "squad_eval" / f"{name}.xz"))
        for key, value in found.items():
            assert value == pytest.approx(scores[key], rel=1e-13), (name, key)


# --------------------------------------------------------------------- CoQA


def coqa_by_definition(answers, predictions, score) -> float:
    total = 0.0
    for group, prediction in zip(answers, predictions, strict=True):
        others = [group[:i] + group[i + 1 :] for i in range(len(group))] if len(group) > 1 else [group]
        if prediction is not None:
            total += sum(max(score(prediction, answer) for answer in rest) for rest in others) / len(others)
    return 100 * total / len(answers)


def test_rules_of_coqa():
    rng = random.Random(5)
    for _ in range(400):
        answers, predictions = answers_and_predictions(rng, rng.randint(1, 10), (1, 2, 4, 4))
        answers, predictions = list(answers.values()), list(predictions.values())
        predictions = [None if rng.random() < 0.1 else prediction for prediction in predictions]
        scores = score_coqa(answers, predictions)
        assert scores["em"] == pytest.approx(coqa_by_definition(answers, predictions, exact_by_definition))
        f1 = coqa_by_definition(answers, predictions, lambda p, a: f1_by_definition(p, a, True))
        assert scores["f1"] == pytest.approx(f1)


def test_domains_of_coqa_by_hand():
    answers = [["yes", "yes", "no", "yes"], ["x"], ["x"]]
    scores = score_coqa_domains(answers, ["no", "x", None], ["cnn", "reddit", "cnn"])
    assert scores["news"] == {"em": 37.5, "f1": 37.5, "turns": 2}  # found among the others three times of four
    assert scores["reddit"] == scores["out_domain"] == {"em": 100, "f1": 100, "turns": 1}
    assert scores["literature"] == {"em": 0, "f1": 0, "turns": 0}
    assert scores["overall"] == {"em": pytest.approx(175 / 3), "f1": pytest.approx(175 / 3), "turns": 3}
    with pytest.raises(UnifiedError, match="source 'blog'"):
        score_coqa_domains([["x"]], ["x"], ["blog"])


# -------------------------------------------------------------------- files


def squad_file(version: str, *questions: tuple[str, list[str]]) -> dict:
    qas = [
        {"id": name, "question": "?", "answers": [{"text": t, "answer_start": 0} for t in a]} for name, a in questions
    ]
    return {"version": version, "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": qas}]}]}


def coqa_file() -> dict:
    def turns(*texts):
        return [{"turn_id": i + 1, "input_text": text} for i, text in enumerate(texts)]

    story = {
        "id": "s1", "source": "cnn", "questions": turns("Who?", "When?"), "answers": turns("Ann", "today"),
        "additional_answers": {"0": turns("Ann", "now"), "1": turns("she", "today")},
    }  # fmt: skip
    return {"data": [story]}


def save(path, value) -> str:
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def command(capsys, *arguments) -> dict:
    assert main(["score", *map(str, arguments)]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_version_of_the_file_chooses_the_rules(tmp_path, capsys):
    predictions = save(tmp_path / "p.json", {"a": "the", "b": "x"})
    # An answer without words has no F1 by the rules of 1.1, and is right for an unanswerable question by those of 2.0.
    one = save(tmp_path / "1.json", squad_file("1.1", ("a", ["An"]), ("b", ["x y"])))
    assert command(capsys, "squad", one, predictions)["f1"] == pytest.approx(100 / 3)
    two = save(tmp_path / "2.json", squad_file("v2.0", ("a", []), ("b", ["x y"])))
    scores = command(capsys, "squad", two, predictions, "--output", tmp_path / "scores.json")
    assert (scores["NoAns_f1"], scores["HasAns_f1"]) == pytest.approx((100, 200 / 3))
    assert json.loads((tmp_path / "scores.json").read_text()) == scores
    assert "HasAns_total" in command(capsys, "squad", one, predictions, "--rules", "2.0")
    na_probs = save(tmp_path / "na.json", {"a": 0.9, "b": 0.2})
    scores = command(capsys, "squad", two, predictions, "--na-prob", na_probs, "--na-prob-thresh", "0.1")
    assert (scores["HasAns_exact"], scores["NoAns_exact"], scores["best_f1_thresh"]) == (0, 100, 0.2)


def test_mrqa_passes_over_its_header(tmp_path, capsys):
    lines = [{"header": {"dataset": "x"}}, {"context": "c", "qas": [{"qid": "a", "answers": ["x y", "z"]}]}]
    data = tmp_path / "dev.jsonl.gz"
    data.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    assert read_mrqa(data) == {"a": ["x y", "z"]}
    scores = command(capsys, "mrqa", data, save(tmp_path / "p.json", {"a": "the x"}))
    assert capsys.readouterr().err == ""
    assert scores == {"exact_match": 0, "f1": pytest.approx(200 / 3), "total": 1, "unanswered": 0}


def test_what_has_no_prediction_is_said(tmp_path, capsys):
    """It scores 0, as in the half of a development set that was not predicted."""
    questions = [{"qid": i, "answers": ["x"]} for i in "abc"]
    data = tmp_path / "dev.jsonl"
    data.write_text(json.dumps({"context": "c", "qas": questions}))
    two = save(tmp_path / "two.json", squad_file("1.1", ("a", ["x"]), ("b", ["x"])))
    for kind, gold, found, says in (
        ("mrqa", data, {"a": "x"}, "2 of 3 questions have no prediction and score 0\n"),
        ("squad", two, {"b": "x"}, "1 of 2 questions have no prediction and score 0\n"),
        ("coqa", save(tmp_path / "coqa.json", coqa_file()), [{"id": "s1", "turn_id": 2, "answer": "now"}],
         "1 of 2 turns have no prediction and score 0\n"),
    ):  # fmt: skip
        assert main(["score", kind, str(gold), save(tmp_path / "found.json", found)]) == 0
        assert capsys.readouterr().err == says


def test_coqa_from_the_command_line(tmp_path, capsys):
    data = save(tmp_path / "coqa.json", coqa_file())
    assert read_coqa(data).answers == [["Ann", "Ann", "she"], ["today", "now", "today"]]
    predictions = save(tmp_path / "p.json", [{"id": "s1", "turn_id": 2, "answer": "now"}])
    scores = command(capsys, "coqa", data, predictions)
    assert scores["overall"] == {"em": pytest.approx(100 / 3), "f1": pytest.approx(100 / 3), "turns": 2}


def broken(folder) -> dict[str, tuple[list[str], str]]:
    squad = save(folder / "squad", squad_file("1.1", ("a", ["x"])))
    twice = save(folder / "twice", squad_file("1.1", ("a", ["x"]), ("a", ["x"])))
    unnamed = save(folder / "unnamed", squad_file("3", ("a", ["x"])))
    predictions, listed = save(folder / "p", {"a": "x"}), save(folder / "listed", ["x"])
    nothing = save(folder / "nothing", {})
    coqa = coqa_file()
    coqa["data"][0]["answers"].pop()
    short = save(folder / "short", coqa)
    coqa["data"][0]["answers"] = {"first": "x"}
    odd, huge = save(folder / "odd", coqa), save(folder / "huge", {"a": 10**400})
    (folder / "text").write_text('{"a":\n oops}')
    (folder / "mrqa").write_text('{"header": 1}\n{"qas": [{"answers": []}]}\n')
    return {
        "not JSON": (["squad", squad, str(folder / "text")], "text, line 2: not JSON"),
        "not SQuAD": (
            ["squad", predictions, predictions],
            "the file: no field 'data'; its .* is it a file of SQuAD",
        ),
        "a list": (["squad", squad, listed], "expected a JSON object, question id to prediction, got a list"),
        "twice": (["squad", twice, predictions], "question id 'a' was in the file before"),
        "version": (["squad", unnamed, predictions], "states version '3'; say --rules"),
        "na_prob": (["squad", squad, predictions, "--na-prob", predictions], "--na-prob: the rules of SQuAD 1.1"),
        "not numbers": (
            ["squad", squad, predictions, "--rules", "2.0", "--na-prob", predictions],
            "question 'a': expected a finite number, got 'x'",
        ),
        "huge numbers": (
            ["squad", squad, predictions, "--rules", "2.0", "--na-prob", huge],
            "huge: question 'a': expected a finite number",
        ),
        "not MRQA": (
            ["mrqa", str(folder / "mrqa"), predictions],
            "mrqa: line 2: no field 'qid'; its .* is it a file of MRQA",
        ),
        "not CoQA": (
            ["coqa", short, listed],
            "answers of the turns .* do not go with questions of .* is it a file of CoQA",
        ),
        "an object of CoQA": (["coqa", odd, listed], "no list 'answers'.* is it a file of CoQA"),
        "unanswered": (["squad", squad, nothing, "--rules", "2.0"], "squad, .*nothing: no prediction is for any"),
        "missing": (["squad", str(folder / "nowhere"), predictions], "nowhere"),
    }


@pytest.mark.parametrize(
    "case",
    [
        "not JSON",
        "not SQuAD",
        "a list",
        "twice",
        "version",
        "na_prob",
        "not numbers",
        "huge numbers",
        "not MRQA",
        "not CoQA",
        "an object of CoQA",
        "unanswered",
        "missing",
    ],
)
def test_every_unusable_file_is_one_line_of_error(tmp_path, capsys, case):
    arguments, message = broken(tmp_path)[case]
    assert main(["score", *arguments]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error) and error.count("\n") == 1 and error.startswith("unified score: error:")


def test_random_texts_exercise_the_rules():
    """Some vanish when normalized, and different ones become equal."""
    rng = random.Random(6)
    normalized = Counter(normalize_answer(text(rng)) for _ in range(1000))
    assert normalized[""] > 100 and normalized["paris"] > 10
