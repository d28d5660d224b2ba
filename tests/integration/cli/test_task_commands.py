"""`unified finetune`, `unified predict` and `unified results`, and the hub's answers: one task from data to table."""

import json
import shlex
import shutil
import subprocess

import numpy as np
import pytest
import torch

from tests.support import fairseq_runs as fairseq
from tests.support.prepared_python import interpreter
from tests.support.standard_input import holding
from tests.support.task_folders import WORDS, language_model
from unified import TaskModel, UnifiedLM, load
from unified.checkpoints.trained import find_checkpoint, find_data
from unified.cli import main
from unified.errors import UnifiedError
from unified.files.claims import Claim, claimed_file
from unified.tasks.catalogue import task_named, with_changes
from unified.tasks.finetuning import Start
from unified.tasks.heads.classification import Classification
from unified.tasks.heads.items import TextItem, write_items
from unified.tasks.jobs import job_of
from unified.tasks.metrics import score_classification
from unified.tasks.settings import Training

LABELS = {True: "yes", False: "no"}


def items(count: int, rng: np.random.Generator) -> list[TextItem]:
    """Does w0 occur? In half of them it does."""
    found = []
    for i in range(count):
        words = rng.choice(WORDS[1:], rng.integers(2, 12)).tolist()
        if i % 2:
            words[rng.integers(len(words))] = "w0"
        found.append(TextItem(f"item {i}", " ".join(words), None, LABELS["w0" in words]))
    return found


@pytest.fixture(scope="module")
def finetuned(tmp_path_factory):
    """``model``: the start, ``data``: its items, ``run``: what `unified finetune` made; and what it printed."""
    folder, rng = tmp_path_factory.mktemp("finetuned"), np.random.default_rng(0)
    (folder / "data").mkdir()
    for split, count in (("train", 900), ("valid", 101), ("test", 40)):
        write_items(folder / "data" / f"{split}.jsonl", items(count, rng))
    language_model(folder / "model", initializer_range=0.15)
    result = finetune(*finetuning(folder, folder / "run"))
    assert result.returncode == 0, result.stderr[-3000:]
    return folder, result


def finetuning(folder, output) -> tuple:
    return (
        "finetune", "classification", "--data", folder / "data", "--init", folder / "model", "--output", output,
        "--head", "classification(dropout=0.0)", "--epochs", 3, "--lr", 4e-3, "--max-length", 16,
        "--seed", 2, "--fairseq", "--log-format json",
    )  # fmt: skip


def finetune(*arguments) -> subprocess.CompletedProcess:
    words = [interpreter(), "-m", "unified.cli", *map(str, arguments)]
    return subprocess.run(words, cwd=fairseq.ROOT, env=fairseq.environment(), capture_output=True, text=True)


def said(capsys, *arguments) -> list[str]:
    """Lines that a command prints."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out.splitlines()


def refused(capsys, *arguments) -> str:
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


def assert_same_predictions(found: list[dict], expected: list[dict]) -> None:
    """Probabilities move in their last places with the company in which an item is read."""
    assert [(one["id"], one["label"]) for one in found] == [(one["id"], one["label"]) for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=2e-5)


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_task_is_learnt_scored_and_written_down(finetuned):
    """The result's scores are those of the written predictions by the metric, and those that validation logged."""
    folder, result = finetuned
    content = json.loads((folder / "run" / "results.json").read_text())
    assert content["task"] == "classification" and content["seed"] == 2 and content["checkpoint"] == "last"
    assert set(content["scores"]) == {"valid", "test"} and set(content["data"]) == {
        "train.jsonl", "valid.jsonl", "test.jsonl"
    }  # fmt: skip
    assert fairseq.printed_command(result.stderr) == content["command"]
    for split, scores in content["scores"].items():
        gold = [item["label"] for item in lines(folder / "data" / f"{split}.jsonl")]
        predicted = lines(folder / "run" / f"predictions.{split}.jsonl")
        assert [one["id"] for one in predicted] == [item["id"] for item in lines(folder / "data" / f"{split}.jsonl")]
        signature = "rules:glue|macro:all-labels|positive:none"
        expected = score_classification(gold, [one["label"] for one in predicted])
        assert scores == expected | {"signature": signature}
    assert content["scores"]["valid"]["accuracy"] >= 95
    logged = fairseq.logged((folder / "run" / "train.log").read_text(encoding="utf-8"), "valid")[-1]
    assert float(logged["valid_accuracy"]) == round(content["scores"]["valid"]["accuracy"], 2)
    assert float(logged["valid_matthews"]) == pytest.approx(content["scores"]["valid"]["matthews"], abs=0.0051)


def test_a_finished_folder_is_not_trained_anew(finetuned, tmp_path, capsys):
    """Equal settings change nothing; others are refused, and the results say what was trained."""
    folder, _ = finetuned
    before = {path: path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()}
    words = (*finetuning(folder, folder / "run"), "--micro-batch", 3)
    assert main(list(map(str, words))) == 0
    assert "run: trained with these settings before; nothing is changed" in capsys.readouterr().err
    assert main([*map(str, words), "--json", "-q"]) == 0
    results = [json.loads((folder / "run" / "results.json").read_text())]
    out, err = capsys.readouterr()
    assert json.loads(out) == {"output": str(folder / "run"), "results": results} and not err
    assert not {"json", "quiet", "verbose"} & results[0]["settings"].keys()
    (tmp_path / "data").mkdir()
    for split in ("train", "valid", "test"):
        shutil.copy(folder / "data" / f"{split}.jsonl", tmp_path / "data")
    (tmp_path / "data" / "valid.jsonl").write_text((folder / "data" / "test.jsonl").read_text())
    language_model(tmp_path / "model", initializer_range=0.3)
    for options, difference in (
        (("--seed", 3), "--seed 2, now 3"),
        (("--lr", 1e-3), "--lr 0.004, now 0.001"),
        (("--data", tmp_path / "data"), "other contents of --data (valid.jsonl)"),
        (("--init", tmp_path / "model"), "other contents of --init (checkpoint_last.pt)"),
        (("--run", "another"), "--run ours, now another"),
        (("--fairseq", "--clip-norm 2"), '--fairseq {}, now {"--clip-norm": "2"}'),
        (
            ("--head", "classification(dropout=0.1)"),
            "--head classification(dropout=0.0), now classification(dropout=0.1)",
        ),
    ):
        said = refused(capsys, *finetuning(folder, folder / "run"), *options)
        assert f"run: was begun with {difference}; give another --output, or remove the folder" in said
    assert {path: path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()} == before


def test_an_unfinished_folder_goes_on_with_its_own_settings_alone(finetuned, tmp_path, capsys, monkeypatch):
    folder, ran, leaves = finetuned[0], [], []

    def broken(module, words, read):
        ran.append(module)
        for name in leaves:
            shutil.copy(folder / "model" / name, tmp_path / "run" / name)
        return 1

    monkeypatch.setattr("unified.cli.fairseq_train.read_module", broken)
    words = finetuning(folder, tmp_path / "run")
    assert "fairseq-train has failed" in refused(capsys, *words)
    leaves.append("checkpoint_last.pt")
    assert "fairseq-train has failed" in refused(capsys, *words, "--seed", 4)  # no checkpoint was there
    assert "was begun with --seed 4, now 2" in refused(capsys, *words)
    assert len(ran) == 2
    assert "fairseq-train has failed" in refused(capsys, *words, "--seed", 4) and len(ran) == 3


def test_a_refused_fine_tuning_leaves_nothing(finetuned, tmp_path, capsys):
    words = finetuning(finetuned[0], tmp_path / "made" / "run")
    assert "no such file" in refused(capsys, *words, "--data", tmp_path / "nothing")
    assert not list(tmp_path.iterdir())


def test_the_printed_command_says_what_was_trained(finetuned):
    """900 items in batches of 32, 3 epochs: 87 updates; the shape and the start are the model's."""
    folder, result = finetuned
    words = fairseq.printed_command(result.stderr)
    value = dict(zip(words, words[1:], strict=False))
    assert words[0] == "fairseq-train" and value["--total-num-update"] == value["--max-update"] == "87"
    assert value["--warmup-updates"] == "9" and value["--width"] == "32" and value["--lr"] == "0.004"
    assert value["--finetune-from-model"] == str(folder / "model" / "checkpoint_last.pt")
    assert words[-2:] == ["--log-format", "json"]


def test_prediction_streams_and_goes_on_where_it_stopped(finetuned, monkeypatch, tmp_path, capsys):
    folder, _ = finetuned
    expected = lines(folder / "run" / "predictions.test.jsonl")
    arguments = ["predict", "classification", "--model", folder / "run"]
    text = (folder / "data" / "test.jsonl").read_text(encoding="utf-8")
    output = tmp_path / "out.jsonl"
    broken_run(monkeypatch, *arguments, folder / "data" / "test.jsonl", "--output", output)
    given = [json.dumps(one) for one in expected]
    (tmp_path / "out.jsonl.partial").write_text("\n".join(given[:7]) + "\n" + given[7][:9], encoding="utf-8")
    assert said(capsys, *arguments, folder / "data" / "test.jsonl", "--output", output, "--ahead", 6) == []
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert_same_predictions(lines(output), expected)
    monkeypatch.setattr("sys.stdin", holding(text))
    assert_same_predictions([json.loads(line) for line in said(capsys, *arguments, "-")], expected)
    one = said(capsys, *arguments, '{"text": "w3 w0 w4", "id": "mine"}')
    assert json.loads(one[0])["id"] == "mine" and json.loads(one[0])["label"] == "yes"


def broken_run(monkeypatch, *words) -> None:
    """A command that is interrupted when all is predicted, before its file gets its name."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("unified.cli.commands.predict.Path.replace", stop)
        assert main(list(map(str, words))) == 130


def test_predictions_of_another_run_are_not_taken_over(finetuned, monkeypatch, tmp_path, capsys):
    """Another model, other items or settings, no claim, junk, and more lines than items are refused."""
    folder, _ = finetuned
    items, output, partial = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    shutil.copy(folder / "data" / "test.jsonl", items)
    words = ["predict", "classification", items, "--model", folder / "run", "--output", output]
    partial.write_text("{}\n")
    assert "out.jsonl.partial: is there already, and no claim beside it says what" in refused(capsys, *words)
    assert partial.read_text() == "{}\n" and len(list(tmp_path.iterdir())) == 2
    partial.unlink()
    broken_run(monkeypatch, *words)
    left = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert [path.name for path in sorted(left)] == ["in.jsonl", "out.jsonl.partial", "out.jsonl.partial.claim"]
    shutil.copytree(folder / "run", tmp_path / "model")
    content = torch.load(tmp_path / "model" / "checkpoint_last.pt", weights_only=True)
    content["model"]["core.transformer.embeddings.tokens.weight"] += 1
    torch.save(content, tmp_path / "model" / "checkpoint_last.pt")
    shutil.copy(folder / "data" / "valid.jsonl", tmp_path / "others.jsonl")
    for other, difference in (
        ([*words[:4], tmp_path / "model", *words[5:]], "other contents of --model (checkpoint_last.pt)"),
        ([*words[:2], tmp_path / "others.jsonl", *words[3:]], "other contents of INPUT (in.jsonl)"),
        ([*words, "--max-tokens", 99], "no --max-tokens, now 99"),
        ([*words[:2], "-", *words[3:]], "other contents of INPUT (in.jsonl)"),
    ):
        assert f"out.jsonl.partial: was begun with {difference}; remove it, or give" in refused(capsys, *other)
    assert {path: path.read_bytes() for path in left} == left and not output.exists()
    given = partial.read_text().splitlines(keepends=True)
    for content, problem in (
        ([given[0], "junk\n"], "line 2: not the prediction of item 'item 1'"),
        ([given[1]], "line 1: not the prediction of item 'item 0'"),
        ([*given, given[0]], "line 41: INPUT has fewer items"),
    ):
        partial.write_text("".join(content))
        assert problem in refused(capsys, *words)
    partial.write_text("".join(given[:3]))
    assert main(list(map(str, words))) == 0 and len(output.read_text().splitlines()) == len(given)
    assert not partial.exists() and not partial.with_name("out.jsonl.partial.claim").exists()


def test_an_unfinished_run_of_a_stream_is_not_gone_on_with(finetuned, monkeypatch, tmp_path, capsys):
    """Nobody can say whether another stream holds the same."""
    words = ["predict", "classification", "-", "--model", finetuned[0] / "run", "--output", tmp_path / "out"]
    monkeypatch.setattr("sys.stdin", holding('{"text": "w1"}\n'))
    broken_run(monkeypatch, *words)
    monkeypatch.setattr("sys.stdin", holding('{"text": "w2"}\n'))
    assert "was begun with other contents of INPUT (standard input)" in refused(capsys, *words)


def test_two_predictions_into_one_file_are_refused(finetuned, tmp_path, capsys):
    words = ["predict", "classification", '{"text": "w1"}', "--model", finetuned[0] / "run", "--output", tmp_path / "a"]
    with claimed_file(tmp_path / "a.partial", Claim({}), ""):
        assert "a.partial: a command is at work on it" in refused(capsys, *words)
    assert not list(tmp_path.iterdir())


def test_a_text_that_is_not_read_to_its_end_says_so(finetuned, capsys):
    """Sequences have 16 tokens, of which CLS and SEP are two."""
    folder, _ = finetuned
    long, short = {"text": "w1 " * 30}, {"text": "w1 " * 14}
    predictor = load(folder / "run")
    assert ["cut" in one for one in predictor.classify([long["text"], short["text"]])] == [True, False]
    printed = said(capsys, "predict", "classification", "--model", folder / "run", json.dumps(long))
    assert json.loads(printed[0])["cut"] == 30 - 14


def test_a_run_answers_with_the_checkpoint_that_was_scored(finetuned, tmp_path):
    """Wherever its folder is; what is best on validation may be another one."""
    folder, _ = finetuned
    moved = tmp_path / "moved"
    shutil.copytree(folder / "run", moved)
    assert find_checkpoint(moved) == moved / "checkpoint_last.pt"
    content = json.loads((moved / "results.json").read_text())
    (moved / "results.json").write_text(json.dumps(content | {"checkpoint": "best"}))
    assert find_checkpoint(moved) == moved / "checkpoint_best.pt"
    (moved / "checkpoint_best.pt").unlink()
    assert find_checkpoint(moved) == moved / "checkpoint_last.pt"
    (moved / "results.json").unlink()
    shutil.copyfile(moved / "checkpoint_last.pt", moved / "checkpoint_best.pt")
    assert find_checkpoint(moved) == moved / "checkpoint_best.pt"
    gone = {"cfg": {"task": {"data": str(tmp_path / "gone")}}}
    assert find_data(moved / "checkpoint_last.pt", gone) == moved / "data"
    with pytest.raises(UnifiedError, match="there is no dictionary now in"):
        find_data(tmp_path / "checkpoint_last.pt", gone)


def test_what_cannot_be_predicted_is_refused(finetuned, tmp_path, capsys):
    folder, _ = finetuned
    model, item = ("--model", folder / "run"), '{"text": "w1"}'
    assert "was fine-tuned for classification, not for tagging" in refused(capsys, "predict", "tagging", *model, item)
    nearest = "task 'classificaton': no such task (did you mean 'classification'?)"
    assert nearest in refused(capsys, "predict", "classificaton", *model, item)
    assert f"{tmp_path / 'none'}: no such file" in refused(
        capsys, "predict", "classification", *model, tmp_path / "none"
    )
    assert f"{tmp_path}: a folder, not a file" in refused(capsys, "predict", "classification", *model, tmp_path)
    language_model = ("--model", folder / "model")
    assert "is a language model" in refused(capsys, "predict", "classification", *language_model, item)
    # Nobody names the fields of a single item by options.
    said = refused(capsys, "predict", "classification", *model, '{"t": 1}')
    assert said.endswith("error: the item: no field 'text'; its fields: 't'\n")


def test_the_handle_answers_what_it_was_fine_tuned_for(finetuned):
    folder, _ = finetuned
    handle = load(folder / "run")
    yes, no = handle.classify(["w5 w0 w7", "w5 w6"])
    assert (yes["label"], no["label"]) == ("yes", "no") and yes["probabilities"]["yes"] > 0.9
    for problem, ask in (
        ("was fine-tuned for classification, not for tagging", lambda: handle.tag("w1 w2")),
        ("put it in a list", lambda: handle.classify("w1")),
        ("1 text but 2 second texts", lambda: handle.classify(["w1"], ["w2", "w3"])),
        ("predicts no tokens", lambda: UnifiedLM.from_pretrained(folder / "run")),
        ("is a language model", lambda: TaskModel.from_pretrained(folder / "model")),
    ):
        with pytest.raises(UnifiedError, match=problem):
            ask()


def test_two_processes_score_a_split_as_one_does(finetuned, tmp_path):
    """101 items in batches of 4: the last batches are fewer than the processes; gradients and scores are equal."""
    folder, result = finetuned
    words = fairseq.printed_command(result.stderr)[1:]
    shared = [*words, "--max-update", 6, "--total-num-update", 6, "--validate-interval-updates", 3,
              "--batch-size-valid", 4, "--log-interval", 1]  # fmt: skip
    one = fairseq.run("train", *shared, "--update-freq", 2, "--save-dir", tmp_path / "one")
    two = fairseq.in_processes(2, *shared, "--save-dir", tmp_path / "two")
    for tag, names in (
        ("train_inner", ("loss", "gnorm")),
        ("valid", ("valid_loss", "valid_accuracy", "valid_macro_f1")),
    ):
        expected, got = (fairseq.logged(each.stdout + each.stderr, tag) for each in (one, two))
        assert len(expected) == len(got) >= 2
        for a, b in zip(expected, got, strict=True):
            for name in names:
                assert float(b[name]) == pytest.approx(float(a[name]), rel=2e-3), (tag, name)


def test_a_dry_run_trains_nothing_and_repeats(finetuned, tmp_path):
    folder, _ = finetuned
    arguments = ("finetune", "classification", "--data", folder / "data", "--init", folder / "model", "--output",
                 tmp_path / "run", "--dry-run")  # fmt: skip
    first, second = finetune(*arguments), finetune(*arguments)
    assert first.stdout == second.stdout and first.stdout.startswith("fairseq-train ")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["data"]
    (tmp_path / "other").mkdir()
    write_items(tmp_path / "other" / "train.jsonl", [TextItem("1", "w1", None, "yes")])
    missing = finetune(*arguments[:2], "--data", tmp_path / "other", *arguments[4:])
    assert missing.returncode == 2 and "holds no valid split of classification" in missing.stderr


def value_of(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_a_head_with_a_rate_of_its_own_reaches_the_optimizer(finetuned, tmp_path):
    """Published, changed, and where there is no such rate, refused before anything is read."""
    folder, _ = finetuned
    shared = ("--init", folder / "model", "--output", tmp_path / "run", "--dry-run")
    rates = ("--head-lr", "2e-3", "--layer-decay", "0.75")
    made = finetune("finetune", "classification", "--data", folder / "data", *shared, *rates)
    words = shlex.split(made.stdout)
    assert value_of(words, "--layer-decay") == "0.75"
    assert float(value_of(words, "--head-lr")) == 2e-3 and value_of(words, "--optimizer") == "unified_adam"
    plain = finetune("finetune", "classification", "--data", folder / "data", *shared).stdout
    assert "--head-lr" not in plain and "--layer-decay" not in plain and "--head-weight-decay" not in plain
    assert "--fp16-no-flatten-grads" in plain  # so that --fp16 tells apart what does not decay
    unilm = task_named("rte").as_in("unilm")
    adamax = with_changes(unilm.training, head_lr=1e-3, head_weight_decay=0.0)
    job = job_of(unilm, adamax, Start.of(folder / "model"), tmp_path)
    words = job.command({"train": items(8, np.random.default_rng(1))}, 1, 0)
    for option, value in (("--optimizer", "unified_adamax"), ("--head-lr", "0.001"), ("--head-weight-decay", "0.0")):
        assert value_of(words, option) == value
    changed = with_changes(task_named("conll2012").training, head_lr=1e-3)
    assert (changed.head_lr, task_named("conll2012").training.head_lr) == (1e-3, 2e-4 / 2)


def test_settings_that_make_no_sense_are_refused(finetuned, tmp_path, capsys):
    folder, _ = finetuned
    paths = ("--data", tmp_path / "none", "--init", folder / "model", "--output", tmp_path / "run")
    for options, says in (
        (["classification", "--epochs", 0], "--epochs must be at least 1, got 0"),
        (["classification", "--batch-size", -1], "--batch-size must be at least 1, got -1"),
        (["classification", "--micro-batch", 0], "--micro-batch must be at least 1, got 0"),
        (["classification", "--lr", "nan"], "--lr must be a number, got nan"),
        (["classification", "--head-lr", 0], "--head-lr must be above 0, got 0.0"),
        (["sst2", "--layer-decay", 1.5], "--layer-decay must be above 0 and at most 1, got 1.5"),
        (["classification", "--max-length", 513], "--max-length 513: the model has 512 positions"),
        (["sst2", "--head", "tagging"], "--head tagging: sst2 is learnt by classification, not by tagging"),
        (["texts", "--head-lr", "1e-3"], "--head-lr 0.001: texts is a generation task, which needs no head"),
    ):
        assert says in refused(capsys, "finetune", *options, *paths)


@pytest.mark.parametrize(
    ("cards", "most", "expected"),
    [(0, None, (32, 1, 29)), (1, None, (32, 1, 29)), (8, None, (4, 1, 29)), (8, 2, (2, 2, 29)), (0, 5, (4, 8, 29)),
     (0, 64, (32, 1, 29)), (5, None, (7, 1, 26))],
)  # fmt: skip
def test_an_update_reads_as_many_sequences_on_any_machine(finetuned, tmp_path, cards, most, expected):
    """900 items are read in batches of 32, or of the next number that the cards and micro-batches divide."""
    folder, _ = finetuned
    task, items = task_named("classification"), Classification.read(folder / "data" / "train.jsonl")
    job = job_of(task, Training(epochs=1), Start.of(folder / "model"), tmp_path)
    words = job.command({"train": items}, 1, cards, most)
    found = tuple(int(value_of(words, name)) for name in ("--batch-size", "--update-freq", "--max-update"))
    assert found == expected and ("--cpu" in words) == (cards == 0)
    per_update = found[0] * found[1] * max(cards, 1)
    assert 32 <= per_update <= 35 and (found[2] - 1) * per_update < 900 <= found[2] * per_update
