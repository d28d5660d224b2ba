"""Masks as pictures: text for a terminal, SVG with labels, PNG without; no drawing library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from unified.masks.constants import GIVEN, NO_KEY, PADDING
from unified.masks.mask import AttentionMask

VISIBLE, HIDDEN = "■", "·"
#: What the text picture shows of a large mask: places per side, rows of a batch.
TEXT_PLACES, TEXT_ROWS = 64, 4

#: Kind of a cell -> (legend, colour), in the order of the codes of :func:`kinds`.
KINDS = (
    ("hidden", "#eceff3"),
    ("given from the start", "#5b8def"),
    ("visible since its step", "#f2a65a"),
    ("the token itself", "#2f4b8f"),
    ("padding sees padding", "#c4cad3"),
)


def text(mask: AttentionMask) -> str:
    """One line per query, one square per key, ranks at the margins (G = GIVEN, P = padding); large masks are cut.

    Where a row holds several documents, their numbers stand before the ranks.
    """
    if not mask.batched:
        return f"{_summary(mask)}\n{_text_row(mask)}"
    rows = mask.query_rank.shape[0]
    pictures = [f"row {i}\n{_text_row(_row_of(mask, i))}" for i in range(min(rows, TEXT_ROWS))]
    rest = [f"… and {rows - TEXT_ROWS} more rows"] if rows > TEXT_ROWS else []
    return "\n".join([f"{rows} rows, each of {_summary(mask)}", *pictures, *rest])


def plot(mask: AttentionMask, path: str | Path, tokens: Sequence[str] | None = None) -> None:
    """Draw one row's mask to ``path``: ``.svg`` (with tokens as labels) or ``.png`` (cells only).

    Args:
        tokens: S labels of the keys; default: their places.

    Raises:
        ValueError: another ending, a batch, or a number of tokens that is not S.
    """
    if mask.batched:
        raise ValueError(f"plot draws one row, got a batch of {mask.query_rank.shape[0]}")
    ending = Path(path).suffix.lower()
    if ending not in (".svg", ".png"):
        raise ValueError(f"path must end in .svg or .png, got {str(path)!r}")
    if tokens is not None and len(tokens) != mask.key_length:
        raise ValueError(f"tokens must name all {mask.key_length} keys, got {len(tokens)}")
    if ending == ".svg":
        Path(path).write_text(svg(mask, tokens), encoding="utf-8")
    elif tokens is not None:
        raise ValueError("tokens are drawn in .svg only; a .png shows the cells without labels")
    else:
        Path(path).write_bytes(png(mask))


def kinds(mask: AttentionMask) -> np.ndarray:
    """(T, S) indices into :data:`KINDS` for one row."""
    visible = mask.dense().cpu().numpy()
    key_rank, key_document, query_key = (
        vector.cpu().numpy() for vector in (mask.key_rank, mask.key_document, mask.query_key)
    )
    cells = np.where(visible, np.where(key_rank == GIVEN, 1, 2), 0)
    cells[visible & (query_key[:, None] == np.arange(mask.key_length))] = 3
    cells[visible & (key_document == PADDING)] = 4
    return cells


# ---------------------------------------------------------------------- text


def _summary(mask: AttentionMask) -> str:
    without = ", without self" if mask.exclude_self else ""
    return f"{mask.query_length} queries (lines) and {mask.key_length} keys (columns), {mask.structure}{without}"


def _row_of(mask: AttentionMask, row: int) -> AttentionMask:
    vectors = {name: vector[row] for name, vector in mask._tensors().items()}
    return AttentionMask.unchecked(**vectors, exclude_self=mask.exclude_self, structure=mask.structure)


def _text_row(mask: AttentionMask) -> str:
    query_labels, key_labels = _labels(mask)
    query_labels, key_labels = query_labels[:TEXT_PLACES], key_labels[:TEXT_PLACES]
    width = max((len(label) for labels in key_labels for label in labels), default=1)
    margins = _joined([[label.rjust(width) for label in labels] for labels in query_labels])
    cut = [" …"] if mask.key_length > TEXT_PLACES else []
    heads = ["".join(" " + label.rjust(width) for label in line) for line in zip(*key_labels, strict=True)]
    cells = [
        "".join(" " + (VISIBLE if cell else HIDDEN).rjust(width) for cell in row)
        for row in mask.dense()[:TEXT_PLACES, :TEXT_PLACES].tolist()
    ]
    blank = " " * len(margins[0]) if margins else ""
    lines = ["".join([blank, "  ", head, *cut]) for head in heads]
    lines += ["".join([margin, "  ", row, *cut]) for margin, row in zip(margins, cells, strict=True)]
    return "\n".join(lines + (["…"] if mask.query_length > TEXT_PLACES else []))


def _joined(labels: list[list[str]]) -> list[str]:
    return [" ".join(label) for label in labels]


def _labels(mask: AttentionMask) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Of every query and every key its rank as text, before it its document where a row holds several."""
    documents = set(mask.key_document.tolist()) | set(mask.query_document.tolist())
    several = len(documents - {PADDING}) > 1

    def labels(ranks: list[int], documents: list[int]) -> list[tuple[str, ...]]:
        names = ["P" if document == PADDING else str(document) for document in documents]
        ranks = _rank_names(ranks, documents)
        return list(zip(names, ranks, strict=True)) if several else [(rank,) for rank in ranks]

    return (
        labels(mask.query_rank.tolist(), mask.query_document.tolist()),
        labels(mask.key_rank.tolist(), mask.key_document.tolist()),
    )


def _rank_names(ranks: list[int], documents: list[int]) -> list[str]:
    """G = GIVEN, P = padding, else the number."""
    return [
        "P" if document == PADDING else "G" if rank == GIVEN else str(rank)
        for rank, document in zip(ranks, documents, strict=True)
    ]


# ---------------------------------------------------------------------- SVG

_FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"


def svg(mask: AttentionMask, tokens: Sequence[str] | None = None, title: str = "") -> str:
    """One row's mask as an SVG document: tokens and ranks at the margins, cells coloured by :data:`KINDS`."""
    cells = kinds(mask)
    pitch = _pitch(cells)
    labelled = pitch >= 14
    key_tokens = [str(token) for token in (tokens if tokens is not None else range(mask.key_length))]
    query_tokens = [key_tokens[k] if k != NO_KEY else "?" for k in mask.query_key.tolist()]
    query_ranks = _rank_names(mask.query_rank.tolist(), mask.query_document.tolist())
    key_ranks = _rank_names(mask.key_rank.tolist(), mask.key_document.tolist())

    left = 34 + (_text_width(query_tokens) + _text_width(query_ranks) if labelled else 0)
    slant = _text_width(key_tokens) * 0.75 if labelled else 0
    top = 40 + (22 if title else 0) + (slant + 18 if labelled else 0)
    legend = [code for code in range(len(KINDS)) if (cells == code).any()]
    # The last column's label leans to the right of its column.
    width = max(left + pitch * mask.key_length + max(34, slant), 320)
    height = top + pitch * mask.query_length + 56 + 22 * len(legend)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="{_FONT}" role="img">',
        f"<title>{escape(title or 'Attention mask: rows are queries, columns are keys')}</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="12" fill="#ffffff" '
        'stroke="#d9dee6"/>',
    ]
    if title:
        parts.append(f'<text x="24" y="34" font-size="15" font-weight="600" fill="#1f2733">{escape(title)}</text>')
    parts += _svg_cells(cells, left, top, pitch)
    if labelled:
        parts += _svg_margins(query_tokens, query_ranks, key_tokens, key_ranks, left, top, pitch)
    parts += _svg_legend(legend, left, top + pitch * mask.query_length + 26)
    return "\n".join([*parts, "</svg>", ""])


def _pitch(cells: np.ndarray) -> float:
    """Distance of cells in pixels: comfortable for small masks, at least 3."""
    return min(30.0, max(3.0, 900 / max(*cells.shape, 1)))


def _text_width(labels: Sequence[str]) -> float:
    """About the width of the widest label at 12 pixels, plus air."""
    return 7.0 * max(map(len, labels), default=0) + 10


def _svg_cells(cells: np.ndarray, left: float, top: float, pitch: float) -> list[str]:
    """One path per kind; a round-joined stroke of the same colour makes the corners round."""
    round_by, gap = pitch / 6, pitch / 10
    side = pitch - gap - round_by
    inset = (gap + round_by) / 2
    paths = []
    for code, (_, colour) in enumerate(KINDS):
        squares = "".join(
            f"M{left + pitch * key + inset:.1f} {top + pitch * query + inset:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z"
            for query, key in np.argwhere(cells == code).tolist()
        )
        if squares:
            paths.append(
                f'<path d="{squares}" fill="{colour}" stroke="{colour}" stroke-width="{round_by:.1f}" '
                'stroke-linejoin="round"/>'
            )
    return paths


def _svg_margins(
    query_tokens: Sequence[str],
    query_ranks: Sequence[str],
    key_tokens: Sequence[str],
    key_ranks: Sequence[str],
    left: float,
    top: float,
    pitch: float,
) -> list[str]:
    """Tokens dark, ranks grey; ranks next to the cells."""
    ranks_wide = _text_width(query_ranks)
    parts = ['<g font-size="12" fill="#1f2733" text-anchor="end">']
    for i, (token, rank) in enumerate(zip(query_tokens, query_ranks, strict=True)):
        y = top + pitch * (i + 0.5) + 4
        parts.append(f'<text x="{left - 6 - ranks_wide:.1f}" y="{y:.1f}">{escape(token)}</text>')
        parts.append(f'<text x="{left - 8:.1f}" y="{y:.1f}" fill="#8590a2" font-size="11">{escape(rank)}</text>')
    parts.append('</g><g font-size="12" fill="#1f2733">')
    for i, (token, rank) in enumerate(zip(key_tokens, key_ranks, strict=True)):
        x = left + pitch * (i + 0.5)
        turn = f"translate({x - 1:.1f} {top - 22:.1f}) rotate(-45)"
        parts.append(f'<text transform="{turn}">{escape(token)}</text>')
        parts.append(
            f'<text x="{x:.1f}" y="{top - 6:.1f}" fill="#8590a2" font-size="11" text-anchor="middle">'
            f"{escape(rank)}</text>"
        )
    return [*parts, "</g>"]


def _svg_legend(codes: Sequence[int], left: float, top: float) -> list[str]:
    left = min(left, 34)
    parts = []
    for line, code in enumerate(codes):
        name, colour = KINDS[code]
        y = top + 22 * line
        parts.append(f'<rect x="{left:.1f}" y="{y - 10:.1f}" width="13" height="13" rx="3" fill="{colour}"/>')
        parts.append(f'<text x="{left + 21:.1f}" y="{y + 1:.1f}" font-size="12" fill="#4a5568">{name}</text>')
    y = top + 22 * len(codes) + 1
    note = "rows attend to columns; in grey the rank (G: given)"
    parts.append(f'<text x="{left:.1f}" y="{y:.1f}" font-size="11" fill="#8590a2">{note}</text>')
    return parts


# ---------------------------------------------------------------------- PNG


def png(mask: AttentionMask) -> bytes:
    """One row's mask as a PNG file: the cells of :func:`svg` without labels."""
    cells = kinds(mask)
    pitch = int(_pitch(cells))
    palette = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in KINDS], dtype=np.uint8)
    image = palette[np.kron(cells, np.ones((pitch, pitch), dtype=np.int64))]
    gap = max(1, pitch // 10)
    for start in range(gap):
        image[start::pitch] = 255
        image[:, start::pitch] = 255
    return encode_png(np.pad(image, ((pitch, pitch), (pitch, pitch), (0, 0)), constant_values=255))


def encode_png(image: np.ndarray) -> bytes:
    """A PNG file of uint8 (height, width, 3)."""
    height, width, _ = image.shape
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), image.reshape(height, -1)], axis=1)  # filter 0
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    body = zlib.compress(lines.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
