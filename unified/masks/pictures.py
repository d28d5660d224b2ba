"""Masks as pictures: text for a terminal, SVG with labels, PNG without.

They are drawn without a library: this package imports numpy and torch alone, and a mask is squares in a grid, which the
text and the SVG show in the same way.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from unified.masks.constants import NO_DOCUMENT, NO_KEY, NOWHERE
from unified.masks.vectors import MaskVectors, require_mask

VISIBLE, HIDDEN = "■", "·"
#: Limits of the text picture of a large mask: tokens per side, rows of a batch.
TEXT_SIZE, TEXT_ROWS = 64, 4
#: Limits of a mask that a notebook draws by itself: cells of all rows together, rows of a batch.
NOTEBOOK_CELLS, NOTEBOOK_ROWS = 256 * 256, 16
#: Most cells of all rows of a mask that becomes a file; an SVG of more would take gigabytes of memory.
FILE_CELLS = 4096 * 4096

#: (legend, colour) of each type of cell, in the order of the codes of :func:`cell_types`.
CELL_TYPES = (
    ("hidden", "#eceff3"),
    ("given from the start", "#5b8def"),
    ("visible since its step", "#f2a65a"),
    ("the token itself", "#2f4b8f"),
)


def text(mask: MaskVectors) -> str:
    """One line per query, one square per key, steps at the margins; large masks are cut.

    At the left stands the step at which a query looks, above a key the step at which it appears, and below that, where
    some key disappears before the end, the step at which it does; ``-`` where a key is hidden or a query sees nothing
    because it is padding. Where a row holds several documents, their numbers stand before the steps.
    """
    if not mask.batched:
        return f"{_summary(mask)}\n{_text_row(mask)}"
    rows = mask.query_step.shape[0]
    pictures = [f"row {i}\n{_text_row(row_of(mask, i))}" for i in range(min(rows, TEXT_ROWS))]
    rest = [f"… and {rows - TEXT_ROWS} more rows"] if rows > TEXT_ROWS else []
    return "\n".join([f"{rows} rows, each of {_summary(mask)}", *pictures, *rest])


def plot(mask: MaskVectors, path: str | Path, tokens: Sequence[str] | None = None) -> None:
    """Draw a mask to ``path``: ``.svg`` (with tokens as labels, up to 64 queries and keys) or ``.png`` (cells only).

    The rows of a batch are drawn below each other.

    Args:
        tokens: S labels of the keys; default: their indices.

    Raises:
        ValueError: ``mask`` is no mask, another ending, tokens for a ``.png``, a number of them that is not S, a
            batch of no rows, or more than :data:`FILE_CELLS` cells.
    """
    Path(path).write_bytes(picture_content(mask, path, tokens))


def picture_content(mask: MaskVectors, path: str | Path, tokens: Sequence[str] | None = None) -> bytes:
    """Content of the file that :func:`plot` writes to ``path``."""
    ending = Path(path).suffix.lower()
    if ending not in (".svg", ".png"):
        raise ValueError(f"path must end in .svg or .png, got {str(path)!r}")
    require_mask("plot", mask)
    if mask.batched and not len(mask.query_step):
        raise ValueError("plot takes a mask of at least one row, got a batch of none")
    cells = mask.query_step.numel() * mask.key_length
    if cells > FILE_CELLS:
        size = f"{mask.query_step.numel():,} queries and {mask.key_length:,} keys"
        raise ValueError(f"a picture of {size} would take too much memory; at most {FILE_CELLS:,} cells are drawn")
    if tokens is not None and len(tokens) != mask.key_length:
        raise ValueError(f"tokens must name all {mask.key_length} keys, got {len(tokens)}")
    if ending == ".svg":
        return svg(mask, tokens).encode()
    if tokens is not None:
        raise ValueError("tokens are drawn in .svg only; a .png shows the cells without labels")
    return png(mask)


def cell_types(mask: MaskVectors) -> np.ndarray:
    """Indices into :data:`CELL_TYPES` for one row, uint8 (T, S)."""
    visible = mask.dense().cpu().numpy()
    given, own = mask.given_keys().cpu().numpy(), mask.own_keys.cpu().numpy()
    cells = visible * np.where(given, 1, 2).astype(np.uint8)
    cells[visible & (own[:, None] == np.arange(mask.key_length))] = 3
    return cells


def row_of(mask: MaskVectors, row: int) -> MaskVectors:
    """One row of a batch."""
    vectors = {name: vector[row] for name, vector in mask.tensors().items()}
    return MaskVectors.unchecked(
        **vectors, exclude_self=mask.exclude_self, structure=mask.structure, window=mask.window
    )


# ---------------------------------------------------------------------- text


def _summary(mask: MaskVectors) -> str:
    without = ", without self" if mask.exclude_self else ""
    window = "" if mask.window is None else f", within {mask.window} positions"
    size = f"{mask.query_length} queries (lines) and {mask.key_length} keys (columns)"
    return f"{size}, {mask.structure}{without}{window}"


def _text_row(mask: MaskVectors) -> str:
    query_labels, key_labels = _labels(mask)
    query_labels, key_labels = query_labels[:TEXT_SIZE], key_labels[:TEXT_SIZE]
    width = max((len(label) for labels in key_labels for label in labels), default=1)
    margins = _joined([[label.rjust(width) for label in labels] for labels in query_labels])
    cut = [" …"] if mask.key_length > TEXT_SIZE else []
    heads = ["".join(" " + label.rjust(width) for label in line) for line in zip(*key_labels, strict=True)]
    cells = [
        "".join(" " + (VISIBLE if cell else HIDDEN).rjust(width) for cell in row)
        for row in _corner(mask, TEXT_SIZE).dense().tolist()
    ]
    blank = " " * len(margins[0]) if margins else ""
    lines = ["".join([blank, "  ", head, *cut]) for head in heads]
    lines += ["".join([margin, "  ", row, *cut]) for margin, row in zip(margins, cells, strict=True)]
    return "\n".join(lines + (["…"] if mask.query_length > TEXT_SIZE else []))


def _corner(mask: MaskVectors, size: int) -> MaskVectors:
    """The first ``size`` queries and keys of one row."""
    vectors = mask.tensors() | {"query_key": mask.own_keys}
    cut = {name: vector if name == "document_ends" else vector[:size] for name, vector in vectors.items()}
    return MaskVectors.unchecked(**cut, exclude_self=mask.exclude_self, structure=mask.structure, window=mask.window)


def _joined(labels: list[list[str]]) -> list[str]:
    return [" ".join(label) for label in labels]


def _labels(mask: MaskVectors) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The step of every query and the interval of every key as text, after the document if there are several."""
    queries: list[tuple[str, ...]] = [(step,) for step in query_names(mask)]
    keys = key_names(mask)
    of_queries, of_keys = mask.query_documents().tolist(), mask.key_documents().tolist()
    if len({*of_queries, *of_keys} - {NO_DOCUMENT}) > 1:
        queries = [(_number(document), *names) for document, names in zip(of_queries, queries, strict=True)]
        keys = [(_number(document), *names) for document, names in zip(of_keys, keys, strict=True)]
    return queries, keys


def _number(document: int) -> str:
    return "-" if document == NO_DOCUMENT else str(document)


def query_names(mask: MaskVectors) -> list[str]:
    """The step at which each query of one row looks."""
    return ["-" if step == NOWHERE else str(step) for step in mask.query_step.tolist()]


def key_names(mask: MaskVectors) -> list[tuple[str, ...]]:
    """Labels of each key of one row: the step at which it appears and, where that of some key is too early, disappears.

    Too early is before the end of the document. "∞" stands for a key that stays, "-" for one that nobody sees.
    """
    starts, stops, documents = mask.key_start.tolist(), mask.key_stop.tolist(), mask.key_documents().tolist()
    ends = [mask.steps] if mask.document_ends is None else mask.document_ends.tolist()
    hidden = [document == NO_DOCUMENT for document in documents]
    names: list[tuple[str, ...]] = [("-" if none else str(start),) for none, start in zip(hidden, starts, strict=True)]
    lasting = [none or stop >= ends[document] for none, stop, document in zip(hidden, stops, documents, strict=True)]
    if all(lasting):
        return names
    return [
        (*name, "-" if none else "∞" if lasts else str(stop))
        for name, none, stop, lasts in zip(names, hidden, stops, lasting, strict=True)
    ]


# ---------------------------------------------------------------------- SVG

#: Below the legend; the second one where there are labels.
_NOTES = ("rows attend to columns", "in grey: when queries look and keys appear")
_FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"


def svg(mask: MaskVectors, tokens: Sequence[str] | None = None, title: str = "") -> str:
    """A mask as an SVG document: tokens and steps at the margins, cells coloured by :data:`CELL_TYPES`.

    The rows of a batch stand below each other.
    """
    rows = [row_of(mask, i) for i in range(len(mask.query_step))] if mask.batched else [mask]
    pictures = [_picture(row, tokens) for row in rows]
    legend = sorted({code for picture in pictures for code in picture.codes})
    width = max([320.0, *(picture.width for picture in pictures)])
    top = 40.0 + (22 if title else 0)
    notes = _NOTES if any(picture.labelled for picture in pictures) else _NOTES[:1]
    height = top + sum(picture.height for picture in pictures) + 40 + 16 * len(notes) + 22 * len(legend)
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="{_FONT}" role="img">',
        f"<title>{escape(title or 'Attention mask: rows are queries, columns are keys')}</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="12" fill="#ffffff" '
        'stroke="#d9dee6"/>',
    ]
    if title:
        elements.append(f'<text x="24" y="34" font-size="15" font-weight="600" fill="#1f2733">{escape(title)}</text>')
    for picture in pictures:
        elements += picture.drawn(top)
        top += picture.height
    elements += _svg_legend(legend, notes, top + 26)
    return "\n".join([*elements, "</svg>", ""])


class _Picture(NamedTuple):
    """One row, and the room it takes."""

    cells: np.ndarray
    query_tokens: list[str]
    query_steps: list[str]
    key_tokens: list[str]
    key_steps: list[str]

    @property
    def codes(self) -> list[int]:
        return [code for code in range(len(CELL_TYPES)) if (self.cells == code).any()]

    @property
    def pitch(self) -> float:
        return _pitch(self.cells)

    @property
    def labelled(self) -> bool:
        return self.pitch >= 14

    @property
    def left(self) -> float:
        return 34 + (_text_width(self.query_tokens) + _text_width(self.query_steps) if self.labelled else 0)

    @property
    def slant(self) -> float:
        return _text_width(self.key_tokens) * 0.75 if self.labelled else 0

    @property
    def above(self) -> float:
        return self.slant + 18 if self.labelled else 0

    @property
    def width(self) -> float:
        # The last column's label leans to the right of its column.
        return self.left + self.pitch * self.cells.shape[1] + max(34, self.slant)

    @property
    def height(self) -> float:
        return self.above + self.pitch * self.cells.shape[0] + 10

    def drawn(self, top: float) -> list[str]:
        """The picture's elements of SVG, below ``top``."""
        elements = _svg_cells(self.cells, self.left, top + self.above, self.pitch)
        if self.labelled:
            queries, keys = (self.query_tokens, self.query_steps), (self.key_tokens, self.key_steps)
            elements += _svg_margins(*queries, *keys, self.left, top + self.above, self.pitch)
        return elements


def _picture(mask: MaskVectors, tokens: Sequence[str] | None) -> _Picture:
    key_tokens = [str(token) for token in (tokens if tokens is not None else range(mask.key_length))]
    query_tokens = [key_tokens[k] if k != NO_KEY else "?" for k in mask.own_keys.tolist()]
    key_steps = ["–".join(names) for names in key_names(mask)]
    return _Picture(cell_types(mask), query_tokens, query_names(mask), key_tokens, key_steps)


def _pitch(cells: np.ndarray) -> float:
    """Distance of cells in pixels: comfortable for small masks, at least 3."""
    return min(30.0, max(3.0, 900 / max(*cells.shape, 1)))


def _text_width(labels: Sequence[str]) -> float:
    """About the width of the widest label at 12 pixels, plus air."""
    return 7.0 * max(map(len, labels), default=0) + 10


def _svg_cells(cells: np.ndarray, left: float, top: float, pitch: float) -> list[str]:
    """One path per type of cell; a round-joined stroke of the same colour makes the corners round."""
    round_by, gap = pitch / 6, pitch / 10
    side = pitch - gap - round_by
    inset = (gap + round_by) / 2
    paths = []
    for code, (_, colour) in enumerate(CELL_TYPES):
        squares = "".join(
            f"M{left + pitch * key + inset:.1f} {top + pitch * query + inset:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z"
            for query, line in enumerate(cells == code)
            for key in line.nonzero()[0].tolist()
        )
        if squares:
            paths.append(
                f'<path d="{squares}" fill="{colour}" stroke="{colour}" stroke-width="{round_by:.1f}" '
                'stroke-linejoin="round"/>'
            )
    return paths


def _svg_margins(
    query_tokens: Sequence[str],
    query_steps: Sequence[str],
    key_tokens: Sequence[str],
    key_steps: Sequence[str],
    left: float,
    top: float,
    pitch: float,
) -> list[str]:
    """Tokens dark, steps grey; steps next to the cells."""
    steps_wide = _text_width(query_steps)
    elements = ['<g font-size="12" fill="#1f2733" text-anchor="end">']
    for i, (token, step) in enumerate(zip(query_tokens, query_steps, strict=True)):
        y = top + pitch * (i + 0.5) + 4
        elements.append(f'<text x="{left - 6 - steps_wide:.1f}" y="{y:.1f}">{escape(token)}</text>')
        elements.append(f'<text x="{left - 8:.1f}" y="{y:.1f}" fill="#8590a2" font-size="11">{escape(step)}</text>')
    elements.append('</g><g font-size="12" fill="#1f2733">')
    for i, (token, step) in enumerate(zip(key_tokens, key_steps, strict=True)):
        x = left + pitch * (i + 0.5)
        turn = f"translate({x - 1:.1f} {top - 22:.1f}) rotate(-45)"
        elements.append(f'<text transform="{turn}">{escape(token)}</text>')
        elements.append(
            f'<text x="{x:.1f}" y="{top - 6:.1f}" fill="#8590a2" font-size="11" text-anchor="middle">'
            f"{escape(step)}</text>"
        )
    return [*elements, "</g>"]


def _svg_legend(codes: Sequence[int], notes: Sequence[str], top: float) -> list[str]:
    left = 34
    elements = []
    for line, code in enumerate(codes):
        name, colour = CELL_TYPES[code]
        y = top + 22 * line
        elements.append(f'<rect x="{left}" y="{y - 10:.1f}" width="13" height="13" rx="3" fill="{colour}"/>')
        elements.append(f'<text x="{left + 21}" y="{y + 1:.1f}" font-size="12" fill="#4a5568">{name}</text>')
    for line, note in enumerate(notes):
        y = top + 22 * len(codes) + 1 + 16 * line
        elements.append(f'<text x="{left}" y="{y:.1f}" font-size="11" fill="#8590a2">{note}</text>')
    return elements


# ---------------------------------------------------------------------- PNG

#: Colours of :data:`CELL_TYPES`, and white, three bytes each.
_PALETTE = b"".join(bytes.fromhex(colour[1:]) for _, colour in (*CELL_TYPES, ("margin", "#ffffff")))


def png(mask: MaskVectors) -> bytes:
    """A mask as a PNG file: the cells of :func:`svg` without labels."""
    rows = [row_of(mask, i) for i in range(len(mask.query_step))] if mask.batched else [mask]
    return _encode_png(np.concatenate([_pixels(cell_types(row)) for row in rows]))


def _pixels(cells: np.ndarray) -> np.ndarray:
    """Indices into :data:`_PALETTE`, uint8 (height, width), of one row with a white margin."""
    pitch = int(_pitch(cells))
    image = np.pad(cells.repeat(pitch, 0).repeat(pitch, 1), pitch)
    white, gap = len(CELL_TYPES), max(1, pitch // 10)
    for edge in (image, image.T):
        edge[:pitch] = edge[-pitch:] = white
        for start in range(gap):
            edge[start::pitch] = white
    return image


def _encode_png(image: np.ndarray) -> bytes:
    """A PNG file of indices into :data:`_PALETTE`, uint8 (height, width)."""
    height, width = image.shape
    lines = np.pad(image, ((0, 0), (1, 0)))  # each begins with its filter, 0
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    chunks = (b"IHDR", header), (b"PLTE", _PALETTE), (b"IDAT", zlib.compress(lines.data, 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in chunks)
