"""SHA-256 of files and data sets, by which a command knows what it read before."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from unified.files.rows import is_hub, read_rows


def file_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file, hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hashes(files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of each file, by its name; files of one name are numbered."""
    found: dict[str, str] = {}
    for path in files:
        found[path.name if path.name not in found else f"{path.name} ({len(found)})"] = file_hash(path)
    return found


def data_hashes(names: Iterable[str | Path]) -> dict[str, str]:
    """SHA-256 of each file of data, see :func:`hashes`, and by its whole name of the rows of a data set of the hub."""
    paths = list(names)
    found = hashes(Path(path) for path in paths if not is_hub(path))
    for name in map(str, filter(is_hub, paths)):
        digest = hashlib.sha256()
        for row in read_rows(name):
            digest.update(repr(sorted(row.fields.items())).encode())
        found[name] = digest.hexdigest()
    return found
