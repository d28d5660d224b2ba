"""Standard input that holds what a test gives."""

from __future__ import annotations

import io


def holding(content: str | bytes) -> io.TextIOWrapper:
    """A stream like ``sys.stdin``, in an encoding of the locale that is not to be read by."""
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    return io.TextIOWrapper(io.BytesIO(data), encoding="latin-1")
