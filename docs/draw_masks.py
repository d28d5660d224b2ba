"""Draw docs/masks.svg: masks side by side, each with the steps that make it.

python docs/draw_masks.py [FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from unified import masks
from unified.masks.pictures import CELL_TYPES, cell_types, key_names, query_names

PITCH, MARGIN, GAP, TOP, LEFT, COLUMNS = 17, 20, 22, 88, 24, 6
FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
DARK, GREY = "#1f2733", "#8590a2"


def panels() -> list[tuple[str, str, masks.AttentionMask]]:
    """(title, what it is for, mask); all of seven or eight tokens."""
    packed = masks.pack([masks.seq2seq(2, 1), masks.left_to_right(3)], length=7)
    return [
        ("bidirectional", "BERT", masks.bidirectional(7)),
        ("left to right", "language model", masks.left_to_right(7)),
        ("right to left", "the reverse", masks.right_to_left(7)),
        ("seq2seq", "4 source, 3 target", masks.seq2seq(4, 3)),
        ("permutation", "any order (XLNet)", masks.permutation([masks.GIVEN, 3, 1, masks.GIVEN, 2, 4, 1])),
        ("packed", "two texts, one pad", packed),
        ("sliding window", "itself and 2 before", masks.sliding_window(7, 2)),
        ("two-sided window", "1 on each side", masks.sliding_window(7, 1, 1)),
        ("block causal", "blocks of 3", masks.block_causal(7, 3)),
        ("pseudo-masked", "UniLM v2", masks.pseudo_masked([0, 2, 1])),
        ("block diffusion", "noised, then clean", masks.block_diffusion(4, 2)),
        ("tree", "drafts, shared prefixes", masks.tree([-1, 0, 1, 1, 0, 4, 4])),
    ]


def picture() -> str:
    """The whole SVG document."""
    drawn = panels()
    side = 8 * PITCH
    across, down = MARGIN + side + GAP, TOP + side - 10
    width = 2 * LEFT + COLUMNS * across - GAP
    legend = -(-len(drawn) // COLUMNS) * down + 40
    height = legend + 42
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="{FONT}" role="img">',
        "<title>Twelve attention masks and their steps; rows attend to columns</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="12" fill="#ffffff" stroke="#d9dee6"/>',
    ]
    for i, (title, note, mask) in enumerate(drawn):
        row, column = divmod(i, COLUMNS)
        parts += panel(LEFT + MARGIN + column * across, row * down, title, note, mask)
    return "\n".join([*parts, *legends(LEFT + MARGIN, legend), "</svg>", ""])


def panel(x: float, y: float, title: str, note: str, mask: masks.AttentionMask) -> list[str]:
    """One mask whose cells begin at ``x``: title, note, steps at both margins, cells."""
    top = y + TOP
    parts = [
        f'<text x="{x}" y="{y + 32}" font-size="14" font-weight="600" fill="{DARK}">{title}</text>',
        f'<text x="{x}" y="{y + 49}" font-size="11" fill="{GREY}">{note}</text>',
    ]
    for i, name in enumerate(query_names(mask)):
        parts.append(label(x - 9, top + PITCH * (i + 0.5) + 3.5, name))
    for i, names in enumerate(key_names(mask)):
        for line, name in enumerate(reversed(names)):
            parts.append(label(x + PITCH * (i + 0.5), top - 7 - 12 * line, name))
    for (query, key), code in np.ndenumerate(cell_types(mask)):
        parts.append(
            f'<rect x="{x + PITCH * key + 1}" y="{top + PITCH * query + 1}" width="{PITCH - 2}" height="{PITCH - 2}" '
            f'rx="3" fill="{CELL_TYPES[code][1]}"/>'
        )
    return parts


def label(x: float, y: float, name: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="10" fill="{GREY}" text-anchor="middle">{name}</text>'


def legends(x: float, y: float) -> list[str]:
    """The colours, and in a line of its own what the grey numbers are."""
    parts, left = [], x
    for name, colour in CELL_TYPES:
        parts.append(f'<rect x="{x:.0f}" y="{y - 10}" width="12" height="12" rx="3" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18:.0f}" y="{y}" font-size="11" fill="#4a5568">{name}</text>')
        x += 34 + 6.1 * len(name)
    note = (
        "grey: at which step a row looks, and from (and until) which step a column is visible; - padding, ∞ to the end"
    )
    return [*parts, f'<text x="{left}" y="{y + 21}" font-size="11" fill="{GREY}">{note}</text>']


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("masks.svg")
    target.write_text(picture(), encoding="utf-8")
    print(f"wrote {target}")
