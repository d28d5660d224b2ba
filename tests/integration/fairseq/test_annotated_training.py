"""fairseq-train on an annotated folder: objectives that read spans learn, and are refused where there are none."""

import shutil

import pytest

from tests.support import fairseq_runs as fairseq
from tests.support.annotators import PatternSource
from tests.support.corpora import random_documents, raw_text, write
from unified.corpus.prepare import Settings, prepare
from unified.corpus.readers import DocumentCorpus
from unified.corpus.tokenizer_source import TokenizerSource


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("annotated")
    text = write(folder / "a.txt", raw_text(random_documents(150)))
    settings = Settings(
        DocumentCorpus((text,)),
        valid_share=0.1,
        tokenizer=TokenizerSource("bpe", vocabulary_size=300),
        annotation=PatternSource(("noun_phrases", "parts_of_speech"), "patterns"),
    )
    prepare(settings, folder / "data")
    return folder / "data"


def test_objectives_that_read_spans_train(data, tmp_path):
    objectives = ("--objectives", "anna:1,spanbert(scheme='noun_phrase'):1", "--arch", "anna_tiny")
    result = fairseq.train(data, tmp_path, *objectives, "--batch-size", 8, "--max-epoch", 2, "--lr", 3e-3)
    rows = fairseq.logged(result.stdout + result.stderr, "train")
    for name in ("anna", "spanbert", "spanbert_boundary"):
        assert float(rows[-1][f"train_{name}_loss"]) < float(rows[0][f"train_{name}_loss"]), name
    assert "anna_next_sentence_loss" not in rows[-1]


def test_tags_of_parts_of_speech_are_read(data, tmp_path):
    arguments = ("--objectives", "anna(scheme='pos')", "--arch", "anna_tiny", "--batch-size", 8, "--max-epoch", 5)
    result = fairseq.train(data, tmp_path, *arguments, "--lr", 3e-3)
    losses = [float(row["train_loss"]) for row in fairseq.logged(result.stdout + result.stderr, "train")]
    assert losses[-1] < losses[0] - 0.5


def test_garbled_spans_end_in_one_line(data, tmp_path):
    shutil.copytree(data, tmp_path / "bin")
    spans = tmp_path / "bin" / "train.noun_phrases.bin"
    spans.write_bytes(bytes(reversed(spans.read_bytes())))
    arguments = ("--objectives", "anna", "--arch", "anna_tiny", "--batch-size", 8)
    result = fairseq.train(tmp_path / "bin", tmp_path / "model", *arguments, check=False)
    fairseq.assert_refused(result, "train.noun_phrases: item 0 has a span outside of its text")


def test_an_annotation_that_is_not_there_is_named_before_training(data, tmp_path):
    objectives = ("--objectives", "anna,spanbert(scheme='named_entity')", "--arch", "anna_tiny", "--batch-size", 8)
    result = fairseq.train(data, tmp_path, *objectives, check=False)
    fairseq.assert_refused(
        result,
        "objective spanbert: needs the annotation entities, which the data do not have (they have noun_phrases, "
        "parts_of_speech); prepare them with --annotate entities",
    )
