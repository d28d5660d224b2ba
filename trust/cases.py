"""A campaign is a list of cases; a case works in a folder, raises `Broken` where a promise is broken, else counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class Broken(Exception):
    """A promise of the library does not hold; the message says which, and with what."""


@dataclass(frozen=True)
class Case:
    """One test of a promise.

    Attributes:
        name: within its campaign; says what is done, seed included, so that the case can be repeated by it.
        check: takes an empty folder to work in; returns what it counted, such as {"kills": 3}. The counts of all
            cases of a campaign are summed.
    """

    name: str
    check: Callable[[Path], dict[str, int]]


#: Gives the cases of a campaign, of the full set or of the sample, by a seed.
Campaign = Callable[[bool, int], list[Case]]


def require(holds: bool, message: str) -> None:
    """Raises `Broken` unless ``holds``."""
    if not holds:
        raise Broken(message)
