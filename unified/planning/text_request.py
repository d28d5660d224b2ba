"""The texts that an objective requests, without the rest of the objective."""

from __future__ import annotations

from typing import Protocol


class TextRequest(Protocol):
    """The part of an objective that sources of texts read; :class:`unified.objectives.Objective` says more of each."""

    @property
    def segments(self) -> int:
        """1, or 2 where a text has a second segment."""
        ...

    @property
    def wants_random_second(self) -> bool:
        """True if half of the second segments come from other documents."""
        ...

    @property
    def both_directions(self) -> bool:
        """True if half of the texts are read backwards."""
        ...

    @property
    def annotations(self) -> tuple[str, ...]:
        """Kinds of annotated spans that texts bring along."""
        ...
