"""Pages: what templates may do, and the page of one run, read back as HTML."""

import builtins

import pytest

from tests.support.page_elements import Elements
from unified.errors import UnifiedError
from unified.reports import run_page
from unified.reports.charts import Chart
from unified.reports.pages import render
from unified.reports.run_page import RunPage, Sample, Table

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
    """Puts the title of each chart where its picture would be; returns the charts that would be drawn."""
    kept = []

    def picture(chart):
        kept.append(chart)
        return f"<svg>{chart.title}</svg>"

    monkeypatch.setattr(run_page, "svg", picture)
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
