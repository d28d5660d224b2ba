"""Types of argparse for numbers and names: a value out of range is refused with the name of the option."""

from __future__ import annotations

import argparse

from unified.training.settings import LARGEST_SEED

#: Most CPU threads: of ten times as many the system refuses some, which ends the process within PyTorch.
MOST_THREADS = 4096


def positive(text: str) -> int:
    """An integer of at least 1."""
    return _integer(text, 1)


def threads(text: str, least: int = 0) -> int:
    """A number of CPU threads, from ``least`` to :data:`MOST_THREADS`."""
    return _from_to(text, least, MOST_THREADS)


def several(text: str) -> int:
    """An integer of at least 2."""
    return _integer(text, 2)


def non_negative(text: str) -> int:
    """An integer of at least 0."""
    return _integer(text, 0)


def training_seed(text: str) -> int:
    """A seed of ``fairseq-train``."""
    return _from_to(text, 0, LARGEST_SEED)


def share(text: str) -> float:
    """A number from 0 to 1."""
    value = _number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got {text!r}")
    return value


def weight(text: str) -> float:
    """A finite number of at least 0."""
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text!r}")
    return value


def run_name(text: str) -> str:
    """The name of a run in tables of results: one line with something to see in it."""
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"must be a name in one line, got {text!r}")
    return text


def _integer(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be an integer of at least {least}, got {text!r}")
    return int(text)


def _from_to(text: str, least: int, most: int) -> int:
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"must be an integer from {least} to {most}, got {text!r}")
    return int(text)


def _number(text: str) -> float:
    """The number; one that is in no range where it is none."""
    try:
        return float(text)
    except ValueError:
        return -1.0
