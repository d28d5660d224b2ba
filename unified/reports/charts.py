"""Line charts as inline SVG, drawn by matplotlib.

A picture is about as wide as a phone, so that its text is readable there, and keeps its text as text. It refers to
nothing outside itself.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from unified.errors import UnifiedError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Position of a point on the horizontal axis, such as an update or a size, and the value of the point.
Point = tuple[float, float]

COLOURS = ("#3366cc", "#d9822b", "#2a9d5c", "#b0457b", "#6b5bd2", "#148f9c", "#8a6d3b", "#c0392b")
#: Curves of the same objective share a colour; on held-out text they are drawn as points on a dashed line.
HELD_OUT = " (valid)"
TEXT, LINES = "#465063", "#e3e6eb"

_WIDTH, _HEIGHT = 4.6, 3.2  # inches
#: Characters of 9 points that fit into one of two columns of a legend, and into its whole width.
_IN_COLUMN, _IN_LEGEND = 18, 45
_STYLE: Any = {
    "svg.fonttype": "none",  # keeps text as text, not as paths
    "svg.hashsalt": "unified",  # equal charts are equal files
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": LINES,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
}


@dataclass(frozen=True)
class Chart:
    """Curves over updates.

    Attributes:
        curves: name -> (update or size, value) pairs; ``"loss (valid)"`` has the colour of ``"loss"``.
        levels: name -> value of a horizontal line to compare with.
        measured: the points are single measurements: dots on the curves, and the vertical axis shows 0.
        note: a sentence that is printed below the picture.
    """

    title: str
    curves: Mapping[str, Sequence[Point]]
    levels: dict[str, float] = field(default_factory=dict)
    x_label: str = "updates"
    y_label: str = "bits per predicted token"
    measured: bool = False
    note: str = ""

    def drawn(self) -> dict[str, list[Point]]:
        """The curves that have points, sorted, without values that are not finite."""
        finite = {name: sorted((x, y) for x, y in points if math.isfinite(y)) for name, points in self.curves.items()}
        return {name: points for name, points in finite.items() if points}


def new_figure(height: float) -> Figure:
    """An empty figure of this height in inches, as wide as all."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH, height), layout="constrained")


def svg(chart: Chart) -> str:
    """The chart as one ``<svg>`` element, or a paragraph that says so where nothing can be drawn."""
    if not chart.drawn():
        return f'<p class="empty">{escape(chart.title)}: nothing was logged.</p>'
    return svg_text(lambda: chart_figure(chart), chart.title)


def chart_figure(chart: Chart) -> Figure:
    """The curves and levels of a chart, with a legend below."""
    curves = chart.drawn()
    names = list(dict.fromkeys(name.removesuffix(HELD_OUT) for name in curves))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    labels = {name: _legend_label(name, curves) for name in curves}
    shown = [label for label in labels.values() if not label.startswith("_")]
    columns = 2 if max(map(len, shown)) <= _IN_COLUMN else 1
    rows = -(-len(shown) // 2) if columns == 2 else sum(label.count("\n") + 1 for label in shown)
    figure = new_figure(_HEIGHT + 0.17 * rows)
    axes = figure.add_subplot()
    for name, points in curves.items():
        held_out = name.endswith(HELD_OUT)
        dotted = held_out or chart.measured or len(points) == 1
        axes.plot(
            *zip(*points, strict=True),
            color=colours[name.removesuffix(HELD_OUT)],
            linestyle="--" if held_out else "-",
            linewidth=1.4,
            marker="o" if dotted else "",
            markersize=3.5,
            label=labels[name],
        )
    for name, value in chart.levels.items():
        axes.axhline(value, color=TEXT, linewidth=1, linestyle=":")
        right_edge = axes.get_yaxis_transform()
        axes.text(0.99, value, f"{name} ({value:.2f})", transform=right_edge, ha="right", va="bottom", fontsize=8)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.set_xlim(left=0)
    axes.margins(y=0.08)
    if chart.measured:
        low, high = axes.get_ylim()
        lowest = min(value for points in curves.values() for _, value in points)
        axes.set_ylim(0 if lowest >= 0 else low, max(0, high))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    plain(axes)
    held_out_is_drawn = any(name.endswith(HELD_OUT) for name in curves)
    note = "line: training; dots on a dashed line: validation" if held_out_is_drawn else None
    figure.legend(loc="outside lower left", ncols=columns, frameon=False, title=note)
    return figure


def _legend_label(name: str, curves: Mapping[str, Sequence[Point]]) -> str:
    """Text of a curve in the legend, in lines that fit; with a "_" before it, the legend leaves the curve out."""
    if name.endswith(HELD_OUT) and name.removesuffix(HELD_OUT) in curves:
        return f"_{name}"
    return "\n".join(textwrap.wrap(name.replace("_", " "), _IN_LEGEND))


def plain(axes: Axes) -> None:
    """A light grid, and no frame."""
    axes.grid(color=LINES)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def svg_text(draw: Callable[[], Figure], title: str) -> str:
    """The drawing of ``draw`` as one ``<svg>`` element without metadata; its ids may stand beside other pictures'.

    Raises:
        UnifiedError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise UnifiedError(
            "drawing needs the library matplotlib; install it with: pip install '.[plot]' in the library's folder"
        ) from None
    text = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        figure = draw()
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r'<g id="[\w.]+_\d+">', "<g>", drawn)  # figure_1, axes_1: the same in all pictures
    drawn = re.sub(r"<defs>\s*<style[^<]*</style>\s*</defs>", "", drawn)  # a style sheet changes the page around it
    drawn = re.sub(r"font-family: [^;\"]*;", "font-family: system-ui, sans-serif;", drawn)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ').strip()
