"""The recipe of questions that improve answers: its data, and its debug size from models to a table."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.recipes.test_recipes import RECIPES, run
from tests.support.prepared_python import interpreter
from unified.reports.results import read_results
from unified.tasks.datasets.squad_json import misaligned_reasons, read_squad_file

FOLDER = RECIPES / "unilm" / "augment"
sys.path[:0] = [str(FOLDER), str(RECIPES / "common")]
import augment_data  # noqa: E402
import augment_debug  # noqa: E402
from augment_sizes import DEBUG, SMALL  # noqa: E402


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipe") / "out"
    run("python", FOLDER / "run.py", folder, "--size", "debug")
    return folder


def test_the_debug_size_runs_from_models_to_a_table(done):
    counts = json.loads((done / "augmented" / "counts.json").read_text())
    assert counts["passages"] == 8 and counts["kept"] > 8 and counts["swap"] + counts["negation"] > 4
    generated = read_squad_file(done / "augmented" / "generated" / "train-v2.0.json")
    assert not misaligned_reasons(generated)
    results = {one["run"]: one for one in read_results([done / "augmented", done / "baseline-few"])}
    rows = [
        line.split("|")[1].strip() for line in (done / "tables.md").read_text().splitlines() if line.startswith("|")
    ]
    assert rows[2:5] == ["first", "second", "baseline-few"] and set(results) == set(rows[2:5])
    assert {json.dumps(sorted(one["scores"]["valid"])) for one in results.values()} == {
        json.dumps(sorted(results["first"]["scores"]["valid"]))
    }
    for name, times in (("first", 1), ("second", 1), ("baseline-few", 0)):
        assert results[name]["command"].count("--auxiliary-masking") == times


def test_every_training_keeps_the_head_it_starts_from(done):
    """The first head is new; the second stage has the heads of the first, that of tokens among them."""
    new = {name: _new(done / "logs" / f"{name}.log") for name in ("reads", "answers", "augment", "baseline-few")}
    assert "heads.span.output.weight" in new["reads"][0] and not new["answers"] and not new["baseline-few"]
    (first,) = new["augment"]
    assert "heads.token." in first and "heads.span." not in first
    assert "unused, left out" not in (done / "logs" / "augment.log").read_text(encoding="utf-8")


def test_the_baseline_has_as_many_updates(done):
    commands = {one["run"]: one["command"] for one in read_results([done / "augmented", done / "baseline-few"])}
    named = {name: [int(words[i + 1]) for i, word in enumerate(words) if word == "--max-update"]
             for name, words in commands.items()}  # fmt: skip
    (first,), (second,), (epochs, updates) = named["first"], named["second"], named["baseline-few"]
    assert updates == first + second <= epochs  # the last one counts


def test_what_is_done_is_not_repeated(done):
    before = {path: path.stat().st_mtime_ns for path in done.rglob("*.pt")}
    again = run("python", FOLDER / "run.py", done, "--size", "debug")
    assert again.stdout.count("done before") == 5
    assert {path: path.stat().st_mtime_ns for path in done.rglob("*.pt")} == before
    words = [interpreter(), str(FOLDER / "run.py"), str(done), "--size", "debug", "--seed", "2"]
    refused = subprocess.run(words, capture_output=True, text=True)
    assert refused.returncode == 1 and "begun with --seed 1, now 2; name another folder" in refused.stderr


def test_a_larger_draw_holds_a_smaller_one_and_keeps_all_else(tmp_path):
    articles = augment_debug.articles("train", augment_debug.TRAIN)
    every, draws = _questions(articles), [_questions(augment_data.drawn(articles, count)) for count in (0, 50, 100)]
    assert list(map(len, draws)) == [0, 50, 100] and draws[1].items() <= draws[2].items() <= every.items()
    assert len(augment_data.drawn(articles, 10**6)) == 10


def test_data_of_the_recipe_are_read_by_their_tasks(tmp_path):
    augment_data.write(tmp_path, *(augment_debug.articles(name, 30) for name in ("train", "score")), DEBUG)
    from unified.tasks.catalogue import task_named

    for name, task in (
        ("few", "squad2.0"),
        ("many", "squad2.0"),
        ("spans", "squad-answers"),
        ("answerable", "squad1.1"),
    ):
        splits = task_named(task).read(tmp_path / name)
        assert len(splits["train"]) == {"few": 64, "many": 128, "spans": 64, "answerable": 180}[name]
    assert {item.question for item in task_named("squad-answers").read(tmp_path / "spans")["train"]} == {"[UNK]"}


def test_no_passage_of_the_real_data_trains_and_scores(unified_data):
    training, held_out = augment_data.real_articles(unified_data)
    contexts = [{p["context"] for a in some for p in a["paragraphs"]} for some in (training, held_out)]
    assert len(contexts[1]) == 144 and not contexts[0] & contexts[1]
    assert len(_questions(held_out)) > SMALL.scored and len(_questions(training)) > SMALL.many


def _questions(articles) -> dict[str, tuple]:
    return {
        qa["id"]: (paragraph["context"], qa["question"], json.dumps(qa["answers"]))
        for article in articles
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    }


def _new(log) -> list[str]:
    """Parameters that fairseq-train says are new, of each training in a log."""
    lines = log.read_text(encoding="utf-8").splitlines()
    return [line.rpartition(": ")[2] for line in lines if "initialised at random" in line]
