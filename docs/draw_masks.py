"""Draw docs/masks.svg: six masks side by side, each with the ranks that make it.

python docs/draw_masks.py [FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from unified import masks
from unified.masks.pictures import KINDS, kinds

PITCH, MARGIN, GAP, TOP, LEFT = 17, 20, 18, 78, 24
FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
DARK, GREY = "#1f2733", "#8590a2"


def panels() -> list[tuple[str, str, masks.AttentionMask]]:
    """(title, what it is for, mask); all of seven tokens."""
    packed = masks.pack([masks.seq2seq(2, 1), masks.left_to_right(3)], length=7)
    return [
        ("bidirectional", "BERT", masks.bidirectional(7)),
        ("left to right", "language model", masks.left_to_right(7)),
        ("right to left", "the reverse", masks.right_to_left(7)),
        ("seq2seq", "4 source, 3 target", masks.seq2seq(4, 3)),
        ("permutation", "any order", masks.permutation([masks.GIVEN, 2, 0, masks.GIVEN, 1, 3, 0])),
        ("packed", "two texts, one pad", packed),
    ]


def picture() -> str:
    """The whole SVG document."""
    side = 7 * PITCH
    drawn = panels()
    step = MARGIN + side + GAP
    width = 2 * LEFT + len(drawn) * step - GAP
    legend = TOP + side + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {legend + 22}" width="{width}" '
        f'height="{legend + 22}" font-family="{FONT}" role="img">',
        "<title>Six attention masks and their ranks; rows attend to columns</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{legend + 21}" rx="12" fill="#ffffff" stroke="#d9dee6"/>',
    ]
    for i, (title, note, mask) in enumerate(drawn):
        parts += panel(LEFT + MARGIN + i * step, title, note, mask)
    return "\n".join([*parts, *legends(LEFT + MARGIN, legend), "</svg>", ""])


def panel(x: float, title: str, note: str, mask: masks.AttentionMask) -> list[str]:
    """One mask whose cells begin at ``x``: title, note, ranks at both margins, cells."""
    parts = [
        f'<text x="{x}" y="32" font-size="14" font-weight="600" fill="{DARK}">{title}</text>',
        f'<text x="{x}" y="49" font-size="11" fill="{GREY}">{note}</text>',
    ]
    for places, ranks, documents in (
        (lambda i: (x + PITCH * (i + 0.5), TOP - 7), mask.key_rank, mask.key_document),
        (lambda i: (x - 9, TOP + PITCH * (i + 0.5) + 3.5), mask.query_rank, mask.query_document),
    ):
        for i, name in enumerate(rank_names(ranks, documents)):
            px, py = places(i)
            parts.append(
                f'<text x="{px:.1f}" y="{py:.1f}" font-size="10" fill="{GREY}" text-anchor="middle">{name}</text>'
            )
    for (query, key), code in np.ndenumerate(kinds(mask)):
        parts.append(
            f'<rect x="{x + PITCH * key + 1}" y="{TOP + PITCH * query + 1}" width="{PITCH - 2}" height="{PITCH - 2}" '
            f'rx="3" fill="{KINDS[code][1]}"/>'
        )
    return parts


def rank_names(ranks, documents) -> list[str]:
    """Ranks as the pictures of :mod:`unified.masks` write them: G given, P padding."""
    return [
        "P" if document == masks.PADDING else "G" if rank == masks.GIVEN else str(rank)
        for rank, document in zip(ranks.tolist(), documents.tolist(), strict=True)
    ]


def legends(x: float, y: float) -> list[str]:
    """The colours, and what the grey numbers are."""
    parts = []
    for name, colour in KINDS:
        parts.append(f'<rect x="{x:.0f}" y="{y - 10}" width="12" height="12" rx="3" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18:.0f}" y="{y}" font-size="11" fill="#4a5568">{name}</text>')
        x += 34 + 6.1 * len(name)
    note = "grey: rank, G given, P padding"
    return [*parts, f'<text x="{x:.0f}" y="{y}" font-size="11" fill="{GREY}">{note}</text>']


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("masks.svg")
    target.write_text(picture(), encoding="utf-8")
    print(f"wrote {target}")
