"""The vectors of a mask, for programs."""

from __future__ import annotations

from unified.masks import AttentionMask


def vectors_of(mask: AttentionMask) -> dict[str, list[int]]:
    """The three vectors of a mask by name."""
    return {
        "query_step": mask.query_step.tolist(),
        "key_start": mask.key_start.tolist(),
        "key_stop": mask.key_stop.tolist(),
    }
