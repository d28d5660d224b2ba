"""Values of steps with a special meaning."""

from __future__ import annotations

#: The step of what is given: shown from the start.
GIVEN = 0
#: ``key_start`` and ``key_stop`` of a key that nobody sees, such as padding.
HIDDEN_START, HIDDEN_STOP = 2**31 - 1, -(2**31)
#: ``query_step`` of padding: a step at which nothing is visible.
NOWHERE = 2**31 - 1
#: ``AttentionMask.query_key`` of a query that is no key itself, as in a query stream.
NO_KEY = -1
#: The number of the document of what lies in none, such as padding.
NO_DOCUMENT = -1
