"""Has hydra compose fairseq's configuration in half the time; nothing here changes what is composed.

fairseq hands each of its 290 options to hydra as a text.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache


@cache
def install() -> None:
    """Make hydra quicker in this process, and in those that it forks."""
    import hydra._internal.config_repository
    from hydra.core.override_parser.overrides_parser import OverridesParser

    # Most texts are the same in every command, and hydra reads each by a grammar.
    parsed = cache(OverridesParser.create().parse_rule)
    OverridesParser.parse_rule = lambda self, text, rule: parsed(text, rule)
    # hydra asks who has called it. Python would look for the module of each caller among all that are imported.
    inspect.stack = _stack
    # It copies all that it knows of models and tasks before it looks for further folders, which nobody names here.
    hydra._internal.config_repository.copy = _NoCopies


def _stack(context: int = 1) -> list[inspect.FrameInfo]:
    """The callers as `inspect.stack` gives them, without their lines of source."""
    frame, callers = sys._getframe(1), []
    while frame:
        code = frame.f_code
        callers.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back
    return callers


class _NoCopies:
    """Stands for the module `copy` where nobody changes the original."""

    @staticmethod
    def deepcopy(original):
        return original
