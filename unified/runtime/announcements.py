"""Log messages that are shown only once."""

from __future__ import annotations

import logging
from functools import cache


@cache
def log_once(logger: logging.Logger, note: str) -> None:
    """Logs a note at level INFO, unless this process has logged it before; ``log_once.cache_clear()`` forgets that."""
    logger.info(note)
