"""A campaign is a list of cases; a case works in a folder, raises `Broken` where a promise is broken, else counts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
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


def hash_of(root: Path, folders: Iterable[str]) -> str:
    """Hash of all files in some folders of a project, but for compiled code and results."""
    digest = hashlib.sha256()
    paths = {path for folder in folders for path in (root / folder).rglob("*") if path.is_file()}
    for path in sorted(paths):
        name = path.relative_to(root).as_posix()
        if "__pycache__" not in name and not name.startswith("trust/results/"):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


#: Gives the cases of a campaign, of the full set or of the sample, by a seed.
Campaign = Callable[[bool, int], list[Case]]


def require(holds: bool, message: str) -> None:
    """Raises `Broken` unless ``holds``."""
    if not holds:
        raise Broken(message)
