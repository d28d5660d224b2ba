"""Checks of hyper-parameters that objectives share; each refusal names the objective, the field and the value."""

from __future__ import annotations

from numbers import Real
from typing import Protocol

from unified.errors import UnifiedError


class Named(Protocol):
    """Anything with a name to refuse it by, such as an objective."""

    @property
    def name(self) -> str:
        """The name under which losses are logged."""


class Replacing(Named, Protocol):
    """An objective that replaces hidden tokens: by [MASK], by random tokens, or not at all."""

    @property
    def mask_replace_share(self) -> float:
        """Share of the hidden tokens that become the mask symbol."""

    @property
    def random_replace_share(self) -> float:
        """Share of the hidden tokens that become a random symbol."""


def require_share(objective: Named, *names: str, zero: bool = True) -> None:
    """Refuse fields that are not numbers from 0 to 1; with ``zero=False`` 0 itself is refused too.

    Raises:
        UnifiedError: names the objective, the field and the value.
    """
    for name in names:
        value = getattr(objective, name)
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1 or (value == 0 and not zero):
            lowest = "from 0" if zero else "above 0 and at most"
            raise UnifiedError(f"{objective.name}: {name} must be a number {lowest} {'to ' * zero}1, got {value!r}")


def require_integer(objective: Named, name: str, minimum: int) -> None:
    """Refuse a field that is not a whole number of at least ``minimum``.

    Raises:
        UnifiedError: names the objective, the field and the value.
    """
    value = getattr(objective, name)
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise UnifiedError(f"{objective.name}: {name} must be a whole number of at least {minimum}, got {value!r}")


def require_flag(objective: Named, *names: str) -> None:
    """Refuse fields that are not True or False.

    Raises:
        UnifiedError: names the objective, the field and the value.
    """
    for name in names:
        value = getattr(objective, name)
        if not isinstance(value, bool):
            raise UnifiedError(f"{objective.name}: {name} must be True or False, got {value!r}")


def require_replacements(objective: Replacing) -> None:
    """Refuse shares of [MASK] and of random tokens that are no shares or add up to more than 1.

    Raises:
        UnifiedError: names the objective, the fields and the values.
    """
    require_share(objective, "mask_replace_share", "random_replace_share")
    # The slack admits sums such as 0.9 + 0.1 that floating point rounds up.
    if objective.mask_replace_share + objective.random_replace_share > 1 + 1e-9:
        raise UnifiedError(
            f"{objective.name}: mask_replace_share + random_replace_share must be at most 1, "
            f"got {objective.mask_replace_share} + {objective.random_replace_share}"
        )
