"""`unified predict TASK --model M "a plain text"`: what is asked, how the answer reads, and what is refused."""

import json
from dataclasses import asdict

import pytest
import torch

from tests.integration.cli.test_task_commands import refused, said
from tests.support.augment_models import asking
from tests.support.task_folders import language_model
from unified import load
from unified.checkpoints import load_checkpoint
from unified.checkpoints.files import save
from unified.model import UnifiedModel
from unified.reports.results import write_result
from unified.tasks.finetuning import Start
from unified.tasks.heads import Classification
from unified.tasks.heads.classification import Regression
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.heads.tagging import Tagging

TEXT = "w1 w0 unknown w3"
HEADS = {
    "classification": Classification(("no", "yes")),
    "regression": Regression(),
    "tagging": Tagging(("B-X", "O")),
    "span": SpanAnswers(),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders of models that have learnt nothing, each by the name of its head; ``texts`` writes."""
    folder = tmp_path_factory.mktemp("models")
    for name, understanding in HEADS.items():
        language_model(folder / name, initializer_range=0.3)
        path = folder / name / "checkpoint_last.pt"
        content, config = load_checkpoint(path), Start.of(folder / name).config
        core = UnifiedModel.for_tasks(config, {name: understanding.head(config)})
        kept = {"head": name, "settings": asdict(understanding)}
        content["extra_state"]["UnifiedUnderstandingTask"] = {name: kept}
        content["cfg"]["task"]["tokens_per_sample"] = 32
        content["model"] = {f"core.{key}": torch.clone(value) for key, value in core.state_dict().items()}
        save(content, path)
    asking(folder / "texts", 11, max_positions=512)
    return folder


def test_classes_are_told_with_their_probabilities_the_likeliest_first(models, capsys):
    words = ("predict", "classification", "--model", models / "classification")
    (one,) = load(models / "classification").classify([TEXT])
    (pair,) = load(models / "classification").classify([TEXT], ["w5 w6"])
    for more, expected in (((), one), (("--second", "w5 w6"), pair)):
        lines = [line.split("\t") for line in said(capsys, *words, TEXT, *more)]
        assert lines[0][0] == expected["label"] and len(lines) == 2
        found = {label: float(share.removesuffix(" %")) for label, share in lines}
        assert found == {
            label: pytest.approx(100 * value, abs=0.051) for label, value in expected["probabilities"].items()
        }
    assert one["probabilities"] != pytest.approx(pair["probabilities"], abs=1e-3)
    (line,) = said(capsys, *words, TEXT, "--json")
    assert json.loads(line)["probabilities"] == pytest.approx(one["probabilities"], abs=2e-5)


def test_tags_numbers_answers_and_texts_are_told_as_such(models, tmp_path, capsys):
    tags = said(capsys, "predict", "tagging", "--model", models / "tagging", TEXT)
    assert [tuple(line.split("\t")) for line in tags] == load(models / "tagging").tag(TEXT)
    (number,) = said(capsys, "predict", "regression", "--model", models / "regression", TEXT)
    assert float(number) == pytest.approx(load(models / "regression").classify([TEXT])[0]["label"], abs=1e-4)
    (answer,) = said(capsys, "predict", "span", "--model", models / "span", TEXT, "--second", "w4 w2")
    assert answer == (load(models / "span").answer("w4 w2", TEXT)["answer"] or "(no answer)")
    words = ("predict", "texts", "--model", models / "texts")
    source = "Ada Berg was born in Lisbon"
    expected = json.loads(said(capsys, *words, json.dumps({"source": source}))[0])["text"]
    assert said(capsys, *words, source) == [expected] and len(expected.split()) > 3
    lines = tmp_path / "lines.txt"
    lines.write_text(f"{source}\n\n{source}\n", encoding="utf-8")
    assert [json.loads(line)["text"] for line in said(capsys, *words, lines)] == [expected] * 2
    rows = tmp_path / "rows"  # without a suffix
    rows.write_text(json.dumps({"source": source, "text": "no source"}), encoding="utf-8")
    assert json.loads(said(capsys, *words, rows)[0])["text"] == expected
    lines.write_text(f"{TEXT}\n", encoding="utf-8")
    (line,) = said(capsys, "predict", "tagging", "--model", models / "tagging", lines)
    assert json.loads(line)["tags"] == [tag for _, tag in load(models / "tagging").tag(TEXT)]
    said(capsys, *words, source, "--output", tmp_path / "out")
    assert json.loads((tmp_path / "out").read_text())["text"] == expected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["films.csv"], "films.csv: no such file\n"),
        (["my films.csv"], "my films.csv: no such file\n"),
        (["my films.jsonl.gz"], "my films.jsonl.gz: no such file\n"),
        (["{folder}/my films"], 'my films: no such file; a text of one word is given as an item, \'{"text": '),
        (["great"], 'great: no such file; a text of one word is given as an item, \'{"text": "great"}\'\n'),
        (["great", "--text-field", "review"], 'is given as an item, \'{"review": "great"}\'\n'),
        (
            [TEXT, "--text-field", "review"],
            "--text-field review: INPUT is a plain text, which has no fields",
        ),
        (['{"text": "w1"}', "--second", "w2"], "--second goes with a plain text of several words as INPUT"),
        (["films.csv", "--second", "w2"], "films.csv: no such file\n"),
    ],
)
def test_what_is_no_text_is_refused(models, tmp_path, capsys, words, says):
    words = [word.format(folder=tmp_path) if "{folder}" in word else word for word in words]
    assert says in refused(capsys, "predict", "classification", "--model", models / "classification", *words)


@pytest.mark.parametrize(
    ("task", "more", "says"),
    [
        ("span", [], "span reads two texts; give the second, its question, by --second"),
        ("tagging", ["--second", "w1"], "--second: tagging reads one text; leave it out"),
    ],
)
def test_what_a_task_reads_beside_a_text_is_said(models, capsys, task, more, says):
    assert says in refused(capsys, "predict", task, "--model", models / task, TEXT, *more)


def test_a_text_may_hold_what_looks_like_a_path(models, capsys):
    words = ("predict", "classification", "--model", models / "classification")
    for text in ("either/or is fine", "visit example.com", "it costs 3.50", "x" * 5000 + " w1"):
        assert len(said(capsys, *words, text)) == 2


def test_a_model_of_another_task_is_refused(models, capsys):
    """By the results beside it, where the heads are of one type; by the head, where there are no results."""
    folder = models / "classification"
    item = '{"text": "w1", "question": "w2", "context": "w3"}'
    said_ = refused(capsys, "predict", "squad2.0", "--model", folder, item)
    assert said_.endswith("error: the model was fine-tuned for classification, not for span\n")
    write_result(
        folder, task="rte", run="ours", scores={}, seed=1, command=[], model={"name": "m", "sha256": None}, settings={},
        data={}, published={}, checkpoint="last",
    )  # fmt: skip
    for task in ("squad2.0", "mnli", "xsum"):
        told = refused(capsys, "predict", task, "--model", folder, item)
        assert f"error: {folder} was fine-tuned for rte, not for {task}; " in told and told.count("\n") == 1
    one = said(capsys, "predict", "rte", "--model", folder, item)
    assert said(capsys, "predict", "classification", "--model", folder, item) == one
    (folder / "results.json").unlink()
    assert said(capsys, "predict", "mnli", "--model", folder, item) == one
