"""What a reader sees on charts: colours that tell curves apart, legends, axes, labels that cover nothing."""

import re
from dataclasses import FrozenInstanceError

import pytest
from matplotlib.colors import to_hex

from unified.reports.charts import COLOURS, HELD_OUT, Chart, chart_figure, new_figure, svg


def chart_of(names, **more):
    return Chart("T", {name: [(0, 1.0), (10, 2.0)] for name in names}, **more)


def boxes(figure, texts):
    """Where texts stand on the drawn figure, in pixels."""
    figure.draw_without_rendering()
    return [text.get_window_extent() for text in texts]


def overlap(one, other):
    return min(one.x1, other.x1) > max(one.x0, other.x0) and min(one.y1, other.y1) > max(one.y0, other.y0)


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


def test_a_chart_does_not_change():
    with pytest.raises(FrozenInstanceError):
        Chart("T", {}).title = "other"


def test_pictures_have_texts_in_the_fonts_of_the_page_and_are_the_same_again():
    picture = svg(chart_of(["a"]))
    assert picture.startswith('<svg role="img" aria-label="T" ') and picture.endswith("</svg>")
    texts = re.findall(r"<text style=\"font-size: (\w+);.*? fill: (#\w+)\"", picture)
    assert len(texts) == picture.count("<text") > 6 and len(set(texts)) == 1
    assert "font-family: system-ui, sans-serif;" in picture
    assert picture == svg(chart_of(["a"])) != svg(chart_of(["b"]))
    # Ids such as figure_1 would stand in every picture of a page.
    assert "figure_1" not in picture and "axes_1" not in picture and "<metadata" not in picture
    assert svg(Chart("a & b", {"a": [(1, 2.0)]})).count('aria-label="a &amp; b"') == 1
