"""Bars of ratios: where they, their labels, figures and targets stand, worked out by hand for a small example."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from matplotlib.colors import to_hex

from unified.reports.charts import TEXT


@pytest.fixture
def bars(benchmark):
    return benchmark("bars")


@pytest.fixture
def given(bars):
    """Bars that reach their target, miss it, are far from it, have none and are near to it."""
    return [
        bars.Bar("good", 2.0, "settings", 1.5, True),
        bars.Bar("bad", 0.5, target=0.75, holds=False),
        bars.Bar("far", 2.5, target=5.0, holds=False),
        bars.Bar("none", 1.0),
        bars.Bar("near", 4.0, target=7.0, holds=False),
    ]


@pytest.fixture
def axes(bars, given):
    """The parts of a figure that has been drawn, so that sizes and texts are settled."""
    figure = bars.bars_figure(given)
    figure.draw_without_rendering()
    return figure.axes[0]


#: Where things stand, in lines from the top: of each bar a line for the name and one for the settings, the bar half a
#: line below them, and more than a line on the next one.
LABELS = {"good": 0.5, "settings": 1.5, "bad": 4.1, "far": 6.7, "none": 9.3, "near": 11.9}
MIDDLES = [2.5, 5.1, 7.7, 10.3, 12.9]
LINES_OF_ALL = 14.0


def test_a_label_is_divided_into_lines_of_at_most_64_characters_which_fit_into_the_picture(bars):
    assert bars.Bar("x" * 64, 1.0, "y" * 64).label() == ["x" * 64, "y" * 64]
    assert bars.Bar("x" * 63 + " z", 1.0).label() == ["x" * 63, "z"]
    assert bars.Bar("x" * 62 + " z", 1.0).label() == ["x" * 62 + " z"]
    figure = bars.bars_figure([bars.Bar("n" * 64, 2.0)])
    figure.draw_without_rendering()
    assert figure.axes[0].texts[0].get_window_extent().x1 <= figure.bbox.width


def test_bars_stand_below_their_labels_and_the_picture_is_as_high_as_all_of_them(axes, given):
    assert axes.figure.get_size_inches() == pytest.approx((4.6, 0.155 * LINES_OF_ALL + 0.35))
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
    for drawn, bar, middle, colour in zip(axes.patches, given, MIDDLES, colours, strict=True):
        assert (drawn.get_x(), drawn.get_width(), to_hex(drawn.get_facecolor())) == (1, bar.value - 1, colour)
        assert (drawn.get_y(), drawn.get_height()) == pytest.approx((middle - 0.4, 0.8))


def test_labels_and_bars_cover_nothing(axes):
    order = [one.get_window_extent() for one in axes.texts if one.get_text() in LABELS]
    for number, bar in zip((2, 4, 6, 8, 10), axes.patches, strict=True):  # each bar behind the lines of its label
        order.insert(number, bar.get_window_extent())
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(order))
    assert order[0].y1 <= axes.bbox.y1 and order[-1].y0 >= axes.bbox.y0


def test_figures_stand_4_points_behind_their_bar_or_the_stroke_that_it_nearly_reaches(axes):
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


def test_strokes_are_dark_and_longer_than_bars_are_high_and_a_thin_line_stands_at_1(axes, given):
    *strokes, one = axes.get_lines()
    targeted = [(bar.target, middle) for bar, middle in zip(given, MIDDLES, strict=True) if bar.target is not None]
    for stroke, (target, middle) in zip(strokes, targeted, strict=True):
        assert list(stroke.get_xdata()) == [target, target]
        assert list(stroke.get_ydata()) == pytest.approx([middle - 0.6, middle + 0.6])
        assert (to_hex(stroke.get_color()), stroke.get_linewidth()) == ("#1f2733", 1.4)
    assert list(one.get_xdata()) == [1, 1] and (to_hex(one.get_color()), one.get_linewidth()) == (TEXT, 0.8)


def test_the_axis_is_logarithmic_has_room_around_all_values_and_names_1_2_and_5_alone(bars, axes):
    assert axes.get_xscale() == "log" and axes.get_axisbelow() is True  # bars cover the grid
    assert axes.get_xlim() == pytest.approx((0.5 / 1.5, 7.0 * 1.5)) and list(axes.get_yticks()) == []
    (alone,) = bars.bars_figure([bars.Bar("b", 2.0)]).axes
    assert alone.get_xlim() == pytest.approx((1 / 1.5, 3))  # 1, where bars begin, is always on it
    (short,) = bars.bars_figure([bars.Bar("b", 1.3, target=3.0)]).axes
    short.figure.draw_without_rendering()  # on so short an axis matplotlib would name 3 and 4, too
    for one, names in ((axes, ["0.5", "1", "2", "5", "10"]), (short, ["1", "2"])):
        low, high = one.get_xlim()
        ticks = [tick for tick in one.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        assert [tick.label1.get_text() for tick in ticks] == names
        assert {label.get_text() for label in one.get_xticklabels(minor=True)} == {""}


def test_a_picture_is_one_element_with_its_title(bars, given):
    picture = bars.bars_svg("a & b", given)
    assert picture.startswith('<svg role="img" aria-label="a &amp; b" ') and picture.endswith("</svg>")
    assert len(re.findall("<text ", picture)) > 11  # labels and figures
