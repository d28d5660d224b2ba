"""`unified convert`: which reader and which dictionary a command line asks for, and what it says of the outcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.support.commands import exit_status
from tests.support.task_folders import data_folder, language_model, tokenizer
from unified.checkpoints import load_checkpoint
from unified.checkpoints.conversion import Conversion
from unified.cli import main
from unified.conversions.formats import READERS
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError

OLD = tuple(f"o{i}" for i in range(9))
NEW = tuple(f"n{i}" for i in range(8))
ROWS = "core.transformer.embeddings.tokens.weight"


class Read:
    """Stands for a checkpoint of another library: notes how it was asked for, and leaves a tokenizer if it has one."""

    def __init__(self, told: Conversion, has_tokenizer: bool):
        self.told, self.has_tokenizer, self.asked = told, has_tokenizer, []

    def __call__(self, folder: Path, writes: str | None) -> Read:
        self.asked.append((folder, writes))
        return self

    def save(self, destination: Path) -> Conversion:
        destination.mkdir()
        if self.has_tokenizer:
            tokenizer().save(destination)
        return self.told


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Lets the reader of a format find what a test says, in a folder ``in`` of that format."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/config.json").write_text('{"model_type": "modernbert"}', encoding="utf-8")

    def so(format: str, has_tokenizer: bool = True, **told: tuple[str, ...]) -> Read:
        found = Read(Conversion(**told), has_tokenizer)
        monkeypatch.setitem(READERS, format, found)
        return found

    return so


def test_the_files_of_a_folder_say_its_format_where_no_option_does(read, capsys):
    named, by_files = read("xlnet"), read("modernbert")
    assert exit_status("convert", "in", "a") == 0
    assert (named.asked, by_files.asked) == ([], [(Path("in"), None)])
    assert exit_status("convert", "--from", "xlnet", "--writes", "permutation", "in", "b") == 0
    assert (named.asked, by_files.asked) == ([(Path("in"), "permutation")], [(Path("in"), None)])
    assert capsys.readouterr() == ("wrote a\nwrote b\n", "")


@pytest.mark.parametrize(
    ("has_tokenizer", "told", "lines"),
    [
        (True, {}, ["wrote out"]),
        (False, {}, ["wrote out, without a tokenizer"]),
        (True, {"new": ("a", "b")}, ["not in in, drawn at random when loaded: a, b", "wrote out"]),
        (True, {"left_out": ("c", "d")}, ["left out, no place in out: c, d", "wrote out"]),
        (False, {"remarks": ("one", "two")}, ["in: one", "in: two", "wrote out, without a tokenizer"]),
        (
            True,
            {"new": ("a",), "left_out": ("c",), "remarks": ("one",)},
            ["not in in, drawn at random when loaded: a", "in: one", "left out, no place in out: c", "wrote out"],
        ),
    ],
)
def test_what_became_of_a_checkpoint_is_said(read, capsys, has_tokenizer, told, lines):
    read("modernbert", has_tokenizer, **told)
    assert exit_status("convert", "in", "out") == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_programs_are_told_the_same(read, capsys):
    told = {"new": ("a",), "left_out": ("c", "d"), "remarks": ()}
    for name, has_tokenizer in (("out", True), ("other", False)):
        read("modernbert", has_tokenizer, **told)
        assert exit_status("convert", "in", name, "--json") == 0
        assert json.loads(capsys.readouterr().out) == {
            "output": name, "tokenizer": has_tokenizer, "new": ["a"], "left_out": ["c", "d"], "remarks": [],
        }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("in out --writes next --vocabulary d",
         "--writes says how an imported model writes; with --vocabulary leave it out"),
        ("in out --seed 0", "--seed is that of --vocabulary's new rows; leave it out"),
        ("here/none out", "here/none: no such folder"),
        ("file.pt out", "file.pt: a file; give the folder that the model is in"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_before_anything_is_made(read, line, says):
    reader = read("modernbert")
    Path("here").mkdir()
    Path("file.pt").touch()
    with pytest.raises(UnifiedError) as refused:
        exit_status("convert", *line.split())
    assert str(refused.value) == says
    assert reader.asked == [] and not Path("out").exists()


@pytest.mark.parametrize("options", [(), ("--from", "bert")])
def test_a_refusal_of_a_reader_names_the_folder(read, monkeypatch, options):
    def refuses(folder: Path, writes: str | None) -> None:
        raise UnifiedError("config.json: no vocab_size")

    for format in ("modernbert", "bert"):
        monkeypatch.setitem(READERS, format, refuses)
    Path("in").rename("theirs")
    with pytest.raises(UnifiedError) as refused:
        exit_status("convert", *options, "theirs", "out")
    assert str(refused.value) == "theirs: config.json: no vocab_size"


@pytest.fixture
def model(tmp_path, monkeypatch) -> Path:
    """A model with nine symbols that the folder ``data`` lacks, which has eight others."""
    monkeypatch.chdir(tmp_path)
    language_model(Path("m"), *OLD)
    data_folder(Path("data"), {}, *NEW)
    return tmp_path


def test_a_model_over_another_dictionary_says_what_became_of_the_symbols(model, capsys):
    assert exit_status("convert", "--vocabulary", "data", "m", "out") == 0
    old, new = (set(Vocabulary.load(Path(name) / "dict.txt").symbols) for name in ("m", "data"))
    assert (old - new, new - old) == (set(OLD), set(NEW))
    assert capsys.readouterr().out.splitlines() == [
        f"symbols kept: {len(old & new)}",
        "symbols new, drawn at random with seed 1 and written only once training has them as targets: 8 "
        "(n0 n1 n2 n3 n4 n5 n6 n7)",
        "symbols left out: 9 (o0 o1 o2 o3 o4 o5 o6 o7 ...)",
        "wrote out",
    ]
    assert exit_status("convert", "--vocabulary", "m", "m", "same", "--seed", "0") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"symbols kept: {len(old)}",
        "symbols new, drawn at random with seed 0 and written only once training has them as targets: 0",
        "symbols left out: 0",
        "wrote same",
    ]


def test_the_symbols_of_a_change_are_printed_for_programs(model, capsys):
    assert exit_status("convert", "--vocabulary", "data", "m", "out", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"output": "out", "tokenizer": True, "kept": found["kept"], "new": [*NEW], "left_out": [*OLD]}
    assert found["kept"] == [one for one in Vocabulary.load(Path("m/dict.txt")).symbols if one not in OLD]


def test_the_seed_draws_the_rows_of_new_symbols_and_is_1_by_default(model):
    rows = {}
    for name, options in (("none", []), ("0", ["--seed", "0"]), ("1", ["--seed", "1"])):
        assert main(["convert", "--vocabulary", "data", "m", name, *options]) == 0
        rows[name] = load_checkpoint(Path(name) / "checkpoint_last.pt")["model"][ROWS]
    assert torch.equal(rows["none"], rows["1"]) and not torch.equal(rows["none"], rows["0"])


@pytest.mark.parametrize(
    ("seed", "holds"), [(2**63 - 1, True), (2**63, False), (-(2**63), True), (-(2**63) - 1, False)]
)
def test_a_seed_has_64_bits(model, capsys, seed, holds):
    assert main(["convert", "--vocabulary", "data", "m", "out", "--seed", str(seed)]) == (0 if holds else 2)
    assert Path("out").exists() == holds
    if not holds:
        assert capsys.readouterr().err == (
            "unified convert: error: seed must be an integer of 64 bits, got an integer of more than 64 bits\n"
        )


def test_a_model_that_was_exported_comes_back(model, capsys):
    """By way of a folder of `transformers`, whose weights may have half the precision."""
    assert main(["export", "m", "there", "--dtype", "bfloat16"]) == 0
    capsys.readouterr()
    assert main(["convert", "there", "back"]) == 0
    assert capsys.readouterr().out == "wrote back\n"
    before, after = (load_checkpoint(Path(name) / "checkpoint_last.pt")["model"] for name in ("m", "back"))
    assert before.keys() == after.keys() and torch.equal(before[ROWS].bfloat16().float(), after[ROWS])
