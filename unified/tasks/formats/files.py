"""Which files of a folder hold the splits of a data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unified.errors import UnifiedError

#: Names of the files that hold a split together, and others that may instead.
Alternatives = tuple[tuple[str, ...], ...]

_COMPRESSIONS = ("", ".gz", ".xz", ".zst")
_NEEDED = ("train", "valid")


def split_files(folder: Path, files: Mapping[str, Alternatives]) -> dict[str, list[Path]]:
    """The files, or folders, of each split that is there; names may go on with ``.gz``, ``.xz`` or ``.zst``.

    Raises:
        UnifiedError: there is no such folder, or nothing for training or validation.
    """
    if not folder.is_dir():
        raise UnifiedError(f"{folder}: no such folder")
    found = {}
    for split, alternatives in files.items():
        paths = [[_compressed(folder / name) for name in names] for names in alternatives]
        whole = next((group for group in paths if None not in group), None)
        if whole is not None:
            found[split] = whole
        elif split in _NEEDED:
            names = ", or ".join(" and ".join(names) for names in alternatives)
            raise UnifiedError(f"{folder}: no {names} for the {split} split")
    return found


def read_splits(
    files: Mapping[str, Alternatives], read: Callable[[Path, bool], list], folder: Path, unlabelled: Sequence[str] = ()
) -> dict[str, list]:
    """Items of the splits that are there, each of one file or folder.

    Args:
        read: makes items of it, with labels or without.
        unlabelled: splits without labels.

    Raises:
        UnifiedError: as :func:`split_files` and ``read``.
    """
    return {split: read(path, split not in unlabelled) for split, (path,) in split_files(folder, files).items()}


def _compressed(path: Path) -> Path | None:
    names = (path.with_name(path.name + suffix) for suffix in _COMPRESSIONS)
    return next((name for name in names if name.exists()), None)
