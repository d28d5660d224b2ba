"""What a fine-tuning leaves when its training has ended: predictions, scores, files of results, and messages."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml

from tests.support.commands import exit_status
from tests.support.corpora import jsonl
from tests.support.locales import plain_locale
from tests.support.task_folders import language_model, vocabulary
from tests.support.untrained_models import train_at_once
from unified import load
from unified.cli.commands.finetuning.results import ScoredSplits, score_splits
from unified.errors import UnifiedError
from unified.reports.results import read_results
from unified.tasks.catalogue import task_named
from unified.tasks.evaluation import SplitOutcome
from unified.tasks.heads.documents import DocumentItem
from unified.tasks.heads.items import read_items, write_items
from unified.tasks.metrics.bootstrap import bootstrap_intervals

CLASSES = [{"id": f"{i}", "text": f"w{i} w{3 * i % 7}", "label": ("no", "yé")[i % 2]} for i in range(20)]


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Path:
    return language_model(tmp_path_factory.mktemp("results") / "m", initializer_range=0.3)


@pytest.fixture
def finetune(start, tmp_path, monkeypatch, capsys):
    """Runs `unified finetune` with a training that ends at once; returns standard output, and the lines on stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("unified.cli.fairseq_train.read_module", train_at_once)

    def run(*words: str) -> tuple[str, list[str]]:
        given = ["--init", str(start), "--output", "out", "--max-length", "16"]
        assert exit_status("finetune", *given, *words) == 0
        printed = capsys.readouterr()
        return printed.out, printed.err.splitlines()

    return run


def rows(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_predictions_scores_and_results_are_those_of_the_scored_checkpoint(finetune, start, tmp_path):
    train, valid = CLASSES[:12], CLASSES[12:]
    jsonl(tmp_path / "train.jsonl", train)
    jsonl(tmp_path / "valid.jsonl", valid)
    jsonl(tmp_path / "test.jsonl", train)
    out, err = finetune(
        "classification", "--data", "train.jsonl", "--valid", "valid.jsonl", "--test", "test.jsonl", "--run", "mine",
        "--seed", "7",
    )  # fmt: skip
    predictor = load("out/checkpoint_last.pt", data="out/data").predictor()
    scores, intervals = {}, {}
    for split, given in (("valid", valid), ("test", train)):
        items = read_items(f"out/data/{split}.jsonl", lambda fields, n: predictor.task.item(fields, n, labelled=True))
        predictions = list(predictor.predict(items))
        assert rows(f"out/predictions.{split}.jsonl") == json.loads(json.dumps(predictions))
        right = sum(one["label"] == row["label"] for one, row in zip(predictions, given, strict=True))
        scores[split] = predictor.scored(items, predictions).scores()
        assert scores[split]["accuracy"] == pytest.approx(100 * right / len(given))
        intervals[split] = bootstrap_intervals(predictor.scored(items, predictions))
    assert "é" in Path("out/predictions.valid.jsonl").read_text(encoding="utf-8")  # as it is, not escaped
    assert json.loads(out) == scores and out.startswith('{\n  "valid"')
    [command] = [line for line in err if line.startswith("fairseq-train ")]
    [found] = read_results(["out"])
    assert {name: found[name] for name in ("task", "run", "scores", "seed", "command", "published", "checkpoint")} == {
        "task": "classification", "run": "mine", "scores": scores, "seed": 7, "command": shlex.split(command),
        "published": {}, "checkpoint": "last",
    }  # fmt: skip
    assert found["intervals"] == intervals
    assert found["measure"] == "accuracy" and found["model"]["name"] == str(start) and found["model"]["layers"] == 2
    assert found["settings"]["max-length"] == 16 and found["settings"]["updates"] == 3
    assert found["data"].keys() == {"train.jsonl", "valid.jsonl", "test.jsonl"}
    assert 0 <= found["seconds"] < 60 and found["seconds"] == round(found["seconds"], 1)
    assert not {"null_threshold", "together"} & found.keys() and not Path("out/submission").exists()
    constant = "a constant answer, 'no', would have accuracy 50.00: the model has learnt little; try a higher --lr, "
    expected = []
    for split, count in (("valid", 8), ("test", 12)):
        accuracy, (low, high) = scores[split]["accuracy"], intervals[split]["accuracy"]
        expected += [f"classification: accuracy {accuracy:.2f} [{low:.2f}, {high:.2f}] on {count} items of {split}"]
        expected += [f"{constant}more --epochs or other --seeds"] if accuracy <= 50 else []
    assert err[-len(expected) - 4 :] == [
        *expected,
        "out can be opened by transformers, too; README.md in it is a model card",
        "written to out/results.json; `unified results out` makes a table of it",
        "the model is in out; predict with it:",
        "  unified predict classification test.jsonl --model out",
    ]
    assert {"config.json", "model.safetensors", "README.md", "train.log"} <= {p.name for p in Path("out").iterdir()}
    repeated = yaml.safe_load(Path("out/run.yaml").read_text(encoding="utf-8"))
    assert (repeated["task"], repeated["seed"], repeated["run"]) == ("classification", 7, "mine")


def test_a_finished_run_is_not_repeated_and_its_results_can_be_printed_as_json(finetune, tmp_path, capsys, start):
    jsonl(tmp_path / "train.jsonl", CLASSES)
    finetune("classification", "--data", "train.jsonl")
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    out, err = finetune("classification", "--data", "train.jsonl")
    assert (out, err[-1]) == ("", "out: trained with these settings before; nothing is changed")
    words = ["--data", "train.jsonl", "--init", str(start), "--output", "out", "--max-length", "16", "--json"]
    assert exit_status("finetune", "classification", *words) == 0
    assert json.loads(capsys.readouterr().out) == {"output": "out", "results": read_results(["out"])}
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    out, _ = finetune("classification", "--data", "train.jsonl", "--dry-run")
    assert out.startswith("fairseq-train out/data ")


def test_a_run_that_was_killed_behind_its_results_gets_its_files_for_transformers(finetune, tmp_path):
    """Given once more, the command said that nothing is changed, and wrote no files for transformers."""
    jsonl(tmp_path / "train.jsonl", CLASSES)
    finetune("classification", "--data", "train.jsonl")
    missing = [Path("out", name) for name in ("README.md", "config.json", "model.safetensors")]
    before = [path.read_bytes() for path in missing]
    for path in missing:
        path.unlink()
    _, err = finetune("classification", "--data", "train.jsonl")
    written = "the files for transformers were missing and are written now"
    assert err[-1] == f"out: trained with these settings before; {written}"
    assert [path.read_bytes() for path in missing] == before


def test_a_training_that_another_process_had_begun_does_not_say_how_long_it_took(finetune, tmp_path):
    """Only the time of the last process was known, and stood there as that of the training."""
    jsonl(tmp_path / "train.jsonl", CLASSES)
    finetune("classification", "--data", "train.jsonl")
    assert "seconds" in read_results(["out"])[0]
    Path("out/results.json").unlink()
    finetune("classification", "--data", "train.jsonl")
    assert "seconds" not in read_results(["out"])[0]


def test_predictions_are_utf_8_whatever_the_locale(tmp_path, monkeypatch):
    class Reads:
        folder, predictor, reads = tmp_path, property(lambda self: self), "all"

    outcome = SplitOutcome("test", [{"label": "é"}], {"own.txt": "é", "own.json": {"0": "é"}}, None, None, None)
    monkeypatch.setattr("unified.tasks.evaluation.outcomes", lambda *_: [outcome])
    with plain_locale():
        assert score_splits(Reads(), None) == ScoredSplits({}, {}, None)
    written = {path.name: path.read_bytes().decode("utf-8") for path in tmp_path.iterdir()}
    assert written == {
        "predictions.test.jsonl": '{"label": "é"}\n', "test.own.txt": "é", "test.own.json": '{\n "0": "é"\n}\n',
    }  # fmt: skip


def test_select_best_scores_the_best_checkpoint_with_the_dictionary_of_its_data(finetune, tmp_path, monkeypatch):
    """Neither the last checkpoint, which is missing here, nor another dictionary beside the checkpoint is read."""

    def without_last(module, words, read):
        status = train_at_once(module, words, read)
        (tmp_path / "out" / "checkpoint_last.pt").unlink()
        vocabulary("another").save(tmp_path / "out" / "dict.txt")
        return status

    monkeypatch.setattr("unified.cli.fairseq_train.read_module", without_last)
    jsonl(tmp_path / "train.jsonl", CLASSES)
    finetune("classification", "--data", "train.jsonl", "--select", "best")
    assert read_results(["out"])[0]["checkpoint"] == "best"


def test_texts_that_were_cut_are_counted(finetune, tmp_path):
    long = [row | {"text": f"{row['text']} " * 20} if i < 3 else row for i, row in enumerate(CLASSES)]
    for name in ("train", "valid"):
        jsonl(tmp_path / f"{name}.jsonl", long)
    _, err = finetune("classification", "--data", "train.jsonl", "--valid", "valid.jsonl")
    [note] = [line for line in err if line.startswith("valid: ")]
    assert note.startswith("valid: 3 of 20 texts")
    assert sum("cut" in one for one in rows("out/predictions.valid.jsonl")) == 3


def table(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def wnli(folder: Path, tests: int) -> None:
    """Files of WNLI with so many test items; its server wants a label for each of 146."""
    for name in ("train", "dev"):
        rows = (f"{i}\tw{i} w1\tw{i % 3}\t{i % 2}" for i in range(12))
        table(folder / f"{name}.tsv", "index\tsentence1\tsentence2\tlabel", *rows)
    rows = (f"{i}\tw{i % 7}\tw{i % 3}" for i in range(tests))
    table(folder / "test.tsv", "index\tsentence1\tsentence2", *rows)


def test_files_for_a_server_are_written_where_its_whole_test_set_was_predicted(finetune, tmp_path):
    wnli(tmp_path / "whole", 146)
    _, err = finetune("wnli", "--data", "whole")
    path = Path("out/submission/WNLI.tsv")
    assert f"for the task's server: {path}" in err and read_results(["out"])[0]["scores"].keys() == {"valid"}
    labels = [one["label"] for one in rows("out/predictions.test.jsonl")]
    submitted = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    assert submitted == [["index", "prediction"], *([str(i), label] for i, label in enumerate(labels))]
    assert err[-1] == "  unified predict wnli out/data/valid.jsonl --model out"
    wnli(tmp_path / "part", 145)
    _, err = finetune("wnli", "--data", "part", "--output", "other")
    assert not Path("other/submission").exists() and [line for line in err if "server" in line] == []
    assert (
        "no submission: other/predictions.test.jsonl: 1 of the 146 rows of WNLI have no prediction, the first is row "
        "145" in err
    )


def test_files_for_a_server_stand_before_the_results_that_end_a_run(finetune, tmp_path, monkeypatch):
    """A run whose results are written is not repeated, so a kill between the two would leave it without the files."""
    wnli(tmp_path / "whole", 146)

    def killed(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("unified.reports.results.write_result", killed)
    with pytest.raises(KeyboardInterrupt):
        finetune("wnli", "--data", "whole")
    assert Path("out/submission/WNLI.tsv").is_file() and not Path("out/results.json").exists()


def test_published_figures_stand_beside_the_scores(finetune, tmp_path):
    for name in ("train", "dev"):
        table(tmp_path / "sst2" / f"{name}.tsv", "sentence\tlabel", *(f"w{i} w1\t{i % 2}" for i in range(12)))
    finetune("sst2", "--data", "sst2")
    published = json.loads(json.dumps(task_named("sst2").published))
    assert published["valid"] and read_results(["out"])[0]["published"] == published


def test_several_tasks_have_a_folder_of_results_each(finetune, tmp_path):
    for name in ("wnli", "own"):
        wnli(tmp_path / "data" / name, 3)
    out, err = finetune("wnli, own=wnli", "--data", "data")
    results = read_results(["out"])
    scores = json.loads(out)
    assert scores.keys() == {"own", "wnli"}
    for result in results:
        assert result["together"] == ["wnli", "own"] and result["scores"] == scores[result["task"]]
        assert Path("out", result["task"], "predictions.valid.jsonl").is_file()
        assert result["data"].keys() == {"train.jsonl", "valid.jsonl", "test.jsonl"}
    assert err[-3:] == [
        "written to out/own/results.json and the other tasks' folders; `unified results out` makes a table of it",
        "the model is in out; predict with it:",
        f"  unified predict '{task_named('wnli').head}' out/data/own/valid.jsonl --model out --head own",
    ]


def test_the_threshold_of_no_answer_is_printed_and_kept_in_the_results(finetune, tmp_path):
    questions = [
        {"id": f"é{i}", "context": f"w{i} w{i + 1} w2", "question": "w3"}
        | ({"answers": [f"w{i}"]} if i % 2 else {"impossible": True})
        for i in range(8)
    ]
    for name in ("train", "valid", "test"):
        jsonl(tmp_path / f"{name}.jsonl", questions)
    words = ("span", "--data", "train.jsonl", "--valid", "valid.jsonl", "--test", "test.jsonl", "--max-length", "32")
    _, err = finetune(*words, "--threshold", "best")
    [result] = read_results(["out"])
    found = result["null_threshold"]
    assert found["found_on"] == "valid" and [line for line in err if "no answer where" in line] == [
        f"span: no answer where its probability exceeds {found['value']:.4g}, which gives the highest F1 of valid; "
        "--threshold NUMBER sets it"
    ]
    scores = result["scores"]["valid"]
    assert f"questions that have an answer: F1 {scores['HasAns_f1']:.2f}; a model that never answers has F1" in str(err)
    official = json.loads(Path("out/valid.predictions.json").read_text(encoding="utf-8"))
    assert official == {one["id"]: one["answer"] for one in rows("out/predictions.valid.jsonl")}
    assert Path("out/valid.predictions.json").read_text(encoding="utf-8").endswith('"\n}\n')
    assert Path("out/valid.predictions.json").read_text(encoding="utf-8").startswith('{\n "é0": ')
    _, err = finetune(*words, "--output", "fixed", "--threshold", "0.25")
    assert read_results(["fixed"])[0]["null_threshold"] == {"value": 0.25, "found_on": None}
    assert not [line for line in err if "no answer where" in line]
    task = load("fixed").predictor().task
    assert (task.threshold, task.threshold_found_on, task.chooses_threshold) == (0.25, None, False)


def test_predictions_for_an_official_scorer_are_written_in_its_format(finetune, tmp_path):
    documents = [
        DocumentItem(f"(é); part 00{i}", (("w1", "w2", "w1"), ("w3",)), chains=(((0, 0), (2, 2)),)) for i in range(3)
    ]
    for name in ("train", "valid"):
        write_items(tmp_path / f"{name}.jsonl", documents)
    head = "coreference(hidden=8, features=4, dropout=0.0, max_width=2, max_windows=2)"
    words = ("--data", "train.jsonl", "--valid", "valid.jsonl", "--head", head, "--batch-size", "1")
    _, err = finetune("coreference", *words)
    written = Path("out/valid.response.conll").read_text(encoding="utf-8")
    assert written.startswith("#begin document (é); part 000\n") and written.count("#end document") == 3
    assert any(line.startswith("coreference: average_f1 ") for line in err)


def test_no_next_command_is_printed_where_there_is_none(finetune, tmp_path, monkeypatch):
    monkeypatch.setattr("unified.cli.commands.finetuning.results.next_command", lambda *_: None)
    jsonl(tmp_path / "train.jsonl", CLASSES)
    _, err = finetune("classification", "--data", "train.jsonl")
    assert err[-1] == "written to out/results.json; `unified results out` makes a table of it"


def test_a_model_that_cannot_be_written_for_transformers_is_scored_all_the_same(finetune, tmp_path, monkeypatch):
    def refuses(folder, results):
        assert (folder, results) == (Path("out"), [Path("out/results.json")])
        raise UnifiedError("it has no equal there")

    monkeypatch.setattr("unified.tasks.publishing.publish", refuses)
    jsonl(tmp_path / "train.jsonl", CLASSES)
    _, err = finetune("classification", "--data", "train.jsonl")
    assert "not written for transformers: it has no equal there" in err and Path("out/results.json").is_file()
    assert not [line for line in err if "can be opened" in line]


def test_a_generation_model_without_capitals_is_noted(finetune, tmp_path):
    language_model(tmp_path / "writer", token_types=6, writes="cloze", initializer_range=0.3)
    pairs = [{"source": f"w{i} w1", "target": f"W{i} w{i}"} for i in range(6)]
    for name in ("train", "valid"):
        jsonl(tmp_path / f"{name}.jsonl", pairs)
    words = ("texts", "--data", "train.jsonl", "--valid", "valid.jsonl", "--init", "writer", "--max-target", "4")
    _, err = finetune(*words)
    note = "valid: no prediction has a capital letter, and all references of 6 of 6 items have some: bleu and exact_"
    assert [line for line in err if line.startswith(note)]
    [result] = read_results(["out"])
    assert result["measure"] in result["scores"]["valid"] and result["data"].keys() == {"train.jsonl", "valid.jsonl"}
    measure = result["measure"]
    low, high = result["intervals"]["valid"][measure]
    score = f"{result['scores']['valid'][measure]:.2f} [{low:.2f}, {high:.2f}]"
    assert f"texts: {measure} {score} on 6 items of valid" in err
    assert err[-1] == "  unified predict texts valid.jsonl --model out"
