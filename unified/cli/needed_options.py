"""Options that have no effect without another one."""

from __future__ import annotations

from collections.abc import Mapping

from unified.errors import UnifiedError


def require_with(needed: str, value: object, others: Mapping[str, object]) -> None:
    """Refuse options that are given without the one that they need.

    Args:
        needed: the option without which the others have no effect, such as ``--output``.
        value: its value; None or False where it is not given.
        others: the values of the others by option, likewise.

    Raises:
        UnifiedError: names the first of the others that is given, and ``needed``.
    """
    if _is_given(value):
        return
    for option, other in others.items():
        if _is_given(other):
            raise UnifiedError(f"{option} has no effect without {needed}; add {needed}, or leave {option} out")


def _is_given(value: object) -> bool:
    return value is not None and value is not False
