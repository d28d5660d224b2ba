"""`unified evaluate similarity`: correlations, and the tables that it reads as pairs of texts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.support.corpora import jsonl
from tests.support.evaluations import digest, joined
from unified import load
from unified.cli import main
from unified.evaluation.similarity import similarities
from unified.reports.results import read_results
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tasks.metrics.classification import Regression


def test_similarity_is_the_correlation_of_cosines(evaluate, shared, tmp_path):
    rows = [json.loads(line) for line in (shared / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    first, second = ([row[name] for row in rows] for name in ("text", "second"))
    gold = np.array([float(row["label"]) for row in rows])
    for pooling in ("mean", "cls"):
        scored = Regression(gold, similarities(load("m"), first, second, pooling, 22, 32))
        words = ["similarity", "rows.jsonl", "--model", "m", "--pooling", pooling]
        found = json.loads(evaluate(*words, "--json", "--batch-size", "2")[0])
        assert found == pytest.approx(scored.scores() | {"pooling": pooling, "output": None})
        shown = [f"{name} {found[name]:.2f}" for name in ("pearson", "spearman")]
        assert evaluate(*words)[0].splitlines() == [f"6 pairs, pooling {pooling}", *shown]
        intervals = bootstrap_intervals(scored, 9, 4)
        lines = evaluate(*words, "--intervals", "--resamples", "9", "--seed", "4")[0].splitlines()
        assert lines[1:] == [
            f"{line} (95 % interval {intervals[name][0]:.2f} to {intervals[name][1]:.2f})"
            for name, line in zip(("pearson", "spearman"), shown, strict=True)
        ]
        found = json.loads(evaluate(*words, "--intervals", "--json")[0])["intervals"]
        assert found == json.loads(json.dumps(bootstrap_intervals(scored, 1000, 1)))
    output = str(tmp_path / "out")
    found = json.loads(evaluate(*words, "--json", "--output", output, "--max-length", "3")[0])
    [result] = read_results([output])
    assert result["settings"] == {"pooling": "cls", "max-length": 3} and result["seed"] == 1
    assert result["scores"] == {"rows": result["details"]} and result["details"]["pearson"] == found["pearson"]
    assert result["data"] == {"rows.jsonl": joined(digest("rows.jsonl"))}
    assert result["command"][-6:] == ["--model", "m", "--pooling", "cls", "--max-length", "3"]


def test_texts_are_cut_to_the_positions_of_the_model(evaluate, shared):
    """22 tokens beside two special symbols of 24 positions; all where positions are relative."""
    rows = [json.loads(line) for line in (shared / "long.jsonl").read_text(encoding="utf-8").splitlines()]
    first, second = ([row[name] for row in rows] for name in ("text", "second"))
    gold = np.array([float(row["label"]) for row in rows])
    for model, more, longest in (("m", (), 22), ("m", ("--max-length", "5"), 5), ("x", (), 0)):
        found = json.loads(evaluate("similarity", "long.jsonl", "--model", model, "--json", *more)[0])
        expected = Regression(gold, similarities(load(model), first, second, "mean", longest, 32)).scores()
        assert found["pearson"] == pytest.approx(expected["pearson"])


def test_more_tokens_than_the_model_reads_are_refused_by_the_name_of_the_option(evaluate, capsys):
    """Also where no text is as long, as ``--window`` of perplexity is."""
    words = ("similarity", "rows.jsonl", "--model")
    assert main(["evaluate", *words, "m", "--max-length", "23"]) == 2
    says = "unified evaluate: error: --max-length 23: the model reads 22 tokens beside its special symbols\n"
    assert capsys.readouterr().err == says
    for model, longest in (("m", "22"), ("x", "23")):
        assert evaluate(*words, model, "--max-length", longest) == evaluate(*words, model)


@pytest.fixture(scope="module")
def of_rows(shared) -> dict[str, object]:
    """Scores of ``rows.jsonl``, whose pairs the tables below hold, too."""
    model = load(shared / "m")
    rows = [json.loads(line) for line in (shared / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    found = similarities(model, [row["text"] for row in rows], [row["second"] for row in rows], "mean", 22, 32)
    return Regression(np.array([float(row["label"]) for row in rows]), found).scores()


def test_a_table_with_the_header_of_glue_is_an_official_file_of_sts_b(evaluate, shared, of_rows):
    rows = [f"w{i} w1\tw{2 * i} w3 w4\t{i * i % 5}" for i in range(6)]
    (shared / "dev.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows, ""]), encoding="utf-8")
    found = json.loads(evaluate("similarity", "dev.tsv", "--model", "m", "--json")[0])
    assert {measure: found[measure] for measure in of_rows} == pytest.approx(of_rows)


@pytest.mark.parametrize("name", ["sts-dev.tsv", "sts-dev.csv"])
def test_a_table_without_the_names_of_items_is_an_official_file_of_sts_b(evaluate, shared, of_rows, name):
    cells = [["main", "file", "2012", str(i), str(i * i % 5), f"w{i} w1", f"w{2 * i} w3 w4"] for i in range(6)]
    (shared / name).write_text("".join("\t".join(row) + "\n" for row in cells), encoding="utf-8")
    found = json.loads(evaluate("similarity", name, "--model", "m", "--json")[0])
    assert {measure: found[measure] for measure in of_rows} == pytest.approx(of_rows)


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("own.tsv", "text\tsecond\tlabel", "{text}\t{second}\t{label}"),
        ("own.csv", "label,second,text", "{label},{second},{text}"),
        ("own.csv", "text;second;label", "{text};{second};{label}"),
        ("own.csv", '"text","second","label"', '"{text}","{second}",{label}'),
        ("own.csv", "\n text , second , label", "{text},{second},{label}"),
    ],
)
def test_a_table_whose_first_line_names_the_fields_is_one_of_items(evaluate, shared, of_rows, name, header, row):
    rows = [row.format(text=f"w{i} w1", second=f"w{2 * i} w3 w4", label=i * i % 5) for i in range(6)]
    (shared / name).write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    found = json.loads(evaluate("similarity", name, "--model", "m", "--json")[0])
    assert {measure: found[measure] for measure in of_rows} == pytest.approx(of_rows)


def test_a_field_is_read_by_the_name_that_an_option_gives(evaluate, shared):
    (shared / "named.csv").write_text("left,second,label\n" + "w1,w2,1\nw3,w4,2\n", encoding="utf-8")
    named = ("similarity", "named.csv", "--model", "m", "--text-field", "left", "--json")
    assert json.loads(evaluate(*named)[0])["total"] == 2


@pytest.mark.parametrize(
    "header",
    [
        *("text,b,c", "a,second,c", "a,b,label", "sentence1,sentence2,score", "a\tb\tc", "a\tb\tc\td\te\tf"),
        *(f"a\tb\tc\td\te\tf\t{field}" for field in ("text", "second", "label")),
    ],
)
def test_other_tables_are_of_items_and_a_missing_field_is_named(evaluate, shared, capsys, header):
    (shared / "one.csv").write_text(f"{header}\n{header}\n", encoding="utf-8")
    assert main(["evaluate", "similarity", "one.csv", "--model", "m"]) == 2
    assert "; its fields: '" in capsys.readouterr().err


def test_files_without_pairs_of_texts_are_refused(evaluate, shared, capsys):
    jsonl(shared / "alone.jsonl", [{"text": "w1", "label": 1}, {"text": "w2", "second": "w3", "label": 2}])
    for name, says in (
        ("alone.jsonl", "alone.jsonl, item 1: no second text\n"),
        ("nowhere", "nowhere: no such file\n"),
        ("text.v1.txt", "text.v1.txt: no file of rows by its name"),
    ):
        assert main(["evaluate", "similarity", name, "--model", "m"]) == 2
        assert capsys.readouterr().err.startswith(f"unified evaluate: error: {says}")
