"""`unified report`: the page of a pre-training and of a fine-tuning, on a phone too."""

import json
import re
import shutil

import pytest

import unified
from tests.integration.cli.test_task_commands import refused, said
from tests.support.browser import chromium, open_on_phone
from tests.support.corpora import random_documents, raw_text
from unified.cli import main
from unified.reports.results import write_result

LOG = (
    '10:00 | INFO | first_updates | {"num_updates": 1, "loss": 9.5, "bert_loss": 9.5}\n'
    '10:00 | INFO | train_inner | {"epoch": 1, "loss": "8", "bert_loss": "8", "num_updates": "50"}\n'
    '10:00 | INFO | valid | {"valid_loss": "7.5", "valid_bert_loss": "7.5", "valid_bert_ppl": "181", '
    '"valid_bert_accuracy": "12.5", "valid_num_updates": "50"}\n'
)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A run as `unified pretrain` leaves it, of few updates, with a log that is written by hand."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "text").write_text(raw_text(random_documents(40)), encoding="utf-8")
    words = ["--output", str(folder / "data"), "--tokenizer", "char", "--valid-share", "0.3", "--workers", "1"]
    assert main(["prepare", str(folder / "text"), *words]) == 0
    rows = {"tokens_per_sample": 32, "max_tokens": 128, "device": "cpu"}
    unified.train("tiny", folder / "data", "bert:1,left_to_right:1", updates=2, output=folder / "run", **rows)
    (folder / "run" / "train.log").write_text(LOG, encoding="utf-8")
    options = {"data": str(folder / "data"), "objectives": "bert:1,left_to_right:1"}
    (folder / "run" / "run.yaml").write_text(json.dumps(options), encoding="utf-8")
    return folder / "run"


@pytest.fixture(scope="module")
def finetuned(tmp_path_factory):
    """A run as `unified finetune` leaves it, without its model."""
    run = tmp_path_factory.mktemp("report") / "films"
    (run / "data").mkdir(parents=True)
    labels = [("good <b>", "bad"), ("bad", "bad"), ("bad", "good <b>"), ("good <b>", "good <b>")] * 5
    for file, rows in (
        ("data/valid.jsonl", [{"text": f"film {i} & more", "label": gold} for i, (gold, _) in enumerate(labels)]),
        ("predictions.valid.jsonl", [{"label": label} for _, label in labels]),
    ):
        text = "".join(json.dumps({"id": str(i), **row}) + "\n" for i, row in enumerate(rows))
        (run / file).write_text(text, encoding="utf-8")
    command = ["fairseq-train", "a b", "--best-checkpoint-metric", "f1", "--maximize-best-checkpoint-metric"]
    write_result(
        run, task="films", run="ours", scores={"valid": {"accuracy": 50.0, "signature": "s"}}, seed=1,
        command=command, model={"name": "start", "sha256": None}, settings={}, data={}, published={}, checkpoint="last",
    )  # fmt: skip
    risen = '10:01 | INFO | valid | {"valid_loss": "9", "valid_f1": "100", "valid_num_updates": "100"}\n'
    (run / "train.log").write_text(LOG.replace("bert_", "").replace("valid_ppl", "valid_f1") + risen, encoding="utf-8")
    (run / "run.yaml").write_text("task: films\nlr: 0.001\nfairseq: ''\n", encoding="utf-8")
    return run


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<(svg|style).*?</\1>|<[^>]+>", " ", page, flags=re.S).split())


def test_a_fine_tuning_shows_curves_confusions_samples_and_settings(finetuned, tmp_path, capsys):
    assert said(capsys, "report", finetuned) == [f"wrote {finetuned / 'report.html'}"]
    page = (finetuned / "report.html").read_text(encoding="utf-8")
    assert page.endswith("</html>\n")
    assert page.count("<svg") == 2 and not re.search(r"(src|href)=\"?(http|//)|<script|@import", page)
    text = text_of(page)
    assert (
        "right \\ model bad good &lt;b&gt; bad 5 5 good &lt;b&gt; 5 5" in text
        and "valid accuracy 50.00 of checkpoint_last.pt" in text
    )
    assert (
        "Fine-tuned for films. The best f1 was 181, after update 50 of 100 (checkpoint_best.pt), with a validation "
        "loss of 7.5; the lowest validation loss was 7.5, after update 50; at the end it is 9. " in text
    )
    assert "loss per prediction" in page and "a head that predicts numbers has the squared error" in text
    assert "lr 0.001" in text and "fairseq-train &#39;a b&#39;" in text and text.count("film ") == 8
    assert page.count('class="right"') + page.count('class="wrong"') == 8
    options = ("--samples", 2, "--output", tmp_path / "page.html", "--overwrite")
    pages = []
    for seed in (1, 1, 2):
        said(capsys, "report", finetuned, *options, "--seed", seed)
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1] != pages[2] and text_of(pages[0]).count("film ") == 2


def test_tasks_that_were_learnt_together_stand_on_one_page(finetuned, tmp_path, capsys):
    """Each has a folder of its own with results and predictions; folders of other runs are left out."""
    run = tmp_path / "several"
    for task, right in (("films", 5), ("songs", 15), ("others", 9)):
        for folder in (run / task, run / "data" / task):
            folder.mkdir(parents=True)
        rows = [{"id": str(i), "text": f"{task} {i}", "label": "good"} for i in range(20)]
        found = [{"id": str(i), "label": "good" if i < right else "bad"} for i in range(20)]
        together = {"together": ["films", "songs"]} if task != "others" else {}
        write_result(
            run / task, task=task, run="ours", scores={"valid": {"accuracy": 5.0 * right, "signature": "s"}}, seed=1,
            command=["fairseq-train"], model={"name": "start", "sha256": None}, settings={}, data={}, published={},
            **together,
        )  # fmt: skip
        for file, lines in (
            (run / "data" / task / "valid.jsonl", rows),
            (run / task / "predictions.valid.jsonl", found),
        ):
            file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    shutil.copy(finetuned / "train.log", run)
    shutil.copy(finetuned / "run.yaml", run)
    said(capsys, "report", run, "--samples", 6)
    text = text_of((run / "report.html").read_text(encoding="utf-8"))
    assert "Fine-tuned for films, songs." in text
    assert "Scores: films split measure score valid accuracy 25.00" in text and "valid accuracy 75.00" in text
    assert len(re.findall(r"films \d", text)) == len(re.findall(r"songs \d", text)) == 3 and "others" not in text


def test_a_pre_training_shows_its_objectives_and_what_the_model_fills_in(pretrained, capsys):
    said(capsys, "report", pretrained, "--samples", 3)
    text = text_of((pretrained / "report.html").read_text(encoding="utf-8"))
    assert "Pre-trained on bert:1,left_to_right:1." in text and "bert 7.50 181.00 12.50" in text
    assert text.count("hidden word") <= 3 and text.count("beginning") == 3 and text.count("as it goes on") == 3


def test_what_is_no_run_is_refused(pretrained, tmp_path, capsys):
    assert f"{tmp_path}: holds no train.log; give the folder of a run" in refused(capsys, "report", tmp_path)
    shutil.copytree(pretrained, tmp_path / "run")
    (tmp_path / "run" / "train.log").write_text("nothing\n", encoding="utf-8")
    log = tmp_path / "run" / "train.log"
    assert f"{log}: no statistics" in refused(capsys, "report", tmp_path / "run")
    assert f"error: {log}: a file; name the folder of a run" in refused(capsys, "report", log)
    assert "--samples must be an integer of at least 1" in refused(capsys, "report", pretrained, "--samples", 0)


def test_pages_fit_on_a_phone(pretrained, finetuned, capsys):
    for run in (pretrained, finetuned):
        said(capsys, "report", run)
    with chromium() as driver:
        for run in (pretrained, finetuned):
            open_on_phone(driver, run / "report.html")
            width, charts = driver.execute_script(
                "return [document.documentElement.scrollWidth, document.querySelectorAll('.chart svg').length];"
            )
            assert width <= 360 and charts == 2 and driver.get_log("browser") == []
