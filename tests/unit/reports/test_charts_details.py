"""What a reader sees on charts and bars: colours that tell curves apart, legends, axes, labels that cover nothing."""

import re
from dataclasses import FrozenInstanceError
from itertools import pairwise

import pytest
from matplotlib.colors import to_hex

from unified.reports.charts import COLOURS, HELD_OUT, Bar, Chart, bars_figure, bars_svg, chart_figure, new_figure, svg


def chart_of(names, **more):
    return Chart("T", {name: [(0, 1.0), (10, 2.0)] for name in names}, **more)


def boxes(figure, texts):
    """Where texts stand on the drawn figure, in pixels."""
    figure.draw_without_rendering()
    return [text.get_window_extent() for text in texts]


def overlap(one, other):
    return min(one.x1, other.x1) > max(one.x0, other.x0) and min(one.y1, other.y1) > max(one.y0, other.y0)


# ---------------------------------------------------------------- charts


def test_each_objective_has_a_colour_and_its_validation_the_same():
    assert len({to_hex(one) for one in COLOURS}) == len(COLOURS) == 8
    names = [f"name_{n}" for n in range(9)] + [f"name_0{HELD_OUT}", f"alone{HELD_OUT}"]
    (axes,) = chart_figure(chart_of(names)).axes
    lines = axes.get_lines()
    colours = [to_hex(line.get_color()) for line in lines]
    assert colours[:8] == list(COLOURS) and colours[8] == COLOURS[0]  # the ninth objective begins again
    assert colours[9] == colours[0] and colours[10] == COLOURS[1]
    assert [line.get_linestyle() for line in lines] == ["-"] * 9 + ["--"] * 2
    assert [line.get_marker() for line in lines] == [""] * 9 + ["o"] * 2


def test_a_legend_names_each_objective_once_and_explains_dashed_lines():
    names = ["a_b", "c", f"a_b{HELD_OUT}", f"alone{HELD_OUT}"]
    (legend,) = chart_figure(chart_of(names)).legends
    assert [text.get_text() for text in legend.get_texts()] == ["a b", "c", "alone (valid)"]
    assert legend.get_title().get_text() == "line: training; dots on a dashed line: validation"
    (legend,) = chart_figure(chart_of(["a", "b"])).legends
    assert legend.get_title().get_text() == ""


@pytest.mark.parametrize(("longest", "side_by_side"), [(18, True), (19, False), (45, False), (100, False)])
def test_a_legend_has_two_columns_of_short_names_and_fits_into_the_picture(longest, side_by_side):
    figure = chart_figure(chart_of([letter * longest for letter in "abc"]))
    (axes,), (legend,) = figure.axes, figure.legends
    first, second, third = boxes(figure, legend.get_texts())
    assert (min(abs(first.y0 - other.y0) for other in (second, third)) < 1) == side_by_side
    assert not overlap(first, second) and not overlap(second, third) and not overlap(first, third)
    assert max(box.x1 for box in (first, second, third)) <= figure.bbox.width
    assert min(box.y0 for box in (first, second, third)) >= 0 and axes.bbox.height > 200  # pixels


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("name", ["n", "a name that takes a line"])
def test_a_legend_stands_below_the_axes_which_keep_their_height(name, count):
    """Of every line of the legend the figure is higher."""
    figure, small = (chart_figure(chart_of([f"{name}{i}" for i in range(n)])) for n in (count, 1))
    (axes,), (legend,) = figure.axes, figure.legends
    (box,), _ = boxes(figure, [legend]), boxes(small, [])
    assert 0 <= box.y0 < box.y1 <= axes.get_tightbbox().y0
    assert axes.bbox.height > 0.88 * small.axes[0].bbox.height


def test_a_figure_has_the_size_that_is_asked_for_and_charts_are_equally_wide():
    width, height = new_figure(2).get_size_inches()
    assert height == 2
    assert {chart_figure(chart_of(["a"] * n)).get_size_inches()[0] for n in (1, 4)} == {width}
    assert bars_figure([Bar("b", 2.0)]).get_size_inches()[0] == width
    assert width * 72 <= 360  # points: a phone shows the picture in its own size
    assert chart_figure(chart_of(["a"])).get_size_inches()[1] < width


def test_axes_have_labels_begin_at_update_0_and_leave_curves_room():
    (axes,) = chart_figure(Chart("T", {"a": [(5, 1.0), (10, 2.0)]})).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("updates", "bits per predicted token")
    low, high = axes.get_ylim()
    assert axes.get_xlim()[0] == 0 and low < 1 and high > 2
    assert [axes.xaxis.get_major_formatter()(value, 0) for value in (12_000, 0.5)] == ["12,000", "0.5"]
    assert not any(side.get_visible() for side in axes.spines.values())
    assert axes.get_axisbelow() is True and any(line.get_visible() for line in axes.get_xgridlines())  # a grid behind
    (axes,) = chart_figure(chart_of(["a"], x_label="rows", y_label="s")).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rows", "s")


def test_a_level_is_a_dotted_line_with_its_value_above_it_within_the_axes():
    figure = chart_figure(chart_of(["a"], levels={"best": 1.555}))
    (axes,) = figure.axes
    line, (text,) = axes.get_lines()[1], axes.texts
    assert list(line.get_ydata()) == [1.555, 1.555] and line.get_linestyle() == ":"
    assert text.get_text() == "best (1.55)"
    (box,) = boxes(figure, [text])
    assert box.y0 >= axes.transData.transform((0, 1.555))[1] and box.x1 <= axes.bbox.x1


def test_a_single_point_is_a_dot():
    (axes,) = chart_figure(Chart("T", {"a": [(1, 5.0)], "b": [(1, 5.0), (2, 6.0)]})).axes
    assert [line.get_marker() for line in axes.get_lines()] == ["o", ""]


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [((1.0, 3.0), 0, None), ((0.0, 3.0), 0, None), ((-1.0, 3.0), None, None), ((-3.0, -1.0), None, 0)],
)
def test_the_vertical_axis_of_measurements_includes_0(values, low, high):
    chart = Chart("T", {"a": list(enumerate(values))}, measured=True)
    (axes,), (free,) = chart_figure(chart).axes, chart_figure(Chart("T", chart.curves)).axes
    expected = [own if fixed is None else fixed for own, fixed in zip(free.get_ylim(), (low, high), strict=True)]
    assert list(axes.get_ylim()) == pytest.approx(expected)


def test_points_are_drawn_in_order_and_without_values_that_are_no_numbers():
    nan = float("nan")
    chart = Chart("T", {"a": [(2, 1.0), (1, nan), (0, 3.0)], "b": [(1, nan)], "c": []})
    assert chart.drawn() == {"a": [(0, 3.0), (2, 1.0)]}
    assert svg(Chart("a < b", {})) == '<p class="empty">a &lt; b: nothing was logged.</p>'


def test_charts_and_bars_do_not_change():
    for one in (Chart("T", {}), Bar("b", 2.0)):
        with pytest.raises(FrozenInstanceError):
            one.title = one.name = "other"


# ---------------------------------------------------------------- bars

BARS = [
    Bar("good", 2.0, "settings", 1.5, True),
    Bar("bad", 0.5, target=0.75, holds=False),
    Bar("far", 2.0, target=4.0, holds=False),
    Bar("none", 1.0),
    Bar("two words", 8.0, target=9.0),
]


@pytest.fixture(scope="module")
def drawn():
    """The figure of :data:`BARS`, its axes, the texts above the bars and the figures at their ends."""
    figure = bars_figure(BARS)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    above = axes.get_yaxis_transform()
    labels = [text for text in axes.texts if text.get_transform() == above]
    return figure, axes, labels, [text for text in axes.texts if text not in labels]


def test_a_label_is_divided_into_lines_of_at_most_64_characters():
    assert Bar("x" * 64, 1.0, "y" * 64).label() == ["x" * 64, "y" * 64] and Bar("b", 2.0).label() == ["b"]
    assert Bar("x" * 63 + " z", 1.0).label() == ["x" * 63, "z"]
    assert Bar("x" * 62 + " z", 1.0).label() == ["x" * 62 + " z"]


def test_a_line_of_a_label_fits_into_the_picture():
    figure = bars_figure([Bar("n" * 64, 2.0)])
    (box,) = boxes(figure, figure.axes[0].texts[:1])
    assert box.x1 <= figure.bbox.width


def test_bars_that_reach_their_target_miss_it_or_have_none_have_other_colours(drawn):
    good, bad, far, none, other = (to_hex(bar.get_facecolor()) for bar in drawn[1].patches)
    assert bad == far and none == other and len({good, bad, none}) == 3


def test_labels_and_bars_stand_one_below_the_other_without_overlap(drawn):
    _, axes, labels, _ = drawn
    assert [text.get_text() for text in labels] == ["good", "settings", "bad", "far", "none", "two words"]
    bars = [bar.get_window_extent() for bar in axes.patches]
    order = [text.get_window_extent() for text in labels]
    for number, box in zip((2, 4, 6, 8, 10), bars, strict=True):  # each bar behind the lines of its label
        order.insert(number, box)
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(order))
    assert order[0].y1 <= axes.bbox.y1 and order[-1].y0 >= axes.bbox.y0
    assert all(text.get_window_extent().x0 == pytest.approx(axes.bbox.x0, abs=1) for text in labels)


def test_figures_stand_at_the_end_of_a_bar_or_beyond_a_stroke_that_is_near(drawn):
    _, axes, _, figures = drawn
    assert [text.get_text() for text in figures] == ["2.00", "0.50", "2.00", "1.00", "8.00"]
    # A stroke at just twice the value is not near; a bar below 1 grows to the left.
    ends = [2.0, 0.75, 2.0, 1.0, 9.0]
    for text, bar, end, left in zip(figures, axes.patches, ends, (False, True, False, False, False), strict=True):
        box, own = text.get_window_extent(), bar.get_window_extent()
        edge = axes.transData.transform((end, 1))[0]
        assert 0 < (edge - box.x1 if left else box.x0 - edge) < 12, text.get_text()  # pixels
        assert (box.y0 + box.y1) / 2 == pytest.approx((own.y0 + own.y1) / 2, abs=2)


def test_strokes_cross_their_bars_where_the_target_is(drawn):
    _, axes, _, _ = drawn
    *strokes, one = axes.get_lines()
    assert [list(line.get_xdata()) for line in strokes] == [[1.5] * 2, [0.75] * 2, [4.0] * 2, [9.0] * 2]
    assert list(one.get_xdata()) == [1, 1]  # where bars begin
    targeted = [bar for bar, given in zip(axes.patches, BARS, strict=True) if given.target]
    for stroke, bar in zip(strokes, targeted, strict=True):
        first, last = stroke.get_ydata()
        assert first < bar.get_y() and last > bar.get_y() + bar.get_height()


def test_the_axis_of_ratios_is_logarithmic_and_has_room_around_all_values(drawn):
    _, axes, _, _ = drawn
    assert axes.get_xscale() == "log" and axes.get_axisbelow() is True  # bars cover the grid
    assert axes.get_xlim() == pytest.approx((0.5 / 1.5, 9.0 * 1.5)) and list(axes.get_yticks()) == []
    assert axes.xaxis.get_major_formatter()(0.5, 0) == "0.5" and axes.xaxis.get_minor_formatter()(0.5, 0) == ""
    ticks = axes.xaxis.get_major_locator().tick_values(1, 10).tolist()
    assert [tick for tick in ticks if 1 <= tick <= 10] == [1, 2, 5, 10]
    (alone,) = bars_figure([Bar("b", 2.0)]).axes
    assert alone.get_xlim() == pytest.approx((1 / 1.5, 3))  # 1, where bars begin, is always on it


def test_pictures_have_texts_in_the_fonts_of_the_page_and_are_the_same_again():
    picture = svg(chart_of(["a"]))
    assert picture.startswith('<svg role="img" aria-label="T" ') and picture.endswith("</svg>")
    texts = re.findall(r"<text style=\"font-size: (\w+);.*? fill: (#\w+)\"", picture)
    assert len(texts) == picture.count("<text") > 6 and len(set(texts)) == 1
    assert "font-family: system-ui, sans-serif;" in picture
    assert picture == svg(chart_of(["a"])) != svg(chart_of(["b"]))
    # Ids such as figure_1 would stand in every picture of a page.
    assert "figure_1" not in picture and "axes_1" not in picture and "<metadata" not in picture
    assert bars_svg("a & b", [Bar("b", 2.0)]).count('aria-label="a &amp; b"') == 1
