"""The geometry and the look of charts and bars, worked out by hand for small examples."""

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
    Bar,
    Chart,
    bars_figure,
    bars_svg,
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


# ---------------------------------------------------------------- charts


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


@pytest.mark.parametrize("draw", [lambda: chart_figure(CHART), lambda: bars_figure(BARS)], ids=["chart", "bars"])
def test_the_grid_is_light_and_axes_have_no_tick_marks(draw):
    (axes,) = draw().axes
    for line in axes.get_xgridlines():
        assert (to_hex(line.get_color()), line.get_linewidth()) == (LINES, 0.8)
    for axis in (axes.xaxis, axes.yaxis):
        ticks = [*axis.get_major_ticks(1), *axis.get_minor_ticks(1)]
        assert {tick.tick1line.get_markersize() for tick in ticks} == {0}


# ---------------------------------------------------------------- bars

BARS = [
    Bar("good", 2.0, "settings", 1.5, True),
    Bar("bad", 0.5, target=0.75, holds=False),
    Bar("far", 2.5, target=5.0, holds=False),
    Bar("none", 1.0),
    Bar("near", 4.0, target=7.0, holds=False),
]
#: Where things stand, in lines from the top: of each bar a line for the name and one for the settings, the bar half a
#: line below them, and more than a line on the next one.
LABELS = {"good": 0.5, "settings": 1.5, "bad": 4.1, "far": 6.7, "none": 9.3, "near": 11.9}
MIDDLES = [2.5, 5.1, 7.7, 10.3, 12.9]
LINES_OF_ALL = 14.0


def test_bars_stand_below_their_labels_and_the_picture_is_as_high_as_all_of_them():
    figure = bars_figure(BARS)
    (axes,) = figure.axes
    assert figure.get_size_inches() == pytest.approx((4.6, 0.155 * LINES_OF_ALL + 0.35))
    assert axes.get_ylim() == pytest.approx((LINES_OF_ALL, -0.3))
    labels = [one for one in axes.texts if one.get_text() in LABELS]
    assert {one.get_text(): one.get_position() for one in labels} == {
        name: (0, pytest.approx(y)) for name, y in LABELS.items()
    }
    for one in labels:
        box = one.get_bbox_patch()
        assert (one.get_va(), one.get_fontsize()) == ("center", 8) and one.get_transform() == axes.get_yaxis_transform()
        # White behind the letters, about half a point wider on each side.
        assert (to_hex(box.get_facecolor()), box.get_linewidth()) == ("#ffffff", 0)
        assert box.get_boxstyle().pad * one.get_fontsize() == pytest.approx(0.5, abs=0.1)
    colours = ["#2a9d5c", "#c0392b", "#c0392b", "#9aa5b5", "#c0392b"]
    for drawn, bar, middle, colour in zip(axes.patches, BARS, MIDDLES, colours, strict=True):
        assert (drawn.get_x(), drawn.get_width(), to_hex(drawn.get_facecolor())) == (1, bar.value - 1, colour)
        assert (drawn.get_y(), drawn.get_height()) == pytest.approx((middle - 0.4, 0.8))


def test_figures_stand_4_points_behind_their_bar_or_the_stroke_that_it_nearly_reaches():
    (axes,) = bars_figure(BARS).axes
    figures = [one for one in axes.texts if one.get_text() not in LABELS]
    expected = [  # text, end, side that is there
        ("2.00", 2.0, "left"),
        ("0.50", 0.75, "right"),
        ("2.50", 2.5, "left"),  # a stroke at twice the value is not near
        ("1.00", 1.0, "left"),
        ("4.00", 7.0, "left"),
    ]
    for one, (text, end, side), middle in zip(figures, expected, MIDDLES, strict=True):
        assert (one.get_text(), one.get_ha(), one.get_va(), one.get_fontsize()) == (text, side, "center", 8)
        assert one.xy == (end, pytest.approx(middle))
        assert one.get_position() == (4 if side == "left" else -4, 0) and one.anncoords == "offset points"


def test_strokes_are_dark_and_longer_than_bars_are_high_and_a_thin_line_stands_at_1():
    (axes,) = bars_figure(BARS).axes
    *strokes, one = axes.get_lines()
    targeted = [(bar.target, middle) for bar, middle in zip(BARS, MIDDLES, strict=True) if bar.target is not None]
    for stroke, (target, middle) in zip(strokes, targeted, strict=True):
        assert points(stroke) == [(target, pytest.approx(middle - 0.6)), (target, pytest.approx(middle + 0.6))]
        assert look(stroke)[:3] == ("#1f2733", "-", 1.4)
    assert list(one.get_xdata()) == [1, 1] and look(one)[:3] == (TEXT, "-", 0.8)


def test_the_axis_of_ratios_names_1_2_and_5_alone():
    (axes,) = bars_figure([Bar("b", 1.3, target=3.0)]).axes  # on so short an axis matplotlib would name 3 and 4, too
    axes.figure.draw_without_rendering()
    low, high = axes.get_xlim()
    named = [tick.label1.get_text() for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert named == ["1", "2"]
    assert {label.get_text() for label in axes.get_xticklabels(minor=True)} == {""}


# ---------------------------------------------------------------- SVG


@pytest.mark.parametrize("draw", [lambda: svg(CHART), lambda: bars_svg("T", BARS)], ids=["chart", "bars"])
def test_a_picture_has_text_in_its_labels_alone_and_no_style_sheet(draw, caplog):
    """Fonts are found: matplotlib would log a warning."""
    with caplog.at_level(logging.WARNING):
        root = ElementTree.fromstring(draw())
    assert caplog.messages == []
    elements = [(one.tag.partition("}")[2], one) for one in root.iter()]
    stray = [one.tail for _, one in elements] + [one.text for name, one in elements if name != "text"]
    assert not any(text.strip() for text in stray if text) and "style" not in {name for name, _ in elements}
    assert {one.get("role") for _, one in elements} == {"img", None}
    sizes = {re.match(r"font-size: (\d+)px; font-family: system-ui, sans-serif;", one.get("style")).group(1)
             for name, one in elements if name == "text"}  # fmt: skip
    assert sizes == {"8", "9"}
