"""Files that commands write and read are UTF-8, whatever the locale of the machine is."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.support.commands import exit_status
from tests.support.corpora import jsonl
from tests.support.locales import plain_locale
from tests.support.task_folders import language_model
from tests.support.untrained_models import task_model, train_at_once
from unified.cli import main
from unified.cli.commands.predicting.inputs import items_of
from unified.cli.configuration import write_run
from unified.cli.fairseq_train import run_command
from unified.cli.loudness import loudness
from unified.files.fields import FieldNames
from unified.tasks.heads import Classification
from unified.tasks.heads.documents import DocumentItem
from unified.tasks.heads.items import write_items

ROWS = [{"id": f"{i}", "text": f"w{i} w{i % 3}", "label": ("no", "yé")[i % 2]} for i in range(8)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def text(path: str) -> str:
    return Path(path).read_bytes().decode("utf-8")


def test_the_options_of_a_run():
    args = argparse.Namespace(command="pretrain", data="café")
    with plain_locale():
        write_run(Path(), args, lambda parser: parser.add_argument("--data"))
    assert text("run.yaml") == "# unified pretrain --config run.yaml\ndata: café\n"


def test_the_log_of_a_training(monkeypatch):
    def module(name, words, read) -> int:
        read("één\n")
        return 0

    monkeypatch.setattr("unified.cli.fairseq_train.read_module", module)
    with plain_locale():
        run_command(["fairseq-train", "data", "--save-dir", "run"])
    assert text("run/train.log") == "één\n"


def test_messages_that_are_dropped(capsys):
    with plain_locale(), loudness(quiet=True, verbose=False):
        print("één", file=sys.stderr)
    assert capsys.readouterr().err == ""


def test_predictions_of_a_fine_tuning(monkeypatch, capsys):
    language_model(Path("m"), initializer_range=0.3)
    for split in ("train", "valid"):
        jsonl(Path(f"{split}.jsonl"), ROWS)
    monkeypatch.setattr("unified.cli.fairseq_train.read_module", train_at_once)
    words = "classification --data train.jsonl --valid valid.jsonl --init m --output out --max-length 16".split()
    with plain_locale():
        assert exit_status("finetune", *words) == 0
    assert '"yé"' in text("out/predictions.valid.jsonl")
    found = [json.loads(line)["label"] for line in text("out/predictions.valid.jsonl").splitlines()]
    assert len(found) == 8 and {*found} <= {"no", "yé"}


def test_files_for_an_official_program(monkeypatch):
    language_model(Path("m"), initializer_range=0.3)
    document = DocumentItem("(é); part 000", (("w1", "w2", "w1"), ("w3",)), chains=(((0, 0), (2, 2)),))
    for split in ("train", "valid"):
        write_items(Path(f"{split}.jsonl"), [document])
    head = "coreference(hidden=8, features=4, dropout=0.0, max_width=2, max_windows=2)"
    monkeypatch.setattr("unified.cli.fairseq_train.read_module", train_at_once)
    words = "coreference --data train.jsonl --valid valid.jsonl --init m --output out --max-length 16 --batch-size 1"
    with plain_locale():
        assert exit_status("finetune", *words.split(), "--head", head) == 0
    assert text("out/valid.response.conll").startswith("#begin document (é); part 000\n")


def test_predictions_of_a_command():
    task_model(Path("m"), {"classification": Classification(("né", "yé"))})
    jsonl(Path("rows.jsonl"), ROWS)
    with plain_locale():
        assert main(["predict", "classification", "rows.jsonl", "--model", "m", "--output", "found.jsonl"]) == 0
    labels = [json.loads(line)["label"] for line in text("found.jsonl").splitlines()]
    assert len(labels) == text("found.jsonl").count('é",') == 8 and {*labels} <= {"né", "yé"}


def test_rows_of_a_pipe():
    class Predictor:
        task = None

        def item(self, fields, number):
            return number, fields["text"]

    os.mkfifo("pipe")
    content = '{"text": "één"}\n'.encode()
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(content), daemon=True)
    writer.start()
    with plain_locale():
        assert list(items_of("pipe", Predictor(), FieldNames({"text": "text"}), Counter())) == [(1, "één")]
    writer.join(timeout=60)


def test_a_picture_of_a_mask():
    with plain_locale():
        assert main(["masks", "plot", "bidirectional", "2", "--output", "mask.svg", "--tokens", "één w"]) == 0
    assert "één" in text("mask.svg")
