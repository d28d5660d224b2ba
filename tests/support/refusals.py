"""The message with which the library refuses an input."""

import pytest

from unified.errors import UnifiedError


def refused(function, *arguments, **options) -> str:
    """The whole message of the :class:`UnifiedError` that a call must raise, however long it is."""
    with pytest.raises(UnifiedError) as raised:
        function(*arguments, **options)
    return raised.value.details
