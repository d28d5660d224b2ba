"""The geometry and the look of charts, worked out by hand for small examples."""

from __future__ import annotations

import logging
import re
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_hex
from matplotlib.layout_engine import ConstrainedLayoutEngine

from unified.reports.charts import (
    COLOURS,
    LINES,
    TEXT,
    Chart,
    chart_figure,
    new_figure,
    svg,
)

CHART = Chart("T", {"a": [(0, 2.0), (100, 4.0)], "a (valid)": [(50, 3.0), (100, 4.5)]}, {"level": 1.0})


def look(line):
    """Colour, style and width of a line, and its marker."""
    return to_hex(line.get_color()), line.get_linestyle(), line.get_linewidth(), line.get_marker()


def points(line):
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))


def test_the_colours_are_eight_different_ones_as_pages_write_them():
    assert len(set(COLOURS)) == 8 and all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in COLOURS)


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (["a"], 1),
        (["a", "b"], 1),  # side by side
        (["a", "b", "c"], 2),
        ([*"abcdefg"], 4),
        (["a", "b", "a (valid)", "b (valid)"], 1),  # a validation has no row of its own
        (["n" * 18, "b"], 1),
        (["n" * 19, "b"], 2),  # one below the other
        (["n" * 45, "b"], 2),
        (["n" * 46, "b"], 3),  # the first takes two lines
        (["n" * 45 + " " + "m" * 45 + " o", "b", "c"], 5),
    ],
)
def test_a_chart_is_higher_by_the_lines_of_its_legend(names, rows):
    figure = chart_figure(Chart("T", {name: [(0, 1.0), (1, 2.0)] for name in names}))
    assert figure.get_size_inches() == pytest.approx((4.6, 3.2 + 0.17 * rows))


def test_training_is_a_line_validation_dots_on_a_dashed_line_and_a_level_a_dotted_line():
    (axes,) = chart_figure(CHART).axes
    train, valid, level = axes.get_lines()
    assert look(train) == ("#3366cc", "-", 1.4, "")
    assert look(valid) == ("#3366cc", "--", 1.4, "o") and valid.get_markersize() == 3.5
    assert look(level)[:3] == (TEXT, ":", 1)
    assert points(train) == [(0, 2.0), (100, 4.0)] and points(valid) == [(50, 3.0), (100, 4.5)]


def test_curves_and_levels_have_a_margin_of_8_percent_and_the_name_of_a_level_one_of_1_percent():
    figure = chart_figure(CHART)
    figure.draw_without_rendering()
    (axes,), margin = figure.axes, 0.08 * (4.5 - 1.0)
    assert axes.get_ylim() == pytest.approx((1.0 - margin, 4.5 + margin))
    (text,) = axes.texts
    assert (text.get_text(), text.get_fontsize()) == ("level (1.00)", 8)
    assert text.get_window_extent().x1 == pytest.approx(axes.bbox.x0 + 0.99 * axes.bbox.width, abs=1)  # pixels
    assert axes.get_xlabel() == "updates"


def test_a_legend_has_no_frame_and_all_parts_get_the_room_that_they_need():
    (legend,) = chart_figure(CHART).legends
    assert legend.get_frame_on() is False
    assert isinstance(new_figure(1).get_layout_engine(), ConstrainedLayoutEngine)


def test_the_grid_is_light_and_axes_have_no_tick_marks():
    (axes,) = chart_figure(CHART).axes
    for line in axes.get_xgridlines():
        assert (to_hex(line.get_color()), line.get_linewidth()) == (LINES, 0.8)
    for axis in (axes.xaxis, axes.yaxis):
        ticks = [*axis.get_major_ticks(1), *axis.get_minor_ticks(1)]
        assert {tick.tick1line.get_markersize() for tick in ticks} == {0}


def test_a_picture_has_text_in_its_labels_alone_and_no_style_sheet(caplog):
    """Fonts are found: matplotlib would log a warning."""
    with caplog.at_level(logging.WARNING):
        root = ElementTree.fromstring(svg(CHART))
    assert caplog.messages == []
    elements = [(one.tag.partition("}")[2], one) for one in root.iter()]
    stray = [one.tail for _, one in elements] + [one.text for name, one in elements if name != "text"]
    assert not any(text.strip() for text in stray if text) and "style" not in {name for name, _ in elements}
    assert {one.get("role") for _, one in elements} == {"img", None}
    sizes = {re.match(r"font-size: (\d+)px; font-family: system-ui, sans-serif;", one.get("style")).group(1)
             for name, one in elements if name == "text"}  # fmt: skip
    assert sizes == {"8", "9"}
