"""Texts to score, from lines, rows and the output of fairseq-generate: what is read, and the text of every refusal."""

from __future__ import annotations

import gzip
import json
import lzma
import math
import random
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest

from unified.errors import UnifiedError
from unified.files.fields import FieldNames
from unified.tasks.metrics import score_generation
from unified.tasks.metrics.outputs import (
    TARGET,
    Written,
    is_generate_output,
    matched,
    read_generate_output,
    read_hypotheses,
    read_ids,
    read_lines,
    read_n_best,
    read_references,
    read_sources,
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file and returns its name, which is short, so that messages are not cut."""
    monkeypatch.chdir(tmp_path)

    def of(content: object, name: str = "f") -> str:
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return of


def refusal(call, *arguments, **settings) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments, **settings)
    return caught.value.details


def test_lines_end_at_line_feeds(write):
    assert read_lines(write("aX\r\n\n b \u2028c\n\rd")) == ["aX", "", " b \u2028c", "\rd"]
    assert refusal(read_lines, write("")) == "f: the file is empty; expected one sentence a line"
    assert refusal(read_lines, write(b"a\nb\xffc\n")) == (
        "f, line 2: not UTF-8 (byte 0xff at byte 2 of the line); convert the file to UTF-8"
    )
    assert refusal(read_lines, "missing") == "missing: no such file"
    assert refusal(read_lines, ".") == ".: a folder, not a file; name its files, such as f"
    with pytest.raises(UnifiedError, match="^f.csv: "):
        read_lines(write("a\n", "f.csv"))


@pytest.mark.parametrize("text", ["red,green", "red\tgreen", "a; b", "name,year", '{"a": 1'])
def test_short_answers_that_look_like_rows_of_a_table_are_lines(write, text):
    path = write(f"{text}\n" * 20)
    assert read_lines(path) == read_hypotheses(path) == read_sources(path) == [text] * 20
    assert read_references(path) == [[text]] * 20


def test_files_may_be_compressed_and_may_begin_with_a_byte_order_mark(write):
    assert read_lines(write("\ufeffa\n\ufeffb\n")) == ["a", "\ufeffb"]
    for name, compress in (("f.gz", gzip.compress), ("f.xz", lzma.compress)):
        assert read_lines(write(compress("\ufeffé\nb\n".encode()), name)) == ["é", "b"]
        path = write(compress(blocks((0, ["our"], "right")).encode()), name)
        assert is_generate_output(path) and read_generate_output([path]) == (["our"], ["right"])
        assert [[one.text for one in own] for own in read_n_best([path])] == [["our"]]


def test_unknown_tokens_of_references_match_no_hypothesis_however_words_are_divided(write):
    path = write(blocks((0, ["a <unk> b <unk>", "x"], "a <<unk>> b <<unk>>"), (1, ["<<unk>>"], "unk")))
    hypotheses, references = read_generate_output([path])
    assert hypotheses == ["a <unk> b <unk>", "<<unk>>"] and references[1] == "unk"
    found, wanted = score_generation(hypotheses[:1], references[:1]), score_generation(["a x b y"], ["a v b w"])
    assert (found.rouge1, found.rouge2, found.exact_match) == (wanted.rouge1, wanted.rouge2, 0) == (50, 0, 0)
    assert score_generation(["<unk>"], [references[0].split()[1]]).bleu == 0


def test_hypotheses_are_lines_or_texts_of_rows(write):
    assert read_hypotheses(write("a\n\nb\n")) == ["a", "", "b"]
    assert read_hypotheses(write([{"id": 3, "text": "a"}, {"text": ""}], "f.jsonl")) == ["a", ""]
    assert refusal(read_hypotheses, write([{"text": 3}, {"id": 1}], "f.jsonl")) == (
        "f.jsonl, line 1: 'text' must be a text, got 3; f.jsonl, line 2: no field 'text'; its fields: 'id'"
    )
    assert refusal(read_hypotheses, write([], "f.jsonl")) == "f.jsonl: the file is empty; expected a text a row"
    with pytest.raises(UnifiedError):
        read_hypotheses(write([{"text": ""}, {}], "f.jsonl"))


def test_sources_are_lines_or_a_field_of_rows(write):
    assert read_sources(write("a b\n\n")) == ["a b", ""]
    rows = [{"source": "a b", "target": "a"}, {"source": ""}]
    assert read_sources(write(rows, "f.jsonl")) == ["a b", ""]
    assert refusal(read_sources, write([{"source": ["a", "b"]}, {"text": "a"}], "f.jsonl")) == (
        "f.jsonl, line 1: 'source' must be a text, got ['a', 'b']; f.jsonl, line 2: no field 'source'; its fields: "
        "'text'"
    )


def test_rows_are_matched_by_their_ids(write):
    assert read_ids(write("a\n")) is None and read_ids(write([{"text": "a"}, {"id": None}], "f.jsonl")) is None
    ours = write([{"id": "b"}, {"id": 7}, {}], "a.jsonl")
    right = write([{"id": "7"}, {"id": "3"}, {"id": "b"}], "b.jsonl")
    ids = read_ids(ours)
    assert ids == ["b", "7", "3"] and matched(right, ["x", "y", "z"], ours, ids) == ["z", "x", "y"]
    for path, wanted in ((right, None), (write("x\ny\nz\n"), ids), (write([{"text": "x"}] * 3, "f.jsonl"), ids)):
        assert matched(path, ["x", "y", "z"], ours, wanted) == ["x", "y", "z"]
    same = "both files need the same ids, or none"
    assert refusal(matched, right, ["x", "y", "z"], ours, ["b", "c", "3"]) == (
        f"b.jsonl: no row has the id 'c' of a.jsonl; {same}"
    )
    assert refusal(matched, right, ["x", "y", "z"], ours, ["b", "3"]) == (
        f"a.jsonl: no row has the id '7' of b.jsonl; {same}"
    )
    assert refusal(read_ids, write([{"id": 2}, {"id": "x"}, {"id": "2 "}], "f.jsonl")) == (
        "f.jsonl: 2 rows have the id '2'; each needs an id of its own"
    )


def test_rows_under_the_name_of_a_text_are_refused(write):
    path = write([{"id": 1, "text": "a"}], "f.txt")
    for read in (read_lines, read_hypotheses, read_references, read_sources):
        assert refusal(read, path) == "f.txt: not raw text but JSON lines, which a name with .jsonl says"


def test_references_are_lines_or_fields_of_rows(write):
    assert read_references(write("a\n\n")) == [["a"], [""]]
    rows = [{"target": "a"}, {"references": ["b", ""]}, {"target": "c", "references": ["d"]}]
    path = write(rows, "f.jsonl")
    assert read_references(path) == [["a"], ["b", ""], ["d"]]
    names = FieldNames(TARGET.parts, {"target": "target"})
    assert refusal(read_references, path, names) == ("f.jsonl, line 2: no field 'target'; its fields: 'references'")
    assert read_references(write(rows[::2], "f.jsonl"), names) == [["a"], ["c"]]
    own = FieldNames(TARGET.parts, {"target": "own"})
    assert read_references(write([{"own": "x", "target": "y"}], "f.jsonl"), own) == [["x"]]
    for value in ("a", [], ["a", 3], 3):
        message = f"f.jsonl, line 1: 'references' must be a list of texts, got {value!r}"
        assert refusal(read_references, write([{"references": value}], "f.jsonl")) == message
    for value in (3, ["a", 3], {"a": "b"}):
        message = f"f.jsonl, line 1: 'target' must be a text, or a list of texts that are all references, got {value!r}"
        assert refusal(read_references, write([{"target": value}], "f.jsonl")) == message
        own = message.replace("'target'", "'own'", 1)
        named = FieldNames(TARGET.parts, {"target": "own"})
        assert refusal(read_references, write([{"own": value}], "f.jsonl"), named) == own
    assert refusal(read_references, write([{"id": 1}], "f.jsonl")) == (
        "f.jsonl, line 1: no field 'target'; its fields: 'id'; --target-field names the one to read"
    )


def test_a_list_of_texts_is_several_references_under_any_name(write):
    rows = [{"target": ["a", "b"], "own": ["x", "y"]}, {"target": "c", "own": ["z"]}]
    path = write(rows, "f.jsonl")
    assert read_references(path) == [["a", "b"], ["c"]]
    assert read_references(path, FieldNames(TARGET.parts, {"target": "target"})) == [["a", "b"], ["c"]]
    assert read_references(path, FieldNames(TARGET.parts, {"target": "own"})) == [["x", "y"], ["z"]]
    parquet.write_table(pyarrow.Table.from_pylist([{"own": ["x", "y"]}, {"own": ["z"]}]), "f.parquet")
    assert read_references("f.parquet", FieldNames(TARGET.parts, {"target": "own"})) == [["x", "y"], ["z"]]
    path = write([{"target": []}], "f.jsonl")
    assert refusal(read_references, path) == "f.jsonl, line 1: the field 'target' is empty"


def test_references_that_are_null_are_not_there(write):
    rows = [{"target": "a", "references": ["b", "c"]}, {"target": "d", "references": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), "f.parquet")
    assert read_references("f.parquet") == read_references(write(rows, "f.jsonl")) == [["b", "c"], ["d"]]
    assert refusal(read_references, write([{"target": None, "references": None}], "f.jsonl")) == (
        "f.jsonl, line 1: the field 'target' is empty"
    )


def test_output_of_generate_is_known_by_its_hypotheses(write):
    for text, known in (
        ("log\nH-12\t-0.5\ttext\n", True), ("H-1\t\n", True), ("D-0\t-1\ta\nT-0\ta\n", False), ("xH-1\ta\n", False),
        ("H-1 a\n", False), ("H-x\ta\n", False), (f"H-{10**18}\ta\n", False), (f"H-{10**18 - 1}\ta\n", True),
        ("", False),
    ):  # fmt: skip
        assert is_generate_output(write(text)) == known, text
    assert not is_generate_output(write([{"text": "H-1\ta"}], "f.jsonl"))


def blocks(*sentences: tuple[int, list[str], str]) -> str:
    """Output of fairseq-generate: of each sentence its number, its hypotheses and its reference."""
    lines = ["2020-01-01 | INFO | a line of the log"]
    for number, hypotheses, reference in sentences:
        lines += [f"S-{number}\tsource", f"T-{number}\t{reference}"]
        for text in hypotheses:
            lines += [f"H-{number}\t-1\ttokens", f"D-{number}\t-1\t{text}", f"P-{number}\t-1.0 -0.5"]
    return "".join(line + "\n" for line in lines)


def test_shards_are_put_in_order_and_the_best_hypothesis_counts(write):
    rng = random.Random(1)
    for _ in range(30):
        count = rng.randint(1, 7)
        own = [(i, [f"h{i}-{k}\twith a tab" for k in range(rng.randint(1, 3))], f"r{i}") for i in range(count)]
        order = rng.sample(own, count)
        cut = rng.randint(0, count)
        paths = [write(blocks(*part), name) for part, name in ((order[:cut], "a"), (order[cut:], "b"))]
        expected = [hypotheses[0] for _, hypotheses, _ in own]
        assert read_generate_output(paths) == (expected, [f"r{i}" for i in range(count)])
        assert read_generate_output(paths, need_references=False) == (expected, [])


ONCE = "; pass the output of one run, each shard once"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: no D- lines; expected the output of fairseq-generate (without --quiet)"),
        ("S-0\tx\nS-0\tx\n", f"f, line 2: S-0 was already in f, line 1{ONCE}"),
        ("T-0\tx\nD-0\t1\tx\nT-0\tx\n", f"f, line 3: T-0 was already in f, line 1{ONCE}"),
        ("H-0\t1\tx\nH-1\t1\ty\nH-0\t1\tx\n", f"f, line 3: H-0 was already in f, line 1{ONCE}"),
        ("H-1\t1\tx\nH-1\t1\ty\nD-1\tx\n", "f, line 3: expected 'D-1<tab>score<tab>text', got 'D-1\\tx'"),
        (
            "D-1\t" + "x" * 70 + "\n",
            f"f, line 1: expected 'D-1<tab>score<tab>text', got 'D-1\\t{'x' * 56}'",
        ),
        ("D-0\t1\tx\nS-1\ty\n", "f, line 2: S-1 has no D-1 line; the output seems to be cut off"),
        (
            "D-1\t1\tx\nT-1\tx\nD-4\t1\tx\n",
            "f: 3 of 5 sentences missing, the first is number 0; pass every shard, and run fairseq-generate without "
            "--skip-invalid-size-inputs-valid-test",
        ),
        ("D-0\t1\tx\nD-1\t1\tx\nT-1\tx\n", "f: no T- line for sentence 0 (1 in all); pass --references FILE instead"),
    ],
)
def test_output_that_does_not_go_together_is_refused(write, text, message):
    assert refusal(read_generate_output, [write(text)]) == message


def test_files_of_a_run_are_named_together(write):
    assert refusal(read_generate_output, [write("", "a"), write("", "b")]).startswith("a b: no D- lines")


def test_all_hypotheses_with_their_probabilities(write):
    """Scores are logarithms to base 2; the end of a text has one too."""
    texts = "D-1\t-1\tb\nP-1\t-1.0 -0.5\nx\nD-0\t-1\ta\tt\nP-0\t-2\nD-1\t-2\t\nP-1\t0 0 -1\n"
    found = read_n_best([write(texts)])
    assert [[one.text for one in own] for own in found] == [["a\tt"], ["b", ""]]
    assert [[one.length for one in own] for own in found] == [[1], [2, 3]]
    probabilities = [one.log_prob / math.log(2) for own in found for one in own]
    assert probabilities == pytest.approx([-2, -1.5, -1])
    assert found[0] == [Written("a\tt", found[0][0].log_prob, 1)]
    parts = texts.split("x\n")
    assert read_n_best([write(part, name) for part, name in zip(parts, "ab", strict=True)]) == found


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", 0), ("D-0\t1\tx\n", 0), ("D-0\t1\tx\nP-0\t1\nP-0\t1\n", 0), ("D-1\t1\tx\nP-1\t1\n", 0),
     ("D-0\t1\tx\nP-0\t1\nD-2\t1\tx\nP-2\t1\n", 1), ("D-0\t1\tx\nP-0\t1\nD-1\t1\tx\n", 1)],
)  # fmt: skip
def test_lists_of_hypotheses_that_do_not_go_together_are_refused(write, text, sentence):
    assert refusal(read_n_best, [write(text)]) == (
        f"f: D- and P- lines of sentence {sentence} are missing or of different number; expected all that "
        "fairseq-generate or `unified generate` writes"
    )


def test_what_are_no_scores_is_refused(write):
    assert refusal(read_n_best, [write("D-0\t1\tx\nP-0\t1 x\n")]) == "f, line 2: '1 x' are no scores of tokens"
    long = refusal(read_n_best, [write("P-0\t" + "y" * 80 + "\n")])
    assert long == "f, line 1: '" + "y" * 59 + " are no scores of tokens"


def test_a_row_without_fields_is_refused(write):
    assert refusal(read_hypotheses, write([{}], "f.jsonl")) == "f.jsonl, line 1: no field 'text'; its fields: none"
