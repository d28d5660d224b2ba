"""Values that mean "none" in the fields of a mask; no field holds less than -1."""

from __future__ import annotations

#: Rank of what is shown from the start.
GIVEN = -1
#: Document of what is no text: pads see each other, text and pads never do.
PADDING = -1
#: ``AttentionMask.query_key`` of a query that is no key itself, as in a query stream.
NO_KEY = -1
