"""What goes to standard output where it is to be JSON and nothing else."""

import argparse
import json
import math
import os
import sys
from pathlib import Path

import pytest

from unified.cli.output import add_json_argument, print_json, standard_output_for_json


def test_what_was_printed_before_stays_on_standard_output(monkeypatch, capfd):
    """A program's output waits in a buffer, which another may write out while standard output is JSON's."""
    with open(1, "w", closefd=False) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        print("before", end="")
        with standard_output_for_json():
            stdout.flush()
            os.write(1, b"inside ")
            print("here", end="", flush=True)
        print(" after", end="", flush=True)
    assert capfd.readouterr() == ("before after", "inside here")


def test_standard_output_is_given_back_and_nothing_stays_open_whatever_happens(capfd):
    """The next file that is opened gets the lowest number that is free."""
    first = os.dup(1)
    os.close(first)
    with pytest.raises(KeyError, match="within"), standard_output_for_json():
        raise KeyError("within")
    again = os.dup(1)
    os.close(again)
    print("behind", flush=True)
    os.write(1, b"and here\n")
    assert again == first and capfd.readouterr() == ("behind\nand here\n", "")


def test_an_object_has_its_letters_as_they_are_and_the_names_of_paths(capsys):
    print_json({"text": "één", "path": Path("a") / "b", "numbers": [1, None]})
    printed = capsys.readouterr().out
    assert printed == ('{\n  "text": "één",\n  "path": "a/b",\n  "numbers": [\n    1,\n    null\n  ]\n}\n')
    assert json.loads(printed)["path"] == "a/b"
    with pytest.raises(TypeError):
        print_json({"other": {1, 2}})


def test_numbers_that_json_lacks_are_null(capsys):
    print_json({"loss": math.nan, "of": [(math.inf, 1.5), {"a": -math.inf}], "kept": True})
    assert json.loads(capsys.readouterr().out) == {"loss": None, "of": [[None, 1.5], {"a": None}], "kept": True}


def test_the_option_is_a_switch():
    parser = argparse.ArgumentParser()
    add_json_argument(parser)
    assert [vars(parser.parse_args(words)) for words in ([], ["--json"])] == [{"json": False}, {"json": True}]
