"""What -q and -v do to standard error within a command."""

import logging
import os
import sys
from contextlib import contextmanager

import pytest

from unified.cli.loudness import loudness
from unified.errors import UnifiedError


@contextmanager
def new_logging(monkeypatch):
    """The root logger without handlers and the library's without a level, as in a new process."""
    library = logging.getLogger("unified")
    before = library.level
    with monkeypatch.context() as changes:
        changes.setattr(logging.getLogger(), "handlers", [])
        library.setLevel(logging.NOTSET)
        try:
            yield
        finally:
            library.setLevel(before)


def test_quiet_drops_messages_of_this_process_alone(capfd):
    with loudness(quiet=True, verbose=False):
        print("dropped", file=sys.stderr)
        print("a result")
        os.write(2, b"of a child\n")
    print("after", file=sys.stderr)
    assert capfd.readouterr() == ("a result\n", "of a child\nafter\n")


def test_by_default_nothing_is_dropped_and_no_log_is_shown(capfd, monkeypatch):
    with new_logging(monkeypatch), loudness(quiet=False, verbose=False):
        print("a note", file=sys.stderr)
        logging.getLogger("unified.x").info("a log")
    assert capfd.readouterr().err == "a note\n"


def test_verbose_shows_the_librarys_log_from_info_on(capsys, monkeypatch):
    with new_logging(monkeypatch), loudness(quiet=False, verbose=True):
        logging.getLogger("unified.x").info("shown")
        logging.getLogger("unified.x").debug("too much")
        logging.getLogger("torch").info("another library's")
        print("a note", file=sys.stderr)
    assert capsys.readouterr().err == "INFO unified.x: shown\na note\n"


def test_both_at_once_are_refused_before_the_block(capsys):
    with pytest.raises(UnifiedError) as refused, loudness(quiet=True, verbose=True):
        raise AssertionError("entered")
    assert str(refused.value) == "-q prints less and -v prints more; give one of them"


@pytest.mark.parametrize("quiet", [False, True])
def test_an_error_within_the_block_is_raised_and_can_be_printed_behind_it(capsys, quiet):
    with pytest.raises(KeyError, match="within"), loudness(quiet, verbose=False):
        raise KeyError("within")
    print("error", file=sys.stderr)
    assert capsys.readouterr().err == "error\n"
