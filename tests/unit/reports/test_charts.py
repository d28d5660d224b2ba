"""Charts: matplotlib draws what was given, and the pictures are self-contained SVG."""

from __future__ import annotations

import builtins
import math
import re
from xml.etree import ElementTree

import pytest

from unified.errors import UnifiedError
from unified.reports.charts import Chart, chart_figure, svg

CHART = Chart("T", {"a": [(100, 4.0), (0, 2.0)], "a (valid)": [(50, 3.0), (100, math.nan)]}, {"level": 3.0})


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


@pytest.mark.slow
def test_a_picture_needs_nothing_else_and_is_the_same_again():
    picture = svg(CHART)
    root = ElementTree.fromstring(picture)
    assert root.get("aria-label") == "T" and picture == svg(CHART)
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
