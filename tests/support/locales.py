"""The locale of a process, by which files are encoded that are opened without an encoding."""

from __future__ import annotations

import locale
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def plain_locale() -> Iterator[None]:
    """A ``with`` block in the locale C, in which files without an encoding are ASCII (but for Python's UTF-8 mode)."""
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    try:
        yield
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
