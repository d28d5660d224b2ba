"""Locks that keep two commands from writing into one place; the system frees those of a command that is killed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unified.errors import UnifiedError
from unified.files.whole import resolved

#: Name of the file that is locked in the folder of a training.
TRAINING = "training.lock"
_held: set[int] = set()  # descriptors of the files that this process has locked


@contextmanager
def locked_file(file: Path, owner: Path, removed: bool = False) -> Iterator[None]:
    """Lock a file for a block; the file is made if it is not there.

    Args:
        owner: what a user knows, of which the file is a part.
        removed: whether the file goes when the block ends.

    Raises:
        UnifiedError: another command has locked it, or it cannot be written.
    """
    descriptor = _locked(file, owner)
    _held.add(descriptor)
    try:
        yield
    finally:
        if removed:
            file.unlink(missing_ok=True)
        _held.remove(descriptor)
        os.close(descriptor)


@contextmanager
def locked_training(folder: Path) -> Iterator[None]:
    """Lock the folder of a training for a block; the folder is made if it is not there.

    Raises:
        UnifiedError: another training writes into the folder, or nothing can be written there.
    """
    _make(folder)
    with locked_file(folder / TRAINING, folder, removed=True):
        yield


@contextmanager
def locked_model(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Lock the folder of a model for a block, by a file beside it, because a saved model is a new folder.

    Args:
        folder: None where the model is not saved, and nothing is locked.

    Raises:
        UnifiedError: another command writes into the folder, or nothing can be written beside it.
    """
    if folder is None:
        yield
        return
    model = resolved(folder)
    _make(model.parent)
    with locked_file(model.with_name(f".{model.name}.lock"), model, removed=True):
        yield


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnifiedError(f"{folder}: {error.strerror}") from None


def _locked(file: Path, owner: Path) -> int:
    """The descriptor of a locked file."""
    while True:
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UnifiedError(f"{file}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if file.exists() and os.path.samestat(os.fstat(descriptor), file.stat()):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise UnifiedError(f"{owner}: a command is at work on it; wait for its end") from None
        os.close(descriptor)  # the command before has just taken the file away


def _release() -> None:
    """Gives the locks up in a forked process, which would keep them after this one is killed."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_release)
