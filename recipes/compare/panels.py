"""Learning curves as small multiples in one SVG, drawn without a library: a panel per run, each with its own scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from tables import NEXT_SENTENCE

from unified.reports.charts import COLOURS, ticks

COLUMNS, WIDTH, HEIGHT = 5, 160, 112
GAP_X, GAP_Y, LEFT, TOP, TITLE = 48, 28, 72, 60, 26
FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
DARK, GREY, GRID = "#1f2733", "#5b6675", "#e3e6eb"


def picture(results: Sequence[dict], unigram: float) -> str:
    """The whole SVG document, a white card as the pictures of the masks are, readable on any page.

    Args:
        results: runs with ``losses``, name -> curves on validation and training text; others are passed over.
        unigram: entropy of single tokens in bits, a dashed line in the panels that reach it.
    """
    panels = [(result["name"], shown(result)) for result in results if result["objectives"]]
    columns = min(COLUMNS, max(len(panels), 1))
    step_x, step_y = WIDTH + GAP_X, HEIGHT + TITLE + GAP_Y
    lines = -(-len(panels) // columns)
    width, height = LEFT + columns * step_x - 20, TOP + lines * step_y + 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="{FONT}" font-size="11" fill="{GREY}" role="img">',
        "<title>Learning curves of every objective: bits per prediction over updates</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="12" fill="#ffffff" stroke="#d9dee6"/>',
        _text(
            LEFT,
            30,
            "Every objective's own validation loss; scales differ, and levels are not comparable",
            "start",
            DARK,
            13,
        ),
        _text(
            LEFT,
            48,
            "dots: validation; thin line: training; dashed: unigram entropy of the text, where it lies in the panel",
            "start",
        ),
    ]
    for number, (name, curves) in enumerate(panels):
        x, y = LEFT + number % columns * step_x, TOP + number // columns * step_y + TITLE
        frame = Frame.around(x, y, curves)
        parts += [*_axes(frame), *_panel(frame, name, curves, unigram)]
    parts.append(_text(LEFT + (columns * step_x - GAP_X) / 2, height - 14, "updates", "middle"))
    turned = TOP + lines * step_y / 2
    parts.append(_text(18, turned, "bits per prediction", "middle", more=f' transform="rotate(-90 18 {turned:.0f})"'))
    return "\n".join([*parts, "</svg>", ""])


def shown(result: dict) -> dict[str, dict]:
    """Losses that are drawn: those per token; next-sentence prediction has a scale of its own."""
    return {name: curves for name, curves in result["losses"].items() if not name.endswith(NEXT_SENTENCE)}


@dataclass(frozen=True)
class Frame:
    """A panel whose upper left corner is (left, top), with the last update and the marks of its scale of bits."""

    left: float
    top: float
    updates: int
    marks: tuple[float, ...]

    @classmethod
    def around(cls, left: float, top: float, curves: dict[str, dict]) -> Frame:
        """As high as the validation losses; training began above them."""
        points = [point for curve in curves.values() for point in curve["valid"]]
        bits = [y for _, y in points]
        return cls(left, top, max(x for x, _ in points), tuple(ticks(min(bits), max(bits), 4)))

    def x(self, update: float) -> float:
        return self.left + update / self.updates * WIDTH

    def y(self, bits: float) -> float:
        return self.top + (self.marks[-1] - bits) / (self.marks[-1] - self.marks[0]) * HEIGHT

    def holds(self, bits: float) -> bool:
        return self.marks[0] <= bits <= self.marks[-1]

    def path(self, points: Sequence[Sequence[float]]) -> list[str]:
        """Places of the points that the panel holds, as SVG wants them."""
        return [f"{self.x(update):.1f},{self.y(bits):.1f}" for update, bits in points if self.holds(bits)]


def _axes(frame: Frame) -> list[str]:
    parts = []
    for bits in frame.marks:
        y = frame.y(bits)
        parts.append(f'<path d="M{frame.left} {y:.1f}h{WIDTH}" stroke="{GRID}" fill="none"/>')
        parts.append(_text(frame.left - 6, y + 4, f"{bits:g}", "end"))
    for update, anchor in ((0, "start"), (frame.updates, "end")):
        parts.append(_text(frame.x(update), frame.top + HEIGHT + 14, f"{update:,}", anchor))
    return parts


def _panel(frame: Frame, name: str, curves: dict[str, dict], unigram: float) -> list[str]:
    parts = [_text(frame.left, frame.top - 9, name, "start", DARK, 12)]
    if frame.holds(unigram):
        level = f"M{frame.left} {frame.y(unigram):.1f}h{WIDTH}"
        parts.append(f'<path d="{level}" stroke="{GREY}" stroke-dasharray="3 3" fill="none"/>')
    for i, (loss, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        train, valid = " ".join(frame.path(curve["train"])), frame.path(curve["valid"])
        parts.append(f'<polyline points="{train}" fill="none" stroke="{colour}" stroke-opacity="0.4"/>')
        parts.append(
            f'<polyline class="valid" points="{" ".join(valid)}" fill="none" stroke="{colour}" stroke-width="1.8">'
            f"<title>{escape(f'{name}: {loss}')}</title></polyline>"
        )
        dots = (f'<circle cx="{x}" cy="{y}" r="2.2"/>' for x, y in (place.split(",") for place in valid))
        parts.append(f'<g fill="{colour}">{"".join(dots)}</g>')
        if len(curves) > 1:
            parts.append(_text(frame.left + WIDTH, frame.top + 10 + 12 * i, loss.replace("_", " "), "end", colour, 10))
    return parts


def _text(x: float, y: float, text: str, anchor: str, colour: str = GREY, size: int = 11, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{more}>'
        f"{escape(text)}</text>"
    )
