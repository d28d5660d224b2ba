"""What `unified score` is made of: one module for each family of scores.

Each has ``add_kinds(kinds)``, which adds a parser for each kind of score. Its default ``score`` makes a dict for JSON
of the options; its option ``show``, where there is one, makes what is printed of that dict instead of the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unified.errors import UnifiedError


@contextmanager
def naming(*files: str) -> Iterator[None]:
    """Put the names of the files before a refusal that came of their contents together."""
    try:
        yield
    except UnifiedError as error:
        raise UnifiedError(f"{', '.join(files)}: {error}") from None
