"""What the library says when it refuses something."""

from collections.abc import Callable
from typing import Any

import pytest

from unified.errors import UnifiedError


def refused(function: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    """Calls a function, which must refuse its arguments; returns all that the refusal says, however long."""
    with pytest.raises(UnifiedError) as raised:
        function(*arguments, **named)
    return raised.value.details
