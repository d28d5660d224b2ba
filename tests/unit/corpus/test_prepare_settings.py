"""Settings of a prepared folder: defaults, limits, contradictions, and the chunks that they read from a corpus."""

from dataclasses import FrozenInstanceError, asdict

import pytest

from tests.support.corpora import jsonl, write
from tests.support.refusals import refused
from unified.corpus.annotate import AnnotationSource
from unified.corpus.cleaning import Cleaning
from unified.corpus.prepare import Settings
from unified.corpus.readers import DocumentCorpus, ParallelCorpus, RowPairCorpus
from unified.corpus.tokenizer_source import TokenizerSource

DOCUMENTS, OTHER_DOCUMENTS = DocumentCorpus(("a.txt",)), DocumentCorpus(("b.txt",))
ROWS, FILES = RowPairCorpus(("p.jsonl",), "s", "t"), ParallelCorpus(("s",), ("t",))
ENTITIES = AnnotationSource(("entities",), "none")

NOT_ANNOTATED = "--annotate is for documents; of source/target pairs objectives read --oracle"
BOTH_KINDS = "the texts of all splits are documents, or those of all are pairs; these are of both kinds"
ORACLE = "--oracle is for files of `unified pairs --oracle`; give --source-field source"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"valid_share": -0.001}, "--valid-share is at least 0 and below 1, got -0.001"),
        ({"valid_share": 1.0}, "--valid-share is at least 0 and below 1, got 1.0"),
        ({"valid_share": float("nan")}, "--valid-share is at least 0 and below 1, got nan"),
        ({"reserve": -1}, "--reserve must be at least 0, got -1"),
        ({"seed": -1}, "--seed must be from 0 to 2^64 - 1, got -1"),
        ({"seed": 2**64}, "--seed must be from 0 to 2^64 - 1, got 18446744073709551616"),
        (
            {"valid_share": 0.1, "valid": DOCUMENTS},
            "--valid and --valid-share both say what the validation split is; give one of them",
        ),
        ({"train": ROWS, "cleaning": Cleaning()}, "--clean is for documents; pairs are taken as they are"),
        ({"train": FILES, "cleaning": Cleaning()}, "--clean is for documents; pairs are taken as they are"),
        ({"train": ROWS, "annotation": ENTITIES}, NOT_ANNOTATED),
        ({"train": FILES, "annotation": ENTITIES}, NOT_ANNOTATED),
        ({"test": ROWS}, BOTH_KINDS),
        ({"train": FILES, "valid": DOCUMENTS}, BOTH_KINDS),
        ({"oracle": True}, ORACLE),
        ({"train": FILES, "oracle": True}, ORACLE),
        ({"train": ROWS, "test": FILES, "oracle": True}, ORACLE),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    assert refused(Settings, **{"train": DOCUMENTS, **settings}) == message


def test_numbers_at_their_limits_are_accepted():
    Settings(DOCUMENTS, valid_share=0, reserve=0, valid=OTHER_DOCUMENTS, seed=2**64 - 1)
    Settings(DOCUMENTS, seed=0)
    Settings(DOCUMENTS, valid_share=0.999)


def test_splits_are_those_with_texts_and_that_of_the_validation_share():
    assert Settings(DOCUMENTS, valid_share=0.1).split_names == ["train", "valid"]
    tested = Settings(DOCUMENTS, test=OTHER_DOCUMENTS)
    assert tested.split_names == ["train", "test"] and tested.corpora == {"train": DOCUMENTS, "test": OTHER_DOCUMENTS}
    pairs = Settings(ROWS, FILES, ROWS)
    assert list(pairs.corpora.items()) == [("train", ROWS), ("valid", FILES), ("test", ROWS)]


def test_the_training_text_says_whether_a_folder_is_of_pairs():
    assert Settings(ROWS, oracle=True).is_pairs and Settings(FILES).is_pairs
    assert not Settings(DOCUMENTS, cleaning=Cleaning(), annotation=ENTITIES).is_pairs


def test_defaults_are_the_documented_ones_and_settings_are_immutable():
    settings = Settings(DOCUMENTS)
    assert asdict(settings) == {
        "train": asdict(DOCUMENTS), "valid": None, "test": None, "valid_share": 0.0,
        "tokenizer": asdict(TokenizerSource("unigram")), "cleaning": None, "annotation": None,
        "skip_empty": False, "oracle": False, "reserve": 0, "seed": 1,
    }  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        settings.seed = 2


def test_documents_are_whole_in_a_chunk_where_they_are_cleaned(tmp_path):
    corpus = DocumentCorpus((write(tmp_path / "a.txt", "one\ntwo\n\nthree\nfour\n"),), chunk_bytes=1)

    def chunks(settings):
        return [[paragraphs for _, paragraphs in chunk.documents()] for chunk in settings.chunks(corpus)]

    assert chunks(Settings(corpus, cleaning=Cleaning(urls=True))) == [[["one", "two"]], [["three", "four"]]]
    assert [["one", "two"]] not in chunks(Settings(corpus)), "chunks of a byte divide documents"


@pytest.mark.parametrize("cleaning", [None, Cleaning(urls=True)])
def test_rows_without_text_are_left_out_or_refused_as_the_settings_say(tmp_path, cleaning):
    corpus = DocumentCorpus((jsonl(tmp_path / "e.jsonl", [{"text": ""}]),))

    def documents(skip_empty):
        settings = Settings(corpus, cleaning=cleaning, skip_empty=skip_empty)
        return [list(chunk.documents()) for chunk in settings.chunks(corpus)]

    assert documents(skip_empty=True) == [[]]
    message = "line 1: the field 'text' is empty; --skip-empty leaves such rows out"
    assert refused(documents, skip_empty=False).endswith(message)
