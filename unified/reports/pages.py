"""Reports as HTML: Jinja templates that share one page.

A page is one file without scripts, which loads nothing from outside and is readable on a phone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unified.errors import UnifiedError

#: `page.html.j2`, which the others extend, and macros for charts and tables.
TEMPLATES = Path(__file__).parent / "templates"


def render(template: Path, **values: Any) -> str:
    """Fill in a template.

    Args:
        template: a file; it may extend and import those of :data:`TEMPLATES`.
        values: what the template names. Texts are escaped, except those that are marked ``| safe``; a name that is
            not given is an error.

    Raises:
        UnifiedError: Jinja is not installed.
    """
    try:
        import jinja2
    except ImportError:
        raise UnifiedError(
            "a report needs the library jinja2; install it with: pip install '.[plot]' in the library's folder"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template.name).render(values)
