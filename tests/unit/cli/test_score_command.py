"""`unified score` of labels, answers and chains: the chosen rules, the files that refusals name, what is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import exit_status, leaving
from tests.support.corpora import jsonl
from unified.cli import main
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tasks.metrics.classification import Classification, Confusion, score_classification, score_regression
from unified.tasks.metrics.comparison import Difference, Mean
from unified.tasks.metrics.relations import Relations, SemevalRelations
from unified.tasks.metrics.squad import SquadV1Examples, SquadV2Examples
from unified.tasks.metrics.tagging import TaggedSentences


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def lines(name: str, *texts: str) -> str:
    Path(name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return name


def save(name: str, content: object) -> str:
    Path(name).write_text(json.dumps(content), encoding="utf-8")
    return name


def score(capsys, *words: str) -> dict:
    assert exit_status("score", *words) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys, *words: str) -> str:
    assert main(["score", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err.removeprefix("unified score: error: ").removesuffix("\n")


def test_labels_are_scored_by_all_classes_and_by_the_positive_class_where_there_is_one(capsys):
    gold, found = ["é", "a", "b", "a"], ["é", "b", "b", "a"]
    files = (lines("g", *gold), lines("p", *found))
    assert score(capsys, "classification", *files) == score_classification(gold, found)
    assert score(capsys, "classification", *files, "--positive", "a") == score_classification(gold, found, positive="a")
    assert refusal(capsys, "classification", *files, "--positive", "c") == (
        "g, p: positive class 'c': no label is called so; the labels are 'a', 'b', 'é'"
    )


def test_choices_are_scored_by_subset_where_rows_have_one(capsys):
    rows = [{"id": i, "label": i % 2, "subset": "high" if i < 3 else "middle"} for i in range(5)]
    found = lines("p", *(f"{i}\t{0 if i in (1, 4) else i % 2}" for i in range(5)))
    scores = score(capsys, "choice", jsonl(Path("g.jsonl"), rows), found)
    assert (scores["accuracy"], scores["accuracy_high"]) == (pytest.approx(80), pytest.approx(200 / 3))
    totals = [scores[name] for name in ("total", "total_high", "total_middle")]
    assert totals == [5, 3, 2] and {type(total) for total in totals} == {int}
    assert scores["accuracy_middle"] == 100 and not [name for name in scores if name.startswith("macro_f1_")]
    plain = [{"id": i, "label": i % 2} for i in range(5)]
    alone = score(capsys, "choice", jsonl(Path("g.jsonl"), plain), found)
    assert alone["accuracy"] == pytest.approx(80) and not [name for name in alone if name.startswith("accuracy_")]
    named = [{"id": i, "answer": i % 2} for i in range(5)]
    assert score(capsys, "choice", jsonl(Path("g.jsonl"), named), found, "--label-field", "answer") == alone
    assert score(capsys, "choice", lines("g", *(f"{i}\t{i % 2}" for i in range(5))), found) == alone
    low, high = score(capsys, "choice", "g.jsonl", found, "--label-field", "answer", "--intervals")["intervals"][
        "accuracy"
    ]
    assert low < 80 < high


def test_numbers_are_scored_by_their_correlation(capsys):
    gold, found = [1.0, 2.5, 2.0, 4.0], [1.0, 3.0, 2.0, 1.5]
    files = (lines("g", *map(str, gold)), lines("p", *map(str, found)))
    assert score(capsys, "regression", *files) == score_regression(np.array(gold), np.array(found))


def test_relations_are_scored_by_the_rules_of_tacred_or_semeval(capsys):
    gold, found = ["no_relation", "x", "y", "z"], ["x", "x", "no_relation", "z"]
    files = (lines("g", *gold), lines("p", *found))
    confusion = Confusion.of(gold, found)
    assert score(capsys, "relation", *files) == Relations(confusion, "no_relation").scores()
    assert score(capsys, "relation", *files, "--negative", "x") == Relations(confusion, "x").scores()
    gold, found = ["A-B(e1,e2)", "Other", "C-D(e2,e1)"], ["A-B(e1,e2)", "C-D(e2,e1)", "C-D(e1,e2)"]
    files = (lines("g", *gold), lines("p", *found))
    expected = SemevalRelations(Confusion.of(gold, found)).scores()
    assert score(capsys, "relation", *files, "--rules", "semeval2010") == expected
    # Files whose only common label says that there is no relation have nothing in common, by either set of rules.
    for negative, rules in (("no_relation", ()), ("Other", ("--rules", "semeval2010")), ("n", ("--negative", "n"))):
        files = (lines("g", negative, "A-B(e1,e2)"), lines("p", negative, "C-D(e1,e2)"))
        assert refusal(capsys, "relation", *files, *rules).startswith("p: has no label of g, but such as ")
    files = (lines("g", "no_relation", "x"), lines("p", "no_relation", "y"))
    said = refusal(capsys, "relation", *files, "--negative", "no-relation")
    assert said == "g, p: --negative no-relation: no label is called so; the labels are 'no_relation', 'x', 'y'"
    said = refusal(capsys, "relation", *files, "--rules", "semeval2010", "--negative", "x")
    assert said.startswith("--negative has no effect without --rules tacred; ")


def test_names_of_fields_are_refused_where_lines_have_none(capsys):
    files = (lines("g", "x", "y"), lines("p", "x", "y"))
    for words in (("--label-field", "l"), ("--labels", "x,y")):
        said = refusal(capsys, "classification", *files, *words)
        assert said == f"{' '.join(words)}: g holds lines without fields, by its name; leave {words[0]} out"
    said = refusal(capsys, "generation", *files, "--target-field", "t")
    assert said == "--target-field t: p holds lines without fields, by its name; leave --target-field out"
    Path("folder").mkdir()
    said = refusal(capsys, "classification", "folder", files[1], "--label-field", "l")
    assert said == "folder: a folder, not a file; there is no file in it"


def test_tags_are_scored_by_type(capsys):
    gold, found = [["B-X", "I-X", "O"], ["B-Y"]], [["B-X", "I-X", "B-Y"], ["B-X"]]
    files = []
    for name, tags in (("g", gold), ("p", found)):
        files.append(lines(name, *(line for one in tags for line in (*(f"w {tag}" for tag in one), ""))))
    scores = score(capsys, "tagging", *files)
    assert scores == json.loads(json.dumps(TaggedSentences(gold, found, by_type=True).scores()))
    assert scores["types"].keys() == {"X", "Y"}


@pytest.mark.parametrize(
    ("kind", "field", "gold", "found"),
    [
        ("classification", "label", ["bad", "good", "bad"], ["bad", "bad", "good"]),
        ("choice", "label", [0, 1, 2], [0, 2, 2]),
        ("regression", "label", [1.0, 2.5, 2.0], [1.0, 3.5, 2.0]),
        ("relation", "label", ["bad", "good", "no_relation"], ["bad", "bad", "good"]),
        ("tagging", "tags", [["bad"], ["good", "bad"], ["good"]], [["bad"], ["bad", "bad"], ["good"]]),
    ],
)
def test_gold_rows_may_call_their_labels_otherwise(capsys, kind, field, gold, found):
    """By a field of their own, and classes by numbers that --labels names; predictions are as they are written."""
    if kind == "tagging":
        gold, found = ([[f"B-{tag}" for tag in tags] for tags in side] for side in (gold, found))
    predictions = jsonl(Path("p.jsonl"), [{"id": f"{i}", field: one} for i, one in enumerate(found)])
    plain = jsonl(Path("g.jsonl"), [{"id": f"{i}", field: one} for i, one in enumerate(gold)])
    named = jsonl(Path("n.jsonl"), [{"id": f"{i}", "mine": one, field: None} for i, one in enumerate(gold)])
    expected = score(capsys, kind, plain, predictions)
    assert score(capsys, kind, named, predictions, "--label-field", "mine") == expected
    if kind in ("classification", "relation"):
        names = ["bad", "good", "no_relation"]
        numbered = jsonl(Path("x.jsonl"), [{"id": f"{i}", "x": names.index(one)} for i, one in enumerate(gold)])
        words = (numbered, predictions, "--label-field", "x", "--labels", ",".join(names))
        assert score(capsys, kind, *words) == expected


QUESTIONS = {"a": ["red"], "b": ["blue"], "c": []}


def squad(name: str, version: str, questions: dict[str, list[str]]) -> str:
    qas = [{"id": key, "answers": [{"text": text} for text in answers]} for key, answers in questions.items()]
    return save(name, {"version": version, "data": [{"paragraphs": [{"qas": qas}]}]})


def test_the_version_of_the_data_or_the_option_chooses_the_rules(capsys):
    answered = {key: answers for key, answers in QUESTIONS.items() if answers}
    found = {"a": "the red", "b": "green", "c": ""}
    predictions = save("p.json", found)
    by_two = SquadV2Examples(QUESTIONS, found).scores()
    for version in ("2.0", "v2.0"):
        assert score(capsys, "squad", squad("q.json", version, QUESTIONS), predictions) == by_two
    assert score(capsys, "squad", squad("q.json", "v2", QUESTIONS), predictions, "--rules", "2.0") == by_two
    one = SquadV1Examples(answered, found).scores()
    for version in ("1.1", "v1.1"):
        assert score(capsys, "squad", squad("q.json", version, answered), predictions) == one
    assert score(capsys, "squad", squad("q.json", "2.0", answered), predictions, "--rules", "1.1") == one
    assert refusal(capsys, "squad", squad("q.json", "v3", answered), predictions) == (
        "q.json: states version 'v3'; say --rules 1.1 or --rules 2.0"
    )
    probabilities = save("n.json", {"a": 0.9, "b": 0.2, "c": 0.4})
    assert refusal(capsys, "squad", squad("q.json", "1.1", answered), predictions, "--na-prob", probabilities) == (
        "--na-prob: the rules of SQuAD 1.1 have no unanswerable questions; say --rules 2.0"
    )
    words = ("squad", squad("q.json", "2.0", QUESTIONS), predictions, "--na-prob", probabilities)
    known = {"a": 0.9, "b": 0.2, "c": 0.4}
    assert score(capsys, *words) == SquadV2Examples(QUESTIONS, found, known, 1.0).scores()
    taken_back = score(capsys, *words, "--na-prob-thresh", "0.5")
    assert taken_back == SquadV2Examples(QUESTIONS, found, known, 0.5).scores() and taken_back["HasAns_exact"] == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--na-prob-thresh", "1"], "--na-prob-thresh is for the probabilities of --na-prob; give their file"),
        (["--na-prob", "none", "--na-prob-thresh", "nan"], "--na-prob-thresh must be a number, got nan"),
    ],
)
def test_a_threshold_without_an_effect_is_refused_before_files_are_read(capsys, options, says):
    assert refusal(capsys, "squad", "none", "none", *options) == says


def test_a_file_of_squad_is_told_from_rows_by_its_name(capsys):
    predictions = save("p.json", {"a": "red"})
    for name in ("rows.csv", "rows.jsonl", "rows.tsv.gz"):
        Path(name).write_bytes(b"")
        assert refusal(capsys, "squad", name, predictions) == (
            f"{name}: rows, not a file of SQuAD; `unified score span` scores answers to them"
        )
    for name in ("Q.JSON", "no_suffix"):
        assert score(capsys, "squad", squad(name, "1.1", {"a": ["red"]}), predictions)["f1"] == 100


def test_answers_to_rows_of_ones_own_follow_squad_2_where_a_row_has_no_answer(capsys):
    rows = [{"context": "red blue", "question": "?", "answers": answers} for answers in (["red"], ["blue"])]
    unanswerable = {"context": "red blue", "question": "?", "impossible": True}
    found = jsonl(
        Path("p.jsonl"), [{"id": "1", "answer": "red"}, {"id": "2", "answer": "red"}, {"id": "3", "answer": ""}]
    )
    given = {"1": "red", "2": "red", "3": ""}
    answers = {"1": ["red"], "2": ["blue"]}
    gold = jsonl(Path("g.jsonl"), rows)
    two = jsonl(Path("two.jsonl"), [{"id": "1", "answer": "red"}, {"id": "2", "answer": "red"}])
    one = SquadV1Examples(answers, {"1": "red", "2": "red"}).scores()
    assert score(capsys, "span", gold, two) == one == score(capsys, "span", gold, two, "--rules", "1.1")
    by_two = SquadV2Examples(answers, {"1": "red", "2": "red"}).scores()
    assert score(capsys, "span", gold, two, "--rules", "2.0") == by_two != one
    gold = jsonl(Path("g.jsonl"), [*rows, unanswerable])
    assert score(capsys, "span", gold, found) == SquadV2Examples({**answers, "3": []}, given).scores()


def test_turns_and_questions_without_a_prediction_are_counted(capsys):
    story = {
        "id": "s1", "source": "cnn", "questions": [{"input_text": "?", "turn_id": n} for n in (1, 2, 3)],
        "answers": [{"input_text": "x", "turn_id": n} for n in (1, 2, 3)],
    }  # fmt: skip
    data = save("coqa.json", {"data": [story]})
    assert main(["score", "coqa", data, save("p.json", [{"id": "s1", "turn_id": 2, "answer": "x"}])]) == 0
    printed = capsys.readouterr()
    assert printed.err == "2 of 3 turns have no prediction and score 0\n"
    assert json.loads(printed.out)["overall"]["turns"] == 3
    whole = [{"id": "s1", "turn_id": n, "answer": "x"} for n in (1, 2, 3)]
    assert main(["score", "coqa", data, save("p.json", whole)]) == 0
    assert capsys.readouterr().err == ""
    assert refusal(capsys, "coqa", data, save("p.json", [])) == "p.json: holds no prediction"
    told = refusal(capsys, "coqa", data, save("p.json", [{"id": "other", "turn_id": 1, "answer": "x"}]))
    assert "turn" in told and "'other 1'" in told and "'s1 1'" in told
    predictions = save("p.json", {"a": "red"})
    assert main(["score", "squad", squad("q.json", "1.1", {"a": ["red"], "b": ["x"]}), predictions]) == 0
    assert capsys.readouterr().err == "1 of 2 questions have no prediction and score 0\n"


def test_refusals_of_contents_name_the_files(capsys):
    predictions = save("p.json", {"z": "red"})
    assert refusal(capsys, "squad", squad("q.json", "2.0", QUESTIONS), predictions).startswith("q.json, p.json: ")
    assert refusal(capsys, "squad", squad("q.json", "1.1", {"a": ["x"]}), predictions).startswith("q.json, p.json: ")


def test_scores_are_printed_written_and_given_intervals(capsys):
    gold, found = ["a", "b", "é"] * 4, ["a", "a", "é"] * 4
    files = (lines("g", *gold), lines("p", *found))
    words = ("classification", *files, "--intervals", "--resamples", "2", "--seed", "0", "--output", "out.json")
    scores = score(capsys, *words)
    examples = Classification(Confusion.of(gold, found))
    expected = examples.scores() | {"intervals": bootstrap_intervals(examples, 2, 0)}
    assert scores == json.loads(json.dumps(expected))
    assert Path("out.json").read_text(encoding="utf-8") == json.dumps(expected, indent=2) + "\n"
    assert "intervals" not in score(capsys, "classification", *files)
    for option, says in (("--resamples=1", "must be an integer of at least 2, got '1'"),
                         ("--seed=-1", "must be an integer of at least 0, got '-1'")):  # fmt: skip
        status, out, printed = leaving(capsys, "score", "classification", *files, "--intervals", option)
        assert (status, out) == (2, "") and f"argument {option.partition('=')[0]}: {says}" in printed
    assert score(capsys, "classification", *files, "--intervals")["intervals"] == json.loads(
        json.dumps(bootstrap_intervals(examples))
    )


def test_scores_stand_beside_those_of_another_system(capsys):
    gold, found, others = ["a", "b", "é"] * 4, ["a", "a", "é"] * 4, ["a", "b", "b"] * 4
    files, other = (lines("g", *gold), lines("p", *found)), lines("o", *others)
    words = ("--against", other, "--resamples", "20", "--seed", "3")
    first, second = (Classification(Confusion.of(gold, side)) for side in (found, others))
    difference = Difference(first, second)
    against = {"scores": second.scores(), "differences": difference.measures()}
    expected = first.scores() | {"against": against | {"intervals": bootstrap_intervals(difference, 20, 3)}}
    assert score(capsys, "classification", *files, *words) == json.loads(json.dumps(expected))
    both = score(capsys, "classification", *files, *words, "--intervals")
    assert both == json.loads(json.dumps(expected | {"intervals": bootstrap_intervals(first, 20, 3)}))
    drawn = score(capsys, "classification", *files, "--against", other)["against"]["intervals"]
    assert drawn == json.loads(json.dumps(bootstrap_intervals(difference)))
    assert refusal(capsys, "classification", *files, "--seed", "1") == (
        "--seed has no effect without --intervals or --against; add --intervals or --against, or leave --seed out"
    )
    fewer = refusal(capsys, "classification", lines("g", "a"), lines("p", "a"), "--against", lines("o", "a"))
    assert fewer == "intervals need at least 2 examples to draw from; there is 1"


def test_several_files_are_runs_whose_scores_are_averaged(capsys):
    gold, found, others = ["a", "b", "é"] * 4, ["a", "a", "é"] * 4, ["a", "b", "b"] * 4
    files, other = [lines("g", *gold), lines("p", *found), lines("g2", *gold)], lines("o", *others)
    first, second = (Classification(Confusion.of(gold, side)) for side in (found, gold))
    runs, system = Mean([first, second]), Classification(Confusion.of(gold, others))
    scores = score(capsys, "classification", *files, "--against", other, "--intervals")
    assert scores["accuracy"] == (first.measures()["accuracy"] + 100) / 2 and scores["runs"] == 2
    assert scores["intervals"] == json.loads(json.dumps(bootstrap_intervals(runs)))
    difference = Difference(runs, system)
    assert scores["against"]["differences"] == json.loads(json.dumps(difference.measures()))
    assert scores["against"]["intervals"] == json.loads(json.dumps(bootstrap_intervals(difference)))
    data = squad("q.json", "2.0", {"a": ["red"], "b": []})
    answers = [save(f"p{i}.json", {"a": "red", "b": ""}) for i in range(2)]
    assert score(capsys, "squad", data, *answers)["exact"] == 100
    told = refusal(capsys, "squad", data, *answers, "--na-prob", save("n.json", {"a": 0, "b": 1}))
    assert told == "--na-prob: 1 file for 2 files of predictions; each run needs one"


def test_probabilities_of_no_answer_are_those_of_each_system(capsys):
    data = squad("q.json", "2.0", {"a": ["red"], "b": [], "c": ["x"]})
    files = save("p.json", {"a": "red", "b": "x", "c": "y"}), save("o.json", {"a": "red", "b": "x", "c": "y"})
    own, others = save("n.json", {"a": 0.1, "b": 0.9, "c": 0.2}), save("m.json", {"a": 0.9, "b": 0.1, "c": 0.2})
    words = ("squad", data, files[0], "--na-prob", own, "--against", files[1])
    found = score(capsys, *words, "--against-na-prob", others)
    assert found["best_exact"] > found["against"]["scores"]["best_exact"]
    assert found["against"]["scores"] == score(capsys, "squad", data, files[1], "--na-prob", others)
    both = "--na-prob and --against-na-prob: give the probabilities of both systems, or of none"
    assert refusal(capsys, *words) == both
    assert refusal(capsys, "squad", data, files[0], "--against", files[1], "--against-na-prob", others) == both
    alone = refusal(capsys, "squad", data, files[0], "--against-na-prob", others)
    assert alone.startswith("--against-na-prob has no effect without --against")


def test_texts_stand_beside_those_of_another_system(capsys):
    references, written = lines("r", "a b c d e", "v w x y z"), lines("h", "a b c d e", "v w x q z")
    words = ("generation", written, "--references", references, "--against", lines("o", "a b q d e", "v w x y z"))
    found = score(capsys, *words, "--json", "--resamples", "5")
    assert found["against"]["differences"]["exact_match"] == 0 and found["against"]["scores"]["exact_match"] == 50
    assert main(["score", *words, "--resamples", "5"]) == 0
    low, high = found["against"]["intervals"]["bleu"]
    gain, other = found["against"]["differences"]["bleu"], found["against"]["scores"]["bleu"]
    shown = re.split("  +", next(row for row in capsys.readouterr().out.splitlines() if row.startswith("BLEU  ")))
    assert shown == ["BLEU", f"{found['bleu']:.2f}", f"against {other:.2f}: {gain:+.2f} [{low:+.2f}, {high:+.2f}]"]
    told = refusal(capsys, "generation", written, references, "--against", references)
    assert told == "--against: name the files of references, which both systems share, with --references"
    fewer = refusal(capsys, *words[:4], "--against", lines("o", "a"))
    assert fewer == "r: 2 references for 1 hypothesis in o"


@pytest.mark.parametrize("kind", ["generation", "question-generation"])
def test_texts_of_two_systems_may_stand_in_any_order_where_rows_have_ids(capsys, kind):
    def rows(name: str, **rows: dict[str, str]) -> str:
        Path(name).write_text("".join(f"{json.dumps({'id': key, **row})}\n" for key, row in rows.items()))
        return name

    references = rows("r.jsonl", a={"target": "a b c d e"}, b={"target": "v w x y z"}, c={"target": "k l m n o"})
    sources = rows("s.jsonl", b={"source": "z z"}, a={"source": "a b q"}, c={"source": "z z"})
    texts = {"a": {"text": "a b q d e"}, "b": {"text": "v w x y z"}, "c": {"text": "k l m z z"}}
    ours = rows("h.jsonl", **{key: texts[key] for key in "abc"})
    others = rows("o.jsonl", **{key: texts[key] for key in "cab"})
    words = (kind, ours, "--references", references, "--sources", sources)
    alone = score(capsys, *words, "--json")
    assert score(capsys, kind, others, *words[2:], "--json") == alone
    against = score(capsys, *words, "--against", others, "--json", "--resamples", "3")["against"]
    assert set(against["differences"].values()) == {0.0}
    # Lines are in the order of the references, whose ids find the sources, and further references.
    plain = lines("p", *(row["text"] for row in texts.values()))
    assert score(capsys, kind, plain, *words[2:], "--json") == alone
    Path("g").write_text(
        "".join(f"H-{at}\t-1\th\nD-{at}\t-1\t{row['text']}\n" for at, row in enumerate(texts.values()))
    )
    more = rows("m.jsonl", c={"target": "k l m z z"}, b={"target": "-"}, a={"target": "-"})
    for system in (ours, others, plain, "g"):
        found = score(capsys, kind, system, "--references", references, more, *words[4:], "--json")
        assert found == score(capsys, kind, ours, "--references", references, more, *words[4:], "--json") != alone


@pytest.mark.parametrize(
    ("kind", "line", "measure"),
    [("generation", "exact sentences, %", "exact_match"), ("question-generation", "BLEU-1", "bleu1")],
)
def test_scores_of_texts_are_printed_as_a_table_or_with_json_as_json(capsys, kind, line, measure):
    files = (lines("h", "a b c d e", "x"), lines("r", "a b c d e", "y"))
    words = (kind, *files, "--sources", lines("s", "m", "n"))
    scores = score(capsys, *words, "--json")
    assert main(["score", *words]) == 0
    table = dict(re.split("  +", row) for row in capsys.readouterr().out.splitlines())
    assert table[line] == f"{scores[measure]:.2f}"


def test_other_scores_are_printed_as_json(capsys):
    files = (lines("g", "a", "b"), lines("p", "a", "b"))
    assert score(capsys, "classification", *files) == score(capsys, "classification", *files, "--json")


def conll(name: str, *chains: str) -> str:
    """A file of one document, with the column of chains of each token."""
    return lines(name, "#begin document (d); part 000", *(f"w\t{chain}" for chain in chains), "#end document")


def test_a_response_that_cannot_be_scored_is_named(capsys):
    key = conll("key", *["(1)"] * 11)
    assert score(capsys, "coref", key, conll("response", *["(5)"] * 11))["muc_recall"] == 100
    # The official scorer refuses a response in which more than ten mentions stand in two chains.
    assert refusal(capsys, "coref", key, conll("response", *["(5)|(6)"] * 11)).startswith(
        "response: more than 10 repeated mentions in the response"
    )
