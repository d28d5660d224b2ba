"""Refusals of functions of the library in the words of a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: A value as ``repr`` shows it, but no apostrophe within or behind a word.
_QUOTED = r"(?<!\w)(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?!\w)"


def with_options(refusal: str, options: Mapping[str, str]) -> str:
    """A refusal with options in place of the arguments that it names; what is quoted stays as it is.

    Args:
        refusal: the message.
        options: names of options by those of arguments, such as ``{"path": "--output"}``.
    """
    names = "|".join(map(re.escape, options))
    return re.sub(rf"{_QUOTED}|(?<![\w-])({names})(?![\w-])", lambda found: options.get(found[0], found[0]), refusal)
