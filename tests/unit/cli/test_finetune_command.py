"""`unified finetune` up to the command of fairseq-train: what each option changes in it, and what is refused before."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands import exit_status
from tests.support.corpora import jsonl
from tests.support.task_folders import language_model
from unified.cli import main
from unified.reports.results import read_results, write_result
from unified.tasks.heads.named_entities import NOTHING_TO_MARK
from unified.training.fairseq_options import by_name

ROWS = [{"text": f"w{i} w{i + 1}", "label": ("no", "yes")[i % 2]} for i in range(20)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """``m``: a language model, ``encoder``: one without token head, items of two tasks, and official files of two."""
    folder = tmp_path_factory.mktemp("finetune")
    language_model(folder / "m")
    language_model(folder / "encoder", token_head="none")
    jsonl(folder / "train.jsonl", ROWS)
    jsonl(folder / "pairs.jsonl", [{"source": f"w{i} w1", "target": f"w{i}"} for i in range(20)])
    for task in ("rte", "wnli"):
        (folder / "glue" / task).mkdir(parents=True)
        table = ["index\tsentence1\tsentence2\tlabel"]
        table += [f"{i}\tw{i}\tw1\t{('entailment', 'not_entailment')[i % 2]}" for i in range(8)]
        if task == "wnli":
            table = [line.replace("not_entailment", "0").replace("entailment", "1") for line in table]
        for name in ("train.tsv", "dev.tsv"):
            (folder / "glue" / task / name).write_text("\n".join(table) + "\n", encoding="utf-8")
    return folder


def with_defaults(words: tuple[str, ...]) -> list[str]:
    """The words of a command, with data and a model where they name none."""
    given = [*words]
    for option, value in (("--data", "train.jsonl"), ("--init", "m")):
        given += [] if option in words else [option, value]
    return given


@pytest.fixture
def dry_run(shared, tmp_path, monkeypatch, capsys):
    """Runs `unified finetune --dry-run` with further words; returns the options that it prints, and standard error."""
    monkeypatch.chdir(shared)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)  # whatever machine it is

    def run(*words: str) -> tuple[dict[str, str | bool], str]:
        assert exit_status("finetune", *with_defaults(words), "--output", str(tmp_path / "out"), "--dry-run") == 0
        printed = capsys.readouterr()
        line = shlex.split(printed.out)
        assert line[:2] == ["fairseq-train", str(tmp_path / "out" / "data")] and printed.out.count("\n") == 1
        return by_name(line), printed.err

    return run


@pytest.fixture
def refusal(shared, tmp_path, monkeypatch, capsys):
    """Runs a command that cannot work; returns its message, and checks that it writes nothing."""
    monkeypatch.chdir(shared)

    def run(*words: str) -> str:
        assert main(["finetune", *with_defaults(words), "--output", str(tmp_path / "out")]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and not (tmp_path / "out").exists()
        return printed.err.splitlines()[-1].removeprefix("unified finetune: error: ")

    return run


def test_a_dry_run_prints_a_command_and_leaves_data_alone(dry_run, tmp_path):
    options, said = dry_run("classification")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["data"]
    assert said.splitlines() == [
        "train.jsonl: a share of 0.1 of its rows is kept for validation; --valid-share or --valid FILE changes that",
        "items: train 18, valid 2",
        "2 labels in train: 'no' 9, 'yes' 9",
        "3 updates in all are few; more --epochs, a smaller --batch-size or a higher --lr help a model learn more",
    ]
    expected = {
        "--head": "classification", "--batch-size": "32", "--update-freq": "1", "--lr": "3e-05", "--max-update": "3",
        "--tokens-per-sample": "128", "--seed": "1", "--finetune-from-model": str(Path("m/checkpoint_last.pt")),
    }  # fmt: skip
    assert {name: options.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("words", "cut"),
    [
        ("classification --max-length 3", ["train: 18 of 18 items have more than 3 tokens; they are cut",
                                           "valid: 2 of 2 items have more than 3 tokens; they are cut"]),
        ("classification --max-length 60", []),
        ("texts --data pairs.jsonl --max-length 48 --max-source 1 --max-target 1",
         ["train: 18 of 18 sources are cut to their first 1 token",
          "valid: 2 of 2 sources are cut to their first 1 token"]),
        ("texts --data pairs.jsonl --max-length 48 --max-source 20 --max-target 10", []),
    ],
)  # fmt: skip
def test_a_dry_run_says_how_many_texts_will_be_cut(dry_run, words, cut):
    _, said = dry_run(*words.split())
    assert [line for line in said.splitlines() if "cut" in line] == cut


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("--epochs 5", {"--max-update": "5"}),
        ("--batch-size 9 --epochs 1", {"--batch-size": "9", "--max-update": "2"}),
        ("--batch-size 4 --micro-batch 2", {"--batch-size": "2", "--update-freq": "2", "--max-update": "15"}),
        ("--micro-batch 1", {"--batch-size": "1", "--update-freq": "32"}),
        ("--lr 0.25", {"--lr": "0.25"}),
        ("--head-lr 0.5", {"--head-lr": "0.5"}),
        ("--layer-decay 0.75", {"--layer-decay": "0.75"}),
        ("--mask left_to_right", {"--mask": "left_to_right"}),
        ("--lstm 2", {"--lstm": "2"}),
        ("--max-length 16", {"--tokens-per-sample": "16"}),
        ("--head classification(dropout=0.5)", {"--head": "classification(dropout=0.5)"}),
        ("--auxiliary-masking 0.5", {"--auxiliary-masking": "0.5"}),
        ("--auxiliary-masking 0", {}),
        ("--seed 7", {"--seed": "7"}),
        ("--select best --validations 3", {"--save-interval-updates": "1", "--keep-interval-updates": "1"}),
        ("--select last --validations 1", {}),
        ("--fairseq=--bf16", {"--bf16": True}),
        ("--device cpu", {}),
        ("--run other", {}),
    ],
)
def test_an_option_changes_its_own_words_of_the_command_alone(dry_run, words, changed):
    plain, _ = dry_run("classification", "--max-length", "32")
    found, _ = dry_run("classification", "--max-length", "32", *words.split())
    follow = {"--total-num-update", "--warmup-updates"}
    assert {name: value for name, value in found.items() if plain.get(name) != value and name not in follow} == changed
    assert plain.keys() <= found.keys() and found["--total-num-update"] == found["--max-update"]


def test_losses_are_reported_to_a_service(dry_run, tmp_path, monkeypatch):
    known, find = importlib.util.find_spec("json"), importlib.util.find_spec
    monkeypatch.setattr("unified.cli.fairseq_train.importlib.util.find_spec", lambda name: find(name) or known)
    assert dry_run("classification", "--report-to", "wandb")[0]["--wandb-project"] == "unified"
    options, _ = dry_run("classification", "--report-to", "tensorboard")
    assert options["--tensorboard-logdir"] == str(tmp_path / "out" / "tensorboard")


def test_the_batch_of_an_update_is_divided_among_the_gpus_unless_the_cpu_is_asked_for(dry_run, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    shared, _ = dry_run("classification", "--max-length", "16")
    alone, _ = dry_run("classification", "--max-length", "16", "--device", "cpu")
    assert (shared["--batch-size"], alone["--batch-size"]) == ("8", "32")
    assert "--cpu" in alone and "--cpu" not in shared


def test_fewer_than_a_hundred_updates_are_noted(dry_run):
    for epochs, few in (("99", True), ("100", False)):
        _, said = dry_run("classification", "--epochs", epochs)
        assert (f"{epochs} updates in all are few; more --epochs" in said) is few
    assert "1 update in all is few; more --epochs" in dry_run("classification", "--epochs", "1")[1]


def test_a_system_brings_its_own_settings(dry_run):
    plain, _ = dry_run("rte", "--data", "glue/rte")
    other, _ = dry_run("rte", "--data", "glue/rte", "--system", "spanbert")
    assert (plain["--lr"], plain["--max-update"]) == ("2e-05", "3")
    assert (other["--lr"], other["--max-update"], other["--best-checkpoint-metric"]) == ("2e-05", "10", "accuracy")


def test_several_tasks_have_a_head_each(dry_run):
    options, said = dry_run("rte, wnli:2", "--data", "glue")
    assert str(options["--head"]).startswith("rte=classification(") and str(options["--head"]).endswith(":2")
    assert "items: rte/train 8, rte/valid 8, wnli/train 8, wnli/valid 8" in said


def test_a_model_without_a_token_head_learns_to_write_by_the_settings_for_encoders(dry_run):
    writing = ("texts", "--data", "pairs.jsonl", "--max-length", "48", "--max-source", "20", "--max-target", "10")
    with_head, said = dry_run(*writing)
    assert "has no token head" not in said
    assert (with_head["--max-source"], with_head["--max-target"]) == ("20", "10")
    encoder, said = dry_run(*writing, "--init", "encoder")
    assert (
        "encoder has no token head, so it learns with the settings for encoders; --system published takes those of "
        "texts\n"
    ) in said
    assert encoder["--lr"] == "0.0003" != with_head["--lr"]
    published, said = dry_run(*writing, "--init", "encoder", "--system", "published")
    assert published["--lr"] == with_head["--lr"] and "has no token head" not in said


def test_a_model_without_a_token_head_gets_one_for_masked_words(dry_run):
    words = ("classification", "--data", "train.jsonl", "--max-length", "16")
    for init, masking, head in (("m", "0.5", "transform"), ("encoder", "0", "none"), ("encoder", "0.5", "transform")):
        options, said = dry_run(*words, "--init", init, "--auxiliary-masking", masking)
        new = init == "encoder" and masking != "0"
        assert ("encoder has no token head; --auxiliary-masking trains a new one\n" in said) == new
        assert ("has no token head" in said) == new
        assert options.get("--token-head", "transform") == head


def test_a_grid_and_seeds_are_several_runs(shared, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(shared)
    words = ["finetune", "classification", "--data", "train.jsonl", "--init", "m", "--dry-run", "--max-length", "16"]
    for more, found in (
        (["--grid", "epochs=1,2"], [("1", "1"), ("2", "1")]),
        (["--seeds", "3,4"], [("3", "3"), ("3", "4")]),
    ):
        assert main([*words, "--output", str(tmp_path / "several"), *more]) == 0
        lines = [by_name(shlex.split(line)) for line in capsys.readouterr().out.splitlines()]
        assert [(one["--max-update"], one["--seed"]) for one in lines] == found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("classification --micro-batch 0", "--micro-batch must be at least 1, got 0"),
        ("classification --epochs 0", "--epochs must be at least 1, got 0"),
        ("classification --max-source 5", "--max-source 5: classification generates no text; --max-length cuts its "
         "sequences"),
        ("classification --max-target 0", "--max-target 0: classification generates no text; --max-length cuts its "
         "sequences"),
        ("rte,wnli --head span --data glue", "--head span: there are several tasks; it is for one"),
        *((f"classification --max-length {length}", f"sequences of {tokens} are too short, those of this task "
           "need 3; raise --max-length of `unified finetune` (--tokens-per-sample of fairseq-train)")
          for length, tokens in ((1, "1 token"), (2, "2 tokens"))),
        ("rte --data glue/rte --max-length 4", "sequences of 4 tokens are too short, those of this task need 5; raise "
         "--max-length of `unified finetune` (--tokens-per-sample of fairseq-train)"),
        ("classification --threshold 0.5",
         "--threshold 0.5: classification answers every item, so there is no threshold to set"),
        ("classification --select best --fairseq=--no-save",
         "--fairseq --no-save: then there is no best checkpoint to score; leave it out"),
        ("classification --json --dry-run",
         "--json prints results, of which --dry-run makes none; leave one of them out"),
        ("classification --data nowhere", "--data nowhere: no such file or folder"),
        ("classification --spacy-code c", "--spacy-code c belongs to a pipeline; give --spacy PIPELINE too"),
        ("texts --mask left_to_right", "--mask left_to_right: texts is a generation task; the option is for "
         "understanding tasks"),
        ("texts --lstm 0", "--lstm 0: texts is a generation task; the option is for understanding tasks"),
        ("texts --head span", "--head span: texts is a generation task, which needs no head"),
        ("texts --head-lr 0.5", "--head-lr 0.5: texts is a generation task, which needs no head"),
        ("texts --auxiliary-masking 0.1",
         "--auxiliary-masking: texts is a generation task, which masks its texts anyway"),
        ("mrqa --grid lr=1,2", "--grid: mrqa stands for several tasks; run it for each of newsqa, triviaqa, searchqa, "
         "hotpotqa, naturalquestions"),
        ("mrqa --seeds 1,2", "--seeds: mrqa stands for several tasks; run it for each of newsqa, triviaqa, searchqa, "
         "hotpotqa, naturalquestions"),
        ("mrqa --data glue", "--data glue: no files of NewsQA, TriviaQA, SearchQA, HotpotQA, NaturalQuestions in "
         "it"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_before_anything_is_written(refusal, words, says):
    assert refusal(*words.split()) == says


def test_a_missing_package_or_card_is_named_before_data_are_read(refusal, monkeypatch):
    monkeypatch.setattr("unified.cli.fairseq_train.importlib.util.find_spec", lambda name: None)
    assert refusal("classification", "--data", "nowhere", "--report-to", "wandb").startswith(
        "--report-to wandb needs the library wandb; install it with: "
    )
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert refusal("classification", "--data", "nowhere", "--device", "cuda").startswith("--device cuda")


@pytest.fixture
def trained(shared, monkeypatch) -> list[list[str]]:
    """Command lines of the trainings, none of which is run; each leaves results."""
    lines: list[list[str]] = []

    def report(args, job, splits, words, *_):
        write_result(
            job.folder, task=job.task.name, run=args.run_name, seed=args.seed, command=words, scores={}, settings={},
            data={}, model={"name": "m", "sha256": None}, published={},
        )  # fmt: skip
        (job.folder / "model.safetensors").touch()

    monkeypatch.chdir(shared)
    monkeypatch.setattr("unified.cli.commands.finetune.run_command", lines.append)
    monkeypatch.setattr("unified.cli.commands.finetune.report", report)
    return lines


def test_a_finished_run_is_not_repeated_but_its_command_can_be_printed(trained, tmp_path, capsys):
    output = tmp_path / "out"
    words = ("finetune", *with_defaults(("classification",)), "--max-length", "16", "--output", str(output))
    said = f"{output}: trained with these settings before; nothing is changed"
    for more, finished in (([], False), ([], True), (["--dry-run"], False)):
        assert exit_status(*words, *more) == 0
        out, err = capsys.readouterr()
        assert ("\nfairseq-train " in err) == (not more and not finished) and (said in err.splitlines()) == finished
        assert out.startswith("fairseq-train ") if more else not out
    assert len(trained) == 1


def test_results_are_printed_as_json_and_nothing_else_on_standard_output(trained, tmp_path, capsys):
    output = tmp_path / "out"
    words = (*with_defaults(("classification",)), "--max-length", "16", "--output", str(output), "--json")
    assert exit_status("finetune", *words) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"output": str(output), "results": read_results([output])}
    assert [result["command"] for result in json.loads(out)["results"]] == trained
    assert [shlex.split(line) for line in err.splitlines() if line.startswith("fairseq-train ")] == trained


def test_a_label_that_no_training_item_has_is_refused(refusal, shared):
    """The message names the file and the line, whatever the id of the item is."""
    rows = [{"text": "w1", "label": "maybe", "id": "q"}, {"text": "w1", "label": "maybe"}]
    jsonl(shared / "odd.jsonl", [{"text": "w2", "label": "no"}, *rows])
    says = "odd.jsonl, 2 lines (2, 3): label 'maybe' is none of those that are learnt, 'no', 'yes'"
    assert refusal("classification", "--valid", "odd.jsonl") == says


def test_a_pipeline_is_for_a_model_that_reads_entities(refusal):
    assert refusal("classification", "--spacy", "some") == NOTHING_TO_MARK


def test_a_label_of_rows_that_validate_alone_is_refused_by_the_lines_of_their_file(refusal, shared):
    jsonl(shared / "own.jsonl", [*ROWS, *({"text": f"w1 w{i}", "label": f"l{i}"} for i in range(25))])
    says = refusal("classification", "--data", "own.jsonl", "--valid-share", "0.2")
    assert re.match(r"own\.jsonl, line (2[1-9]|[34]\d): label 'l\d+' is none of those that are learnt, 'l\d+', ", says)
    jsonl(shared / "many.jsonl", [{"text": "w1", "label": f"{i:02}"} for i in range(22)])
    jsonl(shared / "other.jsonl", [{"text": "w1", "label": "maybe"}])
    says = refusal("classification", "--data", "many.jsonl", "--valid", "other.jsonl")
    assert (
        says.startswith("other.jsonl, line 1: label 'maybe' is none of those that are learnt, '00', ")
        and ", '18', '19' and 2 more" in says
    )


def test_the_folder_of_the_model_to_start_from_is_no_output(shared, monkeypatch, capsys):
    """The advice about a folder of another run, to remove it, would cost the model."""
    monkeypatch.chdir(shared)
    checkpoint = next(Path("m").glob("*.pt"))
    for init in ("m", str(checkpoint), str(shared / "m")):
        for further in ((), ("--grid", "lr=1,2")):
            words = with_defaults(("--init", init, "--output", "m", "--dry-run", *further))
            assert main(["finetune", "classification", *words]) == 2
            assert capsys.readouterr().err == (
                "unified finetune: error: --output m: the folder of the model to start from (--init); "
                "name another one\n"
            )
