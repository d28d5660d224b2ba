"""Finding the files of a data set's splits in a folder, and the checks that all readers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from unified.errors import UnifiedError
from unified.files.json_files import Entries
from unified.tasks.heads.items import Item

#: Names of the files that hold a split together, and others that may instead.
Alternatives = tuple[tuple[str, ...], ...]

_COMPRESSIONS = ("", ".gz", ".xz", ".zst")
_NEEDED = ("train", "valid")
_Record = TypeVar("_Record")
_Item = TypeVar("_Item")
_Question = TypeVar("_Question", bound=Item)


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
        whole = next((own for own in paths if None not in own), None)
        if whole is not None:
            found[split] = [path for path in whole if path is not None]
        elif split in _NEEDED:
            names = ", or ".join(" and ".join(names) for names in alternatives)
            raise UnifiedError(f"{folder}: no {names} for the {split} split")
    return found


def read_splits(
    files: Mapping[str, Alternatives], read: Callable[[Path], list[_Record]], folder: Path
) -> dict[str, list[_Record]]:
    """Items of the splits that are there, each of one file or folder, of which ``read`` makes items.

    Raises:
        UnifiedError: as :func:`split_files` and ``read``.
    """
    return {split: read(path) for split, (path,) in split_files(folder, files).items()}


def matching_files(folder: Path, pattern: str) -> list[Path]:
    """Files of a folder that hold a split together, by name; not those ``.partial`` ones that a broken run has left.

    Raises:
        UnifiedError: there is none.
    """
    found = sorted(path for path in folder.glob(pattern) if path.suffix != ".partial")
    if not found:
        raise UnifiedError(f"{folder}: no file {pattern}")
    return found


def read_together(
    paths: Sequence[Path], read: Callable[[Path], Sequence[_Record]], ids: Callable[[_Record], Iterable[str]]
) -> list[_Record]:
    """Items of several files, one after another.

    Args:
        read: reads the records of a file, such as paragraphs; it refuses ids that the file itself repeats.
        ids: gives the ids of the questions of a record.

    Raises:
        UnifiedError: two files have a question in common, as a file and its compressed copy do: it would be learnt and
            scored twice.
    """
    records: list[_Record] = []
    file_of: dict[str, Path] = {}
    for path in paths:
        own = read(path)
        names = [name for record in own for name in ids(record)]
        repeated = next((name for name in names if name in file_of), None)
        if repeated is not None:
            raise UnifiedError(
                f"{path}: question {repeated!r} is in {file_of[repeated].name}, too; both files belong to the same "
                "split, keep one of them in the folder"
            )
        file_of |= dict.fromkeys(names, path)
        records += own
    return records


def _compressed(path: Path) -> Path | None:
    names = (path.with_name(path.name + suffix) for suffix in _COMPRESSIONS)
    return next((name for name in names if name.exists()), None)


def checked(items: list[_Item], entries: Entries, what: str) -> list[_Item]:
    """The items of a file, once nothing in it is wrong.

    Args:
        what: an item is called in messages.

    Raises:
        UnifiedError: entries are wrong, or there is no item.
    """
    entries.check()
    if not items:
        raise UnifiedError(f"{entries.path}: holds no {what}")
    return items


def split_questions(
    folder: Path, patterns: Mapping[str, str], items: Callable[[Path], list[_Question]]
) -> dict[str, list[_Question]]:
    """Items of files whose names match the pattern of a split; no two files of one may have a question in common."""
    files = {split: matching_files(folder, pattern) for split, pattern in patterns.items()}
    return {split: read_together(paths, items, lambda item: (item.id,)) for split, paths in files.items()}
