"""Put the parts of the interactive page together: docs/interactive.html, a single file that needs no network.

python docs/interactive/build.py [FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path

PARTS = Path(__file__).parent
PAGE = PARTS.parent / "interactive.html"
#: Computes; needs no page. The tests run these files in a JavaScript engine without a browser too.
LOGIC = ("masks.js", "tiles.js", "leaks.js", "intervals.js")
#: Draws, and answers what a reader does.
VIEWS = ("picture.js", "fields.js", "mask_view.js", "packing_view.js", "search_view.js", "training_view.js")


def page() -> str:
    """The whole page."""
    text = read("page.html")
    for mark, content in (
        ("/* STYLE */", read("style.css")),
        ("/* RECORDINGS */", f"const RECORDINGS = {read('recordings.json').strip()};"),
        ("/* SCRIPTS */", "\n".join(read(name) for name in LOGIC + VIEWS)),
    ):
        assert text.count(mark) == 1, f"page.html must hold {mark} once"
        text = text.replace(mark, content.rstrip())
    return text


def read(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    target.write_text(page(), encoding="utf-8")
    print(f"wrote {target}")
