"""Refusals end a command with one line on standard error and status 1, without a traceback."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from unified.arguments import Range
from unified.errors import UnifiedError


def refusal(message: object) -> SystemExit:
    """The exception to raise; it passes through fairseq's ``except Exception`` clauses."""
    return SystemExit(f"unified_lm: error: {message}")


@contextmanager
def refusing() -> Iterator[None]:
    """Turn a :class:`UnifiedError` into a refusal; serves as a decorator too.

    Where code of the user's own has failed, its traceback is printed before.
    """
    try:
        yield
    except UnifiedError as error:
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        raise refusal(error) from None


def require_in(allowed: Range, option: str, value: float) -> None:
    """Refuse a number that is not finite or out of its range.

    Raises:
        UnifiedError: names the option, what it must be and what it is.
    """
    wrong = allowed.misfit(value)
    if wrong is not None:
        raise UnifiedError(f"{option} must be {wrong}, got {value}")
