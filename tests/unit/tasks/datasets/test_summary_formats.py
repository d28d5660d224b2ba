"""Data sets of summaries: fields of rows, files of folders, conversion to pairs, and the limits of the oracle."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.corpora import jsonl, write
from tests.support.locales import plain_locale
from tests.support.refusals import refused
from unified.tasks.datasets.summaries import pairs
from unified.tasks.datasets.summaries.combinations import MAX_COMBINATIONS, MAX_SENTENCES, best_combination
from unified.tasks.datasets.summaries.formats import FORMATS, Format, SummaryPair, cnn_dailymail_story, xsum_file
from unified.tasks.datasets.summaries.greedy import greedy_oracle
from unified.tasks.datasets.summaries.inputs import Inputs
from unified.tasks.datasets.summaries.oracles import DEFAULT_ORACLE, ORACLES
from unified.tasks.datasets.summaries.pairs import Counts, PairConverter, write_pairs

# ---------------------------------------------------------------- rows


def test_a_row_of_each_data_set_is_divided_into_sentences():
    made = {
        "cnn_dailymail": {"article": "A b. C d.\nE\nf", "highlights": "One. Two.\n \n Three"},
        "gigaword": {"document": "A b. C d.", "summary": "One. \n Two."},
        "xsum": {"document": "A b.\nC d.", "summary": "One. Two."},
        "reuters": {"body": "A b.\nC d.", "title": "ONE. TWO"},
        "scitldr": {"source": ["A b. C d.", " ", "E"], "target": ["One. Two.", "", "Three"]},
        "aeslc": {"body": "A b.\nC d.", "subject": "One", "annotations": ["Two ", ""]},
    }
    found = {name: FORMATS[name].row(row) for name, row in made.items()}
    assert found == {
        "cnn_dailymail": SummaryPair(("A b.", "C d.", "E", "f"), ("One. Two.", "Three")),
        "gigaword": SummaryPair(("A b.", "C d."), ("One. Two.",)),
        "xsum": SummaryPair(("A b.", "C d."), ("One. Two.",)),
        "reuters": SummaryPair(("A b.", "C d."), ("ONE. TWO",)),
        "scitldr": SummaryPair(("A b. C d.", "E"), ("One. Two.",), ("Three",)),
        "aeslc": SummaryPair(("A b.", "C d."), ("One",), ("Two",)),
    }
    assert list(FORMATS) == list(made)
    assert FORMATS["aeslc"].row({"body": "A", "subject": "B"}).others == ()


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("cnn_dailymail", {"article": "a"}, "no field 'highlights'; its fields: 'article'"),
        ("cnn_dailymail", {"highlights": "a"}, "no field 'article'; its fields: 'highlights'"),
        ("xsum", {"document": "a"}, "no field 'summary'; its fields: 'document'"),
        ("reuters", {"body": "a"}, "no field 'title'; its fields: 'body'"),
        ("reuters", {"title": "a"}, "no field 'body'; its fields: 'title'"),
        ("scitldr", {"source": []}, "no field 'target'; its fields: 'source'"),
        ("scitldr", {"target": []}, "no field 'source'; its fields: 'target'"),
        ("scitldr", {"source": "a", "target": []}, "field 'source' is a text, not a list of texts"),
        ("scitldr", {"source": ["a", None], "target": []}, "field 'source' holds null, not a text"),
        ("scitldr", {"source": [], "target": ["\ud800"]}, "field 'target' holds half of a surrogate pair"),
        ("aeslc", {"body": "a"}, "no field 'subject'; its fields: 'body'"),
        ("aeslc", {"body": "a", "subject": "b", "annotations": "c"},
         "field 'annotations' is a text, not a list of texts"),
    ],
)  # fmt: skip
def test_rows_with_missing_or_wrong_fields_are_refused(name, row, message):
    assert refused(FORMATS[name].row, row) == message


def test_a_line_of_a_story_without_an_end_gets_a_full_stop_as_the_story_writes_it():
    assert cnn_dailymail_story(" One. \n\nTwo\n@highlight\n\nThree\n@highlights\nFour.") == SummaryPair(
        ("One.", "Two."), ("Three.", "Four.")
    )
    assert cnn_dailymail_story("One .\nTwo\n@highlight\nThree").target == ("Three .",)
    assert cnn_dailymail_story("") == SummaryPair((), ())


def test_a_file_of_xsum_is_divided_at_its_marks():
    text = "[SN]A[SN]x[SN]FIRST-SENTENCE[SN]\nOne.\n Two.[SN]RESTBODY[SN]A b.\nC d."
    assert xsum_file(text) == SummaryPair(("A b.", "C d."), ("One. Two.",))
    assert refused(xsum_file, text.replace("FIRST-S", "S")) == "no part [SN]FIRST-SENTENCE[SN]"
    assert refused(xsum_file, text.replace("REST", "")) == "no part [SN]RESTBODY[SN]"


# ---------------------------------------------------------------- files


JSON = "rows (JSON lines, CSV, Parquet, ...)"


def test_the_inputs_that_a_data_set_has_are_named_in_words():
    assert {name: form.known for name, form in FORMATS.items()} == {
        "cnn_dailymail": f"{JSON} or folders of *.story files",
        "gigaword": f"{JSON} or two text files (sources, summaries)",
        "xsum": f"{JSON} or folders of *.summary files",
        **dict.fromkeys(("reuters", "scitldr", "aeslc"), JSON),
    }
    assert Format().known == "" and Format().stem(" a ") == "a"
    assert Format(file=xsum_file).known == "folders of * files"


def test_inputs_that_a_data_set_does_not_have_are_refused(tmp_path):
    text, rows = write(tmp_path / "a.txt", "a\n"), jsonl(tmp_path / "a.jsonl", [])
    folder = str(tmp_path)
    for name, paths in (("gigaword", (text,)), ("gigaword", (text, text, text)), ("gigaword", (text, rows)),
                        ("xsum", (text, text)), ("reuters", (folder,)), ("reuters", (text, text)),
                        ("cnn_dailymail", (text,))):  # fmt: skip
        assert refused(Inputs, name, paths) == f"{' '.join(paths)}: {name} is read from {FORMATS[name].known}"
    assert refused(Inputs, "x", (rows,)) == (
        "no data set 'x'; known are cnn_dailymail, gigaword, xsum, reuters, scitldr, aeslc"
    )
    assert refused(Inputs, "xsum", (rows, text), "list") == (
        f"--list chooses files of folders, but {rows} {text} are none"
    )
    missing = str(tmp_path / "none.jsonl")
    assert refused(Inputs, "xsum", (missing,)) == f"{missing}: no such file"


def test_inputs_of_a_data_set_are_files_or_folders(tmp_path):
    text, rows = write(tmp_path / "a.txt", "a\n"), jsonl(tmp_path / "a.jsonl", [])
    assert not Inputs("gigaword", (text, text)).are_folders and Inputs("xsum", (str(tmp_path),)).are_folders
    assert Inputs("reuters", (rows, rows)).form is FORMATS["reuters"]


def stories(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        write(folder / f"{name}.story", f"Text {name}.\n@highlight\nPoint {name}.")
    return folder


def read(source: Inputs) -> list[str]:
    """The first sentence of every pair."""
    return [make().source[0] for chunk in source.chunks() for _, _, make in source.rows(chunk)]


def test_stories_are_read_folder_by_folder_in_the_order_of_their_names(tmp_path):
    first, second = stories(tmp_path / "x", "c", "a", "b"), stories(tmp_path / "y", "d", "0")
    (first / "notes.txt").touch()
    assert read(Inputs("cnn_dailymail", (str(first), str(second)))) == [f"Text {name}." for name in "abc0d"]
    source = Inputs("cnn_dailymail", (str(second),))
    (chunk,) = source.chunks()
    assert [(location, size) for location, size, _ in source.rows(chunk)] == [
        (str(second / f"{name}.story"), len(f"Text {name}.\n@highlight\nPoint {name}.")) for name in "0d"
    ]


def test_many_stories_are_divided_into_chunks_that_hold_each_once(tmp_path):
    many = Inputs("cnn_dailymail", (str(stories(tmp_path / "z", *map(str, range(300)))),))
    assert len(list(many.chunks())) > 1
    assert sorted(read(many)) == sorted(f"Text {number}." for number in range(300))


def test_a_list_chooses_files_by_name_or_address_and_their_order(tmp_path):
    address = "https://example.org/x"
    name = hashlib.sha1(address.encode()).hexdigest()
    folder = stories(tmp_path / "x", "a", "b", name)
    chosen = write(tmp_path / "list", f"b\n\n {address} \na\n")
    source = Inputs("cnn_dailymail", (str(folder),), chosen)
    assert read(source) == ["Text b.", f"Text {name}.", "Text a."]
    write(tmp_path / "list", "b.story\na\n")
    assert read(source) == ["Text b.", "Text a."]
    write(tmp_path / "list", "b\nc\n\nd.story\n")
    assert refused(lambda: list(source.chunks())) == (
        f"{chosen}, line 2: no file c.story; {chosen}, line 4: no file d.story; in {folder}"
    )


def test_a_file_that_a_list_names_twice_is_refused_in_whichever_way_it_is_named(tmp_path):
    address = "https://example.org/x"
    name = hashlib.sha1(address.encode()).hexdigest()
    source = Inputs("cnn_dailymail", (str(stories(tmp_path / "x", "a", name)),), str(tmp_path / "list"))
    chosen = write(tmp_path / "list", f"a\n{address}\n\na.story\n{name}\na\n")
    assert refused(lambda: list(source.chunks())) == (
        f"{chosen}, line 4: a.story again, as in line 1; {chosen}, line 5: {name}.story again, as in line 2; "
        f"{chosen}, line 6: a.story again, as in line 1; name each file once"
    )


def test_rows_of_several_files_follow_one_another(tmp_path):
    files = [jsonl(tmp_path / f"{i}.jsonl", [{"body": f"B{i} {k}", "title": "t"} for k in range(2)]) for i in range(2)]
    source = Inputs("reuters", tuple(files))
    assert read(source) == ["B0 0", "B0 1", "B1 0", "B1 1"]
    locations = [(location, size) for chunk in source.chunks() for location, size, _ in source.rows(chunk)]
    sizes = [Path(file).stat().st_size // 2 for file in files]
    assert locations == [(f"{files[i]}, line {k + 1}", sizes[i]) for i in range(2) for k in range(2)]
    texts = (write(tmp_path / "s.txt", "A b.\nC\n"), write(tmp_path / "t.txt", "one\ntwo\n"))
    source = Inputs("gigaword", texts)
    (chunk,) = source.chunks()
    assert [(location, size) for location, size, _ in source.rows(chunk)] == [
        (f"{texts[0]}, line 1", len("A b.one")), (f"{texts[0]}, line 2", len("Ctwo")),
    ]  # fmt: skip


def test_a_story_that_is_not_utf_8_is_refused_with_the_byte_and_a_byte_order_mark_is_no_text(tmp_path):
    folder = stories(tmp_path / "x")
    (folder / "a.story").write_bytes("é".encode() + b"\xff")
    (folder / "b.story").write_bytes("\ufeffOne.\n@highlight\nTwo.".encode())
    source = Inputs("cnn_dailymail", (str(folder),))
    ((_, _, bad), (_, _, good)) = (row for chunk in source.chunks() for row in source.rows(chunk))
    assert refused(bad) == "not UTF-8 at byte 2" and good().source == ("One.",)


# ---------------------------------------------------------------- pairs


def converted(tmp_path, rows, **settings) -> pairs.Converted:
    converter = PairConverter(Inputs("scitldr", (jsonl(tmp_path / "in.jsonl", rows),)), **settings)
    (chunk,) = converter.inputs.chunks()
    return converter(chunk)


ROWS = [
    {"source": ["A | b.", "C d."], "target": ["One", "T|wo"]},
    {"source": [], "target": ["x"]},
    {"source": ["x"], "target": []},
    {"source": ["The cat sat.", "É x"], "target": ["the cat"]},
]


def test_pairs_are_counted_and_separators_replaced(tmp_path):
    done = converted(tmp_path, ROWS, skip_empty=True, oracle="greedy")
    assert list(map(json.loads, done.lines)) == [
        {"source": "A / b. C d.", "target": "One", "references": ["One", "T/wo"], "sentences": [0, 7], "oracle": []},
        {"source": "The cat sat. É x", "target": "the cat", "sentences": [0, 13], "oracle": [0]},
    ]
    assert done.counts == Counts(pairs=2, empty=2, replaced=1, without_oracle=1, limited=0) and not done.problems
    assert "É" in done.lines[1]
    size = (tmp_path / "in.jsonl").stat().st_size  # of which each row has an equal share, rounded down
    assert size - len(ROWS) < done.size <= size
    plain = converted(tmp_path, ROWS[:1])
    assert json.loads(plain.lines[0]) == {"source": "A / b. C d.", "target": "One", "references": ["One", "T/wo"]}
    assert plain.counts == Counts(pairs=1, replaced=1) and plain.size == (tmp_path / "in.jsonl").stat().st_size
    other = converted(tmp_path, ROWS[:1], separator="[S]")
    assert json.loads(other.lines[0])["source"] == "A | b. C d." and other.counts == Counts(pairs=1)


def test_pairs_with_an_empty_side_are_refused_by_default(tmp_path):
    done = converted(tmp_path, ROWS)
    advice = "mend it, or leave such pairs out with --skip-empty"
    path = tmp_path / "in.jsonl"
    assert [(location, str(problem)) for location, problem in done.problems] == [
        (f"{path}, line 2", f"the text is empty; {advice}"), (f"{path}, line 3", f"the summary is empty; {advice}"),
    ]  # fmt: skip
    assert done.counts == Counts(pairs=2, replaced=1)


def test_counts_are_added_one_by_one():
    total = Counts(1, 2, 3, 4, 5)
    total.add(Counts(10, 20, 30, 40, 50))
    assert total == Counts(pairs=11, empty=22, replaced=33, without_oracle=44, limited=55)
    assert Counts() == Counts(0, 0, 0, 0, 0)


@pytest.mark.parametrize("separator", ["", " ", "a b", " a", "/", "a/b"])
def test_a_separator_is_one_symbol_without_a_slash(tmp_path, separator):
    assert refused(converted, tmp_path, ROWS, separator=separator) == (
        f"--separator must be a symbol without blanks and slashes, got {separator!r}"
    )
    assert refused(converted, tmp_path, ROWS, oracle="x") == "--oracle x: known are combinations, greedy"


def test_pairs_are_written_whole_or_not_at_all(tmp_path, capsys):
    converter = PairConverter(Inputs("scitldr", (jsonl(tmp_path / "in.jsonl", ROWS[:1]),)))
    output = tmp_path / "new" / "folder" / "out.jsonl"
    assert write_pairs(converter, output) == Counts(pairs=1, replaced=1)
    assert output.read_text().endswith("}\n") and list(output.parent.iterdir()) == [output]
    assert "1 pair" in capsys.readouterr().err
    assert refused(write_pairs, converter, output) == (
        f"{output}: exists already; --overwrite replaces it, or give another --output"
    )
    assert write_pairs(converter, output, overwrite=True).pairs == 1
    assert refused(write_pairs, converter, tmp_path / "out.json") == (
        f"{tmp_path / 'out.json'}: name it *.jsonl, by which `unified prepare` knows JSON lines"
    )
    for rows, says in ((ROWS[1:2], "the text is empty; mend"), ([], "holds no pair of a text and its summary")):
        jsonl(tmp_path / "in.jsonl", rows)
        before = output.read_text()
        assert says in refused(write_pairs, converter, output, overwrite=True)
        assert output.read_text() == before and list(output.parent.iterdir()) == [output]


def test_pairs_are_converted_by_this_process_unless_others_are_asked_for(tmp_path, monkeypatch):
    path, seen = tmp_path / "rows.jsonl", []

    def noting(function, items, workers):
        seen.append(workers)
        return map(function, items)

    monkeypatch.setattr("unified.tasks.datasets.summaries.pairs.ordered_map", noting)
    jsonl(path, [{"source": ["A b."], "target": ["C."]}])
    converter = PairConverter(Inputs("scitldr", (str(path),)))
    for options in ({}, {"workers": 3}):
        assert write_pairs(converter, tmp_path / "out.jsonl", overwrite=True, **options).pairs == 1
    assert seen == [1, 3]


def test_pairs_are_utf_8_and_progress_is_told_by_their_bytes(tmp_path, monkeypatch):
    told = []

    class Told:
        def __init__(self, what: str):
            told.append(what)

        def add(self, size: int, items: str) -> None:
            told.append((size, items))

        def finish(self, items: str) -> None:
            told.append(items)

    monkeypatch.setattr(pairs, "Progress", Told)
    source, output = Path(jsonl(tmp_path / "in.jsonl", ROWS[3:])), tmp_path / "out.jsonl"
    with plain_locale():
        write_pairs(PairConverter(Inputs("scitldr", (str(source),))), output)
    assert json.loads(output.read_bytes().decode("utf-8"))["source"] == "The cat sat. É x"
    assert told == ["out.jsonl", (source.stat().st_size, "1 pair"), "1 pair"]


# ---------------------------------------------------------------- oracles


def test_oracles_have_names_and_the_default_is_the_best_combination():
    assert (list(ORACLES), DEFAULT_ORACLE) == (["combinations", "greedy"], "combinations")
    assert ORACLES["combinations"] is best_combination and (MAX_SENTENCES, MAX_COMBINATIONS) == (5, 100_000)
    sentences, summary = ["a b", "c d", "e"], ["a b", "c d"]
    assert ORACLES["greedy"](sentences, summary) == (greedy_oracle(sentences, "a b c d"), False) == ([0, 1], False)


def distinct(count: int) -> list[str]:
    return [f"a{i} b{i}" for i in range(count)]


def test_the_search_for_combinations_ends_at_its_limits_and_says_so():
    for most in range(1, 6):
        found = best_combination(distinct(4), distinct(4), max_sentences=most)
        assert found == (list(range(min(most, 4))), most < 4)
    # Of four candidates there are four combinations of one sentence, six of two, four of three, and one of four.
    for most, size in ((3, 0), (4, 1), (5, 1), (6, 4)):
        found = best_combination(distinct(4), distinct(4), max_combinations=most)
        assert found == (list(range(size)), size < 4)
    assert best_combination(distinct(6), distinct(6)) == ([0, 1, 2, 3, 4], True)
    assert best_combination(distinct(5), distinct(5)) == ([0, 1, 2, 3, 4], False)
    assert best_combination(["x y"], ["a b"]) == ([], False) == best_combination([], ["a b"])
