"""Refusals end a command with one line on standard error and status 1, without a traceback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from unified.errors import UnifiedError

Result = TypeVar("Result")


def refusal(message: object) -> SystemExit:
    """The exception to raise; it passes through fairseq's ``except Exception`` clauses."""
    return SystemExit(f"unified_lm: error: {message}")


def refuses(function: Callable[..., Result]) -> Callable[..., Result]:
    """Turn a :class:`UnifiedError` of ``function`` into a refusal."""

    @functools.wraps(function)
    def wrapper(*arguments, **keywords) -> Result:
        try:
            return function(*arguments, **keywords)
        except UnifiedError as error:
            raise refusal(error) from None

    return wrapper
