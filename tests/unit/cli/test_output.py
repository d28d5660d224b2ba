"""What goes to standard output where it is to be JSON and nothing else."""

import os
import sys

from unified.cli.output import standard_output_for_json


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
