"""Questions of SQuAD, MRQA and CoQA as items, and predictions as the official programs read them."""

from __future__ import annotations

import gzip
import json
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
import pytest

from tests.support.coqa_samples import OFFICIAL
from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks.datasets.coqa import coqa_items, most_similar_span, read_coqa, read_coqa_answers
from unified.tasks.datasets.coqa_json import read_coqa_file
from unified.tasks.datasets.mrqa import read_mrqa_file, read_mrqa_together
from unified.tasks.datasets.squad import read_squad, read_squad_questions, squad_items
from unified.tasks.datasets.squad_json import read_squad_file
from unified.tasks.heads.items import write_items
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.metrics.squad import word_f1
from unified.tasks.windows import TokenCounter
from unified.tasks.writing import TokenBudget

BUDGET = TokenBudget(TokenCounter(str.split), 200)
CONTEXT = "The mayor, Anna Berg, built 3 bridges in 1990. Nobody liked them."


def squad_question(identity, question, *answers, **fields):
    listed = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identity, "question": question, "answers": listed, **fields}


def squad_file(path, *questions):
    paragraph = {"context": CONTEXT, "qas": list(questions)}
    document = {"version": "v2.0", "data": [{"title": "T", "paragraphs": [paragraph]}]}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_squad_through_a_data_folder(tmp_path):
    path = squad_file(
        tmp_path / "squad.json",
        squad_question("a", "Who?", ("Anna Berg", 11), ("Anna", 11)),
        squad_question("b", "When?", ("1990", 40), ("in 1990", 38)),
        squad_question("c", "Why?", is_impossible=True),
    )
    items = squad_items(read_squad_file(path))
    assert items == [
        QuestionItem("a", "Who?", CONTEXT, (Answer("Anna Berg", 11), Answer("Anna", 11))),
        # What stands elsewhere comes last and is only counted.
        QuestionItem("b", "When?", CONTEXT, (Answer("in 1990", 38), Answer("1990", 40))),
        QuestionItem("c", "Why?", CONTEXT, (), impossible=True),
    ]
    write_items(tmp_path / "train.jsonl", items)
    assert SpanAnswers.read(tmp_path / "train.jsonl") == items
    assert SpanAnswers.of(items).labels == ("",) and SpanAnswers.of(items[:2]).labels == ()


def test_no_question_is_in_two_files_of_a_split(tmp_path):
    """A file beside its compressed copy would double the data; what a broken download has left is passed over."""
    for part in ("train", "dev"):
        squad_file(tmp_path / f"{part}-v1.1.json", squad_question(f"{part} a", "Who?", ("Anna", 11)))
    squad_file(tmp_path / "train-v1.1-more.json", squad_question("train b", "Who?", ("Anna", 11)))
    (tmp_path / "train-v1.1.json.xz.partial").write_text("")
    questions = partial(read_squad_questions, tmp_path, BUDGET, "paper", sentences=False)
    tasks = (partial(read_squad, tmp_path, "1.1"), questions)
    assert [item.id for item in tasks[0]()["train"]] == ["train b", "train a"]
    copy = tmp_path / "train-v1.1.json.gz"
    copy.write_bytes(gzip.compress((tmp_path / "train-v1.1.json").read_bytes()))
    for read in tasks:
        with pytest.raises(UnifiedError, match=r"v1.1.json.gz: question 'train a' is in train-v1.1.json, too"):
            read()


def test_no_turn_is_in_two_files_of_a_split(tmp_path):
    for name in ("coqa-train-v1.0.json", "coqa-dev-v1.0.json", "coqa-dev-v1.0-copy.json"):
        (tmp_path / name).write_text(json.dumps(OFFICIAL))
    for read in (partial(read_coqa, tmp_path), partial(read_coqa_answers, tmp_path, BUDGET)):
        with pytest.raises(
            UnifiedError, match=r"coqa-dev-v1.0.json: question '.* 1' is in coqa-dev-v1.0-copy.json, too"
        ):
            read()


def test_no_question_is_in_two_data_sets_of_mrqa(tmp_path):
    questions = [{"qid": "1", "question": "Who?", "answers": ["Berg"]}]
    for name in ("train/News.jsonl", "train/Trivia.jsonl", "dev/News.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(mrqa_lines({"context": CONTEXT, "qas": questions})))
    with pytest.raises(UnifiedError, match=r"Trivia.jsonl: question '1' is in News.jsonl, too"):
        read_mrqa_together(tmp_path)
    (tmp_path / "train" / "Trivia.jsonl").rename(tmp_path / "train" / "Trivia.jsonl.partial")
    assert len(read_mrqa_together(tmp_path)["train"]) == 1


def mrqa_lines(*contexts):
    return [json.dumps({"header": {"dataset": "NewsQA"}}), *map(json.dumps, contexts)]


def test_mrqa(tmp_path):
    both = [{"text": "Berg", "char_spans": [[16, 19]]}, {"text": "anna berg", "char_spans": [[40, 48], [11, 19]]}]
    wrong = [{"text": "3", "char_spans": [[0, 2]]}]
    questions = [
        {"qid": "1", "question": "Who?", "answers": ["anna berg", "Berg"], "detected_answers": both},
        {"qid": "2", "question": "When?", "answers": ["1990"], "detected_answers": []},
        {"qid": "3", "question": "How many?", "answers": ["3"], "detected_answers": wrong},
    ]
    path = tmp_path / "news.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(mrqa_lines({"context": CONTEXT, "qas": questions})).encode()))
    items = read_mrqa_file(path)
    assert [item.answers for item in items] == [(Answer("Anna Berg", 11),), (Answer("1990"),), (Answer("3", 0),)]
    assert [item.gold for item in items] == [["anna berg", "Berg"], ["1990"], ["3"]]
    write_items(tmp_path / "train.jsonl", items)
    assert SpanAnswers.read(tmp_path / "train.jsonl") == items
    # Scores are those of the official rules over all answers, detected or not.
    found = [{"id": "1", "answer": "Berg"}, {"id": "2", "answer": "in 1990"}, {"id": "3", "answer": "2"}]
    scores = SpanAnswers.of(items).score(items, found)
    predictions = tmp_path / "predictions.json"
    predictions.write_text(json.dumps({one["id"]: one["answer"] for one in found}))
    from unified.tasks.metrics import score_squad_v1
    from unified.tasks.metrics.answer_files import read_mrqa

    official = score_squad_v1(read_mrqa(path), json.loads(predictions.read_text()))
    assert scores == official | {"exact": official["exact_match"]} and scores["exact"] == pytest.approx(100 / 3)


def test_bad_lines_of_mrqa_are_reported(tmp_path):
    path = tmp_path / "news.jsonl"
    good = {"qid": "1", "question": "Who?", "answers": ["Anna"]}
    detected = [{"text": "x", "char_spans": [[5, 900]]}], [{"text": "x", "char_spans": [[5]]}], [{"text": "x"}]
    several = [good | {"qid": f"d{i}", "detected_answers": one} for i, one in enumerate(detected)]
    contexts = [
        {"context": CONTEXT, "qas": [good]},
        {"context": CONTEXT, "qas": [good]},
        {"qas": [good | {"qid": "2"}]},
        {"context": CONTEXT},
        {"context": CONTEXT, "qas": [good | {"qid": "3", "answers": []}]},
        *({"context": CONTEXT, "qas": [question]} for question in several),
    ]
    path.write_text("\n".join([*mrqa_lines(*contexts), "{", "[]"]))
    with pytest.raises(UnifiedError) as caught:
        read_mrqa_file(path)
    for problem in (
        "line 3: question id '1' was in the file before", "line 4: no field 'context'; its fields: 'qas'",
        "line 5: no field 'qas'; its fields: 'context'",
        "line 6, question 3: 'answers' is not a list of texts",
        "line 7, question d0: a detected answer lies outside the context: [5, 900]",
        "2 times (line 8, question d1, line 9, question d2): a detected answer has no 'char_spans'",
        "line 10: not JSON", "line 11: not a JSON object",
    ):  # fmt: skip
        assert problem in caught.value.details, caught.value
    path.write_text("\n".join(mrqa_lines()))
    with pytest.raises(UnifiedError, match="holds no question"):
        read_mrqa_file(path)


def test_the_most_similar_span_by_its_definition():
    """Against F1 of every span of words, on random texts of few words with articles and marks."""
    rng = np.random.default_rng(0)
    words = ["red", "the", "a", "green,", "(blue", "blue)", "Red.", "\u2014", "'s", "old"]
    met = 0
    for _ in range(300):
        passage = " ".join(rng.choice(words, rng.integers(1, 15)))
        answer = " ".join(rng.choice(["red", "green", "blue", "the", "new", "S"], rng.integers(1, 5)))
        begins = [0, *(i + 1 for i, letter in enumerate(passage) if letter == " ")]
        ends = [*(i for i, letter in enumerate(passage) if letter == " "), len(passage)]
        spans = [(begins[a], ends[b]) for a, b in combinations_with_replacement(range(len(begins)), 2)]
        best = max(word_f1(passage[slice(*span)], answer) for span in spans)
        found = most_similar_span(passage, answer)
        if best == 0 or found is None:
            assert found is None and (best == 0 or not any(c.isalnum() for c in answer.replace("the", "")))
            continue
        met += 1
        assert word_f1(passage[slice(*found)], answer) == pytest.approx(best)
        # No shorter span is as good; marks at the ends do not count.
        equal = [passage[slice(*span)] for span in spans if word_f1(passage[slice(*span)], answer) > best - 1e-9]
        assert len(passage[slice(*found)]) <= min(map(len, equal))
    assert met > 150


def test_of_equal_spans_the_rationales_comes_first():
    passage = 'He said "Red". Then red, old and (red).'
    assert passage[slice(*most_similar_span(passage, "red"))] == "red" != "Red"
    assert most_similar_span(passage, "red!") == (20, 23)
    assert most_similar_span(passage, "red", preferred=(0, 14)) == (9, 12)
    assert most_similar_span(passage, "red", preferred=(33, 39)) == (34, 37)
    assert most_similar_span(passage, "blue") is None and most_similar_span(passage, "the") is None


def written(folder, files):
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def coqa_file(path):
    def answer(turn, text, span_text, start):
        return {"turn_id": turn, "input_text": text, "span_text": span_text, "span_start": start,
                "span_end": start + len(span_text) if start >= 0 else -1}  # fmt: skip

    questions = enumerate(("Who built?", "Many?", "Liked?", "Why?", "?"), 1)
    first = [answer(1, "Anna Berg, she did", "Anna Berg, built", 11), answer(2, "three of them", "3 bridges", 28),
             answer(3, "No.", "Nobody liked them", 47), answer(4, "unknown", "unknown", -1),
             answer(5, "Berg", "Berg", 16)]  # fmt: skip
    second = [answer(1, "Anna", "Anna", 11), answer(2, "3", "3", 28), answer(3, "no", "x", -1),
              answer(4, "unknown", "x", -1), answer(5, " ", "x", -1)]  # fmt: skip
    story = {
        "id": "s1",
        "source": "cnn",
        "story": CONTEXT,
        "questions": [{"turn_id": i, "input_text": text} for i, text in questions],
        "answers": first,
        "additional_answers": {"0": second},
    }
    path.write_text(json.dumps({"data": [story]}), encoding="utf-8")
    return path


def test_coqa(tmp_path, capsys):
    path = coqa_file(tmp_path / "coqa.json")
    items = coqa_items(read_coqa_file(path))
    assert [item.id for item in items] == ["s1 1", "s1 2", "s1 3", "s1 4", "s1 5"]
    assert items[0].answers == (Answer("Anna Berg", 11),) and items[0].history is None
    assert items[1].answers == (Answer("them", CONTEXT.index("them")),)  # in the rationale there is no such word
    assert items[1].history == "Who built? Anna Berg, she did"
    assert [item.choice for item in items] == [None, None, "no", "unknown", None]
    assert items[4].gold == ["Berg", " "] and items[0].gold == ["Anna Berg, she did", "Anna"]
    task = SpanAnswers.of(items, design="unilm", rules="coqa")
    assert task.labels == ("no", "unknown")
    predictions = [{"id": item.id, "answer": answer} for item, answer in
                   zip(items, ("Anna Berg", "3", "no", "no", "Berg"), strict=True)]  # fmt: skip
    written(tmp_path, task.official((), predictions))
    assert task.official((), [{"id": "17", "answer": "no"}]) == {}
    assert main(["score", "coqa", str(path), str(tmp_path / "predictions.json")]) == 0
    official = json.loads(capsys.readouterr().out)
    found = task.score(items, predictions)
    assert found == official["overall"] | {"exact": official["overall"]["em"]} and 0 < found["f1"] < 100


def test_official_files_give_the_scores_of_the_task(tmp_path, capsys):
    path = squad_file(
        tmp_path / "squad.json",
        squad_question("a", "Who?", ("Anna Berg", 11)),
        squad_question("b", "When?", ("1990", 41)),
        squad_question("c", "Why?", is_impossible=True),
    )
    items = squad_items(read_squad_file(path))
    predictions = [
        {"id": identity, "answer": answer, "no_answer": chance, "best_non_null": {"text": text}, "nbest": [
            {"text": text}]}
        for identity, answer, chance, text in (
            ("a", "", 0.9, "Anna"), ("b", "in 1990", 0.25, "in 1990"), ("c", "", 0.95, "1990"))
    ]  # fmt: skip
    task = SpanAnswers.of(items)
    files = task.official((), predictions)
    assert list(files) == ["predictions.json", "nbest_predictions.json", "na_prob.json", "best_non_null.json"]
    written(tmp_path, files)
    assert main(["score", "squad", str(path), str(tmp_path / "predictions.json")]) == 0
    official = json.loads(capsys.readouterr().out)
    found = task.score(items, predictions)
    assert official.items() <= found.items() and found["exact"] == pytest.approx(100 / 3)
    assert found["best_f1"] == pytest.approx(100 * (2 / 3 + 2 / 3 + 1) / 3) and found["best_f1_thresh"] == 0.9
    # With the best spans and the probabilities the official search for thresholds finds the same.
    chances = str(tmp_path / "na_prob.json")
    assert main(["score", "squad", str(path), str(tmp_path / "best_non_null.json"), "--na-prob", chances]) == 0
    searched = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in searched if name.startswith("best_")}.items() <= searched.items()
    assert files["nbest_predictions.json"]["c"][0]["text"] == "1990"
    plain = [{key: one[key] for key in ("id", "answer", "nbest")} for one in predictions]
    assert list(SpanAnswers().official((), plain)) == ["predictions.json", "nbest_predictions.json"]


@pytest.mark.slow
def test_real_conversations(unified_data):
    """In Abg-CoQA, answers by the most similar spans have an F1 of 97.8, by the marked rationales of 63.6."""
    turns = read_coqa_file(unified_data / "coqa_abg" / "coqa_abg_val.json.xz")
    items = coqa_items(turns)
    assert len(items) == 1092 and sum(item.choice is not None for item in items) == 166
    pairs = [(turn, item) for turn, item in zip(turns, items, strict=True) if item.choice is None]
    parts = [(turn, item.answers[0]) for turn, item in pairs if item.answers[0].start is not None]
    assert len(pairs) - len(parts) == 13
    assert all(turn.passage.startswith(answer.text, answer.start) for turn, answer in parts)
    scores = [
        (word_f1(turn.passage[slice(turn.answers[0].start, turn.answers[0].end)], turn.answers[0].text),
         word_f1(answer.text, turn.answers[0].text))
        for turn, answer in parts
    ]  # fmt: skip
    assert 100 * np.mean(scores, axis=0) == pytest.approx([63.56, 97.79], abs=0.01)
    # Where words run together ("Africa.Then"), a rationale ends within one.
    assert sum(chosen < marked for marked, chosen in scores) == 8
