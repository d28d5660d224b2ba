"""An extension of griffe, which reads docstrings for the site: roles of Sphinx become code, :func:`pack` to `pack`."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")


class DocstringRoles(Extension):
    """Replaces the roles in every docstring that is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)
