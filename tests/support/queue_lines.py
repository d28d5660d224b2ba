"""Lines of results of the queue, without a run."""

from __future__ import annotations

from typing import Any


def queue_line(name: str, table: str, recipe: str, **fields: Any) -> dict[str, Any]:
    """A line whose other fields say nothing in particular."""
    return {
        "name": name,
        "table": table,
        "recipe": recipe,
        **dict.fromkeys(("settings", "seed", "commands", "seconds", "processor_seconds", "repeats")),
        "figures": {},
        "outcomes": {},
        "date": "2026-01-02",
        "commits": ["0" * 40],
        "machine": {"processor": "P", "threads": 1},
        "versions": {"torch": "2"},
        **fields,
    }
