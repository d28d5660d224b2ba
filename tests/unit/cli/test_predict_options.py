"""Options of `unified predict`: names, types, defaults, what is required, and what reaches the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch

from tests.support.commands import assert_stands_for, exit_status, leaving
from tests.support.corpora import jsonl
from unified.errors import UnifiedError, require_fields

#: The shortest command line, which gives the defaults, and one with all options, and the settings that they are parsed
#: to.
LINES: dict[str, dict[str, Any]] = {
    "predict cola i --model m": {
        "task": "cola", "input": "i", "second": None, "model": ["m"], "head": None, "output": None,
        "overwrite": False, "ahead": 512, "max_tokens": None, "max_source": None, "windows": False,
        "text_field": None, "second_field": None, "source_field": None, "skip_empty": False, "spacy": None,
        "spacy_code": None, "threshold": None, "threads": 0, "json": False, "device": "cpu",
    },
    "predict cola i --second s --model m --model n --head h --output o --overwrite --ahead 1 --max-tokens 2 "
    "--max-source 3 --windows --text-field a --second-field b --source-field c --skip-empty --spacy d --spacy-code e "
    "--threshold 0.5 --threads 4 --json --device cuda": {
        "task": "cola", "input": "i", "second": "s", "model": ["m", "n"], "head": "h", "output": "o",
        "overwrite": True, "ahead": 1, "max_tokens": 2, "max_source": 3, "windows": True, "text_field": "a",
        "second_field": "b", "source_field": "c", "skip_empty": True, "spacy": "d", "spacy_code": "e",
        "threshold": "0.5", "threads": 4, "json": True, "device": "cuda",
    },
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_parsed_to_these_settings_and_no_others(line):
    assert_stands_for(line, LINES[line])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("i --model m", "the following arguments are required: INPUT"),
        ("cola i", "the following arguments are required: --model"),
        ("cola i --model m --threads -1", "argument --threads: must be an integer from 0 to 4096, got '-1'"),
        ("cola i --model m --ahead x", "argument --ahead: invalid int value: 'x'"),
    ],
)
def test_a_missing_argument_or_a_wrong_value_is_refused_in_one_line(line, says, capsys):
    status, out, err = leaving(capsys, "predict", *line.split())
    assert (status, out, err) == (2, "", f"unified predict: error: {says}; see unified predict --help\n")


def test_help_has_the_fields_in_a_group(capsys):
    status, out, _ = leaving(capsys, "predict", "--help")
    groups = re.findall(r"^([a-z][a-z -]*):$", out, re.MULTILINE)
    assert status == 0 and groups == ["positional arguments", "options", "what is printed", "fields"]


class Text(NamedTuple):
    id: int
    text: str


@dataclass(frozen=True)
class Repeats:
    """Stands for a predictor: repeats the texts of items; the words `cut` and `windows` in them become fields."""

    ahead: int = 0
    reads: str = "sequences of at most 5 tokens"

    def item(self, fields: dict[str, Any], number: int) -> Text:
        require_fields(fields, "text")
        return Text(number, fields["text"])

    def predict(self, items: Iterable[Text]) -> Iterator[dict[str, Any]]:
        for number, text in items:
            yield {"id": number, "answer": text} | {word: 2 for word in ("cut", "windows") if word in text.split()}


@pytest.fixture
def loaded(tmp_path, monkeypatch) -> list[tuple]:
    """The models that a command loads, with the options of loading; no model is read."""
    models: list[tuple] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("unified.tasks.loading.load", lambda *names, **options: models.append((*names, options)))
    monkeypatch.setattr("unified.cli.commands.predict.predictor_of", lambda *_: Repeats())
    monkeypatch.setattr("unified.tasks.learnt_tasks.has_learnt_pairs", lambda *_: None)
    return models


def predict(*words: str) -> None:
    assert exit_status("predict", "classification", *words, "--model", "m", "--head", "h") == 0


def test_models_are_loaded_on_the_device_and_with_the_pipeline_of_the_options(loaded, monkeypatch, capsys):
    class Pipeline:
        def load(self) -> str:
            return "annotator"

    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    predict("a b", "--model", "n")
    monkeypatch.setattr("unified.cli.commands.predict.entity_source", lambda args: Pipeline())
    predict("a b", "--device", "cuda")
    assert loaded == [
        ("n", "m", {"device": torch.device("cpu"), "annotator": None}),
        ("m", {"device": torch.device("cuda"), "annotator": "annotator"}),
    ]
    assert capsys.readouterr().out == "a b\n" * 2


def test_texts_that_are_cut_or_divided_are_counted(loaded, tmp_path, capsys):
    texts = ["a", "cut", "windows", "windows cut", "b", "windows"]
    jsonl(tmp_path / "rows.jsonl", [{"text": text} for text in texts])
    predict("rows.jsonl")
    out, err = capsys.readouterr()
    assert [json.loads(line)["answer"] for line in out.splitlines()] == texts
    assert err.splitlines() == [
        "predict: 3 of 6 texts were divided into windows",
        "predict: 2 of 6 texts were cut; the model reads sequences of at most 5 tokens",
    ]


def test_rows_with_an_empty_text_are_left_out_where_that_is_asked_for(loaded, tmp_path, capsys):
    jsonl(tmp_path / "rows.jsonl", [{"text": text} for text in ("a", " ", "b")])
    predict("rows.jsonl", "--skip-empty")
    out, err = capsys.readouterr()
    assert [json.loads(line)["answer"] for line in out.splitlines()] == ["a", "b"]
    assert err == "rows.jsonl: 1 row left out, the field 'text' is empty\n"
    refusal = r"^rows\.jsonl: line 2: the field 'text' is empty; --skip-empty leaves such rows out$"
    with pytest.raises(UnifiedError, match=refusal):
        predict("rows.jsonl")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a b", "--overwrite"], "--overwrite has no effect without --output; add --output, or leave --overwrite out"),
        (["a b", "--device", "cuda"], "--device cuda: PyTorch finds no GPU on this machine; cpu needs none"),
        (["word"], """word: no such file; a text of one word is given as an item, '{"text": "word"}'"""),
        (["none.csv"], "none.csv: no such file"),
    ],
)
def test_what_cannot_work_is_refused_before_a_model_is_loaded(loaded, monkeypatch, words, says):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(UnifiedError) as refused:
        predict(*words)
    assert str(refused.value) == says and loaded == []
