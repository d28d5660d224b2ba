"""`unified evaluate --against`: scores beside those of another model on the same examples."""

from __future__ import annotations

import json

import pytest

from tests.support.corpora import jsonl
from tests.support.evaluations import PAIRS
from unified.cli import main
from unified.reports.results import read_results


@pytest.mark.parametrize(
    ("data", "more", "score", "line"),
    [
        (
            "minimal-pairs pairs.v1.jsonl", "--scoring left_to_right", "accuracy",
            "| of |  | accuracy | against | difference | its 95 % interval | ties |\n|---|---|---|---|---|---|---|\n"
            "| all | mean over paradigms | {:.2f} | {:.2f} | {:+.2f} | {:+.2f} to {:+.2f} | ",
        ),
        (
            "perplexity text.v1.txt", "--scoring left_to_right --window 4 --stride 4", "bits_per_byte",
            "| bits per byte | {:.3f} | {:.3f} | {:+.3f} | {:+.3f} to {:+.3f} |\n",
        ),
        (
            "similarity rows.jsonl", "", "pearson",
            "pearson {:.2f}; against {:.2f}; difference {:+.2f}; its 95 % interval {:+.2f} to {:+.2f}\n",
        ),
    ],
)  # fmt: skip
def test_scores_stand_beside_those_of_another_model(evaluate, tmp_path, data, more, score, line):
    """The difference is that of the two evaluations, and no model differs from itself."""
    words = data.split()
    other = json.loads(evaluate(*words, "--model", "x", *more.split(), "--json", "--output", str(tmp_path / "x"))[0])
    alone = json.loads(evaluate(*words, "--model", "m", *more.split(), "--json", "--output", str(tmp_path / "m"))[0])
    drawn = ("--resamples", "9", "--seed", "5")
    command = (*words, "--model", "m", *more.split(), "--against", str(tmp_path / "x"), *drawn)
    found = json.loads(evaluate(*command, "--json")[0])
    against = found.pop("against")
    assert found == alone | {"output": None}
    assert {name: other[name] for name in against["scores"]} == against["scores"]
    assert against["differences"][score] == pytest.approx(alone[score] - other[score]) != 0
    low, high = against["intervals"][score]
    assert low <= high and against["intervals"].keys() == against["differences"].keys()
    assert line.format(alone[score], other[score], against["differences"][score], low, high) in evaluate(*command)[0]
    itself = json.loads(evaluate(*command[:-5], str(tmp_path / "m"), *drawn, "--json")[0])["against"]
    assert set(leaves(itself["differences"])) == {0.0} and itself["scores"][score] == alone[score]
    kept = read_results([tmp_path / "m"])[0]["details"]
    evaluate(*command[:-4], "--output", str(tmp_path / "m"), "--overwrite")
    assert read_results([tmp_path / "m"])[0]["details"] == kept


def leaves(values):
    for value in values.values():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield value


def test_a_note_says_where_the_perplexities_are_of_different_scorings(evaluate, tmp_path):
    command = ("perplexity", "text.v1.txt", "--model", "m", "--scoring")
    folder = str(tmp_path / "m")
    evaluate(*command, "left_to_right", "--output", folder)
    note = f"note: --against {folder} was scored by left_to_right, this model by pseudo_likelihood; "
    for scoring, count in (("left_to_right", 0), ("pseudo_likelihood", 1)):
        notes = evaluate(*command, scoring, "--against", folder, "--resamples", "2")[1]
        assert notes.count(f"{note}compare perplexities of one scoring alone\n") == notes.count("--against") == count


def notes(told: str) -> list[str]:
    return [line for line in told.splitlines() if line.startswith("note: --against")]


def test_a_note_says_where_token_perplexities_are_of_different_tokens(evaluate, shared, tmp_path):
    (shared / "pieces.txt").write_text("w1 w2\n\nw3 w4 w5\n", encoding="utf-8")
    command = ("perplexity", "pieces.txt", "--model", "m", "--scoring", "left_to_right")
    evaluate(*command, "--output", str(tmp_path / "m"))
    file = tmp_path / "m" / "examples.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    against = (*command, "--against", str(tmp_path / "m"), "--resamples", "2")
    assert notes(evaluate(*against)[1]) == []
    jsonl(file, [rows[0] | {"tokens": 4}, rows[1]])
    says = f"note: --against {tmp_path / 'm'} has 7 tokens, this model 5; compare token perplexities of one "
    assert notes(evaluate(*against)[1]) == [f"{says}tokenizer alone"]


@pytest.mark.parametrize(
    ("one", "other", "noted"),
    [
        ("--window 4 --stride 2", "--window 4 --stride 2", False),
        ("--window 4 --stride 2", "--window 4 --stride 3", True),
        ("--window 4 --stride 2", "--window 7 --stride 2", True),  # the longest document has 7 tokens
        ("--window 7 --stride 2", "--window 4 --stride 2", True),
        ("--window 7 --stride 2", "--window 7 --stride 3", False),
        ("--window 7 --stride 2", "--window 9 --stride 2", False),
    ],
)
def test_a_note_says_where_windows_differ_and_a_document_needs_several(evaluate, tmp_path, one, other, noted):
    command = ("perplexity", "text.v1.txt", "--model", "m", "--scoring", "left_to_right")
    evaluate(*command, *other.split(), "--output", str(tmp_path / "m"))
    told = evaluate(*command, *one.split(), "--against", str(tmp_path / "m"), "--resamples", "2")[1]
    says = f"note: --against {tmp_path / 'm'} was scored with {other}, this model with {one}; compare long documents "
    assert notes(told) == ([f"{says}in equal windows"] if noted else [])


def test_results_without_the_settings_of_a_perplexity_are_refused_before_any_work(evaluate, tmp_path, capsys):
    command = ("perplexity", "text.v1.txt", "--scoring", "left_to_right", "--model")
    evaluate(*command, "m", "--output", str(tmp_path))
    file = tmp_path / "results.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    found["settings"]["window"] = "22"
    file.write_text(json.dumps(found), encoding="utf-8")
    assert main(["evaluate", *command, "nothing", "--against", str(tmp_path)]) == 2
    says = f"unified evaluate: error: {file}: 'window' of 'settings' must be an integer\n"
    assert capsys.readouterr().err == says


def test_another_models_scores_of_other_examples_are_refused_before_work_where_they_can_be(evaluate, tmp_path, capsys):
    words = ("minimal-pairs", "pairs.v1.jsonl", "--scoring", "left_to_right", "--model")
    evaluate(*words, "m", "--output", str(tmp_path / "m"))

    def refusal(*words: str, model: str = "nothing") -> str:
        assert main(["evaluate", *words, "--model", model, "--against", str(tmp_path / "m")]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err.partition(" error: ")[2].removesuffix("\n")

    told = refusal("perplexity", "text.v1.txt")
    assert told == f"--against {tmp_path / 'm'}: not the --output of `unified evaluate perplexity`"
    jsonl(tmp_path / "few.jsonl", PAIRS[:7])
    told = refusal("minimal-pairs", str(tmp_path / "few.jsonl"), model="m")
    file = tmp_path / "m" / "examples.jsonl"
    assert told.startswith(f"{tmp_path / 'few.jsonl'}: 7 examples, but {file}: 12; systems are compared on the same")
    jsonl(tmp_path / "other.jsonl", [*PAIRS[:-1], PAIRS[-1] | {"sentence_bad": "w1"}])
    told = refusal("minimal-pairs", str(tmp_path / "other.jsonl"), model="m")
    assert ": example 12 is scored against " in told and told.endswith("the same examples in the same order")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    jsonl(file, [*rows[:4], rows[4] | {"good": True}, *rows[5:]])
    assert refusal("minimal-pairs", "pairs.v1.jsonl", model="m") == f"{file}, line 5: 'good' must be a number"
    file.unlink()
    assert refusal("minimal-pairs", "pairs.v1.jsonl") == f"{file}: missing; evaluate that model once more with --output"
