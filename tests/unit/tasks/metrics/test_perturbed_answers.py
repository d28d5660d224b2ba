"""SQuAD's scores of thousands of perturbed answers, beside their definition and the official programs."""

import os
import random
import string
from collections import Counter
from importlib import metadata, util
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.tasks.metrics.test_answer_metrics import (
    exact_by_definition,
    f1_by_definition,
    squad_file,
    words_by_definition,
)
from unified.tasks.metrics import score_squad_v1, score_squad_v2
from unified.tasks.metrics.answer_files import read_squad

MADE_UP = [
    ["the Vistula", "Vistula", "The Vistula River"], [], ["1,871 U.S. soldiers", "1871 soldiers"], ["a", "an A"],
    ["“The” café — 5 €", "café"], ["İstanbul", "Straße"], ["don't", "do not"], ["x^2 + y^2", "x2 + y2"], ["."],
]  # fmt: skip
INSERTED = "the a AN and The. “an” – — ... , ' - 7 €5 ß İ ǅ \u00a0 \u3000 \u200b théâtre an-a 中文 _the_".split(" ")


def gold_answers(version: str) -> list[list[str]]:
    """Answers of each question of SQuAD's development set, or made-up ones where it is not there."""
    folder = os.environ.get("UNIFIED_DATA")
    path = Path(folder or ".") / "squad" / f"dev-v{version}.json.xz"
    groups = list(read_squad(path).answers.values()) if folder and path.is_file() else MADE_UP
    return [group for group in groups if group or version == "2.0"]


def perturbed(rng: random.Random, answer: str) -> str:
    """The answer after up to three changes of words, articles, punctuation, case or length."""
    for _ in range(rng.randint(0, 3)):
        words, index = answer.split(" "), rng.randint(0, len(answer))
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        kind = rng.randrange(9)
        if kind == 0:
            del words[i]
        elif kind in (1, 2):
            words.insert(i, rng.choice(INSERTED))
        elif kind == 3:
            words[i], words[j] = words[j], words[i]
        answer = " ".join(words)
        if kind == 4:
            answer = answer[:index] + rng.choice(string.punctuation + "\t\n") + answer[index:]
        elif kind == 5:
            answer = rng.choice([answer.upper(), answer.title(), answer.swapcase()])
        elif kind == 6:
            answer = answer[:index]
        elif kind == 7:
            answer = answer[index:]
        elif kind == 8 and rng.random() < 0.3:
            answer = ""
    return answer


def perturbed_predictions(rng: random.Random, version: str, count: int) -> tuple[dict, dict]:
    """Answers of ``count`` questions, and for each a perturbed one, or that of another question."""
    groups = gold_answers(version)
    texts = [text for group in groups for text in group]
    answers = {f"q{i}": rng.choice(groups) for i in range(count)}
    predictions = {
        q: perturbed(rng, rng.choice(group) if group and rng.random() < 0.9 else rng.choice(["", *texts]))
        for q, group in answers.items()
    }
    return answers, predictions


def official(file: str) -> ModuleType:
    """An official program of SQuAD, as sotabencheval from PyPI holds it; skipped where that is not installed.

    The module alone is loaded: what the package requires, another sacrebleu among it, is not needed.
    """
    try:
        path = metadata.distribution("sotabencheval").locate_file(f"sotabencheval/question_answering/{file}.py")
    except metadata.PackageNotFoundError:
        pytest.skip("pip install --no-deps sotabencheval==0.0.38")
    spec = util.spec_from_file_location(file, path)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_squads_format(answers: dict[str, list[str]]) -> list[dict]:
    return squad_file("", *answers.items())["data"]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_perturbed_answers_are_scored_by_definition(version):
    """Question by question, 2,000 of each version."""
    answers, predictions = perturbed_predictions(random.Random(11), version, 2000)
    rules, exact = (score_squad_v1, "exact_match") if version == "1.1" else (score_squad_v2, "exact")
    seen = Counter()
    for question, group in answers.items():
        prediction, two = predictions[question], version == "2.0"
        usable = [a for a in group if words_by_definition(a)] or [""] if two else group
        expected = (
            max(exact_by_definition(prediction, a) for a in usable),
            max(f1_by_definition(prediction, a, two) for a in usable),
        )
        scores = rules({question: group}, {question: prediction})
        assert [scores[exact], scores["f1"]] == pytest.approx([100 * value for value in expected], abs=1e-10), (
            group,
            prediction,
        )
        seen[expected[0], 0 < expected[1] < 1] += 1
    assert min(seen[1, False], seen[0, True], seen[0, False]) > 70  # right, nearly right and wrong ones


@pytest.mark.slow
def test_perturbed_answers_are_scored_as_by_squad_1s_program():
    program = official("evaluate_v11")
    answers, predictions = perturbed_predictions(random.Random(12), "1.1", 2000)
    for question, group in answers.items():
        scores = score_squad_v1({question: group}, {question: predictions[question]})
        expected = program.evaluate(in_squads_format({question: group}), predictions)
        assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-10)
    for name, value in program.evaluate(in_squads_format(answers), predictions).items():
        assert score_squad_v1(answers, predictions)[name] == pytest.approx(value, abs=1e-10)


@pytest.mark.slow
def test_perturbed_answers_are_scored_as_by_squad_2s_program():
    program, rng = official("evaluate_v20"), random.Random(13)
    answers, predictions = perturbed_predictions(rng, "2.0", 2000)
    data = in_squads_format(answers)
    exact, f1 = program.get_raw_scores(data, predictions)
    for question, group in answers.items():
        scores = score_squad_v2({question: group}, {question: predictions[question]})
        assert (scores["exact"], scores["f1"]) == pytest.approx((100 * exact[question], 100 * f1[question]), abs=1e-10)
    na_probs = {question: round(rng.random(), 3) for question in answers}  # with equal ones among them
    has_answer = program.make_qid_to_has_ans(data)
    for threshold in (0.0, 0.2, 0.5, 1.0):
        expected = squad_2_by_program(program, (exact, f1), na_probs, has_answer, threshold)
        program.find_all_best_thresh(expected, predictions, exact, f1, na_probs, has_answer)
        scores = score_squad_v2(answers, predictions, na_probs=na_probs, na_prob_threshold=threshold)
        assert scores == pytest.approx(dict(expected), abs=1e-10)


def squad_2_by_program(program, raw, na_probs, has_answer, threshold) -> dict[str, float]:
    """What its ``main`` writes, but for the best thresholds."""
    taken = [program.apply_no_ans_threshold(scores, na_probs, has_answer, threshold) for scores in raw]
    expected = program.make_eval_dict(*taken)
    for name, wanted in (("HasAns", True), ("NoAns", False)):
        chosen = [question for question, has in has_answer.items() if has == wanted]
        program.merge_eval(expected, program.make_eval_dict(*taken, qid_list=chosen), name)
    return expected
