"""What integration tests share: the commands that a command of theirs starts are forked from a prepared Python."""

import sys

import pytest

from tests.support.prepared_python import interpreter
from tests.support.quick_fairseq import import_fairseq

import_fairseq()  # before the tests, most of which do


@pytest.fixture(autouse=True)
def prepared_commands(monkeypatch):
    """Tests that want a fresh Python name `prepared_python.FRESH`."""
    monkeypatch.setattr(sys, "executable", interpreter())
