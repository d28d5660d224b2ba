"""The quickstart's report and the training log it is made from."""

import json
import logging
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import report

from tests.recipes.test_recipes import load
from tests.support.browser import chromium, open_on_phone
from unified import masks
from unified.reports import training_log
from unified.reports.charts import Chart

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
        *(f'{{"epoch": 1, "loss": "9", "num_updates": {damaged}}}' for damaged in ('"2{0"', "{}", "1e999", "null")),
    ]
    (tmp_path / "log").write_bytes(b"\xff\n" + "\n".join(lines).encode())
    assert training_log.read_training_log(tmp_path / "log") == {"loss": [(20, 3.5)], "valid_loss": [(20, 2.5)]}


def test_a_log_without_statistics_is_refused(tmp_path):
    (tmp_path / "log").write_text("nothing\n[1]\n")
    with pytest.raises(ValueError, match="--log-format json"):
        training_log.read_training_log(tmp_path / "log")


def test_next_sentence_prediction_is_told_but_not_drawn():
    log = {
        "bidirectional_loss": [(1, 5.0)],
        "valid_bidirectional_loss": [(1, 5.5)],
        "bidirectional_next_sentence_loss": [(1, 1.0)],
        "valid_bidirectional_next_sentence_loss": [(1, 1.1), (2, 0.999)],
        "valid_bidirectional_next_sentence_accuracy": [(1, 48.0), (2, 51.62)],
    }
    assert set(training_log.loss_curves(log)) == {"bidirectional", "bidirectional (valid)"}
    note = training_log.next_sentence_note(log)
    assert "ended at 1.00 bits, 51.6 % right; guessing has 1 bit and 50 %." in note and "not been learnt" in note
    learnt = log | {"valid_bidirectional_next_sentence_loss": [(2, 0.5)]}
    assert "not been learnt" not in training_log.next_sentence_note(learnt)
    assert training_log.next_sentence_note({"bidirectional_loss": [(1, 5.0)]}) == ""


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


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


SCORES = {
    "ours": {"exact_match": 61.25, "bleu": 90.0, "bleu_signature": "nrefs:1"},
    "rule": {"exact_match": 40.0, "bleu": 91.0, "bleu_signature": "nrefs:1", "rouge1": 99.0},
}


ALL_METRICS = [metric.key for metric in report.METRICS]


def make(path, tmp_path, **changes) -> Reader:
    masks.plot(masks.seq2seq(2, 2), tmp_path / "mask.svg")
    samples = [
        report.Sample(f"source {i}", "The <b> cat sat.", {"ours": "The <b> cat sat.", "rule": "The <b> dog sat. & so"})
        for i in range(10)
    ]
    settings = {
        "introduction": "One & two.\nThree.",
        "charts": [
            Chart("Curves", {"seq2seq": [(1, 2.0), (2, 1.0)]}, {"unigram entropy": 3.0}, note="a sentence below")
        ],
        "masks": {"seq2seq": (tmp_path / "mask.svg").read_text()},
        "tasks": [
            report.Task("Restoring", "What it is.", SCORES, "Exact ones count.", samples, "Drawn so.", {"dropout": 0.1})
        ],
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
    addresses = [value for name, value in reader.attributes if name in ("src", "href", "xlink:href")]
    assert all(address.startswith("#") for address in addresses)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    text = (tmp_path / "report.html").read_text()
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    assert reader.tags.count("svg") == 2


def test_the_report_tells_what_was_given(tmp_path):
    reader = make(tmp_path / "report.html", tmp_path)
    text = re.sub(r"\s+", " ", " ".join(reader.text))
    for shown in (
        "A <title>",
        "One & two.",
        "61.2",
        "91.0",
        "nrefs:1",
        "fairseq-train --arch 'x' > log",
        "torch",
        "source 9",
        "which is 21.2 more than the rule. The rule has the best score in: BLEU. Exact ones count.",
        "Drawn so.",
        "dropout 0.1",
        "a sentence below",
    ):
        assert shown in text, shown
    assert "ROUGE-1" not in text  # only metrics that every system has
    assert text.count("The <b> cat sat.") == 20  # reference and the right output
    assert reader.tags.count("mark") == 20  # "dog" and "& so" of every wrong one
    assert reader.attributes.count(("class", "best")) == 2
    assert reader.attributes.count(("class", "right")) == 10


def test_the_report_is_readable_on_a_phone(browser, tmp_path):
    """Nothing but tables and code is wider than the screen, and every picture has a size."""
    long = {"scores": {f"a system with a long name {i}": dict.fromkeys(ALL_METRICS, 50.0) for i in range(3)}}
    make(tmp_path / "report.html", tmp_path, tasks=[report.Task("Long", "w" * 200, **long)], commands=["c" * 500])
    open_on_phone(browser, tmp_path / "report.html")
    width, pictures, tables = browser.execute_script(
        "const sizes = (name) => [...document.querySelectorAll(name)].map((one) => one.getBoundingClientRect());"
        "return [document.documentElement.scrollWidth, sizes('svg').map((b) => [b.width, b.height]),"
        " [...document.querySelectorAll('.scroll')].some((box) => box.scrollWidth > box.clientWidth)];"
    )
    assert width <= 360 and tables
    assert len(pictures) == 2 and all(100 < width <= 360 and height > 100 for width, height in pictures)
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def test_a_report_of_nothing_has_no_empty_sections(tmp_path):
    report.make_report(tmp_path / "report.html")
    assert "<section" not in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("picture", ["not a picture", "<svg><script>x</script></svg>", '<svg onload="x"></svg>'])
def test_pictures_with_anything_but_drawing_are_refused(tmp_path, picture):
    with pytest.raises(ValueError, match="mask picture 'm'"):
        make(tmp_path / "report.html", tmp_path, masks={"m": picture})
    assert not (tmp_path / "report.html").exists()


def test_the_table_for_the_terminal():
    lines = report.score_table(report.Task("t", "d", SCORES)).splitlines()
    assert lines[0].split() == ["system", "exact", "sentences,", "%", "BLEU"]
    assert [line.split() for line in lines[1:]] == [["ours", "61.2", "90.0"], ["rule", "40.0", "91.0"]]
    assert len({len(line) for line in lines}) == 1


def test_the_environment_names_what_scores_depend_on():
    facts = report.environment_facts()
    assert {"Python", "torch", "numpy", "sacrebleu", "processor", "cores"} <= set(facts)
    assert json.dumps(facts)


def test_the_samples_of_the_quickstart_are_drawn_at_random_and_the_same_again(tmp_path):
    quickstart = load(Path(report.__file__).parent / "run.py")
    sources = [f"a sentence {i}" for i in range(40)]
    folder, corpus = tmp_path / "restore", tmp_path / "corpus" / "restore"
    corpus.mkdir(parents=True)
    (corpus / "test.source").write_text("".join(f"{line}\n" for line in sources))
    (corpus / "test.target").write_text("".join(f"{line.title()}.\n" for line in sources))
    for system in ("with-pre-training", "without-pre-training"):
        (folder / system).mkdir(parents=True)
        lines = (f"T-{i}\t{line.title()}.\nH-{i}\t0\tx\nD-{i}\t0\t{system} {i}\n" for i, line in enumerate(sources))
        (folder / system / "generate-test.txt").write_text("".join(lines))
    (folder / "rule.txt").write_text("".join(f"{line}.\n" for line in sources))
    tasks = [quickstart.Trial(quickstart.Run(tmp_path), quickstart.RESTORE).report(SCORES) for _ in range(2)]
    assert tasks[0] == tasks[1] and tasks[0].drawn == "10 of 40 sentences, drawn at random (seed 1)."
    drawn = [sources.index(sample.source) for sample in tasks[0].samples]
    assert drawn == sorted(set(drawn)) and drawn != list(range(10)) and len(drawn) == 10
    for i, sample in zip(drawn, tasks[0].samples, strict=True):
        texts = {"with pre-training": f"with-pre-training {i}", "without pre-training": f"without-pre-training {i}"}
        assert sample.reference == f"{sources[i].title()}." and sample.outputs == texts | {"rule": f"{sources[i]}."}
    assert tasks[0].settings["pre-training"].startswith("4,400 updates of 36 rows with 32 tokens")
