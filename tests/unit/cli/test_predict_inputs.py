"""INPUT of `unified predict`: rows of a file, of a stream or one object, and plain texts."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.standard_input import holding
from unified.cli.commands.predict import _names
from unified.cli.commands.predicting.inputs import called, checked, is_object, items_of, print_left_out
from unified.cli.commands.predicting.plain_text import (
    in_words,
    is_plain_text,
    item_of_text,
    names_in_file,
    require_input,
)
from unified.cli.parsing import make_parser
from unified.errors import EmptyField, Problems, UnifiedError, require_fields
from unified.files.fields import FieldNames
from unified.tasks.catalogue import task_named
from unified.tasks.heads.items import text_item


class Numbered(NamedTuple):
    """The number of a row, by which it is called, and its text."""

    number: int
    text: str

    @property
    def id(self) -> str:
        return str(self.number)


class Predictor:
    """Makes of a row its number and its text; the fields ``needed`` must be there."""

    def __init__(self, *needed: str):
        self.needed = needed

    def item(self, fields, number):
        require_fields(fields, *self.needed)
        return Numbered(number, fields["text"])


NAMES = FieldNames({"text": "text"})


def items(
    source: str, names: FieldNames = NAMES, empty: Counter | None = None, problems: Problems | None = None
) -> list:
    return list(items_of(str(source), Predictor("text"), names, Counter() if empty is None else empty, problems))


def refusal(call) -> str:
    with pytest.raises(UnifiedError) as refused:
        call()
    return str(refused.value)


@pytest.fixture
def rows(tmp_path):
    """Writes rows to a file; a text instead of a row is a line of its own."""

    def write(*rows, name="a.jsonl"):
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return str(path)

    return write


def test_items_are_those_of_a_file_a_stream_a_pipe_or_one_object(rows, tmp_path, monkeypatch):
    lines = [{"text": "a"}, " ", {"text": "b"}]
    path = rows(*lines)
    assert items(path) == [(1, "a"), (3, "b")]
    monkeypatch.setattr(sys, "stdin", holding(Path(path).read_text()))
    assert items("-") == [(1, "a"), (3, "b")]
    monkeypatch.setattr(sys, "stdin", holding('\ufeff{"text": "a"}\n{"text": "\ufeffb"}\n'))
    assert items("-") == [(1, "a"), (2, "\ufeffb")]
    os.mkfifo(tmp_path / "pipe")
    text = Path(path).read_text()
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(text), daemon=True)
    writer.start()
    assert items(tmp_path / "pipe") == [(1, "a"), (3, "b")]
    writer.join(timeout=60)
    assert items(' {"text": "c"}') == [(1, "c")]
    assert items('{"x": "c"}', FieldNames({"text": "text"}, {"text": "x"})) == [(1, "c")]


def test_the_first_wrong_row_is_refused_with_its_place_or_all_are_collected(rows, monkeypatch):
    path = rows({"text": "a"}, {"t": "b"}, {"text": ""}, {"text": "c"})
    found = []
    with pytest.raises(UnifiedError) as refused:
        found += items_of(path, Predictor("text"), NAMES, Counter())
    assert str(refused.value) == f"{path}: line 2: no field 'text'; its fields: 't'; --text-field names the one to read"
    problems = Problems()
    assert items(path, problems=problems) == [(1, "a"), (4, "c")] and len(problems) == 2
    assert str(problems).endswith("line 3: the field 'text' is empty")
    monkeypatch.setattr(sys, "stdin", holding('\n{"t": 1}\n'))
    assert refusal(lambda: items("-")).startswith("standard input: line 2: no field 'text'")
    assert refusal(lambda: items('{"t": 1}')) == "the item: no field 'text'; its fields: 't'"
    monkeypatch.setattr(sys, "stdin", holding(b'{"text": "a"}\n' * 2 + b"\xff\n"))
    assert refusal(lambda: items("-")) == (
        "standard input, line 3: not UTF-8 (byte 0xff at byte 1 of the line); convert the file to UTF-8"
    )


@pytest.mark.parametrize(("encoding", "errors"), [("latin-1", "strict"), ("ascii", "surrogateescape")])
def test_standard_input_is_utf8_in_every_locale(monkeypatch, encoding, errors):
    def given(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding, errors))

    given('{"text": "é🙂"}\n'.encode())
    assert items("-") == [(1, "é🙂")]
    given(b'{"text": "\xe9"}\n')
    assert refusal(lambda: items("-")).startswith("standard input, line 1: not UTF-8 (byte 0xe9 at byte 11 of the")
    monkeypatch.setattr(sys, "stdin", None)  # `<&-` of a shell
    assert refusal(lambda: items("-")) == "standard input is closed"


def test_rows_with_an_empty_field_are_left_out_where_that_is_asked_for(rows, capsys):
    path = rows(*[{"text": " "}] * 1200, {"text": "a"}, {"text": ""})
    skipping = FieldNames({"text": "text"}, skip_empty=True)
    empty = Counter()
    assert items(path, skipping, empty=empty) == items(path, skipping) == [(1201, "a")]
    assert empty == {"the field 'text' is empty": 1201}
    assert checked(path, Predictor("text"), skipping) == 1
    assert capsys.readouterr().err == ""  # the rows are counted when they are answered, as those of a stream
    print_left_out(path, empty)
    assert capsys.readouterr().err == f"{path}: 1,201 rows left out, the field 'text' is empty\n"
    assert refusal(lambda: items(rows({"t": 1}), skipping)).startswith(f"{path}: line 1: no field")


def test_a_file_is_checked_to_its_end(rows, capsys):
    assert checked(rows({"text": "a"}, {"text": "b"}), Predictor("text"), NAMES) == 2
    path = rows({"t": "a"}, {"text": "b"}, {"t": "c"})
    assert refusal(lambda: checked(path, Predictor("text"), NAMES)) == (
        f"{path}: 2 lines (1, 3): no field 'text'; its fields: 't'; --text-field names the one to read"
    )
    assert capsys.readouterr().err == ""


def test_ids_that_several_rows_of_a_file_have_are_refused(rows):
    """Predictions are named by them; a row without an id has its number."""

    class Texts:
        def item(self, fields, number):
            return text_item(fields, number, labelled=False)

    path = rows({"id": "a", "text": "x"}, {"id": "3", "text": "y"}, {"text": "z"}, {"id": "a", "text": "x"})
    says = "an earlier row has this id, too; each needs an id of its own"
    assert refusal(lambda: checked(path, Texts(), NAMES)) == f"{path}: 2 items (3, a): {says}"
    assert checked(rows({"id": "a", "text": "x"}, {"id": "b", "text": "x"}), Texts(), NAMES) == 2


def test_an_object_begins_with_a_brace_and_inputs_have_names():
    assert is_object(' \n{"a": 1}') and not is_object("a {") and not is_object("[]") and not is_object("")
    assert [called(source) for source in ("-", "{}", "a.txt")] == ["standard input", "the item", "a.txt"]


def test_a_plain_text_has_several_words_and_is_nothing_that_can_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a film").write_text("x")
    (tmp_path / "folder").mkdir()
    for text in ("a charming journey", "either/or it is", "a\nb"):
        assert is_plain_text(text)
    for other in ("word", "", '{"text": "a b"}', " { a", "hub:a/b c", "a film", "folder/a film", "my data.jsonl", "-"):
        assert not is_plain_text(other)


def test_an_input_that_is_neither_a_text_nor_a_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("x")
    for source in ("-", "there", " {x", "hub:a/b"):
        require_input(source, NAMES)
    source = FieldNames({"source": "text"})
    assert refusal(lambda: require_input("été's", NAMES)) == (
        """été's: no such file; a text of one word is given as an item, '{"text": "été'"'"'s"}'"""
    )
    assert refusal(lambda: require_input("good", FieldNames({"text": "words"}, {"text": "mine"}))).endswith(
        """'{"mine": "good"}'"""
    )
    assert refusal(lambda: require_input("good", source)).endswith("""'{"text": "good"}'""")
    for name, names in (("none.csv", NAMES), ("good", FieldNames({"label": "label"}))):
        assert refusal(lambda name=name, names=names: require_input(name, names)) == f"{name}: no such file"


def test_a_file_of_plain_text_has_the_texts_of_its_lines(rows, tmp_path):
    (tmp_path / "a.txt").write_text("A film.\nAnother.\n")
    path, names = (
        str(tmp_path / "a.txt"),
        FieldNames({"text": "words", "label": "tags"}, {"label": "y"}, skip_empty=True),
    )
    assert names_in_file(path, names) == FieldNames(names.parts, {"label": "y", "text": "text"}, (), True)
    assert names_in_file(path, FieldNames({"source": "s"})).given == {"source": "text"}
    (tmp_path / "empty.txt").write_text("")
    for source, kept in (
        (str(tmp_path / "empty.txt"), names), (rows({"text": "a"}), names), (path, FieldNames({"label": "l"})),
        (path, FieldNames({"text": "words"}, {"text": "mine"})),
        (rows({"text": "a", "id": 1}, name="items"), names),
    ):  # fmt: skip
        assert names_in_file(source, kept) is kept
    assert names_in_file(rows({"text": "a"}, name="items"), names).given == {"label": "y", "text": "text"}


class Fields(Predictor):
    """Returns the fields themselves."""

    def item(self, fields, number):
        require_fields(fields, *self.needed)
        return fields, number


def test_a_text_or_a_pair_of_texts_is_an_item():
    pair = FieldNames({"text": "first", "second": "other"})
    assert item_of_text("a b", None, Fields("first"), pair, "sst2") == ({"first": "a b"}, 1)
    assert item_of_text("a b", "c", Fields("first"), pair, "mnli") == ({"first": "a b", "other": "c"}, 1)
    assert item_of_text("a b", "", Fields(), FieldNames({"source": "s", "second": "t"}), "x") == (
        {"s": "a b", "t": ""},
        1,
    )
    both = FieldNames({"source": "s", "text": "t"})
    assert item_of_text("a", None, Fields(), both, "x")[0] == {"t": "a"}


@pytest.mark.parametrize(
    ("names", "second", "needed", "says"),
    [
        (FieldNames({"text": "t"}, {"text": "x"}), None, (),
         "--text-field x: INPUT is a plain text, which has no fields; leave it out"),
        (FieldNames({"label": "l"}), None, (), "own takes no plain text; give a file, or an item, {...}"),
        (FieldNames({"text": "t"}), "b", (), "--second: own reads one text; leave it out"),
        (FieldNames({"text": "t", "second": "u"}), None, ("u",),
         "own reads two texts; give the second, its u, by --second"),
        (FieldNames({"text": "t"}), None, ("u",),
         "own reads more than a text, its u, too; give a file, or an item, {...}"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_whole_item_is_refused(names, second, needed, says):
    assert refusal(lambda: item_of_text("a b", second, Fields(*needed), names, "own")) == says


@pytest.mark.parametrize(
    ("prediction", "said"),
    [
        ({"tags": ["O", "B-X"], "label": 1}, "a\tO\nb\tB-X"),
        ({"label": "x", "probabilities": {"x": 0.25, "y": 0.7496, "z": 0.0004}}, "y\t75.0 %\nx\t25.0 %\nz\t0.0 %"),
        ({"id": 1, "answer": "here", "text": "t"}, "here"),
        ({"answer": ""}, "(no answer)"),
        ({"text": "a summary", "label": 1}, "a summary"),
        ({"label": 2.5}, "2.5"),
        ({"label": 0}, "0"),
        ({"chains": ["é"]}, '{"chains": ["é"]}'),
    ],
)
def test_a_prediction_is_said_in_words(prediction, said):
    assert in_words(prediction, " a b ") == said
    with pytest.raises(ValueError):
        in_words({"tags": ["O"]}, "a b")


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("rte", {"text": "a", "label": ""}),
        ("tagging", {"words": "a b", "tags": " "}),
        ("texts", {"source": "a", "target": ""}),
        ("choice", {"context": "a", "label": None}),
        ("span", {"question": "a", "context": "b", "answers": ""}),
    ],
)
def test_labels_and_targets_may_be_empty(task, fields):
    """A file without labels has their column all the same, and --skip-empty leaves no row of it out."""
    for words in ([], ["--skip-empty"]):
        args = make_parser("predict").parse_args(["predict", task, "a.csv", "--model", "m", *words])
        assert _names(args, task_named(task)).renamed(fields) == fields
    with pytest.raises(EmptyField):
        _names(args, task_named(task)).renamed(dict.fromkeys(fields, ""))
