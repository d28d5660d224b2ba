"""The one exception that means "your input cannot be used", as opposed to "the library has a bug"."""

from __future__ import annotations

from collections.abc import Sequence


class UnifiedError(ValueError):
    """A refusal in one line: what arrived, what was needed, what to do about it.

    Command lines print the message without a traceback and exit with a non-zero status.
    """


#: Problems that a message names before it only counts.
SHOWN = 10


def first_few(problems: Sequence[str], shown: int = SHOWN) -> str:
    """The first ``shown`` of several problems in one line, and how many more there are."""
    more = f"; and {len(problems) - shown} more" if len(problems) > shown else ""
    return "; ".join(problems[:shown]) + more
