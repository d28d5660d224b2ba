"""The amount that a command prints beside its results: ``-q`` and ``-v``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from unified.errors import UnifiedError


@contextmanager
def loudness(quiet: bool, verbose: bool) -> Iterator[None]:
    """A ``with`` block in which messages on standard error are dropped, or the library's log is shown there.

    Errors are raised, so that they are printed behind the block. Processes that the block starts keep standard error,
    where they say why they fail.

    Raises:
        UnifiedError: both are wanted.
    """
    if quiet and verbose:
        raise UnifiedError("-q prints less and -v prints more; give one of them")
    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        logging.getLogger("unified").setLevel(logging.INFO)
    if not quiet:
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        yield
