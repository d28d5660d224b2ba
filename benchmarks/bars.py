"""Ratios as horizontal bars on a logarithmic axis, each with its settings and the value that is wanted of it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unified.reports.charts import TEXT, new_figure, plain, svg_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BAR_COLOURS = {True: "#2a9d5c", False: "#c0392b", None: "#9aa5b5"}
_LABEL_CHARACTERS = 64  # of 8 points, in a picture as wide as all


@dataclass(frozen=True)
class Bar:
    """A ratio that is drawn as a bar, which begins at 1.

    Attributes:
        settings: under which it was measured, printed in small letters below the name.
        target: the value that is wanted, None where there is none.
        holds: whether the target is reached, None where there is none.
    """

    name: str
    value: float
    settings: str = ""
    target: float | None = None
    holds: bool | None = None

    def label(self) -> list[str]:
        """The lines of text above the bar."""
        return [line for text in (self.name, self.settings) for line in textwrap.wrap(text, _LABEL_CHARACTERS)]


def bars_svg(title: str, bars: Sequence[Bar]) -> str:
    """Horizontal bars with their figures as one ``<svg>`` element."""
    return svg_text(lambda: bars_figure(bars), title)


def bars_figure(bars: Sequence[Bar]) -> Figure:
    """Ratios on a logarithmic axis: bars begin at 1, and a stroke stands at the value that is wanted of each."""
    from matplotlib.ticker import LogLocator

    line = 0.155  # inches
    label: dict[str, Any] = {"va": "center", "fontsize": 8, "bbox": {"facecolor": "white", "linewidth": 0, "pad": 0.5}}
    tops, height = [], 0.0
    for bar in bars:
        tops.append(height)
        height += len(bar.label()) + 1.6
    figure = new_figure(line * height + 0.35)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    for bar, top in zip(bars, tops, strict=True):
        colour, middle = _BAR_COLOURS[bar.holds], top + len(bar.label()) + 0.5
        axes.barh(middle, bar.value - 1, left=1, color=colour)
        for number, text in enumerate(bar.label()):
            axes.text(0, top + number + 0.5, text, transform=axes.get_yaxis_transform(), **label)
        # The figure stands at the bar's end, or behind the stroke where that would cross it.
        end = bar.target if bar.target and bar.value < bar.target < 2 * bar.value else bar.value
        side, gap = ("left", 4) if end >= 1 else ("right", -4)
        axes.annotate(
            f"{bar.value:.2f}", (end, middle), (gap, 0), textcoords="offset points", ha=side, va="center", fontsize=8
        )
        if bar.target is not None:
            axes.plot([bar.target] * 2, [middle - 0.6, middle + 0.6], color="#1f2733", linewidth=1.4)
    reached = [1.0, *(bar.value for bar in bars), *(bar.target for bar in bars if bar.target is not None)]
    axes.set_xlim(min(reached) / 1.5, max(reached) * 1.5)
    axes.set_ylim(height, -0.3)
    axes.set_yticks([])
    axes.axvline(1, color=TEXT, linewidth=0.8)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    plain(axes)
    return figure
