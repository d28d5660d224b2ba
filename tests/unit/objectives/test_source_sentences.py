"""Sentences of sources and the oracle's choice, stored beside the tokens, as objectives get them."""

import json
import random

import numpy as np
import pytest

from tests.support.asked import sentences
from tests.support.corpora import WORDS, items, jsonl, run, tree, write
from tests.support.many import one_text
from tests.support.token_files import write as write_items
from unified.data.annotations import SOURCE_KINDS, Annotations, span_prefix
from unified.data.text import Text
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.objectives.unilm import TargetCloze, TargetNext
from unified.planning.pairs import PairTexts
from unified.tokenization import load_tokenizer
from unified.training.row_dataset import RowDataset

SPECIAL = Vocabulary([f"w{i}" for i in range(50)]).special
SIDE = "train.source-target.source"


def random_pair(rng):
    sentences = [" ".join(rng.choices(WORDS, k=rng.randint(1, 8))) for _ in range(rng.randint(1, 6))]
    starts = [sum(len(s) + 1 for s in sentences[:i]) for i in range(len(sentences))]
    taken = sorted(rng.sample(range(len(sentences)), rng.randint(0, len(sentences))))
    row = {"source": " ".join(sentences), "target": rng.choice(WORDS), "sentences": starts, "oracle": taken}
    return row, sentences


def prepare(path, destination, *options):
    fields = ("--source-field", "source", "--target-field", "target", "--oracle")
    return run(path, *fields, "--output", destination, *options)


# ---------------------------------------------------------------- stored


@pytest.mark.parametrize("tokenizer", ["char", "unigram", "bpe", "wordpiece"])
def test_spans_are_the_sentences(tmp_path, tokenizer):
    rng = random.Random(1)
    rows, sentences = zip(*(random_pair(rng) for _ in range(60)), strict=True)
    size = () if tokenizer == "char" else ("--vocabulary-size", 120)
    assert prepare(jsonl(tmp_path / "in.jsonl", rows), tmp_path / "data", "--tokenizer", tokenizer, *size) == 0
    vocabulary = Vocabulary.load(tmp_path / "data" / "dict.source.txt")
    pieces = load_tokenizer(tmp_path / "data")
    tokens, *spans = (items(tmp_path / "data" / f"{SIDE}{kind}") for kind in ("", ".sentences", ".oracle"))
    for i, row in enumerate(rows):
        found, taken = (np.array(kind[i]).reshape(-1, 2) for kind in spans)
        assert found[0, 0] == 0 and found[-1, 1] == len(tokens[i]) - 1
        assert np.array_equal(taken, found[row["oracle"]])
        for (start, stop), sentence in zip(found.tolist(), sentences[i], strict=True):
            expected = vocabulary.encode(pieces.encode(sentence)).tolist()
            if start and vocabulary.symbols[expected[0]] == "\u2581" == vocabulary.symbols[tokens[i][start - 1]]:
                expected.pop(0)  # a blank between two sentences is of neither, where it is a piece of its own
            assert tokens[i][start:stop] == expected


@pytest.mark.slow
def test_validation_share_skipped_pairs_and_workers(tmp_path):
    rng = random.Random(2)
    rows = [random_pair(rng)[0] for _ in range(300)]
    for i in range(0, 300, 7):
        rows[i]["target"] = " "
    path = jsonl(tmp_path / "in.jsonl", rows)
    options = ("--skip-empty", "--valid-share", 0.3, "--seed", 4)
    for workers in (1, 2):
        assert prepare(path, tmp_path / f"{workers}", *options, "--workers", workers) == 0
    assert tree(tmp_path / "1").keys() == tree(tmp_path / "2").keys()
    assert all(tree(tmp_path / "1")[name] == tree(tmp_path / "2")[name] for name in tree(tmp_path / "1"))
    counts = json.loads((tmp_path / "1" / "manifest.json").read_text())["splits"]
    kept = [row for row in rows if row["target"].strip()]
    assert counts["train"]["pairs"] + counts["valid"]["pairs"] == len(kept) and counts["valid"]["pairs"] > 50
    for kind in SOURCE_KINDS:
        assert sum(part["spans"][kind] for part in counts.values()) == sum(len(row[kind]) for row in kept)
    for part in ("train", "valid"):  # spans lie beside their own tokens
        tokens = items(tmp_path / "1" / f"{part}.source-target.source")
        spans = items(tmp_path / "1" / f"{part}.source-target.source.sentences")
        assert [len(item) - 1 for item in tokens] == [span[-1] for span in spans]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sentences": None}, "field 'sentences' must be a list of whole numbers, got None"),
        ({"oracle": [2]}, "field 'oracle' must hold numbers from 0 to 1, got [2]"),
        ({"source": "a b  c d"}, "white space other than single blanks"),
    ],
)
def test_bad_fields_are_refused(tmp_path, capsys, changes, says):
    good = {"source": "a b c d", "target": "a", "sentences": [0, 4], "oracle": [1]}
    path = jsonl(tmp_path / "in.jsonl", [good, {**good, **changes}])
    assert prepare(path, tmp_path / "data") == 2
    assert f"{path}, line 2: " in (message := capsys.readouterr().err.splitlines()[-1]) and says in message


def test_oracle_needs_json_pairs(tmp_path, capsys):
    path = write(tmp_path / "a.txt", "a\n")
    for options in ((), ("--target", path)):
        assert run(path, *options, "--oracle", "--output", tmp_path / "data") == 2
        assert "--oracle is for files of `unified pairs --oracle`; give --source-field" in capsys.readouterr().err


# ---------------------------------------------------------------- read


def pair_texts(folder, pairs, spans, **limits):
    """Pairs of token lists; of each source the spans of its sentences, and of those that the oracle takes."""
    folder.mkdir(exist_ok=True)
    sides = [write_items(folder / name, [[*row[i], 2] for row in pairs]) for i, name in enumerate(("s", "t"))]
    for kind, own in zip(SOURCE_KINDS, zip(*spans, strict=True), strict=True):
        write_items(span_prefix(folder / "s", kind), [np.array(rows).ravel() for rows in own])
    return PairTexts(*sides, SPECIAL, annotations=Annotations(sides[0]), **limits)


@pytest.mark.parametrize(
    ("objective", "most", "expected"),
    [
        # CLS 10 11 12 13 14 15 SEP: sentences begin at indices 1, 3 and 6, the oracle takes the first and the third.
        (TargetCloze(extractive=True), 0, [[1, 1], [3, 0], [6, 1]]),
        (TargetNext(extractive=True), 0, [[1, 1], [3, 0], [6, 1]]),
        (TargetCloze(extractive=True, sentence_limit=2), 0, [[1, 1], [3, 0]]),
        (TargetCloze(extractive=True), 6, [[1, 1], [3, 0], [6, 1]]),
        (TargetCloze(extractive=True), 5, [[1, 1], [3, 0]]),  # the first token of the third is cut off
        (TargetCloze(extractive=True), 4, [[1, 1], [3, 0]]),  # the second is cut behind its first token
        (TargetCloze(extractive=True), 2, [[1, 1]]),
        (TargetCloze(), 0, []),
        (TargetNext(), 4, []),
    ],
)
def test_sentences_of_an_example(tmp_path, objective, most, expected):
    texts = pair_texts(
        tmp_path / "x", [([10, 11, 12, 13, 14, 15], [20])], [([[0, 2], [2, 5], [5, 6]], [[0, 2], [5, 6]])],
        max_source=most,
    )  # fmt: skip
    text = one_text(texts, 0, 0, objective, np.random.default_rng(0))
    assert set(text.spans) == (set(SOURCE_KINDS) if objective.extractive else set())
    assert all((spans <= len(text.tokens)).all() for spans in text.spans.values())
    example = objective(text, np.random.default_rng(0))
    assert sentences(example).tolist() == expected and sentences(example).dtype == np.int64


def test_the_rest_of_an_example_is_what_it_was(tmp_path):
    texts = pair_texts(tmp_path / "x", [([10, 11, 12], [20, 21])], [([[0, 2], [2, 3]], [[2, 3]])])
    for kind in (TargetCloze, TargetNext):
        plain, extractive = (
            objective(one_text(texts, 0, 0, objective, None), np.random.default_rng(3))
            for objective in (kind(), kind(extractive=True))
        )
        for name, value in vars(plain).items():
            assert name == "targets" or np.array_equal(value, getattr(extractive, name)), name
        assert {**plain.targets, "extractive": extractive.targets["extractive"]} == extractive.targets


def test_without_sentences_it_is_refused_in_one_line(tmp_path):
    folder = tmp_path / "x"
    pair_texts(folder, [([10], [11])], [([[0, 1]], [])])
    plain = PairTexts(*(write_items(tmp_path / name, [[10, 2]]) for name in "ab"), SPECIAL)
    mixture = parse_objectives("target_cloze(extractive=True)")
    message = (
        f"^{tmp_path}/a and b: objective target_cloze: needs the annotation sentences, oracle, which the data do not "
        "have .they have none.; prepare them with --oracle, from the output of `unified pairs --oracle`$"
    )
    with pytest.raises(UnifiedError, match=message):
        RowDataset(plain, mixture, 32, seed=1)
    (folder / "s.oracle.idx").unlink()
    (folder / "s.oracle.bin").unlink()
    half = PairTexts(plain.source, plain.target, SPECIAL, annotations=Annotations(plain.source))
    with pytest.raises(UnifiedError, match="needs the annotation sentences, oracle"):
        RowDataset(half, mixture, 32, seed=1)
    with pytest.raises(UnifiedError, match="target_cloze: needs the annotation sentences, but this text has none"):
        TargetCloze(extractive=True)(Text(np.array([10]), SPECIAL, np.array([11])), np.random.default_rng(0))
    with pytest.raises(UnifiedError, match="target_next: extractive must be True or False, got 20"):
        TargetNext(extractive=20)
    with pytest.raises(UnifiedError, match="sentence_limit must be at least 0, got -1"):
        TargetCloze(extractive=True, sentence_limit=-1)
    with pytest.raises(UnifiedError, match="target_cloze: sentence_limit=20 needs extractive=True"):
        TargetCloze(sentence_limit=20)


def test_all_sentences_that_fit_are_asked(tmp_path):
    """More than the 20 of the released code, unless a limit is set; those that are cut off drop out."""
    spans = [[i, i + 1] for i in range(50)]
    texts = pair_texts(tmp_path / "x", [(range(10, 60), [5])], [(spans, spans[::3])], max_source=45)
    for objective, expected in (
        (TargetCloze(extractive=True), 45),
        (TargetNext(extractive=True), 45),
        (TargetCloze(extractive=True, sentence_limit=20), 20),
        (TargetNext(extractive=True, sentence_limit=60), 45),
    ):
        example = objective(one_text(texts, 0, 0, objective, np.random.default_rng(0)), np.random.default_rng(0))
        assert sentences(example).tolist() == [[i + 1, int(i % 3 == 0)] for i in range(expected)]


def test_what_is_cut_off_is_counted(tmp_path):
    pairs = [(range(10, 10 + n), range(10, 10 + m)) for n, m in [(3, 1), (4, 2), (5, 3), (9, 9)]]
    sides = [write_items(tmp_path / name, [[*pair[i], 2] for pair in pairs]) for i, name in enumerate("st")]
    assert PairTexts(*sides, SPECIAL).cut() == PairTexts(*sides, SPECIAL, 9, 9).cut() == {}
    assert PairTexts(*sides, SPECIAL, 4, 2).cut() == {
        "source": "2 of 4 sources are cut to their first 4 tokens",
        "target": "2 of 4 targets are cut to their first 2 tokens",
    }
