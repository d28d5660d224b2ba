"""``unified prepare`` in Python: what a folder holds, what is said meanwhile, and what is refused."""

import gzip
import json
import platform
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version

import numpy as np
import pytest

import unified
from tests.support.annotators import PatternSource
from tests.support.corpora import items, jsonl, random_documents, raw_text, tree, write
from unified.corpus import prepare as module
from unified.corpus.cleaning import Cleaning
from unified.corpus.prepare import ADVICE, Settings, prepare
from unified.corpus.readers import DocumentCorpus, RowPairCorpus
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer, word_starts

CHARACTERS = TokenizerSource("char", character_coverage=1.0)


@pytest.fixture
def said(monkeypatch):
    """All that is told of the progress: jobs with their totals, steps, ends and lines."""
    told = []

    class Told:
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

    monkeypatch.setattr(module, "Progress", Told)
    return told


# ---------------------------------------------------------------- folders


def test_a_trained_folder_and_what_is_said_of_it(tmp_path, said):
    texts = [raw_text(random_documents(6, seed=n)) for n in range(2)]
    paths = tuple(write(tmp_path / f"{n}.txt", text) for n, text in enumerate(texts))
    rows = [{"text": "over and over\nthe house"}, {"text": ""}, {"text": "a red tree"}]
    valid = jsonl(tmp_path / "valid.jsonl", rows)
    settings = Settings(DocumentCorpus(paths), DocumentCorpus((valid,)), tokenizer=CHARACTERS, skip_empty=True)
    manifest = prepare(settings, tmp_path / "data")

    data = tmp_path / "data"
    tokenizer, vocabulary = load_tokenizer(data), Vocabulary.load(data / "dict.txt")
    expected = []
    for document in random_documents(6, seed=0) + random_documents(6, seed=1):
        expected += [[2]] * bool(expected) + [
            [*vocabulary.encode(tokenizer.encode(line)).tolist(), 2] for line in document
        ]
    assert items(data / "train") == expected
    flat = [token for item in expected for token in item]
    stop = vocabulary.special.ordinary_stop
    assert (
        vocabulary.counts[4:stop] == np.bincount(flat, minlength=stop)[4:stop].tolist() and vocabulary.counts[stop] == 1
    )
    assert np.load(data / "word_starts.npy").tolist() == word_starts(tokenizer, vocabulary).tolist()
    ends = [f"{name}.{end}" for name in ("train", "valid") for end in ("bin", "idx")]
    assert sorted(tree(data)) == sorted([*ends, "dict.txt", "manifest.json", "tokenizer.model", "word_starts.npy"])

    lines, sizes = sum(map(len, random_documents(6) + random_documents(6, seed=1))), [len(t.encode()) for t in texts]
    tokens = len([token for token in flat if token != 2])
    of_valid = manifest["splits"]["valid"]
    first = sum(map(len, random_documents(6)))
    counted = [line for line in said if isinstance(line, tuple)]
    assert counted[:4] == [
        ("reading", "of", sum(sizes)),
        ("reading", sizes[0], f"{first} lines"),
        ("reading", sizes[1], f"{lines} lines"),
        ("reading", "end", f"{lines} lines"),
    ]
    assert said[4] == f"training the char tokenizer on {lines} lines"
    assert counted[4] == ("train", "of", sum(sizes)) and [one[1] for one in counted[5:7]] == sizes
    assert counted[7] == ("train", "end", f"12 documents, {tokens:,} tokens") and counted[6][2] == counted[7][2]
    size = sum(len(json.dumps(row)) + 1 for row in rows)
    summary = f"2 documents, {of_valid['tokens']} tokens"
    assert counted[8:] == [("valid", "of", None), ("valid", size, summary), ("valid", "end", summary)]

    assert of_valid["skipped"] == 1 and of_valid["documents"] == 2 and of_valid["sentences"] == 3
    assert manifest["splits"]["train"]["skipped"] == 0
    assert json.loads((data / "manifest.json").read_text()) | {"outputs": 0} == json.loads(json.dumps(manifest)) | {
        "outputs": 0
    }
    splits = manifest.pop("splits")
    assert splits["train"] == {
        **{"documents": 12, "skipped": 0, "sentences": lines, "tokens": tokens, "unknown": 0},
    }
    assert manifest == {
        "content": "documents",
        "symbols": len(vocabulary),
        "reserved": 0,
        "annotations": None,
        "settings": asdict(settings),
        "inputs": {
            path: {"bytes": len(content), "sha256": sha256(content).hexdigest()}
            for path in (*paths, valid)
            for content in [open(path, "rb").read()]
        },
        "versions": {
            "unified": unified.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "sentencepiece", "tokenizers")},
        },
    }


def word_pieces(folder, words):
    """A ready-made tokenizer: whole words, without a dictionary beside it."""
    return TokenizerSource(
        write(folder / "vocab.txt", "".join(f"{w}\n" for w in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words)))
    )


def test_pairs_with_an_oracle(tmp_path, said):
    rows = [
        {"source": "a b. c.", "target": "a", "sentences": [0, 5], "oracle": [1]},
        {"source": "", "target": "a", "sentences": [0], "oracle": []},
        {"source": "b", "target": "c b", "sentences": [0], "oracle": []},
    ]
    with_text = [rows[0], rows[2]]
    corpus = RowPairCorpus((jsonl(tmp_path / "p.jsonl", with_text),), "source", "target")
    manifest = prepare(
        Settings(corpus, tokenizer=word_pieces(tmp_path, "abc."), oracle=True, reserve=3), tmp_path / "data"
    )
    data = tmp_path / "data"
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
    given = tmp_path / "given"
    given.mkdir()
    word_pieces(given, "ab")
    prepare(Settings(DocumentCorpus((text,)), tokenizer=TokenizerSource(str(given))), tmp_path / "one")
    dictionary = tmp_path / "one" / "dict.txt"
    dictionary.write_text(dictionary.read_text().replace("a 1\n", "a 77\n"))
    again = TokenizerSource(str(tmp_path / "one"))
    prepare(Settings(DocumentCorpus((text,)), tokenizer=again), tmp_path / "two")
    assert (
        tmp_path / "two" / "dict.txt"
    ).read_bytes() == dictionary.read_bytes() and b"a 77\n" in dictionary.read_bytes()
    prepare(Settings(DocumentCorpus((text,)), tokenizer=again, reserve=1), tmp_path / "three")
    assert (tmp_path / "three" / "dict.txt").read_text() == dictionary.read_text() + "[unused1] 1\n"


def test_annotated_and_cleaned_documents(tmp_path, said):
    rows = [{"text": "a tree"}, {"text": " "}, {"text": "a a old\n\na"}]
    corpus = DocumentCorpus((jsonl(tmp_path / "a.jsonl", rows),))
    source = word_pieces(tmp_path, ["a", "tree", "old"])
    for cleaning, kept in ((None, [2, 3]), (Cleaning(short_sentences=2), [2, 2])):
        settings = Settings(
            corpus,
            tokenizer=source,
            cleaning=cleaning,
            skip_empty=True,
            annotation=PatternSource(("entities",), "patterns"),
        )
        manifest = prepare(settings, tmp_path / str(len(said)))
        found = manifest["splits"]["train"]
        assert [found["documents"], found["sentences"]] == kept and found["skipped"] == 1
        assert found["spans"] == {"entities": 1}  # the tree
        assert manifest["annotations"] == {"kinds": ["entities"], "pipeline": "patterns"}
        assert ("cleaning" in manifest) == (cleaning is not None)
    assert manifest["cleaning"]["train"]["removed"]["short_sentences"]["sentences"] == 1


def test_rows_without_text_are_counted_in_both_splits_of_a_share(tmp_path):
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
    with pytest.raises(UnifiedError) as raised:
        prepare(settings, destination, **options)
    return raised.value.details


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
    assert said == [] and sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "full"]


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


def test_a_tokenizer_is_trained_on_so_many_million_characters(tmp_path, said, monkeypatch):
    """Of ANNA's words and their candidates it is said how many there are."""
    limits = []

    class Sample(module.TextSample):
        def __init__(self, limit):
            limits.append(limit)
            super().__init__(limit)

    monkeypatch.setattr(module, "TextSample", Sample)
    text = write(tmp_path / "a.txt", raw_text(random_documents(60)))
    anna = TokenizerSource("anna", vocabulary_size=90, word_share=0.2, sample_megabytes=3)
    manifest = prepare(Settings(DocumentCorpus((text,)), tokenizer=anna), tmp_path / "data")
    words = load_tokenizer(tmp_path / "data").words
    assert (
        limits == [3_000_000]
        and f"{len(words)} words of the anna tokenizer are chosen from {manifest['tokenizer']['word_candidates']}"
        in said
    )
    assert manifest["tokenizer"]["words"] == len(words) > 0


def test_all_work_is_done_by_the_processes_that_are_asked_for(tmp_path, monkeypatch):
    asked = []

    def counted(function, chunks, workers):
        asked.append(workers)
        return map(function, chunks)

    monkeypatch.setattr(module, "ordered_map", counted)
    settings = Settings(DocumentCorpus((write(tmp_path / "a.txt", "a b\n"),)), tokenizer=CHARACTERS)
    prepare(settings, tmp_path / "one")
    prepare(settings, tmp_path / "three", workers=3)
    assert asked == [1, 1, 3, 3]
