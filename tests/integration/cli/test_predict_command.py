"""What `unified predict` reads: files are checked first, streams as they come."""

import gzip
import json
import os
import threading
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from tests.integration.cli.test_task_commands import refused, said
from tests.support.standard_input import holding
from tests.support.task_folders import language_model
from unified import load
from unified.checkpoints import load_checkpoint
from unified.checkpoints.files import save
from unified.cli import main
from unified.cli.commands.predict import predictor_of
from unified.errors import UnifiedError
from unified.model import UnifiedModel
from unified.tasks.catalogue import task_named
from unified.tasks.finetuning import Start
from unified.tasks.heads import Classification


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a classifier that has learnt nothing."""
    folder = language_model(tmp_path_factory.mktemp("predict") / "model")
    content, config = load_checkpoint(folder / "checkpoint_last.pt"), Start.of(folder).config
    core = UnifiedModel.for_tasks(config, {"classification": Classification(("no", "yes")).head(config)})
    kept = {"head": "classification", "settings": {"labels": ("no", "yes")}}
    content["extra_state"]["UnifiedUnderstandingTask"] = {"classification": kept}
    content["cfg"]["task"]["tokens_per_sample"] = 16
    content["model"] = {f"core.{name}": torch.clone(value) for name, value in core.state_dict().items()}
    save(content, folder / "checkpoint_last.pt")
    return folder


def test_a_file_is_checked_before_anything_is_predicted(model, tmp_path, monkeypatch, capsys):
    """All bad lines are counted, equal ones together, and nothing is written."""
    monkeypatch.chdir(tmp_path)  # short names leave room in the message
    bad, output = Path("bad.jsonl"), Path("out.jsonl")
    rows = ['{"text": "w1"}', "", '{"words": ["w1"]}', "nonsense", "[1]", *['{"text": " "}'] * 9, '{"text": "w2"}']
    bad.write_text("\n".join(rows))
    arguments = ("predict", "classification", "--model", model, "--ahead", 1)
    message = refused(capsys, *arguments, bad, "--output", output)
    assert (
        f"{bad}: line 3: no field 'text'; its fields: 'words'; --text-field names the one to read; "
        "line 4: not JSON (Expecting value); "
        "line 5: not a JSON object but a list" in message
    )
    assert message.endswith("; 9 lines (6, 7, 8, ...): the field 'text' is empty; --skip-empty leaves such rows out\n")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]
    bad.write_bytes(b'{"text": "w1"}\n{"text": "\xff"}\n')
    assert f"{bad}, line 2: not UTF-8 (byte 0xff at byte 11 of the line)" in refused(capsys, *arguments, bad)
    assert capsys.readouterr().out == ""
    with gzip.open(tmp_path / "good.jsonl.gz", "wt") as stream:
        stream.write('{"text": "w1 w0"}\n\n{"text": "w1"}\n')
    found = said(capsys, *arguments, tmp_path / "good.jsonl.gz")
    assert [json.loads(line)["id"] for line in found] == ["1", "3"]


def test_a_field_that_the_task_does_not_read_is_refused(model, capsys):
    words = ("predict", "classification", "--model", model, '{"text": "w1"}', "--source-field", "q")
    assert "error: --source-field q: classification takes --text-field, " in refused(capsys, *words)


def test_fields_are_called_as_in_the_file(model, tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"body": 3}\n{"body": ["w1"]}\n{"body": "w1 \\ud83d"}\n', encoding="utf-8")
    words = ("predict", "classification", "--model", model, "--text-field", "body")
    assert refused(capsys, *words, rows).endswith(
        f"{rows}: 2 lines (1, 2): 'body' must be a text that is not empty; "
        "line 3: 'body' holds half of a surrogate pair, such as a part of an emoji\n"
    )
    assert "the item: 'body' must be a text that is not empty\n" in refused(capsys, *words, '{"body": 3}')


def test_rows_with_an_empty_field_are_left_out_where_it_is_asked_for(model, tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"text": "{text}"}}\n' for text in ("w1", "", "w2", " ", "w3")), encoding="utf-8")
    words = ("predict", "classification", "--model", model, path)
    assert "2 lines (2, 4): the field 'text' is empty" in refused(capsys, *words)
    assert main([*map(str, words), "--skip-empty"]) == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["id"] for line in captured.out.splitlines()] == ["1", "3", "5"]
    assert f"{path}: 2 rows left out, the field 'text' is empty" in captured.err


def test_finished_predictions_are_not_replaced_unasked(model, tmp_path, capsys):
    output = tmp_path / "out.jsonl"
    words = ("predict", "classification", "--model", model, '{"text": "w1"}', "--output", output)
    said(capsys, *words)
    before = output.read_bytes()
    output.write_bytes(b"others")
    message = refused(capsys, *words)
    assert message.endswith(f"{output}: exists already; --overwrite replaces it, or give another --output\n")
    assert output.read_bytes() == b"others"
    said(capsys, *words, "--overwrite")
    assert output.read_bytes() == before


def test_what_streams_is_answered_until_a_line_is_bad(model, monkeypatch, tmp_path, capsys):
    arguments = ("predict", "classification", "--model", str(model), "--ahead", "1")
    for last, says in (
        (b'{"text": ""}', ": line 3: the field 'text' is empty"),
        (b"\xff", ", line 3: not UTF-8 (byte 0xff"),
    ):
        monkeypatch.setattr("sys.stdin", holding(b'{"text": "w1"}\n{"text": "w2"}\n' + last))
        capsys.readouterr()
        assert main([*arguments, "-"]) == 2
        captured = capsys.readouterr()
        assert [json.loads(line)["id"] for line in captured.out.splitlines()] == ["1", "2"]
        assert f"standard input{says}" in captured.err
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('{"text": "w1"}\n{"text": ""}\n',))
    writer.start()
    assert main([*arguments, str(pipe)]) == 2
    writer.join()
    captured = capsys.readouterr()
    assert f"{pipe}: line 2: the field 'text' is empty" in captured.err and json.loads(captured.out)["id"] == "1"


def test_tokens_are_read_together_as_the_option_says(model, capsys):
    handle = load(model)
    for given, expected in ((None, 4096), (7, 7)):
        asked = Namespace(head=None, max_tokens=given, threshold=None, max_source=None, windows=False)
        predictor = predictor_of(asked, task_named("classification"), handle)
        assert predictor.max_tokens == expected
    words = ("predict", "classification", "--model", model, '{"text": "w1"}', "--max-tokens", 0)
    assert "--max-tokens must be at least 1, got 0" in refused(capsys, *words)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda lm: lm.classify(None), "texts: expected a list of texts, got NoneType None"),
        (lambda lm: lm.classify([3]), r"texts\[0\]: expected one text, got int 3"),
        # One second text is no list of its letters.
        (lambda lm: lm.classify(["w1", "w2"], "w3"), "seconds: expected a list of texts, got one text"),
        (lambda lm: lm.predict({"text": "w1"}), "items: expected a list of dictionaries, got dict"),
        (lambda lm: lm.predict("w1"), "items: expected a list of dictionaries, got str"),
        (lambda lm: lm.predict(None), "items: expected a list of dictionaries, got NoneType"),
        (lambda lm: lm.predict([{"text": "w1"}, ["text"]]), "item 2: expected a dictionary, got list"),
    ],
)
def test_what_is_no_item_is_refused_in_python(model, ask, message):
    with pytest.raises(UnifiedError, match=message):
        list(ask(load(model)))
