"""Files of results: their content, the files that are read, the run that a grid has chosen, and damaged files."""

import json
import math
import os
import platform
from datetime import UTC, datetime
from importlib import metadata

import pytest

from unified.errors import UnifiedError
from unified.reports import results
from unified.reports.results import (
    chosen_run,
    command_of,
    measures_of,
    read_results,
    versions,
    write_result,
    write_whole,
)

FIELDS = {
    "task": "sst2", "run": "ours", "scores": {"valid": {"accuracy": 90.0}}, "seed": 1, "command": ["x", "é"],
    "model": {"name": "bert", "sha256": None}, "settings": {"lr": 1e-5}, "data": {"train.jsonl": "1"},
    "published": {"valid": {"BERT": {"accuracy": 93}}},
}  # fmt: skip


def test_a_file_holds_the_result_the_versions_the_date_and_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "processor_name", lambda: "a processor")
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    before = datetime.now(UTC).replace(microsecond=0)
    path = write_result(tmp_path, **FIELDS, checkpoint="best", more=[1])
    assert path == tmp_path / "results.json" and [one.name for one in tmp_path.iterdir()] == ["results.json"]
    text = path.read_text(encoding="utf-8")
    content = json.loads(text)
    assert text == json.dumps(content, indent=2, ensure_ascii=False) + "\n" and '"é"' in text
    made = datetime.fromisoformat(content.pop("date"))
    assert before <= made <= datetime.now(UTC) and made.microsecond == 0 and made.tzinfo is not None
    machine = {"processor": "a processor", "cores": 12}
    assert content == FIELDS | {"versions": versions(), "machine": machine, "checkpoint": "best", "more": [1]}
    assert read_results([path]) == [json.loads(text)]


@pytest.mark.parametrize("missing", [set(), {"rouge-score", "fairseq-fixed"}])
def test_versions_are_those_of_the_installed_packages(monkeypatch, missing):
    def version(package):
        if package in missing:
            raise metadata.PackageNotFoundError
        return f"1.{package}"

    monkeypatch.setattr(metadata, "version", version)
    names = {
        "unified-lm", "torch", "fairseq-fixed", "tokenizers", "transformers", "sentencepiece", "sacrebleu",
        "rouge-score",
    }  # fmt: skip
    assert versions() == {"python": platform.python_version()} | {name: f"1.{name}" for name in names - missing}


def test_counts_thresholds_and_signatures_are_no_measures():
    scores = {"f1": 1.0, "total": 3, "best_f1_thresh": 0.5, "thresh_f1": 2.0, "signature": "x", "of": {}, "none": None}
    assert measures_of(scores) == {"f1": 1.0, "thresh_f1": 2.0}


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path):
    path = write_whole(tmp_path / "a.json", {"é": 1})
    assert path.read_text(encoding="utf-8") == '{\n  "é": 1\n}\n'
    with pytest.raises(TypeError):
        write_whole(path, {"a": object()})
    assert path.read_text(encoding="utf-8") == '{\n  "é": 1\n}\n' and len(list(tmp_path.iterdir())) == 1


def test_the_command_of_a_file_is_read_of_files_of_results_alone(tmp_path):
    path = tmp_path / "results.json"
    assert command_of(path) == []  # there is no file
    for content in ("not json", "[]", "{}", '{"command": "x y"}', '{"command": null}'):
        path.write_text(content)
        assert command_of(path) == []
    path.write_text('{"command": ["x", "y"], "score": NaN}')
    assert command_of(path) == ["x", "y"]


def test_a_score_may_be_no_number(tmp_path):
    (result,) = read_results([write_result(tmp_path, **FIELDS | {"scores": {"valid": {"matthews": math.nan}}})])
    assert math.isnan(result["scores"]["valid"]["matthews"])


def test_the_run_that_a_grid_has_chosen_stands_in_its_file(tmp_path):
    path = tmp_path / "results.json"
    assert chosen_run(path) is None  # there is no file
    for content in ("not json", "[]", "{}", '{"chosen": "a"}', '{"chosen": {}}', '{"chosen": {"folder": 3}}'):
        path.write_text(content)
        assert chosen_run(path) is None
    path.write_text('{"chosen": {"folder": "lr-1/seed-2"}, "score": NaN}')
    assert chosen_run(path) == tmp_path / "lr-1" / "seed-2"


def test_results_are_those_of_files_of_folders_and_of_the_runs_of_grids(tmp_path):
    for number, name in enumerate(("b", "a/deep", "grid/one", "grid/two")):
        (tmp_path / name).mkdir(parents=True)
        write_result(tmp_path / name, **FIELDS | {"seed": number})
    grid = tmp_path / "grid" / "results.json"
    grid.write_text('{"chosen": {"folder": "one"}}')
    (tmp_path / "b" / "other.json").write_text("{}")

    def seeds(*paths):
        return [one["seed"] for one in read_results(paths)]

    assert seeds(tmp_path) == [1, 0, 2, 3] and seeds(grid) == seeds(grid.parent) == [2, 3]
    assert seeds(tmp_path / "b" / "results.json", str(tmp_path / "a")) == [0, 1]
    (tmp_path / "empty").mkdir()
    (tmp_path / "bare").mkdir()
    for paths, says in (
        (
            ["empty", "bare"],
            "no results.json in {0}/empty, {0}/bare; `unified finetune` and `unified evaluate` write them",
        ),
        (["none"], "{0}/none: no such file or folder"),
    ):
        with pytest.raises(UnifiedError) as raised:
            seeds(*(tmp_path / name for name in paths))
        assert raised.value.details == says.format(tmp_path)


def test_links_to_folders_are_followed_and_each_file_is_read_once(tmp_path, monkeypatch):
    for seed, folder in enumerate(("elsewhere/a", "elsewhere/a/b", "runs/one")):
        (tmp_path / folder).mkdir(parents=True)
        write_result(tmp_path / folder, **FIELDS | {"seed": seed})
    runs = tmp_path / "runs"
    (runs / "two").symlink_to("../elsewhere/a")
    (runs / "three").symlink_to("../elsewhere/a/b")
    for folder in (runs, tmp_path / "elsewhere" / "a"):  # they lead back
        (folder / "above").symlink_to("..")
    for path in (runs, tmp_path, runs / "above"):
        assert sorted(one["seed"] for one in read_results([path])) == [0, 1, 2]
    monkeypatch.chdir(runs / "one")
    assert [one["seed"] for one in read_results(["."])] == [2]


def test_a_link_to_itself_is_no_file_of_results(tmp_path):
    (tmp_path / "results.json").symlink_to("results.json")
    for path in (tmp_path, tmp_path / "results.json"):
        with pytest.raises(UnifiedError, match=r"results\.json: cannot be read \(Too many levels of symbolic links\)"):
            read_results([path])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": []}, "'model' must have 'name' and 'sha256'"),
        ({"model": {"name": "a"}}, "'model' must have 'name' and 'sha256'"),
        ({"model": {"name": "a", "sha256": 3}}, "'sha256' of 'model' must be a text or null"),
        ({"model": {"name": 3, "sha256": None}}, "'name' of 'model' must be a text"),
        ({"task": 3}, "'task' must be a text"),
        ({"run": None}, "'run' must be a text"),
        ({"scores": []}, "'scores' must be an object"),
        ({"scores": {"valid": 3}}, "'valid' of 'scores' must be an object"),
        ({"seed": "1"}, "'seed' must be an integer"),
        ({"command": "x"}, "'command' must be a list"),
        ({"settings": 3}, "'settings' must be an object"),
        ({"data": {"a": 1}}, "'a' of 'data' must be a text"),
        ({"versions": {"a": 1}}, "'a' of 'versions' must be a text"),
        ({"date": 1}, "'date' must be a text"),
        ({"published": {"valid": {"B": {"f1": "x"}}}}, "'f1' of 'B' of 'valid' of 'published' must be a number"),
        ({"checkpoint": 1}, "'checkpoint' must be a text"),
        ({"null_threshold": {"value": "x", "found_on": "v"}}, "'value' of 'null_threshold' must be a number"),
        ({"null_threshold": {"value": 1, "found_on": 2}}, "'found_on' of 'null_threshold' must be a text or null"),
    ],
)
def test_a_field_of_another_kind_is_named(tmp_path, changes, says):
    path = write_result(tmp_path, **FIELDS)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UnifiedError) as raised:
        read_results([path])
    assert raised.value.details == f"{path}: not a file of results; {says}"


def test_further_fields_may_be_missing(tmp_path):
    path = write_result(tmp_path, **FIELDS)
    content = json.loads(path.read_text())
    del content["published"], content["machine"]
    path.write_text(json.dumps(content))
    assert read_results([path]) == [content]
