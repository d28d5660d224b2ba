"""Files of sentences, unusual and wrong ones: columns of words, relations, reviews and trees of sentiments."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.refusals import refused
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.columns import read_columns
from unified.tasks.datasets.conll2003 import read_conll2003, to_bio
from unified.tasks.datasets.imdb import read_imdb
from unified.tasks.datasets.semeval2010 import read_semeval2010
from unified.tasks.datasets.sentiment_trees import read_sentiment_trees
from unified.tasks.datasets.tacred import read_tacred
from unified.tasks.datasets.wnut17 import read_wnut17
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import WordsItem
from unified.tasks.heads.relation import RelationItem


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# ---------------------------------------------------------------- columns


def test_blank_lines_end_sentences_and_docstart_begins_documents(tmp_path):
    text = "\n \na|x|O\nb|y|B-p.q\n\t\n-DOCSTART-\nc|z|I-x\n-DOCSTART-|\n\nd|x|O\n\n\n"
    path = written(tmp_path / "a", text)
    assert read_columns(path, lambda line: line.split("|"), 3) == [
        WordsItem("0", ("a", "b"), ("O", "B-p.q")),
        WordsItem("1", ("c",), ("I-x",), "1"),
        WordsItem("2", ("d",), ("O",), "2"),
    ]


def test_all_wrong_lines_of_columns_are_named(tmp_path):
    path = written(tmp_path / "a", "a|x|O\nb|O\n |x|O\nc|x|x\nd|x|B-\ne|x|\nf|x|BO\ng|x|O-x\nh|x|B-a b\ni|x|O|z\n")
    tags = ("x", "B-", "", "BO", "O-x", "B-a b")
    said = "; ".join(f"line {n}: the tag {tag!r} is not O, B-TYPE or I-TYPE" for n, tag in enumerate(tags, 4))
    assert refused(read_columns, path, lambda line: line.split("|"), 3) == (
        f"{path}: line 2: 2 columns instead of 3; line 3: the word is empty; {said}; line 10: 4 columns instead of 3"
    )


def test_columns_of_conll_are_divided_by_blanks_and_tabs_and_those_of_wnut_by_tabs_alone(tmp_path):
    path = written(tmp_path / "a", " EU\tNNP  I-NP I-ORG \n\u00a0 NNP I-NP O\nof\u2028it NNP I-NP O\n")
    assert refused(read_conll2003, path) == f"{path}: line 2: the word is empty"
    path = written(path, "EU\tNNP  I-NP I-ORG \nof\u2028it NNP I-NP O\n")
    assert read_conll2003(path) == [WordsItem("0", ("EU", "of\u2028it"), ("B-ORG", "O"))]
    path = written(path, "a b\tB-x\n")
    assert read_wnut17(path) == [WordsItem("0", ("a b",), ("B-x",))]


@pytest.mark.parametrize(
    ("iob1", "bio"),
    [
        ("I-a I-a B-a I-a O I-a", "B-a I-a B-a I-a O B-a"),
        ("I-a I-b I-b B-b O O I-a", "B-a B-b I-b B-b O O B-a"),
        ("I-X I-X", "B-X I-X"),
        ("O", "O"),
        ("", ""),
    ],
)
def test_iob1_becomes_bio(iob1, bio):
    assert to_bio(iob1.split()) == tuple(bio.split())


# ---------------------------------------------------------------- relations


SENTENCE = {
    "id": "e1", "relation": "per:title", "token": ["Tom", "said", "he"], "subj_start": 0, "subj_end": 0, "obj_start": 2,
    "obj_end": 2, "subj_type": "PERSON", "obj_type": "TITLE",
}  # fmt: skip


def tacred(path: Path, *sentences) -> Path:
    return written(path, json.dumps(list(sentences)))


def test_tacred_has_brackets_for_their_names_and_numbers_for_missing_ids(tmp_path):
    names = ["-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-", "-lrb-"]
    second = {name: value for name, value in SENTENCE.items() if name != "id"} | {"token": names}
    path = tacred(tmp_path / "a.json", SENTENCE, second, SENTENCE | {"id": 7, "subj_end": 2})
    pair = (Entity(0, 1, "PERSON"), Entity(2, 3, "TITLE"))
    assert read_tacred(path) == [
        RelationItem("e1", ("Tom", "said", "he"), pair, "per:title"),
        RelationItem("2", (*"()[]{}", "-lrb-"), pair, "per:title"),
        RelationItem("7", ("Tom", "said", "he"), (Entity(0, 3, "PERSON"), pair[1]), "per:title"),
    ]
    unlabelled = tacred(path, {name: value for name, value in SENTENCE.items() if name != "relation"})
    assert refused(read_tacred, unlabelled).startswith(f"{path}: sentence 1: no field 'relation'")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"subj_start": -1}, "subj_start -1 and subj_end 0 are not among its 3 words"),
        ({"subj_start": 1}, "subj_start 1 and subj_end 0 are not among its 3 words"),
        ({"obj_end": 3}, "obj_start 2 and obj_end 3 are not among its 3 words"),
        ({"token": ["a", " ", "b"]}, "'token' must be a list of texts that are not empty"),
        ({"token": "abc"}, "'token' must be a list of texts that are not empty"),
        ({"token": ["a", "\ud83d", "b", "c"]}, "'token' holds half of a surrogate pair, such as a part of an emoji"),
        ({"token": []}, "'token' must be a list of texts that are not empty"),
        ({"obj_start": "2"}, "no integer 'obj_start'"),
        ({"subj_type": 1}, "no text 'subj_type'"),
    ],
)
def test_wrong_sentences_of_tacred_are_refused_with_their_number(tmp_path, change, message):
    path = tacred(tmp_path / "a.json", SENTENCE | {"id": "e0"}, SENTENCE | change)
    assert refused(read_tacred, path) == f"{path}: sentence 2: {message}"


def test_tacred_is_a_list_of_sentences_with_words(tmp_path):
    path = tacred(tmp_path / "a.json", {"id": "x"})
    assert refused(read_tacred, path) == f"{path}: sentence 1: no field 'token'; its fields: 'id'"
    assert refused(read_tacred, written(path, "{}")) == f"{path}: the file: no list 'sentences'"


GOOD = '1\t"<e1>a b</e1> of <e2>c</e2> ."\nCause-Effect(e1,e2)\nComment: none\n\n'


def semeval(number: int, sentence: str, *following: str) -> str:
    return "\n".join((f'{number}\t"{sentence}"', *following)) + "\n\n"


def test_a_block_of_semeval_is_a_sentence_with_its_relation_and_comments(tmp_path):
    second = semeval(3, 'x<e1>y</e1>z "<e2>v w</e2>', "Other", "Comment: 4 of 5", "more")
    third = semeval(4, "<e1>a</e1><e2>b</e2>", "Message-Topic(e2,e1)")
    items = read_semeval2010(written(tmp_path / "a.txt", GOOD + second + third))
    assert items == [
        RelationItem("1", ("a", "b", "of", "c", "."), (Entity(0, 2), Entity(3, 4)), "Cause-Effect(e1,e2)"),
        RelationItem("3", ("x", "y", "z", '"', "v", "w"), (Entity(1, 2), Entity(4, 6)), "Other"),
        RelationItem("4", ("a", "b"), (Entity(0, 1), Entity(1, 2)), "Message-Topic(e2,e1)"),
    ]


FORM = 'expected number<tab>"… <e1>…</e1> … <e2>…</e2> …"'
RELATION = "a relation such as 'Cause-Effect(e2,e1)' or 'Other' must follow"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("a title\n", f"line 1: {FORM}"),
        ('2\tno marks "quoted"\n', f"line 1: {FORM}"),
        ('2\t"no marks"\nOther\n', f"line 1: {FORM}"),
        (semeval(2, "<e2>a</e2> <e1>b</e1>", "Other"), f"line 1: {FORM}"),
        (semeval(2, "<e1>a</e1> <e2>b</e2>"), f"line 1: {RELATION}"),
        (semeval(2, "<e1>a</e1> <e2>b</e2>", "Others"), f"line 1: {RELATION}"),
        (semeval(2, "<e1>a</e1> <e2>b</e2>", "cause-Effect(e1,e2)"), f"line 1: {RELATION}"),
        (semeval(2, "<e1>a</e1> <e2>b</e2>", "Cause-Effect(e1,e1)"), f"line 1: {RELATION}"),
        (semeval(2, "<e1> </e1> <e2>b</e2>", "Others"), f"line 1: {RELATION}"),
        (semeval(2, "<e1> </e1> <e2>b</e2>", "Other"), "line 1: an entity is empty"),
        (semeval(2, "<e1>a</e1> <e2></e2>", "Other"), "line 1: an entity is empty"),
    ],
)
def test_blocks_of_semeval_without_marks_or_a_relation_are_refused(tmp_path, block, message):
    path = written(tmp_path / "a.txt", block + GOOD)
    assert refused(read_semeval2010, path) == f"{path}: {message}"


def test_a_number_of_semeval_that_is_there_twice_is_refused_but_for_those_of_wrong_blocks(tmp_path):
    wrong = semeval(1, "<e1> </e1> <e2>b</e2>", "Other")
    path = written(tmp_path / "a.txt", wrong + GOOD + wrong + GOOD)
    assert refused(read_semeval2010, path) == (
        f"{path}: 2 lines (1, 8): an entity is empty; "
        "line 11: the id '1' is that of line 4, too; each needs an id of its own"
    )


def test_every_tenth_training_sentence_of_semeval_is_for_validation(tmp_path):
    sentences = [semeval(i, "<e1>a</e1> <e2>b</e2>", "Other") for i in range(1, 23)]
    written(tmp_path / "TRAIN_FILE.TXT", "".join(sentences))
    splits = task_named("semeval2010").read(tmp_path)
    assert {split: [int(item.id) for item in items] for split, items in splits.items()} == {
        "train": [i for i in range(1, 23) if i not in (10, 20)], "valid": [10, 20],
    }  # fmt: skip


# ---------------------------------------------------------------- reviews and sentiments


@pytest.fixture
def reviews(tmp_path) -> Path:
    """A split of IMDB with three reviews, and files that are none."""
    for name, text in (("neg/2_1.txt", " Bad.<br />\nNo. "), ("neg/10_1.txt", "x"), ("pos/1_9.txt", "Good."),
                       ("pos/notes.md", ""), ("unsup/1_0.txt", "")):  # fmt: skip
        written(tmp_path / name, text)
    return tmp_path


def test_reviews_are_named_by_their_files_and_have_no_line_breaks(reviews):
    found = [(item.id, item.text, item.label) for item in read_imdb(reviews)]
    assert found == [("neg/10_1.txt", "x", "neg"), ("neg/2_1.txt", "Bad.  No.", "neg"), ("pos/1_9.txt", "Good.", "pos")]


def test_empty_unreadable_and_doubled_reviews_are_refused(reviews):
    written(reviews / "neg/3_1.txt", " \n")
    (reviews / "neg/4_1.txt").write_bytes(b"\xff")
    (reviews / "pos/1_9.txt.gz").write_bytes(gzip.compress(b""))
    details = refused(read_imdb, reviews)
    assert details.startswith(
        f"{reviews}: 2 times (neg/3_1.txt, pos/1_9.txt.gz): empty; neg/4_1.txt, line 1: not UTF-8 ("
    )
    assert "; pos/1_9.txt.gz: the id 'pos/1_9.txt' is that of pos/1_9.txt, too; " in details


def test_a_label_without_reviews_is_refused(reviews):
    (reviews / "pos/1_9.txt").unlink()
    assert refused(read_imdb, reviews) == f"{reviews}: no pos/*.txt; is it a split of IMDB, such as aclImdb/train?"


@pytest.mark.parametrize(("sentiment", "label"), [("0", "0"), ("1", "0"), ("2", None), ("3", "1"), ("4", "1")])
def test_negative_and_positive_sentiments_become_labels_and_neutral_sentences_are_left_out(tmp_path, sentiment, label):
    path = written(tmp_path / "a.txt", f"\n ({sentiment} (2 -LRB-) (3 Good))\n(4 (2 Now) (2 -RRB-))\n")
    items = [(item.id, item.text, item.label) for item in read_sentiment_trees(path)]
    first = [] if label is None else [("0", "( good", label)]
    assert items == [*first, (str(len(first)), "now )", "1")]


def test_slashes_and_asterisks_of_trees_are_those_of_glue(tmp_path):
    path = written(tmp_path / "a.txt", "(4 (2 (2 Co-writer\\/director) (2 \\*\\*\\*)) (3 4\\/5ths))\n")
    assert [item.text for item in read_sentiment_trees(path)] == ["co-writer/director *** 4/5ths"]


@pytest.mark.parametrize("line", ["(5 (2 a))", "x (3 (2 a))", "(3 (2 a)", "(3 (2 a)))", "3 (2 a)", "(3 (2 ))", "(3"])
def test_lines_that_are_no_trees_are_refused(tmp_path, line):
    path = written(tmp_path / "a.txt", f"(4 (2 a))\n{line}\n")
    assert refused(read_sentiment_trees, path) == (f"{path}: line 2: no tree of sentiments, such as (3 (2 Good) (2 .))")


def test_a_file_of_neutral_trees_alone_is_refused(tmp_path):
    path = written(tmp_path / "a.txt", "(2 (2 a))\n(3 word)\n")
    assert [item.text for item in read_sentiment_trees(path)] == ["word"]
    assert refused(read_sentiment_trees, written(path, "(2 (2 a))\n")) == (
        f"{path}: the file: holds no positive or negative sentence"
    )
