"""Line charts and bars as inline SVG, drawn without a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

Point = tuple[int, float]

COLOURS = ("#3366cc", "#d9822b", "#2a9d5c", "#b0457b", "#6b5bd2", "#148f9c", "#8a6d3b", "#c0392b")
#: Curves of the same objective share a colour; on held-out text they are drawn as points on a dashed line.
HELD_OUT = " (valid)"

_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 24, 16, 44
_BARS_WIDTH = 960
_BAR_COLOURS = {True: "#2a9d5c", False: "#c0392b", None: "#9aa5b5"}


@dataclass(frozen=True)
class Chart:
    """Curves over updates.

    Attributes:
        curves: name -> (update, value) pairs; a name that ends in ``" (valid)"`` shares the colour of its name without.
        levels: name -> value of a horizontal line to compare with.
        measured: the points are single measurements: dots on the curves, and the vertical axis begins at 0.
    """

    title: str
    curves: dict[str, Sequence[Point]]
    levels: dict[str, float] = field(default_factory=dict)
    x_label: str = "updates"
    y_label: str = "bits per predicted token"
    measured: bool = False


@dataclass(frozen=True)
class Bar:
    """A figure that is drawn as a bar.

    Attributes:
        mark: what it is compared with, None where there is nothing.
        holds: whether it is as it should be, None where nothing is promised.
    """

    name: str
    value: float
    mark: float | None = None
    holds: bool | None = None


def svg(chart: Chart) -> str:
    """The chart as one ``<svg>`` element with its own legend below; values that are not finite are left out."""
    curves = {name: _finite(points) for name, points in chart.curves.items()}
    curves = {name: points for name, points in curves.items() if points}
    if not curves:
        return f'<p class="empty">{escape(chart.title)}: nothing was logged.</p>'
    x_high = max(x for points in curves.values() for x, _ in points)
    values = [y for points in curves.values() for _, y in points] + list(chart.levels.values())
    y_ticks = ticks(0.0 if chart.measured else min(values), max(values))
    frame = _Frame(0, max(x_high, 1), y_ticks[0], y_ticks[-1])
    names = list(dict.fromkeys(name.removesuffix(HELD_OUT) for name in curves))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    parts = [*_grid(frame, ticks(0, frame.x_high), y_ticks), *_labels(chart)]
    parts += [_level(frame, name, value) for name, value in chart.levels.items()]
    for name, points in curves.items():
        held_out = name.endswith(HELD_OUT)
        parts.append(_curve(frame, points, colours[name.removesuffix(HELD_OUT)], held_out, held_out or chart.measured))
    legend, height = _legend(names, colours, any(name.endswith(HELD_OUT) for name in curves))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + height}" role="img" aria-label="{escape(chart.title)}" '
        f'xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" font-size="12" fill="#465063">'
        f"{''.join(parts)}{legend}</svg>"
    )


def bars_svg(title: str, bars: Sequence[Bar], longest: float) -> str:
    """Horizontal bars with their figures as one ``<svg>`` element; a stroke stands at what each is compared with.

    Args:
        longest: value that fills the width; a longer bar is cut there, and its figure tells.
    """
    left, right, line = 430, 60, 20
    height = line * len(bars) + 12

    def x(value: float) -> float:
        return left + min(value, longest) / longest * (_BARS_WIDTH - left - right)

    parts = []
    for i, bar in enumerate(bars):
        y = line * i + 4
        colour = _BAR_COLOURS[bar.holds]
        parts.append(_text(left - 8, y + 12, bar.name, "end"))
        parts.append(
            f'<rect x="{left}" y="{y}" width="{x(bar.value) - left:.1f}" height="{line - 5}" fill="{colour}"/>'
        )
        if bar.mark is not None:
            at = x(bar.mark)
            parts.append(f'<line x1="{at:.1f}" y1="{y - 2}" x2="{at:.1f}" y2="{y + line - 3}" stroke="#1f2733"/>')
        parts.append(_text(x(bar.value) + 6, y + 12, f"{bar.value:.2f}", "start"))
    return (
        f'<svg viewBox="0 0 {_BARS_WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" font-size="12" fill="#465063">'
        f"{''.join(parts)}</svg>"
    )


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers at equal steps of 1, 2 or 5 times a power of ten, from below ``low`` to above ``high``."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= about)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, max(last, first + 1) + 1)]


@dataclass(frozen=True)
class _Frame:
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        return _LEFT + (value - self.x_low) / (self.x_high - self.x_low) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - self.y_low) / (self.y_high - self.y_low) * (_HEIGHT - _TOP - _BOTTOM)


def _finite(points: Sequence[Point]) -> list[Point]:
    return sorted((x, y) for x, y in points if math.isfinite(y))


def _grid(frame: _Frame, x_ticks: list[float], y_ticks: list[float]) -> list[str]:
    parts = []
    for value in y_ticks:
        y = frame.y(value)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#e3e6eb"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{value:g}", "end"))
    for value in x_ticks:
        if value <= frame.x_high:
            parts.append(_text(frame.x(value), _HEIGHT - _BOTTOM + 18, f"{value:,g}", "middle"))
    return parts


def _labels(chart: Chart) -> list[str]:
    middle = (_HEIGHT - _BOTTOM + _TOP) / 2
    turned = f' transform="rotate(-90 14 {middle:.0f})"'
    return [
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, chart.x_label, "middle"),
        _text(14, middle, chart.y_label, "middle", turned),
    ]


def _level(frame: _Frame, name: str, value: float) -> str:
    y = frame.y(value)
    line = f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#555" stroke-dasharray="2 3"/>'
    return line + _text(_WIDTH - _RIGHT - 4, y - 5, f"{name} ({value:.2f})", "end")


def _curve(frame: _Frame, points: list[Point], colour: str, held_out: bool, dotted: bool) -> str:
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
    style = ' stroke-dasharray="5 4"' if held_out else ""
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{style}/>'
    dots = points if dotted or len(points) == 1 else []
    circles = (f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3.2" fill="{colour}"/>' for x, y in dots)
    return line + "".join(circles)


def _legend(names: list[str], colours: dict[str, str], held_out: bool) -> tuple[str, int]:
    """The legend's elements, in as many lines as their lengths need, and its height."""
    parts = []
    x, y = _LEFT, _HEIGHT + 14
    for name in names:
        width = 46 + 7 * len(name)  # of the sample of the line, the text in 12 pixels, and the space behind it
        if x > _LEFT and x + width > _WIDTH - _RIGHT:
            x, y = _LEFT, y + 20
        parts.append(
            f'<line x1="{x}" y1="{y - 4}" x2="{x + 20}" y2="{y - 4}" stroke="{colours[name]}" stroke-width="3"/>'
        )
        parts.append(_text(x + 26, y, name.replace("_", " "), "start"))
        x += width
    if held_out:
        y += 20
        parts.append(_text(_LEFT, y, "lines: training; dots: validation", "start"))
    return "".join(parts), y - _HEIGHT + 10


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
