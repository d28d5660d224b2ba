"""How much a command says beside its results, ``-q`` and ``-v``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from unified.errors import UnifiedError

#: fairseq's programs read from it how much they log.
_FAIRSEQ_LEVEL = "LOGLEVEL"


@contextmanager
def loudness(quiet: bool, verbose: bool) -> Iterator[None]:
    """Within a ``with`` block, drops what this process says on standard error, or shows the library's log there.

    Errors are raised, so that they are printed behind the block. Processes that the block starts keep standard error,
    where they say why they fail; fairseq's log is cut to its warnings.

    Raises:
        UnifiedError: both are wanted.
    """
    if quiet and verbose:
        raise UnifiedError("-q prints less and -v prints more; give one of them")
    before = os.environ.get(_FAIRSEQ_LEVEL)
    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        logging.getLogger("unified").setLevel(logging.INFO)
    try:
        if not quiet:
            yield
            return
        os.environ[_FAIRSEQ_LEVEL] = "WARNING"
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
            yield
    finally:
        if quiet and before is None:
            del os.environ[_FAIRSEQ_LEVEL]
        elif before is not None:
            os.environ[_FAIRSEQ_LEVEL] = before
