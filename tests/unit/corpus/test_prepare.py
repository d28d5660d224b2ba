"""``unified prepare`` in Python: the files of a folder, its manifest, progress reports and refusals."""

import gzip
import json
import platform
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import unified
from tests.support import refusals
from tests.support.annotators import PatternSource
from tests.support.corpora import expected_items, items, jsonl, random_documents, raw_text, tree, wordpiece_file, write
from unified.corpus import prepare as module
from unified.corpus.cleaning import Cleaning
from unified.corpus.prepare import ADVICE, Settings, prepare
from unified.corpus.readers import DocumentCorpus, ParallelCorpus, RowPairCorpus
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.planning.segments import Segments
from unified.tokenization import load_tokenizer, word_starts
from unified.training.settings import TrainingSettings
from unified.training.splits import open_split, training_rows

CHARACTERS = TokenizerSource("char", character_coverage=1.0)


@pytest.fixture
def said(monkeypatch):
    """Records all reports of progress in place of printing them: (job, "of", total), its steps and end, and lines."""
    told = []

    class Recorded:
        def __init__(self, what, total=None):
            self.what = what
            told.append((what, "of", total))

        def add(self, size, text):
            told.append((self.what, size, text))

        def finish(self, text):
            told.append((self.what, "end", text))

        @staticmethod
        def say(text):
            told.append(text)

    monkeypatch.setattr(module, "Progress", Recorded)
    return told


# ---------------------------------------------------------------- folders


@pytest.fixture
def trained(tmp_path, said):
    """A folder with a trained tokenizer: two files of six documents each, and rows for validation, one without text."""
    documents = [random_documents(6, seed=0), random_documents(6, seed=1)]
    texts = [raw_text(part) for part in documents]
    paths = tuple(write(tmp_path / f"{number}.txt", text) for number, text in enumerate(texts))
    rows = [{"text": "over and over\nthe house"}, {"text": ""}, {"text": "a red tree"}]
    valid = jsonl(tmp_path / "valid.jsonl", rows)
    settings = Settings(DocumentCorpus(paths), DocumentCorpus((valid,)), tokenizer=CHARACTERS, skip_empty=True)
    data = tmp_path / "data"
    manifest = prepare(settings, data)
    tokenizer, vocabulary = load_tokenizer(data), Vocabulary.load(data / "dict.txt")
    return SimpleNamespace(
        data=data, manifest=manifest, settings=settings, paths=(*paths, valid), tokenizer=tokenizer,
        vocabulary=vocabulary, lines=[sum(map(len, part)) for part in documents],
        sizes=[Path(path).stat().st_size for path in (*paths, valid)],
        items=expected_items(documents[0] + documents[1], tokenizer, vocabulary),
    )  # fmt: skip


def test_a_folder_holds_the_tokens_their_counts_and_which_of_them_begin_words(trained):
    vocabulary, data = trained.vocabulary, trained.data
    assert items(data / "train") == trained.items
    stop = vocabulary.special.ordinary_stop
    counts = np.bincount([token for item in trained.items for token in item], minlength=stop)
    assert vocabulary.counts[4:stop] == counts[4:].tolist() and vocabulary.counts[stop] == 1
    assert np.load(data / "word_starts.npy").tolist() == word_starts(trained.tokenizer, vocabulary).tolist()
    ends = [f"{name}.{end}" for name in ("train", "valid") for end in ("bin", "idx")]
    assert sorted(tree(data)) == sorted([*ends, "dict.txt", "manifest.json", "tokenizer.model", "word_starts.npy"])


def test_progress_is_reported_in_bytes_with_lines_documents_and_tokens(trained, said):
    (first, second), (size, other, of_rows) = trained.lines, trained.sizes
    assert said[:5] == [
        ("reading", "of", size + other),
        ("reading", size, f"{first} lines"),
        ("reading", other, f"{first + second} lines"),
        ("reading", "end", f"{first + second} lines"),
        f"training the char tokenizer on {first + second} lines",
    ]
    summaries = {}
    for name, split in trained.manifest["splits"].items():
        summaries[name] = f"{split['documents']} documents, {split['tokens']:,} tokens"
    assert [said[5], *said[7:9]] == [
        ("train", "of", size + other), ("train", other, summaries["train"]), ("train", "end", summaries["train"]),
    ]  # fmt: skip
    assert said[6][:2] == ("train", size) and said[6][2].startswith("6 documents, ")
    assert said[9:] == [
        ("valid", "of", None), ("valid", of_rows, summaries["valid"]), ("valid", "end", summaries["valid"]),
    ]  # fmt: skip


def test_the_manifest_lists_splits_settings_inputs_and_versions(trained):
    tokens = sum(token != 2 for item in trained.items for token in item)
    valid = trained.manifest["splits"]["valid"]
    assert trained.manifest == {
        "content": "documents",
        "symbols": len(trained.vocabulary),
        "reserved": 0,
        "splits": {
            "train": {
                "documents": 12, "skipped": 0, "sentences": sum(trained.lines), "tokens": tokens, "unknown": 0,
            },
            "valid": valid,
        },
        "annotations": None,
        "settings": asdict(trained.settings),
        "inputs": {
            path: {"bytes": size, "sha256": sha256(Path(path).read_bytes()).hexdigest()}
            for path, size in zip(trained.paths, trained.sizes, strict=True)
        },
        "versions": {
            "unified": unified.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "sentencepiece", "tokenizers")},
        },
    }  # fmt: skip
    assert (valid["documents"], valid["skipped"], valid["sentences"]) == (2, 1, 3)
    written = json.loads((trained.data / "manifest.json").read_text())
    assert written.pop("outputs").keys() == tree(trained.data).keys() - {"manifest.json"}
    assert written == json.loads(json.dumps(trained.manifest))


def word_pieces(folder, words):
    """A ready-made tokenizer of whole words, which has no dictionary."""
    return TokenizerSource(wordpiece_file(folder, words))


def test_pairs_with_an_oracle(tmp_path, said):
    rows = [
        {"source": "a b. c.", "target": "a", "sentences": [0, 5], "oracle": [1]},
        {"source": "b", "target": "c b", "sentences": [0], "oracle": []},
    ]
    corpus = RowPairCorpus((jsonl(tmp_path / "p.jsonl", rows),), "source", "target")
    settings = Settings(corpus, tokenizer=word_pieces(tmp_path, "abc."), oracle=True, reserve=3)
    data = tmp_path / "data"
    manifest = prepare(settings, data)
    assert (data / "dict.source.txt").read_bytes() == (data / "dict.target.txt").read_bytes()
    vocabulary = Vocabulary.load(data / "dict.source.txt")
    a, b, c, dot = (vocabulary.index(one) for one in "abc.")
    assert items(data / "train.source-target.source") == [[a, b, dot, c, dot, 2], [b, 2]]
    assert items(data / "train.source-target.target") == [[a, 2], [c, b, 2]]
    assert items(data / "train.source-target.source.sentences") == [[0, 3, 3, 5], [0, 1]]
    assert items(data / "train.source-target.source.oracle") == [[3, 5], []]
    assert vocabulary.symbols[-3:] == ["[unused1]", "[unused2]", "[unused3]"] and not (data / "dict.txt").exists()
    assert vocabulary.counts[a] == vocabulary.counts[c] == 2 and vocabulary.counts[b] == 3
    assert len(np.load(data / "word_starts.npy")) == len(vocabulary) == manifest["symbols"]
    assert manifest["reserved"] == 3 and manifest["content"] == "pairs" and "reading" not in str(said)
    assert manifest["splits"]["train"]["spans"] == {"sentences": 3, "oracle": 1}


def test_a_dictionary_beside_the_tokenizer_is_taken_over_byte_for_byte(tmp_path):
    text = write(tmp_path / "a.txt", "a b\n")
    prepare(Settings(DocumentCorpus((text,)), tokenizer=word_pieces(tmp_path, "ab")), tmp_path / "one")
    dictionary = tmp_path / "one" / "dict.txt"
    dictionary.write_text(dictionary.read_text().replace("a 1\n", "a 77\n"))
    again = TokenizerSource(str(tmp_path / "one"))
    prepare(Settings(DocumentCorpus((text,)), tokenizer=again), tmp_path / "two")
    assert (tmp_path / "two" / "dict.txt").read_bytes() == dictionary.read_bytes()
    assert b"a 77\n" in dictionary.read_bytes()
    prepare(Settings(DocumentCorpus((text,)), tokenizer=again, reserve=1), tmp_path / "three")
    assert (tmp_path / "three" / "dict.txt").read_text() == dictionary.read_text() + "[unused1] 1\n"


def test_a_folder_does_not_say_where_words_begin_if_pieces_do_not_tell(tmp_path):
    model = models.WordLevel({"<unk>": 0, "a": 1, "b": 2}, unk_token="<unk>")
    Tokenizer(model).save(str(tmp_path / "tokenizer.json"))
    text, own = write(tmp_path / "a.txt", "a\nb\n"), TokenizerSource(str(tmp_path / "tokenizer.json"))
    prepare(Settings(DocumentCorpus((text,)), tokenizer=own), tmp_path / "out")
    assert "tokenizer.json" in tree(tmp_path / "out") and "word_starts.npy" not in tree(tmp_path / "out")
    folder = DataFolder.open(tmp_path / "out", None, None)
    files = open_split(folder, "train", folder.vocabulary())
    with pytest.raises(UnifiedError, match="needs to know where words begin"):
        training_rows(folder, files, folder.vocabulary(), parse_objectives("spanbert"), TrainingSettings().checked())


def test_words_of_a_byte_level_tokenizer_end_with_their_line(tmp_path):
    """No space stands before the first word of a line, so its first piece looks like the inside of a word."""
    byte_level = Tokenizer(models.BPE({"a": 0, "b": 1, "\u0120": 2, "</s>": 3, "<unk>": 4}, [], unk_token="<unk>"))
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.save(str(tmp_path / "tokenizer.json"))
    own = TokenizerSource(str(tmp_path / "tokenizer.json"))
    prepare(Settings(DocumentCorpus((write(tmp_path / "a.txt", "ab b\nba\n\nbb\n"),)), tokenizer=own), tmp_path / "out")
    folder = DataFolder.open(tmp_path / "out", None, None)
    files = open_split(folder, "train", folder.vocabulary())
    objective = parse_objectives("bidirectional(whole_words=True, next_sentence=False)")
    rows, _ = training_rows(folder, files, folder.vocabulary(), objective, TrainingSettings().checked())
    read = rows.texts.read(Segments(np.array([[0, 6]]), np.array([[6, 2]])), None)
    assert [folder.vocabulary().symbols[token] for token in read.tokens] == [*"ab\u0120bbabb"]
    assert read.word_starts.tolist() == [True, False, True, False, True, False, True, False]


def test_annotated_and_cleaned_documents(tmp_path):
    rows = [{"text": "a tree"}, {"text": " "}, {"text": "a a old\n\na"}]
    corpus = DocumentCorpus((jsonl(tmp_path / "a.jsonl", rows),))
    source = word_pieces(tmp_path, ["a", "tree", "old"])
    for cleaning, kept in ((None, [2, 3]), (Cleaning(short_sentences=2), [2, 2])):
        annotation = PatternSource(("entities",), "patterns")
        settings = Settings(corpus, tokenizer=source, cleaning=cleaning, skip_empty=True, annotation=annotation)
        manifest = prepare(settings, tmp_path / f"cleaned {cleaning is not None}")
        found = manifest["splits"]["train"]
        assert [found["documents"], found["sentences"]] == kept and found["skipped"] == 1
        assert found["spans"] == {"entities": 1}  # the tree
        assert manifest["annotations"] == {"kinds": ["entities"], "pipeline": "patterns"}
        assert ("cleaning" in manifest) == (cleaning is not None)
    assert manifest["cleaning"]["train"]["removed"]["short_sentences"]["sentences"] == 1


def test_blank_lines_among_json_lines_are_no_rows(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a tree"}\n\n \n{"text": " "}\n{"text": "a"}\n\n', encoding="utf-8")
    corpus = DocumentCorpus((str(tmp_path / "a.jsonl"),))
    settings = Settings(corpus, tokenizer=word_pieces(tmp_path, ["a", "tree"]), skip_empty=True)
    found = prepare(settings, tmp_path / "data")["splits"]["train"]
    assert (found["documents"], found["skipped"]) == (2, 1)


def test_rows_without_text_are_counted_once_where_a_share_is_for_validation(tmp_path):
    rows = [{"text": "a tree" if number % 3 else ""} for number in range(60)]
    corpus = DocumentCorpus((jsonl(tmp_path / "a.jsonl", rows),), chunk_bytes=200)
    settings = Settings(
        corpus, tokenizer=word_pieces(tmp_path, ["a", "tree"]), valid_share=0.3, skip_empty=True, seed=5
    )
    manifest = prepare(settings, tmp_path / "data")
    train, valid = (manifest["splits"][name] for name in ("train", "valid"))
    assert train["documents"] + valid["documents"] == 40 and valid["documents"] > 5
    assert (train["skipped"], valid["skipped"]) == (20, 0)
    assert len(TokenFile(tmp_path / "data" / "valid")) == 2 * valid["documents"] - 1


def test_the_share_is_taken_of_the_training_text_alone(tmp_path):
    text = write(tmp_path / "a.txt", "a\n\n" * 50)
    settings = Settings(
        DocumentCorpus((text,)),
        test=DocumentCorpus((text,)),
        valid_share=0.5,
        tokenizer=word_pieces(tmp_path, "a"),
    )
    splits = prepare(settings, tmp_path / "data")["splits"]
    assert splits["test"]["documents"] == 50 == splits["train"]["documents"] + splits["valid"]["documents"]


# ---------------------------------------------------------------- refusals


def refused(settings, destination, **options):
    return refusals.refused(prepare, settings, destination, **options)


def test_a_split_without_text_is_named(tmp_path):
    text, blank = write(tmp_path / "a.txt", "a\n"), write(tmp_path / "b.txt", " \n\n")
    one, none, both = (DocumentCorpus(paths) for paths in ((text,), (blank,), (blank, blank)))
    source = word_pieces(tmp_path, "a")
    pairs = RowPairCorpus((jsonl(tmp_path / "p.jsonl", [{"s": "a", "t": "a"}]),), "s", "t")
    assert refused(Settings(both, tokenizer=source), tmp_path / "d") == f"{blank}, {blank}: no text"
    assert refused(Settings(both, tokenizer=CHARACTERS), tmp_path / "d") == f"{blank}, {blank}: no text"
    assert refused(Settings(one, none, tokenizer=source), tmp_path / "d") == f"{blank}: no text"
    cleaned = Settings(one, tokenizer=source, cleaning=Cleaning(short_sentences=2))
    assert refused(cleaned, tmp_path / "d") == f"{text}: no text that --clean leaves"
    for corpus, unit in ((one, "documents (blank lines divide raw text into documents)"), (pairs, "pairs")):
        for share, name in ((0.001, "valid"), (0.999, "train")):
            assert refused(Settings(corpus, tokenizer=source, valid_share=share), tmp_path / "d") == (
                f"--valid-share {share} leaves the {name} split empty: {corpus.paths[0]} has too few {unit}; "
                "give another share or seed, or a file with --valid"
            )
    many = DocumentCorpus((write(tmp_path / "c.txt", "a\n\n" * 50),))
    shared = Settings(many, test=none, tokenizer=source, valid_share=0.5)
    assert refused(shared, tmp_path / "d") == f"{blank}: no text"
    assert not (tmp_path / "d").exists()


def test_refusals_come_before_any_work(tmp_path, said):
    text = write(tmp_path / "a.txt", "a\n")
    corpus, missing = DocumentCorpus((text,)), DocumentCorpus((str(tmp_path / "none.txt"),))
    assert refused(Settings(corpus), tmp_path / "d", workers=0) == "--workers must be at least 1, got 0"
    full = tmp_path / "full"
    full.mkdir()
    (full / "kept").write_text("kept")
    assert refused(Settings(missing), full) == f"{full}: not empty; {ADVICE}"
    assert ADVICE == "give another --output, or --overwrite to replace the folder"
    assert refused(Settings(missing), full, advice="do this") == f"{full}: not empty; do this"
    assert "holds kept, which manifest.json there does not list" in refused(Settings(missing), full, overwrite=True)
    assert refused(Settings(corpus, test=missing), tmp_path / "d") == f"{missing.paths[0]}: no such file"
    other, empty = jsonl(tmp_path / "other.jsonl", [{"story": "a"}]), write(tmp_path / "empty.txt", "")
    for settings in (Settings(corpus, valid=DocumentCorpus((other,))), Settings(DocumentCorpus((text, other)))):
        assert refused(settings, tmp_path / "d").startswith(f"{other}, line 1: no field 'text'")
    stories = RowPairCorpus((other, jsonl(tmp_path / "bad.jsonl", [{"story": 1}])), "story", "story")
    assert refused(Settings(stories), tmp_path / "d").startswith(f"{tmp_path / 'bad.jsonl'}, line 1")
    assert refused(Settings(corpus, DocumentCorpus((empty, empty))), tmp_path / "d") == f"{empty}, {empty}: no text"

    @dataclass(frozen=True)
    class Lost(TokenizerSource):
        def noun_phrases(self):
            raise UnifiedError("a pipeline is missing")

    assert refused(Settings(corpus, tokenizer=Lost("anna")), tmp_path / "d") == "a pipeline is missing"

    @dataclass(frozen=True)
    class Lacking(Cleaning):
        def rules(self):
            raise UnifiedError("a library is missing")

    assert refused(Settings(corpus, cleaning=Lacking()), tmp_path / "d") == "a library is missing"
    assert said == [] and not (tmp_path / "d").exists()


def test_marks_of_an_oracle_that_are_missing_are_told_before_any_work(tmp_path, said):
    pairs = RowPairCorpus((jsonl(tmp_path / "p.jsonl", [{"source": "a", "target": "b"}]),), "source", "target")
    message = refused(Settings(pairs, oracle=True), tmp_path / "d")
    assert message.startswith(f"{tmp_path}/p.jsonl, line 1: no field 'sentences'; ") and said == []


def test_a_file_that_trains_and_validates_is_named(tmp_path, said, monkeypatch):
    text, other = write(tmp_path / "a.txt", "a b\n"), write(tmp_path / "b.txt", "b a\n")
    monkeypatch.chdir(tmp_path)
    train, tokenizer = DocumentCorpus((text,)), word_pieces(tmp_path, "ab")
    note = "a.txt: read for train and for {}; a loss or a score on {} looks too good"
    same, others = DocumentCorpus(("a.txt", other)), DocumentCorpus((other,))
    prepare(Settings(train, same, same, tokenizer=tokenizer), tmp_path / "one")
    assert [line for line in said if "read for" in line] == [note.format(*2 * [name]) for name in ("valid", "test")]
    said.clear()
    prepare(Settings(train, others, others, tokenizer=tokenizer), tmp_path / "two")
    pairs = ParallelCorpus((text,), (other,)), ParallelCorpus((other,), (other,))
    prepare(Settings(*pairs, tokenizer=tokenizer), tmp_path / "three")
    assert not any("read for" in line for line in said)


@pytest.mark.parametrize(
    ("names", "known"),
    [
        (("a.txt",), True),
        (("a.txt", "b.txt"), True),
        (("a.txt", "c.jsonl"), False),
        (("a.txt", "d.txt.gz"), False),
        (("d.txt.gz",), False),
    ],
)
def test_the_size_of_a_text_is_known_where_its_files_are_plain(tmp_path, said, names, known):
    for name in ("a.txt", "b.txt"):
        write(tmp_path / name, f"{name}\n")
    jsonl(tmp_path / "c.jsonl", [{"text": "a"}])
    write(tmp_path / "d.txt.gz", gzip.compress(b"a\n"))
    corpus = DocumentCorpus(tuple(str(tmp_path / name) for name in names))
    prepare(Settings(corpus, tokenizer=word_pieces(tmp_path, "a")), tmp_path / "data")
    assert said[0] == ("train", "of", 6 * len(names) if known else None)


def test_a_tokenizer_is_trained_on_a_sample_of_so_many_million_characters(tmp_path, said):
    text = write(tmp_path / "a.txt", f"{'ab' * 2000}\n" * 300)
    source = TokenizerSource("char", character_coverage=1.0, sample_megabytes=1)
    prepare(Settings(DocumentCorpus((text,)), tokenizer=source), tmp_path / "data")
    assert "training the char tokenizer on 250 lines" in said  # of 4,000 characters


def test_the_number_of_words_of_an_anna_tokenizer_is_reported(tmp_path, said):
    text = write(tmp_path / "a.txt", raw_text(random_documents(60)))
    anna = TokenizerSource("anna", vocabulary_size=90, word_share=0.2)
    statistics = prepare(Settings(DocumentCorpus((text,)), tokenizer=anna), tmp_path / "data")["tokenizer"]
    words = load_tokenizer(tmp_path / "data").words
    assert statistics["words"] == len(words) > 0
    assert f"{len(words)} words of the anna tokenizer are chosen from {statistics['word_candidates']}" in said


def test_texts_are_read_and_encoded_by_as_many_processes_as_are_asked_for(tmp_path, monkeypatch):
    numbers = []

    def counted(function, items, workers):
        numbers.append(workers)
        return map(function, items)

    monkeypatch.setattr(module, "ordered_map", counted)
    settings = Settings(DocumentCorpus((write(tmp_path / "a.txt", "a b\n"),)), tokenizer=CHARACTERS)
    prepare(settings, tmp_path / "one")
    prepare(settings, tmp_path / "three", workers=3)
    assert numbers == [1, 1, 3, 3]
