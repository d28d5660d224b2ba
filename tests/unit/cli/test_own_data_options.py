"""Data of one's own in a fine-tuning: files and fields that options name, validation items, and the next command."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from unified.cli.commands.finetuning.own_data import add_data_arguments, next_command, with_own_data
from unified.errors import UnifiedError
from unified.tasks.catalogue import TASKS, task_named
from unified.tasks.settings import Task
from unified.tasks.several import tasks_named


@pytest.fixture
def films(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    for name in ("films.csv", "other.csv"):
        lines = (f"w{i},{'no' if i % 2 else 'yes'},text {i}" for i in range(20))
        Path(name).write_text("\n".join(["sentence,liked,text", *lines]) + "\n", encoding="utf-8")
    return "films.csv"


def options(task: str, data: str, *words: str) -> Namespace:
    parser = ArgumentParser()
    add_data_arguments(parser)
    more = {"task": task, "data": data, "output": "runs/a", "spacy": None, "spacy_code": None}
    return Namespace(**vars(parser.parse_args(words)), **more)


def applied(task: str, data: str, *words: str):
    return with_own_data(options(task, data, *words), tasks_named(task))


def refusal(task: str, data: str, *words: str) -> str:
    with pytest.raises(UnifiedError) as refused:
        applied(task, data, *words)
    return refused.value.details


FIELDS = ("--text-field", "sentence", "--label-field", "liked")
KEPT = "films.csv: a share of 0.1 of its rows is kept for validation; --valid-share or --valid FILE changes that\n"


def test_fields_are_read_by_the_names_that_options_give(films):
    splits = applied("classification", films, *FIELDS, "--valid", "other.csv", "--test", "films.csv").read(Path(films))
    assert {split: len(items) for split, items in splits.items()} == {"train": 20, "valid": 20, "test": 20}
    assert [(item.text, item.label) for item in splits["train"][:2]] == [("w0", "yes"), ("w1", "no")]
    named = applied("classification", films, "--label-field", "liked", "--labels", "yes,no", "--valid", "other.csv")
    assert named.read.names.labels == ("yes", "no") and named.read(Path(films))["valid"][3].text == "text 3"


@pytest.mark.parametrize(
    ("words", "sizes", "says"),
    [
        ((), {"train": 18, "valid": 2}, KEPT),
        (("--valid-share", "0.25"), {"train": 15, "valid": 5}, ""),
        (("--valid", "other.csv"), {"train": 20, "valid": 20}, ""),
        (("--test", "other.csv"), {"train": 18, "valid": 2, "test": 20}, KEPT),
    ],
)
def test_a_tenth_of_a_file_validates_where_nothing_else_is_said(films, capsys, words, sizes, says):
    splits = applied("classification", films, *FIELDS, *words).read(Path(films))
    assert {split: len(items) for split, items in splits.items()} == sizes
    assert capsys.readouterr().err == says


def test_a_share_does_not_go_with_a_file_of_validation_items(films):
    says = "--valid-share 0.1: --valid films.csv holds the validation items; give one of them"
    assert refusal("classification", "films.csv", "--valid", "films.csv", "--valid-share", "0.1") == says


def test_a_data_set_of_the_hub_counts_as_one_file_and_a_folder_does_not(films, capsys):
    applied("classification", "hub:owner/films@train", *FIELDS)
    assert capsys.readouterr().err == KEPT.replace(films, "hub:owner/films@train")
    Path("folder").mkdir()
    Path("folder/train.csv").write_bytes(Path(films).read_bytes())
    assert applied("classification", "folder", *FIELDS).read(Path("folder")).keys() == {"train"}
    assert capsys.readouterr().err == ""


def test_rows_with_an_empty_field_are_left_out_where_it_is_asked_for(films):
    Path("gaps.csv").write_text("text,label\na,x\n,y\nc,z\n", encoding="utf-8")
    read = applied("classification", "gaps.csv", "--valid", "gaps.csv", "--skip-empty").read
    assert [item.text for item in read(Path("gaps.csv"))["train"]] == ["a", "c"]
    strict = applied("classification", "gaps.csv", "--valid", "gaps.csv").read
    with pytest.raises(UnifiedError, match="the field 'text' is empty; --skip-empty leaves such rows out"):
        strict(Path("gaps.csv"))


def test_a_field_that_is_missing_is_named_before_anything_is_read(films):
    assert refusal("classification", films, "--text-field", "sentence").endswith(
        "no field 'label'; its fields: 'sentence', 'liked', 'text'; --label-field names the one to read"
    )


@pytest.mark.parametrize(
    ("task", "words", "says"),
    [
        ("rte", ("--valid", "x"), "--valid x: not for rte, as it has official files"),
        ("rte", ("--test", "x"), "--test x: not for rte, as it has official files"),
        ("rte", ("--skip-empty",), "--skip-empty: not for rte, as it has official files"),
        ("xsum", ("--source-field", "s", "--test", "t"), "--test t: not for xsum, as it has official files"),
        ("rte, cola", ("--labels", "a,b"), "--labels a,b: not for rte, cola, as several tasks have a folder each"),
    ],
)
def test_options_for_data_of_ones_own_are_refused_for_official_files(films, task, words, says):
    more = "; data of your own are for a head, such as classification, or texts"
    assert refusal(task, ".", *words) == says + more


@pytest.mark.parametrize(
    ("task", "reader"),
    [("rte", "classification"), ("stsb", "regression"), ("squad2.0", "span"), ("xsum", "texts"), ("swag", "choice")],
)
def test_a_file_in_place_of_official_files_is_refused_with_the_command_that_reads_it(films, task, reader):
    assert refusal(task, films) == (
        f"--data films.csv: {task} is read from a folder with its official files; a file of your own is for "
        f"`unified finetune {reader} --data films.csv`"
    )


def test_a_task_with_official_files_is_changed_by_a_valid_share_alone(films):
    Path("folder").mkdir()
    for task in ("rte", "xsum", "rte, cola"):
        assert applied(task, "folder") == tasks_named(task)
    changed = applied("imdb", "folder", "--valid-share", "0.5")
    assert task_named("imdb").validates_on_test and not changed.validates_on_test
    assert refusal("rte, cola", "folder", "--valid-share", "0.5") == (
        "--valid-share 0.5: rte, cola has a development set of its own; leave it out"
    )


@dataclass
class Reads:
    """Stands for a task that a model has learnt, and for its predictor, whose items need the field ``needed``."""

    folder: Path
    name: str = "rte"
    needed: str = "text"
    renamed: Task | None = None

    @property
    def task(self) -> Reads | Task:
        return self.renamed or self

    @property
    def predictor(self) -> Reads:
        return self

    def item(self, fields, number):
        if self.needed not in fields:
            raise UnifiedError("no such field")
        return fields, number


def following(args: Namespace, **learnt: object) -> list[str] | None:
    made = next_command(args, Reads(**{"folder": Path("runs/a"), **learnt}), Path("runs/a/items"))
    return None if made is None else shlex.split(made)


def test_the_next_command_predicts_the_users_last_file_with_its_fields(films):
    start, model = ["unified", "predict", "classification"], ["--model", "runs/a"]
    assert following(options("classification", films)) == [*start, films, *model]
    given = options("classification", films, *FIELDS, "--second-field", "s", "--labels", "a,b", "--skip-empty")
    fields = ["--text-field", "sentence", "--second-field", "s"]
    assert following(given) == [*start, films, *model, *fields, "--skip-empty"]
    given = options("texts", films, "--source-field", "s p", "--target-field", "t", "--valid", "v", "--test", "t.csv")
    given.spacy, given.spacy_code = "pipe", "code"
    more = ["--source-field", "s p", "--spacy", "pipe", "--spacy-code", "code"]
    assert following(given) == ["unified", "predict", "texts", "t.csv", *model, *more]
    given = options("texts", "hub:owner/name@train", "--valid", "v.csv")
    assert following(given) == ["unified", "predict", "texts", "v.csv", *model]


def test_the_next_command_of_official_files_predicts_the_validation_items(films):
    for folder in ("runs/a/items", "runs/a/items/rte"):
        Path(folder).mkdir(parents=True)
        Path(folder, "valid.jsonl").write_text(json.dumps({"text": "w1"}) + "\n", encoding="utf-8")
    own, given = Path("runs/a/items"), options("rte", "folder")
    expected = ["unified", "predict", "rte", str(own / "valid.jsonl"), "--model", "runs/a"]
    assert following(given) == expected
    assert following(given, needed="words") is None
    one = following(options("rte, cola", "folder"), folder=Path("runs/a/rte"))
    assert one == ["unified", "predict", "rte", str(own / "rte" / "valid.jsonl"), "--model", "runs/a"]
    several, cola = options("rte, mine=cola", "folder"), replace(TASKS["cola"], name="mine")
    assert following(several, folder=Path("runs/a/rte"), renamed=cola) == [
        "unified", "predict", cola.head, str(own / "rte" / "valid.jsonl"), "--model", "runs/a", "--head", "mine",
    ]  # fmt: skip
    Path("runs/a/items/valid.jsonl").write_text('{"text": "a"}\n{"words": []}\n', encoding="utf-8")
    assert following(given) == expected  # the first item decides
