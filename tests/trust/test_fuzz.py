"""A slice of the campaigns of damaged files and of bombs, and what they call broken."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from trust.bombs import BOMBS, explode
from trust.cases import Broken
from trust.fuzz import attack, equal
from trust.fuzzing.mutators import BYTES
from trust.fuzzing.reader import Reader, Refused, sample_file
from trust.fuzzing.readers import READERS
from unified.errors import UnifiedError

SLICE = ("rows of jsonl", "rows of csv", "SQuAD", "results.json", "run.yaml of pretrain", "dict.txt", "--head",
         "--objectives", "kept annotations", "index of tokens")  # fmt: skip


@pytest.mark.parametrize("name", SLICE)
def test_damaged_files_are_refused_in_a_line_or_read_rightly(name, tmp_path):
    reader = next(reader for reader in READERS if reader.name == name)
    assert attack(reader, range(25), tmp_path)["inputs"] == 25


@pytest.mark.parametrize("number", [638, 1656])
def test_a_column_that_ends_early_and_a_text_that_is_no_utf8_are_refused(number, tmp_path):
    """Damage of Parquet that was once read as a file without rows, and as a traceback."""
    reader = next(reader for reader in READERS if reader.name == "rows of parquet")
    assert attack(reader, range(number, number + 1), tmp_path)["refused"] == 1


@pytest.mark.parametrize(
    ("what", "separator"), [("columns", b","), ("empty names of columns", b","), ("empty lists", b"],[")]
)
def test_bombs_are_as_large_as_they_say(what, separator, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for bomb in BOMBS:
        said = re.fullmatch(rf"rows: ([0-9.]+) million {what}", bomb.name)
        if said:
            bomb.make()
            first = (tmp_path / bomb.file).read_bytes().partition(b"\n")[0]
            assert first.count(separator) + 1 == pytest.approx(1e6 * float(said[1]), abs=1)
            return
    raise AssertionError(what)


@pytest.mark.parametrize("name", ["rows: 9 million brackets", "run.yaml: a billion laughs"])
def test_bombs_take_little(name, tmp_path):
    assert explode(next(bomb for bomb in BOMBS if bomb.name == name), tmp_path)["bombs"] == 1


def broken(tmp_path: Path, read, reference=None, seconds=60.0) -> str:
    """What the campaign says of a reader that reads its sample well, and all else by `read`."""

    def read_all() -> object:
        content = Path("a.txt").read_bytes()
        return "sample" if content == b"sample" else read(content)

    wanted = None if reference is None else lambda data: "sample" if data == b"sample" else reference(data)
    reader = Reader("a test", "a.txt", sample_file("a.txt", b"sample"), read_all, BYTES, wanted)
    with pytest.raises(Broken) as caught:
        attack(reader, range(20), tmp_path, seconds)
    return str(caught.value)


def refuse(message: str):
    def read(content: bytes) -> object:
        raise UnifiedError(message)

    return read


def test_what_is_broken_is_said(tmp_path):
    assert "KeyError" in broken(tmp_path, lambda content: {}["x"])
    assert "a refusal that does not name a.txt" in broken(tmp_path, refuse("wrong"))
    assert "another content" in broken(tmp_path, lambda content: 1, lambda data: 2)

    def refused(data: bytes) -> object:
        raise Refused("no such form")

    assert "the reference refuses it" in broken(tmp_path, lambda content: 1, refused)
    assert "ended by a signal" in broken(tmp_path, lambda content: os.kill(os.getpid(), signal.SIGSEGV))
    assert "at input" in broken(tmp_path, lambda content: os.kill(os.getpid(), signal.SIGKILL))


def test_an_input_may_take_so_much_of_a_processor_and_ten_times_as_much_of_the_clock(tmp_path):
    def busy(content: bytes) -> None:
        while True:
            pass

    assert "more than 0.01 seconds" in broken(tmp_path, busy, seconds=0.01)
    assert "more than 0.01 seconds" in broken(tmp_path, lambda content: time.sleep(60), seconds=0.01)
    assert "another content" in broken(tmp_path, lambda content: time.sleep(0.04), lambda data: 1, seconds=0.01)


def test_inputs_of_a_number_are_the_same_again():
    reader = READERS[0]
    sample = json.dumps({"a": [1, 2]}).encode()
    first = [reader.mutated(sample, number) for number in range(30)]
    assert first == [reader.mutated(sample, number) for number in range(30)] and len(set(first)) > 20


def test_contents_are_compared_strictly():
    assert equal({"a": [1, float("nan")]}, {"a": [1, float("nan")]})
    assert not equal({"a": 1}, {"a": True}) and not equal({"a": 1, "b": 2}, {"b": 2, "a": 1}) and not equal([1], (1,))
