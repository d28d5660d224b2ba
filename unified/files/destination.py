"""A folder that appears under its name only when it is complete, and the manifest that says what is in it."""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.files.hashes import file_hash
from unified.files.json_text import read_object
from unified.files.shapes import Each, misfit
from unified.files.whole import naming_output, resolved, to_disk, write_whole_text
from unified.runtime.progress import Progress

MANIFEST = "manifest.json"
#: Advice where a folder is not empty, if the command has no option to replace it.
ANOTHER = "name a new folder"


@contextmanager
def new_folder(destination: str | Path, overwrite: bool, advice: str = ANOTHER) -> Iterator[Path]:
    """A temporary folder beside ``destination``, renamed to it when the block ends well, removed when it does not.

    Where something was written into ``destination`` during the block, both folders stay.

    Args:
        overwrite: replace a folder whose manifest lists all that it holds.
        advice: what a user should do where the folder is not empty, in the words of the command that was called.

    Raises:
        UnifiedError: ``destination`` is there and not empty, before the block or after it, and either ``overwrite`` is
            False or it holds anything that its manifest does not list; or it is a link that leads back to itself.
        OSError: a file in the folder cannot be written; its ``filename`` is the path below ``destination``.
    """
    called, destination = Path(destination), resolved(destination)
    check_destination(called, overwrite, advice)
    with naming_output(called):
        destination.parent.mkdir(parents=True, exist_ok=True)
    for left in sorted(destination.parent.glob(f".{glob.escape(destination.name)}.*.partial")):
        # It may be at work on another machine, so it is not ours to remove.
        Progress.say(f"note: {left} was left by a run that was killed, unless one is at work; remove it by hand")
    with naming_output(called):
        partial = _new_partial(destination)
    finished = False
    try:
        yield partial
        _sync(partial)
        finished = True
        _check_again(called, overwrite, advice, partial)
        _replace(partial, destination)
    except OSError as error:  # the user knows no file of the temporary folder
        if isinstance(error.filename, str) and Path(error.filename).is_relative_to(partial):
            error.filename = str(called / Path(error.filename).relative_to(partial))
        raise
    finally:
        if not finished:
            shutil.rmtree(partial, ignore_errors=True)


def _check_again(destination: Path, overwrite: bool, advice: str, partial: Path) -> None:
    """The refusals once more, as others may have written during the work, which stays."""
    try:
        check_destination(destination, overwrite, advice)
    except UnifiedError as problem:
        raise UnifiedError(f"{problem.details}; what was made is complete in {partial}, rename it") from None


def check_destination(destination: Path, overwrite: bool, advice: str = ANOTHER) -> None:
    """The refusals of :func:`new_folder`, to be had before any work."""
    require_place(destination, str(destination))
    if not destination.exists():
        return
    if not destination.is_dir():
        raise UnifiedError(f"{destination}: a file, where the new folder should be")
    names = _leaves(destination)
    if not names:
        return
    if not overwrite:
        raise UnifiedError(f"{destination}: not empty; {advice}")
    listed = _listed(destination)
    foreign = [name for name in names if name not in listed]
    if foreign:
        unlisted = f"{foreign[0]}, which {MANIFEST} there does not list"
        held = f"a {MANIFEST} that this library did not write" if foreign[0] == MANIFEST else unlisted
        raise UnifiedError(
            f"{destination}: holds {held}, so it will not be replaced; move it away or name another folder"
        )


def require_place(path: Path, of: str) -> None:
    """Refuse, before any work, a file or folder that cannot be made; of a symbolic link, what it leads to.

    Args:
        of: what the refusal begins with, in the words of the user.

    Raises:
        UnifiedError: it is a link that leads back to itself, or see :func:`require_folders`.
    """
    target = resolved(path)
    require_folders((target if path.is_symlink() else path).parent, of)


def require_folders(path: Path, of: str) -> None:
    """Refuse, before any work, a path at which no folder can be made, or into which the user may not write.

    Args:
        of: what the refusal begins with, in the words of the user.

    Raises:
        UnifiedError: a file stands where a folder should be, or the last folder of the path that is there may not be
            written into; names the one or the other.
    """
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    if not there.is_dir():
        raise UnifiedError(f"{of}: {there} is a file, where a folder should be")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UnifiedError(f"{of}: you may not write into {there.absolute()}")


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Write ``manifest.json``: ``content`` and the size and hash of every other file in ``folder``, at any depth."""
    outputs = {name: describe(folder / name) for name in _leaves(folder)}
    text = json.dumps({**content, "outputs": outputs}, indent=2, ensure_ascii=False)
    write_whole_text(folder / MANIFEST, text + "\n")


def manifest_outputs(folder: Path) -> dict[str, str]:
    """SHA-256 of each file that the manifest of a folder lists, by its path within the folder.

    Raises:
        UnifiedError: there is no manifest, or it is damaged.
    """
    path = folder / MANIFEST
    content = read_object(path)
    wrong = misfit(content, {"outputs": Each({"sha256": str})}, "")
    if wrong is not None:
        raise UnifiedError(f"{path}: damaged, {wrong}; make the folder anew")
    return {name: one["sha256"] for name, one in content["outputs"].items()}


def describe(path: str | Path) -> dict[str, int | str]:
    """Bytes and SHA-256 of a file."""
    return {"bytes": os.path.getsize(path), "sha256": file_hash(path)}


def _listed(folder: Path) -> set[str]:
    """The files that the manifest of a folder lists, and it; none where it is not one of this library's."""
    try:
        return {MANIFEST, *manifest_outputs(folder)}
    except UnifiedError:
        return set()


def _leaves(folder: Path) -> list[str]:
    """Files, links and empty folders at any depth, by their paths within ``folder``."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir() or not any(path.iterdir()))
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _sync(folder: Path) -> None:
    for name in _leaves(folder):
        with open(folder / name, "rb") as stream:
            to_disk(stream)


def _new_partial(destination: Path) -> Path:
    """A new folder for what becomes ``destination``.

    In containers the number of a process that was killed comes again, beside whose folder this one is another.
    """
    called, number = f".{destination.name}.{os.getpid()}", 1
    partial = destination.with_name(f"{called}.partial")
    while partial.exists() or partial.with_suffix(".old").exists():
        number += 1
        partial = destination.with_name(f"{called}.{number}.partial")
    partial.mkdir()
    return partial


def _replace(partial: Path, destination: Path) -> None:
    old = partial.with_suffix(".old")
    if destination.exists() and any(destination.iterdir()):
        os.rename(destination, old)
    os.rename(partial, destination)
    if old.exists():
        shutil.rmtree(old)
