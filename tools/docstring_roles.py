"""An extension of griffe, which reads docstrings for the site, for what our docstrings have and it does not know.

Roles of Sphinx become code: :func:`pack` becomes `pack`. Names that share a description (``key_start, key_stop: ...``)
lose the blanks between them, after which griffe would look for a type.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")

NAMES = re.compile(r"^ +\w+(?:, \w+)+(?=: )", re.MULTILINE)


class DocstringRoles(Extension):
    """Changes every docstring that is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring:
            text = ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = NAMES.sub(lambda match: match[0].replace(", ", ","), text)
