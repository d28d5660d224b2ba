"""The quickstart's report and the training log it is made from."""

import json
import logging
import math
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import report
import training_log

from unified import masks
from unified.reports import charts

# --------------------------------------------------------------------- log


@pytest.fixture
def fairseq_log(tmp_path) -> Path:
    """A --log-file as fairseq writes it: two epochs of two updates, a validation after each."""
    from fairseq.logging.progress_bar import logger, progress_bar

    path, handlers, level = tmp_path / "train.log", list(logger.handlers), logger.level
    logger.setLevel(logging.INFO)
    try:
        for epoch in (1, 2):
            bar = progress_bar([0, 1], log_format="json", log_interval=1, log_file=str(path), epoch=epoch)
            for i, _ in enumerate(bar):
                update = 2 * (epoch - 1) + i + 1
                stats = {"bidirectional_loss": 8.5 - update, "num_updates": update, "ups": 4.0, "wall": 10.0 * update}
                bar.log(stats, tag="train_inner", step=update)
            held_out = progress_bar([0], log_format="json", log_interval=1, log_file=str(path), epoch=epoch)
            held_out.print({"bidirectional_loss": 9.5 - 2 * epoch, "num_updates": 2 * epoch}, tag="valid")
            bar.print({"bidirectional_loss": 1.0, "num_updates": 2 * epoch}, tag="train")
    finally:
        for handler in set(logger.handlers) - set(handlers):
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
    return path


def test_a_log_file_of_fairseq_is_read(fairseq_log):
    log = training_log.read_training_log(fairseq_log)
    assert log["bidirectional_loss"] == [(1, 7.5), (2, 6.5), (3, 5.5), (4, 4.5)]
    assert log["valid_bidirectional_loss"] == [(2, 7.5), (4, 5.5)]
    assert log["train_bidirectional_loss"] == [(2, 1.0), (4, 1.0)]
    assert not {"epoch", "update", "num_updates", "valid_num_updates"} & set(log)
    assert training_log.seconds_per_update(log) == pytest.approx(0.25)
    assert training_log.loss_curves(log) == {
        "bidirectional": log["bidirectional_loss"],
        "bidirectional (valid)": log["valid_bidirectional_loss"],
    }


def test_the_printed_log_is_read(tmp_path):
    lines = [
        "2024-01-01 10:00:00 | INFO | fairseq_cli.train | {'_name': None, 'common': {'no_progress_bar': False}}",
        '10:00 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "3.5", "x_ppl": "nan", "num_updates": "20"}',
        "2024-01-01 10:00:02 | INFO | fairseq.trainer | begin training epoch 1",
        '2024-01-01 10:00:03 | INFO | valid | {"epoch": 1, "valid_loss": "2.5", "valid_num_updates": "20"}',
        '{"epoch": 1, "broken',
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    assert training_log.read_training_log(tmp_path / "log") == {"loss": [(20, 3.5)], "valid_loss": [(20, 2.5)]}


def test_a_log_without_statistics_is_refused(tmp_path):
    (tmp_path / "log").write_text("nothing\n[1]\n")
    with pytest.raises(ValueError, match="--log-format json"):
        training_log.read_training_log(tmp_path / "log")


# ------------------------------------------------------------------ charts


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 1200), (2.3, 8.1), (-3, 0.02), (5, 5), (0, 0), (1e-4, 3e-4)])
def test_ticks_are_round_and_enclose_the_values(low, high):
    values = charts.ticks(low, high)
    steps = {round(b - a, 9) for a, b in zip(values, values[1:], strict=False)}
    assert values[0] <= low + 1e-12 and values[-1] >= high - 1e-12 and 2 <= len(values) <= 9
    assert len(steps) == 1
    step = steps.pop()
    assert round(step / 10 ** math.floor(math.log10(step) + 1e-9), 6) in (1, 2, 5)


def test_a_curve_is_drawn_where_its_values_are():
    chart = charts.Chart("T", {"a": [(0, 2.0), (100, 4.0)], "a (valid)": [(50, 3.0), (100, math.nan)]}, {"level": 3.0})
    root = ElementTree.fromstring(charts.svg(chart))
    space = "{http://www.w3.org/2000/svg}"
    train, valid = (
        [tuple(map(float, p.split(","))) for p in e.get("points").split()] for e in root.iter(f"{space}polyline")
    )
    colours = {e.get("stroke") for e in root.iter(f"{space}polyline")}
    (level,) = (e for e in root.iter(f"{space}line") if e.get("stroke-dasharray"))
    (x0, y0), (x1, y1) = train
    assert x0 < x1 and y0 > y1  # a larger value is further up
    assert valid == [(pytest.approx((x0 + x1) / 2, abs=0.1), pytest.approx((y0 + y1) / 2, abs=0.1))]
    assert float(level.get("y1")) == pytest.approx((y0 + y1) / 2, abs=0.1)
    assert len(colours) == 1
    assert "level (3.00)" in [e.text for e in root.iter(f"{space}text")]


def test_a_chart_of_nothing_says_so():
    assert "nothing was logged" in charts.svg(charts.Chart("T", {"a": [(1, math.nan)], "b": []}))


# ------------------------------------------------------------------ report


class Reader(HTMLParser):
    """Tags, attributes and text of a page; fails on tags that do not nest."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


SCORES = {
    "ours": {"exact_match": 61.25, "bleu": 90.0, "bleu_signature": "nrefs:1"},
    "rule": {"exact_match": 40.0, "bleu": 91.0, "bleu_signature": "nrefs:1", "rouge1": 99.0},
}


def make(path, tmp_path, **changes) -> Reader:
    masks.plot(masks.seq2seq(2, 2), tmp_path / "mask.svg")
    samples = [
        report.Sample(f"source {i}", "The <b> cat sat.", {"ours": "The <b> cat sat.", "rule": "The <b> dog sat. & so"})
        for i in range(12)
    ]
    settings = {
        "introduction": "One & two.\nThree.",
        "charts": [charts.Chart("Curves", {"seq2seq": [(1, 2.0), (2, 1.0)]}, {"unigram entropy": 3.0})],
        "masks": {"seq2seq": (tmp_path / "mask.svg").read_text()},
        "tasks": [report.Task("Restoring", "What it is.", SCORES, samples)],
        "commands": ["fairseq-train --arch 'x' > log"],
        "environment": report.environment_facts(),
    }
    report.make_report(path, title="A <title>", **{**settings, **changes})
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.open == []
    return reader


def test_the_report_is_one_file_that_needs_nothing_else(tmp_path):
    reader = make(tmp_path / "report.html", tmp_path)
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name in ("src", "href", "xlink:href") or name.startswith("on")]
    assert "url(" not in (tmp_path / "report.html").read_text() and "@import" not in report._STYLE
    assert reader.tags.count("svg") == 2


def test_the_report_tells_what_was_given(tmp_path):
    reader = make(tmp_path / "report.html", tmp_path)
    text = " ".join(reader.text)
    for shown in (
        "A <title>",
        "One & two.",
        "61.2",
        "91.0",
        "nrefs:1",
        "fairseq-train --arch 'x' > log",
        "torch",
        "source 9",
    ):
        assert shown in text, shown
    assert "source 10" not in text  # ten samples
    assert "ROUGE-1" not in text  # only metrics that every system has
    assert text.count("The <b> cat sat.") == 20  # reference and the right output
    assert reader.tags.count("mark") == 20  # "dog" and "& so" of every wrong one
    assert reader.attributes.count(("class", "best")) == 2
    assert reader.attributes.count(("class", "right")) == 10


def test_a_report_of_nothing_has_no_empty_sections(tmp_path):
    report.make_report(tmp_path / "report.html")
    assert "<section>" not in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("picture", ["not a picture", "<svg><script>x</script></svg>", '<svg onload="x"></svg>'])
def test_pictures_with_anything_but_drawing_are_refused(tmp_path, picture):
    with pytest.raises(ValueError, match="mask picture 'm'"):
        make(tmp_path / "report.html", tmp_path, masks={"m": picture})
    assert not (tmp_path / "report.html").exists()


def test_the_table_for_the_terminal():
    lines = report.score_table(SCORES).splitlines()
    assert lines[0].split() == ["system", "exact", "sentences,", "%", "BLEU"]
    assert [line.split() for line in lines[1:]] == [["ours", "61.2", "90.0"], ["rule", "40.0", "91.0"]]
    assert len({len(line) for line in lines}) == 1


def test_the_environment_names_what_scores_depend_on():
    facts = report.environment_facts()
    assert {"Python", "torch", "numpy", "sacrebleu", "processors"} <= set(facts)
    assert json.dumps(facts)
