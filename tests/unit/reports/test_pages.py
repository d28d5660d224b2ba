"""Pages: what templates may do, the page of one run, and the page of measurements, read back as HTML."""

import builtins
from html.parser import HTMLParser

import pytest

from unified.errors import UnifiedError
from unified.reports import measurement_page, run_page
from unified.reports.charts import Bar, Chart
from unified.reports.measurement_page import curves, page, ratios
from unified.reports.pages import render
from unified.reports.run_page import RunPage, Sample, Table


class Elements(HTMLParser):
    """The elements of a page: (tag, class, text) of each, in the order in which they begin."""

    def __init__(self, text):
        super().__init__()
        self.found, self.begun = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append([tag, dict(attributes).get("class"), ""])
        if tag != "meta":
            self.begun.append(self.found[-1])

    def handle_endtag(self, tag):
        assert self.begun.pop()[0] == tag

    def handle_data(self, text):
        for element in self.begun[-1:]:
            element[2] += text

    def texts(self, *tags):
        return [" ".join(text.split()) for tag, _, text in self.found if tag in tags]

    def classes(self, *tags):
        return [kind for tag, kind, _ in self.found if tag in tags]


# ---------------------------------------------------------------- templates


def template(folder, content):
    path = folder / "own.html.j2"
    path.write_text(content)
    return path


def test_texts_are_escaped_and_lines_of_blocks_leave_nothing(tmp_path):
    path = template(tmp_path, "{{ one }}\n  {% for x in many %}\n  {{ x | safe }}\n  {% endfor %}\nend\n")
    assert render(path, one="<a & 'b'>", many=["<b>", "c"]) == "&lt;a &amp; &#39;b&#39;&gt;\n  <b>\n  c\nend\n"


def test_a_template_finds_those_of_the_library_and_its_own_first(tmp_path):
    (tmp_path / "beside.j2").write_text("beside")
    path = template(tmp_path, '{% extends "page.html.j2" %}{% block content %}{% include "beside.j2" %}{% endblock %}')
    elements = Elements(render(path, title="T & t"))
    assert elements.texts("title", "h1") == ["T & t"] * 2 and elements.texts("main")[0] == "beside"
    (tmp_path / "page.html.j2").write_text("mine: {% block content %}{% endblock %}")
    assert render(path) == "mine: beside"


def test_a_name_that_is_not_given_is_an_error(tmp_path):
    import jinja2

    with pytest.raises(jinja2.UndefinedError, match="'missing' is undefined"):
        render(template(tmp_path, "{{ missing }}"), other=1)


def test_without_jinja_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *more):
        if name == "jinja2":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnifiedError) as raised:
        render(template(tmp_path, ""))
    assert str(raised.value) == (
        "a report needs the library jinja2; install it with: pip install '.[plot]' in the library's folder"
    )


# ---------------------------------------------------------------- the page of a run


@pytest.fixture
def drawn(monkeypatch):
    """Puts the title of each chart where its picture would be; returns the charts and the bars that would be drawn."""
    kept = []

    def picture(chart):
        kept.append(chart)
        return f"<svg>{chart.title}</svg>"

    def bars(title, given):
        kept.append((title, given))
        return f"<svg>{title}</svg>"

    monkeypatch.setattr(run_page, "svg", picture)
    monkeypatch.setattr(measurement_page, "svg", picture)
    monkeypatch.setattr(measurement_page, "bars_svg", bars)
    return kept


def test_a_run_is_shown_with_all_that_it_has(drawn):
    charts = [Chart("loss", {}, note="n < 3"), Chart("speed", {})]
    run = RunPage(
        "run <1>",
        "A lead.",
        charts,
        [Table("scores", ["name", "x"], [["a", "1"], ["b", "2 & 3"]], "below"), Table("none", [], [])],
        [
            Sample({"text": "q", "answer": "<b>"}, True),
            Sample({"t": "u", "a": "v"}, False),
            Sample({"t": "w", "a": "x"}),
        ],
        "drawn at random",
        {"lr": "1e-5", "seed": "3"},
        "fairseq-train 'a b'",
    )
    html = run.html()
    elements = Elements(html)
    assert drawn == charts and elements.texts("title", "h1") == ["run <1>"] * 2
    assert elements.texts("svg") == elements.texts("figcaption") == ["loss", "speed"]
    assert elements.texts("h2") == ["Curves", "Scores and mistakes", "Samples", "Settings"]
    assert elements.texts("h3") == ["scores", "none"]
    assert elements.texts("p") == ["A lead.", "n < 3", "below", "drawn at random"]
    assert elements.texts("th", "td") == ["name", "x", "a", "1", "b", "2 & 3", "lr", "1e-5", "seed", "3"]
    assert elements.texts("dt") == ["text", "answer", "t", "a", "t", "a"]
    assert elements.texts("dd") == ["q", "<b>", "u", "v", "w", "x"]
    assert elements.classes("dd") == [None, "right", None, "wrong", None, None]
    assert elements.texts("pre") == ["fairseq-train 'a b'"]
    assert not {"script", "link", "img"} & {tag for tag, *_ in elements.found}


def test_a_run_without_a_command_has_no_box_for_it():
    elements = Elements(RunPage("r", "", [], [], [], "", {}).html())
    assert elements.texts("h1") == ["r"] and elements.texts("pre") == []


# ---------------------------------------------------------------- the page of measurements


def line(name, value, unit="ratio", **more):
    measured = {"benchmark": name, "configuration": {}, "unit": unit, unit: value, "spread": [value, value]}
    return {**measured, "bar": None, "holds": None, "source": "", **more}


MACHINE, OTHER = {"processor": "A", "cores": 2}, {"processor": "B", "cores": 4}
LINES = [
    line(
        "fast",
        2.0,
        configuration={"size": "small"},
        bar=1.5,
        holds=True,
        machine=MACHINE,
        versions={"torch": "2", "numpy": "1"},
    ),
    line("slow", 0.5, bar=1, holds=False, machine=MACHINE, versions={"torch": "3"}, source="day", spread=[0.25, 1]),
    line("memory", 3000.0, "mega_bytes", machine=MACHINE, versions={"torch": "2"}),
    line("grows", 8.0, "seconds", at={"axis": "tokens", "value": 4.0}, machine=MACHINE),
    line("grows", 6.0, "seconds", at={"axis": "tokens", "value": 2}, machine=MACHINE),
    line("grows", 5.0, "seconds", at={"axis": "rows", "value": 2}, machine=MACHINE, configuration={"bf16": True}),
    line("grows", 1.0, at={"axis": "rows", "value": 9}, machine=OTHER),
    line("none", 0.0, machine=OTHER),
    line("least", 0.001, machine=OTHER, bar=0.5, holds=True),
]


def test_ratios_above_zero_that_have_no_size_are_bars_by_their_source():
    assert ratios(LINES) == {
        "": [Bar("fast", 2.0, "size small", 1.5, True), Bar("least", 0.001, "", 0.5, True)],
        "day": [Bar("slow", 0.5, "", 1, False)],
    }


def test_measurements_at_several_sizes_are_points_of_curves():
    named = {"y_label": "seconds", "measured": True}
    assert curves(LINES[:6]) == [
        Chart("grows", {"": [(4, 8.0), (2, 6.0)]}, x_label="tokens", **named),
        Chart("grows", {"bf16": [(2, 5.0)]}, x_label="rows", **named),
    ]
    halves = [line("grows", 1.0, at={"axis": "share", "value": value}) for value in (0.25, 0.5)]
    assert curves(halves)[0].curves == {"": [(0.25, 1.0), (0.5, 1.0)]}
    two = [
        line("speed", float(n), "x", at={"axis": "n", "value": n}, source=source) for n, source in ((1, "a"), (2, "b"))
    ]
    assert curves(two)[0].curves == {"a": [(1, 1.0)], "b": [(2, 2.0)]}


def test_each_machine_has_its_bars_curves_and_all_its_lines(drawn):
    elements = Elements(page(LINES))
    assert elements.texts("title", "h1") == ["Measurements"] * 2 and elements.texts("h2") == [
        "A, 2 cores",
        "B, 4 cores",
    ]
    assert "2 of 3 targets are reached." in elements.texts("p")[0]
    notes = [" ".join(text.split()) for tag, kind, text in elements.found if (tag, kind) == ("p", "note")]
    assert notes == ["torch 2 and 3, numpy 1", ""]
    assert elements.texts("svg") == ["ratios", "ratios day", "grows", "grows", "ratios", "grows"]
    assert elements.texts("figcaption") == ["day", "grows", "grows", "grows"]
    cells = elements.texts("td")
    rows = [cells[start : start + 4] for start in range(0, len(cells), 4)]
    assert rows == [
        ["size small", "2.00", "", "at least 1.5"],
        ["day", "0.50", "0.25-1.00", "at least 1"],
        ["", "3,000 mega bytes", "", ""],
        ["4.0 tokens", "8.00 seconds", "", ""],
        ["2 tokens", "6.00 seconds", "", ""],
        ["2 rows, bf16", "5.00 seconds", "", ""],
        ["9 rows", "1.00", "", ""],
        ["", "0.00", "", ""],
        ["", "0.00", "", "at most 0.5"],
    ]
    assert elements.classes("td")[3::4] == ["holds", "missed", "", "", "", "", "", "", "holds"]
    assert [name for name in elements.texts("th") if name in {one["benchmark"] for one in LINES}] == [
        one["benchmark"] for one in LINES
    ]
