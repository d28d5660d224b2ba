"""What is on a chart and on bars: colours, marks, labels, axes and sizes, read from matplotlib's objects."""

import re
from dataclasses import FrozenInstanceError

import pytest

from unified.reports import charts
from unified.reports.charts import COLOURS, TEXT, Bar, Chart, bars_figure, bars_svg, chart_figure, new_figure, svg

GREEN, RED, GREY, LIGHT = "#2a9d5c", "#c0392b", "#9aa5b5", "#e3e6eb"


def colour(value):
    from matplotlib.colors import to_hex

    return to_hex(value)


def chart_of(names, **more):
    return Chart("T", {name: [(0, 1.0), (10, 2.0)] for name in names}, **more)


def test_each_objective_has_a_colour_and_its_validation_the_same():
    assert (len(COLOURS), len(set(COLOURS))) == (8, 8) and all(colour(one) == one for one in COLOURS)
    names = [f"name_{n}" for n in range(9)] + ["name_0 (valid)", "alone (valid)"]
    figure = chart_figure(chart_of(names))
    (axes,) = figure.axes
    lines = axes.get_lines()
    assert [colour(line.get_color()) for line in lines] == [*COLOURS, COLOURS[0], COLOURS[0], COLOURS[1]]
    assert [line.get_linestyle() for line in lines] == ["-"] * 9 + ["--"] * 2
    assert [line.get_marker() for line in lines] == [""] * 9 + ["o"] * 2
    assert {(line.get_linewidth(), line.get_markersize()) for line in lines} == {(1.4, 3.5)}
    shown = [f"name {n}" for n in range(9)] + ["alone (valid)"]
    assert [line.get_label() for line in lines] == [*shown[:9], "_name_0 (valid)", "alone (valid)"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == shown
    assert legend.get_title().get_text() == "line: training; dots on a dashed line: validation"
    assert (
        not legend.get_frame_on() and legend._loc_real == legend.codes["lower left"] and legend._outside_loc == "lower"
    )


@pytest.mark.parametrize(("longest", "columns"), [(27, 2), (28, 1)])
def test_a_legend_has_two_columns_of_short_names_and_no_title_without_validation(longest, columns):
    (legend,) = chart_figure(chart_of(["a", "b" * longest])).legends
    assert legend._ncols == columns and legend.get_title().get_text() == ""


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_a_chart_is_as_wide_as_a_phone_and_higher_with_more_names(count, rows):
    size = chart_figure(chart_of([f"n{i}" for i in range(count)] + ["n0 (valid)"])).get_size_inches()
    assert size.tolist() == pytest.approx([4.6, 3.2 + 0.17 * rows])


def test_a_figure_has_the_size_that_is_asked_for():
    assert new_figure(2).get_size_inches().tolist() == [4.6, 2] and new_figure(2, 3).get_size_inches().tolist() == [
        3,
        2,
    ]
    assert type(new_figure(2).get_layout_engine()).__name__ == "ConstrainedLayoutEngine"


def test_axes_begin_at_no_update_and_have_their_labels():
    (axes,) = chart_figure(chart_of(["a"])).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("updates", "bits per predicted token")
    assert axes.get_xlim()[0] == 0 and axes.get_ylim() == pytest.approx((1 - 0.08, 2 + 0.08))
    assert [axes.xaxis.get_major_formatter()(value, 0) for value in (12_000, 0.5)] == ["12,000", "0.5"]
    assert not any(side.get_visible() for side in axes.spines.values()) and axes.get_axisbelow() is True
    (lines,) = {(colour(line.get_color()), line.get_linewidth()) for line in axes.get_xgridlines()}
    assert lines == (LIGHT, 0.8)
    assert {tick.tick1line.get_markersize() for tick in axes.xaxis.get_major_ticks()} == {0}
    (axes,) = chart_figure(chart_of(["a"], x_label="rows", y_label="s")).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rows", "s")


def test_a_level_is_a_dotted_line_with_its_value_at_the_right_edge():
    (axes,) = chart_figure(chart_of(["a"], levels={"best": 1.555})).axes
    line, (text,) = axes.get_lines()[1], axes.texts
    assert (colour(line.get_color()), line.get_linewidth(), line.get_linestyle()) == (TEXT, 1, ":")
    assert list(line.get_ydata()) == [1.555, 1.555] and text.get_text() == "best (1.55)"
    assert text.get_position() == (0.99, 1.555) and text.get_fontsize() == 8
    assert (text.get_ha(), text.get_va()) == ("right", "bottom")
    assert text.get_transform() == axes.get_yaxis_transform()


def test_a_single_point_is_a_dot():
    (axes,) = chart_figure(Chart("T", {"a": [(1, 5.0)], "b": [(1, 5.0), (2, 6.0)]})).axes
    assert [line.get_marker() for line in axes.get_lines()] == ["o", ""]


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [((1.0, 3.0), 0, None), ((0.0, 3.0), 0, None), ((-1.0, 3.0), None, None), ((-3.0, -1.0), None, 0)],
)
def test_measurements_show_no_less_than_zero(values, low, high):
    chart = Chart("T", {"a": list(enumerate(values))}, measured=True)
    (axes,), (free,) = chart_figure(chart).axes, chart_figure(Chart("T", chart.curves)).axes
    expected = [own if fixed is None else fixed for own, fixed in zip(free.get_ylim(), (low, high), strict=True)]
    assert list(axes.get_ylim()) == pytest.approx(expected)


def test_defaults():
    chart, bar = Chart("T", {}), Bar("b", 2.0)
    assert (chart.levels, chart.measured, chart.note) == ({}, False, "")
    assert (bar.settings, bar.target, bar.holds) == ("", None, None) and bar.label() == ["b"]
    for one in (chart, bar):
        with pytest.raises(FrozenInstanceError):
            one.title = one.name = "other"
    nan = float("nan")
    assert Chart("T", {"a": [(2, 1.0), (1, nan), (0, 3.0)], "b": [(1, nan)], "c": []}).drawn() == {
        "a": [(0, 3.0), (2, 1.0)]
    }
    assert svg(Chart("a < b", {})) == '<p class="empty">a &lt; b: nothing was logged.</p>'


# ---------------------------------------------------------------- bars


def test_labels_have_lines_of_64_characters():
    assert Bar("x" * 64, 1.0, "y" * 64).label() == ["x" * 64, "y" * 64]
    assert Bar("x" * 63 + " z", 1.0).label() == ["x" * 63, "z"] and Bar("x" * 62 + " z", 1.0).label() == [
        "x" * 62 + " z"
    ]


@pytest.fixture(scope="module")
def bars():
    return [
        Bar("good", 2.0, "s", 1.5, True),
        Bar("bad", 0.5, target=0.75, holds=False),
        Bar("far", 2.0, target=4.0, holds=False),
        Bar("none", 1.0),
        Bar("two words", 8.0, target=9.0),
    ]


def test_bars_stand_below_their_labels(bars):
    figure = bars_figure(bars)
    (axes,) = figure.axes
    assert figure.get_size_inches().tolist() == pytest.approx([4.6, 0.155 * (6 + 1.6 * 5) + 0.35])
    assert [colour(bar.get_facecolor()) for bar in axes.patches] == [GREEN, RED, RED, GREY, GREY]
    assert {round(bar.get_height(), 6) for bar in axes.patches} == {0.8}
    tops = [0, 3.6, 6.2, 8.8, 11.4]
    middles = [top + lines + 0.5 for top, lines in zip(tops, (2, 1, 1, 1, 1), strict=True)]
    assert [bar.get_y() + 0.4 for bar in axes.patches] == pytest.approx(middles)
    labels = [text for text in axes.texts if text.get_transform() == axes.get_yaxis_transform()]
    assert [text.get_text() for text in labels] == ["good", "s", "bad", "far", "none", "two words"]
    assert [text.get_position()[1] for text in labels] == pytest.approx([0.5, 1.5, *(top + 0.5 for top in tops[1:])])
    for text in labels:
        box = text.get_bbox_patch()
        assert (text.get_position()[0], text.get_va(), text.get_fontsize()) == (0, "center", 8)
        assert (colour(box.get_facecolor()), box.get_linewidth()) == ("#ffffff", 0)
        assert box.get_boxstyle().pad == pytest.approx(0.5 / 8, abs=0.005)  # of the size of letters
    assert axes.get_ylim() == pytest.approx((6 + 1.6 * 5, -0.3)) and list(axes.get_yticks()) == []


def test_figures_stand_at_the_end_of_a_bar_or_behind_a_stroke_that_is_near(bars):
    (axes,) = bars_figure(bars).axes
    labels = axes.get_yaxis_transform()
    figures = [text for text in axes.texts if text.get_transform() != labels]
    assert [text.get_text() for text in figures] == ["2.00", "0.50", "2.00", "1.00", "8.00"]
    # A stroke at just twice the value is not near; a bar below 1 grows to the left.
    assert [text.xy[0] for text in figures] == [2.0, 0.75, 2.0, 1.0, 9.0]
    assert [text.get_ha() for text in figures] == ["left", "right", "left", "left", "left"]
    assert [text.xyann for text in figures] == [(4, 0), (-4, 0), (4, 0), (4, 0), (4, 0)]
    assert {(text.get_va(), text.get_fontsize(), text.anncoords) for text in figures} == {
        ("center", 8, "offset points")
    }


def test_strokes_cross_their_bars_and_the_axis_is_logarithmic(bars):
    (axes,) = bars_figure(bars).axes
    *strokes, one = axes.get_lines()
    assert [line.get_xdata()[0] for line in strokes] == [1.5, 0.75, 4.0, 9.0]
    assert {(colour(line.get_color()), line.get_linewidth()) for line in strokes} == {("#1f2733", 1.4)}
    assert list(strokes[0].get_ydata()) == pytest.approx([2.5 - 0.6, 2.5 + 0.6])
    assert (list(one.get_xdata()), colour(one.get_color()), one.get_linewidth()) == ([1, 1], TEXT, 0.8)
    assert {tick.tick1line.get_markersize() for tick in axes.xaxis.get_minor_ticks()} == {0}
    assert axes.get_xscale() == "log" and axes.get_xlim() == pytest.approx((0.5 / 1.5, 9.0 * 1.5))
    assert axes.xaxis.get_major_formatter()(0.5, 0) == "0.5" and axes.xaxis.get_minor_formatter()(0.5, 0) == ""
    ticks = axes.xaxis.get_major_locator().tick_values(1, 10).tolist()
    assert [tick for tick in ticks if 1 <= tick <= 10] == [1, 2, 5, 10]
    (axes,) = bars_figure([Bar("b", 2.0)]).axes
    assert axes.get_xlim() == pytest.approx((1 / 1.5, 3)) and bars_svg("a & b", [Bar("b", 2.0)]).count("a &amp; b") == 1


def test_pictures_have_texts_of_the_page_in_its_colours():
    picture = svg(chart_of(["a"]))
    assert picture.startswith('<svg role="img" aria-label="T" ') and picture.endswith("</svg>")
    assert "font-family: system-ui, sans-serif;" in picture and "<text" in picture and TEXT in picture
    texts = re.findall(r"<text style=\"font-size: (\w+);.*? fill: (#\w+)\"", picture)
    assert set(texts) == {("9px", TEXT)} and len(texts) == picture.count("<text") > 6
    assert picture == svg(chart_of(["a"])) != svg(chart_of(["b"]))
    assert "figure_1" not in picture and "axes_1" not in picture and "<metadata" not in picture
    assert charts.LINES == LIGHT and charts.HELD_OUT == " (valid)"
