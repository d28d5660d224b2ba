"""`unified score generation` and `question-generation`: inputs that go together, clean-up, and the table of scores."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from unified.cli import main
from unified.cli.commands.scoring.texts import cleaned, read_inputs, table
from unified.cli.parsing import make_parser
from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tasks.metrics.generation import GeneratedTexts
from unified.tasks.metrics.question_generation import GeneratedQuestions
from unified.tasks.metrics.summaries import POST_PROCESSING


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch) -> None:
    """Plain files, output of `unified generate` in two shards and without references, and rows."""
    monkeypatch.chdir(tmp_path)
    plain = {
        "two": ("a b", "c d"), "more": ("a b", "x y"), "others": ("p q", "c d"), "three": ("a", "b", "c"),
        "one": ("a b",), "sources": ("s", "t"),
    }  # fmt: skip
    for name, lines in plain.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for name, sentence in (("shard0", 0), ("shard1", 1)):
        written = (
            f"S-{sentence}\ts\nT-{sentence}\tright {sentence}\nH-{sentence}\t-1\th\nD-{sentence}\t-1\tour {sentence}\n"
        )
        Path(name).write_text(written, encoding="utf-8")
    Path("blind").write_text("S-0\ts\nH-0\t-1\th\nD-0\t-1\tour 0\n", encoding="utf-8")
    Path("rows.jsonl").write_text('{"target": "a b", "mine": "m"}\n{"target": "x y", "mine": "n"}\n', encoding="utf-8")


def arguments(line: str, kind: str = "generation") -> Namespace:
    return make_parser("score").parse_args(["score", kind, *line.split()])


@pytest.mark.parametrize(
    ("line", "hypotheses", "references"),
    [
        ("two more", ["a b", "c d"], [["a b"], ["x y"]]),
        ("two --references more", ["a b", "c d"], [["a b"], ["x y"]]),
        ("two --references more others", ["a b", "c d"], [["a b", "p q"], ["x y", "c d"]]),
        ("two rows.jsonl", ["a b", "c d"], [["a b"], ["x y"]]),
        ("two --references rows.jsonl --target-field mine", ["a b", "c d"], [["m"], ["n"]]),
        ("shard0", ["our 0"], [["right 0"]]),
        ("shard1 shard0", ["our 0", "our 1"], [["right 0"], ["right 1"]]),
        ("blind --references one", ["our 0"], [["a b"]]),
        ("shard0 shard1 --references more", ["our 0", "our 1"], [["a b"], ["x y"]]),
        ("shard0 shard1 --references more others", ["our 0", "our 1"], [["a b", "p q"], ["x y", "c d"]]),
    ],
)
def test_texts_are_read_with_all_their_references(line, hypotheses, references):
    assert read_inputs(arguments(line)) == (hypotheses, references)


def test_rows_of_texts_and_sources_are_matched_by_their_ids(capsys):
    for name, field, rows in (
        ("h.jsonl", "text", {"a": "x y", "b": "p q"}), ("r.jsonl", "target", {"b": "p q", "a": "x y"}),
        ("s.jsonl", "source", {"b": "p", "a": "x y"}),
    ):  # fmt: skip
        lines = (json.dumps({"id": key, field: text}) for key, text in rows.items())
        Path(name).write_text("\n".join(lines), encoding="utf-8")
    assert read_inputs(arguments("h.jsonl r.jsonl")) == (["x y", "p q"], [["x y"], ["p q"]])
    assert read_inputs(arguments("h.jsonl more")) == (["x y", "p q"], [["a b"], ["x y"]])
    found = json.loads(score(capsys, "generation", "h.jsonl r.jsonl --sources s.jsonl --json"))
    assert (found["exact_match"], found["source_words"]) == (100, 75)
    rows = ({"id": key, "target": "x", "source": "y"} for key in "ac")
    Path("other.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for files in ("h.jsonl other.jsonl", "h.jsonl r.jsonl --sources other.jsonl"):
        assert main(["score", "generation", *files.split()]) == 2
        assert capsys.readouterr().err == (
            "unified score: error: other.jsonl: no row has the id 'b' of h.jsonl; both files need the same ids, "
            "or none\n"
        )


EXPECTED = (
    "expected output of fairseq-generate (one file or its shards), two plain files (hypotheses, references), or one "
    "plain file with --references; got "
)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("two", f"{EXPECTED}two"),
        ("two more others", f"{EXPECTED}two more others"),
        ("two more --references others", f"{EXPECTED}two more"),
        ("shard0 two", f"{EXPECTED}shard0 two"),
        ("blind", "blind: no T- line for sentence 0 (1 in all); pass --references FILE instead"),
        ("two shard0 --references more", f"{EXPECTED}two shard0"),
        ("two three", "three: 3 references for 2 hypotheses in two"),
        ("two one", "one: 1 reference for 2 hypotheses in two"),
        ("two --references more three", "three: 3 references for 2 hypotheses in two"),
        ("shard0 shard1 --references three", "three: 3 references for 2 hypotheses in shard0"),
    ],
)
def test_files_that_do_not_go_together_are_refused(line, says):
    with pytest.raises(UnifiedError) as refused:
        read_inputs(arguments(line))
    assert str(refused.value) == says


def test_hypotheses_are_cleaned_up_and_plain_references_get_their_form():
    texts, right = ["It costs 12 (or 13) ."], [["It costs 12 (or 13).", "It is 7"]]
    rules = POST_PROCESSING["gigaword"]
    assert cleaned(arguments("two more"), texts, right) == (texts, right, None)
    found = cleaned(arguments("two more --post-process gigaword"), texts, right)
    assert found == ([rules(texts[0])], right, "gigaword|max_words:any") and found[0] != texts
    found = cleaned(arguments("two more --post-process gigaword --plain-references --max-words 2"), texts, right)
    assert found == (["It costs"], [[rules.in_form(one) for one in right[0]]], "gigaword|max_words:2")
    assert cleaned(arguments("two more --post-process gigaword --max-words 0"), texts, right)[2] == (
        "gigaword|max_words:any"
    )
    summary = "The cat sat on mats | it slept there all day long"
    given = arguments("two more --post-process cnndm --sentence-separator | --max-words 7")
    assert cleaned(given, [summary], [["x"]])[0] == [POST_PROCESSING["cnndm"](summary, "|").rsplit(" ", 4)[0]]
    assert cleaned(arguments("two more --post-process xsum"), ["a"], [["b"]])[2] == "xsum|max_words:any"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--max-words 0", "--max-words and --plain-references go with --post-process"),
        ("--plain-references", "--max-words and --plain-references go with --post-process"),
        ("--post-process cnndm", "--post-process cnndm drops sentences; give --sentence-separator"),
        ("--post-process xsum --max-words -1", "--max-words must be 0 or a number of words, got -1"),
        ("--sentence-separator=", "--sentence-separator is empty; give the text between sentences, such as '[X_SEP]'"),
    ],
)
def test_options_of_the_clean_up_that_cannot_work_are_refused(line, says):
    with pytest.raises(UnifiedError) as refused:
        cleaned(arguments(f"two more {line}"), ["a"], [["b"]])
    assert str(refused.value) == says


def score(capsys, kind: str, line: str) -> str:
    assert main(["score", kind, *line.split()]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def test_options_of_generation_reach_the_scores(capsys):
    Path("h").write_text("running | fast\n日本語 です\n", encoding="utf-8")
    Path("r").write_text("run | fast\n日本 です\n", encoding="utf-8")
    hypotheses, references = ["running | fast", "日本語 です"], [["run | fast"], ["日本 です"]]
    for line, more in (
        ("", {}),
        ("--no-stemmer", {"use_stemmer": False}),
        ("--bleu-tokenizer char", {"bleu_tokenizer": "char"}),
        ("--sentence-separator |", {"sentence_separator": "|"}),
        ("--sources sources", {"sources": ["s", "t"]}),
    ):
        found = json.loads(score(capsys, "generation", f"h r --json {line}"))
        assert found == GeneratedTexts(hypotheses, references, **more).scores()
    cleaned_up = json.loads(score(capsys, "generation", "h r --json --post-process gigaword"))
    rules = POST_PROCESSING["gigaword"]
    plain = GeneratedTexts([rules(one) for one in hypotheses], references)
    assert cleaned_up == plain.scores() | {"post_process": "gigaword|max_words:any"}
    with_intervals = "h r --json --post-process gigaword --intervals --resamples 5 --seed 3"
    found = json.loads(score(capsys, "generation", with_intervals))
    assert found["intervals"] == json.loads(json.dumps(bootstrap_intervals(plain, 5, 3)))


def test_signatures_of_questions_name_the_form_of_the_hypotheses(capsys):
    Path("h").write_text("Who's he?\nwhat is it?\n", encoding="utf-8")
    Path("r").write_text("who 's he ?\nwhat is it ?\n", encoding="utf-8")
    expected = GeneratedQuestions(["Who's he?", "what is it?"], ["who 's he ?", "what is it ?"], ["s", "t"])
    assert json.loads(score(capsys, "question-generation", "h r --sources sources --json")) == expected.scores()
    for line, form in (("", "none"), ("--penn-treebank", "penn-treebank"), ("--bert-words", "bert-words")):
        found = json.loads(score(capsys, "question-generation", f"h r --sources sources --json {line}"))
        assert f"tok:{form}+spaces" in found["signature"] and "meteor" not in found


def test_all_references_of_a_question_are_pooled_with_those_of_its_source(capsys):
    rows = [["where"], ["it is", "who is it"], ["who are they", "what", "how is it"]]
    Path("h").write_text("where is it\nwho is he\nhow is it\n", encoding="utf-8")
    Path("s").write_text("other\nA line .\na line .\n", encoding="utf-8")
    for name, groups in (("r.jsonl", rows), ("reversed.jsonl", [[*reversed(group)] for group in rows])):
        lines = (json.dumps({"references": group}) for group in groups)
        Path(name).write_text("\n".join(lines), encoding="utf-8")
        found = json.loads(score(capsys, "question-generation", f"h {name} --sources s --json"))
        pairs = [("where is it", "where")] + [("how is it", text) for text in (*rows[1], *rows[2])]
        spread = GeneratedQuestions(*zip(*pairs, strict=True), ["other"] + ["a line ."] * 5).scores()
        assert found == spread | {"questions": 3} and found["questions"] < spread["questions"]
    for number in (0, 1):
        Path(f"r{number}").write_text("".join(f"{group[-number]}\n" for group in rows), encoding="utf-8")
    files = json.loads(score(capsys, "question-generation", "h --references r0 r1 --sources s --json"))
    several = [(group[0], group[-1]) for group in rows]
    texts = ["where is it", "who is he", "how is it"]
    assert files == GeneratedQuestions(texts, several, ["other", "a line .", "a line ."]).scores()


@pytest.mark.parametrize(
    ("hypothesis", "option"),
    [
        ("Who's he?", "--penn-treebank"),  # the Penn Treebank divides "Who's"
        ("who ' s he ?", "--bert-words"),  # BERT's words have spaces around each mark, which UniLM's program takes away
    ],
)
def test_an_option_gives_hypotheses_the_form_of_the_references(capsys, hypothesis, option):
    for name, text in (("h", hypothesis), ("r", "who 's he ?"), ("s", "s")):
        Path(name).write_text(f"{text}\n", encoding="utf-8")
    plain = json.loads(score(capsys, "question-generation", "h r --sources s --json"))
    formed = json.loads(score(capsys, "question-generation", f"h r --sources s --json {option}"))
    assert plain["bleu1"] < 100 and formed["bleu1"] == pytest.approx(100)


@pytest.mark.parametrize("kind", ["generation", "question-generation"])
def test_another_number_of_sources_than_of_texts_is_refused(kind, capsys):
    for name, count in (("three", "3 sources"), ("one", "1 source")):
        assert main(["score", kind, "two", "more", "--sources", name]) == 2
        assert capsys.readouterr().err == f"unified score: error: {name}: {count} for 2 hypotheses in two\n"


def test_a_table_has_a_line_for_each_score():
    found = {
        "sentences": 12345, "questions": 1, "sources": 2, "exact_match": 100, "character_similarity": 99.994,
        "bleu1": 1.0, "bleu2": 2.0, "bleu3": 3.0, "bleu4": 4.0, "bleu": 31.256, "rouge1": 41.2, "rouge2": 20.0,
        "rougeL": 38.0, "meteor": 17.5, "repeated_bigrams": 0.5, "source_words": 80.0, "bleu_signature": "b|c",
        "rouge_signature": "r", "signature": "s", "without_words": 0, "post_process": "xsum|max_words:any",
        "unknown": 3,
    }  # fmt: skip
    labels = {
        "sentences": "12,345", "questions": "1", "source sentences": "2", "exact sentences, %": "100",
        "character similarity, %": "99.99", "BLEU-1": "1.00", "BLEU-2": "2.00", "BLEU-3": "3.00", "BLEU-4": "4.00",
        "BLEU": "31.26", "ROUGE-1": "41.20", "ROUGE-2": "20.00", "ROUGE-L": "38.00", "METEOR": "17.50",
        "repeated bigrams, %": "0.50", "content words from the source, %": "80.00", "BLEU signature": "b|c",
        "ROUGE signature": "r", "signature": "s", "clean-up": "xsum|max_words:any",
    }  # fmt: skip
    width = len("content words from the source, %")
    assert table(found).splitlines() == [f"{label.ljust(width)}  {value}" for label, value in labels.items()]
    assert table({"bleu": 1.0, "sentences": 2}) == "BLEU       1.00\nsentences  2"


def test_a_table_has_intervals_and_notes_on_their_limits():
    found = {"bleu": 31.256, "rouge1": 40.0, "intervals": {"bleu": [30.004, 32.496]}}
    assert table(found) == "BLEU     31.26  [30.00, 32.50]\nROUGE-1  40.00"
    meteor = "note: METEOR has no interval, because its Java program scores all texts at once"
    assert table(found | {"meteor": 1.0}).splitlines()[-1] == meteor
    assert meteor not in table({"bleu": 1.0, "meteor": 1.0})
    wordless = "note: 12 references without an ASCII letter or digit, for which ROUGE is always 0"
    assert table({"bleu": 1.0, "without_words": 12}).splitlines()[1:] == [wordless]
    assert table(found | {"meteor": 1.0, "without_words": 12}).splitlines()[-2:] == [meteor, wordless]
