"""Fine-tunings of models whose attention reads named entities: who finds them, and what is refused without them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.annotators import Patterns
from tests.support.corpora import jsonl
from tests.support.task_folders import language_model, read_and_written
from tests.support.understanding_runs import codec, small_model
from unified.errors import UnifiedError
from unified.files.destination import MANIFEST
from unified.tasks.catalogue import task_named
from unified.tasks.finetuning import Start
from unified.tasks.heads import Classification
from unified.tasks.heads.items import TextItem
from unified.tasks.jobs import job_of
from unified.tasks.prediction import Predictor
from unified.tasks.settings import Training

FINDS = Patterns(("entities",))
ROWS = [{"text": text, "label": label} for text, label in (("w1 not set", "a"), ("w2", "b"), ("w1 run", "a"))]
NAMED = {"named_entities": {"text": [[0, 2]]}}


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Start:
    plain = Start.of(language_model(tmp_path_factory.mktemp("start") / "model", max_positions=32))
    return plain.with_changes(sublayers="entity,feed_forward")


def folder_of(path: Path, *more: dict) -> Path:
    path.mkdir()
    for split in ("train", "valid"):
        jsonl(path / f"{split}.jsonl", [row | more[i] if i < len(more) else row for i, row in enumerate(ROWS)])
    return path


def test_entities_are_found_and_written_down_and_the_manifest_says_by_whom(start, tmp_path):
    source = folder_of(tmp_path / "source", {}, NAMED)
    job = job_of(task_named("classification"), Training(max_length=32), start, tmp_path / "run")
    splits = read_and_written(job, source, FINDS)
    assert [item.named_entities for item in splits["train"]] == [
        {"text": ((3, 10),)}, {"text": ((0, 2),)}, {"text": ((3, 6),)},
    ]  # fmt: skip
    assert splits["valid"] == splits["train"]
    rows = [json.loads(line) for line in (job.data / "train.jsonl").read_text().splitlines()]
    assert [row["named_entities"]["text"] for row in rows] == [[[3, 10]], [[0, 2]], [[3, 6]]]
    assert json.loads((job.data / MANIFEST).read_text())["annotation"] == FINDS.description


def test_items_that_name_no_entities_are_refused_by_such_a_model(start, tmp_path):
    source = folder_of(tmp_path / "source", NAMED)
    job = job_of(task_named("classification"), Training(max_length=32), start, tmp_path / "run")
    with pytest.raises(UnifiedError) as raised:
        job.items_of(source)
    assert raised.value.details.startswith("item 2 has no 'named_entities', which the model's entity-aware attention ")
    named = job.items_of(folder_of(tmp_path / "named", NAMED, NAMED, NAMED))
    assert all(item.named_entities == {"text": ((0, 2),)} for item in named["train"])
    plain = job_of(task_named("classification"), Training(max_length=32), start.with_changes(sublayers="self,"
                   "feed_forward"), tmp_path / "plain")  # fmt: skip
    assert plain.items_of(source)["train"][1].named_entities is None
    job.write(named)
    assert "annotation" not in json.loads((job.data / MANIFEST).read_text())


def test_a_predictor_finds_the_entities_of_items_that_name_none():
    own = replace(codec(32), marks_entities=True)
    task = Classification(("a", "b"))
    model = small_model(task, own, sublayers="entity,feed_forward")
    predictor = Predictor(model, "task", task, own, annotator=FINDS)
    named = TextItem("1", "w1 run", None, None, {"text": ((3, 6),)})
    [found] = predictor.predict([replace(named, named_entities=None)])
    [expected] = replace(predictor, annotator=None).predict([named])
    assert found == expected
    [other] = predictor.predict([replace(named, named_entities={"text": ()})])
    assert other["probabilities"] != found["probabilities"]
