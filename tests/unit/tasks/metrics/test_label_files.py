"""Files of labels, tags, numbers and answers: what is read of them, and the exact text of every refusal."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from unified.errors import UnifiedError
from unified.files.fields import FieldNames
from unified.tasks.metrics.files import (
    LABEL,
    TAGS,
    read_answers,
    read_labels,
    read_numbers,
    read_subsets,
    read_tagged,
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file of lines and returns its name, which is short, so that messages are not cut."""
    monkeypatch.chdir(tmp_path)

    def of(name: str, *lines: object) -> str:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        Path(name).write_text("".join(text + "\n" for text in texts), encoding="utf-8")
        return name

    return of


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments)
    return caught.value.details


def test_labels_in_any_form_pair_by_their_ids(write):
    """Random labels, written as lines, as lines with ids and as rows, with white space that does not count."""
    rng = random.Random(1)
    for _ in range(30):
        count = rng.randint(1, 8)
        gold, found = ([rng.choice(["yes", "no", "7"]) for _ in range(count)] for _ in range(2))
        found[0] = gold[0]
        order = rng.sample(range(count), count)
        plain = write("plain", *(f" {label} " for label in gold))
        numbered = write("numbered", *(f" {i + 1} \t{found[i]} " for i in order))
        assert read_labels(plain, numbered) == (gold, found)
        rows = write("rows.jsonl", *({"id": i + 1, "label": f" {gold[i]} "} for i in range(count)))
        assert read_labels(rows, numbered) == (gold, found)
        table = write("table.tsv", "id\tlabel", *(f"{i + 1}\t{found[i]}" for i in order))
        assert read_labels(rows, table) == (gold, found)
        assert read_labels(table, rows) == ([found[i] for i in order], [gold[i] for i in order])


def test_a_row_without_an_id_has_its_number(write):
    assert read_labels(write("g.jsonl", {"label": "a"}, {"label": "b"}), write("p", "2\tb", "1\tb"))[1] == ["b", "b"]


def test_a_label_that_is_a_number_is_its_text(write):
    assert read_labels(write("g.jsonl", {"label": 1}, {"label": 0}), write("p", "1", "1")) == (["1", "0"], ["1", "1"])


def test_tables_without_the_column_are_lines(write):
    """Whatever the capitals of the ending, and whether the table is compressed."""
    predicted = write("p", "a\tx", "b\ty")
    for name in ("g.tsv", "g.TAB", "g.tsv.gz"):
        content = b"a\tx\nb\tx\n"
        Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        assert read_labels(name, predicted) == (["x", "x"], ["x", "y"])


@pytest.mark.parametrize("read", [read_labels, read_numbers])
def test_names_of_columns_are_no_example(write, read):
    table, labels = write("g.tsv", " id \tgold", "a\t1", "b\t2"), write("p", "a\t1", "b\t2")
    says = "g.tsv, line 1: no column 'label'; its columns: 'id', 'gold'"
    assert refusal(read, table, labels) == f"{says}; --label-field names the one to read"
    assert refusal(read, labels, table) == says  # of predictions no option names a field
    for name in ("label", "gold"):
        assert refusal(read, labels, write("g", f"id\t{name}", "a\t1")) == (
            "g, line 1: names of columns, which files of lines have not; leave the line out"
        )
    for lines in (("idea\t1", "b\t2"), ("b\t2", "id\t1"), ("b\t2", "7\tid\t1")):
        assert read(write("i.tsv", *lines), write("i", *lines))[0] in (["1", "2"], ["2", "1"], [1, 2], [2, 1])
    assert read(table, labels, *([None] if read is read_labels else []), FieldNames(LABEL.parts, {"label": "gold"}))


@pytest.mark.parametrize("read", [read_labels, read_numbers])
@pytest.mark.parametrize(
    "first",
    ["label", " Label ", "gold", "Prediction ", "index\tlabel", "ID\tgold", "index\tprediction", "pairID\tpred"],
)
def test_a_first_line_of_names_is_refused_whatever_they_are(write, read, first):
    """HANS has pairID and gold_label, a submission to GLUE index and prediction; plain labels may have a heading."""
    examples = ("ex0\t1", "ex1\t0", "ex2\t1") if "\t" in first else ("1", "0", "1")
    whole, names = write("whole", *examples), write("names", first, *examples)
    says = "names, line 1: names of columns, which files of lines have not; leave the line out"
    assert refusal(read, whole, names) == refusal(read, names, whole) == refusal(read, names, names) == says
    if "\t" in first and "label" not in first:  # a table with this column is one of rows
        columns = ", ".join(map(repr, first.split("\t")))
        assert refusal(read, write("names.tsv", first, *examples), whole) == (
            f"names.tsv, line 1: no column 'label'; its columns: {columns}; --label-field names the one to read"
        )
    assert read(whole, whole)[0] in (["1", "0", "1"], [1, 0, 1])


@pytest.mark.parametrize(
    "lines",
    [
        ("pairID\tyes", "ex1\tno", "ex2\tyes"),  # its label comes again
        ("pairID\tyes", "ex1\tno", "ex\tno"),  # another id has no digit, either
        ("pair1\tyes", "ex1\tno", "ex2\tno"),
        ("pairID\tB2", "ex1\tA1", "ex2\tA1"),
        ("ex1\tno", "pairID\tyes", "ex2\tno"),  # not the first line
        ("pairID\tyes",),
        ("yes", "no", "no"),
        ("yes", "1", "2"),
        ("idea\tlabels", "a\tb"),
        ("gold", "silver", "gold"),  # a colour
        ("silver", "gold", "bronze"),
        ("gold",),
        ("ex1\tgold", "ex2\tsilver"),
    ],
)
def test_a_first_line_that_may_be_an_example_is_one(write, lines):
    path = write("g", *lines)
    assert read_labels(path, path)[0] == [line.split("\t")[-1] for line in lines]


def test_the_first_line_that_is_not_blank_names_the_columns(write):
    """Blank lines before it do not make the table a file of lines, nor does white space around a name."""
    rows = write("g.tsv", "id\t label ", "a\tx")
    assert read_labels(rows, write("p", "a\tx")) == (["x"], ["x"])


def test_users_name_the_field_of_the_gold_labels_alone(write):
    names = FieldNames(LABEL.parts, {"label": "class"})
    gold = write("g.tsv", "id\tclass", "a\tx", "b\ty")
    found = write("p.jsonl", {"id": "a", "label": "x"}, {"id": "b", "label": "x"})
    assert read_labels(gold, found, names=names) == (["x", "y"], ["x", "x"])
    assert refusal(read_labels, found, gold, None, names) == (
        "p.jsonl, 2 lines (1, 2): no field 'class'; its fields: 'id', 'label'"
    )
    # A table that lacks the named column is refused: it is no file of lines where somebody names a column.
    table = write("other.tsv", "id\tlabel", "a\tx")
    assert refusal(read_labels, table, found, None, names) == (
        "other.tsv, line 2: no field 'class'; its fields: 'id', 'label'"
    )


def test_files_without_a_label_in_common_are_refused_but_for_the_negative_one(write):
    gold, found = write("g", "a", "b"), write("p", "x", "y")
    says = "p: has no label of g, but such as 'x', where that has 'a'; both files must use the same"
    assert refusal(read_labels, gold, found) == says
    none = write("n", "none", "none")
    assert read_labels(gold, none, "none") == (["a", "b"], ["none", "none"])
    assert refusal(read_labels, gold, none) == says.replace("p:", "n:").replace("'x'", "'none'")
    assert refusal(read_labels, gold, write("q", "none", "x"), "none") == says.replace("p:", "q:")


def test_what_does_not_pair_is_refused(write):
    gold = write("g", "a\tx", "b\tx")
    assert refusal(read_labels, gold, write("p", "a\tx")) == "p: 1 label, but 2 in g"
    assert refusal(read_labels, gold, write("p", "a\tx", "c\tx")) == (
        "p: no label for 'b' of g, but one for 'c'; both files need the same ids, or none"
    )
    assert refusal(read_labels, gold, write("p", "x", "x")) == (
        "p: has no id of g, but such as '1', where that has 'a'; both files must use the same"
    )


def test_every_bad_line_is_named(write):
    gold = write("g", "a\tx", "\tx", " \tx", "a\ty", "a\t", "", "b\t x ")
    assert refusal(read_labels, gold, gold) == (
        "g, 2 lines (2, 3): no id; expected 'label' or 'id<tab>label'; "
        "g, line 4: id 'a' was in this file before (a line without an id has its number for one); "
        "g, 2 lines (5, 6): no label; expected 'label' or 'id<tab>label'"
    )
    assert refusal(read_labels, write("e"), gold) == "e: the file is empty; expected one label a line"
    assert refusal(read_labels, write("e.jsonl"), gold) == "e.jsonl: the file is empty; expected an object a line"


def test_every_bad_row_is_named(write):
    rows = write("g.jsonl", {"id": "a", "label": "x"}, {"id": " a ", "label": "y"}, {"id": "b", "label": 1.5},
                 {"id": [], "label": "x"}, {"id": "c"}, {"id": "d", "label": "x"})  # fmt: skip
    assert refusal(read_labels, rows, rows) == (
        "g.jsonl, line 2: id 'a' was in this file before (a line without an id has its number for one); "
        "g.jsonl, line 3: 'label' must be a name or an integer, got 1.5; "
        "g.jsonl, line 4: 'id' must be a text that is not empty, or an integer, got []; "
        "g.jsonl, line 5: no field 'label'; its fields: 'id'; --label-field names the one to read"
    )
    named, own = FieldNames(LABEL.parts, {"label": "y"}), write("n.jsonl", {"y": 1.5}, {"y": "x"})
    assert refusal(read_labels, own, rows, None, named) == (
        "n.jsonl, line 1: 'y' must be a name or an integer, got 1.5"
    )
    mixed = write("m.jsonl", {"label": 1}, {"label": "1"}, {"label": 1})
    assert refusal(read_labels, mixed, mixed) == (
        'm.jsonl, line 2: both 1 and "1" are labels of this file; write the label in one of the two ways'
    )


def test_no_option_is_named_for_a_field_that_predictions_lack(write):
    """The options name the fields of the other file."""
    rows, lacking = write("g.jsonl", {"label": 1}), write("p.csv", "id,prediction", "1,1")
    for read in (read_labels, read_numbers):
        assert refusal(read, rows, lacking) == "p.csv, line 2: no field 'label'; its fields: 'id', 'prediction'"
    tagged = write("t.jsonl", {"tags": ["O"]})
    assert refusal(read_tagged, tagged, lacking) == "p.csv, line 2: no field 'tags'; its fields: 'id', 'prediction'"
    assert refusal(read_answers, lacking) == "p.csv, line 2: no field 'answer'; its fields: 'id', 'prediction'"


def test_numbers_of_lines_and_of_rows(write):
    lines = write("g", "b\t1.5", "a\t-2")
    rows = write("p.jsonl", {"id": "a", "label": 3}, {"id": "b", "label": " 0.25 "})
    assert read_numbers(lines, rows) == ([1.5, -2.0], [0.25, 3.0])
    assert all(type(one) is float for side in read_numbers(rows, lines) for one in side)
    names = FieldNames(LABEL.parts, {"label": "score"})
    scored = write("s.csv", "id,score", "a,1", "b,2")
    assert read_numbers(scored, rows, names) == ([1, 2], [3, 0.25])


def test_what_is_no_finite_number_is_refused(write):
    good = write("good", "1", "2", "3")
    assert refusal(read_numbers, write("g", "x", "1", "inf"), good) == (
        "g: id '1': expected a finite number, got 'x'; id '3': expected a finite number, got 'inf'"
    )
    rows = write("g.jsonl", {"label": "x"}, {"label": True}, {"label": 2})
    assert refusal(read_numbers, rows, good) == (
        "g.jsonl, line 1: 'label' must be a finite number, got 'x'; "
        "g.jsonl, line 2: 'label' must be a finite number, got True"
    )


def test_subsets_of_rows(write):
    rows = write("g.jsonl", {"label": 0, "subset": "high"}, {"label": 1}, {"label": 1, "subset": 3},
                 {"label": 1, "subset": None})  # fmt: skip
    assert read_subsets(rows) == ["high", None, "3", None]
    assert read_subsets(write("g", "high", "low")) == []
    table = write("g.tsv", "id\tsubset", "a\tb")  # without the column of the labels it is a file of lines
    assert read_subsets(table) == []
    names = FieldNames(LABEL.parts, {"label": "right"})
    assert read_subsets(write("r.csv", "right,subset", "0,low"), names) == ["low"]
    assert refusal(read_subsets, write("b.jsonl", {"label": [], "subset": "x"})) == (
        "b.jsonl, line 1: 'label' must be a name or an integer, got []"
    )


def test_tags_of_columns_and_of_rows(write):
    wanted, found = [["B-X", "O"], ["O"]], [["O", "B-X"], ["O"]]
    columns = write("g", "a B-X", "b O", "", "c O"), write("p", "O", "B-X", "", "", "O")
    assert read_tagged(*columns) == (wanted, found)
    rows = write("g.jsonl", {"id": 1, "tags": wanted[0]}, {"id": 2, "tags": wanted[1]})
    texts = write("p.csv", "id,tags", "2,O", "1, O  B-X ")
    assert read_tagged(rows, texts) == (wanted, found)
    names = FieldNames(TAGS.parts, {"label": "marks"})
    assert read_tagged(write("n.csv", "id,marks", "1,B-X O", "2,O"), texts, names) == (wanted, found)


def test_columns_are_read_alike_whatever_the_name_of_the_file(write):
    """CoNLL-2003's files, as they come and with another ending; a line that begins a document is no word."""
    lines = ("-DOCSTART- -X- O O", "", "a NN I-NP B-X", "b NN I-NP O", "", "-DOCSTART- -X- O O", "", "c NN I-NP O")
    gold = [write(name, *lines) for name in ("eng.testb", "eng.conll", "eng.CONLL")]
    tags = ("B-X", "B-X", "", "O")
    found = [write(name, *tags) for name in ("p", "p.conll")]
    found += [write(name, *(tag and f"w {tag}" for tag in tags)) for name in ("w", "w.conll")]
    wanted = [["B-X", "O"], ["O"]], [["B-X", "B-X"], ["O"]]
    assert [read_tagged(g, f) for g in gold for f in found] == [wanted] * 12
    rows = write("p.jsonl", {"id": 2, "tags": ["O"]}, {"id": 1, "tags": ["B-X", "B-X"]})
    assert read_tagged("eng.conll", rows) == wanted and read_tagged(rows, "eng.conll") == (
        [["O"], ["B-X", "B-X"]], [["O"], ["B-X", "O"]]
    )  # fmt: skip
    numbered = write("g.conll", "a 1", "b 0", "", "c 0")
    for names in (FieldNames(TAGS.parts, labels=("O", "B-X")), FieldNames(TAGS.parts, {"label": "tags"})):
        assert (
            refusal(read_tagged, numbered, "w", names)
            == "w: expected rows with the field 'tags', as the other file has them"
        )
    assert read_tagged(numbered, "w.conll", FieldNames(TAGS.parts, labels=("O", "B-X"))) == wanted


def test_tags_of_one_kind_of_file_need_the_same_of_the_other(write):
    rows, columns = write("g.jsonl", {"tags": ["O"]}), write("p", "O")
    for pair in ((rows, columns), (columns, rows)):
        assert refusal(read_tagged, *pair) == "p: expected rows with the field 'tags', as the other file has them"


@pytest.mark.parametrize("tags", [["O", ""], ["O", 1], 3, {"O": 1}])
def test_what_is_no_list_of_tags_is_refused(write, tags):
    rows = write("g.jsonl", {"tags": tags})
    assert refusal(read_tagged, rows, rows) == f"g.jsonl, line 1: 'tags' must be a list of names, got {tags!r}"


def test_sentences_without_a_type_of_entities_in_common_are_refused(write):
    rows = write("g.jsonl", {"tags": ["O", "B-PER"]}), write("p.jsonl", {"tags": ["I-LOC", "O"]})
    assert refusal(read_tagged, *rows) == (
        "p.jsonl: has no type of entities of g.jsonl, but such as 'LOC', where that has 'PER'; "
        "both files must use the same"
    )
    nothing = write("n.jsonl", {"tags": ["O", "O"]})  # no entity was found: that is a score
    assert read_tagged(rows[0], nothing) == ([["O", "B-PER"]], [["O", "O"]])
    both = write("b.jsonl", {"tags": ["B-A-B", "O"]}), write("c.jsonl", {"tags": ["I-A-B", "I-A-B"]})
    assert read_tagged(*both) == ([["B-A-B", "O"]], [["I-A-B", "I-A-B"]])


def test_answers_of_rows(write):
    """An empty one says that there is none, as `unified predict` writes it."""
    rows = write("p.jsonl", {"id": "q", "answer": "x", "label": "y"}, {"id": 7, "answer": ""}, {"answer": " "})
    assert read_answers(rows) == {"q": "x", "7": "", "3": " "}
    assert read_answers(write("p.csv", "id,answer", "a,", "b,y")) == {"a": "", "b": "y"}


def test_what_holds_no_answers_is_refused(write):
    assert refusal(read_answers, write("p", "x")) == (
        "p: no file of rows by its name; rows come as CSV, TSV, Parquet, JSON lines, a JSON array or columns of words "
        "(.csv, .tsv, .parquet, .jsonl, .json, .conll)"
    )
    assert refusal(read_answers, write("p.jsonl", {"answer": 3})) == ("p.jsonl, line 1: 'answer' must be a text, got 3")
