"""Settings of a prepared folder: defaults, limits, what contradicts each other, and the chunks that they ask for."""

from dataclasses import FrozenInstanceError, asdict

import pytest

from tests.support.corpora import jsonl, write
from unified.corpus.annotate import AnnotationSource
from unified.corpus.cleaning import Cleaning
from unified.corpus.prepare import Settings
from unified.corpus.readers import DocumentCorpus, ParallelCorpus, RowPairCorpus
from unified.corpus.tokenizer_source import TokenizerSource
from unified.errors import UnifiedError

DOCUMENTS, ROWS, FILES = (
    DocumentCorpus(("a.txt",)),
    RowPairCorpus(("p.jsonl",), "s", "t"),
    ParallelCorpus(("s",), ("t",)),
)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"valid_share": -0.001}, "--valid-share is at least 0 and below 1, got -0.001"),
        ({"valid_share": 1.0}, "--valid-share is at least 0 and below 1, got 1.0"),
        ({"valid_share": float("nan")}, "--valid-share is at least 0 and below 1, got nan"),
        ({"reserve": -1}, "--reserve must be at least 0, got -1"),
        (
            {"valid_share": 0.1, "valid": DOCUMENTS},
            "--valid and --valid-share both say what the validation split is; give one of them",
        ),
        ({"train": ROWS, "cleaning": Cleaning()}, "--clean is for documents; pairs are taken as they are"),
        ({"train": FILES, "cleaning": Cleaning()}, "--clean is for documents; pairs are taken as they are"),
        (
            {"train": FILES, "annotation": AnnotationSource(("entities",), "none")},
            "--annotate is for documents; of source/target pairs objectives read --oracle",
        ),
        ({"oracle": True}, "--oracle is for files of `unified pairs --oracle`; give --source-field source"),
        (
            {"train": FILES, "oracle": True},
            "--oracle is for files of `unified pairs --oracle`; give --source-field source",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, says):
    with pytest.raises(UnifiedError) as raised:
        Settings(**{"train": DOCUMENTS, **settings})
    assert str(raised.value) == says


def test_settings_at_their_limits_and_those_of_each_content_are_taken():
    Settings(DOCUMENTS, valid_share=0, reserve=0, valid=DOCUMENTS)
    assert Settings(DOCUMENTS, valid_share=0.999).split_names == ["train", "valid"]
    assert Settings(ROWS, oracle=True).is_pairs and Settings(FILES).is_pairs
    several = Settings(DOCUMENTS, test=ROWS, cleaning=Cleaning(), annotation=AnnotationSource(("entities",), "none"))
    assert not several.is_pairs and several.split_names == ["train", "test"]
    assert several.corpora == {"train": DOCUMENTS, "test": ROWS}
    assert list(Settings(DOCUMENTS, ROWS, FILES).corpora.items()) == [
        ("train", DOCUMENTS),
        ("valid", ROWS),
        ("test", FILES),
    ]


def test_settings_begin_with_the_documented_defaults():
    settings = Settings(DOCUMENTS)
    assert asdict(settings) == {
        **{"train": asdict(DOCUMENTS), "valid": None, "test": None, "valid_share": 0.0},
        **{"tokenizer": asdict(TokenizerSource("unigram")), "cleaning": None, "annotation": None},
        **{"skip_empty": False, "oracle": False, "reserve": 0, "seed": 1},
    }
    with pytest.raises(FrozenInstanceError):
        settings.seed = 2


def test_cleaning_asks_for_whole_documents(tmp_path):
    text = write(tmp_path / "a.txt", "one\ntwo\n\nthree\nfour\n")
    corpus, empty = (
        DocumentCorpus((text,), chunk_bytes=1),
        DocumentCorpus((jsonl(tmp_path / "e.jsonl", [{"text": ""}]),)),
    )
    plain, clean = Settings(corpus), Settings(corpus, cleaning=Cleaning(urls=True))
    assert [[d for _, d in chunk.documents()] for chunk in clean.chunks(corpus)] == [
        [["one", "two"]],
        [["three", "four"]],
    ]
    assert sum(len(list(chunk.documents())) for chunk in plain.chunks(corpus)) == 4
    for cleaning in (None, Cleaning(urls=True)):
        settings = Settings(empty, cleaning=cleaning, skip_empty=True)
        assert [list(chunk.documents()) for chunk in settings.chunks(empty)] == [[]]
        with pytest.raises(UnifiedError, match="the field 'text' is empty; --skip-empty leaves such rows out"):
            [list(chunk.documents()) for chunk in Settings(empty, cleaning=cleaning).chunks(empty)]
