"""Charts and bars: matplotlib draws what was given, and the pictures are self-contained SVG."""

from __future__ import annotations

import builtins
import math
import re
from xml.etree import ElementTree

import pytest

from unified.errors import UnifiedError
from unified.reports.charts import Bar, Chart, bars_figure, bars_svg, chart_figure, svg

CHART = Chart("T", {"a": [(100, 4.0), (0, 2.0)], "a (valid)": [(50, 3.0), (100, math.nan)]}, {"level": 3.0})
BARS = [
    Bar("ours / theirs", 2.0, "rows 4", 1.5, True),
    Bar("c", 0.5),
    Bar("a name " * 20, 60.0, target=100, holds=False),
]


def test_a_curve_is_drawn_where_its_values_are():
    (axes,) = chart_figure(CHART).axes
    train, valid, level = axes.get_lines()
    assert (list(train.get_xdata()), list(train.get_ydata())) == ([0, 100], [2.0, 4.0])
    assert (list(valid.get_xdata()), list(valid.get_ydata())) == ([50], [3.0])
    assert train.get_color() == valid.get_color() and (train.get_marker(), valid.get_marker()) == ("", "o")
    assert list(level.get_ydata()) == [3.0, 3.0] and axes.texts[0].get_text() == "level (3.00)"


def test_single_measurements_are_dots_above_zero():
    (axes,) = chart_figure(Chart("T", {"a": [(1, 5.0), (2, 6.0)]}, measured=True)).axes
    assert axes.get_ylim()[0] == 0 and axes.get_lines()[0].get_marker() == "o"


def test_measurements_below_zero_are_drawn_too():
    (axes,) = chart_figure(Chart("T", {"a": [(1, 5.0), (2, 6.0)], "b": [(1, 1.0), (2, -3.0)]}, measured=True)).axes
    assert axes.get_ylim()[0] < -3 and axes.get_ylim()[1] > 6
    (axes,) = chart_figure(Chart("T", {"a": [(1, -5.0), (2, -3.0)]}, measured=True)).axes
    assert axes.get_ylim()[0] < -5 and axes.get_ylim()[1] >= 0


def test_a_chart_of_nothing_says_so():
    assert "nothing was logged" in svg(Chart("T", {"a": [(1, math.nan)], "b": []}))


def test_bars_begin_at_one_and_strokes_stand_at_what_is_wanted():
    (axes,) = bars_figure(BARS).axes
    spans = [sorted((bar.get_x(), bar.get_x() + bar.get_width())) for bar in axes.patches]
    assert spans == [[1, 2.0], [0.5, 1], [1, 60.0]]
    assert [list(line.get_xdata()) for line in axes.get_lines()[:2]] == [[1.5, 1.5], [100, 100]]
    low, high = axes.get_xlim()
    assert low < 0.5 and high > 100
    assert {"ours / theirs", "rows 4", "2.00", "0.50", "60.00"} <= {text.get_text() for text in axes.texts}


def test_a_bar_stands_below_the_lines_of_its_own_label_and_above_the_next():
    (axes,) = bars_figure(BARS).axes
    bars = [bar.get_y() + bar.get_height() / 2 for bar in axes.patches]
    lines = [text.get_position()[1] for text in axes.texts if text.get_transform() is axes.get_yaxis_transform()]
    lengths = [len(bar.label()) for bar in BARS]
    assert lengths[0] == 2 and lengths[1] == 1 and lengths[2] > 2 and sum(lengths) == len(lines)
    order = []  # from the top to the bottom
    for bar, length in zip(bars, lengths, strict=True):
        own, lines = lines[:length], lines[length:]
        order += [*own, bar]
    assert min(b - a for a, b in zip(order, order[1:], strict=False)) >= 0.6
    assert axes.get_ylim()[1] < order[0] and order[-1] + 0.6 <= axes.get_ylim()[0]


@pytest.mark.slow
@pytest.mark.parametrize("draw", [lambda: svg(CHART), lambda: bars_svg("T", BARS)], ids=["chart", "bars"])
def test_pictures_need_nothing_else_and_are_the_same_again(draw):
    picture = draw()
    root = ElementTree.fromstring(picture)
    assert root.get("aria-label") == "T" and picture == draw()
    assert not re.search(r"<style|<metadata|<script|href=\"[^#]", picture)
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(texts)  # text that can be read, not outlines of letters


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *more):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnifiedError, match=r"needs the library matplotlib.*pip install '\.\[plot\]'"):
        svg(CHART)
