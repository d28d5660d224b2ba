"""Has hydra compose fairseq's configuration in half the time; nothing here changes what is composed.

fairseq hands each of its 290 options to hydra as a text, and hydra reads, checks and sets them one after another.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from argparse import Namespace
from functools import cache


@cache
def install() -> None:
    """Make hydra quicker in this process, and in those that it forks."""
    import fairseq.dataclass.utils as composing
    import hydra._internal.config_repository
    from hydra.core.override_parser.overrides_parser import OverridesParser

    # Most texts are the same in every command, and hydra reads each by a grammar.
    parsed = cache(OverridesParser.create().parse_rule)
    OverridesParser.parse_rule = lambda self, text, rule: parsed(text, rule)
    # hydra asks who has called it. Python would look for the module of each caller among all that are imported.
    inspect.stack = _stack
    # It copies all that it knows of models and tasks before it looks for further folders, which nobody names here.
    hydra._internal.config_repository.copy = _NoCopies
    # Most of the options have the value that the configuration has without them.
    idle, overrides_of = texts_without_effect(), composing.override_module_args

    def fewer_overrides(arguments):
        overrides, deleted = overrides_of(arguments)
        return [text for text in overrides if text not in idle], deleted

    composing.override_module_args = fewer_overrides


@cache
def texts_without_effect() -> frozenset[str]:
    """Texts for hydra that set a field of fairseq's own groups, such as `common`, to its default."""
    from fairseq.dataclass.utils import override_module_args

    texts, _ = override_module_args(Namespace())
    plain, overridden = compose([]), compose(texts)

    def alike(text: str) -> bool:
        group, field = text.partition("=")[0].split(".")
        return repr(plain[group][field]) == repr(overridden[group][field])  # 1, 1.0 and True are equal, and not alike

    return frozenset(filter(alike, texts))


def compose(overrides: list[str]) -> dict:
    """fairseq's configuration as hydra composes it."""
    import hydra
    from omegaconf import OmegaConf

    with warnings.catch_warnings(action="ignore"):
        with hydra.initialize_config_module("fairseq.config", version_base="1.1"):
            return OmegaConf.to_container(hydra.compose("config", overrides=overrides))


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
