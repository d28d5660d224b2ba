"""`--spacy` of finetune and predict: who finds the entities of a task's texts for a model that reads them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from tests.support.annotators import Patterns
from tests.support.corpora import jsonl
from tests.support.task_folders import language_model
from tests.support.untrained_models import task_model
from unified import load
from unified.cli import main
from unified.cli.commands.annotating.pipeline import add_pipeline_arguments, entity_source, require_pipeline
from unified.corpus.annotate import AnnotationSource
from unified.errors import UnifiedError
from unified.tasks.heads import Classification

ENTITIES = "self,entity,feed_forward"
ROWS = [{"id": f"{i}", "text": f"w{i} né", "label": ("no", "yes")[i % 2]} for i in range(6)]


@pytest.fixture
def asked(tmp_path, monkeypatch) -> list[AnnotationSource]:
    """Pipelines that are loaded; each finds words with some first letters."""
    sources: list[AnnotationSource] = []

    def loaded(source: AnnotationSource) -> Patterns:
        sources.append(source)
        return Patterns(source.kinds)

    monkeypatch.setattr("unified.corpus.annotate.AnnotationSource.load", loaded)
    monkeypatch.chdir(tmp_path)
    for name in ("train", "valid"):
        jsonl(tmp_path / f"{name}.jsonl", ROWS)
    return sources


def test_a_fine_tuning_writes_the_entities_that_a_pipeline_finds(asked, capsys):
    language_model(Path("m"), sublayers=ENTITIES)
    words = ["finetune", "classification", "--data", "train.jsonl", "--valid", "valid.jsonl", "--init", "m"]
    words += ["--output", "out", "--max-length", "16", "--dry-run"]
    assert main([*words, "--spacy", "pipe", "--spacy-code", "mod"]) == 0
    assert asked == [AnnotationSource(("entities",), "pipe", "mod")]
    rows = [json.loads(line) for line in Path("out/data/train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["named_entities"] for row in rows] == [{"text": [[3, 5]]}] * 6
    assert "annotation" in json.loads(Path("out/data/manifest.json").read_text(encoding="utf-8"))
    assert main(words) == 2 and len(asked) == 1
    assert "has no 'named_entities'" in capsys.readouterr().err.splitlines()[-1]


def test_a_prediction_reads_the_entities_that_a_pipeline_finds(asked, capsys):
    task_model(Path("m"), {"classification": Classification(("no", "yes"))}, sublayers=ENTITIES)
    words = ["predict", "classification", "train.jsonl", "--model", "m"]
    assert main([*words, "--spacy", "pipe"]) == 0
    assert asked == [AnnotationSource(("entities",), "pipe", None)]
    predictor = load("m", annotator=Patterns(("entities",))).predictor()
    expected = list(predictor.predict([predictor.item(row, 1) for row in ROWS]))
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == json.loads(json.dumps(expected))
    assert main(words) == 2 and "has no 'named_entities'" in capsys.readouterr().err


def test_the_options_of_a_pipeline_are_its_name_and_its_code():
    parser = argparse.ArgumentParser()
    add_pipeline_arguments(parser)
    assert vars(parser.parse_args([])) == {"spacy": None, "spacy_code": None}
    for words, source in (
        ([], None),
        (["--spacy", "pipe"], AnnotationSource(("entities",), "pipe", None)),
        (["--spacy", "pipe", "--spacy-code", "mod"], AnnotationSource(("entities",), "pipe", "mod")),
        (["--spacy", "", "--spacy-code", ""], AnnotationSource(("entities",), "", "")),
    ):
        args = parser.parse_args(words)
        require_pipeline(args)
        assert entity_source(args) == source
    for check in (require_pipeline, entity_source):
        with pytest.raises(UnifiedError) as refused:
            check(parser.parse_args(["--spacy-code", "mod"]))
        assert str(refused.value) == "--spacy-code mod belongs to a pipeline; give --spacy PIPELINE too"
