"""Reading and writing checkpoint files."""

from __future__ import annotations

import argparse
import os
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from unified.errors import UnifiedError
from unified.files.archives import check_stored
from unified.files.whole import whole_file

#: Besides tensors and plain Python values, the one class that fairseq's checkpoints hold.
ALLOWED: list[Callable[..., Any]] = [argparse.Namespace]

#: First bytes of files of torch before 1.6: a pickled number.
_OLDER = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."

# What torch's restricted unpickler raises on damaged streams; each was met while damaging files at random.
_DAMAGE = (
    RuntimeError, EOFError, KeyError, IndexError, TypeError, ValueError, AttributeError, AssertionError, struct.error
)  # fmt: skip


def load_checkpoint(path: str | os.PathLike[str], older: bool = False, mapped: bool = False) -> dict[str, Any]:
    """The dictionary in ``path``, tensors on the CPU.

    Args:
        older: as in :func:`named_damage`.
        mapped: as in :func:`load_safely`.

    Raises:
        UnifiedError: as :func:`load_safely`; or the file holds something else.
    """
    content = load_safely(path, older, mapped)
    if not isinstance(content, dict):
        raise UnifiedError(f"{path}: expected a dictionary, got {type(content).__name__}; not a checkpoint")
    return content


def load_safely(path: str | os.PathLike[str], older: bool, mapped: bool = False) -> object:
    """The content of a file that torch saved, tensors on the CPU.

    Args:
        older: as in :func:`named_damage`.
        mapped: leave the values of tensors in the file, from which those that are looked at are read; for settings and
            shapes. A file in the format of torch before 1.6 cannot be mapped.

    Raises:
        UnifiedError: the file is missing, truncated or damaged, or holds anything but tensors, plain Python values and
            ``argparse.Namespace``; nothing in it is executed.
    """
    # torch's context manager forbids at its end what it allowed, also what somebody had allowed before.
    known = torch.serialization.get_safe_globals()
    new: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [one for one in ALLOWED if one not in known]
    with named_damage(path, older), torch.serialization.safe_globals(new):
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    return content


@contextmanager
def named_damage(path: str | os.PathLike[str], older: bool = False) -> Iterator[None]:
    """Names ``path`` in every error of a ``with`` block that reads it with torch's restricted unpickler.

    Args:
        older: whether the format of torch before 1.6 will do, in which many models are published; it has no checksums.

    Raises:
        UnifiedError: as :func:`load_safely`. Missing files and wrong checksums are found before the block.
    """
    path = Path(path)
    if not path.is_file():
        raise UnifiedError(f"{path}: no such checkpoint file")
    if not (older and _is_older(path)):
        check_stored(path, "a checkpoint")
    try:
        yield
    except pickle.UnpicklingError as error:
        raise UnifiedError(
            f"{path}: refused, because it holds more than tensors and plain values ({_culprit(error)}); "
            "nothing in it was executed"
        ) from None
    except _DAMAGE as error:
        raise UnifiedError(f"{path}: damaged, its content cannot be read ({type(error).__name__})") from None


def _is_older(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_OLDER)) == _OLDER


def _culprit(error: pickle.UnpicklingError) -> str:
    """The name or opcode that torch's long message is about."""
    lines = [line.strip() for line in str(error).splitlines()]
    named = [line for line in lines if "GLOBAL" in line or "Unsupported" in line]
    return (named or lines or ["unknown"])[0][:120]


def save(content: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write ``content`` to ``path`` so that a kill at any moment leaves the old file or the new one, never a part.

    Raises:
        OSError: the file cannot be written; its ``filename`` is ``path``.
    """
    try:
        with whole_file(Path(path)) as file:
            torch.save(content, file)
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):  # behind that of the system torch raises one of its own
            raise error.__context__ from None
        raise


def fingerprint(symbols: Sequence[str]) -> int:
    """Checksum of a dictionary's symbols in id order: dictionaries of one size need not be the same."""
    return zlib.crc32("\n".join(symbols).encode("utf-8"))
