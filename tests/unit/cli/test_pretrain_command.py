"""`unified pretrain`: the command of fairseq-train, the claim of its folder, the next step, and refusals."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.support.commands import exit_status, leaving
from tests.support.task_folders import tokenizer, vocabulary
from tests.support.token_files import write, write_documents, write_spans
from unified.cli import main
from unified.data.token_files import TokenFile
from unified.training.fairseq_options import by_name

DOCUMENTS = [[[10, 11, 12], [13, 14]], [[15, 16]]]
SMALL = ("--tokens-per-sample", "32", "--max-tokens", "64", "--max-update", "40", "--device", "cpu")


@pytest.fixture
def folders(tmp_path, monkeypatch) -> Path:
    """``documents`` and ``pairs`` in fairseq-preprocess's format, and ``whole``, which has no validation split."""
    monkeypatch.chdir(tmp_path)
    for name, splits in (("documents", ("train", "valid")), ("whole", ("train",))):
        Path(name).mkdir()
        vocabulary().save(Path(name) / "dict.txt")
        for split in splits:
            write_documents(Path(name) / split, DOCUMENTS)
    Path("pairs").mkdir()
    for side in ("source", "target"):
        vocabulary().save(Path("pairs") / f"dict.{side}.txt")
        for split in ("train", "valid"):
            write(Path("pairs") / f"{split}.source-target.{side}", [[10, 11, 2], [12, 2]])
    return tmp_path


@pytest.fixture
def trained(monkeypatch) -> list[list[str]]:
    """Replaces fairseq-train, which leaves a checkpoint at once; returns the commands of its runs."""
    ran: list[list[str]] = []

    def run(words: list[str]) -> None:
        ran.append(words)
        Path(str(by_name(words)["--save-dir"]), "checkpoint_last.pt").write_text("weights", encoding="utf-8")

    monkeypatch.setattr("unified.cli.commands.pretrain.run_command", run)
    return ran


def claim(folder: str) -> dict:
    return json.loads(Path(folder, "claim.json").read_text(encoding="utf-8"))


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_help_says_what_each_number_is_and_its_default(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # no word is divided at its hyphens
    text = " ".join(leaving(capsys, "pretrain", "--help")[1].split())
    assert (
        "--tokens-per-sample N tokens of a row, special symbols included (default: 512) "
        "--max-tokens N tokens that one GPU reads at once, as many as its memory holds (default: 16384) "
        "--update-freq N batches of an update, on each GPU (default: 1) "
        "--max-update N updates (default: 20000) "
        "--lr R learning rate at its peak (default: 0.0003) "
        "--seed N seed of the initial weights, the dropout and the data (default: 1) "
        "--warmup-updates N updates in which the learning rate rises (default: a twentieth of --max-update) "
    ) in text
    assert " --dry-run print the command of fairseq-train and stop " in text


def test_a_model_is_trained_and_the_next_command_is_printed(folders, trained, capsys):
    assert exit_status("pretrain", "documents", "--output", "runs/a", "--model", "tiny", *SMALL) == 0
    printed = capsys.readouterr()
    [words] = trained
    assert printed.out == "" and printed.err.splitlines() == [
        shlex.join(words),
        "the model is in runs/a; fine-tune it for a task:",
        "  unified finetune classification --data FILE.csv --init runs/a --output runs/a-finetuned",
    ]
    options = by_name(words)
    assert words[:2] == ["fairseq-train", "documents"] and {
        name: options[name] for name in ("--arch", "--objectives", "--warmup-updates", "--max-update", "--lr", "--seed")
    } == {
        "--arch": "unified_lm_tiny", "--objectives": "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1",
        "--warmup-updates": "2", "--max-update": "40", "--lr": "0.0003", "--seed": "1",
    }  # fmt: skip
    repeated = yaml.safe_load(Path("runs/a/run.yaml").read_text(encoding="utf-8"))
    assert (repeated["data"], repeated["model"], repeated["max-update"]) == ("documents", "tiny", 40)


def test_an_empty_mixture_is_not_the_default(folders, trained):
    assert main(["pretrain", "documents", "--output", "runs/a", "--model", "tiny", "--objectives", "", *SMALL]) == 2
    assert not trained


def test_after_a_training_on_pairs_the_next_command_generates(folders, trained, capsys):
    assert main(["pretrain", "pairs", "--output", "runs/a", "--model", "tiny", *SMALL]) == 0
    assert by_name(trained[0])["--objectives"] == "target_cloze:1"
    assert capsys.readouterr().err.splitlines()[1:] == [
        "the model is in runs/a; write texts with it:",
        "  unified generate pairs --gen-subset valid --output runs/a/generated.txt --model runs/a",
    ]


def test_a_folder_is_claimed_by_numbers_model_objectives_and_data(folders, trained):
    more = ("--lr", "0.5", "--seed", "3", "--warmup-updates", "5", "--update-freq", "2", "--objectives", "seq2seq")
    words = ["pretrain", "documents", "--output", "a", "--model", "tiny", *SMALL, *more]
    assert main([*words, "--fairseq=--dropout 0.5 --fp16 --log-interval 3"]) == 0
    assert claim("a") == {
        "settings": {
            "--tokens-per-sample": 32, "--max-tokens": 64, "--update-freq": 2, "--max-update": 40,
            "--warmup-updates": 5, "--lr": 0.5, "--seed": 3, "--model": "unified_lm_tiny", "--objectives": "seq2seq:1",
            "--fairseq": {"--dropout": "0.5", "--fp16": True},
        },
        "inputs": {"DATA": {"dict.txt": digest("documents/dict.txt")}},
    }  # fmt: skip
    assert main(["pretrain", "pairs", "--output", "b", "--model", "tiny", *SMALL]) == 0
    names = ("dict.source.txt", "dict.target.txt")
    assert claim("b")["inputs"]["DATA"] == {name: digest(f"pairs/{name}") for name in names}
    outputs = {"train.bin": {"bytes": 1, "sha256": "12"}, "dict.txt": {"bytes": 1, "sha256": "34"}}
    Path("documents/manifest.json").write_text(json.dumps({"outputs": outputs}), encoding="utf-8")
    assert main(["pretrain", "documents", "--output", "c", "--model", "tiny", *SMALL]) == 0
    assert claim("c")["inputs"]["DATA"] == {"train.bin": "12", "dict.txt": "34"}


def test_a_folder_with_a_checkpoint_is_resumed_with_the_same_settings_alone(folders, trained, capsys):
    words = ["pretrain", "documents", "--output", "a", "--model", "tiny", *SMALL]
    assert main(words) == 0 and main(words) == 0 and len(trained) == 2
    capsys.readouterr()
    assert main([*words, "--seed", "2"]) == 2
    assert capsys.readouterr().err == (
        "unified pretrain: error: a: was begun with --seed 1, now 2; give another --output, or remove the folder\n"
    )
    Path("a/checkpoint_last.pt").unlink()
    assert main([*words, "--seed", "2"]) == 0 and len(trained) == 3


def test_a_dry_run_trains_nothing(folders, trained, capsys):
    words = ["pretrain", "documents", "--output", "a", "--model", "tiny", *SMALL]
    assert exit_status(*words, "--dry-run") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("fairseq-train documents ") and printed.err == ""
    assert trained == [] and not Path("a").exists()


def test_losses_are_reported_to_a_service_where_one_is_named(folders, trained, monkeypatch):
    known, find = importlib.util.find_spec("json"), importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: find(name, *more) or known)  # as if installed
    words = ["pretrain", "documents", "--output", "a", "--model", "tiny", *SMALL]
    assert main([*words, "--report-to", "tensorboard", "--fairseq=--fp16"]) == 0
    assert by_name(trained[0])["--tensorboard-logdir"] == str(Path("a/tensorboard")) and trained[0][-1] == "--fp16"
    words[words.index("a")] = "b"
    assert main(words) == 0 and "--tensorboard-logdir" not in by_name(trained[1])


def test_a_training_uses_all_gpus_unless_the_cpu_is_asked_for(folders, trained, monkeypatch):
    words = ["pretrain", "documents", "--output", "a", "--model", "tiny", *SMALL[:-2]]
    for cards, more, on_cpu in ((2, (), False), (0, (), True), (2, ("--device", "cpu"), True)):
        monkeypatch.setattr("torch.cuda.device_count", lambda cards=cards: cards)
        assert main([*words, *more]) == 0 and ("--cpu" in trained[-1]) is on_cpu


def test_a_validation_text_is_needed_unless_fairseq_train_goes_without(folders, trained, capsys):
    words = ["pretrain", "whole", "--output", "a", "--model", "tiny", *SMALL]
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "unified pretrain: error: whole: no text to validate on; make the folder with `unified prepare --valid FILE` "
        "or --valid-share, or let fairseq-train go without by --fairseq=--disable-validation\n"
    )
    assert main([*words, "--fairseq=--disable-validation"]) == 0 and len(trained) == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("documents --model tny", "--model tny: no such model or folder (did you mean 'tiny'?)"),
        ("documents --max-update 0", "--max-update must be at least 1, got 0"),
        ('documents --model tiny --fairseq="--a \'b"', '--fairseq "--a \'b": a quotation mark is not closed'),
        ("nowhere", "nowhere: no such data folder; make one with `unified prepare` or fairseq-preprocess"),
        (
            "documents --tokens-per-sample 1",
            "--tokens-per-sample: rows of 1 token hold no text beside the special tokens "
            "of bidirectional, seq2seq, left_to_right, right_to_left",
        ),
        (
            "pairs --tokens-per-sample 3",
            "--tokens-per-sample: rows of 3 tokens hold no text beside the special tokens of target_cloze",
        ),
        ("documents --fairseq='--task translation'", "--fairseq --task: the command gives it by itself; leave it out"),
        ("documents --fairseq=--criterion=x", "--fairseq --criterion: the command gives it by itself; leave it out"),
    ],
)
def test_what_cannot_be_trained_is_refused(folders, trained, capsys, line, says):
    for dry in ([], ["--dry-run"]):
        assert main(["pretrain", "--output", "a", *SMALL, *shlex.split(line), *dry]) == 2
        assert capsys.readouterr().err == f"unified pretrain: error: {says}\n"
    assert trained == [] and not Path("a").exists()


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_data_from_which_the_objectives_cannot_learn_are_refused(folders, trained, capsys, dry):
    """A dry run printed the command of a training that ended at once."""
    spans = ["--objectives", "spanbert(scheme='named_entity')", "--model", "tiny", *SMALL, *dry]
    tokenizer().save(Path("documents"))

    def said(*words):
        assert main(["pretrain", *words, "--output", "a", *spans]) == 2
        return capsys.readouterr().err

    for split in ("train", "valid"):
        assert said("documents") == (
            f"unified pretrain: error: documents/{split}: objective spanbert: needs the annotation entities, which the "
            "data do not have (they have none); prepare them with --annotate entities\n"
        )
        write_spans(TokenFile(f"documents/{split}"), ["entities"], np.random.default_rng(0))
        if split == "train":
            assert main(["pretrain", "documents", "--output", "b", *spans, "--fairseq=--disable-validation"]) == 0
            capsys.readouterr()
    assert main(["pretrain", "documents", "--output", "c", *spans]) == 0
    capsys.readouterr()
    for split, prefix in (("train", "train"), ("valid", "valid")):
        shutil.copytree("documents", f"no_{split}")
        Path(f"no_{split}", f"{prefix}.idx").unlink()
        assert f"no_{split}" in said(f"no_{split}")
        shutil.copytree("documents", f"empty_{split}")
        write(f"empty_{split}/{split}", [])
        assert said(f"empty_{split}") == f"unified pretrain: error: empty_{split}: split '{split}' is empty\n"
    assert len(trained) == (0 if dry else 2) and not Path("a").exists()


def test_objectives_that_do_not_fit_the_data_or_the_model_are_refused(folders, trained, capsys):
    for line, says in (
        ("documents --model tiny --objectives target_cloze", "--objectives 'target_cloze' does not fit documents, "),
        ("pairs --model tiny --objectives bert", "--objectives 'bert' does not fit pairs, "),
        ("documents --model tiny --objectives xlnet", "--model unified_lm_tiny: objective xlnet predicts by a query "),
    ):
        assert main(["pretrain", "--output", "a", *SMALL, *line.split()]) == 2
        assert capsys.readouterr().err.startswith(f"unified pretrain: error: {says}")
    line = "documents --model tiny --objectives xlnet --output a"
    assert main(["pretrain", *SMALL, *line.split(), "--fairseq=--positions relative"]) == 0
